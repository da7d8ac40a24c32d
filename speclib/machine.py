"""What this machine has for models: cores, memory and GPUs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

MIB = 1 << 20  # bytes; the driver counts memory in MiB


def cores() -> int:
    """CPU cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Memory(NamedTuple):
    """The machine's memory, in bytes.

    available: what can still be used without swapping.
    """

    total: int
    available: int


def memory() -> Memory:
    """How much memory there is now."""
    import psutil

    now = psutil.virtual_memory()
    return Memory(now.total, now.available)


@dataclass(frozen=True)
class Gpu:
    """A GPU as its driver describes it; memory in bytes."""

    name: str
    total: int
    free: int


def gpus() -> tuple[Gpu, ...]:
    """The GPUs that this process may use, in the order in which torch numbers them.

    Asks the driver's library of management (NVML, by nvidia-smi), so that no process
    becomes one that has used CUDA: such a one must not fork.
    """
    rows = nvidia_smi("uuid", "name", "memory.total", "memory.free")
    every_one = ",".join(map(str, range(len(rows))))
    usable = []
    for name in os.environ.get("CUDA_VISIBLE_DEVICES", every_one).split(","):
        row = _row_of(name.strip(), rows)
        if row is None:
            break  # a wrong one ends the list, as for CUDA
        _, model, total, free = row
        usable.append(Gpu(model, _bytes(total), _bytes(free)))
    return tuple(usable)


def _row_of(name: str, rows: Sequence[list[str]]) -> list[str] | None:
    """The row of the GPU with this number, or whose UUID begins so."""
    if name.isdecimal():
        return rows[int(name)] if int(name) < len(rows) else None
    matching = [row for row in rows if name and row[0].startswith(name)]
    return matching[0] if matching else None


def _bytes(mebibytes: str) -> int:
    """What the driver counts in MiB; 0 where it does not say, as of shared memory."""
    return int(mebibytes) * MIB if mebibytes.isdecimal() else 0


def nvidia_smi(*fields: str) -> list[list[str]]:
    """These fields of each GPU; no GPU without the driver's tool."""
    query = [f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            ["nvidia-smi", *query],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return [[field.strip() for field in line.split(",")] for line in lines]
