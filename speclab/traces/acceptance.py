"""Acceptance by position: how often the 1st, 2nd, ... draft in a window is accepted.

    window    d1  d2  d3  d4
    tested    x   x   x         d4 was not tested, since d3 failed
    accepted  x   x

Later drafts in a window are right less often, since they build on drafts. A single
number for all positions hides that. This module knows no method and no clock.

Two engines log acceptance from the same counts. vLLM (vllm/v1/spec_decode/metrics.py at
commit 016a858) prints a rate per position over all windows, and a mean length that
includes the bonus token. llama.cpp's server prints accepted drafts over all drafts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import nan
from operator import mul
from typing import Any, NamedTuple

from speclib.arguments import Whole, shown
from speclib.errors import BadValue
from speclib.operations.fork import DraftedBranches
from speclib.trace.events import Trace

ACCEPTED, REJECTED = "accepted", "rejected"
GAMMAS = Whole(least=1, most=1000)  # draft lengths of an engine's windows
# A line's rates, up to the text after them, which a truncated line lacks.
VLLM_RATES = re.compile(r"Per-position acceptance rate: ([\d., ]+), Avg")
DRAFTED = re.compile(r"Drafted: (\d+) tokens")
ACCEPTED_TOKENS = re.compile(r"Accepted: (\d+) tokens")
# Newer versions of llama.cpp also print the number of windows.
LLAMACPP_WINDOWS = re.compile(r"#gen drafts\s*=\s*(\d+).*?#gen tokens\s*=\s*(\d+)")
LEAST_MEAN_WINDOW = 0.9  # over gamma; a text's last window may be short
LLAMACPP_RATE = re.compile(
    r"draft acceptance(?: rate)?\s*=\s*[\d.]+\s*"
    r"\(\s*(\d+) accepted\s*/\s*(\d+) generated"
)


@dataclass(frozen=True)
class Acceptance:
    """Counts over windows by position, starting at a window's first draft.

    Drafts after the end of the text are not counted: they neither passed nor failed.

    windows   windows with at least one tested draft
    settled   [positions], drafts that passed, failed, or followed a failed one
    tested    [positions], drafts that were tested
    accepted  [positions], drafts that passed
    written   tokens that the windows wrote: accepted drafts, and the token that
              replaces the first failed draft or follows them all
    """

    windows: int
    settled: tuple[int, ...]
    tested: tuple[int, ...]
    accepted: tuple[int, ...]
    written: int

    @property
    def drafted(self) -> int:
        """All drafts in the windows."""
        return sum(self.settled)

    @property
    def conditional(self) -> tuple[float, ...]:
        """Acceptance at each position, given that all drafts before it passed.

        It is nan if no draft was tested there.
        """
        return tuple(
            accepted / tested if tested else nan
            for accepted, tested in zip(self.accepted, self.tested, strict=True)
        )

    @property
    def by_position(self) -> tuple[float, ...]:
        """vLLM's per-position rates: the share of all windows accepted up to there.

        Difference from vLLM: there, drafts after the end of a text count as failures.
        """
        return tuple(
            accepted / settled
            for accepted, settled in zip(self.accepted, self.settled, strict=True)
        )

    @property
    def mean_length(self) -> float:
        """vLLM's mean acceptance length: the tokens written per window.

        Difference from vLLM: a bonus token that was not written does not count, for
        example after the end of a text, or when PEARL continues accepted drafts.
        """
        return self.written / self.windows

    @property
    def rate(self) -> float:
        """llama.cpp's draft acceptance rate: accepted drafts over all drafts."""
        return sum(self.accepted) / self.drafted if self.drafted else nan


