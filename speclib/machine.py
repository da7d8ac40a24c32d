"""This machine's cores, memory and GPUs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

MIB = 1 << 20  # bytes; the driver counts memory in MiB


def cores() -> int:
    """The number of CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Memory(NamedTuple):
    """The machine's memory, in bytes.

    available: the memory that can be used without swapping.
    """

    total: int
    available: int


def memory() -> Memory:
    """The machine's memory now."""
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
    """The GPUs that this process may use, in torch's order.

    Queries the driver's management library (NVML, through nvidia-smi) rather than CUDA,
    because a process that has used CUDA must not fork.
    """
    rows = nvidia_smi("uuid", "name", "memory.total", "memory.free")
    every_one = ",".join(map(str, range(len(rows))))
    usable = []
    for name in os.environ.get("CUDA_VISIBLE_DEVICES", every_one).split(","):
        row = _row_of(name.strip(), rows)
        if row is None:
            break  # a wrong name ends the list, as in CUDA
        _, model, total, free = row
        usable.append(Gpu(model, _bytes(total), _bytes(free)))
    return tuple(usable)


def _row_of(name: str, rows: Sequence[list[str]]) -> list[str] | None:
    """The row of the GPU with this number, or whose UUID begins with ``name``."""
    if name.isdecimal():
        return rows[int(name)] if int(name) < len(rows) else None
    matching = [row for row in rows if name and row[0].startswith(name)]
    return matching[0] if matching else None


def _bytes(mebibytes: str) -> int:
    """The driver's MiB in bytes; 0 if not a number, for example for shared memory."""
    return int(mebibytes) * MIB if mebibytes.isdecimal() else 0


def nvidia_smi(*fields: str) -> list[list[str]]:
    """The values of ``fields`` for each GPU; [] if nvidia-smi is missing or fails."""
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
