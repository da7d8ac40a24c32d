"""The prompts of a task, as ``decode`` takes them. Knows no paper and no cache."""

from __future__ import annotations

from typing import Any

from speclib.data import prompts

Prompt = str | list[dict[str, str]]  # a text, or a chat


def load_prompts(
    task: str, length: int | None, count: int, tokenizer: Any
) -> list[Prompt]:
    """The first ``count`` prompts of a task; "toy" is the toys' own.

    With a ``length``, each is a text of at most so many tokens: the prompts of the task
    one after another, beginning with the first one, the second one, and so on.
    """
    if task == "toy":
        return ["toy"] * count
    if length is None:
        return [prompt.input for prompt in prompts.load(task, count)]

    texts = []
    for prompt in prompts.load(task):
        texts.append(" ".join([prompt.text or "", *prompt.turns]))

    cut_texts = []
    for first in range(count):
        joined = "\n\n".join([*texts[first:], *texts[:first]])
        token_ids = tokenizer.encode(joined)
        cut_texts.append(tokenizer.decode(token_ids[:length]))
    return cut_texts
