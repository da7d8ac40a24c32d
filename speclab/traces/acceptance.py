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
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import nan
from operator import mul
from typing import Any, NamedTuple

from speclib.arguments import Whole, shown
from speclib.errors import BadValue
from speclib.operations.fork import DraftedBranches
from speclib.trace.events import Trace

ACCEPTED, REJECTED = "accepted", "rejected"
GAMMAS = Whole(least=1, most=1000)  # of an engine's windows
# A line's rates, up to what follows them: a line that is cut short lacks that.
OF_VLLM = re.compile(r"Per-position acceptance rate: ([\d., ]+), Avg")
DRAFTED = re.compile(r"Drafted: (\d+) tokens")
ACCEPTED_TOKENS = re.compile(r"Accepted: (\d+) tokens")
# Newer versions of llama.cpp say how many windows there were, too.
WINDOWS_OF_LLAMACPP = re.compile(r"#gen drafts\s*=\s*(\d+).*?#gen tokens\s*=\s*(\d+)")
SHORTER = 0.9  # of gamma: the last window of a text may be shorter, too
OF_LLAMACPP = re.compile(
    r"draft acceptance(?: rate)?\s*=\s*[\d.]+\s*"
    r"\(\s*(\d+) accepted\s*/\s*(\d+) generated"
)


@dataclass(frozen=True)
class Acceptance:
    """Counts of windows, by place; the first place is that of a window's first draft.

    Drafts behind the end of the text count nowhere: they neither passed nor failed.

    windows   how many had a draft tested
    settled   [places], how often a draft of that place passed, or failed with one
              before it or by itself
    tested    [places], how often it was tested
    accepted  [places], how often it passed
    written   tokens that the windows wrote: accepted drafts, and the token that
              replaces the first that failed, or follows them all
    """

    windows: int
    settled: tuple[int, ...]
    tested: tuple[int, ...]
    accepted: tuple[int, ...]
    written: int

    @property
    def drafted(self) -> int:
        """All drafts of the windows."""
        return sum(self.settled)

    @property
    def conditional(self) -> tuple[float, ...]:
        """The chance of each place, where all before it passed; nan where none did."""
        return tuple(
            accepted / tested if tested else nan
            for accepted, tested in zip(self.accepted, self.tested, strict=True)
        )

    @property
    def by_position(self) -> tuple[float, ...]:
        """vLLM's per-position rates: of all windows, those that got so far.

        Difference from vLLM: drafts behind the end of a text count there as failures.
        """
        return tuple(
            accepted / settled
            for accepted, settled in zip(self.accepted, self.settled, strict=True)
        )

    @property
    def mean_length(self) -> float:
        """vLLM's mean acceptance length: tokens that a window writes.

        Difference from vLLM: a token that was not written does not count: there is none
        behind the end of a text, and none where PEARL goes on from accepted drafts.
        """
        return self.written / self.windows

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
    windows, written = 0, 0
    settled: Counter[int] = Counter()
    tested: Counter[int] = Counter()
    accepted: Counter[int] = Counter()
    for trace in _traces_of(runs):
        found = _tested_windows(trace)
        after_each = _written_after(found, trace)
        windows += len(found)
        for window, own_tokens in zip(found, after_each, strict=True):
            passed = window.outcomes.count(ACCEPTED)
            written += passed + own_tokens
            settled.update(range(window.settled))
            tested.update(range(passed + window.has_failed))
            accepted.update(range(passed))
    if not windows:
        raise BadValue(
            "no draft of a line was tested in these runs: give runs of speculative "
            "decoding, PEARL, DSI or SSD"
        )
    places = range(len(settled))
    return Acceptance(
        windows,
        settled=tuple(settled[place] for place in places),
        tested=tuple(tested[place] for place in places),
        accepted=tuple(accepted[place] for place in places),
        written=written,
    )


class TestedWindow(NamedTuple):
    """What became of drafts in a line, the first of which stands at ``position``."""

    position: int
    outcomes: tuple[str, ...]

    @property
    def has_failed(self) -> bool:
        """Whether a draft failed; those behind it were not tested."""
        return REJECTED in self.outcomes

    @property
    def settled(self) -> int:
        """How many drafts passed or failed; all of them once one has failed."""
        if self.has_failed:
            return len(self.outcomes)
        return self.outcomes.count(ACCEPTED)

    @property
    def tested(self) -> range:
        """The positions at which a draft was tested."""
        count = self.outcomes.count(ACCEPTED) + self.has_failed
        return range(self.position, self.position + count)


