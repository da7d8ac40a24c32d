"""Which machine this is: a short name for people, a full record for cache keys."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

# Packages whose version a measured time depends on.
VERSIONS = ("torch", "transformers", "numpy", "llama_cpp_python")

KIB = 1 << 10  # bytes
MIB = 1 << 20  # bytes; the driver counts memory in MiB
UNKNOWN = 1 << 60  # bytes: of a memory of which nobody says how large it is

# Instructions for bfloat16, as x86 and ARM name them.
BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}

# Words of a processor's name that don't tell it from others.
UNTELLING_WORDS = {
    "intel",
    "amd",
    "cpu",
    "processor",
    "core",
    "genuine",
    "authentic",
    "the",
    "with",
    "at",
}


@cache
def hardware() -> tuple[tuple[str, str], ...]:
    """(name, value) pairs that tell machines apart: processor, cores, system, GPUs."""
    return (
        ("cpu", _processor()),
        ("cores", str(cores())),
        ("system", platform.system()),
        ("arch", platform.machine()),
        ("gpus", _gpus()),
    )


@cache
def name() -> str:
    """Short and stable, as in `xeon-2c-ab12cd`.

    It is made of the processor, its usable cores, its GPUs, and a hash of the hardware.
    """
    facts = dict(hardware())
    words = re.findall(r"[a-z][a-z0-9]+", facts["cpu"].lower())
    telling_words = [word for word in words if word not in UNTELLING_WORDS]
    processor = telling_words[0] if telling_words else "cpu"

    gpus = ""
    if facts["gpus"]:
        gpus = f"-{len(facts['gpus'].split(';'))}gpu"

    digest = hashlib.blake2b(repr(hardware()).encode(), digest_size=3).hexdigest()
    return f"{processor}-{facts['cores']}c{gpus}-{digest}"


@cache
def environment() -> tuple[tuple[str, str], ...]:
    """The hardware and the versions a measurement depends on: part of its cache key."""
    versions = [("python", platform.python_version())]
    for package in VERSIONS:
        versions.append((package, version_of(package)))
    return (*hardware(), *versions)


def cores() -> int:
    """CPU cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def computes(dtype: str, places: Iterable[str]) -> bool:
    """Whether ``places`` (core:N, cpu, cuda:N) have instructions for ``dtype``.

    Without them, bfloat16 is converted back and forth, and its times say nothing.
    """
    if dtype != "bfloat16":
        return True
    if all(place.startswith("cuda") for place in places):
        return True
    return bool(bfloat16_instructions())


def bfloat16_instructions() -> list[str]:
    """The CPU's instructions for bfloat16, by the system's names for them."""
    return sorted(BFLOAT16.intersection(_instructions()))


class Memory(NamedTuple):
    """The machine's memory, in bytes.

    available: what can still be used without swapping.
    """

    total: int
    available: int


def memory() -> Memory:
    """How much memory there is now.

    On a machine without psutil the kernel of Linux says it.
    """
    try:
        import psutil
    except ImportError:
        return _memory_in_words()
    now = psutil.virtual_memory()
    return Memory(now.total, now.available)


def _memory_in_words() -> Memory:
    """The memory as /proc/meminfo states it, in KiB; no limit where there is none."""
    sizes = {}
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return Memory(UNKNOWN, UNKNOWN)
    for line in lines:
        name, words = line.split(":", 1)
        sizes[name] = int(words.split()[0]) * KIB
    return Memory(sizes["MemTotal"], sizes["MemAvailable"])


def load() -> float:
    """Runnable processes per usable core in the last minute; above 1 others compete."""
    return os.getloadavg()[0] / cores()


def _processor() -> str:
    return cpuinfo("model name") or platform.processor() or platform.machine()


def _instructions() -> list[str]:
    flags = cpuinfo("flags") or cpuinfo("Features")  # x86, ARM
    return flags.split()


def cpuinfo(name: str) -> str:
    """The first core's entry of that name; empty where there is no such file."""
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith(name):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return ""


def _gpus() -> str:
    """GPU names, joined by ';'; empty without the driver's tool."""
    return ";".join(row[0] for row in _nvidia_smi("name"))


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
    found = []
    for uuid, name, total, free in _nvidia_smi(
        "uuid", "name", "memory.total", "memory.free"
    ):
        found.append((uuid, Gpu(name, _bytes(total), _bytes(free))))

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return tuple(gpu for _, gpu in found)
    return tuple(_visible(visible.split(","), found))


def _visible(names: Iterable[str], found: Sequence[tuple[str, Gpu]]) -> Iterator[Gpu]:
    """The GPUs with these numbers or UUIDs; a wrong one ends the list, as for CUDA."""
    for name in names:
        name = name.strip()
        matching = [gpu for uuid, gpu in found if name and uuid.startswith(name)]
        if name.isdecimal() and int(name) < len(found):
            matching = [found[int(name)][1]]
        if not matching:
            return
        yield matching[0]


def _bytes(mebibytes: str) -> int:
    """What the driver counts in MiB; 0 where it does not say, as of shared memory."""
    return int(mebibytes) * MIB if mebibytes.isdecimal() else 0


def _nvidia_smi(*fields: str) -> list[list[str]]:
    """These fields of each GPU; no GPU without the driver's tool."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    try:
        done = subprocess.run(
            [tool, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    if done.returncode != 0:
        return []
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return [[field.strip() for field in line.split(",")] for line in lines]


def version_of(package: str) -> str:
    """The installed version of a package; empty where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
