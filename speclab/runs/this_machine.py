"""By which name this machine's rows are known."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np

from speclib import machine, paths
from speclib.atomic_files import write_atomically

COPIED = 64 << 20  # bytes, more than most caches hold
TRIES = 5


def name_of_this_machine() -> str:
    """Its name, such as `epyc-2c-ab12cd-11GBs`; measured once, then kept.

    Beside the processor, its cores and its GPUs it has the speed at which one core
    copies memory, since two machines of one processor may differ by half in that.
    """
    known = known_name()
    if known is None:
        known = f"{machine.name()}-{round(_copy_speed() / 1e9)}GBs"
        content = {"hardware": machine.hardware(), "name": known}
        write_atomically(_file(), json.dumps(content))
    return known


def known_name() -> str | None:
    """The same, without measuring: None where nothing was measured here yet."""
    try:
        content = json.loads(_file().read_text("utf-8"))
        is_this_one = content["hardware"] == [list(fact) for fact in machine.hardware()]
        return str(content["name"]) if is_this_one else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _copy_speed() -> float:
    """Bytes a second, read and written, by the quickest of some copies."""
    source = np.ones(COPIED, np.uint8)
    target = np.empty_like(source)
    seconds = []
    for _ in range(TRIES):
        started = time.perf_counter()
        np.copyto(target, source)
        seconds.append(time.perf_counter() - started)
    return 2 * COPIED / min(seconds)


def _file() -> Path:
    return paths.CACHE / "runs" / "machine.json"
