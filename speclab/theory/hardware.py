"""On how many devices a latency file's models stand, and what these could do instead.

A file ``data/hardware/<folder>.toml`` belongs to the latency files of one folder. For
each it says how many equal devices the draft and the target have, how many weights and
layers the target has, and by ``device`` of which kind they are: that is a file of its
own, with the rate at which weights are read and the time that joining a layer takes.

Knows no clock and no model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from speclab.theory.plain_decoding import Bound, PlainPass, plain_pass
from speclib.arguments import checked
from speclib.data.toml_files import read_toml, toml_path
from speclib.errors import BadValue
from speclib.paths import DATA

BYTES_PER_WEIGHT = 2  # bfloat16 or float16, as all papers have it
OPERATIONS_PER_WEIGHT = 2  # for each token: a multiplication and an addition

FORMAT = (
    "give draft (0 or more devices), target (1 or more), weights and layers for each "
    "latency file, beside about, source and device"
)


@dataclass(frozen=True)
class Hardware:
    """The equal devices that a latency file's models stand on.

    draft, target  how many devices each has; a draft has 0 where its device is no equal
                   of the target's and could not help it
    reading        seconds in which one device reads all weights of the target
    layers         of the target
    join           seconds that putting together the parts of a layer takes
    alone          the latency file of the target on one device; None: it is this one
    """

    draft: int
    target: int
    reading: float
    layers: int
    join: float
    alone: str | None = None

    def devices(self, drafts: bool, servers: int = 1) -> int:
        """How many devices a run reserves: of all its targets, and of a draft model."""
        return servers * self.target + (self.draft if drafts else 0)

    def plain_pass(self, alone: float, bound: Bound = "bandwidth") -> PlainPass:
        """A pass of the target that takes ``alone`` seconds as the latency file has it.

        Several devices that hold a model one after the other take as long as one.
        """
        return plain_pass(bound, alone, self.reading, self.layers, self.join)


@dataclass(frozen=True)
class ForwardPass:
    """What a pass of a model on one device takes, by the device's data sheet.

    tokens      that it reads
    bytes_read  from memory: every weight once
    operations  of its arithmetic
    reading     seconds to read the weights, at the data sheet's bandwidth
    computing   seconds of the arithmetic, at the data sheet's rate

    Both happen at the same time. Attention and the KV cache are left out: with a short
    text they are small.
    """

    tokens: int
    bytes_read: float
    operations: float
    reading: float
    computing: float


def forward_pass(tokens: int, weights: float, device: str) -> ForwardPass:
    """A pass over some tokens on the device of ``data/hardware/<device>.toml``."""
    rates = _read(device)["data_sheet"]
    bytes_read = weights * BYTES_PER_WEIGHT
    operations = weights * OPERATIONS_PER_WEIGHT * tokens
    return ForwardPass(
        tokens=tokens,
        bytes_read=bytes_read,
        operations=operations,
        reading=bytes_read / rates["bandwidth"],
        computing=operations / rates["arithmetic"],
    )


@checked
def load_hardware(latency: str) -> Hardware | None:
    """The devices behind ``data/latency/<latency>.toml``; None where nobody says.

    Raises SpeclibError naming the file for one that cannot be read.
    """
    folder, _, name = latency.partition("/")
    path = toml_path(DATA / "hardware", folder)
    if not path.is_file():
        return None
    parts = _read(folder)
    if name not in parts:
        return None
    device = _read(parts["device"])
    try:
        return _hardware(parts[name], device)
    except (KeyError, TypeError, ValueError) as error:
        raise BadValue(f"{path}, [{name}]: {FORMAT}: {error!r}") from error


def _read(name: str) -> dict[str, Any]:
    folder = DATA / "hardware"
    return read_toml(folder, name, f"no hardware file {name!r} under {folder}")


def _hardware(part: dict[str, Any], device: dict[str, Any]) -> Hardware:
    """One entry of a file, checked."""
    unknown = part.keys() - {"draft", "target", "weights", "layers", "alone"}
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    draft, target, layers = part["draft"], part["target"], part["layers"]
    weights, bandwidth = float(part["weights"]), float(device["bandwidth"])
    if draft < 0 or target < 1 or layers < 1 or weights <= 0 or bandwidth <= 0:
        raise ValueError(f"{part} on a device that reads {bandwidth:g} bytes a second")
    return Hardware(
        draft=draft,
        target=target,
        reading=weights * BYTES_PER_WEIGHT / bandwidth,
        layers=layers,
        join=float(device["join"]),
        alone=part.get("alone"),
    )
