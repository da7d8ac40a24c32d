"""Methods beside each other and beside transformers, on real models of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from speclib.data import prompts
from speclib.data.pairs import Pair, load_pair
from speclib.decoding.decode import decode
from speclib.decoding.replay import replay
from speclib.decoding.transformers_baselines import External
from speclib.models import factory
from speclib.trace.metrics import stats, total
from speclib.worlds.processes import Processes

from .contention import PAIR, contention, latencies
from .races import Contestant, Race, race
from .rows import Row, Size, middle

METHODS = {"SD": "speculative", "PEARL": "pearl"}
WINDOWS = (0.6, 0.8, 1.0, 1.3, 1.6, 2.0, 2.6)  # of c: the gammas tried
TASK = "humaneval"
PLAIN, BOTH = "plain decoding", "plain decoding on both cores"
SAME, ASSISTED = "assisted", "transformers-assisted"
PEERS = {
    ASSISTED: {},
    f"{ASSISTED} on both cores": {"threads": 2},
    f"{ASSISTED} with packed linears": {"packed": True},
}
ENOUGH = 0.9  # e from which the speed-up's aim is a number


def stand_in(size: Size) -> Iterator[Row]:
    """On embedded/llama-7b-70b (float32, one core per device): PEARL and SD, each at its best
    gamma, plain decoding on one core and on both, and transformers' assisted generation with its
    defaults: with as many threads as one of our devices, with both cores, with our packed linears;
    and ``assisted``, its algorithm in our processes: what is left is how it is run.
    """
    yield from speedups(PAIR, size, peers=True)


def good_draft(size: Size) -> Iterator[Row]:
    """The same with the distilled draft, ladder/good; without transformers."""
    yield from speedups("ladder/good", size)


def speedups(name: str, size: Size, peers: bool = False) -> Iterator[Row]:
    """Ratios of tokens per second after the first commit, greedy, ``size.tokens`` tokens of each
    prompt: per repeat the sum over its prompts; the row is the median over repeats. A method's
    best gamma is sought beforehand, on other prompts."""
    pair = load_pair(name)
    texts = [p.input for p in prompts.load(TASK, 2 * size.prompts)]
    with ExitStack() as open_:
        world = open_.enter_context(Processes(pair))
        best = {
            n: best_gamma(world, m, texts[size.prompts :], size)
            for n, m in METHODS.items()
        }
        curves = latencies(world, size)
        contestants = {PLAIN: ours(world, "autoregressive")} | {
            n: ours(world, m, gamma=best[n]) for n, m in METHODS.items()
        }
        if peers:
            contestants[SAME] = ours(world, "assisted")
            wide = open_.enter_context(Processes(on_all_cores(pair)))
            contestants[BOTH] = ours(wide, "autoregressive")
            for n, how in PEERS.items():
                peer = open_.enter_context(
                    External(ASSISTED, pair, **{"packed": False} | how)
                )
                contestants[n] = lambda text, tokens, peer=peer: peer.decode(
                    text, max_new_tokens=tokens
                )
        race(contestants, texts[:1], tokens=8)  # warms up
        run = race(contestants, texts[: size.prompts], size.tokens, size.repeats)
    gammas = ", ".join(f"{n} gamma {g}" for n, g in best.items())
    yield from _ours(name, run, curves, contention(name, size)[0], gammas)
    yield from _others(name, run, gammas)
    yield from _overhead(name, run)


def ours(world, method: str, **gamma) -> Contestant:
    """``method`` in an open world."""
    return lambda text, tokens: decode(
        text, world=world, method=method, max_new_tokens=tokens, **gamma
    )


def best_gamma(world, method: str, texts, size: Size) -> int:
    """The fastest of WINDOWS x c."""
    gammas = sorted({max(1, round(world.ratio * share)) for share in WINDOWS})
    tried = race({g: ours(world, method, gamma=g) for g in gammas}, texts, size.tokens)
    return max(gammas, key=lambda g: tried.speeds(g)[0])


def on_all_cores(pair: Pair) -> Pair:
    """The pair with its target on the draft's places too, a thread for each."""
    place = factory.place(pair)
    everywhere = tuple(dict.fromkeys(place.of("draft") + place.of("target")))
    return pair.model_copy(
        update={
            "place": place.model_copy(
                update={
                    "target": everywhere,
                    "threads": place.threads * len(everywhere),
                }
            )
        }
    )


