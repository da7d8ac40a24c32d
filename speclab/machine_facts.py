"""Identifies this machine: a short name for people, a full record for measured rows."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from speclib.machine import cores, nvidia_smi

# Packages whose version a measured time depends on.
VERSIONS = ("torch", "transformers", "numpy", "llama_cpp_python")

# The names of instructions for bfloat16 on x86 and ARM.
BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}

# Words in a processor's name that don't distinguish it from others.
COMMON_WORDS = {
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
    """(name, value) pairs that identify a machine: processor, cores, system, GPUs."""
    return (
        ("cpu", _processor()),
        ("cores", str(cores())),
        ("system", platform.system()),
        ("arch", platform.machine()),
        ("gpus", _gpus()),
    )


@cache
def name() -> str:
    """A short, stable name, such as `xeon-2c-ab12cd`.

    It combines the processor, its usable cores, its GPUs and a hash of the hardware.
    """
    facts = dict(hardware())
    words = re.findall(r"[a-z][a-z0-9]+", facts["cpu"].lower())
    distinctive_words = [word for word in words if word not in COMMON_WORDS]
    processor = distinctive_words[0] if distinctive_words else "cpu"

    gpus = ""
    if facts["gpus"]:
        gpus = f"-{len(facts['gpus'].split(';'))}gpu"

    digest = hashlib.blake2b(repr(hardware()).encode(), digest_size=3).hexdigest()
    return f"{processor}-{facts['cores']}c{gpus}-{digest}"


@cache
def environment() -> tuple[tuple[str, str], ...]:
    """The hardware and versions that a measurement depends on."""
    versions = [("python", platform.python_version())]
    for package in VERSIONS:
        versions.append((package, version_of(package)))
    return (*hardware(), *versions)


def computes(dtype: str, places: Iterable[str]) -> bool:
    """Whether ``places`` (core:N, cpu, cuda:N) have instructions for ``dtype``.

    Without them, bfloat16 is converted back and forth, and its timings mean nothing.
    """
    if dtype != "bfloat16":
        return True
    if all(place.startswith("cuda") for place in places):
        return True
    return bool(bfloat16_instructions())


def bfloat16_instructions() -> list[str]:
    """The CPU's bfloat16 instructions, under the system's names."""
    return sorted(BFLOAT16.intersection(_instructions()))


def load() -> float:
    """Runnable processes per usable core in the last minute; above 1, they compete."""
    return os.getloadavg()[0] / cores()


def _processor() -> str:
    return cpuinfo("model name") or platform.processor() or platform.machine()


def _instructions() -> list[str]:
    flags = cpuinfo("flags") or cpuinfo("Features")  # x86, ARM
    return flags.split()


def cpuinfo(name: str) -> str:
    """The first core's entry with this name; "" on systems without /proc/cpuinfo."""
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith(name):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return ""


def _gpus() -> str:
    """GPU names, joined by ';'; "" without nvidia-smi."""
    return ";".join(row[0] for row in nvidia_smi("name"))


def version_of(package: str) -> str:
    """The installed version of a package; "" if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
