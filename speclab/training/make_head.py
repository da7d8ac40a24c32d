"""Makes the EAGLE head of zoo/target: it learns to go on with the target's features."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from transformers import AutoTokenizer, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from speclib.models import eagle_head
from speclib.models.eagle_head import EagleNetwork

from . import cards, fit, measure_drafts
from . import tokenizer as bpe
from .fit import Loss
from .folders import MODELS
from .make_drafts import FIRST, stored
from .options import Options
from .token_batches import batches, documents

TARGET = "target"
SEED = 70  # added to the run's: the drafts have the tens below it
CLASSIFICATION_WEIGHT = 0.1  # of the cross-entropy; the regression's is 1
NOISE = 0.1  # half the width of the uniform noise that is added to features


def regression(target: PreTrainedModel) -> Loss[EagleNetwork]:
    """A loss for `fit`.

    It is the weighted mean of smooth L1 between the predicted features and the target's
    own, plus CLASSIFICATION_WEIGHT times the cross-entropy of what the target's LM head
    makes of both. The features that the head reads have uniform noise, so that it bears
    its own errors when it drafts.

    Source: EAGLE, section 3.2; weight and noise are its own.
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
    """The target's features [batch, length, width] of the tokens ``ids``."""
    output = target.base_model(input_ids=ids, use_cache=False)
    features: torch.Tensor = output.last_hidden_state
    return features


def predict(
    head: EagleNetwork, tokens: torch.Tensor, features: torch.Tensor
) -> torch.Tensor:
    """The features [batch, length, width] that ``head`` predicts after ``tokens``.

    tokens: [batch, length], the beginning of a text. features: [batch, length, width],
    the target's own of these tokens.
    """
    features_before = F.pad(features[:, :-1], (0, 0, 1, 0))
    joined = head.join(tokens, features_before)
    output = head.network.base_model(inputs_embeds=joined, use_cache=False)
    predicted: torch.Tensor = output.last_hidden_state
    return predicted


class FirstDrafts(nn.Module):
    """The head as a model of texts: each token is drafted from the target's features.

    So is the first token of a draft. Those after it are drafted from the head's own.
    """

    def __init__(self, target: PreTrainedModel, head: EagleNetwork):
        super().__init__()
        self.target = target
        self.head = head

    def forward(self, ids: torch.Tensor) -> CausalLMOutput:
        """The logits [batch, length, vocabulary] after each of ``ids``."""
        predicted = predict(self.head, ids, last_features(self.target, ids))
        return CausalLMOutput(logits=self.target.lm_head(predicted))


def make_head(options: Options, command: str) -> None:
    """Trains the head on the training text, and writes its card.

    command: what the user typed, for the card.
    """
    folder = MODELS / TARGET
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    writer = bpe.Writer(tokenizer)
    target = stored(TARGET, options.device)
    seed = options.seed + SEED
    head = eagle_head.fresh(target, seed)
    loss = regression(target)

    def save(step: int, head: EagleNetwork) -> None:
        eagle_head.save(head, folder)

    plan = options.plan(options.head_steps, options.head_minutes, rate=2e-3)
    stream = batches(documents(writer, seed + 2), plan.batch, plan.length)
    summary = fit.fit(head, stream, plan, loss=loss, keep=save)

    eagle_head.save(head, folder)
    stored_head = eagle_head.read(target, folder)
    card = cards.HeadCard(
        target=TARGET,
        parameters=sum(w.numel() for w in head.parameters() if w.requires_grad),
        command=command,
        runs={FIRST: summary},
        acceptance=measure_drafts.by_task(
            target, FirstDrafts(target, stored_head), writer
        ),
    )
    cards.write_head(card)
