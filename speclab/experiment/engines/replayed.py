"""Replays of measured cells: from the cache, or run on every core.

A measured cell rests on a few prompts that were measured. Replayed are all prompts of
its task, by the same method, window and settings, on a virtual clock that goes by the
machine's own seconds. What can be compared, prompt by prompt, is compared on what both
have; what is said of the task comes from all (see ``papers.two_phase``).

Cells of the same models are replayed together, prompt by prompt: what one method has
asked a model, the next one finds.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import NamedTuple

from speclab.experiment.cells.measured_prompt import Conditions, Setting, with_replies
from speclab.experiment.cells.replayed_prompt import Replay, pair_to_replay
from speclab.experiment.cells.task_prompts import Prompt, count_prompts, load_prompts
from speclab.experiment.cells.timed_passes import MachineTimes
from speclab.experiment.pool import Cores
from speclab.experiment.spec import WorkerPool
from speclib import machine
from speclib.core.sampling import Tokens
from speclib.data.pairs import load_pair
from speclib.decoding.encode import encode
from speclib.errors import SpeclibError
from speclib.models.open_pair import OpenPair, open_pair
from speclib.models.remembering import Memories
from speclib.trace.rounds import sequence_choices

from .replayed_cell import ReplayedCell, ReplayedPrompt

FIRST_BLOCK = 4  # prompts; each block after it doubles what there is
LARGEST_BLOCK = 32


@dataclass(frozen=True)
class Work:
    """What a process replays: for each of ``runs`` the prompts ``numbers``.

    All have the same models and conditions.
    """

    conditions: Conditions
    numbers: range
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Run:
    """A setting in workers whose passes take so long."""

    pool: WorkerPool
    setting: Setting
    times: MachineTimes


class Replayed(NamedTuple):
    """What came of some work: of each run, its prompts in order, as far as it got.

    ``first``: the number of the first prompt.
    """

    first: int
    by_run: list[list[ReplayedPrompt]]


def replay(
    cells: Iterable[ReplayedCell],
    prompts: int,
    cores: Cores,
    seconds: float = inf,
    at_least: int = 0,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Bring each cell to so many prompts, or to all that its task has.

    What can be replayed together is, on all ``cores``, block by block. Once there are
    ``at_least`` so many prompts, a block has as many as will end within so many
    ``seconds``, by what those before it took. A cell that cannot be replayed gets none.
    """
    deadline = clock() + seconds
    for conditions, alike in _alike(cells):
        most = min(prompts, count_prompts(conditions.task, conditions.length))
        seconds_each = 0.0  # of a prompt; not known before the first block
        for block in _blocks(most):
            numbers = block
            if block.start >= at_least:
                left = deadline - clock()
                numbers = block[: _count_that_fits(left, seconds_each, len(block))]
            if not numbers:
                break
            begun = clock()
            done = _replay_block(conditions, alike, numbers, cores)
            if done:
                seconds_each = (clock() - begun) / done


def _count_that_fits(seconds: float, seconds_each: float, most: int) -> int:
    """How many things of ``seconds_each`` fit, ``most`` at most; 0 without any time."""
    if seconds <= 0:
        return 0
    return most if most * seconds_each <= seconds else int(seconds / seconds_each)


def _blocks(prompts: int) -> list[range]:
    """The numbers of so many prompts, in blocks that grow."""
    blocks = [range(min(FIRST_BLOCK, prompts))]
    while blocks[-1].stop < prompts:
        done = blocks[-1].stop
        blocks.append(range(done, min(prompts, done + min(done, LARGEST_BLOCK))))
    return blocks


def _alike(
    cells: Iterable[ReplayedCell],
) -> list[tuple[Conditions, list[ReplayedCell]]]:
    """Cells by what they must share to be replayed together."""
    groups: dict[Hashable, list[ReplayedCell]] = defaultdict(list)
    for cell in {cell.key: cell for cell in cells}.values():
        pair = load_pair(cell.pool.pair)
        models = str(pair.target.undilated), str(pair.draft.undilated)
        groups[models, cell.conditions].append(cell)
    return [(alike[0].conditions, alike) for alike in groups.values()]


