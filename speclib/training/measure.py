"""What a model writes, and how often a draft agrees with it. Float32, greedy or sampled.

Acceptance here is teacher-forced: along the target's own output, the share of positions where
the draft's most likely token is the target's. It equals accepted / tested of greedy decoding in
expectation, without running a method.
"""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from speclib.data.training_tasks import corpus

from .tokenizer import SPECIAL, Writer

EOS, PAD = SPECIAL.index("<|eos|>"), SPECIAL.index("<|pad|>")


@torch.no_grad()
def write(
    model: PreTrainedModel,
    prompts: list[list[int]],
    new: int,
    temperature: float = 0.0,
    seed: int = 0,
) -> list[list[int]]:
    """The ids that `model` writes after each prompt, at most `new`, up to and with EOS."""
    torch.manual_seed(seed)
    width = max(map(len, prompts))
    device = next(model.parameters()).device
    ids = torch.tensor([[PAD] * (width - len(p)) + p for p in prompts], device=device)
    choice = (
        {"do_sample": True, "temperature": temperature, "top_k": 0}
        if temperature
        else {"do_sample": False}
    )
    out = model.generate(
        input_ids=ids,
        attention_mask=(ids != PAD).long(),
        max_new_tokens=new,
        pad_token_id=PAD,
        eos_token_id=EOS,
        **choice,
    )[:, width:].tolist()
    return [row[: row.index(EOS) + 1] if EOS in row else row for row in out]


@torch.no_grad()
def agreement(
    draft: PreTrainedModel, prompts: list[list[int]], outputs: list[list[int]]
) -> tuple:
    """(positions where the draft's argmax is the output's token, positions)."""
    same = total = 0
    for prompt, output in zip(prompts, outputs, strict=True):
        ids = torch.tensor([prompt + output], device=next(draft.parameters()).device)
        guess = draft(ids).logits[0, len(prompt) - 1 : -1].argmax(-1)
        same += (guess == ids[0, len(prompt) :]).sum().item()
        total += len(output)
    return same, total


def by_task(
    target: PreTrainedModel,
    draft: PreTrainedModel,
    writer: Writer,
    count: int = 12,
    new: int = 96,
) -> dict[str, float]:
    """Acceptance on `count` shipped prompts of every category, and `overall` (micro average)."""
    table, all_same, all_total = {}, 0, 0
    for category in corpus.CATEGORIES:
        prompts = [writer.prompt(task) for task in corpus.shipped(category, count)]
        same, total = agreement(draft, prompts, write(target, prompts, new))
        table[category] = round(same / total, 3)
        all_same, all_total = all_same + same, all_total + total
    return table | {"overall": round(all_same / all_total, 3)}
