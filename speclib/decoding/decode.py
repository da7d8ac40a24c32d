"""``decode``: one prompt, one method, one world, one result."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from speclib.arguments import AnyNumber, Count, Seed, Whole, checked
from speclib.core.sampling import Coins, Sampler
from speclib.core.settings import Role
from speclib.data.latency import Durations, load_latency
from speclib.data.pairs import Pair, load_pair
from speclib.errors import BadValue, naming_extras, unknown_name
from speclib.methods import METHODS
from speclib.models import preflight
from speclib.models.dtypes import TORCH_NAMES, check_dtype
from speclib.models.open_pair import OpenPair, open_pair
from speclib.trace.events import Trace
from speclib.trace.metrics import Stats, stats
from speclib.worlds.cost_ratio import CostRatio
from speclib.worlds.devices import Servers, device_names
from speclib.worlds.virtual import Virtual
from speclib.worlds.world import World

from .auto_settings import MOST_SERVERS, RequestedSettings, request_settings
from .choose_sampler import AskedSampling
from .encode import encode, token_texts

if TYPE_CHECKING:
    from speclib.worlds.cluster.cluster_world import Cluster
    from speclib.worlds.processes import Processes

WORLDS = ("virtual", "emulated", "processes", "cluster")
Least: TypeAlias = Annotated[int, Whole(least=0)]
OnCommit: TypeAlias = Callable[[tuple[int, ...]], object]


@dataclass
class Result:
    """What a run gave.

    ``text`` and ``tokens`` are the new, committed ones. ``trace`` is what every device
    did, ``stats`` what that adds up to. ``pieces``: token id -> its text, for every
    token that the trace mentions. ``cost_ratio``: c = t_target / t_draft and how sure
    it is, where a setting that was "auto" rests on it. ``batch``: what all requests
    gave, of one that was decoded beside others.
    """

    text: str
    tokens: tuple[int, ...]
    stats: Stats
    trace: Trace
    pieces: dict[int, str]
    cost_ratio: CostRatio | None = None
    batch: BatchResult | None = None


@dataclass(frozen=True)
class BatchResult:
    """What requests in lock-step gave.

    results  of each request, in the order in which they were given
    seats    how many were decoded at a time
    seconds  from the first step to the end of the last
    """

    results: tuple[Result, ...]
    seats: int
    seconds: float

    @property
    def tokens(self) -> int:
        """Committed tokens of all requests."""
        return sum(len(result.tokens) for result in self.results)

    @property
    def throughput(self) -> float:
        """Tokens per second, of all requests together."""
        return self.tokens / self.seconds

    @property
    def speed(self) -> float:
        """Tokens per second of a request: all tokens over the seconds of all."""
        return self.tokens / sum(result.stats.seconds for result in self.results)


# -- worlds ----------------------------------------------------------------------------
@checked
@naming_extras("a world of real models")
def open_world(
    world: str,
    pair: Pair,
    *,
    dtype: str = "auto",
    latency: str | Durations | None = None,
    servers: Servers = 1,
    cancel: str | None = None,
) -> World:
    """Opens a world of ``pair``, with ``servers`` devices for its target.

    ``world`` is one of

    - "virtual": tokens are computed inline and undilated, and operations last as long
      as the pair's latency file says; where the pair says how many threads a device
      has, torch takes no more in this process, until another pair is opened;
    - "emulated": the same tokens and durations, in worker processes that wait;
    - "processes": one worker process per device, on the wall clock;
    - "cluster": the same on the machines of a Ray cluster (see ``Cluster``).

    ``latency``: durations, or a path under data/latency, instead of the pair's own.
    ``cancel``: when
    work ends that nobody wants any more, see World; None is "immediate" in "virtual"
    and "after-op" in worker processes. Close the world when you are done.
    """
    simulated_latency = load_latency_for(world, pair, latency)
    opened = open_pair(pair)
    return _open(world, opened, simulated_latency, servers, dtype, cancel)


def load_latency_for(
    world: str, pair: Pair, latency: str | Durations | None = None
) -> Durations | None:
    """The durations that a world goes by; None where they are measured.

    ``latency``: durations, or the name of a file, instead of the pair's own.
    """
    if world not in WORLDS:
        raise unknown_name(
            f"unknown world {world!r}", world, WORLDS, "Or give an open World"
        )
    if world in ("processes", "cluster"):
        return None
    if latency is not None and not isinstance(latency, str):
        return latency
    name = pair.latency if latency is None else latency
    if name is None:
        raise BadValue(
            f"pair {pair.name!r} names no latency file, which world={world!r} needs: "
            'give it latency = "..." (a path under data/latency)'
        )
    return load_latency(name)


def _open(
    world: str,
    opened: OpenPair,
    latency: Durations | None,
    servers: int,
    dtype: str,
    cancel: str | None,
) -> World:
    """Opens the world; ``latency`` is the one it goes by (see ``load_latency_for``)."""
    check_dtype(dtype)
    is_simulated = world == "virtual"
    if cancel is None:
        cancel = "immediate" if is_simulated else "after-op"
    if world == "cluster":
        cluster = _cluster_class()
        return cluster(opened, servers=servers, cancel=cancel, dtype=dtype)
    if latency is None or world == "emulated":
        processes = _processes_class(world)
        return processes(
            opened,
            servers=servers,
            cancel=cancel,
            dtype=dtype,
            emulate=latency,
        )

    preflight.check_gpus(opened, servers)
    models = {}
    for name in device_names(servers):
        role: Role = "draft" if name == "draft" else "target"
        models[name] = opened.build(role, dtype, dilated=False)
    opened.set_threads()
    opened_world = Virtual(models, latency, cancel=cancel, opened=opened)
    opened_world.dtype = dtype
    return opened_world


def _cluster_class() -> type[Cluster]:
    """Cluster, which is imported where it is used: Ray is an extra."""
    with naming_extras("world='cluster'"):
        from speclib.worlds.cluster.cluster_world import Cluster
    return Cluster


def _processes_class(world: str) -> type[Processes]:
    """Processes, which is imported where it is used: a browser's Python has none."""
    with naming_extras(f"world={world!r}"):
        from speclib.worlds.processes import Processes
    return Processes


