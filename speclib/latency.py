"""Latency files: seconds of a forward pass, by model and by tokens fed.

A file under ``data/latency`` holds, for ``draft`` and ``target``, ``forward = [[tokens, seconds],
...]``, linear between entries and constant beyond them, and optionally ``prefill``, the seconds of
the pass that starts a text, whatever its length. A paper that prints one speed gives a constant
and prefill 0. Knows no clock and no model.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_left
from dataclasses import dataclass, replace

from .errors import SpeclibError
from .paths import DATA

MANY = 1 << 20              # tokens; no pass is fed more


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
        return replace(self, forward=tuple((n, seconds + share * self(1) * (n - 1))
                                           for n, seconds in points.items()))


@dataclass(frozen=True)
class Latency:
    """The curves of a pair. ``seconds(device, op, kept, fed)`` is one operation's duration."""

    draft: Curve
    target: Curve
    name: str = ""

    @classmethod
    def ratio(cls, c: float, target: float = 1.0) -> Latency:
        """The same seconds for every pass, prefill too; t_target / t_draft = c. For what-ifs."""
        if not c > 0:
            raise SpeclibError(f"c is {c}: the cost ratio t_target / t_draft must be above 0")
        return cls(Curve(((1, target / c),)), Curve(((1, target),)), f"c={c:g}")

    def lengthened(self, share: float) -> Latency:
        """The same, each pass longer by ``share`` of one for every token fed beyond the first."""
        return replace(self, draft=self.draft.lengthened(share),
                       target=self.target.lengthened(share)) if share else self

    @property
    def c(self) -> float:
        return self.target(1) / self.draft(1)

    def seconds(self, device: str, op, kept: int, fed: int) -> float:
        curve = self.draft if device.startswith("draft") else self.target
        later = kept + fed - len(op.text)       # fed by passes after the first, of one token each
        if later < 0:
            return 0.0
        passes = op.n - 1 if op.name == "grow" else later
        width = later / passes if passes > 0 else 0         # of a tree's levels, taken as alike
        return curve(fed - later, kept) + max(0, passes) * curve(width)


def load_latency(name: str) -> Latency:
    """Reads ``data/latency/<name>.toml``."""
    path = DATA / "latency" / f"{name}.toml"
    if not path.exists():
        known = sorted(str(p.relative_to(DATA / "latency").with_suffix(""))
                       for p in (DATA / "latency").rglob("*.toml"))
        raise SpeclibError(f"no latency file {name!r}; known: {', '.join(known)}")
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
        return Latency(*(_curve(raw[part]) for part in ("draft", "target")), name)
    except (KeyError, TypeError, ValueError) as error:      # broken TOML is a ValueError
        raise SpeclibError(f"{path}: [draft] and [target] need forward = [[tokens, seconds], ...], "
                           f"tokens rising, seconds above 0, and may have prefill: {error!r}"
                           ) from error


def _curve(raw: dict) -> Curve:
    """A part of a latency file, checked; ``model`` and ``printed`` are for readers."""
    unknown = raw.keys() - {"forward", "prefill", "printed", "model"}
    points = tuple((int(n), float(s)) for n, s in raw["forward"])
    prefill = raw.get("prefill")
    counts = [n for n, _ in points]
    if unknown or not points or counts != sorted(set(counts)):
        raise ValueError(f"unknown keys {sorted(unknown)}" if unknown else f"forward {points}")
    if min(s for _, s in points) <= 0 or (prefill is not None and prefill < 0):
        raise ValueError(f"seconds in {points}, prefill {prefill}")
    return Curve(points, prefill)
