"""Checks this machine: versions, processors, memory, network and models.

Each check states what was examined, what was found, whether it is enough, and what to
do if it is not.
"""

from __future__ import annotations

import platform
import re
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from speclab import machine_facts
from speclib import machine, paths
from speclib.data.pairs import EXTRA, load_pair
from speclib.errors import SpeclibError, how_to_install, is_installed
from speclib.models import gpus, zoo
from speclib.models.open_pair import open_pair

GB = 1e9  # bytes
LEAST_PYTHON = (3, 11)
MODEL_PACKAGES = ("torch", "transformers", "tokenizers", "accelerate", "safetensors")
HUB_PATIENCE = 3.0  # seconds within which the hub must answer

# The default pair of `python -m speclab`. It is embedded, and needs two cores.
DEFAULT_PAIR = "embedded/llama-7b-70b"

State = Literal["yes", "differs", "no"]


@dataclass(frozen=True)
class Check:
    """One requirement that was examined.

    name    the requirement's name
    found   what the machine has, in words
    state   "yes"; "differs" if it may work but differs from what we tested; or "no"
    advice  what to do, unless the state is "yes"
    """

    name: str
    found: str
    state: State = "yes"
    advice: str = ""


def check_machine(hub_is_silent: str, default_reason: str) -> list[Check]:
    """All checks, in the order in which they are shown.

    hub_is_silent: see ``why_hub_is_out_of_reach``. default_reason: see
    ``why_default_cannot_run``.
    """
    memory = machine.memory()
    room = f"{memory.available / GB:.1f} of {memory.total / GB:.1f} GB available"
    return [
        _python(),
        *_packages(),
        _cores(),
        Check("memory", room),
        *_gpus(),
        _extra("llama.cpp", EXTRA, "else DuoDecoding drafts in torch: make llamacpp"),
        _extra("Ray", ("ray",), "only world='cluster' needs it: make cluster"),
        _embedded_models(),
        _disk(),
        _hub(hub_is_silent),
        _measured(default_reason),
    ]


def why_default_cannot_run() -> str:
    """Why the embedded default cannot be measured; empty if it can."""
    for package in MODEL_PACKAGES:
        if not is_installed(package):
            return f"{package} is not installed"
    try:
        opened = open_pair(load_pair(DEFAULT_PAIR))
        _ = opened.tokenizer  # reads both models' files
    except (SpeclibError, ImportError, OSError) as error:
        return str(error)
    return ""


def _measured(reason: str) -> Check:
    """Whether numbers can be measured; paper and virtual numbers need no model."""
    if reason:
        return Check("measured numbers", reason, "no", "see the checks above")
    return Check("measured numbers", f"{DEFAULT_PAIR}, in real processes")


# -- software --------------------------------------------------------------------------
def _python() -> Check:
    found = platform.python_version()
    if sys.version_info[:2] >= LEAST_PYTHON:
        return Check("Python", found)
    least = ".".join(str(number) for number in LEAST_PYTHON)
    return Check("Python", found, "no", f"install Python {least} or newer")


def _packages() -> Iterator[Check]:
    """Each numerical library, and whether its version is the pinned one."""
    pins = read_pins()
    for package in (*MODEL_PACKAGES, "numpy"):
        installed = machine_facts.version_of(package)
        pinned = pins.get(package, "")
        if not installed:
            yield Check(package, "not installed", "no", how_to_install("models"))
            continue
        # Builds of torch differ after the plus sign: 2.13.0+cpu
        if installed.split("+")[0] == pinned:
            yield Check(package, installed)
        else:
            advice = f"tested with {pinned or 'the versions of requirements.lock'}"
            yield Check(package, installed, "differs", advice)


def read_pins() -> dict[str, str]:
    """Package -> the version in requirements.lock; empty if the file is missing."""
    try:
        text = (paths.ROOT / "requirements.lock").read_text("utf-8")
    except OSError:
        return {}
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", text, re.M))


def _extra(name: str, packages: Sequence[str], advice: str) -> Check:
    if all(is_installed(package) for package in packages):
        return Check(name, "installed")
    return Check(name, "not installed", "differs", advice)


def _embedded_models() -> Check:
    names = sorted(path.parent.name for path in zoo.ZOO.glob("*/model.safetensors"))
    try:
        for name in names:
            zoo.locate(f"zoo/{name}")
    except SpeclibError as error:
        return Check("embedded models", str(error), "no", zoo.HOW_TO_GET)
    if not names:
        return Check("embedded models", "none", "no", zoo.HOW_TO_GET)
    return Check("embedded models", f"{len(names)}, with the right checksums")


# -- hardware --------------------------------------------------------------------------
def _cores() -> Check:
    facts = dict(machine_facts.hardware())
    found = f"{machine.cores()} of {facts['cpu']}"
    if machine.cores() >= 2:
        return Check("cores", found)
    advice = "draft and target need a core each, or they wait for each other"
    return Check("cores", found, "differs", advice)


def _gpus() -> Iterator[Check]:
    """The GPUs that the driver finds, and whether torch can use them."""
    found = machine.gpus()
    if not found:
        advice = "pairs placed on cuda:N cannot run; all embedded pairs can"
        yield Check("GPUs", "none", "differs", advice)
        return
    for number, gpu in enumerate(found):
        memory = f"{gpu.free / GB:.1f} of {gpu.total / GB:.1f} GB free"
        yield Check(f"cuda:{number}", f"{gpu.name}, {memory}")
    if gpus.count() < len(found):
        advice = "install the CUDA build of torch, see pytorch.org"
        yield Check("GPUs for torch", gpus.available(), "no", advice)


# -- disk and network ------------------------------------------------------------------
def _disk() -> Check:
    """The free space on the disk on which the hub's library stores weights."""
    if not is_installed("huggingface_hub"):
        return Check("disk for weights", "the hub's library is not installed", "no")
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE)
    found = f"{free_disk(folder) / GB:.1f} GB free in {folder}"
    return Check("disk for weights", found)


def free_disk(folder: Path) -> int:
    """Free bytes on the disk of ``folder``, which need not exist."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def _hub(hub_is_silent: str) -> Check:
    if not hub_is_silent:
        return Check("hub of models", "answers")
    advice = "models that are not in the cache cannot be downloaded"
    return Check("hub of models", hub_is_silent, "differs", advice)


def why_hub_is_out_of_reach() -> str:
    """Why no model can be downloaded; empty if the hub answers."""
    if not is_installed("huggingface_hub"):
        return "the hub's library is not installed"
    from huggingface_hub import constants, is_offline_mode

    if is_offline_mode():
        return "HF_HUB_OFFLINE is set"
    request = urllib.request.Request(constants.ENDPOINT, method="HEAD")
    try:
        urllib.request.urlopen(request, timeout=HUB_PATIENCE).close()
    except urllib.error.HTTPError:
        return ""  # it answers
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return f"{constants.ENDPOINT} does not answer ({reason})"
    return ""
