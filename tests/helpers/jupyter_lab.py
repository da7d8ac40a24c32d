"""A JupyterLab server for a reader who has never used Jupyter."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from .patience import wait_until

SERVER = (
    "-m",
    "jupyterlab",
    "--no-browser",
    "--allow-root",
    "--ServerApp.port_retries=0",
    "--IdentityProvider.token=reader",
)

# Fetches no news, and also renders cells outside the visible part of the page.
SETTINGS = {
    "apputils-extension/notification": '{"fetchNews": "false"}',
    "notebook-extension/tracker": '{"windowingMode": "none"}',
}
SECONDS_TO_START = 180


class Lab(NamedTuple):
    """A running server: its port, and the folder of its notebooks."""

    port: int
    notebooks: Path

    def address(self, name: str) -> str:
        """The address that opens this notebook in its own workspace."""
        return (
            f"http://127.0.0.1:{self.port}/lab/workspaces/{name}/tree/{name}.ipynb"
            "?token=reader"
        )


@contextmanager
def running_lab(home: Path) -> Iterator[Lab]:
    """A server whose reader's home is the empty folder ``home``."""
    notebooks = home / "notebooks"
    notebooks.mkdir()
    write_settings(home)
    port = free_port()
    log = home / "log"
    with open(log, "w") as file:
        server = subprocess.Popen(
            [
                sys.executable,
                *SERVER,
                f"--ServerApp.port={port}",
                f"--ServerApp.root_dir={notebooks}",
            ],
            env=environment(home),
            stdout=file,
            stderr=file,
        )
    try:
        wait_until_running(server, log)
        yield Lab(port, notebooks)
    finally:
        server.terminate()  # ends its kernels too
        server.wait(60)


def write_settings(home: Path) -> None:
    folder = home / ".jupyter/lab/user-settings/@jupyterlab"
    for extension, setting in SETTINGS.items():
        path = folder / f"{extension}.jupyterlab-settings"
        path.parent.mkdir(parents=True)
        path.write_text(setting)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def environment(home: Path) -> dict[str, str]:
    """This process's environment without Jupyter's variables."""
    variables = {"HOME": str(home)}
    for name, value in os.environ.items():
        if name != "HOME" and not name.startswith(("JUPYTER", "IPYTHON")):
            variables[name] = value
    return variables


def wait_until_running(server: subprocess.Popen, log: Path) -> None:
    """Waits until the server logs that it is running, or has ended."""

    def is_running() -> bool:
        return "is running at" in log.read_text()

    wait_until(lambda: is_running() or server.poll() is not None, SECONDS_TO_START)
    assert is_running(), log.read_text()
