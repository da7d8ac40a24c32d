"""Making a draft agree with its target.

It learns first on the training text, then on the target's output. The loss compares
whole distributions (soft labels), and adds the target's most likely token, which is
what greedy acceptance counts. The prompts are training prompts, never those that are
shipped.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from transformers import PreTrainedModel

from speclib.data.training_tasks import corpus

from . import measure_drafts
from .fit import Loss, logits
from .tokenizer import PROMPT_WEIGHT, Document, Writer

# The weight of the cross-entropy against the target's likeliest token; the divergence's
# is 1.
HARD_WEIGHT = 0.5
# Of the target, chunk by chunk: mostly greedy, some sampled for sampling runs.
TEMPERATURES = (0.0, 0.0, 0.0, 0.8)
CHUNK = 128  # prompts that the target answers at once


def likeness(target: PreTrainedModel) -> Loss[PreTrainedModel]:
    """A loss for `fit`, in nats.

    It is the weighted mean of KL(target || draft) + HARD_WEIGHT * CE(target's argmax).
    """

    def loss(
        draft: PreTrainedModel, ids: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        with torch.no_grad():
            wanted = logits(target, ids).log_softmax(-1)
        predicted = logits(draft, ids).log_softmax(-1)

        divergence = F.kl_div(predicted, wanted, log_target=True, reduction="none")
        likeliest = wanted.argmax(-1).flatten()
        hard = F.nll_loss(predicted.flatten(0, 1), likeliest, reduction="none")
        losses = divergence.sum(-1).flatten() + HARD_WEIGHT * hard
        weights = weights[:, 1:].flatten()
        return (losses * weights).sum() / weights.sum()

    return loss


def answers(
    target: PreTrainedModel, writer: Writer, count: int, seed: int, new: int = 160
) -> list[Document]:
    """Has the target answer `count` training prompts, each in at most `new` tokens."""
    tasks = corpus.tasks(seed)
    prompts = [writer.prompt(next(tasks)) for _ in range(count)]
    prompts.sort(key=len)  # similar lengths together: less padding

    documents = []
    for start in range(0, count, CHUNK):
        chunk = prompts[start : start + CHUNK]
        temperature = TEMPERATURES[start // CHUNK % len(TEMPERATURES)]
        written = measure_drafts.write(target, chunk, new, temperature, seed=start)
        for prompt, answer in zip(chunk, written, strict=True):
            weights = [PROMPT_WEIGHT] * len(prompt) + [1.0] * len(answer)
            documents.append(Document(prompt + answer, weights))
    random.Random(seed).shuffle(documents)
    return documents


def repeat_shuffled(documents: list[Document], seed: int) -> Iterator[Document]:
    """The documents for ever, in a new order every time."""
    rng = random.Random(seed)
    while True:
        yield from rng.sample(documents, len(documents))
