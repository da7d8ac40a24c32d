"""Acceptance place by place: how often the 1st, 2nd, ... draft of a window passes.

    window    d1  d2  d3  d4
    tested    x   x   x         d4 was not tested, since d3 failed
    accepted  x   x

Further down a window a draft is right less often, since it goes on from drafts. One
number for all places hides that. Knows no method and no clock.

Two engines print it, and count alike: vLLM (vllm/v1/spec_decode/metrics.py at commit
016a858) per place over all windows, with a mean length that has the bonus token; and
llama.cpp's server all accepted over all drafted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import nan
from operator import mul
from typing import Any

from speclib.arguments import shown
from speclib.core.settings import require_counts
from speclib.errors import BadValue
from speclib.operations.fork import DraftedBranches

from .events import Trace

ACCEPTED, REJECTED = "accepted", "rejected"
# A line's rates, up to what follows them or the end of the line: one that is cut short
# has neither.
OF_VLLM = re.compile(r"Per-position acceptance rate: ([\d., ]+)(?=, Avg|$)", re.M)
OF_LLAMACPP = re.compile(
    r"draft acceptance(?: rate)?\s*=\s*[\d.]+\s*"
    r"\(\s*(\d+) accepted\s*/\s*(\d+) generated"
)


@dataclass(frozen=True)
class Acceptance:
    """Counts of windows, by place; the first place is that of a window's first draft.

    windows   how many had a draft tested
    drafted   how many drafts there were in these
    tested    [places], how often a draft of that place was tested
    accepted  [places], how often it passed
    """

    windows: int
    drafted: int
    tested: tuple[int, ...]
    accepted: tuple[int, ...]

    @property
    def conditional(self) -> tuple[float, ...]:
        """The chance of each place, where all before it passed; nan where none did."""
        return tuple(
            accepted / tested if tested else nan
            for accepted, tested in zip(self.accepted, self.tested, strict=True)
        )

    @property
    def by_position(self) -> tuple[float, ...]:
        """vLLM's per-position rates: of all windows, those that got so far."""
        return tuple(accepted / self.windows for accepted in self.accepted)

    @property
    def mean_length(self) -> float:
        """vLLM's mean acceptance length: accepted drafts of a window, and a token."""
        return 1 + sum(self.by_position)

    @property
    def rate(self) -> float:
        """llama.cpp's draft acceptance rate: accepted drafts over all drafts."""
        return sum(self.accepted) / self.drafted if self.drafted else nan


def acceptance(runs: Any) -> Acceptance:
    """How the windows of one run, or of several, fared place by place.

    runs: a trace or a result, or several of them.

    A window is what one drafting operation wrote in a line. Of SSD's branches it is the
    one that was followed. Of trees and of several sequences there is no such line, so
    they are left out. Raises BadValue where no window was tested, and for what is no
    run.
    """
    windows, drafted = 0, 0
    tested: list[int] = []
    accepted: list[int] = []
    for trace in _traces_of(runs):
        for outcomes in _tested_windows(trace):
            windows += 1
            drafted += len(outcomes)
            for place, outcome in enumerate(outcomes):
                if len(tested) <= place:
                    tested.append(0)
                    accepted.append(0)
                tested[place] += outcome in (ACCEPTED, REJECTED)
                accepted[place] += outcome == ACCEPTED
    if not windows:
        raise BadValue(
            "no draft of a line was tested in these runs: give runs of speculative "
            "decoding, PEARL, DSI or SSD"
        )
    return Acceptance(windows, drafted, tuple(tested), tuple(accepted))


def _tested_windows(trace: Trace) -> Iterator[tuple[str, ...]]:
    """What became of the drafts of each window of which any was tested."""
    for event in trace.operations:
        lines: list[tuple[str, ...]] = []
        if event.op == "propose":
            lines = [event.outcome]
        elif isinstance(event.payload, DraftedBranches):
            lines = event.payload.outcomes(event)
        for outcomes in lines:
            if {ACCEPTED, REJECTED} & {*outcomes}:
                yield outcomes


def _traces_of(runs: Any) -> list[Trace]:
    """The traces of what may be traces or results, one or several."""
    one = getattr(runs, "trace", runs)
    if isinstance(one, Trace):
        return [one]
    if isinstance(runs, str | bytes) or not isinstance(runs, Iterable):
        raise BadValue(f"runs is {shown(runs)}: give a result or a trace, or several")
    traces: list[Trace] = []
    for run in runs:
        traces += _traces_of(run)
    return traces


def acceptance_of_log(text: str, gamma: int | None = None) -> tuple[float, ...]:
    """The conditional acceptance rates that an engine's log tells, for ``simulate``.

    text: what vLLM or llama.cpp's server has logged. Of vLLM's lines with rates by
    position the last one counts. Of llama.cpp's all do: it counts accepted drafts over
    all drafts, those behind a failed one among them. So a draft's own rate is higher
    than that says, and follows with the number of drafts in a window, ``gamma``.

    Raises BadValue where there is no such line, where its rates are none, and for a log
    of llama.cpp without ``gamma``.
    """
    if not isinstance(text, str):
        raise BadValue(f"text is {shown(text)}: give what the log says, as a text")
    of_vllm = OF_VLLM.findall(text)
    if of_vllm:
        return conditional(_rates_in(of_vllm[-1]))

    counts = [(int(right), int(all_of)) for right, all_of in OF_LLAMACPP.findall(text)]
    accepted = sum(right for right, _ in counts)
    drafted = sum(all_of for _, all_of in counts)
    if not drafted:
        raise BadValue(
            "no line of acceptance in this log: vLLM writes 'Per-position acceptance "
            "rate: 0.800, 0.600, Avg ...', llama.cpp's server 'draft acceptance rate = "
            "0.70000 (  70 accepted /  100 generated)'"
        )
    if accepted > drafted:
        raise BadValue(f"the log has {accepted} accepted drafts of {drafted}")
    if gamma is None:
        raise BadValue(
            f"llama.cpp counts {accepted} accepted of all {drafted} drafts, tested or "
            "not: give gamma, the drafts of a window (its --draft-max)"
        )
    return (_rate_behind(accepted / drafted, gamma),)


def _rates_in(line: str) -> list[float]:
    """Rates by position; raises BadValue for what cannot be some."""
    try:
        rates = [float(rate) for rate in line.split(",")]
    except ValueError:
        rates = []
    falls = all(before >= after for before, after in pairwise([1.0, *rates, 0.0]))
    if not rates or not falls:
        raise BadValue(
            f"the log's rates by position are {line.strip()!r}: each should be at most "
            "the one before it, from 1 down to 0, since a draft is accepted only "
            "behind accepted ones"
        )
    return rates


def _rate_behind(share: float, gamma: int) -> float:
    """The rate of a draft where so large a ``share`` of windows' drafts is accepted.

    share = (a + a^2 + ... + a^gamma) / gamma, solved for a by halving.
    """
    require_counts(gamma=gamma)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = sum(middle**place for place in range(1, gamma + 1)) / gamma
        low, high = (middle, high) if mean < share else (low, middle)
    return high


def conditional(by_position: Sequence[float]) -> tuple[float, ...]:
    """Of rates over all windows those over the windows that got so far."""
    rates = []
    before = 1.0
    for rate in by_position:
        rates.append(rate / before if before else 0.0)
        before = rate
    return tuple(rates)


def expected_length(rates: Sequence[float]) -> float:
    """Tokens of a window with these conditional rates, with the one that follows it."""
    chances: list[float] = list(accumulate(rates, mul))
    return 1 + sum(chances)
