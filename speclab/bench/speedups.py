"""Methods beside each other and beside transformers, on real models of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from speclab.peers.external import External
from speclib.data import prompts
from speclib.data.latency import Latency
from speclib.data.pairs import Pair, load_pair
from speclib.decoding.decode import decode
from speclib.decoding.replay import replay
from speclib.models.open_pair import open_pair
from speclib.trace.metrics import stats, total
from speclib.worlds.processes import Processes
from speclib.worlds.world import World

from .bench_rows import BenchRow, Size, median_row
from .contention import PAIR, Latencies, measure_contention, measure_latencies
from .races import Contestant, Race, race

METHODS = {"SD": "speculative", "PEARL": "pearl"}
WINDOWS = (0.6, 0.8, 1.0, 1.3, 1.6, 2.0, 2.6)  # of c: the windows tried
TASK = "humaneval"
ENOUGH = 0.9  # e from which the speed-up's aim is a number
WARM_UP_TOKENS = 8

PLAIN = "plain decoding"
PLAIN_ON_BOTH = "plain decoding on both cores"
ASSISTED = "assisted"  # transformers' algorithm in our processes
PEER = "transformers-assisted"
PEERS: dict[str, dict[str, Any]] = {
    PEER: {},
    f"{PEER} on both cores": {"threads": 2},
    f"{PEER} with packed linears": {"packed": True},
}


def stand_in(size: Size) -> Iterator[BenchRow]:
    """On embedded/llama-7b-70b: our methods, plain decoding, and transformers.

    PEARL and SD each have their best window (float32, one core per device). Plain
    decoding has one core, and both. The assisted generation of transformers has its
    defaults: with as many threads as one of our devices, with both cores, with our
    packed linear layers. ``assisted`` is its algorithm in our processes: what is left
    between the two is how it is run.
    """
    yield from race_on_pair(PAIR, size, with_peers=True)


def good_draft(size: Size) -> Iterator[BenchRow]:
    """The same with the distilled draft, ladder/good; without transformers."""
    yield from race_on_pair("ladder/good", size)


def race_on_pair(
    pair_name: str, size: Size, with_peers: bool = False
) -> Iterator[BenchRow]:
    """Ratios of tokens per second after the first commit, greedy.

    A speed is that of ``size.tokens`` tokens of each prompt, per repeat over all
    prompts; a row is the median over repeats. A method's best window is sought
    beforehand, on other prompts.
    """
    pair = load_pair(pair_name)
    texts = [prompt.input for prompt in prompts.load(TASK, 2 * size.prompts)]
    raced_texts, trial_texts = texts[: size.prompts], texts[size.prompts :]
    with ExitStack() as open_worlds:
        world = open_worlds.enter_context(Processes(pair))
        pair = world.pair  # its draft has the shape that was chosen for it here
        windows = {}
        for name, method in METHODS.items():
            windows[name] = best_window(world, method, trial_texts, size)
        latencies = measure_latencies(world, size)

        contestants = _our_contestants(world, windows)
        if with_peers:
            contestants |= _peer_contestants(world, pair, open_worlds)
        race(contestants, texts[:1], tokens=WARM_UP_TOKENS)
        finished_race = race(contestants, raced_texts, size.tokens, size.repeats)

    report = RaceReport(pair_name, finished_race, windows)
    e = measure_contention(pair_name, size).e
    yield from report.our_rows(latencies, e)
    yield from report.peer_rows()
    yield from report.overhead_rows()


def best_window(world: World, method: str, texts: Sequence[Any], size: Size) -> int:
    """The fastest of the windows about c."""
    contestants = {}
    for gamma in sorted({max(1, round(world.ratio * share)) for share in WINDOWS}):
        contestants[str(gamma)] = contestant(world, method, gamma=gamma)
    trial = race(contestants, texts, size.tokens)
    fastest = max(contestants, key=lambda gamma: trial.speeds(gamma)[0])
    return int(fastest)


def contestant(world: World, method: str, **settings: Any) -> Contestant:
    """A method in an open world."""

    def answer(text: Any, tokens: int) -> Any:
        return decode(
            text, world=world, method=method, max_new_tokens=tokens, **settings
        )

    return answer


def _our_contestants(world: World, windows: dict[str, int]) -> dict[str, Contestant]:
    contestants = {PLAIN: contestant(world, "autoregressive")}
    for name, method in METHODS.items():
        contestants[name] = contestant(world, method, gamma=windows[name])
    return contestants


def _peer_contestants(
    world: World, pair: Pair, open_worlds: ExitStack
) -> dict[str, Contestant]:
    """Transformers' ways to decode, its algorithm in our world, plain on both cores.

    What they need is opened in ``open_worlds``.
    """
    on_both_cores = open_worlds.enter_context(Processes(on_all_cores(pair)))
    contestants = {
        ASSISTED: contestant(world, "assisted"),
        PLAIN_ON_BOTH: contestant(on_both_cores, "autoregressive"),
    }
    for name, options in PEERS.items():
        peer = External(PEER, pair, **({"packed": False} | options))
        open_worlds.enter_context(peer)
        contestants[name] = _peer_contestant(peer)
    return contestants


def _peer_contestant(peer: External) -> Contestant:
    def answer(text: Any, tokens: int) -> Any:
        return peer.decode(text, max_new_tokens=tokens)

    return answer


def on_all_cores(pair: Pair) -> Pair:
    """The pair with its target on the draft's places too, a thread for each."""
    place = open_pair(pair).place
    places = tuple(dict.fromkeys(place.of("draft") + place.of("target")))
    wide_place = place.model_copy(
        update={"target": places, "threads": place.threads * len(places)}
    )
    return pair.model_copy(update={"place": wide_place})


