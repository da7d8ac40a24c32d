"""One measured cell: one prompt by one method in an open world of real models.

Also what two busy devices cost each other. What the numbers of a measured cell depend
on is here and in what this module imports. Knows no paper and no cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from statistics import median
from typing import Any, NamedTuple

from speclib.core.sampling import Coins, Sampler
from speclib.decoding.decode import Result, decode
from speclib.operations.propose import Propose
from speclib.operations.score import Score
from speclib.trace.metrics import stats
from speclib.trace.rounds import cut_at, longest_tail
from speclib.worlds.world import World

from .task_prompts import Prompt, Turn

PASSES = 7  # repeats behind each median


class Setting(NamedTuple):
    """A method with its window and settings."""

    method: str
    gamma: int | None
    settings: tuple[tuple[str, Any], ...] = ()


PLAIN = Setting("autoregressive", None)


class Conditions(NamedTuple):
    """What cells must share to be compared prompt by prompt; see ``Spec``."""

    task: str
    length: int | None
    tokens: int
    temperature: float
    seed: int
    ignore_eos: bool
    with_tail: bool = False


def decode_prompt(
    world: World,
    prompt: Prompt,
    setting: Setting,
    conditions: Conditions,
    request: int,
) -> Result:
    """Decode one prompt in an open world."""
    settings = dict(setting.settings)
    if setting.gamma is not None:
        settings["gamma"] = setting.gamma
    beyond = 0
    if conditions.with_tail and setting.gamma is not None:
        beyond = longest_tail(setting.gamma)
    result = decode(
        prompt,
        world=world,
        method=setting.method,
        max_new_tokens=conditions.tokens + beyond,
        temperature=conditions.temperature,
        seed=conditions.seed,
        request=request,
        ignore_eos=conditions.ignore_eos,
        **settings,
    )
    return _first_tokens(result, conditions.tokens) if beyond else result


def _first_tokens(result: Result, count: int) -> Result:
    """What the first tokens of a request gave, with the drafts beyond them."""
    tokens = result.tokens[:count]
    text = "".join(result.pieces[token] for token in tokens)
    trace = cut_at(result.trace, count)
    return replace(result, text=text, tokens=tokens, stats=stats(trace), trace=trace)


def with_replies(
    world: World, prompt: Prompt | Turn, conditions: Conditions, request: int
) -> Prompt:
    """The prompt of a dialogue's turn: the earlier turns are answered by plain
    decoding, as any exact method would answer them.
    """
    if not isinstance(prompt, Turn):
        return prompt
    replies: list[str] = []
    for _ in range(prompt.number):
        asked = prompt.dialogue.after(*replies)
        result = decode_prompt(world, asked, PLAIN, conditions, request)
        replies.append(result.text)
    return prompt.dialogue.after(*replies)


def windows_near_c(c: float, shares: Iterable[float]) -> list[int]:
    """Windows of these shares of c, in order and each once; at least 1."""
    return sorted({max(1, round(c * share)) for share in shares})


def measure_contention(world: World, length: int = 64) -> dict[str, float]:
    """Seconds of a device's pass while the other is busy, over seconds alone.

    1 means that draft and target don't slow each other down. Where they share memory
    bandwidth it is more, and every parallel figure of the machine suffers from it.
    ``length``: tokens of the text that the passes see.
    """
    alone: dict[str, float] = {}
    for device in ("target", "draft"):
        alone |= _median_seconds(world, (device,), length)
    together = _median_seconds(world, ("target", "draft"), length)
    return {
        device: round(together[device] / alone[device], 3)
        for device in ("target", "draft")
    }


def _median_seconds(
    world: World, devices: tuple[str, ...], length: int
) -> dict[str, float]:
    """Each device's median seconds of an operation, when all begin it at once."""
    text = (1,) * length
    operations = {"target": Score(text), "draft": Propose(text, 4)}
    world.begin(text, sampler=Sampler(), coins=Coins(), limit=1)
    for _ in range(PASSES + 1):
        futures = [world.submit(device, operations[device]) for device in devices]
        world.all(*futures)

    # Each device's first operation prefills, and does not count.
    events = world.end().operations[len(devices) :]
    medians = {}
    for device in devices:
        medians[device] = median(e.dur for e in events if e.device == device)
    return medians
