"""Whether a paper's reports are up to date: what they were made from, what they were.

A stamp per paper says both, as hashes. The files that all papers share, such as the
index, are in the stamps of all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from speclab.experiment import cache_keys
from speclib import machine, paths
from speclib.atomic_files import write_atomically

CODE = ("*.py", "*.js", "*.css", "templates/*")  # of both packages
TOOLS = ("plotly", "nbconvert", "papermill", "pandas", "scipy")
SHARED_FILES = ("index.html", "ledger.csv", "claims.csv", "plotly.min.js")
AUDIT = "audit"  # the name of the audit's notebook, page and stamp


def notebook_of(key: str) -> Path:
    """The notebook from which a paper's page is made."""
    return paths.ROOT / "notebooks" / "reproduce" / f"{key}.ipynb"


def hash_of_inputs(
    key: str, quick: bool, measured: bool, on_nodes: bool = False
) -> str:
    """A hash of all that a paper's reports depend on, this machine included."""
    files = _input_files(key)
    return cache_keys.digest(
        key,
        quick,
        measured,
        on_nodes,
        machine.environment(),
        paths.OFFICIAL_PROMPTS,
        [machine.version_of(tool) for tool in TOOLS],
        *(file.name for file in files),
        cache_keys.hash_of_files(*files),
    )


def hash_of_audit_inputs() -> str:
    """A hash of all that the audit depends on: code, items, prints and verdicts."""
    files = _code_files()
    for folder in ("audit", "papers", "latency", "hardware"):
        files += _files_under(paths.DATA / folder)
    files += [notebook_of(AUDIT), paths.REPORTS / "claims.csv"]
    tools = [machine.version_of(tool) for tool in TOOLS]
    return cache_keys.digest(AUDIT, tools, cache_keys.hash_of_files(*files))


def is_current(key: str, inputs: str) -> bool:
    """Whether the reports were made from these inputs, and are as they were made."""
    stamp = _read_stamp(key)
    is_same_input = stamp.get("inputs") == inputs
    return is_same_input and stamp.get("outputs") == _hashes(_report_files(key))


def remember(key: str, inputs: str) -> None:
    """Says that the reports were made from these inputs, just as they are now."""
    _write_stamp(key, {"inputs": inputs, "outputs": _hashes(_report_files(key))})


def forget(key: str) -> None:
    """Says that the reports are to be made again."""
    _stamp_file(key).unlink(missing_ok=True)


def accept_shared_files(key: str) -> None:
    """Accepts the shared files as they are now.

    The paper's own files must still be what they were.
    """
    stamp = _read_stamp(key)
    if stamp:
        stamp["outputs"] |= _hashes(paths.REPORTS / name for name in SHARED_FILES)
        _write_stamp(key, stamp)


# -- files -----------------------------------------------------------------------------
def _input_files(key: str) -> list[Path]:
    """Both packages' code, the data, and the notebook, all in a fixed order."""
    files = _code_files()
    for folder in (f"papers/{key}", "latency", "hardware", "pairs", "prompts"):
        files += _files_under(paths.DATA / folder)
    return [*files, paths.DATA / "models" / "SHA256SUMS", notebook_of(key)]


def _code_files() -> list[Path]:
    files = []
    for package in cache_keys.PACKAGES:
        for pattern in CODE:
            files += sorted((cache_keys.FOLDER / package).rglob(pattern))
    return files


def _files_under(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def _report_files(key: str) -> list[Path]:
    """The files that a paper's reports consist of."""
    names = [f"{key}.md"]
    if notebook_of(key).is_file():
        names += [f"{key}.html", f"{key}-traces.html", f"{key}.ipynb"]
    return [paths.REPORTS / name for name in (*names, *SHARED_FILES)]


def _hashes(files: Iterable[Path]) -> dict[str, str]:
    """A hash of each file, by its name."""
    hashes = {}
    for file in files:
        is_there = file.is_file()
        hashes[file.name] = cache_keys.hash_of_files(file) if is_there else "missing"
    return hashes


# -- stamps ----------------------------------------------------------------------------
def _stamp_file(key: str) -> Path:
    return paths.CACHE / "reports" / f"{key}.json"


def _read_stamp(key: str) -> dict[str, Any]:
    """A paper's stamp; an empty one where there is none that can be read."""
    try:
        stamp = json.loads(_stamp_file(key).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    is_whole = isinstance(stamp, dict) and {"inputs", "outputs"} <= stamp.keys()
    return stamp if is_whole else {}


def _write_stamp(key: str, stamp: dict[str, Any]) -> None:
    write_atomically(_stamp_file(key), json.dumps(stamp))
