"""Experiments of the audit by name: methods let run, and what their runs show.

Each is a function of the number of simulated requests and of its settings, and gives
quantities by name. Nothing here takes longer than some seconds. Most numbers are of the
kind "virtual": the methods' own code, walked over every outcome or run on the simulated
clock, or the rules of charge that stand in for it. What a formula makes of printed
numbers is of the kind "paper".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from speclib.core.sampling import Coins, Rows, Sampler
from speclib.data.hardware import load_hardware
from speclib.data.latency import load_latency
from speclib.decoding.simulate import simulate
from speclib.errors import BadValue, unknown_name
from speclib.methods import METHODS
from speclib.models.toy import BOS, Random, Toy
from speclib.papers.bootstrap import Resamples, draw_resamples
from speclib.papers.estimates import Estimate
from speclib.papers.load import load_paper
from speclib.theory.closed_forms import (
    alpha_from_accepted,
    alpha_from_run_ratio,
    run_tokens,
    sd_tokens,
)
from speclib.theory.dsi_accounting import (
    LISTING,
    SIMULATOR,
    Accounting,
    dsi_bound,
    speedup,
    switched,
)
from speclib.trace.metrics import Stats, stats, total
from speclib.worlds.enumerator import outcomes, total_variation, truth
from speclib.worlds.virtual import Virtual

from .planted import MISTAKES
from .quantity import Kind, Quantity

Quantities = dict[str, Quantity]

VOCAB, TOKENS = 3, 3  # of the texts over which the enumerator walks
TARGET_SEED, DRAFT_SEED = 20, 10
UNRELATED, CLOSE = 0.0, 0.9  # the share of a draft's rows that are the target's


# -- every outcome ---------------------------------------------------------------------
class Near(Random):
    """A draft whose rows are mostly the target's, and for the rest its own."""

    def __init__(self, target: Random, seed: int, share: float):
        super().__init__(target.vocab, seed, target.horizon)
        self._target = Random(target.vocab, target.seed, target.horizon)
        self._share = share

    def rows(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """Distributions [last + 1, vocab] of what follows text[:-last] ... text."""
        own = super().rows(text, last, sampler)
        targets = self._target.rows(text, last, sampler)
        return self._share * targets + (1 - self._share) * own


def _models(share: float) -> dict[str, Random]:
    """A target, and a draft that has this share of its rows from the target."""
    target = Random(VOCAB, TARGET_SEED, horizon=1 + TOKENS)
    return {"draft": Near(target, DRAFT_SEED, share), "target": target}


@cache
def _error(
    method: Callable[..., None], settings: tuple[tuple[str, Any], ...], share: float
) -> float:
    """How far a method's texts are from the target's, as total variation."""
    models = _models(share)
    written = outcomes(method, models, TOKENS, **dict(settings))
    return total_variation(written, truth(models["target"], TOKENS))


def planted_mistake(requests: int, mistake: str) -> Quantities:
    """What a planted mistake costs, and that the method without it costs nothing.

    Once with models that have nothing in common, and once with a draft that is close
    to its target.
    """
    if mistake not in MISTAKES:
        raise unknown_name(f"no planted mistake {mistake!r}", mistake, MISTAKES)
    planted = MISTAKES[mistake]
    settings = tuple(planted.settings.items())
    errors = {
        "error with the mistake": _error(planted.mistaken, settings, UNRELATED),
        "error with a draft that is close": _error(planted.mistaken, settings, CLOSE),
        "error without the mistake": _error(planted.right, settings, UNRELATED),
    }
    return {name: Quantity.exact(error) for name, error in errors.items()}


def every_outcome(requests: int, method: str, **settings: Any) -> Quantities:
    """How far the texts of a registered method are from the target's own.

    Its models have nothing in common.
    """
    error = _error(METHODS[method], tuple(settings.items()), UNRELATED)
    return {"error": Quantity.exact(error)}


# -- the simulated clock ---------------------------------------------------------------
def _estimate(value: float, resampled: np.ndarray, requests: int) -> Quantity:
    """A simulated number with its 95 % interval."""
    low, high = Estimate(value, Resamples(resampled, requests)).interval
    return Quantity(value, low, high)


def _statistic(runs: Sequence[Stats], statistic: Callable[[Stats], float]) -> Quantity:
    """A statistic of all requests together, and what it would be of other ones."""
    columns = np.array([_counts(run) for run in runs])
    resampled = []
    for drawn in draw_resamples(len(runs)) @ columns:
        resampled.append(statistic(Stats(*drawn)))
    return _estimate(statistic(total(runs)), np.array(resampled), len(runs))


def _counts(run: Stats) -> list[float]:
    return [float(getattr(run, name)) for name in Stats.__dataclass_fields__]


def _runs(method: str, requests: int, **what: Any) -> list[Stats]:
    """The statistics of so many simulated requests."""
    runs = []
    for seed in range(requests):
        runs.append(simulate(method, seed=seed, **what).stats)
    return runs


def _ratio(tops: np.ndarray, bottoms: np.ndarray) -> Quantity:
    """The ratio of two sums over the same requests, [requests] each."""
    drawn = draw_resamples(len(tops))
    resampled = (drawn @ tops) / (drawn @ bottoms)
    return _estimate(float(tops.sum() / bottoms.sum()), resampled, len(tops))


def unverified_tokens(requests: int, method: str, **what: Any) -> Quantities:
    """What is added by counting tokens that no target pass has tested.

    "published over committed" is the speed as the published code counts, over that of
    committed tokens; both with the time to the first token.
    """
    runs = _runs(method, requests, **what)
    return {"published over committed": _statistic(runs, lambda run: run.inflation)}


def two_counts(requests: int, latency: str, alpha: str, tokens: int) -> Quantities:
    """Accepted drafts of PEARL and of speculative decoding, each counted in two ways.

    ``alpha`` is a calibration of PEARL's paper, at whose draft length speculative
    decoding runs; PEARL drafts round(c).
    """
    paper = load_paper("pearl")
    what = {"latency": latency, "alpha": paper.alpha(alpha), "tokens": tokens}
    gamma = paper.calibration[alpha].gamma
    pearl = _runs("pearl", requests, **what)
    speculative = _runs("speculative", requests, gamma=gamma, **what)
    return {
        "PEARL, per target pass": _statistic(pearl, lambda run: run.mat),
        "PEARL, between rejections": _statistic(pearl, lambda run: run.run_length),
        "speculative decoding, per target pass": _statistic(
            speculative, lambda run: run.mat
        ),
        "speculative decoding, between rejections": _statistic(
            speculative, lambda run: run.run_length
        ),
    }


def worth_of_a_mistake(
    requests: int, mistake: str, latency: str, alpha: float, gamma: int, tokens: int
) -> Quantities:
    """How much faster a method is with a planted mistake than without it."""
    planted = MISTAKES[mistake]
    speeds = []
    for method in (planted.mistaken, planted.right):
        runs = []
        for seed in range(requests):
            runs.append(_run_on_clock(method, latency, alpha, gamma, tokens, seed))
        speeds.append(np.array([[run.tokens, run.seconds] for run in runs]))

    drawn = draw_resamples(requests)
    with_mistake, without = speeds
    resampled = _speed(drawn @ with_mistake) / _speed(drawn @ without)
    value = _speed(with_mistake.sum(0)) / _speed(without.sum(0))
    return {
        "with the mistake over without": _estimate(float(value), resampled, requests)
    }


def _speed(tokens_and_seconds: np.ndarray) -> np.ndarray:
    return tokens_and_seconds[..., 0] / tokens_and_seconds[..., 1]


def _run_on_clock(
    method: Callable[..., None],
    latency: str,
    alpha: float,
    gamma: int,
    tokens: int,
    seed: int,
) -> Stats:
    """One greedy request of a method that is not registered."""
    models = {"draft": Toy(alpha, seed=seed), "target": Toy(None, seed=seed)}
    world = Virtual(models, load_latency(latency))
    world.begin((BOS,), sampler=Sampler(), coins=Coins(seed), limit=tokens)
    method(world, gamma=gamma)
    return stats(world.end())


def lookahead_of_dsi(
    requests: int, c: float, servers: int, alpha: float, tokens: int, paper: int
) -> Quantities:
    """DSI's time with the paper's lookahead, over its time with a lookahead of 1."""
    what = {"c": c, "servers": servers, "alpha": alpha, "tokens": tokens}
    seconds = []
    for lookahead in (paper, 1):
        runs = _runs("dsi", requests, lookahead=lookahead, **what)
        seconds.append(np.array([run.seconds for run in runs]))
    by_paper, by_one = seconds
    return {"paper's lookahead over 1": _ratio(by_paper, by_one)}


def ties_of_dsi(requests: int, c: float, alpha: float, tokens: int) -> Quantities:
    """DSI's time, in target passes, where a block of drafts and a pass end together.

    One server, a lookahead of c: "at c" every block ends as a pass does; just below
    and just above it ends a little sooner or later. All three have the same drafts.
    """
    seconds = {}
    for name, cost in (("just below", c - 0.01), ("at c", c), ("just above", c + 0.01)):
        runs = _runs(
            "dsi",
            requests,
            c=cost,
            alpha=alpha,
            tokens=tokens,
            servers=1,
            lookahead=round(c),
            target=1.0,
        )
        seconds[name] = np.array([run.seconds for run in runs])

    quantities = {}
    for name, values in seconds.items():
        quantities[name] = Quantity.exact(float(values.mean()))
    quantities["at c over just above"] = _ratio(seconds["at c"], seconds["just above"])
    return quantities


def passes_of_lookahead_decoding(requests: int, **what: Any) -> Quantities:
    """Target passes of lookahead decoding, as its published code takes them and ours.

    The target writes the same text in both.
    """
    quantities = {}
    for name, as_published in (("ours", False), ("as published", True)):
        runs = _runs("lookahead", requests, as_published=as_published, **what)
        passes = _statistic(runs, lambda run: run.target_runs / run.requests)
        quantities[f"passes, {name}"] = passes
    return quantities


# -- numbers ---------------------------------------------------------------------------
def to_bfloat16(number: int) -> int:
    """A whole number as bfloat16 holds it: eight binary digits, halves to even."""
    spacing = 2 ** max(0, number.bit_length() - 8)
    return round(number / spacing) * spacing


def ids_in_bfloat16(requests: int, token: int, vocab: int) -> Quantities:
    """What becomes of a token id that is stored as bfloat16, and of all ids."""
    kept = sum(to_bfloat16(number) == number for number in range(vocab))
    return {
        "id": Quantity.exact(token, "arithmetic"),
        "id as bfloat16": Quantity.exact(to_bfloat16(token), "arithmetic"),
        "share of ids that stay": Quantity.exact(kept / vocab, "arithmetic"),
    }


# -- PEARL's counts of passes ----------------------------------------------------------
TARGET_OF_SD, TARGET_OF_PEARL = "Target Model (SD)", "Target Model (PEARL)"
DRAFT_OF_SD = "Draft Model (SD)"


def _passes(row: str, column: str) -> float:
    """A count of Table 11."""
    count = load_paper("pearl").printed("table-11", row, column)
    if count is None:
        raise BadValue(f"PEARL's Table 11 has no {[row, column]}")
    return count


def _tokens_of_full_texts() -> float:
    """Tokens of all prompts of HumanEval, if each text is as long as it may be."""
    task = load_paper("pearl").facts["tasks"]["humaneval"]
    return float(task["prompts"] * task["max_new_tokens"])


def length_by_counts(requests: int, row: str, column: str) -> Quantities:
    """Accepted drafts between two rejections of PEARL: printed, and by Table 11.

    Two acceptance rates follow from Table 11, if each draft is accepted with the same
    probability: one from the passes of speculative decoding, if all texts have full
    length, and one from PEARL's passes over these, which needs no length.
    """
    gamma = round(_passes(row, DRAFT_OF_SD) / _passes(row, TARGET_OF_SD))
    ratio = _passes(row, TARGET_OF_PEARL) / _passes(row, TARGET_OF_SD)
    alpha = alpha_from_run_ratio(ratio, gamma)
    tokens = _tokens_of_full_texts() / _passes(row, TARGET_OF_SD)
    alpha_of_baseline = alpha_from_accepted(tokens - 1, gamma)
    printed = load_paper("pearl").printed("table-7", "Ours", column)
    if printed is None:
        raise BadValue(f"PEARL's Table 7 has no column {column!r}")
    return {
        "draft length": Quantity.exact(gamma, "paper"),
        "length by the baseline's counts": Quantity.exact(
            run_tokens(alpha_of_baseline) - 1, "paper"
        ),
        "length by both counts": Quantity.exact(run_tokens(alpha) - 1, "paper"),
        "length by Table 7": Quantity.exact(printed, "paper"),
    }


def tokens_per_pass(requests: int, row: str, alpha: str) -> Quantities:
    """Tokens of a pass of speculative decoding: by its acceptance rate, and by counts.

    ``alpha`` is a calibration, from Table 7's accepted drafts. The counts are Table
    11's, if every text had as many tokens as Appendix C.1 allows, or half as many.
    """
    paper = load_paper("pearl")
    passes = _passes(row, TARGET_OF_SD)
    gamma = round(_passes(row, DRAFT_OF_SD) / passes)
    by_counts = _tokens_of_full_texts() / passes
    by_rate = sd_tokens(paper.alpha(alpha), gamma)
    return {
        "by Table 7's acceptance": Quantity.exact(by_rate, "paper"),
        "by counts, texts of full length": Quantity.exact(by_counts, "paper"),
        "by counts, texts of half that length": Quantity.exact(by_counts / 2, "paper"),
    }


# -- DSI's rules of charge -------------------------------------------------------------
LATENCY_OF_TARGET, LATENCY_OF_DRAFTER = "Target Latency (ms)", "Drafter Latency (ms)"
ACCEPTANCE, PRINTED = "Acceptance Rate (%)", "Speedup DSI vs. SI"


class RowOfTable1:
    """A row of DSI's Table 1: what it prints, and what rules of charge make of it."""

    def __init__(self, row: str):
        paper = load_paper("dsi")
        numbers: Mapping[str, float] = {
            column: value
            for printed_row, column, value in paper.table("table-1").cells
            if printed_row == row
        }
        self.share = numbers[LATENCY_OF_DRAFTER] / numbers[LATENCY_OF_TARGET]
        self.alpha = numbers[ACCEPTANCE] / 100
        self.printed = numbers[PRINTED]
        self.tokens = paper.facts["protocol"]["simulated_tokens"]
        self.lookaheads = paper.facts["protocol"]["lookahead"]

    def by(self, rules: Accounting) -> float:
        """DSI over SI by these rules, each side at its best lookahead."""
        lookaheads = tuple(self.lookaheads)
        return _dsi_over_si(self.share, self.alpha, self.tokens, rules, lookaheads)


def _dsi_over_si(
    share: float,
    alpha: float,
    tokens: int,
    rules: Accounting,
    lookaheads: tuple[int, ...],
) -> float:
    return float(speedup(share, alpha, tokens, rules, lookaheads))


def _rows_of_table_1() -> Iterator[RowOfTable1]:
    for row in load_paper("dsi").table("table-1").row_labels:
        yield RowOfTable1(row)


def dsi_over_si_by_rules(requests: int) -> Quantities:
    """The range of Table 1's column by the print, the listing and the simulator."""
    rows = list(_rows_of_table_1())
    columns = {
        "printed": [row.printed for row in rows],
        "listing": [row.by(LISTING) for row in rows],
        "simulator": [row.by(SIMULATOR) for row in rows],
    }
    quantities = {}
    for name, values in columns.items():
        kind: Kind = "paper" if name == "printed" else "virtual"
        quantities[f"{name}, lowest"] = Quantity.exact(min(values), kind)
        quantities[f"{name}, highest"] = Quantity.exact(max(values), kind)

    above = [row for row in rows if row.printed - HALF_A_DIGIT > row.by(LISTING)]
    quantities["rows printed above the listing"] = Quantity.exact(len(above))
    return quantities


HALF_A_DIGIT = 0.005  # of the printed column


def worth_of_a_rule(requests: int, rule: str) -> Quantities:
    """What one of the simulator's rules adds to DSI over SI, the others being its own.

    "least gain" and "most gain" are factors over the rows of Table 1.
    """
    with_one_rule = switched(SIMULATOR, LISTING)
    if rule not in with_one_rule:
        raise unknown_name(f"no rule {rule!r}", rule, with_one_rule)
    gains = []
    for row in _rows_of_table_1():
        gains.append(row.by(SIMULATOR) / row.by(with_one_rule[rule]))
    return {
        "least gain": Quantity.exact(min(gains)),
        "most gain": Quantity.exact(max(gains)),
    }


# -- the same devices ------------------------------------------------------------------
def _gain_on_all_devices(latency: str, servers: int) -> Quantities:
    """Plain decoding on all devices that a method reserves, over it on the target's."""
    hardware = load_hardware(latency)
    if hardware is None:
        raise BadValue(f"data/hardware says nothing of {latency!r}")
    devices = hardware.devices(drafts=True, servers=servers)
    seconds = load_latency(latency).target(1)
    gain = hardware.plain_pass(seconds).gain(devices)
    return {
        "devices": Quantity.exact(devices),
        "plain decoding on all devices": Quantity.exact(gain),
    }


def pearl_on_its_devices(requests: int, latency: str, column: str) -> Quantities:
    """PEARL's printed speed-up, beside plain decoding on all its devices."""
    printed = load_paper("pearl").printed("table-1", "PEARL (ours)", column)
    if printed is None:
        raise BadValue(f"PEARL's Table 1 has no column {column!r}")
    return _gain_on_all_devices(latency, servers=1) | {
        "printed speed-up": Quantity.exact(printed, "paper")
    }


def dsi_on_its_devices(requests: int, latency: str, row: str) -> Quantities:
    """Proposition 1's time for a row of Table 1, beside plain decoding on all devices.

    The devices are those of the protocol, a drafter and seven target servers.
    """
    servers = load_paper("dsi").facts["protocol"]["most_servers"]
    printed = RowOfTable1(row)
    seconds = dsi_bound(printed.share, printed.alpha, printed.tokens)
    gain = printed.tokens / float(seconds)
    return _gain_on_all_devices(latency, servers) | {
        "DSI over plain decoding": Quantity.exact(gain)
    }


# -- all of them -----------------------------------------------------------------------
RUNS: dict[str, Callable[..., Quantities]] = {
    "planted mistake": planted_mistake,
    "every outcome": every_outcome,
    "unverified tokens": unverified_tokens,
    "two counts": two_counts,
    "worth of a mistake": worth_of_a_mistake,
    "lookahead of DSI": lookahead_of_dsi,
    "passes of lookahead decoding": passes_of_lookahead_decoding,
    "ids in bfloat16": ids_in_bfloat16,
    "length by counts": length_by_counts,
    "tokens per pass": tokens_per_pass,
    "ties of DSI": ties_of_dsi,
    "DSI over SI by rules": dsi_over_si_by_rules,
    "worth of a rule": worth_of_a_rule,
    "PEARL on its devices": pearl_on_its_devices,
    "DSI on its devices": dsi_on_its_devices,
}


def run(name: str, requests: int, settings: Mapping[str, Any]) -> Quantities:
    """The quantities of the experiment ``name``.

    Raises SpeclibError listing what is known, for an unknown name or setting.
    """
    if name not in RUNS:
        raise unknown_name(f"the audit has no run {name!r}", name, RUNS)
    try:
        return RUNS[name](requests, **settings)
    except TypeError as error:
        raise BadValue(f"run {name!r} with {dict(settings)}: {error}") from error
