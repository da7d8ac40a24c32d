"""One draft pass over several devices, part by part, as EasySpec's Algorithm 2 has it.

A layer is an attention and an MLP. The layers of a group share one input, so their attentions are
shared out: device i takes the group's layers i, i + devices, ... The devices then hand each other
what came out, and each of them computes all of the group's MLPs, in order; a layer that stands
alone each computes, too. Those parts are copies: only the first device's shortens anything.

Knows no network and no clock: seconds of the parts are arguments.
"""

from __future__ import annotations

from typing import NamedTuple

from speclib.errors import SpeclibError

from .layer_groups import grouped


class Part(NamedTuple):
    """What ``device`` does from ``start`` on for ``seconds``. ``kind``: attention, mlp, or gather,
    whose ``layer`` is the group's first. ``copy``: another device does the very same."""

    kind: str
    layer: int
    device: int
    start: float
    seconds: float
    copy: bool = False

    @property
    def end(self) -> float:
        return self.start + self.seconds


def schedule(
    layers: int,
    lp: int,
    devices: int,
    attention: float,
    mlp: float,
    gather: float = 0.0,
) -> tuple[Part, ...]:
    """The parts of a pass of ``layers`` layers in groups of up to ``lp``, in the order of their
    starts; an exact one has ``lp`` 1. ``attention``, ``mlp``: seconds of one layer's; ``gather``:
    of handing over a group's attention outputs. Embedding and head are left out.

    Source: EasySpec, Algorithm 2 and equation 5, whose T_add is ``gather``. Raises SpeclibError
    for a count below 1 or seconds below 0.
    """
    for name, value in (("layers", layers), ("lp", lp), ("devices", devices)):
        if value < 1:
            raise SpeclibError(f"{name} is {value}: give at least 1")
    for name, value in (("attention", attention), ("mlp", mlp), ("gather", gather)):
        if value < 0:
            raise SpeclibError(f"{name} is {value}: give seconds, at least 0")
    found, now, everyone = [], 0.0, range(devices)
    for group in grouped(layers, lp):
        alone = len(group) == 1
        for device in everyone:
            mine = group if alone else group[device::devices]
            found += [
                Part(
                    "attention",
                    layer,
                    device,
                    now + i * attention,
                    attention,
                    alone and device > 0,
                )
                for i, layer in enumerate(mine)
            ]
        now += -(-len(group) // devices) * attention
        if devices > 1 and not alone:
            found += [
                Part("gather", group[0], device, now, gather) for device in everyone
            ]
            now += gather
        for layer in group:
            found += [
                Part("mlp", layer, device, now, mlp, device > 0) for device in everyone
            ]
            now += mlp
    return tuple(found)


def spans(layers: int, lp: int) -> tuple[str, ...]:
    """The groups as EasySpec's Table 6 writes them: 0, 1-3, 4-7 and so on."""
    return tuple(
        f"{g[0]}-{g[-1]}" if len(g) > 1 else f"{g[0]}" for g in grouped(layers, lp)
    )


def lasts(parts: tuple[Part, ...]) -> float:
    """Seconds until the last part ends."""
    return max(part.end for part in parts)
