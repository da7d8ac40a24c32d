"""Generates a model's output and measures how often a draft agrees, in float32.

Acceptance is teacher-forced here: it is the share of positions in the target's own
output where the draft's most likely token is the target's. In expectation it equals
accepted / tested in greedy decoding, but no method has to run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from transformers import PreTrainedModel

from speclab.training.tasks import corpus

from .tokenizer import Writer


class Agreement(NamedTuple):
    """The positions where the draft would write the same token, and all positions."""

    same: int
    total: int

    @property
    def share(self) -> float:
        """The share of positions that agree, to three digits."""
        return round(self.same / self.total, 3)


@torch.no_grad()
def write(
    model: PreTrainedModel,
    prompts: list[list[int]],
    new: int,
    temperature: float = 0.0,
    seed: int = 0,
) -> list[list[int]]:
    """The ids that `model` writes after each prompt: at most `new`, including EOS.

    temperature: 0 is greedy.
    """
    torch.manual_seed(seed)
    pad, eos = model.config.pad_token_id, model.config.eos_token_id
    width = max(len(prompt) for prompt in prompts)
    padded = [[pad] * (width - len(prompt)) + prompt for prompt in prompts]
    seen = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    device = next(model.parameters()).device

    sampling: dict[str, Any] = {"do_sample": False}
    if temperature:
        sampling = {"do_sample": True, "temperature": temperature, "top_k": 0}
    generate: Any = model.generate  # torch types it as a tensor
    output = generate(
        input_ids=torch.tensor(padded, device=device),
        attention_mask=torch.tensor(seen, device=device),
        max_new_tokens=new,
        pad_token_id=pad,
        eos_token_id=eos,
        **sampling,
    )
    written = output[:, width:].tolist()
    return [ids[: ids.index(eos) + 1] if eos in ids else ids for ids in written]


@torch.no_grad()
def agreement(
    draft: torch.nn.Module, prompts: list[list[int]], outputs: list[list[int]]
) -> Agreement:
    """How often `draft` would write the next token of `outputs`."""
    device = next(draft.parameters()).device
    same = total = 0
    for prompt, output in zip(prompts, outputs, strict=True):
        ids = torch.tensor([prompt + output], device=device)
        predicted = draft(ids).logits[0, len(prompt) - 1 : -1].argmax(-1)
        same += (predicted == ids[0, len(prompt) :]).sum().item()
        total += len(output)
    return Agreement(same, total)


@torch.no_grad()
def by_place(
    target: PreTrainedModel,
    draft: PreTrainedModel,
    writer: Writer,
    places: int,
    count: int = 2,
    new: int = 96,
) -> list[float]:
    """How often the 1st, 2nd, ... of ``places`` tokens drafted in one pass is right.

    Each rate is conditional on all earlier tokens being right. The text is the target's
    own output on the first ``count`` shipped prompts of every category. The padding
    token serves as the mask.
    """
    device = next(draft.parameters()).device
    pad = draft.config.pad_token_id
    tested, right = [0] * places, [0] * places
    for category in corpus.CATEGORIES:
        prompts = [writer.prompt(task) for task in corpus.shipped(category, count)]
        for prompt, output in zip(prompts, write(target, prompts, new), strict=True):
            for begin in range(0, len(output) - places, places):
                fed = prompt + output[:begin] + [pad] * (places - 1)
                rows = draft(torch.tensor([fed], device=device)).logits[0, -places:]
                for place, token in enumerate(rows.argmax(-1).tolist()):
                    tested[place] += 1
                    if token != output[begin + place]:
                        break
                    right[place] += 1
    return [Agreement(*counts).share for counts in zip(right, tested, strict=True)]


def by_task(
    target: PreTrainedModel,
    draft: torch.nn.Module,
    writer: Writer,
    count: int = 12,
    new: int = 96,
) -> dict[str, float]:
    """Acceptance on the first `count` shipped prompts of every category.

    `overall` is the average over all positions.
    """
    table = {}
    all_same = all_total = 0
    for category in corpus.CATEGORIES:
        prompts = [writer.prompt(task) for task in corpus.shipped(category, count)]
        counts = agreement(draft, prompts, write(target, prompts, new))
        table[category] = counts.share
        all_same += counts.same
        all_total += counts.total
    table["overall"] = Agreement(all_same, all_total).share
    return table
