"""Trains a draft, or an EAGLE head, to agree with its target.

A draft learns first from the training text, then from the target's output. The loss
compares whole distributions (soft labels). It adds a cross-entropy against the target's
most likely token, because only this token counts in greedy acceptance. Any target,
tokenizer and prompts will do.

A draft that writes a whole window in one pass learns to do so in the same step. Groups
of masks follow the text, and each group continues the text from a different position::

    input      t0 t1 t2 t3 t4 ...   m1 m2   m1 m2        two groups of two masks
    position    0  1  2  3  4        2  3    4  5        as if the masks were text
    predicts   t1 t2 t3 t4 t5       t3 t4   t5 t6

A mask attends to the text up to the start of its group, and to earlier masks of its
group.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save as serialised
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from speclib.atomic_files import write_atomically
from speclib.models.eagle_head import FILE, EagleNetwork

from . import measure_drafts
from .fit import Loss, logits
from .tokenizer import PROMPT_WEIGHT, Document

# The weight of the cross-entropy against the target's likeliest token; the divergence
# has weight 1.
HARD_WEIGHT = 0.5
# The target's output, chunk by chunk: most of it greedy, and some of it sampled.
TEMPERATURES = (0.0, 0.0, 0.0, 0.8)
CHUNK = 128  # prompts that the target answers at once
GROUPS = 32  # groups of masks in every row of a step

CLASSIFICATION_WEIGHT = 0.1  # of a head's cross-entropy; its regression has weight 1
NOISE = 0.1  # half the width of the uniform noise that is added to features


def likeness(target: PreTrainedModel) -> Loss[PreTrainedModel]:
    """The loss of a draft for `fit`, in nats.

    It is the weighted mean of KL(target || draft) + HARD_WEIGHT * CE(target's argmax).
    """

    def loss(
        draft: PreTrainedModel, ids: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        with torch.no_grad():
            wanted = logits(target, ids).log_softmax(-1)
        predicted = logits(draft, ids).log_softmax(-1)
        return _distance(predicted, wanted, weights[:, 1:])

    return loss


def likeness_at_once(
    target: PreTrainedModel, masks: int, mask: int
) -> Loss[PreTrainedModel]:
    """The same loss over the text and GROUPS groups of ``masks`` masks.

    The drawing at the top of this module shows the groups. ``mask`` is the id of the
    mask token. At a mask, the draft learns the target's distribution given the whole
    text up to and including the mask's position.
    """

    def loss(
        draft: PreTrainedModel, ids: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        length = ids.shape[1] - 1
        begins = torch.randint(0, length - masks, (GROUPS, 1), device=ids.device)
        positions = begins + 1 + torch.arange(masks, device=ids.device)
        positions = positions.flatten()  # where the masks are in the text
        text_positions = torch.arange(length, device=ids.device)

        with torch.no_grad():
            after_text = logits(target, ids).log_softmax(-1)
        wanted = torch.cat([after_text, after_text[:, positions]], 1)
        fed = F.pad(ids[:, :-1], (0, len(positions)), value=mask)
        with torch.autocast(ids.device.type, torch.bfloat16):
            output = draft(
                input_ids=fed,
                position_ids=torch.cat([text_positions, positions])[None],
                attention_mask=_mask_of_groups(begins, length, masks),
                use_cache=False,
            )
        predicted = output.logits.float().log_softmax(-1)
        weights = torch.cat([weights[:, 1:], weights[:, positions + 1]], 1)
        return _distance(predicted, wanted, weights)

    return loss


def _mask_of_groups(begins: torch.Tensor, length: int, masks: int) -> torch.Tensor:
    """The attention mask [1, 1, all, all] over text and masks, for transformers.

    ``begins`` [groups, 1]: the last token of the text that each group attends to.
    """
    device = begins.device
    count = len(begins) * masks
    index = torch.arange(length + count, device=device)
    is_text = index < length
    group = (index - length) // masks  # the mask's group; negative for the text
    last_seen = torch.cat([index[:length], begins.repeat_interleave(masks)])

    sees_text = is_text & (index <= last_seen[:, None])
    in_one_group = ~is_text & (group[:, None] == group)
    sees = sees_text | (in_one_group & (index <= index[:, None]))
    hidden = torch.zeros(sees.shape, device=device)
    return hidden.masked_fill(~sees, torch.finfo(hidden.dtype).min)[None, None]


def _distance(
    predicted: torch.Tensor, wanted: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """The weighted mean loss.

    Log-probabilities are [rows, length, vocabulary], weights [rows, length].
    """
    divergence = F.kl_div(predicted, wanted, log_target=True, reduction="none")
    likeliest = wanted.argmax(-1).flatten()
    hard = F.nll_loss(predicted.flatten(0, 1), likeliest, reduction="none")
    losses = divergence.sum(-1).flatten() + HARD_WEIGHT * hard
    weights = weights.flatten()
    mean: torch.Tensor = (losses * weights).sum() / weights.sum()
    return mean


def answers(
    target: PreTrainedModel, prompts: list[list[int]], seed: int, new: int = 160
) -> list[Document]:
    """The target's answers to ``prompts``, each at most ``new`` tokens long."""
    prompts = sorted(prompts, key=len)  # similar lengths together: less padding
    documents = []
    for start in range(0, len(prompts), CHUNK):
        chunk = prompts[start : start + CHUNK]
        temperature = TEMPERATURES[start // CHUNK % len(TEMPERATURES)]
        written = measure_drafts.write(target, chunk, new, temperature, seed=start)
        for prompt, answer in zip(chunk, written, strict=True):
            weights = [PROMPT_WEIGHT] * len(prompt) + [1.0] * len(answer)
            documents.append(Document(prompt + answer, weights))
    random.Random(seed).shuffle(documents)
    return documents


def repeat_shuffled(documents: list[Document], seed: int) -> Iterator[Document]:
    """An endless stream of the documents, reshuffled in every epoch."""
    rng = random.Random(seed)
    while True:
        yield from rng.sample(documents, len(documents))


# -- an EAGLE head ---------------------------------------------------------------------
def regression(target: PreTrainedModel) -> Loss[EagleNetwork]:
    """The loss of an EAGLE head for `fit`.

    It is a weighted mean of two terms: smooth L1 between the predicted features and the
    target's, plus CLASSIFICATION_WEIGHT times the cross-entropy between the
    distributions that the target's LM head computes from both. Uniform noise is added
    to the EAGLE head's input features, so that it tolerates its own errors when it
    drafts.

    Source: EAGLE, section 3.2, which also states the weight and the noise.
    """

    def loss(
        head: EagleNetwork, ids: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        with torch.no_grad():
            features = last_features(target, ids[:, :-1])
            wanted = target.lm_head(features).softmax(-1)
        noise = torch.empty_like(features).uniform_(-NOISE, NOISE)
        predicted = predict(head, ids[:, :-1], features + noise)
        rows = target.lm_head(predicted).log_softmax(-1)

        distance = F.smooth_l1_loss(predicted, features, reduction="none")
        cross_entropy = -(wanted * rows).sum(-1)
        losses = distance.mean(-1) + CLASSIFICATION_WEIGHT * cross_entropy
        weights = weights[:, 1:]
        mean_loss: torch.Tensor = (losses * weights).sum() / weights.sum()
        return mean_loss

    return loss


def last_features(target: PreTrainedModel, ids: torch.Tensor) -> torch.Tensor:
    """The target's features [batch, length, width] for the tokens ``ids``."""
    output = target.base_model(input_ids=ids, use_cache=False)
    features: torch.Tensor = output.last_hidden_state
    return features


def predict(
    head: EagleNetwork, tokens: torch.Tensor, features: torch.Tensor
) -> torch.Tensor:
    """The features [batch, length, width] that ``head`` predicts after ``tokens``.

    tokens: [batch, length], the beginning of a text. features: [batch, length, width],
    the target's features for these tokens.
    """
    features_before = F.pad(features[:, :-1], (0, 0, 1, 0))
    joined = head.join(tokens, features_before)
    output = head.network.base_model(inputs_embeds=joined, use_cache=False)
    predicted: torch.Tensor = output.last_hidden_state
    return predicted


class FirstDrafts(nn.Module):
    """A head as a language model that drafts every token from the target's features.

    In decoding, a head writes only the first token of a draft this way. For later
    tokens it uses its own features.
    """

    def __init__(self, target: PreTrainedModel, head: EagleNetwork):
        super().__init__()
        self.target = target
        self.head = head

    def forward(self, ids: torch.Tensor) -> CausalLMOutput:
        """The logits [batch, length, vocabulary] after each of ``ids``."""
        predicted = predict(self.head, ids, last_features(self.target, ids))
        return CausalLMOutput(logits=self.target.lm_head(predicted))


def save_head(head: EagleNetwork, folder: Path) -> None:
    """Writes the head's own weights as bfloat16 into its target's ``folder``."""
    weights = {}
    for name, weight in head.own_weights().items():
        weights[name] = weight.to("cpu", torch.bfloat16).contiguous()
    write_atomically(folder / FILE, serialised(weights))
