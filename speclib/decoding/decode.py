"""``decode``: one prompt, one method, one world, one result."""

from __future__ import annotations

from dataclasses import dataclass

from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import load_latency
from speclib.data.pairs import Pair, load_pair
from speclib.errors import SpeclibError
from speclib.methods import find, parameters
from speclib.models import factory
from speclib.trace.events import Trace
from speclib.trace.metrics import Stats, stats
from speclib.worlds.devices import device_names
from speclib.worlds.virtual import Virtual
from speclib.worlds.world import World

from .auto_settings import settled, to_open

WORLDS = ("virtual", "emulated", "processes")


@dataclass
class Result:
    """What came out: the new, committed tokens and their text, the run's trace and statistics.

    ``pieces``: token id -> its text, for every token the trace mentions.
    """

    text: str
    tokens: tuple[int, ...]
    stats: Stats
    trace: Trace
    pieces: dict[int, str]


def open_world(
    world: str,
    pair: Pair,
    *,
    dtype: str = "auto",
    latency: str | None = None,
    servers: int = 1,
    cancel: str | None = None,
) -> World:
    """A world of ``pair``, with ``servers`` of its target: "virtual" (tokens computed inline and
    undilated, durations from its latency file), "emulated" (the same tokens in worker processes
    that wait these durations out) or "processes" (one worker per device, wall-clock). ``cancel``:
    see World; None is "immediate" in "virtual", "after-op" in workers. Close it when done."""
    if world not in WORLDS:
        raise SpeclibError(
            f"unknown world {world!r}; known: {', '.join(WORLDS)}, or an open World"
        )
    name = latency or pair.latency
    if world != "processes" and name is None:
        raise SpeclibError(
            f"pair {pair.name!r} names no latency file, which world={world!r} "
            'needs: give it latency = "..." (a path under data/latency)'
        )
    if world != "virtual":
        from speclib.worlds.processes import Processes

        emulate = load_latency(name) if world == "emulated" else None
        return Processes(
            pair,
            servers=servers,
            cancel=cancel or "after-op",
            dtype=dtype,
            emulate=emulate,
        )
    models = {
        name: factory.build(pair, name.partition("-")[0], dtype, dilated=False)
        for name in device_names(servers)
    }
    opened = Virtual(models, load_latency(name), cancel=cancel or "immediate")
    opened.pair, opened.dtype, opened.datastore = pair, dtype, factory.datastore(pair)
    return opened


def decode(
    prompt,
    *,
    pair: Pair | str | None = None,
    method: str = "pearl",
    gamma="auto",
    max_new_tokens: int = 64,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    request: int = 0,
    dtype: str = "auto",
    world: World | str = "processes",
    cancel: str | None = None,
    ignore_eos: bool = False,
    on_commit=None,
    **settings,
) -> Result:
    """Decodes ``prompt`` (a str, or chat messages) with ``method``, exactly as the target would.

    ``gamma``: draft length, or "auto" = round(c), c = t_target / t_draft as this world measures it.
    ``world``: "virtual", "emulated", "processes", or an open World, whose pair wins. ``cancel``:
    when work that nobody wants any more ends, see open_world. ``ignore_eos``: an end token is a
    token like any other, for comparisons that want equal lengths. ``seed`` and ``request`` key the
    randomness. ``on_commit(tokens)`` streams. Further keywords go to the method; its ``lookahead``
    and ``servers`` are "auto", too, where left out (see ``auto``).
    Raises SpeclibError naming the value that is wrong and what would be right.
    """
    run = find(method, settings)
    given = {"gamma": gamma} | settings
    sampler = Sampler(temperature, top_k, top_p)
    if max_new_tokens < 1:
        raise SpeclibError(f"max_new_tokens is {max_new_tokens}: give at least 1")
    opened = isinstance(world, World)
    here = (
        world if opened else _opened(world, _pair(pair), method, given, dtype, cancel)
    )
    try:
        if cancel not in (None, here.cancel_policy):
            raise SpeclibError(
                f"cancel is {cancel!r}, but this world was opened with "
                f"{here.cancel_policy!r}: open it with the other, or leave it out"
            )
        settings = settled(method, parameters(method), given, here)
        tokenizer = factory.tokenizer(here.pair)
        ids = encode(prompt, here.pair, max_new_tokens)
        eos = frozenset() if ignore_eos else end_tokens(tokenizer)
        here.begin(
            ids,
            sampler=sampler,
            coins=Coins(seed, request),
            limit=max_new_tokens,
            eos=eos,
            on_commit=on_commit,
        )
        run(
            here, **settings
        )  # if it raises, what devices still do is the next begin's to end
        trace = here.end(
            method=method, pair=here.pair.name, prompt=list(ids), **settings
        )
    finally:
        if not opened:
            here.close()
    tokens = here.text[len(ids) :]
    text = tokenizer.decode(list(tokens), skip_special_tokens=True)
    return Result(text, tokens, stats(trace), trace, pieces(trace, tokenizer))


def _opened(
    world: str, pair: Pair, method: str, given: dict, dtype: str, cancel
) -> World:
    """A world with as many target servers as the method's settings ask for."""
    servers = to_open(world, pair, parameters(method), given)
    return open_world(world, pair, dtype=dtype, servers=servers, cancel=cancel)


def draft_length(gamma, world: World) -> int:
    """``gamma`` checked, or a number for "auto"."""
    return settled("", ["gamma"], {"gamma": gamma}, world)["gamma"]


def pieces(trace: Trace, tokenizer) -> dict[int, str]:
    """The text of every token a trace mentions."""
    seen = {t for e in trace.events for t in e.tokens}
    return {t: tokenizer.decode([t]) for t in sorted(seen)}


def _pair(pair: Pair | str | None) -> Pair:
    if pair is None:
        raise SpeclibError(
            "no pair given: pair='embedded/llama-7b-70b', for instance, or "
            "speclib.pair(target=..., draft=...)"
        )
    return load_pair(pair) if isinstance(pair, str) else pair


def encode(prompt, pair: Pair, max_new_tokens: int) -> tuple[int, ...]:
    """Prompt to ids; str as it is, messages through the tokenizer's chat template."""
    tokenizer, context = factory.tokenizer(pair), factory.context(pair)
    if isinstance(prompt, str):
        ids = tokenizer.encode(prompt)
    elif not tokenizer.chat_template:
        raise SpeclibError(
            f"pair {pair.name!r} has no chat template: give the prompt as a str"
        )
    else:
        ids = tokenizer.apply_chat_template(
            prompt, add_generation_prompt=True, tokenize=True, return_dict=False
        )
    if not prompt or not ids:
        raise SpeclibError(
            f"the prompt {prompt!r} is empty: give at least one token of text"
        )
    if len(ids) + max_new_tokens > context:
        raise SpeclibError(
            f"the prompt has {len(ids)} tokens; with max_new_tokens="
            f"{max_new_tokens} it exceeds the {context} tokens that pair "
            f"{pair.name!r} can hold: shorten either"
        )
    return tuple(ids)


def end_tokens(tokenizer) -> frozenset[int]:
    return frozenset(
        () if tokenizer.eos_token_id is None else (tokenizer.eos_token_id,)
    )
