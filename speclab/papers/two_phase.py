"""A number of all prompts of a task, of which a few were measured.

Requests differ by which drafts are accepted, and that is known without measuring: a
replay writes the same tokens in the same rounds on a virtual clock (see
``experiment.engines.replayed``). What a replay does not know is by how much passes and
messages take longer when they are really run. That differs little from request to
request, so a few measured requests tell it::

    request          1    2    3    4  ...  96
    measured         x    x
    replayed         x    x    x    x  ...  x

    correction  =  measured over replayed, of the requests that have both
    number      =  replayed, of all requests, times the correction

This is the ratio estimator of two-phase sampling. Its interval has two parts, of which
the squares are added: what few prompts leave open about the task, by the bootstrap over
all replays; and what few measurements leave open about the correction, by how much the
single requests' corrections differ. Two measured requests hardly tell that. So all
cells of the same method that were measured on the machine are asked, too (see
``spread``). Cells of the same prompts count as one of them, since a prompt whose
correction is large is so in most of them.

A task is its prompts: HumanEval is 164 of them, and ours is 96. The interval says
where the number would be if all of them were measured here. So of n prompts that were
replayed, out of N, the first part's variance is 1 - n / N times what it would be if
there were no end of prompts (the finite population correction); of all of them it is
none. What another task like this one would give, no interval says. Where chance draws
the text, of toys, and of prompts that are cut to one length, there is no end of
requests.

Requests beside which other programs kept the machine busy are left out of the
correction, if a quiet one is left.

A count of tokens or passes needs no correction where a replay is exact: it has the very
counts of the run, whatever kept the machine busy. That is so in float32, of models in
torch, by a method that does not go by time; tests hold replays to it, and every
measured request has to agree. Then one measured request is enough. Two tokens that are
equally likely may still change places in a replay: so of M prompts that were measured
by such a method and all agree, up to 3 / M of the others may be replayed with other
counts (95 %), and that share of the variance stays, however many were replayed.

A replay that is wrong makes the interval wider and the correction another one; it does
not make the number wrong. A number that may be negative is corrected by a difference,
not by a factor. Numbers that need several requests, such as a variance, and those that
no single request has, are taken from the measured requests alone.

Sources: Cochran, Sampling Techniques, third edition, 1977, chapters 2.6 and 12.9;
Angelopoulos et al., Prediction-Powered Inference, 2023 (arXiv:2301.09633), for the same
idea with a model's predictions as the first phase.

The quotient of two such numbers has a correction of its own: what slowed a request of
both methods, which were run in turns, or the plain decoding that both stand over,
cancels. How much quotients differ is told by all pairs of cells of these two methods
(``Peers.spread_of_quotient``), and is mostly less than what both sides' spreads make
together.

What it does not know: whether the first prompts of a file are typical of it, and in how
they are corrected; and how another day on the same machine would correct them. Where a
window was searched, the number is of the window that was chosen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf, isfinite, isnan, sqrt

import numpy as np

from speclab.experiment.spec import CellResult, Replays, Spec, present
from speclib.data.pairs import load_pair
from speclib.errors import naming_extras
from speclib.methods import about

from . import statistics
from .bootstrap import Correction
from .estimates import Estimate
from .spread import Spread, of_the_same, pooled_spread
from .table_result import quiet_requests


class Peers:
    """Cells by which it is judged how much corrections differ from request to request.

    ``results``: of all cells that were run; of those without replays nothing is asked.
    Cells that come to the same window share their runs, and count once.
    """

    def __init__(self, results: Iterable[CellResult] = ()):
        self._groups: dict[Hashable, list[CellResult]] = defaultdict(list)
        self._in_turns: dict[Hashable, list[CellResult]] = defaultdict(list)
        known: set[Spec] = set()
        for result in results:
            if result.replays is None:
                continue
            run = result.spec.changed(gamma=result.gamma)
            if run not in known:
                known.add(run)
                self._groups[_group_of(result)].append(result)
                self._in_turns[_conditions_of(result)].append(result)
        self._spreads: dict[Hashable, Spread | None] = {}
        self._doubts: dict[Hashable, float] = {}

    def spread(
        self, stat: str, result: CellResult, scaled_tokens: int, as_factor: bool
    ) -> Spread | None:
        """How much the corrections of a statistic differ in cells like ``result``.

        None where none of them has two requests to compare. ``as_factor``: of the
        logarithms of factors; else of differences.
        """
        key = stat, scaled_tokens, as_factor, _group_of(result)
        if key not in self._spreads:
            by_conditions: dict[Hashable, list[Spread]] = defaultdict(list)
            for each in self._groups.get(_group_of(result), []):
                own = own_spread(stat, each, scaled_tokens, as_factor)
                by_conditions[_conditions_of(each)].append(own)
            self._spreads[key] = pooled_spread(
                [of_the_same(spreads) for spreads in by_conditions.values()]
            )
        return self._spreads[key]

    def share_in_doubt(
        self, stat: str, result: CellResult, scaled_tokens: int
    ) -> float:
        """How many of the prompts may be replayed with another count, at most.

        A share, by the measured prompts of cells like ``result``: of M that all agree
        about 3 / M (the upper end of Clopper and Pearson's interval, 95 %). A prompt
        that several of them measured is one of M, and agrees if it does in all.
        """
        with naming_extras("an interval"):
            from scipy.special import betaincinv  # printed tables are read without it

        key = stat, scaled_tokens, _group_of(result)
        if key not in self._doubts:
            agrees: dict[Hashable, bool] = {}
            for each in self._groups.get(_group_of(result), [result]):
                for number, agreed in enumerate(_agreements(stat, each, scaled_tokens)):
                    prompt = _texts_of(each), number
                    agrees[prompt] = agreed and agrees.get(prompt, True)
            agreeing = sum(agrees.values())
            share = betaincinv(len(agrees) - agreeing + 1, agreeing, SURE_OF_COUNTS)
            self._doubts[key] = float(share) if agreeing else 1.0
        return self._doubts[key]

    def spread_of_quotient(
        self, stat: str, one: CellResult, other: CellResult, scaled_tokens: int
    ) -> Spread | None:
        """How much the quotient of two cells' corrections differs over requests.

        Told by all pairs of cells like these two that were measured in turns, of which
        each cell counts once. None where they are too few.
        """
        key = stat, scaled_tokens, _group_of(one), _group_of(other)
        if key not in self._spreads:
            spreads = []
            for cells in self._in_turns.values():
                pairs = _pairs(cells, _group_of(one), _group_of(other))
                own = [_spread_of_pair(stat, *pair, scaled_tokens) for pair in pairs]
                spreads.append(of_the_same(own))
            freedom = sum(spread.freedom for spread in spreads)
            is_known = freedom >= LEAST_FREEDOM
            self._spreads[key] = pooled_spread(spreads) if is_known else None
        return self._spreads[key]


NO_PEERS = Peers()
NO_VARIANCE = 1e-20  # of corrections that differ by floating point alone
SURE_OF_COUNTS = 0.95  # that no more of them are replayed wrongly
LEAST_FREEDOM = 4  # of pairs that tell how much a quotient differs


def _pairs(
    cells: Sequence[CellResult], group: Hashable, other_group: Hashable
) -> list[tuple[CellResult, CellResult]]:
    """Cells of two groups side by side, each in one pair at most."""
    ones = [cell for cell in cells if _group_of(cell) == group]
    if group == other_group:
        return list(zip(ones[::2], ones[1::2], strict=False))
    others = [cell for cell in cells if _group_of(cell) == other_group]
    return list(zip(ones, others, strict=False))


def _spread_of_pair(
    stat: str, one: CellResult, other: CellResult, scaled_tokens: int
) -> Spread:
    """How much the quotient of two cells' corrections differs over their requests."""
    above = _correction_by_request(stat, one, scaled_tokens)
    below = _correction_by_request(stat, other, scaled_tokens)
    common = sorted(above.keys() & below.keys())
    if len(common) < 2:
        return Spread(0.0, 0)
    differences = np.array([above[number] - below[number] for number in common])
    return Spread(float(differences.var(ddof=1)), len(common) - 1)


@dataclass(frozen=True)
class CellAmongPeers:
    """A statistic of a cell, and the cells that were measured as it was."""

    stat: str
    result: CellResult
    scaled_tokens: int
    peers: Peers

    def is_the_same_as(self, other: CellAmongPeers) -> bool:
        """See ``bootstrap.MeasuredBeside``."""
        return (
            self.stat == other.stat
            and self.scaled_tokens == other.scaled_tokens
            and self.result is other.result
        )

    def spread_of_quotient(self, other: CellAmongPeers) -> Spread | None:
        """See ``bootstrap.MeasuredBeside``."""
        are_in_turns = (
            self.stat == other.stat
            and self.scaled_tokens == other.scaled_tokens
            and _conditions_of(self.result) == _conditions_of(other.result)
            and quiet_requests(self.result) == quiet_requests(other.result)
        )
        if not are_in_turns:
            return None
        return self.peers.spread_of_quotient(
            self.stat, self.result, other.result, self.scaled_tokens
        )


def _group_of(result: CellResult) -> Hashable:
    """What the cells share whose corrections are taken to differ alike.

    Of another dtype, or of a draft in llama.cpp, a replay is not exact.
    """
    spec = result.spec
    runtime = result.facts.get("draft")
    spread = _spread_of_target(spec.pair)
    return spec.kind, spec.method, spec.dtype, runtime, spread, result.machine


def _conditions_of(result: CellResult) -> Hashable:
    """What cells share whose requests were run in turns: the same plain decoding."""
    spec = result.spec
    pool = spec.worker_pool if spec.kind == "measured" else None
    return spec.plain_decoding.changed(requests=1), pool, result.machine


def _texts_of(result: CellResult) -> Hashable:
    """What cells share that ask the same of the same models, prompt by prompt.

    Dilated or not, and however many tokens they write.
    """
    spec = result.spec
    models = _undilated(present(spec.pair))
    return models, spec.task, spec.length, spec.temperature, spec.seed, spec.dtype


@cache
def _undilated(pair: str) -> tuple[str, str]:
    loaded = load_pair(pair)
    return str(loaded.target.undilated), str(loaded.draft.undilated)


@cache
def _spread_of_target(pair: str | None) -> str | None:
    """How a pair's target is spread over devices, which then wait for each other."""
    return None if pair is None else load_pair(pair).target.spread


def own_spread(
    stat: str, result: CellResult, scaled_tokens: int, as_factor: bool
) -> Spread:
    """The spread of a cell's own corrections; fewer than two of them say nothing."""
    corrections = _single_corrections(stat, result, scaled_tokens, as_factor)
    if len(corrections) < 2:
        return Spread(0.0, 0)
    return Spread(float(corrections.var(ddof=1)), len(corrections) - 1)


def _single_corrections(
    stat: str, result: CellResult, scaled_tokens: int, as_factor: bool
) -> np.ndarray:
    """The correction of each measured request, on the scale on which it is averaged."""
    by_request = _correction_by_request(stat, result, scaled_tokens, as_factor)
    return np.array(list(by_request.values()))


def _correction_by_request(
    stat: str, result: CellResult, scaled_tokens: int, as_factor: bool = True
) -> dict[int, float]:
    """The same by the number of the request; those that are none are left out."""
    replays = present(result.replays)
    corrections = {}
    for number in quiet_requests(result):
        measured = statistics.compute(stat, _requests(result, [number]), scaled_tokens)
        again = _requests(as_replayed(result, replays), [number])
        replayed = statistics.compute(stat, again, scaled_tokens)
        if as_factor:
            with np.errstate(divide="ignore", invalid="ignore"):
                correction = float(np.log(measured) - np.log(replayed))
        else:
            correction = measured - replayed
        if isfinite(correction):
            corrections[number] = correction
    return corrections


# -- results in part, and as replayed --------------------------------------------------
def as_replayed(result: CellResult, replays: Replays) -> CellResult:
    """A cell's result if its requests had been ``replays``."""
    return replace(
        result,
        stats=replays.stats,
        baseline=replays.baseline,
        sequence_choices=replays.sequence_choices,
        replays=None,
    )


def plain_part(result: CellResult) -> CellResult:
    """Plain decoding as it was run beside a cell, as a result of its own."""
    replays = result.replays
    if replays is not None:
        replays = replace(replays, stats=replays.baseline)
    spec = result.spec.changed(method="autoregressive", gamma=None, settings=())
    return replace(
        result, spec=spec, stats=result.baseline, gamma=None, replays=replays
    )


def _requests(result: CellResult, numbers: Sequence[int]) -> CellResult:
    """Some of a cell's requests, as a result of their own."""
    choices = result.sequence_choices
    return replace(
        result,
        stats=[result.stats[number] for number in numbers],
        baseline=[result.baseline[number] for number in numbers],
        sequence_choices=[choices[number] for number in numbers] if choices else [],
    )


# -- the number ------------------------------------------------------------------------
def read_statistic(
    stat: str, result: CellResult, scaled_tokens: int = 0, peers: Peers = NO_PEERS
) -> Estimate:
    """The statistic ``stat`` of a cell, by its replays where they can tell it.

    Else by its measured requests, of which the quiet ones are enough here, too.
    """
    corrected = _corrected(stat, result, scaled_tokens, peers)
    if corrected is not None:
        return corrected
    if result.replays is not None and quiet_requests(result):
        result = _requests(result, quiet_requests(result))
    return Estimate(
        statistics.compute(stat, result, scaled_tokens),
        statistics.resample(stat, result, scaled_tokens),
    )


def _counted_exactly(
    stat: str, result: CellResult, scaled_tokens: int
) -> Correction | None:
    """The correction, by nothing, of a count that replays have exactly; else None."""
    spec = result.spec
    is_exact = (
        stat in statistics.COUNTED
        and spec.dtype == "auto"
        and result.facts.get("draft") == "torch"
        and not about(spec.method).goes_by_time
    )
    if not is_exact:
        return None
    if not all(_agreements(stat, result, scaled_tokens)):
        return None
    return Correction(
        by=1.0, is_factor=True, error=0.0, freedom=inf, measured=len(result.stats)
    )


def _agreements(stat: str, result: CellResult, scaled_tokens: int) -> list[bool]:
    """Of each measured request, whether its replay has the same count."""
    replayed = as_replayed(result, present(result.replays))
    agree = []
    for number in range(len(result.stats)):
        measured = statistics.compute(stat, _requests(result, [number]), scaled_tokens)
        again = statistics.compute(stat, _requests(replayed, [number]), scaled_tokens)
        agree.append(measured == again or (isnan(measured) and isnan(again)))
    return agree


def _corrected(
    stat: str, result: CellResult, scaled_tokens: int, peers: Peers
) -> Estimate | None:
    """The same by its replays; None where they cannot tell it."""
    replays = result.replays
    if replays is None or stat in statistics.SETTINGS:
        return None
    replayed = as_replayed(result, replays)
    value = statistics.compute(stat, replayed, scaled_tokens)
    resamples = statistics.resample(stat, replayed, scaled_tokens)
    if resamples is None:
        return None
    prompts = inf if replays.prompts_in_task is None else replays.prompts_in_task

    exact = _counted_exactly(stat, result, scaled_tokens)
    if exact is not None:
        doubt = peers.share_in_doubt(stat, result, scaled_tokens)
        counted = resamples.of_population(prompts, value, in_doubt=doubt)
        return Estimate(value, replace(counted, correction=exact))

    numbers = quiet_requests(result) or list(range(len(result.stats)))
    measured = statistics.compute(stat, _requests(result, numbers), scaled_tokens)
    of_all = Estimate(value, resamples)
    of_same = statistics.compute(stat, _requests(replayed, numbers), scaled_tokens)
    as_factor = of_all.is_positive and measured > 0 and of_same > 0
    spread = peers.spread(stat, result, scaled_tokens, as_factor)
    if spread is None or not (isfinite(measured) and isfinite(of_same)):
        return None
    if spread.variance > NO_VARIANCE:  # else it is by chance that no error shows
        resamples = resamples.of_population(prompts, value)

    correction = Correction(
        by=measured / of_same if as_factor else measured - of_same,
        is_factor=as_factor,
        error=sqrt(spread.variance / len(numbers)),
        freedom=spread.freedom,
        measured=len(numbers),
        cell=CellAmongPeers(stat, result, scaled_tokens, peers),
    )
    return Estimate(
        correction.applied(of_all.value),
        replace(
            resamples,
            values=correction.applied(resamples.values),
            correction=correction,
        ),
    )
