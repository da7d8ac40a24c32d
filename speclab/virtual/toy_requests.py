"""Runs one virtual cell: a method's real code on the virtual clock, with toy models.

At each position, the probability that the toys agree is the cell's acceptance rate.
Request i uses the toys of seed i for every method, window and pair, so methods are
compared on the same agreements (common random numbers).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from speclab.traces.counts import Counts, counts_of
from speclab.traces.cut_traces import cut_at, longest_tail
from speclib.core.sampling import Coins, Sampler, Tokens
from speclib.data.latency import Latency
from speclib.models.toy import BOS, Toy
from speclib.trace.events import Trace
from speclib.worlds.batch_world import Seat
from speclib.worlds.devices import device_names
from speclib.worlds.virtual import Virtual
from speclib.worlds.virtual_batch import VirtualBatch
from speclib.worlds.world import World

IMMEDIATE = "immediate"  # what papers mean by "terminate"
TOKENS_BEYOND = 256  # room for drafts beyond the last committed token


@dataclass(frozen=True)
class ToyCell:
    """The settings that all requests of a virtual or emulated cell share.

    method    a method's function
    latency   how long the devices take
    alpha     probability that draft and target agree at a position
    tokens    number of tokens to commit per request
    settings  the method's settings (gamma, ...); ``servers``, if set, is also the
              number of target devices, which is one by default
    seed      the seed of the toys and the coins
    cancel    how the world handles a cancelled operation
    doubt     how well a virtual draft model predicts where it is wrong (see ``Toy``)
    batch     number of requests decoded at a time (see ``worlds.batch_world``)
    with_tail whether drafting continues past the last token (see ``counts.with_tail``)
    """

    method: Callable[..., None]
    latency: Latency
    alpha: float
    tokens: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    temperature: float = 0.0
    seed: int = 0
    cancel: str = IMMEDIATE
    doubt: float = 0.0
    batch: int = 1
    with_tail: bool = False

    @property
    def servers(self) -> int:
        """The number of target devices."""
        servers: int = self.settings.get("servers", 1)
        return servers

    def toy_settings(self, request: int) -> dict[str, Any]:
        """Arguments of ``Toy`` or ``ModelSpec`` that all toys of a request share."""
        return {
            "seed": self.seed * 100_003 + request,
            "context": self.tokens + TOKENS_BEYOND,
        }


def run_requests(cell: ToyCell, requests: int, *, first: int = 0) -> list[Counts]:
    """Runs ``requests`` requests of a cell, starting with number ``first``."""
    numbers = range(first, first + requests)
    if cell.batch > 1:
        traces = trace_in_lockstep(cell, numbers)
    else:
        traces = [trace_request(cell, request) for request in numbers]
    return [counts_of(trace) for trace in traces]


def trace_request(cell: ToyCell, request: int = 0) -> Trace:
    """Runs one request of a cell on the virtual clock."""
    world = open_world(cell, request)
    return decode_request(cell, request, world)


def trace_in_lockstep(cell: ToyCell, numbers: Sequence[int]) -> list[Trace]:
    """Runs a cell's requests in batches; a free seat takes the next request."""
    steps = VirtualBatch(cell.batch, cell.latency)
    waiting = iter(numbers)
    traces: dict[int, Trace] = {}

    def serve(seat: Seat) -> None:
        for number in waiting:
            steps.give_models(seat, toys_of(cell, number))
            traces[number] = decode_request(cell, number, seat)

    steps.run(serve)
    return [traces[number] for number in numbers]


def open_world(cell: ToyCell, request: int = 0) -> Virtual:
    """Opens a virtual world with one request's toys."""
    models = toys_of(cell, request)
    return Virtual(models, cell.latency, cancel=cell.cancel)


def toys_of(cell: ToyCell, request: int) -> dict[str, Toy]:
    """One request's toys by device: a draft, and identical targets.

    The draft agrees with the targets at each position with probability alpha.
    """
    toy_settings = cell.toy_settings(request)
    models = {}
    for name in device_names(cell.servers):
        if name.startswith("target"):
            models[name] = Toy(**toy_settings)
        else:
            models[name] = Toy(cell.alpha, **toy_settings, doubt=cell.doubt)
    return models


def decode_request(
    cell: ToyCell,
    request: int,
    world: World,
    on_commit: Callable[[Tokens], object] | None = None,
) -> Trace:
    """Runs one request of a cell in any world that has that request's toys.

    ``on_commit`` is called with each commit's tokens.
    """
    beyond = longest_tail(cell.settings.get("gamma", 0)) if cell.with_tail else 0
    world.begin(
        (BOS,),
        sampler=Sampler(cell.temperature),
        coins=Coins(cell.seed, request),
        limit=cell.tokens + beyond,
        on_commit=on_commit,
    )
    cell.method(world, **cell.settings)
    trace = world.end(alpha=cell.alpha, prompt=[BOS], **cell.settings)
    return cut_at(trace, cell.tokens) if beyond else trace
