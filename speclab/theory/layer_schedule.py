"""One draft pass on several devices, part by part, as in EasySpec's Algorithm 2.

A layer is an attention and an MLP. The layers of a group share one input, so their
attentions are divided among the devices: device i takes the group's layers i,
i + devices, ... Then the devices exchange the outputs, and each computes all of the
group's MLPs in order. If a group is a single layer, each device computes all of it.
Parts that every device computes are called copies: they save no time.

Two devices, with layer 0 alone and layers 1, 2 and 3 in a group (A is an attention, M
an MLP)::

    device 0   A0 M0 | A1 A3 gather M1 M2 M3 | ...
    device 1   A0 M0 | A2    gather M1 M2 M3 | ...

This module uses no network and no clock: how long each part takes is an argument.
"""

from __future__ import annotations

from typing import NamedTuple

from speclib.data.layer_groups import group_layers
from speclib.errors import BadValue


class Part(NamedTuple):
    """A part of the pass, on ``device`` from ``start`` for ``seconds``.

    ``kind`` is attention, mlp or gather. The ``layer`` of a gather is the first layer
    in its group. A ``copy`` repeats a part that device 0 computes.
    """

    kind: str
    layer: int
    device: int
    start: float
    seconds: float
    copy: bool = False

    @property
    def end(self) -> float:
        """When the part ends."""
        return self.start + self.seconds


def schedule(
    layers: int,
    lp: int,
    devices: int,
    attention: float,
    mlp: float,
    gather: float = 0.0,
) -> tuple[Part, ...]:
    """The parts of a pass over ``layers`` layers in groups of up to ``lp``, in order.

    In an exact pass, ``lp`` is 1. ``attention``, ``mlp`` and ``gather`` are the seconds
    that one layer's attention, one layer's MLP and the exchange of a group's attention
    outputs take. Embedding and head are left out. Source: EasySpec, Algorithm 2 and
    equation 5, whose T_add is ``gather``. Raises BadValue for a count below 1 or a time
    below 0.
    """
    _check_counts(layers=layers, lp=lp, devices=devices)
    _check_seconds(attention=attention, mlp=mlp, gather=gather)

    parts = []
    now = 0.0
    for group in group_layers(layers, lp):
        alone = len(group) == 1

        # The group's attentions are divided among the devices.
        for device in range(devices):
            own_layers = group if alone else group[device::devices]
            for i, layer in enumerate(own_layers):
                start = now + i * attention
                is_copy = alone and device > 0
                parts.append(
                    Part("attention", layer, device, start, attention, is_copy)
                )
        most_attentions = -(-len(group) // devices)  # rounded up
        now += most_attentions * attention

        # Every device receives the others' outputs.
        if devices > 1 and not alone:
            for device in range(devices):
                parts.append(Part("gather", group[0], device, now, gather))
            now += gather

        # All MLPs in order, on every device.
        for layer in group:
            for device in range(devices):
                parts.append(Part("mlp", layer, device, now, mlp, device > 0))
            now += mlp
    return tuple(parts)


def _check_counts(**counts: int) -> None:
    for name, value in counts.items():
        if value < 1:
            raise BadValue(f"{name} is {value}: give at least 1")


def _check_seconds(**seconds: float) -> None:
    for name, value in seconds.items():
        if value < 0:
            raise BadValue(f"{name} is {value}: give seconds, at least 0")


def group_labels(layers: int, lp: int) -> tuple[str, ...]:
    """The groups in the notation of EasySpec's Table 6: 0, 1-3, 4-7 and so on."""
    labels = []
    for group in group_layers(layers, lp):
        first, last = group[0], group[-1]
        labels.append(f"{first}" if first == last else f"{first}-{last}")
    return tuple(labels)


def total_seconds(parts: tuple[Part, ...]) -> float:
    """How long the pass takes until its last part ends, in seconds."""
    return max(part.end for part in parts)
