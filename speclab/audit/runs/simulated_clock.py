"""Experiments on the simulated clock: the methods' own code, with printed latencies.

Each number has a 95 % interval over the simulated requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from statistics import fmean
from typing import Any

from speclab.audit.quantity import Quantities, Quantity
from speclab.mutants import AS_PUBLISHED, MUTANTS
from speclab.papers.load_papers import load_paper
from speclab.papers.numbers import Number, divide, mean_number
from speclab.traces.cut_traces import cut_at, longest_tail
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency, load_latency
from speclib.decoding.simulate import CONTEXT, TEXT, script_of, simulate
from speclib.methods import METHODS
from speclib.models.toy import BOS, Toy
from speclib.trace.metrics import Stats, stats, total
from speclib.worlds.virtual import Virtual


def _quantity(number: Number) -> Quantity:
    """A simulated number with its 95 % interval."""
    return Quantity(number.value, *number.interval)


def _statistic(runs: Sequence[Stats], statistic: Callable[[Stats], float]) -> Quantity:
    """A statistic of the sums over all requests."""
    without = {}
    for left_out in range(len(runs)):
        others = [*runs[:left_out], *runs[left_out + 1 :]]
        without[str(left_out)] = statistic(total(others)) if others else nan
    return _quantity(Number(statistic(total(runs)), without, n=len(runs)))


def _runs(method: str, requests: int, **what: Any) -> list[Stats]:
    """The statistics of so many simulated requests."""
    runs = []
    for seed in range(requests):
        runs.append(simulate(method, seed=seed, **what).stats)
    return runs


def _ratio(tops: Sequence[float], bottoms: Sequence[float]) -> Number:
    """The ratio of two sums over the same requests."""
    return divide(mean_number(tops), mean_number(bottoms))


def unverified_tokens(
    requests: int, method: str, tokens: int, **what: Any
) -> Quantities:
    """What is added by counting tokens that no target pass has tested.

    "published over committed" is the speed as the published code counts, over that of
    committed tokens; both with the time to the first token.
    """
    gamma = simulate(method, **what).trace.meta["gamma"]
    longer = what | {"tokens": tokens + longest_tail(gamma)}
    runs = []
    for seed in range(requests):
        trace = simulate(method, seed=seed, **longer).trace
        runs.append(stats(cut_at(trace, tokens)))
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
    mutant = MUTANTS[mistake]
    speeds = []
    for method in (mutant.mistaken, mutant.right):
        runs = []
        for seed in range(requests):
            runs.append(_run_on_clock(method, latency, alpha, gamma, tokens, seed))
        tokens_of_runs = [run.tokens for run in runs]
        speeds.append(_ratio(tokens_of_runs, [run.seconds for run in runs]))
    with_mistake, without = speeds
    return {"with the mistake over without": _quantity(divide(with_mistake, without))}


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
        seconds.append([run.seconds for run in runs])
    return {"paper's lookahead over 1": _quantity(_ratio(*seconds))}


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
        seconds[name] = [run.seconds for run in runs]

    quantities = {}
    for name, values in seconds.items():
        quantities[name] = Quantity.exact(fmean(values))
    over_above = _ratio(seconds["at c"], seconds["just above"])
    return quantities | {"at c over just above": _quantity(over_above)}


def passes_of_lookahead_decoding(
    requests: int, tokens: int, text: str = TEXT
) -> Quantities:
    """Target passes of lookahead decoding, as its published code takes them and ours.

    The target writes the same text in both.
    """
    methods = {"ours": METHODS["lookahead"], "as published": AS_PUBLISHED["lookahead"]}
    quantities = {}
    for name, method in methods.items():
        runs = []
        for seed in range(requests):
            runs.append(_write_text(method, text, tokens, seed))
        passes = _statistic(runs, lambda run: run.target_runs / run.requests)
        quantities[f"passes, {name}"] = passes
    return quantities


def _write_text(
    method: Callable[..., None], text: str, tokens: int, seed: int
) -> Stats:
    """One request whose target writes ``text`` over and over; no draft is asked."""
    script = script_of(text)
    writer = Toy(None, len(script.words), seed, script.ids, CONTEXT)
    models = {"draft": writer, "target": writer}
    world = Virtual(models, Latency.ratio(c=1.0, target=1.0))
    world.begin((BOS,), sampler=Sampler(), coins=Coins(seed), limit=tokens)
    method(world)
    return stats(world.end())
