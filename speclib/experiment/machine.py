"""Which machine a number was measured on: a short name for people, a full record for cache keys."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version

# what a measured time also depends on
VERSIONS = ("torch", "transformers", "numpy", "llama_cpp_python")
BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}  # instructions, as x86 and ARM name them


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
    """Short and stable, as in `xeon-2c-ab12cd`: processor, usable cores, hash of the hardware."""
    facts = dict(hardware())
    words = [
        w
        for w in re.findall(r"[a-z][a-z0-9]+", facts["cpu"].lower())
        if w not in _NOISE
    ]
    digest = hashlib.blake2b(repr(hardware()).encode(), digest_size=3).hexdigest()
    gpu = f"-{facts['gpus'].count(';') + 1}gpu" if facts["gpus"] else ""
    return f"{words[0] if words else 'cpu'}-{facts['cores']}c{gpu}-{digest}"


_NOISE = {
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
def environment() -> tuple[tuple[str, str], ...]:
    """The hardware and the versions a measurement depends on: part of its cache key."""
    return hardware() + (
        ("python", platform.python_version()),
        *((package, _version(package)) for package in VERSIONS),
    )


def cores() -> int:
    """CPU cores this process may use."""
    return (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )


def computes(dtype: str, places: Iterable[str]) -> bool:
    """Whether ``places`` (core:N, cpu, cuda:N) have instructions for ``dtype``: bfloat16 without
    them is converted back and forth, and its times say nothing."""
    on_cpu = any(not p.startswith("cuda") for p in places)
    return dtype != "bfloat16" or not on_cpu or bool(BFLOAT16 & set(_instructions()))


def load() -> float:
    """Runnable processes per usable core over the last minute; above 1, others compete."""
    return os.getloadavg()[0] / cores()


def _processor() -> str:
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def _instructions() -> list[str]:
    return (_cpuinfo("flags") or _cpuinfo("Features")).split()  # x86, ARM


def _cpuinfo(name: str) -> str:
    """The first core's entry of that name; empty where the system keeps no such file."""
    try:
        with open("/proc/cpuinfo") as lines:
            return next(
                (
                    line.split(":", 1)[1].strip()
                    for line in lines
                    if line.startswith(name)
                ),
                "",
            )
    except OSError:
        return ""


def _gpus() -> str:
    """GPU names, joined by ';'; empty without the driver's tool."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    try:
        done = subprocess.run(
            [tool, "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ";".join(done.stdout.split("\n")).strip("; ") if done.returncode == 0 else ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
