"""What a draft gains when ranks share its layers, and what their meetings cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from multiprocessing.connection import Connection
from statistics import median
from typing import Any, NamedTuple, TypeAlias

from speclib.core.sampling import Sampler
from speclib.data.pairs import Pair, load_pair
from speclib.errors import SpeclibError
from speclib.models.open_pair import open_pair
from speclib.models.rank import Rank
from speclib.worlds.worker import Failure, pin
from speclib.worlds.worker_process import Worker

from .bench_rows import BenchRow, Size, median_row

PAIR = "embedded/easyspec"

# Layers, width, heads, ffn: deep as Llama 3 8B; two thirds of a layer's weights are
# attention.
SHAPE = (32, 512, 8, 352)
LP = 4
CONTEXTS = (128, 1536)  # tokens cached: attention grows with them, MLPs don't
PATIENCE = 300  # seconds in which a worker must answer

FUZZY = "fuzzy"
FUZZY_ON_ONE = "fuzzy on one"
EXACT_ON_ONE = "exact on one"


class DraftPasses(NamedTuple):
    """Several drafting passes of one token each.

    ``seconds``: the median. ``waiting``: share of the time spent waiting for other
    ranks.
    """

    seconds: float
    waiting: float


class PassRequest(NamedTuple):
    """Asks for ``passes`` passes, ``lp`` layers at once, after ``context`` tokens."""

    lp: int
    context: int
    passes: int


PassesByWay = dict[str, list[DraftPasses]]  # FUZZY, ... -> one entry per repeat
Answer: TypeAlias = Callable[[PassRequest, Connection], DraftPasses]


def drafting(size: Size) -> Iterator[BenchRow]:
    """A fuzzy drafting pass on two ranks, beside a fuzzy and an exact one on one rank.

    The draft is that of embedded/easyspec, dilated to SHAPE. The three take turns,
    ``size.repeats`` times ``size.passes`` of each; ratios are of repeats' medians.
    """
    pair = load_pair(PAIR)
    dilated_draft = pair.draft.model_copy(update={"shape": SHAPE})
    pair = pair.model_copy(update={"draft": dilated_draft})

    with ExitStack() as open_drafters:
        on_two = open_drafters.enter_context(Drafter(pair))
        on_one = open_drafters.enter_context(Drafter(on_first_place(pair)))
        passes = {}
        for context in CONTEXTS:
            passes[context] = _time_in_turn(on_two, on_one, context, size)
    for context, passes_by_way in passes.items():
        yield from _rows(passes_by_way, context)


def on_first_place(pair: Pair) -> Pair:
    """The pair with its draft on one place."""
    place = pair.place.model_copy(update={"draft": pair.place.draft[:1]})
    return pair.model_copy(update={"place": place})


def _time_in_turn(
    on_two: Drafter, on_one: Drafter, context: int, size: Size
) -> PassesByWay:
    """Time passes of each way, in turns."""
    ways = {
        FUZZY: (on_two, LP),
        FUZZY_ON_ONE: (on_one, LP),
        EXACT_ON_ONE: (on_one, 1),
    }
    for drafter, lp in ways.values():
        drafter.time_passes(PassRequest(lp, context, passes=2))  # warms up

    passes: PassesByWay = {way: [] for way in ways}
    for _ in range(size.repeats):
        for way, (drafter, lp) in ways.items():
            request = PassRequest(lp, context, size.passes)
            passes[way].append(drafter.time_passes(request))
    return passes


def _rows(passes_by_way: PassesByWay, context: int) -> Iterator[BenchRow]:
    """Rows of one context: two ranks over each of the other ways, and their waiting."""
    where = f"{PAIR} with {SHAPE[0]} layers, {context} tokens cached"
    medians = []
    for way, passes in passes_by_way.items():
        milliseconds = 1000 * median(each.seconds for each in passes)
        medians.append(f"{way} {milliseconds:.3g} ms")

    fuzzy = passes_by_way[FUZZY]
    for way in (FUZZY_ON_ONE, EXACT_ON_ONE):
        repeats = zip(passes_by_way[way], fuzzy, strict=True)
        yield median_row(
            f"draft pass with {LP} layers at once on 2 ranks over {way}, {where}",
            [on_one.seconds / on_two.seconds for on_one, on_two in repeats],
            "ratio",
            ", ".join(medians),
        )
    yield median_row(
        f"share of that pass in which its ranks meet, {where}",
        [each.waiting for each in fuzzy],
        "ratio",
        "waiting for the other one included",
    )


class Drafter:
    """The draft of ``pair`` on its ranks, until the context ends."""

    def __init__(self, pair: Pair):
        self.worker = Worker(
            "drafter", pair, build_drafter, ranks=open_pair(pair).ranks("draft")
        )

    def __enter__(self) -> Drafter:
        self._receive()  # it is ready
        return self

    def time_passes(self, request: PassRequest) -> DraftPasses:
        """Let the draft do passes, and time them."""
        self.worker.pipe.send(request)
        passes: DraftPasses = self._receive()
        return passes

    def _receive(self) -> Any:
        answer = self.worker.receive(PATIENCE)
        if isinstance(answer, Failure):
            raise SpeclibError(f"the draft of {PAIR} failed: {answer.cause}")
        return answer

    def __exit__(self, *exc: object) -> None:
        self.worker.stop()


# -- in a worker -----------------------------------------------------------------------
def build_drafter(pair: Pair, rank: Rank | None = None) -> Answer | Any:
    """Build a rank of the draft on its place.

    Returns what answers a PassRequest with DraftPasses; on a rank that follows another,
    the model, which that other one leads.
    """
    opened = open_pair(pair)
    places = opened.place.of("draft")
    if rank is not None:
        places = places[rank.number :][:1]
    pin(places, pair.place.threads)
    model = opened.build("draft", rank=rank)
    if rank is not None and rank.number > 0:
        return model
    return partial(answer_request, model, MeetingClock(model))


class MeetingClock:
    """Stands in for the ranks of ``model`` and times their meetings from now on."""

    def __init__(self, model: Any):
        owner = getattr(model, "model", model)  # behind the leader of several
        self.ranks = owner.ranks
        self.rank, self.size = self.ranks.rank, self.ranks.size
        self.seconds = 0.0
        owner.ranks = self

    def gather(self, tensor: Any) -> Any:
        """What the ranks' own ``gather`` gives; adds the time that it took."""
        started = time.perf_counter()
        gathered = self.ranks.gather(tensor)
        self.seconds += time.perf_counter() - started
        return gathered


def answer_request(
    model: Any, clock: MeetingClock, request: PassRequest, pipe: Connection
) -> DraftPasses:
    """Time passes of one token, after one over the context, which does not count."""
    text = (1,) * request.context
    seconds, waited = [], []
    with model.drafting(request.lp, True):
        for drafted in range(request.passes + 1):
            started = time.perf_counter()
            clock.seconds = 0.0
            model.rows(text + (1,) * drafted, 0, Sampler())
            seconds.append(time.perf_counter() - started)
            waited.append(clock.seconds)
    return DraftPasses(
        seconds=median(seconds[1:]),
        waiting=sum(waited[1:]) / sum(seconds[1:]),
    )