def _replay_block(
    conditions: Conditions,
    cells: Sequence[ReplayedCell],
    numbers: range,
    cores: Cores,
) -> int:
    """Replay those prompts of a block that cells lack, on every core.

    A cell that has not come to the block does not come further. Returns how many
    prompts some cell lacked.
    """
    by_missing: dict[range, list[ReplayedCell]] = defaultdict(list)
    for cell in cells:
        done = len(cell.prompts)
        if numbers.start <= done < numbers.stop:
            by_missing[range(done, numbers.stop)].append(cell)

    for missing, alike in by_missing.items():
        runs = tuple(Run(cell.pool, cell.setting, cell.times) for cell in alike)
        share = -(-len(missing) // machine.cores())  # rounded up
        works = []
        for start in range(0, len(missing), share):
            works.append(Work(conditions, missing[start : start + share], runs))
        parts = sorted(cores.run(replay_work, works))
        for number, cell in enumerate(alike):
            cell.add(_joined(works, [part.by_run[number] for part in parts]))
    return max(map(len, by_missing), default=0)


def _joined(
    works: Sequence[Work], parts: Sequence[list[ReplayedPrompt]]
) -> list[ReplayedPrompt]:
    """The prompts of all parts, up to the first that is missing."""
    joined: list[ReplayedPrompt] = []
    for work, part in zip(works, parts, strict=True):
        joined += part
        if len(part) < len(work.numbers):
            break
    return joined


# -- in a process ----------------------------------------------------------------------
def replay_work(work: Work) -> Replayed:
    """Replay each prompt by all runs, one prompt after the other."""
    memories = memories_of_process()
    replays = [_open(run, memories) for run in work.runs]
    opened = replays[0].world.opened
    conditions = work.conditions
    asked = load_prompts(
        conditions.task, conditions.length, work.numbers.stop, opened.tokenizer
    )
    prompts = {}
    for number in work.numbers:
        prompts[number] = with_replies(
            replays[0].world, asked[number], conditions, number
        )
    texts = _texts_to_read(opened, memories, prompts, conditions)
    longest = max(run.setting.gamma or 0 for run in work.runs)

    by_run: list[list[ReplayedPrompt]] = [[] for _ in work.runs]
    failed: set[int] = set()
    for number, prompt in prompts.items():
        memories.forget()
        if number in texts:
            memories.read(opened, *texts[number], longest)
        for index, replay in enumerate(replays):
            if index in failed:
                continue
            try:
                result = replay.decode(
                    prompt, work.runs[index].setting, conditions, number
                )
            except SpeclibError:
                failed.add(index)
                continue
            choices = sequence_choices(result.trace)
            by_run[index].append(ReplayedPrompt(result.stats, choices))
    return Replayed(work.numbers.start, by_run)


@cache
def memories_of_process() -> Memories:
    """The models that this process has built, which stay for its next work."""
    return Memories()


@cache
def _opened(pair: str) -> OpenPair:
    return open_pair(pair_to_replay(load_pair(pair)))


def _open(run: Run, memories: Memories) -> Replay:
    return Replay(
        _opened(run.pool.pair),
        run.times,
        memories,
        servers=run.pool.servers,
        cancel=run.pool.cancel,
    )


def _texts_to_read(
    opened: OpenPair,
    memories: Memories,
    prompts: dict[int, Prompt],
    conditions: Conditions,
) -> dict[int, tuple[Tokens, Tokens]]:
    """Of each prompt its tokens, and what the target most likely writes after them.

    None where what is written is drawn by chance, and of toys.
    """
    if opened.is_toy or conditions.temperature:
        return {}
    tokens_of = {
        number: encode(prompt, opened, conditions.tokens)
        for number, prompt in prompts.items()
    }
    texts = memories.write(opened, list(tokens_of.values()), conditions.tokens)
    return {
        number: (tokens_of[number], text)
        for number, text in zip(tokens_of, texts, strict=True)
        if text
    }
