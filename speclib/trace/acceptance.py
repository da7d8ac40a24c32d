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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import nan
from operator import mul

from speclib.errors import BadValue

from .events import Trace

ACCEPTED, REJECTED = "accepted", "rejected"
OF_VLLM = re.compile(r"Per-position acceptance rate: ([\d., ]+\d)")
OF_LLAMACPP = re.compile(r"draft acceptance(?: rate)?\s*=\s*([\d.]+)")


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


def acceptance(traces: Trace | Iterable[Trace]) -> Acceptance:
    """How the windows of one run, or of several, fared place by place.

    A window is what one drafting operation wrote in a line. Of trees, of several
    sequences and of SSD's forks there is no such line, so they are left out. Raises
    BadValue where no window was tested.
    """
    windows, drafted = 0, 0
    tested: list[int] = []
    accepted: list[int] = []
    for trace in [traces] if isinstance(traces, Trace) else traces:
        for event in trace.operations:
            if event.op != "propose" or not {ACCEPTED, REJECTED} & {*event.outcome}:
                continue
            windows += 1
            drafted += len(event.outcome)
            for place, outcome in enumerate(event.outcome):
                if len(tested) <= place:
                    tested.append(0)
                    accepted.append(0)
                tested[place] += outcome in (ACCEPTED, REJECTED)
                accepted[place] += outcome == ACCEPTED
    if not windows:
        raise BadValue(
            "no draft of a line was tested in these runs: give runs of speculative "
            "decoding, PEARL or DSI"
        )
    return Acceptance(windows, drafted, tuple(tested), tuple(accepted))


def acceptance_of_log(text: str) -> tuple[float, ...]:
    """The conditional acceptance rates that an engine's log tells, for ``simulate``.

    text: what vLLM or llama.cpp's server has logged. Of vLLM's lines with rates by
    position the last one counts; llama.cpp prints one rate for all places.

    Raises BadValue where there is no such line.
    """
    of_vllm = OF_VLLM.findall(text)
    if of_vllm:
        rates = [float(rate) for rate in of_vllm[-1].split(",")]
        return conditional(rates)
    of_llamacpp = OF_LLAMACPP.findall(text)
    if of_llamacpp:
        return (float(of_llamacpp[-1]),)
    raise BadValue(
        "no line of acceptance in this log: vLLM writes 'Per-position acceptance rate: "
        "0.8, 0.6', llama.cpp's server 'draft acceptance rate = 0.7'"
    )


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
