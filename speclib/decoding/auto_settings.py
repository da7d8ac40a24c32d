"""Counts that a user may leave to "auto": draft length, lookahead, target servers, from
c = t_target / t_draft as the papers' formulas have them. Knows no method: only their names.
"""

from __future__ import annotations

import os
import re
from math import ceil

from speclib.data.latency import load_latency
from speclib.errors import SpeclibError

COUNTS = {
    "gamma": "a draft length",
    "lookahead": "a lookahead",
    "servers": "a number of target servers",
}
GAMMA = {
    "easyspec": 5
}  # fits its paper's times; c, of exact passes, says too little there
MOST = 7  # target servers beside a drafter: the paper's node of eight GPUs


def settled(method: str, known: list[str], given: dict, world) -> dict:
    """``given`` for an open ``world``, checked, with a number for each "auto" that is ``known``:
    gamma = round(c), the optimum of PEARL's Theorem 1, but for methods in ``GAMMA``; servers =
    ceil(c / lookahead), as far as there are; lookahead = ceil(c / servers). Both auto: every server
    there is. A gamma like "c-2" is round(c) - 2, at least 1.

    Source: PEARL, section 3; Timor et al. 2024 (DSI), section 3.1.
    """
    if "gamma" not in known and given["gamma"] != "auto":
        raise SpeclibError(f"method {method!r} has no gamma; leave it out")
    now = {
        name: checked(name, given.get(name, "auto")) for name in COUNTS if name in known
    }
    there = len(world.targets)
    if now.get("servers", "auto") != "auto" and now["servers"] > there:
        raise SpeclibError(
            f"servers is {now['servers']}, but this world has {there} target "
            f"device{'s' * (there > 1)}: open it with servers={now['servers']}"
        )
    gamma = GAMMA.get(method) if now.get("gamma") == "auto" else None
    formulas = {
        "gamma": lambda: (
            gamma or max(1, round(world.ratio) + offset(given.get("gamma", "auto")))
        ),
        "servers": lambda: (
            there
            if now["lookahead"] == "auto"
            else min(there, needed(world.ratio, now["lookahead"]))
        ),
        "lookahead": lambda: needed(world.ratio, now["servers"]),
    }
    for name, formula in formulas.items():
        if isinstance(now.get(name), str):
            now[name] = formula()
    return {name: value for name, value in given.items() if name in known} | now


def to_open(world: str, pair, known: list[str], given: dict) -> int:
    """How many target servers the world named ``world`` should have for a method: as many as are
    asked for; else as many as keep up, at most ``MOST``; of workers that compute, one for each core
    that the drafter leaves."""
    servers = (
        checked("servers", given.get("servers", "auto")) if "servers" in known else 1
    )
    if servers != "auto":
        return servers
    if world == "processes":
        return max(1, (os.cpu_count() or 2) - 1)
    lookahead = checked("lookahead", given.get("lookahead", "auto"))
    if pair.latency is None:
        return 1  # opening the world says what is missing
    return min(
        MOST,
        needed(load_latency(pair.latency).c, 1 if lookahead == "auto" else lookahead),
    )


def needed(c: float, each: int) -> int:
    """ceil(c / each), at least 1, whatever c's last digit."""
    return max(1, ceil(c / each - 1e-9))


def checked(name: str, value):
    """``value``, if it is "auto" or a count; a gamma may be "c-2", too."""
    whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
    if value == "auto" or whole or name == "gamma" and offset(value):
        return value
    raise SpeclibError(
        f"{name} is {value!r}: give {COUNTS[name]} of 1 or more, or 'auto'"
        + (", or 'c-2', 'c+1', ...: so far from c" if name == "gamma" else "")
    )


def offset(gamma) -> int:
    """What "c-2" says; 0 for anything else."""
    found = re.fullmatch(r"c([+-]\d{1,3})", gamma) if isinstance(gamma, str) else None
    return int(found[1]) if found else 0