def _tested_windows(trace: Trace) -> list[TestedWindow]:
    """The windows of which any draft was tested."""
    windows = []
    for event in trace.operations:
        lines: list[tuple[str, ...]] = []
        if event.op == "propose":
            lines = [event.outcome]
        elif isinstance(event.payload, DraftedBranches):
            lines = event.payload.outcomes(event)
        first = 0
        for outcomes in lines:
            if {ACCEPTED, REJECTED} & {*outcomes}:
                windows.append(TestedWindow(event.positions[first], outcomes))
            first += len(outcomes)
    return windows


def _written_after(windows: Sequence[TestedWindow], trace: Trace) -> list[int]:
    """Of each window, how many tokens the target wrote right after its accepted drafts.

    That is 1, but for a window whose drafts all passed, where the text ends with them
    or where another draft was tested next.
    """
    drafted_at = {position for window in windows for position in window.tested}
    end = trace.prompt_length + sum(len(event.tokens) for event in trace.commits)
    counts = []
    for window in windows:
        following = window.position + window.settled
        is_drafted = following in drafted_at
        is_beyond = following >= end
        has_own = window.has_failed or not (is_drafted or is_beyond)
        counts.append(1 if has_own else 0)
    return counts


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

    text: what vLLM or llama.cpp's server has logged. Each of vLLM's lines is about an
    interval; together they count by the windows that were drafted in them. llama.cpp
    counts accepted drafts over all drafts, those behind a failed one among them. So a
    draft's own rate is higher than that says, and follows with the number of drafts in
    a window, ``gamma``.

    With ``--draft-p-min`` above 0 llama.cpp ends a window where its draft is unsure.
    Then windows differ in length, and no rate follows from such a log.

    Raises BadValue where there is no such line, where its rates are none or cannot be
    weighed, and for a log of llama.cpp without ``gamma`` or with shorter windows.
    """
    if not isinstance(text, str):
        raise BadValue(f"text is {shown(text)}: give what the log says, as a text")
    if gamma is not None and not GAMMAS.allows(gamma):
        raise BadValue(f"gamma is {shown(gamma)}: {GAMMAS.advice}")
    of_vllm = [line for line in text.splitlines() if OF_VLLM.search(line)]
    if of_vllm and OF_LLAMACPP.search(text):
        raise BadValue("the log has lines of vLLM and of llama.cpp: give one's alone")
    if of_vllm:
        rates = _mean_rates(of_vllm)
        if gamma not in (None, len(rates)):
            raise BadValue(
                f"gamma is {gamma}, but vLLM's log has {len(rates)} positions: leave "
                "gamma out"
            )
        return conditional(rates)

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
    _check_windows(text, gamma)
    return (_rate_behind(accepted / drafted, gamma),)


def _mean_rates(lines: Sequence[str]) -> list[float]:
    """Rates by position of all intervals together, each counted by its windows."""
    of_intervals = [_rates_in(OF_VLLM.findall(line)[0]) for line in lines]
    lengths = {len(rates) for rates in of_intervals}
    if len(lengths) > 1:
        raise BadValue(
            f"the log's lines have rates for {sorted(lengths)} positions: give the log "
            "of one engine, whose number of speculative tokens does not change"
        )
    if len(lines) == 1:
        return of_intervals[0]

    windows = [
        _windows_of(line, rates)
        for line, rates in zip(lines, of_intervals, strict=True)
    ]
    together = sum(windows)
    if not together:
        raise BadValue(
            "the log's lines say that nothing was drafted: give a longer log"
        )
    means = []
    for at_position in zip(*of_intervals, strict=True):
        weighed = map(mul, at_position, windows)
        means.append(sum(weighed) / together)
    return means


def _windows_of(line: str, rates: Sequence[float]) -> float:
    """How many windows an interval had, by what was drafted or accepted in it."""
    drafted = DRAFTED.search(line)
    if drafted:
        return int(drafted[1]) / len(rates)
    accepted = ACCEPTED_TOKENS.search(line)
    if accepted and sum(rates):
        return int(accepted[1]) / sum(rates)
    raise BadValue(
        f"the log has several intervals, and one does not say what was drafted in it "
        f"({shown(line.strip())}): give whole lines, with 'Drafted: ... tokens'"
    )


def _check_windows(text: str, gamma: int) -> None:
    """Raises BadValue where llama.cpp says that windows were shorter than ``gamma``."""
    counts = WINDOWS_OF_LLAMACPP.findall(text)
    windows = sum(int(drafts) for drafts, _ in counts)
    tokens = sum(int(tokens) for _, tokens in counts)
    if tokens < SHORTER * gamma * windows:
        raise BadValue(
            f"the log's windows have {tokens / windows:.1f} drafts on average, not "
            f"{gamma}: drafting ended early where the draft was unsure, so no rate "
            "follows. Log a run with --draft-p-min 0, or give the gamma that it had"
        )


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
