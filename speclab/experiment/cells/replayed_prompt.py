"""One replayed prompt: what a measured one would take by the seconds of its passes.

The pair's own models write the text, undilated, so the tokens and the rounds are those
of the measured run, at a few per cent of its cost. A virtual clock goes by the seconds
that passes took on the machine (see ``timed_passes``). Models that remember what they
said let one method find what another one asked.

A draft in llama.cpp has no weights but the quantised ones of its large shape, and would
cost as much again. It is replayed in torch, unquantised, and now and then drafts
another token; then a replay is near and not exact.

What it does not know: what a busy machine, its caches and its messages do to one run
and not to another. A replay is never shown alone: see ``papers.two_phase``.

Knows no paper and no cache.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import pairwise

from speclib.data.pairs import Pair
from speclib.data.placement import Place
from speclib.decoding.decode import Result
from speclib.models.open_pair import OpenPair
from speclib.models.remembering import Memories
from speclib.trace.events import Trace
from speclib.worlds.devices import device_names
from speclib.worlds.virtual import Virtual
from speclib.worlds.world import World

from .measured_prompt import Conditions, Setting, decode_prompt
from .task_prompts import Prompt
from .timed_passes import MachineTimes

TOUCHING = 1e-9  # seconds: an operation begins where another one ends


def is_replayable(pair: Pair) -> bool:
    """Whether a pair's models are ours, so that a replay costs next to nothing.

    Others would have to be loaded once more, at their full size.
    """
    return all(
        model.is_toy or model.model.startswith("zoo/")
        for model in (pair.target, pair.draft)
    )


def pair_to_replay(pair: Pair) -> Pair:
    """The pair as it is replayed: in torch, on the CPU, by one thread.

    Every core has a process that replays, so a second thread would take another's.
    """
    draft, place = pair.draft, pair.place
    if draft.in_llamacpp:
        draft = draft.model_copy(update={"runtime": "torch"})
    on_cpu = Place(
        draft=("cpu",) * len(place.draft),
        target=("cpu",) * len(place.target),
        threads=1,
    )
    return pair.model_copy(update={"draft": draft, "place": on_cpu})


class Replay:
    """A pair on a virtual clock that goes by ``times``.

    ``memories``: of its models; ``servers``, ``cancel``: as where it is measured.
    """

    def __init__(
        self,
        opened: OpenPair,
        times: MachineTimes,
        memories: Memories,
        *,
        servers: int = 1,
        cancel: str = "after-op",
    ):
        models = memories.models(opened, device_names(servers))
        opened.set_threads()
        self.times = times
        self.world = Virtual(models, times.alone, cancel=cancel, opened=opened)
        self._worked_at_once: dict[Hashable, bool] = {}  # by what was run

    def decode(
        self, prompt: Prompt, setting: Setting, conditions: Conditions, request: int
    ) -> Result:
        """Decode a prompt, see ``by_own_times``."""

        def run(world: World) -> Result:
            return decode_prompt(world, prompt, setting, conditions, request)

        return self.by_own_times(run, setting)

    def by_own_times(
        self, run: Callable[[World], Result], of: Hashable = None
    ) -> Result:
        """What ``run`` gives by the seconds of passes alone.

        If two devices ever worked at once, what it gives by those of passes beside
        others. A setting, ``of``, mostly does what it did the last time: that is tried
        first.
        """
        expected = self._worked_at_once.get(of, False)
        result = self._run_by(expected, run)
        works = works_at_once(result.trace)
        if works is expected:
            return result
        self._worked_at_once[of] = works
        return self._run_by(works, run)

    def _run_by(self, at_once: bool, run: Callable[[World], Result]) -> Result:
        self.world.latency = self.times.together if at_once else self.times.alone
        return run(self.world)


def works_at_once(trace: Trace) -> bool:
    """Whether two devices ever worked at the same time."""
    events = sorted(trace.operations, key=lambda event: event.ts)
    for before, after in pairwise(events):
        if after.device != before.device and after.ts < before.end - TOUCHING:
            return True
    return False