def predicted(run: Race, name: str, latency) -> float:
    """The decoding speed of a contestant's runs replayed on the virtual clock at ``latency``."""
    return total(
        stats(replay(r.trace, latency=latency)) for r in run.all(name)
    ).decode_speed


def _ours(name: str, run: Race, curves, e: float, gammas: str) -> Iterator[Row]:
    """Rows of our own methods. Where two devices slow each other down (e < 0.9) PEARL's aim is
    0.95 of what the virtual clock predicts with durations taken while both were busy."""
    alone, busy = curves
    yield Row(
        f"alpha of PEARL, {name}",
        run.alpha("PEARL"),
        "ratio",
        0.9,
        note=f"SD {run.alpha('SD'):.4g}; accepted / tested",
    )
    pearl = predicted(run, "PEARL", busy)
    ideal = pearl / predicted(run, PLAIN, busy)
    yield Row(
        f"PEARL over {PLAIN}, predicted, {name}",
        ideal,
        "ratio",
        note="virtual clock, "
        "durations of both while both were busy: target "
        f"{1000 * busy.target(1):.3g} ms, draft {1000 * busy.draft(1):.3g} ms",
    )
    yield Row(
        f"PEARL over {PLAIN}, predicted with {PLAIN} alone, {name}",
        pearl / predicted(run, PLAIN, alone),
        "ratio",
        note="the same, but plain decoding's "
        f"passes last as long as with an idle draft: {1000 * alone.target(1):.3g} ms",
    )
    aim = 2.2 if e >= ENOUGH else 0.95 * ideal
    why = f"e {e:.3f}" + (
        "" if e >= ENOUGH else " is below 0.9: aim 0.95 of predicted, not 2.2"
    )
    yield middle(
        f"PEARL over {PLAIN}, {name}",
        run.ratios("PEARL", PLAIN),
        "ratio",
        aim=aim,
        note=f"{gammas}; {why}; output the same in {run.same('PEARL', PLAIN)}",
    )
    yield middle(
        f"PEARL over SD, {name}", run.ratios("PEARL", "SD"), "ratio", gammas, aim=1.25
    )
    yield middle(
        f"SD over {PLAIN}, {name}",
        run.ratios("SD", PLAIN),
        "ratio",
        f"{gammas}; output the same in {run.same('SD', PLAIN)}",
    )


def _others(name: str, run: Race, gammas: str) -> Iterator[Row]:
    """Rows of what else was in the race: plain decoding on both cores, transformers."""
    if BOTH in run.results:
        yield middle(f"{BOTH} over one, {name}", run.ratios(BOTH, PLAIN), "ratio")
        yield middle(
            f"PEARL over {BOTH}, {name}", run.ratios("PEARL", BOTH), "ratio", gammas
        )
    for peer in (n for n in PEERS if n in run.results):
        note = f"{gammas}; its output that of {PLAIN} in {run.same(peer, PLAIN)}"
        for method, aim in ((SAME, None), ("SD", 1.1), ("PEARL", 1.4)):
            yield middle(
                f"{method} over {peer}, {name}",
                run.ratios(method, peer),
                "ratio",
                note,
                aim=None if "threads" in PEERS[peer] else aim,
            )


def _overhead(name: str, run: Race) -> Iterator[Row]:
    """The makespan of a measured run over that of its replay, where orchestration takes no time."""
    for method in (PLAIN, *METHODS):
        yield middle(
            f"measured over replayed makespan, {method}, {name}",
            [r.trace.makespan / replay(r.trace).makespan for r in run.all(method)],
            "ratio",
            aim=1.05,
            most=True,
        )
