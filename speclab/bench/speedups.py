"""Compares methods with each other and with transformers, on real models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from speclab.peers.external import External
from speclib.data import prompts
from speclib.data.pairs import Pair, load_pair
from speclib.decoding.replay import replay
from speclib.trace.metrics import stats, total
from speclib.worlds.processes import Processes
from speclib.worlds.world import World

from .bench_rows import BenchRow, Size, join_notes, median_row
from .races import Contestant, Race, contestant, race

PAIR = "embedded/llama-7b-70b"  # the stand-in whose cost ratio c is about 5
METHODS = {"SD": "speculative", "PEARL": "pearl"}
WINDOWS = (0.6, 0.8, 1.0, 1.3, 1.6, 2.0, 2.6)  # windows to try, as multiples of c
TASK = "humaneval"
WARM_UP_TOKENS = 8

PLAIN = "plain decoding"
PEER = "transformers-assisted"
PEERS = {PEER: False, f"{PEER} with packed linears": True}  # whether we pack weights


def stand_in(size: Size) -> Iterator[BenchRow]:
    """Races PEARL, SD, plain decoding and transformers on embedded/llama-7b-70b.

    PEARL and SD each use their best window (float32, one core per device). Assisted
    generation in transformers uses its defaults, and as many threads as one of our
    devices. It runs once with its own linear layers and once with our packed ones.
    """
    yield from race_on_pair(PAIR, size, with_peers=True)


def good_draft(size: Size) -> Iterator[BenchRow]:
    """The same race with the distilled draft, ladder/good, without transformers."""
    yield from race_on_pair("ladder/good", size)


def race_on_pair(
    pair_name: str, size: Size, with_peers: bool = False
) -> Iterator[BenchRow]:
    """Ratios of greedy decoding speeds, in tokens per second after the first commit.

    A repeat's speed covers ``size.tokens`` tokens after each prompt; a row is the
    median over repeats. A method's best window is chosen beforehand, on other prompts.
    """
    pair = load_pair(pair_name)
    texts = [prompt.input for prompt in prompts.load(TASK, 2 * size.prompts)]
    raced_texts, trial_texts = texts[: size.prompts], texts[size.prompts :]
    with ExitStack() as open_worlds:
        world = open_worlds.enter_context(Processes(pair))
        windows = {}
        for name, method in METHODS.items():
            windows[name] = best_window(world, method, trial_texts, size)

        contestants = {PLAIN: contestant(world, "autoregressive")}
        for name, method in METHODS.items():
            contestants[name] = contestant(world, method, gamma=windows[name])
        if with_peers:
            contestants |= _peer_contestants(pair, open_worlds)
        race(contestants, texts[:1], tokens=WARM_UP_TOKENS)
        finished_race = race(contestants, raced_texts, size.tokens, size.repeats)

    yield from _comparisons(pair_name, finished_race, windows)
    yield from _overheads(pair_name, finished_race)


def best_window(world: World, method: str, texts: Sequence[Any], size: Size) -> int:
    """The fastest of the windows around c."""
    contestants = {}
    for gamma in sorted({max(1, round(world.ratio * share)) for share in WINDOWS}):
        contestants[str(gamma)] = contestant(world, method, gamma=gamma)
    trial = race(contestants, texts, size.tokens)
    fastest = max(contestants, key=lambda gamma: trial.speeds(gamma)[0])
    return int(fastest)


def _peer_contestants(pair: Pair, open_worlds: ExitStack) -> dict[str, Contestant]:
    """Transformers' assisted generation, opened in ``open_worlds``."""
    contestants = {}
    for name, packed in PEERS.items():
        peer = open_worlds.enter_context(External(PEER, pair, packed=packed))
        contestants[name] = _peer_contestant(peer)
    return contestants


def _peer_contestant(peer: External) -> Contestant:
    def answer(text: Any, tokens: int) -> Any:
        return peer.decode(text, max_new_tokens=tokens)

    return answer


def _comparisons(
    pair_name: str, finished_race: Race, windows: dict[str, int]
) -> Iterator[BenchRow]:
    """The acceptance rate, and speed ratios between contestants.

    PEARL's aim over plain decoding is 95 % of its speed-up without orchestration costs.
    """
    yield BenchRow(
        f"alpha of PEARL, {pair_name}",
        finished_race.alpha("PEARL"),
        "ratio",
        0.9,
        note=f"SD {finished_race.alpha('SD'):.4g}; accepted / tested",
    )
    ideal = _replayed_speed(finished_race, "PEARL") / _replayed_speed(
        finished_race, PLAIN
    )
    same = finished_race.same_outputs("PEARL", PLAIN)
    note = f"aim: 0.95 of the runs' replays; output the same in {same}"
    wanted = [("PEARL", PLAIN, 0.95 * ideal, note), ("PEARL", "SD", 1.25, "")]
    for peer in PEERS:
        if peer in finished_race.results:
            same = finished_race.same_outputs(peer, PLAIN)
            note = f"its output that of {PLAIN} in {same}"
            wanted += [("SD", peer, 1.1, note), ("PEARL", peer, 1.4, note)]

    gammas = ", ".join(f"{name} gamma {gamma}" for name, gamma in windows.items())
    for name, over, aim, note in wanted:
        yield median_row(
            f"{name} over {over}, {pair_name}",
            finished_race.ratios(name, over),
            "ratio",
            join_notes(gammas, note),
            aim=aim,
        )


def _replayed_speed(finished_race: Race, name: str) -> float:
    """A contestant's tokens per second in replays with the recorded pass times."""
    replays = [replay(answer.trace) for answer in finished_race.answers(name)]
    return total(map(stats, replays)).decode_speed


def _overheads(pair_name: str, finished_race: Race) -> Iterator[BenchRow]:
    """A run's makespan over that of a replay in which orchestration takes no time."""
    for name in (PLAIN, *METHODS):
        ratios = []
        for answer in finished_race.answers(name):
            ratios.append(answer.trace.makespan / replay(answer.trace).makespan)
        yield median_row(
            f"measured over replayed makespan, {name}, {pair_name}",
            ratios,
            "ratio",
            aim=1.05,
            at_most=True,
        )
