"""Decodes several prompts at a time, in lock-step on the same devices.

Each request writes the same text as it would alone. Only the time differs: a pass for
many requests takes longer, but they all share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from speclib.arguments import AnyNumber, Count, Seed, Whole, checked, shown
from speclib.core.sampling import Coins
from speclib.data.latency import Latency
from speclib.data.pairs import Pair, pair_of
from speclib.errors import BadValue, naming_extras, unknown_name
from speclib.models.open_pair import open_pair
from speclib.worlds.batch_world import BatchWorld, Seat
from speclib.worlds.virtual_batch import VirtualPairBatch

from .auto_settings import RequestedSettings, requested_settings
from .decode import Result, check_settled, decode_in
from .open_world import load_latency_for
from .text_request import Least, TextOptions, TextRequest

WORLDS = ("virtual", "emulated", "processes")
Batch = Annotated[int, Whole(least=1, most=1024)]


@dataclass(frozen=True)
class BatchResult:
    """The results of requests that were decoded in lock-step.

    results  one for each request, in the order of the prompts
    seats    how many requests were decoded at a time
    seconds  the time from the beginning of the first step to the end of the last one
    """

    results: tuple[Result, ...]
    seats: int
    seconds: float

    @property
    def tokens(self) -> int:
        """The number of committed tokens, over all requests."""
        return sum(len(result.tokens) for result in self.results)

    @property
    def throughput(self) -> float:
        """Tokens per second of all requests together."""
        return self.tokens / self.seconds

    @property
    def speed(self) -> float:
        """Tokens per second of one request: all tokens over the sum of their times."""
        return self.tokens / sum(result.stats.seconds for result in self.results)


def in_lockstep(
    steps: BatchWorld, requests: int, decode_one: Callable[[Seat, int], Result]
) -> BatchResult:
    """Decodes all ``requests``; ``decode_one(seat, number)`` decodes one in a seat.

    A seat whose request ends takes the next waiting request, or stays empty.
    """
    waiting = iter(range(requests))
    results: dict[int, Result] = {}

    def serve(seat: Seat) -> None:
        for number in waiting:
            results[number] = decode_one(seat, number)

    steps.run(serve)
    in_order = tuple(results[number] for number in range(requests))
    return BatchResult(in_order, len(steps.seats), steps.now)


@checked
@naming_extras("decoding with real models")
def decode_batch(
    prompts: Any,
    *,
    pair: Pair | str | None = None,
    method: str = "pearl",
    gamma: Any = "auto",
    batch: Batch | None = None,
    max_new_tokens: Count = 64,
    temperature: AnyNumber = 0.0,
    top_k: Any = None,
    top_p: AnyNumber | None = None,
    repetition_penalty: AnyNumber | None = None,
    presence_penalty: AnyNumber = 0.0,
    frequency_penalty: AnyNumber = 0.0,
    min_new_tokens: Least | None = None,
    seed: Seed = 0,
    dtype: str = "auto",
    world: BatchWorld | str = "processes",
    latency: str | Latency | None = None,
    ignore_eos: bool = False,
    **settings: Any,
) -> BatchResult:
    """Decodes several prompts at a time, each exactly as the target alone would.

    >>> prompts = ["def gcd(a, b):", "def fib(n):", "def is_prime(n):"]
    >>> how = dict(pair="embedded/llama-7b-70b", world="virtual", max_new_tokens=4)
    >>> batch = speclib.decode_batch(prompts, batch=2, method="pearl", gamma=2, **how)
    >>> batch.seats, [len(result.tokens) for result in batch.results]
    (2, [4, 4, 4])

    prompts   a sequence of prompts, each as in ``decode``
    batch     how many are decoded at a time; None: all. If there are more prompts, a
              seat whose request ends takes the next one; when none is left, it stays
              empty
    gamma     "auto" is round(c); this c is for passes that are fed one token per seat
    world     "virtual", "emulated" or "processes" (see ``open_world``), or an open
              ``ProcessBatch``, whose pair and seats are used
    latency   replaces the pair's own latency, if the world uses one: a Latency, or a
              path under data/latency

    The other arguments are the same as in ``decode``. Request i writes what
    ``decode(prompts[i], request=i)`` writes.

    In a batch, trees and branches like SSD's are read path by path. So methods that
    draft trees, and Lookahead and Ouroboros, are exact but slow.

    In bfloat16 the target's passes must have a fixed shape (``Pair.with_fixed_rows``).
    Then greedy output equals plain decoding's with the same number of requests at a
    time.

    Raises SpeclibError, naming the wrong value, if there are no prompts, if the
    method's devices do not wait for each other (DSI), if a model does not run in torch,
    or if the requests do not fit into memory.
    """
    requested = requested_settings(method, gamma, settings, decode_batch)
    refuse_servers(requested)
    is_list = isinstance(prompts, Sequence) and not isinstance(prompts, str | bytes)
    if not is_list or not prompts:
        raise BadValue(f"prompts is {shown(prompts)}: give a list of prompts")
    durations: Latency | None = None
    if isinstance(world, BatchWorld):
        world.owner.check()
        check_settled(world.opened, world.dtype, pair, dtype)
        if latency is not None or batch not in (None, len(world.seats)):
            raise BadValue(
                f"this world was opened with {len(world.seats)} seats, and with its "
                "own latency: leave batch and latency out, or open another"
            )
        opened = world.opened
    elif world in WORLDS:
        opened = open_pair(pair_of(pair))
        durations = load_latency_for(world, opened.pair, latency)
    else:
        raise unknown_name(f"unknown world {world!r}", world, WORLDS)
    requested.check_pair(opened.pair)
    options = TextOptions(
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        repetition_penalty=repetition_penalty,
        presence_penalty=presence_penalty,
        frequency_penalty=frequency_penalty,
        min_new_tokens=min_new_tokens,
        ignore_eos=ignore_eos,
    )
    requests = []
    for number, prompt in enumerate(prompts):
        try:
            requests.append(options.request(prompt, opened, Coins(seed, number)))
        except BadValue as error:
            raise BadValue(f"prompts[{number}]: {error}") from None

    if isinstance(world, BatchWorld):
        return _decode_all(world, requests, requested)
    seats = min(batch or len(requests), len(requests))
    if world == "virtual":
        assert durations is not None  # load_latency_for would have raised
        steps = VirtualPairBatch(opened, seats, durations, dtype)
        return _decode_all(steps, requests, requested)

    from speclib.worlds.process_batch import ProcessBatch

    length = max(len(request.prompt) + request.limit for request in requests)
    with ProcessBatch(
        opened, seats, dtype=dtype, length=length, emulate=durations
    ) as devices:
        return _decode_all(devices, requests, requested)


def _decode_all(
    steps: BatchWorld, requests: Sequence[TextRequest], requested: RequestedSettings
) -> BatchResult:
    def decode_one(seat: Seat, number: int) -> Result:
        return decode_in(seat, requests[number], requested)

    steps.settle(requested.depends_on_c)
    return in_lockstep(steps, len(requests), decode_one)


def refuse_servers(requested: RequestedSettings) -> None:
    """Raises BadValue for a method with several target devices."""
    if "servers" in requested.counts:
        raise BadValue(
            f"method {requested.method!r} continues as soon as one of several devices "
            "is done, but in lock-step all devices wait for each other: decode the "
            "requests one at a time"
        )
