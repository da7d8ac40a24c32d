"""Making a draft agree with its target: first on the training text, then on the target's output.

The loss compares whole distributions (soft labels) and adds the target's most likely token, which
is what greedy acceptance counts. The prompts are training ones, never those that are shipped.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from transformers import PreTrainedModel

from speclib.data.training_tasks import corpus

from . import measure
from .fit import logits
from .tokenizer import PROMPT_WEIGHT, Writer

HARD = 0.5  # weight of the cross-entropy against the target's argmax, beside the divergence
TEMPERATURES = (
    0.0,
    0.0,
    0.0,
    0.8,
)  # mostly greedy output; some sampled, for sampling runs
CHUNK = 128  # prompts that the target answers at once


def likeness(target: PreTrainedModel) -> Callable:
    """A loss for `fit`: weighted mean of KL(target || draft) + HARD * CE(argmax), in nats."""

    def loss(
        draft: PreTrainedModel, ids: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        with torch.no_grad():
            wanted = logits(target, ids).log_softmax(-1)
        given = logits(draft, ids).log_softmax(-1)
        losses = F.kl_div(given, wanted, log_target=True, reduction="none").sum(-1)
        hard = F.nll_loss(
            given.flatten(0, 1), wanted.argmax(-1).flatten(), reduction="none"
        )
        losses = losses.flatten() + HARD * hard
        weights = weights[:, 1:].flatten()
        return (losses * weights).sum() / weights.sum()

    return loss


def answers(
    target: PreTrainedModel, writer: Writer, count: int, seed: int, new: int = 160
) -> list[tuple[list[int], list[float]]]:
    """`count` documents (ids, weights) whose first answers the target wrote itself."""
    rng, tasks, made = random.Random(seed), corpus.tasks(seed), []
    prompts = [writer.prompt(next(tasks)) for _ in range(count)]
    prompts.sort(key=len)  # similar lengths together: less padding
    for start in range(0, count, CHUNK):
        chunk = prompts[start : start + CHUNK]
        temperature = TEMPERATURES[start // CHUNK % len(TEMPERATURES)]
        for prompt, said in zip(
            chunk, measure.write(target, chunk, new, temperature, start), strict=True
        ):
            made.append(
                (prompt + said, [PROMPT_WEIGHT] * len(prompt) + [1.0] * len(said))
            )
    rng.shuffle(made)
    return made


def again(documents: list, seed: int) -> Iterator:
    """The documents for ever, in a new order every time."""
    rng = random.Random(seed)
    while True:
        yield from rng.sample(documents, len(documents))
