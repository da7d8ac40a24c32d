"""What a model writes after many prompts, all of them at once.

A small model computes a hundred texts in hardly more time than ten. The rounding is
that of another shape of pass, so where two tokens are equally likely it may write the
other one: whoever must know asks the model itself, text by text.

Knows no method, no world and no clock.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch

from speclib.core.sampling import Tokens
from speclib.operations.model import Model

AT_ONCE = 32  # texts; more of them need more memory and save little


def write_greedily(
    model: Model, prompts: Sequence[Tokens], new: int, end_tokens: Collection[int]
) -> list[Tokens]:
    """At most ``new`` tokens after each of ``prompts``, up to one of ``end_tokens``.

    Of a model that transformers does not compute: nothing after any.
    """
    network = getattr(model, "network", None)
    if network is None:
        return [()] * len(prompts)

    longest_first = sorted(prompts, key=len, reverse=True)  # little padding in a batch
    written: dict[Tokens, Tokens] = {}
    for start in range(0, len(longest_first), AT_ONCE):
        batch = longest_first[start : start + AT_ONCE]
        texts = _write_batch(network, batch, new, end_tokens)
        for prompt, text in zip(batch, texts, strict=True):
            written[prompt] = _until_end(text, end_tokens)
    return [written[prompt] for prompt in prompts]


@torch.no_grad()
def _write_batch(
    network: Any, prompts: Sequence[Tokens], new: int, end_tokens: Collection[int]
) -> list[Tokens]:
    """What follows each prompt, and padding where it ended before the others did.

    Shorter prompts are padded, too, on the left.
    """
    width = max(map(len, prompts))
    ids = torch.zeros((len(prompts), width), dtype=torch.long)
    is_text = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
        is_text[row, width - len(prompt) :] = 1

    output = network.generate(
        input_ids=ids.to(network.device),
        attention_mask=is_text.to(network.device),
        max_new_tokens=new,
        do_sample=False,
        eos_token_id=sorted(end_tokens) or None,
        pad_token_id=0,
    )
    return [tuple(row) for row in output[:, width:].tolist()]


def _until_end(tokens: Tokens, end_tokens: Collection[int]) -> Tokens:
    """``tokens`` up to and with the first end token."""
    for position, token in enumerate(tokens):
        if token in end_tokens:
            return tokens[: position + 1]
    return tokens