def acceptance(runs: Any) -> Acceptance:
    """Counts the outcomes of drafts, by position, over the windows of all ``runs``.

    runs: a trace or a result, or several of them.

    A window is the line of drafts from one drafting operation; with SSD's branches, the
    branch that was followed. Trees and several sequences are not lines, so they are
    left out. Raises BadValue if no window was tested, or for anything that is not a
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
            "no line of drafts was tested in these runs: give runs of speculative "
            "decoding, PEARL, DSI or SSD"
        )
    positions = range(len(settled))
    return Acceptance(
        windows,
        settled=tuple(settled[position] for position in positions),
        tested=tuple(tested[position] for position in positions),
        accepted=tuple(accepted[position] for position in positions),
        written=written,
    )


class TestedWindow(NamedTuple):
    """The outcomes of a line of drafts that begins at ``position``."""

    position: int
    outcomes: tuple[str, ...]

    @property
    def has_failed(self) -> bool:
        """Whether a draft failed; those after it were not tested."""
        return REJECTED in self.outcomes

    @property
    def settled(self) -> int:
        """The number of drafts that passed or failed; all drafts once one failed."""
        if self.has_failed:
            return len(self.outcomes)
        return self.outcomes.count(ACCEPTED)

    @property
    def tested(self) -> range:
        """The positions at which a draft was tested."""
        count = self.outcomes.count(ACCEPTED) + self.has_failed
        return range(self.position, self.position + count)


def _tested_windows(trace: Trace) -> list[TestedWindow]:
    """The windows with at least one tested draft."""
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
    """For each window, how many tokens the target wrote right after accepted drafts.

    This is 1, or 0 if all of the window's drafts passed and the text ended there or
    another tested draft followed.
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
    """The traces of one or several runs."""
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
    """The conditional acceptance rates in an engine's log, for ``simulate``.

    text: the log of vLLM or of llama.cpp's server. Each of vLLM's lines covers an
    interval; intervals are weighted by the windows drafted in them. llama.cpp divides
    accepted drafts by all drafts, including the untested ones after a failed draft. The
    rate of a single draft is therefore higher; we compute it from the number of drafts
    in a window, ``gamma``.

    With ``--draft-p-min`` above 0 llama.cpp ends a window when its draft is unsure.
    Then windows differ in length, and no rate can be computed from the log.

    Raises BadValue if the log has no such line, if its rates are invalid or cannot be
    weighted, or if a log of llama.cpp comes without ``gamma`` or with shorter windows.
    """
    if not isinstance(text, str):
        raise BadValue(f"text is {shown(text)}: give the log's text")
    if gamma is not None and not GAMMAS.allows(gamma):
        raise BadValue(f"gamma is {shown(gamma)}: {GAMMAS.advice}")
    vllm_lines = [line for line in text.splitlines() if VLLM_RATES.search(line)]
    if vllm_lines and LLAMACPP_RATE.search(text):
        raise BadValue("the log has lines of vLLM and of llama.cpp: give only one log")
    if vllm_lines:
        rates = _mean_rates(vllm_lines)
        if gamma not in (None, len(rates)):
            raise BadValue(
                f"gamma is {gamma}, but vLLM's log has {len(rates)} positions: leave "
                "gamma out"
            )
        return conditional(rates)

    counts = [(int(right), int(total)) for right, total in LLAMACPP_RATE.findall(text)]
    accepted = sum(right for right, _ in counts)
    drafted = sum(total for _, total in counts)
    if not drafted:
        raise BadValue(
            "no acceptance rate in this log: vLLM writes 'Per-position acceptance "
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
    return (_rate_of_one_draft(accepted / drafted, gamma),)


def _mean_rates(lines: Sequence[str]) -> list[float]:
    """Rates by position over all intervals, weighted by the number of windows."""
    interval_rates = [_rates_in(VLLM_RATES.findall(line)[0]) for line in lines]
    lengths = {len(rates) for rates in interval_rates}
    if len(lengths) > 1:
        raise BadValue(
            f"the log's lines have rates for {sorted(lengths)} positions: give the log "
            "of one engine with a constant number of speculative tokens"
        )
    if len(lines) == 1:
        return interval_rates[0]

    windows = [
        _windows_of(line, rates)
        for line, rates in zip(lines, interval_rates, strict=True)
    ]
    together = sum(windows)
    if not together:
        raise BadValue(
            "nothing was drafted, according to the log's lines: give a longer log"
        )
    means = []
    for at_position in zip(*interval_rates, strict=True):
        weighed = map(mul, at_position, windows)
        means.append(sum(weighed) / together)
    return means


def _windows_of(line: str, rates: Sequence[float]) -> float:
    """The number of windows in an interval, from its count of tokens."""
    drafted = DRAFTED.search(line)
    if drafted:
        return int(drafted[1]) / len(rates)
    accepted = ACCEPTED_TOKENS.search(line)
    if accepted and sum(rates):
        return int(accepted[1]) / sum(rates)
    raise BadValue(
        f"the log has several intervals, and one lacks its number of drafts "
        f"({shown(line.strip())}): give whole lines, with 'Drafted: ... tokens'"
    )


def _check_windows(text: str, gamma: int) -> None:
    """Raises BadValue if llama.cpp's windows were shorter than ``gamma``."""
    counts = LLAMACPP_WINDOWS.findall(text)
    windows = sum(int(drafts) for drafts, _ in counts)
    tokens = sum(int(tokens) for _, tokens in counts)
    if tokens < LEAST_MEAN_WINDOW * gamma * windows:
        raise BadValue(
            f"the log's windows have {tokens / windows:.1f} drafts on average, not "
            f"{gamma}: drafting ended early when the draft was unsure, so no rate can "
            "be computed. Log a run with --draft-p-min 0, or give the run's gamma"
        )


def _rates_in(line: str) -> list[float]:
    """Rates by position; raises BadValue unless they are numbers that fall from 1."""
    try:
        rates = [float(rate) for rate in line.split(",")]
    except ValueError:
        rates = []
    falls = all(before >= after for before, after in pairwise([1.0, *rates, 0.0]))
    if not rates or not falls:
        raise BadValue(
            f"the log's rates by position are {line.strip()!r}: each should be at most "
            "the one before it, from 1 down to 0, since a draft is accepted only "
            "after accepted ones"
        )
    return rates


def _rate_of_one_draft(share: float, gamma: int) -> float:
    """A single draft's rate, if this ``share`` of all drafts in windows is accepted.

    share = (a + a^2 + ... + a^gamma) / gamma, solved for a by halving.
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = sum(middle**length for length in range(1, gamma + 1)) / gamma
        low, high = (middle, high) if mean < share else (low, middle)
    return high


def conditional(by_position: Sequence[float]) -> tuple[float, ...]:
    """Rates given that all earlier drafts passed, from rates over all windows."""
    rates = []
    before = 1.0
    for rate in by_position:
        rates.append(rate / before if before else 0.0)
        before = rate
    return tuple(rates)