def predicted_speed(finished_race: Race, name: str, latency: Latency) -> float:
    """A contestant's tokens per second, its runs replayed on the virtual clock."""
    replayed = []
    for answer in finished_race.answers(name):
        replayed.append(stats(replay(answer.trace, latency=latency)))
    return total(replayed).decode_speed


class RaceReport:
    """The rows of a race on one pair."""

    def __init__(self, pair_name: str, finished_race: Race, windows: dict[str, int]):
        self.pair_name = pair_name
        self.race = finished_race
        self.gammas = ", ".join(f"{name} gamma {g}" for name, g in windows.items())

    def our_rows(self, latencies: Latencies, e: float) -> Iterator[BenchRow]:
        """Rows of our own methods.

        Where two devices slow each other down (e < 0.9), PEARL's aim is 0.95 of what
        the virtual clock predicts with durations that were taken while both were busy.
        """
        yield BenchRow(
            f"alpha of PEARL, {self.pair_name}",
            self.race.alpha("PEARL"),
            "ratio",
            0.9,
            note=f"SD {self.race.alpha('SD'):.4g}; accepted / tested",
        )
        alone, busy = latencies
        pearl = predicted_speed(self.race, "PEARL", busy)
        predicted_ratio = pearl / predicted_speed(self.race, PLAIN, busy)
        yield BenchRow(
            f"PEARL over {PLAIN}, predicted, {self.pair_name}",
            predicted_ratio,
            "ratio",
            note="virtual clock, durations of both while both were busy: target "
            f"{1000 * busy.target(1):.3g} ms, draft {1000 * busy.draft(1):.3g} ms",
        )
        yield BenchRow(
            f"PEARL over {PLAIN}, predicted with {PLAIN} alone, {self.pair_name}",
            pearl / predicted_speed(self.race, PLAIN, alone),
            "ratio",
            note="the same, but plain decoding's passes last as long as with an idle "
            f"draft: {1000 * alone.target(1):.3g} ms",
        )

        if e >= ENOUGH:
            aim = 2.2
            reason = f"e {e:.3f}"
        else:
            aim = 0.95 * predicted_ratio
            reason = f"e {e:.3f} is below 0.9: aim 0.95 of predicted, not 2.2"
        same = self.race.same_outputs("PEARL", PLAIN)
        note = f"{self.gammas}; {reason}; output the same in {same}"
        yield self._ratio("PEARL", PLAIN, note, aim=aim)
        yield self._ratio("PEARL", "SD", self.gammas, aim=1.25)
        same = self.race.same_outputs("SD", PLAIN)
        yield self._ratio("SD", PLAIN, f"{self.gammas}; output the same in {same}")

    def peer_rows(self) -> Iterator[BenchRow]:
        """Rows of the others: plain decoding on both cores, transformers."""
        if PLAIN_ON_BOTH in self.race.results:
            yield median_row(
                f"{PLAIN_ON_BOTH} over one, {self.pair_name}",
                self.race.ratios(PLAIN_ON_BOTH, PLAIN),
                "ratio",
            )
            yield self._ratio("PEARL", PLAIN_ON_BOTH, self.gammas)
        for peer, options in PEERS.items():
            if peer in self.race.results:
                same = self.race.same_outputs(peer, PLAIN)
                note = f"{self.gammas}; its output that of {PLAIN} in {same}"
                has_more_cores = "threads" in options
                for method, aim in ((ASSISTED, None), ("SD", 1.1), ("PEARL", 1.4)):
                    yield self._ratio(
                        method, peer, note, aim=None if has_more_cores else aim
                    )

    def overhead_rows(self) -> Iterator[BenchRow]:
        """A run's makespan over its replay's, where orchestration takes no time."""
        for name in (PLAIN, *METHODS):
            ratios = []
            for answer in self.race.answers(name):
                ratios.append(answer.trace.makespan / replay(answer.trace).makespan)
            yield median_row(
                f"measured over replayed makespan, {name}, {self.pair_name}",
                ratios,
                "ratio",
                aim=1.05,
                at_most=True,
            )

    def _ratio(
        self, name: str, over: str, note: str, aim: float | None = None
    ) -> BenchRow:
        """A contestant's speed over another's."""
        return median_row(
            f"{name} over {over}, {self.pair_name}",
            self.race.ratios(name, over),
            "ratio",
            note,
            aim=aim,
        )