# -- one prompt ------------------------------------------------------------------------
@dataclass(frozen=True)
class Task:
    """What is decoded, in whichever world: token ids, and how the next are chosen."""

    prompt: tuple[int, ...]
    sampler: Sampler
    coins: Coins
    max_new_tokens: int
    ignore_eos: bool
    on_commit: OnCommit | None


@checked
@naming_extras("decoding with real models")
def decode(
    prompt: Any,
    *,
    pair: Pair | str | None = None,
    method: str = "pearl",
    gamma: Any = "auto",
    max_new_tokens: Count = 64,
    temperature: AnyNumber = 0.0,
    top_k: Any = None,
    top_p: AnyNumber | None = None,
    repetition_penalty: AnyNumber | None = None,
    presence_penalty: AnyNumber = 0.0,
    frequency_penalty: AnyNumber = 0.0,
    min_new_tokens: Least | None = None,
    seed: Seed = 0,
    request: Seed = 0,
    dtype: str = "auto",
    world: World | str = "processes",
    cancel: str | None = None,
    ignore_eos: bool = False,
    on_commit: OnCommit | None = None,
    **settings: Any,
) -> Result:
    """Decodes ``prompt`` with ``method``, exactly as the target alone would.

    prompt          a str, or chat messages
    pair            a Pair, or the name of one under data/pairs
    gamma           the draft length; "auto" is round(c), where c = t_target / t_draft
                    as this world measures it, and "c-2" two less. The result says how
                    sure c is
    temperature, top_k, top_p
                    see Sampler; temperature 0 is greedy. None: as the target's
                    generation_config.json says, else off
    repetition_penalty, presence_penalty, frequency_penalty
                    see Penalties. None: as that file says, else 1 (off)
    min_new_tokens  no end token is among the first so many. None: as that file says,
                    else 0
    seed, request   key the randomness: the same two draw the same coins
    world           "virtual", "emulated", "processes" or "cluster" (see
                    ``open_world``), or an open World, whose pair is used
    cancel          when work ends that nobody wants any more, see ``open_world``
    ignore_eos      takes an end token like any other, so that all outputs have the same
                    length. Else a text ends at the first of the target's end tokens,
                    of which a chat model has several
    on_commit       is called with the tokens of every commit, for streaming
    settings        go to the method; its ``lookahead`` and ``servers``, too, are "auto"
                    where they are left out (see ``auto_settings``)

    Raises SpeclibError naming the value that is wrong and what would be right.
    """
    requested = request_settings(method, gamma, settings, decode)
    coins = Coins(seed, request)
    asked = AskedSampling(
        temperature,
        top_k,
        top_p,
        repetition_penalty,
        presence_penalty,
        frequency_penalty,
        min_new_tokens,
    )

    def task_for(opened: OpenPair) -> Task:
        requested.check_pair(opened.pair)
        prompt_ids = encode(prompt, opened, max_new_tokens)
        sampler = asked.sampler(opened, len(prompt_ids), max_new_tokens)
        return Task(prompt_ids, sampler, coins, max_new_tokens, ignore_eos, on_commit)

    if isinstance(world, World):
        world.owner.check()
        check_settled(world.opened, world.dtype, pair, dtype)
        _check_policy(world, cancel)
        return decode_in(world, task_for(_pair_in(world)), requested)

    # What is wrong is said before any worker process is started.
    described = pair_of(pair)
    latency = load_latency_for(world, described)
    opened = open_pair(described)
    task = task_for(opened)
    servers = _servers_for(requested, latency, world, described)
    with _open(world, opened, latency, servers, dtype, cancel) as devices:
        return decode_in(devices, task, requested)


