"""Latency files: seconds of a forward pass, by model and by tokens fed.

A file under ``data/latency`` holds, for ``draft`` and ``target``, ``forward = [[tokens, seconds],
...]``, linear between entries and constant beyond them, and optionally ``prefill``, the seconds of
the pass that starts a text, whatever its length. A paper that prints one speed gives a constant
and prefill 0. ``fuzzy``, if it is there, is of the draft's passes that give one input to several
layers: those of ``lp_size`` of its ``layers``. Knows no clock and no model.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from math import inf
from typing import Annotated, Any

from speclib.arguments import Number, Seconds, checked, shown
from speclib.errors import BadValue
from speclib.operations.operation import Operation, Pass
from speclib.paths import DATA
from speclib.theory.layer_groups import group_layers

from .toml_files import read_toml, toml_path

MANY = 1 << 20  # tokens; no pass is fed more


@dataclass(frozen=True)
class Curve:
    """Seconds by tokens fed; ``prefill`` (seconds, or None) is the first pass of a text."""

    forward: tuple[tuple[int, float], ...]
    prefill: float | None = None

    def __call__(self, fed: float, kept: int = 1) -> float:
        if kept == 0 and self.prefill is not None:
            return self.prefill
        points = self.forward
        if len(points) == 1 or fed <= points[0][0]:
            return points[0][1]
        if fed >= points[-1][0]:
            return points[-1][1]
        right = bisect_left(points, (fed,))
        (x0, y0), (x1, y1) = points[right - 1], points[right]
        return y0 + (y1 - y0) * (fed - x0) / (x1 - x0)

    def lengthened(self, share: float) -> Curve:
        """Longer by ``share`` of one pass for every token fed beyond the first, up to ``MANY``."""
        points = {**dict(self.forward), MANY: self(MANY)}
        return replace(
            self,
            forward=tuple(
                (n, seconds + share * self(1) * (n - 1))
                for n, seconds in points.items()
            ),
        )


@dataclass(frozen=True)
class Fuzzy:
    """Layer-parallel passes of a draft of ``layers`` layers, as measured in groups of up to
    ``lp_size``. A group of any size saves the same for each layer that joins it: assumed, as one
    measured size says no more. Source: EasySpec, equation 5, with T_add in what a layer saves."""

    curve: Curve
    layers: int
    lp_size: int

    def seconds(self, exact: Curve, lp: int, fed: float) -> float:
        """Of a pass in groups of up to ``lp``, where an exact one takes as ``exact`` says."""
        share = self._joined(lp) / self._joined(self.lp_size)
        return exact(fed) - share * (exact(fed) - self.curve(fed))

    def _joined(self, lp: int) -> int:
        return self.layers - len(group_layers(self.layers, lp))


@dataclass(frozen=True)
class Latency:
    """The curves of a pair. ``seconds(device, op, kept, fed)`` is one operation's duration.
    Without ``fuzzy`` a fuzzy pass takes as long as an exact one."""

    draft: Curve
    target: Curve
    name: str = ""
    fuzzy: Fuzzy | None = None

    @classmethod
    @checked
    def ratio(
        cls, c: Annotated[float, Number(above=0)], target: Seconds = 1.0
    ) -> Latency:
        """The same seconds for every pass, prefill too; t_target / t_draft = c."""
        draft_seconds = target / c
        return cls(
            draft=Curve(((1, draft_seconds),)),
            target=Curve(((1, target),)),
            name=f"c={c:g}",
        )

    def lengthened(self, share: float) -> Latency:
        """The same, each pass longer by ``share`` of one for every token fed beyond the first."""
        fuzzy = self.fuzzy and replace(
            self.fuzzy, curve=self.fuzzy.curve.lengthened(share)
        )
        return (
            replace(
                self,
                draft=self.draft.lengthened(share),
                fuzzy=fuzzy,
                target=self.target.lengthened(share),
            )
            if share
            else self
        )

    @property
    def c(self) -> float:
        return self.target(1) / self.draft(1)

    def seconds(self, device: str, op: Operation, kept: int, fed: int) -> float:
        """Seconds of an operation that kept and fed so many tokens: those of its passes."""
        exact = self.draft if device.startswith("draft") else self.target
        total = 0.0
        for forward in op.passes(kept, fed):
            total += forward.count * self._pass_seconds(exact, forward)
        return total

    def _pass_seconds(self, exact: Curve, forward: Pass) -> float:
        """Of one pass of a model whose exact passes take as ``exact`` says."""
        if self.fuzzy and forward.lp:
            return self.fuzzy.seconds(exact, forward.lp, forward.fed)
        return exact(forward.fed, forward.kept)


# -- files -----------------------------------------------------------------------------
FORMAT = (
    "[draft] and [target] need forward = [[tokens, seconds], ...], tokens rising, "
    "seconds above 0, and may have prefill; [fuzzy] needs forward, layers and an "
    "lp_size that joins some"
)


@checked
def load_latency(name: str) -> Latency:
    """Reads ``data/latency/<name>.toml``."""
    folder = DATA / "latency"
    parts = read_toml(folder, name, f"no latency file {shown(name)}")
    try:
        return Latency(
            draft=_read_curve(parts["draft"]),
            target=_read_curve(parts["target"]),
            name=name,
            fuzzy=_read_fuzzy(**parts["fuzzy"]) if "fuzzy" in parts else None,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadValue(f"{toml_path(folder, name)}: {FORMAT}: {error!r}") from error


def _read_fuzzy(layers: int, lp_size: int, **curve: Any) -> Fuzzy:
    """The part [fuzzy] of a latency file."""
    if len(group_layers(layers, lp_size)) == layers:
        raise ValueError(f"lp_size {lp_size} joins none of {layers} layers")
    return Fuzzy(_read_curve(curve), layers, lp_size)


def _read_curve(part: dict[str, Any]) -> Curve:
    """A part of a latency file, checked; ``model`` and ``printed`` are for readers."""
    unknown = part.keys() - {"forward", "prefill", "printed", "model"}
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)}")

    points = tuple((int(tokens), float(seconds)) for tokens, seconds in part["forward"])
    counts = [tokens for tokens, _ in points]
    if not points or counts != sorted(set(counts)):
        raise ValueError(f"forward {points}")

    prefill = part.get("prefill")
    seconds_are_positive = all(0 < seconds < inf for _, seconds in points)
    prefill_is_possible = prefill is None or 0 <= prefill < inf
    if not seconds_are_positive or not prefill_is_possible:  # NaN is neither
        raise ValueError(f"seconds in {points}, prefill {prefill}")
    return Curve(points, prefill)
