"""One training run: a network of a given shape, AdamW, warm-up and cosine, checkpoints on the way.

Knows nothing of where the batches come from; `loss` may be the default or a distillation.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from .tokenizer import SPECIAL, VOCABULARY


@dataclass(frozen=True)
class Shape:
    """Layers, width, heads and feed-forward width; head_dim is 64 in the whole zoo. `family` is
    transformers' `model_type`: llama, or qwen2, which adds biases to q, k and v."""

    layers: int
    width: int
    heads: int
    ffn: int
    family: str = "llama"


@dataclass(frozen=True)
class Plan:
    """How long and how to train; the run ends at `steps` or after `minutes`."""

    steps: int
    minutes: float = 1e9
    rate: float = 1.5e-3
    batch: int = 8
    length: int = 512
    warmup: int = 100
    seed: int = 0
    device: str = "cpu"
    compile: bool = True
    save_every: int = 250


TARGET = Shape(layers=6, width=256, heads=4, ffn=688)
DRAFT = Shape(layers=3, width=192, heads=3, ffn=512)
DEEP = Shape(
    layers=10, width=128, heads=2, ffn=352
)  # enough layers for groups of 2 to 5
QWEN_TARGET = Shape(layers=6, width=128, heads=2, ffn=352, family="qwen2")
QWEN = Shape(layers=10, width=96, heads=2, ffn=176, family="qwen2")


def build(shape: Shape, seed: int) -> PreTrainedModel:
    """A freshly initialised model of the shape and its architecture, in float32."""
    torch.manual_seed(seed)
    return AutoModelForCausalLM.from_config(
        AutoConfig.for_model(
            shape.family,
            vocab_size=VOCABULARY,
            hidden_size=shape.width,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.heads,
            head_dim=64,
            intermediate_size=shape.ffn,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            initializer_range=0.03,
            bos_token_id=SPECIAL.index("<|bos|>"),
            eos_token_id=SPECIAL.index("<|eos|>"),
            pad_token_id=SPECIAL.index("<|pad|>"),
        )
    )


def logits(model: PreTrainedModel, ids: torch.Tensor) -> torch.Tensor:
    """Next-token logits (batch, length - 1, vocabulary) in float32, computed under bfloat16."""
    with torch.autocast(ids.device.type, torch.bfloat16):
        return model(ids[:, :-1], use_cache=False).logits.float()


def likelihood(
    model: PreTrainedModel, ids: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """Weighted mean negative log-likelihood of the next token, in nats."""
    given, wanted = logits(model, ids).flatten(0, 1), ids[:, 1:].flatten()
    losses = F.cross_entropy(given, wanted, reduction="none")
    weights = weights[:, 1:].flatten()
    return (losses * weights).sum() / weights.sum()


def optimizer(model: PreTrainedModel, rate: float) -> torch.optim.AdamW:
    """AdamW; norms are not decayed."""
    groups = [
        {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95), fused=True)


def save(model: PreTrainedModel, folder: Path) -> None:
    """Write the model as bfloat16 safetensors; the model in memory stays as it is."""
    half = type(model)(model.config).to(torch.bfloat16)
    half.load_state_dict(model.state_dict())
    half.save_pretrained(folder)
    for file in folder.iterdir():
        file.chmod(0o644)


def rate_at(plan: Plan, step: int, done: float) -> float:
    """Linear warm-up, then a cosine down to 2 % of the plan's rate; `done` is 0 to 1."""
    cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
    return plan.rate * min(1.0, (step + 1) / plan.warmup) * (0.02 + 0.98 * cosine)


def fit(
    model: PreTrainedModel,
    batches: Iterator,
    plan: Plan,
    *,
    loss: Callable = likelihood,
    keep: Callable = lambda step, model: None,
    say: Callable = print,
) -> dict:
    """Train in place; `keep(step, model)` is called every `save_every` steps.

    Returns steps, tokens, minutes, tokens per second and the mean loss of the last 50 steps.
    """
    model.to(plan.device).train()
    adam = optimizer(model, plan.rate)
    compute = torch.compile(loss) if plan.compile else loss
    began, recent, step, done = time.monotonic(), deque(maxlen=50), 0, 0.0
    while done < 1.0:
        for group in adam.param_groups:
            group["lr"] = rate_at(plan, step, done)
        value = compute(model, *(tensor.to(plan.device) for tensor in next(batches)))
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad(set_to_none=True)
        step += 1
        recent.append(value.item())
        spent = time.monotonic() - began
        done = max(step / plan.steps, spent / 60 / plan.minutes)
        so_far = summary(plan, step, spent, recent)
        if step % 50 == 0:
            say(so_far, flush=True)
        if step % plan.save_every == 0:
            keep(step, model)
    model.eval()
    return so_far


def summary(plan: Plan, step: int, seconds: float, recent: deque) -> dict:
    """What a run has done so far: the figures of its card."""
    tokens = step * plan.batch * plan.length
    return {
        "steps": step,
        "tokens": tokens,
        "minutes": round(seconds / 60, 1),
        "tokens_per_second": round(tokens / seconds),
        "loss": round(sum(recent) / len(recent), 4),
    }
