"""What a timeline says about one run, in words and figures: labels, texts, facts, summaries.

Reads a trace (and the text of its tokens). Knows no picture, method, clock or notebook. Every
ratio is ``trace.Stats``'s; shares of idle time are of the makespan.
"""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

from speclib.errors import SpeclibError
from speclib.trace.events import Event, Trace
from speclib.trace.metrics import Stats, stats
from speclib.views.numbers import Unit, duration, number, percent

NAMES = {
    "autoregressive": "AR",
    "speculative": "SD",
    "pearl": "PEARL",
    "tree": "Tree SD",
    "easyspec": "EasySpec",
    "duodecoding": "DuoDecoding",
    "dsi": "DSI",
    "assisted": "Assisted",
    "prompt_lookup": "Prompt lookup",
}


class Run(NamedTuple):
    """One trace to show; ``note`` follows the label, ``pieces`` maps token ids to their text,
    ``places`` devices to where they are."""

    label: str
    note: str
    trace: Trace
    pieces: dict[int, str]
    places: dict[str, str] = {}

    @property
    def seconds(self) -> float:
        return self.trace.makespan

    @property
    def stats(self) -> Stats:
        return stats(self.trace)

    @property
    def kind(self) -> str:
        """virtual, emulated or measured."""
        return self.trace.meta.get("clock") or next(
            (e.clock for e in self.trace.events), "virtual"
        )

    @property
    def lanes(self) -> list[str]:
        """Devices that did something, the draft's first."""
        used = {e.device for e in self.trace.operations}
        names = [name for name in self.trace.devices if name in used]
        return sorted(names, key=lambda name: not name.startswith("draft"))

    @property
    def start(self) -> int:
        """The prompt's tokens: what comes before the first row that a target gave."""
        return min(
            (
                e.kept + e.fed - e.candidates
                for e in self.trace.operations
                if e.is_scoring and e.tokens
            ),
            default=0,
        )

    def stale(self, device: str) -> set[int]:
        """Ids of ``device``'s finished passes on texts that were not to be: no row was of use.

        A cache holds what was kept of it and what an operation fed, so it is the text scored.
        """
        said = [t for e in self.trace.commits for t in e.tokens]
        cache, found, start = [], set(), self.start
        for event in sorted(self.trace.operations, key=lambda e: e.ts):
            if event.device == device:
                cache[event.kept :] = event.tokens
                before = cache[start : len(cache) - event.candidates]
                if event.is_scoring and event.tokens and before != said[: len(before)]:
                    found.add(event.id)
        return found

    @property
    def lost(self) -> dict[str, float]:
        """Device -> the second at which it was lost, if it was."""
        return {e.device: e.end for e in self.trace.operations if e.lost}

    def idle(self, device: str) -> float:
        """Share of the makespan in which ``device`` waits."""
        return (
            1 - self.trace.busy(device) / self.seconds if self.seconds else float("nan")
        )

    def piece(self, token: int) -> str:
        return self.pieces.get(token, f" {token}")

    def _accepted_places(self) -> set[int]:
        """The places in the text of every drafted token that was accepted."""
        places = set()
        for event in self.trace.operations:
            if event.is_drafting:
                outcomes = zip(event.depths, event.outcome, strict=True)
                for depth, outcome in outcomes:
                    if outcome == "accepted":
                        places.add(event.text_length + depth)
        return places

    def written(self) -> list[tuple[Event, tuple[tuple[str, str], ...]]]:
        """Every commit with its tokens as (who wrote it: "draft" or "target", text)."""
        position = self.start
        drafted = self._accepted_places()
        commits = []
        for event in self.trace.commits:
            places = range(position, position + len(event.tokens))
            commits.append(
                (
                    event,
                    tuple(
                        ("draft" if place in drafted else "target", self.piece(t))
                        for place, t in zip(places, event.tokens, strict=True)
                    ),
                )
            )
            position += len(event.tokens)
        return commits


