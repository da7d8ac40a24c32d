"""The devices behind a latency file's models, and what else they could do.

A file ``data/hardware/<folder>.toml`` belongs to the latency files of one folder. It
records the kind of ``device``, and for each latency file the number of devices for
draft and target, and how many weights and layers the target has. Each kind of device
has its own file, with its memory bandwidth and the time to join a layer.

This module uses no clock and no model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from speclab.theory.plain_decoding import Bound, PlainPass, plain_pass
from speclib.arguments import checked
from speclib.data.toml_files import read_toml, toml_path
from speclib.errors import BadValue
from speclib.paths import DATA

BYTES_PER_WEIGHT = 2  # bfloat16 or float16, as in all papers
OPERATIONS_PER_WEIGHT = 2  # for each token: a multiplication and an addition

FORMAT = (
    "give draft (0 or more devices), target (1 or more), weights and layers for each "
    "latency file, next to about, source and device"
)


@dataclass(frozen=True)
class Hardware:
    """The equal devices behind a latency file's models.

    draft, target  the number of devices for each; 0 for a draft on another kind of
                   device, which could not help the target
    reading        seconds for one device to read all of the target's weights
    layers         the target's layers
    join           seconds to join the parts of a layer
    alone          the latency file for the target on one device; None: this one
    """

    draft: int
    target: int
    reading: float
    layers: int
    join: float
    alone: str | None = None

    def devices(self, drafts: bool, servers: int = 1) -> int:
        """The number of devices that a run reserves for its servers and its draft."""
        return servers * self.target + (self.draft if drafts else 0)

    def plain_pass(self, alone: float, bound: Bound = "bandwidth") -> PlainPass:
        """A target pass that takes ``alone`` seconds according to the latency file.

        Several devices with consecutive layers of a model take as long as one.
        """
        return plain_pass(bound, alone, self.reading, self.layers, self.join)


@dataclass(frozen=True)
class ForwardPass:
    """The cost of a forward pass on one device, according to the device's data sheet.

    tokens      the pass's input tokens
    bytes_read  bytes read from memory: every weight once
    operations  arithmetic operations
    reading     seconds to read the weights, at the data sheet's bandwidth
    computing   seconds of arithmetic, at the data sheet's rate

    Reading and computing overlap. We neglect attention and the KV cache, which cost
    little for a short text.
    """

    tokens: int
    bytes_read: float
    operations: float
    reading: float
    computing: float


def forward_pass(tokens: int, weights: float, device: str) -> ForwardPass:
    """The pass over ``tokens`` on the device in ``data/hardware/<device>.toml``."""
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
    """The devices behind ``data/latency/<latency>.toml``; None if unknown.

    Raises SpeclibError, with the file's name, if a file cannot be read.
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
    """Checks and converts one entry of a file."""
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