def pair_of(pair: Pair | str | None) -> Pair:
    """The pair that a user named or described."""
    if pair is None:
        raise BadValue(
            "no pair given: pair='embedded/llama-7b-70b', for instance, or "
            "speclib.pair(target=..., draft=...)"
        )
    return load_pair(pair) if isinstance(pair, str) else pair


def _pair_in(world: World) -> OpenPair:
    """The pair that an open world was opened for."""
    opened: OpenPair | None = world.opened
    if opened is None:
        raise BadValue(
            "this world has models but no pair, so there is no tokenizer: open it with "
            "speclib.open_world(...) or speclib.Processes(pair)"
        )
    return opened


def check_settled(
    opened: OpenPair | None, own_dtype: str, pair: Pair | str | None, dtype: str
) -> None:
    """Raises BadValue for a pair or a dtype that is not the one of an open world."""
    if pair is not None and opened is not None:
        asked, own = pair_of(pair), opened.pair
        if asked != own:
            raise BadValue(
                f"pair is {asked.name!r}, but this world was opened for {own.name!r}"
                f"{_with_differences(asked, own)}: leave pair out, or open a world "
                "for it"
            )
    if dtype != "auto":
        check_dtype(dtype)
        if TORCH_NAMES[dtype] != TORCH_NAMES[own_dtype]:
            raise BadValue(
                f"dtype is {dtype!r}, but this world was opened with "
                f"{TORCH_NAMES[own_dtype]!r}: leave dtype out, or open a world with it"
            )


def _with_differences(asked: Pair, own: Pair) -> str:
    """Where two pairs of one name differ, in brackets."""
    if asked.name != own.name:
        return ""
    fields = [
        name for name in Pair.model_fields if getattr(asked, name) != getattr(own, name)
    ]
    return f" with another {' and '.join(fields)}"


def _check_policy(world: World, cancel: str | None) -> None:
    """Raises BadValue if ``cancel`` is another policy than the open world's own."""
    if cancel not in (None, world.cancel_policy):
        raise BadValue(
            f"cancel is {cancel!r}, but this world was opened with "
            f"{world.cancel_policy!r}: open it with the other, or leave it out"
        )


def _servers_for(
    requested: RequestedSettings, latency: Durations | None, world: str, pair: Pair
) -> int:
    """How many target servers the method's settings ask for in a world."""

    def most_on_this_machine() -> int:
        return max(1, (os.cpu_count() or 2) - 1)

    def most_in_cluster() -> int:
        return _cluster_class().most_targets(pair, MOST_SERVERS)

    if latency is not None:
        return requested.servers_at(latency.c)
    if world == "cluster":
        return requested.servers_up_to(most_in_cluster)
    return requested.servers_up_to(most_on_this_machine)


def decode_in(world: World, task: Task, requested: RequestedSettings) -> Result:
    """Decodes ``task`` in an open world, which stays open."""
    opened = _pair_in(world)
    settings = requested.resolve(world)
    ratio = world.cost_ratio if requested.rests_on_c else None
    measured: dict[str, Any] = {}
    if ratio is not None and ratio.trials:
        measured["cost_ratio"] = asdict(ratio)
    world.begin(
        task.prompt,
        sampler=task.sampler,
        coins=task.coins,
        limit=task.max_new_tokens,
        eos=frozenset() if task.ignore_eos else opened.end_tokens,
        on_commit=task.on_commit,
    )
    try:
        METHODS[requested.method](world, **settings)
        trace = world.end(
            method=requested.method,
            pair=opened.pair.name,
            prompt=list(task.prompt),
            **measured,
            **settings,
        )
    except BaseException:
        world.give_up()
        raise

    tokens = world.text[len(task.prompt) :]
    return Result(
        text=str(opened.tokenizer.decode(list(tokens), skip_special_tokens=True)),
        tokens=tokens,
        stats=stats(trace),
        trace=trace,
        pieces=token_texts(trace, opened.tokenizer),
        cost_ratio=ratio,
    )