def run_of(item, label: str | None = None, places: dict[str, str] | None = None) -> Run:
    """``item``: a Trace, or anything with a ``trace`` and, for the words, ``pieces``."""
    trace = getattr(item, "trace", item)
    if not isinstance(trace, Trace):
        raise SpeclibError(
            f"a timeline shows results or traces; {type(item).__name__} is neither: "
            "pass what speclib.decode returns"
        )
    meta = trace.meta
    method = str(meta.get("method") or "run")
    parts = [f"γ = {meta['gamma']}"] if meta.get("gamma") is not None else []
    parts += [f"without {meta['without']}"] if meta.get("without") else []
    parts += [f"N = {meta['lp']}"] if meta.get("lp") else []
    parts += [f"width {meta['width']}"] if meta.get("width") else []
    parts += ["not calibrated"] if meta.get("calibrate") is False else []
    parts += [f"lookahead {meta['lookahead']}"] if meta.get("lookahead") else []
    if method == "duodecoding":
        parts.append(f"k = {meta['k']}" if meta.get("k") else "dynamic k")
    if meta.get("servers"):
        parts.append(f"{meta['servers']} target" + "s" * (meta["servers"] > 1))
    return Run(
        label or NAMES.get(method, method),
        "" if label else ", ".join(parts),
        trace,
        getattr(item, "pieces", None) or {},
        places or {},
    )


def speedup(run: Run, runs: list[Run], base: str = "autoregressive") -> float:
    """Decode speed over that of the ``base`` method, if ``runs`` has it in the same kind."""
    base = next(
        (r for r in runs if r.trace.meta.get("method") == base and r.kind == run.kind),
        None,
    )
    return run.stats.decode_speed / base.stats.decode_speed if base else float("nan")


def untested(run: Run) -> float:
    """Share of the drafts that no target looked at."""
    s = run.stats
    return 1 - (s.accepted + s.rejected) / s.drafted if s.drafted else float("nan")


def waits(run: Run) -> str:
    """Idle shares, the target's servers averaged."""
    shares: dict[str, list[float]] = {}
    for name in run.lanes:
        shares.setdefault(name.split("-")[0], []).append(run.idle(name))
    return ", ".join(f"{name} {percent(sum(v) / len(v))}" for name, v in shares.items())


def facts(run: Run, runs: list[Run], unit: Unit) -> tuple[str, ...]:
    """The lines beside a group; the first is the headline."""
    s, ratio = run.stats, speedup(run, runs)
    times = f" · {ratio:.2f}× AR" if isfinite(ratio) and s.drafted else ""
    lines = [
        f"{number(s.decode_speed)} tok/s{times}",
        f"{s.tokens} tokens in {duration(run.seconds, unit)}",
    ]
    if s.drafted:
        wasted = s.drafted - s.accepted - s.rejected
        lines.append(f"accepted {percent(s.acceptance_rate)}, wasted {wasted}")
    return (*lines, f"waits: {waits(run)}" if run.lanes else "no operations")


def summary(runs: list[Run], unit: Unit) -> str:
    """Plain text, the same for the same traces: what a terminal, a test or a diff sees."""
    lines = [f"timeline of {len(runs)} run{'s' * (len(runs) != 1)}"]
    for run in runs:
        s = run.stats
        title = f"{run.label} ({run.note})" if run.note else run.label
        lines.append(
            f"{title}: makespan {duration(run.seconds, unit)} [{run.kind}], "
            f"{s.tokens} tokens, {number(s.decode_speed)} tok/s after the first commit"
        )
        lines += [
            f"  {name}: busy {percent(1 - run.idle(name))}, idle {percent(run.idle(name))}"
            for name in run.lanes
        ]
        if s.drafted:
            wasted = s.drafted - s.accepted - s.rejected
            lines.append(
                f"  drafted {s.drafted}: accepted {s.accepted}, rejected {s.rejected}, "
                f"wasted {wasted}"
            )
    return "\n".join(lines)
