"""Latency files: seconds of a forward pass, by model and by tokens fed.

A file under ``data/latency`` holds, for ``draft`` and ``target``, ``forward = [[tokens, seconds],
...]``, linear between entries and constant beyond them, and optionally ``prefill``, the seconds of
the pass that starts a text, whatever its length. A paper that prints one speed gives a constant
and prefill 0. ``fuzzy``, if it is there, is of the draft's passes that give one input to several
layers: those of ``lp_size`` of its ``layers``. Knows no clock and no model.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_left
from dataclasses import dataclass, replace

from speclib.errors import SpeclibError
from speclib.paths import DATA
from speclib.theory.layer_groups import group_layers

MANY = 1 << 20  # tokens; no pass is fed more


@dataclass(frozen=True)
class Curve:
    """Seconds by tokens fed; ``prefill`` (seconds, or None) is the first pass of a text."""

    forward: tuple[tuple[int, float], ...]
    prefill: float | None = None

    def __call__(self, fed: int, kept: int = 1) -> float:
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

    def seconds(self, exact: Curve, lp: int, fed: int) -> float:
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
    def ratio(cls, c: float, target: float = 1.0) -> Latency:
        """The same seconds for every pass, prefill too; t_target / t_draft = c. For what-ifs."""
        if not c > 0:
            raise SpeclibError(
                f"c is {c}: the cost ratio t_target / t_draft must be above 0"
            )
        return cls(Curve(((1, target / c),)), Curve(((1, target),)), f"c={c:g}")

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

    def seconds(self, device: str, op, kept: int, fed: int) -> float:
        curve = self.draft if device.startswith("draft") else self.target
        later = (
            kept + fed - len(op.text)
        )  # fed by passes after the first, of one token each
        if later < 0:
            return 0.0
        if op.name == "grow":
            return self._grown(curve, op, kept, fed - later, later)
        return curve(fed - later, kept) + later * curve(1)

    def _grown(self, curve: Curve, op, kept: int, first: int, later: int) -> float:
        """Of a Grow: a pass that is fed ``first`` tokens, then one for each further level, which
        are taken as alike and fed ``later`` in all. Nothing cached, the first is exact."""

        def fuzzy(fed):
            return (
                self.fuzzy.seconds(curve, op.lp, fed)
                if self.fuzzy and op.lp
                else curve(fed)
            )

        levels, exact = max(0, op.n - 1), op.calibrate or not kept
        start = curve(first, kept) if exact else fuzzy(first)
        return start + levels * fuzzy(later / max(1, levels))


def load_latency(name: str) -> Latency:
    """Reads ``data/latency/<name>.toml``."""
    path = DATA / "latency" / f"{name}.toml"
    if not path.exists():
        known = sorted(
            str(p.relative_to(DATA / "latency").with_suffix(""))
            for p in (DATA / "latency").rglob("*.toml")
        )
        raise SpeclibError(f"no latency file {name!r}; known: {', '.join(known)}")
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
        fuzzy = _fuzzy(**raw["fuzzy"]) if "fuzzy" in raw else None
        return Latency(
            *(_curve(raw[part]) for part in ("draft", "target")), name, fuzzy
        )
    except (KeyError, TypeError, ValueError) as error:  # broken TOML is a ValueError
        raise SpeclibError(
            f"{path}: [draft] and [target] need forward = [[tokens, seconds], ...], "
            "tokens rising, seconds above 0, and may have prefill; [fuzzy] needs "
            f"forward, layers and an lp_size that joins some: {error!r}"
        ) from error


def _fuzzy(layers: int, lp_size: int, **raw) -> Fuzzy:
    if len(group_layers(layers, lp_size)) == layers:
        raise ValueError(f"lp_size {lp_size} joins none of {layers} layers")
    return Fuzzy(_curve(raw), layers, lp_size)


def _curve(raw: dict) -> Curve:
    """A part of a latency file, checked; ``model`` and ``printed`` are for readers."""
    unknown = raw.keys() - {"forward", "prefill", "printed", "model"}
    points = tuple((int(n), float(s)) for n, s in raw["forward"])
    prefill = raw.get("prefill")
    counts = [n for n, _ in points]
    if unknown or not points or counts != sorted(set(counts)):
        raise ValueError(
            f"unknown keys {sorted(unknown)}" if unknown else f"forward {points}"
        )
    if min(s for _, s in points) <= 0 or (prefill is not None and prefill < 0):
        raise ValueError(f"seconds in {points}, prefill {prefill}")
    return Curve(points, prefill)
