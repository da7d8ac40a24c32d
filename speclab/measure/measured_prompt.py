"""Runs one prompt with one method, in an open world of real models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from speclab.runs.spec import MeasuredSpec
from speclab.traces.cut_traces import cut_at, longest_tail
from speclib.decoding.decode import Result, decode
from speclib.trace.metrics import stats
from speclib.worlds.world import World

from .task_prompts import Prompt, Turn


def decode_prompt(
    world: World, prompt: Prompt, spec: MeasuredSpec, request: int
) -> Result:
    """Decodes one prompt for ``spec``, whose window must be a number or None."""
    settings: dict[str, Any] = dict(spec.settings)
    beyond = 0
    if spec.gamma is not None:
        assert isinstance(spec.gamma, int)
        settings["gamma"] = spec.gamma
        beyond = longest_tail(spec.gamma) if spec.with_tail else 0
    result = decode(
        prompt,
        world=world,
        method=spec.method,
        max_new_tokens=spec.tokens + beyond,
        temperature=spec.temperature,
        seed=spec.seed,
        request=request,
        ignore_eos=spec.ignore_eos,
        **settings,
    )
    return _first_tokens(result, spec.tokens) if beyond else result


def _first_tokens(result: Result, count: int) -> Result:
    """The result, cut to its first ``count`` tokens; drafts beyond them are kept."""
    tokens = result.tokens[:count]
    text = "".join(result.pieces[token] for token in tokens)
    trace = cut_at(result.trace, count)
    return replace(result, text=text, tokens=tokens, stats=stats(trace), trace=trace)


def with_replies(
    world: World, prompt: Prompt | Turn, plain: MeasuredSpec, request: int
) -> Prompt:
    """The prompt for a dialogue's turn, with plain decoding's replies to earlier turns.

    Any exact method would write the same replies. ``plain``: the cell that decodes
    these prompts with plain decoding.
    """
    if not isinstance(prompt, Turn):
        return prompt
    replies: list[str] = []
    for _ in range(prompt.number):
        earlier = prompt.dialogue.after(*replies)
        replies.append(decode_prompt(world, earlier, plain, request).text)
    return prompt.dialogue.after(*replies)
