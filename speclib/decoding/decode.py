"""``decode``: decodes one prompt with one method in one world."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from math import isnan, nan
from textwrap import shorten
from typing import Any

from speclib.arguments import AnyNumber, Count, Seed, checked
from speclib.core.sampling import Coins
from speclib.data.pairs import Pair, pair_of
from speclib.errors import BadValue, naming_extras
from speclib.methods import METHODS, about
from speclib.models.loading import TORCH_NAMES, check_dtype
from speclib.models.open_pair import OpenPair, open_pair
from speclib.trace.events import Trace
from speclib.trace.metrics import Stats, stats
from speclib.worlds.cost_ratio import CostRatio
from speclib.worlds.world import World

from .auto_settings import RequestedSettings, requested_settings
from .open_world import open_for
from .text_request import Least, OnCommit, TextOptions, TextRequest, token_texts


@dataclass(repr=False)
class Result:
    """The result of a run; prints as one line.

    ``text`` and ``tokens``: what was committed, without the prompt. ``trace``: what
    every device did. ``stats``: the trace's statistics. ``pieces``: maps the id of
    every token in the trace to its text. ``cost_ratio``: c = t_target / t_draft and how
    certain it is, if an "auto" setting depends on it. ``baseline``: the run of plain
    decoding right before this one, if any (see ``compare``).
    """

    text: str
    tokens: tuple[int, ...]
    stats: Stats
    trace: Trace
    pieces: dict[int, str]
    cost_ratio: CostRatio | None = None
    baseline: Result | None = None

    @property
    def speedup(self) -> float:
        """The speed relative to the ``baseline``, without prefill; NaN without one."""
        if self.baseline is None:
            return nan
        return self.stats.decode_speed / self.baseline.stats.decode_speed

    @property
    def summary(self) -> str:
        """The method, its speed, and its speed-up over plain decoding if known."""
        label = about(str(self.trace.meta["method"])).name
        speed = self.stats.decode_speed
        line = f"{label}: {len(self.tokens)} tokens"
        if isnan(speed):
            return f"{line}, all in the first round, which gives no speed"
        line += f", {speed:.1f} a second"
        if self.baseline is None or isnan(self.speedup):
            return line
        line += f", {self.speedup:.2f} times as fast as plain decoding"
        if self.speedup < 1:
            return f"{line}, so slower"
        seconds, plain = self.stats.seconds, self.baseline.stats.seconds
        if round(seconds, 1) > round(plain, 1):  # as they are printed
            return f"{line}; slower with prefill: {seconds:.1f} s against {plain:.1f} s"
        return line

    def __repr__(self) -> str:
        return f"<{self.summary}: {shorten(self.text, 60, placeholder=' ...')!r}>"

    def _repr_html_(self) -> str:
        """The text, with the target's own words underlined."""
        accepted = self.trace.draft_positions("accepted")
        written, end = "", 0
        for place, token in enumerate(self.tokens, self.trace.prompt_length):
            piece = self.pieces[token].strip()
            start = self.text.find(piece, end)
            if start < 0:
                continue  # an end token, or part of a character that the next completes
            part = escape(self.text[end : start + len(piece)])
            end = start + len(piece)
            written += part if place in accepted else f"<u>{part}</u>"
        written += escape(self.text[end:])
        return (
            f"<p>{escape(self.summary)}; <u>underlined</u>: the target's own words</p>"
            f'<div style="white-space: pre-wrap">{written}</div>'
        )


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

    >>> how = dict(pair="toy", world="virtual", max_new_tokens=8)
    >>> pearl = speclib.decode("x", method="pearl", **how)
    >>> plain = speclib.decode("x", method="autoregressive", **how)
    >>> pearl.tokens == plain.tokens, pearl.stats.seconds < plain.stats.seconds
    (True, True)

    prompt          a str, or chat messages
    pair            a Pair, or the name of one under data/pairs
    gamma           the draft length; "auto" is round(c), where c = t_target / t_draft
                    as measured in this world, and "c-2" is two fewer. The result states
                    how certain c is
    temperature     0 is greedy
    top_k, top_p    see Sampler. None: the value in the target's
                    generation_config.json, else off
    repetition_penalty
                    see Penalties. None: the value in that file, else 1 (off)
    presence_penalty, frequency_penalty
                    see Penalties; 0 is off
    min_new_tokens  how many tokens are written before an end token is allowed. None:
                    the value in that file, else 0
    seed, request   the key of all random numbers: equal keys give equal coins
    world           "virtual", "emulated", "processes" or "cluster" (see
                    ``open_world``), or an open World, whose pair is used
    cancel          when unwanted work is stopped; see ``open_world``
    ignore_eos      treats end tokens like any other, so that all outputs have the same
                    length. Otherwise a text ends at the first of the target's end
                    tokens; a chat model has several
    on_commit       called with the tokens of each commit, for streaming
    settings        the method's settings; ``lookahead`` and ``servers`` are also "auto"
                    if left out (see ``auto_settings``)

    Raises SpeclibError, which names the wrong value and what to give instead.
    """
    requested = requested_settings(method, gamma, settings, decode)
    coins = Coins(seed, request)
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
        on_commit=on_commit,
    )
    if isinstance(world, World):
        world.owner.check()
        opened = _pair_in(world)
        check_settled(opened, world.dtype, pair, dtype)
        if cancel not in (None, world.cancel_policy):
            raise BadValue(
                f"cancel is {cancel!r}, but this world was opened with "
                f"{world.cancel_policy!r}: leave cancel out, or open a world with it"
            )
        requested.check_pair(opened.pair)
        text_request = options.request(prompt, opened, coins)
        return decode_in(world, text_request, requested)

    # Wrong arguments raise here, before any worker process is started.
    opened = open_pair(pair_of(pair))
    requested.check_pair(opened.pair)
    text_request = options.request(prompt, opened, coins)
    with open_for(requested, world, opened, dtype, cancel) as devices:
        return decode_in(devices, text_request, requested)


def _pair_in(world: World) -> OpenPair:
    """The pair of an open world; raises BadValue if it has none."""
    opened: OpenPair | None = world.opened
    if opened is None:
        raise BadValue(
            "this world has models but no pair, so it lacks a tokenizer: open it with "
            "speclib.open_world(...) or speclib.Processes(pair)"
        )
    return opened


def check_settled(
    opened: OpenPair, own_dtype: str, pair: Pair | str | None, dtype: str
) -> None:
    """Raises BadValue if ``pair`` or ``dtype`` differs from the open world's."""
    if pair is not None and pair_of(pair) != opened.pair:
        raise BadValue(
            f"pair is {pair_of(pair).name!r}, but this world was opened for "
            f"{opened.pair.name!r}, a different pair: leave pair out, or open a world "
            "for it"
        )
    if dtype != "auto":
        check_dtype(dtype)
        if TORCH_NAMES[dtype] != TORCH_NAMES[own_dtype]:
            raise BadValue(
                f"dtype is {dtype!r}, but this world was opened with "
                f"{TORCH_NAMES[own_dtype]!r}: leave dtype out, or open a world with it"
            )


def decode_in(
    world: World, request: TextRequest, requested: RequestedSettings
) -> Result:
    """Decodes ``request`` in an open world, which stays open."""
    opened = _pair_in(world)
    settings = requested.resolve(world)
    ratio = world.cost_ratio if requested.depends_on_c else None
    measured: dict[str, Any] = {}
    if ratio is not None and ratio.trials:
        measured["cost_ratio"] = asdict(ratio)
    world.begin(
        request.prompt,
        sampler=request.sampler,
        coins=request.coins,
        limit=request.limit,
        eos=request.eos,
        on_commit=request.on_commit,
    )
    try:
        METHODS[requested.method](world, **settings)
        trace = world.end(
            method=requested.method,
            pair=opened.pair.name,
            prompt=list(request.prompt),
            **measured,
            **settings,
        )
    except BaseException:
        world.give_up()
        raise

    tokens = world.text[len(request.prompt) :]
    return Result(
        text=str(opened.tokenizer.decode(list(tokens), skip_special_tokens=True)),
        tokens=tokens,
        stats=stats(trace),
        trace=trace,
        pieces=token_texts(trace, opened.tokenizer),
        cost_ratio=ratio,
    )
