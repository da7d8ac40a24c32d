"""Loads a task's prompts in the form that ``decode`` accepts."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, zip_longest
from typing import Any, NamedTuple

from speclab.runs.official_prompts import official_folder
from speclib.data import prompts
from speclib.errors import BadValue

Prompt = str | list[dict[str, str]]  # a text, or a chat


class Turn(NamedTuple):
    """A later turn of a dialogue, whose prompt includes the target's earlier replies.

    ``number``: the number of turns before it; at least 1.
    """

    dialogue: prompts.Prompt
    number: int


def load_prompts(
    task: str, length: int | None, count: int, tokenizer: Any
) -> list[Prompt | Turn]:
    """The first ``count`` prompts of a task; the task "toy" is for toy models.

    Official prompts are used if available (see ``official_folder``). Each turn of a
    dialogue is a prompt. With a ``length``, the task's prompts are joined and cut to at
    most ``length`` tokens: the first text begins with the first prompt, the second text
    with the second prompt, and so on.
    """
    if task == "toy":
        toys: list[Prompt | Turn] = ["toy"] * count
        return toys
    if length is None:
        return _turns(task, count)

    texts = []
    for prompt in prompts.load(task, folder=official_folder(task)):
        texts.append(" ".join([prompt.text or "", *prompt.turns]))

    cut_texts: list[Prompt | Turn] = []
    for first in range(count):
        joined = "\n\n".join([*texts[first:], *texts[:first]])
        token_ids = tokenizer.encode(joined, truncation=True, max_length=length)
        cut_texts.append(tokenizer.decode(token_ids))
    return cut_texts


def _turns(task: str, count: int) -> list[Prompt | Turn]:
    """The first ``count`` turns of a task's prompts, dialogue by dialogue.

    If a task has several categories, as MT-bench does, the categories alternate, so a
    few prompts cover all of them.
    """
    turns: list[Prompt | Turn] = []
    all_prompts = prompts.load(task, folder=official_folder(task))
    for prompt in _categories_in_turns(all_prompts):
        turns.append(prompt.input)
        for number in range(1, len(prompt.turns)):
            turns.append(Turn(prompt, number))
    if count > len(turns):
        raise BadValue(
            f"asked for {count} prompts of {task}, which has only {len(turns)}: choose "
            f"1 to {len(turns)}"
        )
    return turns[:count]


def _categories_in_turns(all_prompts: Iterable[prompts.Prompt]) -> list[prompts.Prompt]:
    """The first prompt of each category, then the second of each, and so on."""
    by_category: dict[str, list[prompts.Prompt]] = {}
    for prompt in all_prompts:
        by_category.setdefault(prompt.task, []).append(prompt)
    in_turns = chain.from_iterable(zip_longest(*by_category.values()))
    return [prompt for prompt in in_turns if prompt is not None]
