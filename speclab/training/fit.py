"""Builds a network and trains it with AdamW, warm-up and a cosine schedule.

This module does not know where the documents come from. The loss is the negative
log-likelihood of the next token, or a loss from ``distil``.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, TypeVar

import torch
import torch.nn.functional as F
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from speclib.atomic_files import whole_files

from .tokenizer import BOS, EOS, PAD, VOCABULARY, Document, batches

HEAD_DIM = 64  # in every embedded model
CONTEXT = 2048  # tokens
RECENT_STEPS = 50  # the printed loss is the mean over this many steps

Network = TypeVar("Network", bound=torch.nn.Module)
# The loss of a model on token ids and their weights, both [rows, length].
Loss = Callable[[Network, torch.Tensor, torch.Tensor], torch.Tensor]
Keep = Callable[[int, Network], None]  # called after each step; may save the model


@dataclass(frozen=True)
class ZooArchitecture:
    """The sizes of an embedded model, whose attention heads have width HEAD_DIM.

    family: transformers' `model_type`, which is llama, or qwen2 with biases for q, k
        and v.
    """

    layers: int
    width: int
    heads: int
    ffn: int
    family: str = "llama"

    @property
    def shape(self) -> list[int]:
        """The sizes, in the order used on the model cards."""
        return [self.layers, self.width, self.heads, self.ffn]


@dataclass(frozen=True)
class Plan:
    """How to train; the run ends after `steps` or `minutes`, whichever comes first."""

    steps: int
    minutes: float = 1e9
    rate: float = 1.5e-3
    batch: int = 8
    length: int = 512
    warmup: int = 100
    seed: int = 0
    device: str = "cpu"
    compile: bool = True


class Summary(TypedDict):
    """A run's figures for its card."""

    steps: int
    tokens: int
    minutes: float
    tokens_per_second: int
    loss: float


def build(architecture: ZooArchitecture, seed: int) -> PreTrainedModel:
    """A newly initialised model with this architecture, in float32."""
    torch.manual_seed(seed)
    config = AutoConfig.for_model(
        architecture.family,
        vocab_size=VOCABULARY,
        hidden_size=architecture.width,
        num_hidden_layers=architecture.layers,
        num_attention_heads=architecture.heads,
        num_key_value_heads=architecture.heads,
        head_dim=HEAD_DIM,
        intermediate_size=architecture.ffn,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        initializer_range=0.03,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
    )
    model: PreTrainedModel = AutoModelForCausalLM.from_config(config)
    return model


def logits(model: PreTrainedModel, ids: torch.Tensor) -> torch.Tensor:
    """Next-token logits [batch, length - 1, vocabulary], under bfloat16 autocast."""
    with torch.autocast(ids.device.type, torch.bfloat16):
        output = model(ids[:, :-1], use_cache=False)
        predicted: torch.Tensor = output.logits.float()
    return predicted


def likelihood(
    model: PreTrainedModel, ids: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """Weighted mean negative log-likelihood of the next token, in nats."""
    predicted = logits(model, ids).flatten(0, 1)
    wanted = ids[:, 1:].flatten()
    losses = F.cross_entropy(predicted, wanted, reduction="none")
    weights = weights[:, 1:].flatten()
    return (losses * weights).sum() / weights.sum()


def optimizer(model: torch.nn.Module, rate: float) -> torch.optim.AdamW:
    """AdamW with weight decay for everything but norms and biases."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    groups = [
        {"params": matrices, "weight_decay": 0.1},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95), fused=True)


def save(model: PreTrainedModel, folder: Path) -> None:
    """Writes the model as bfloat16 safetensors. The model in memory is unchanged."""
    half: Any = type(model)(model.config)
    half.to(torch.bfloat16)
    half.load_state_dict(model.state_dict())
    with whole_files(folder) as part:
        half.save_pretrained(part)


def rate_at(plan: Plan, step: int, done: float) -> float:
    """The learning rate: linear warm-up, then a cosine down to 2 % of the plan's.

    done: the completed share of the run, 0 to 1.
    """
    warm = min(1.0, (step + 1) / plan.warmup)
    cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
    return plan.rate * warm * (0.02 + 0.98 * cosine)


def fit(
    model: Network,
    documents: Iterator[Document],
    plan: Plan,
    *,
    loss: Loss[Any] = likelihood,
    keep: Keep[Network] = lambda step, model: None,
) -> Summary:
    """Trains a model in place, and prints a summary every RECENT_STEPS steps.

    keep: called with the step and the model after every step.

    Returns the summary after the final step; its loss is the mean over the last
    RECENT_STEPS steps.
    """
    model.to(plan.device)
    model.train()
    adam = optimizer(model, plan.rate)
    compute_loss = torch.compile(loss) if plan.compile else loss
    recent_losses: deque[float] = deque(maxlen=RECENT_STEPS)
    rows = batches(documents, plan.batch, plan.length)
    began = time.monotonic()
    step, done = 0, 0.0

    while done < 1.0:
        for group in adam.param_groups:
            group["lr"] = rate_at(plan, step, done)
        ids, weights = next(rows)
        value = compute_loss(model, ids.to(plan.device), weights.to(plan.device))
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad(set_to_none=True)

        step += 1
        recent_losses.append(value.item())
        seconds = time.monotonic() - began
        done = max(step / plan.steps, seconds / 60 / plan.minutes)
        tokens = step * plan.batch * plan.length
        so_far: Summary = {
            "steps": step,
            "tokens": tokens,
            "minutes": round(seconds / 60, 1),
            "tokens_per_second": round(tokens / seconds),
            "loss": round(sum(recent_losses) / len(recent_losses), 4),
        }
        if step % RECENT_STEPS == 0:
            print(so_far, flush=True)
        keep(step, model)

    model.eval()
    return so_far
