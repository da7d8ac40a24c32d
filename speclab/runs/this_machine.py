"""The name that identifies this machine in its rows."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

from speclab import machine_facts
from speclib import paths
from speclib.atomic_files import write_atomically


def name_of_this_machine() -> str:
    """This machine's name, for example `epyc-2c-ab12cd-3f07`.

    The name consists of the processor, its cores and its GPUs, then four random digits,
    which are drawn once and stored next to the rows. The digits distinguish machines
    with the same processor, whose memory speeds may differ by half. Host names and
    addresses would not: rented machines share them.
    """
    known = known_name()
    if known is None:
        known = f"{machine_facts.name()}-{secrets.token_hex(2)}"
        content = {"hardware": machine_facts.hardware(), "name": known}
        write_atomically(_file(), json.dumps(content))
    return known


def known_name() -> str | None:
    """This machine's name; None if nothing has been measured on it yet."""
    try:
        content = json.loads(_file().read_text("utf-8"))
        is_this_one = content["hardware"] == [
            list(fact) for fact in machine_facts.hardware()
        ]
        return str(content["name"]) if is_this_one else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _file() -> Path:
    return paths.CACHE / "runs" / "machine.json"
