"""Random checkpoints of many architectures, in the hub's layout.

Each is sharded, in bfloat16, with tied embeddings, and its generation_config.json names
several end tokens. If the architecture has a sliding window, it is ``WINDOW`` tokens.

Needs torch and transformers: a test imports this after ``pytest.importorskip``.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers

from .checkpoints import numbered_words, save_tokenizer, with_rows

VOCAB = 61
WINDOW = 60
# Layers of a network: one of each kind if there are two kinds of attention.
LAYERS = 2
LAYERS_OF_LLAMA = 4  # two of a draft's layers share an input
NEW_TOKENS = 40

SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "max_position_embeddings": 1024,
    "tie_word_embeddings": True,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
GROUPED = SIZES | {"num_key_value_heads": 2, "head_dim": 8}
IN_TURNS = {
    "sliding_window": WINDOW,
    "layer_types": ["sliding_attention", "full_attention"] * (LAYERS // 2),
    "query_pre_attn_scalar": 8,
}
HALF_SLIDING = {
    "use_sliding_window": True,
    "sliding_window": WINDOW,
    "max_window_layers": LAYERS // 2,
}
GPT2_SIZES = {
    "vocab_size": VOCAB,
    "n_embd": 32,
    "n_inner": 48,
    "n_layer": LAYERS,
    "n_head": 4,
    "n_positions": 1024,
    "bos_token_id": None,
    "eos_token_id": None,
}

# The settings of each architecture, by the name of its configuration in transformers.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "LlamaConfig": GROUPED | {"num_hidden_layers": LAYERS_OF_LLAMA},
    "Qwen2Config": GROUPED | HALF_SLIDING,
    "Qwen3Config": GROUPED | HALF_SLIDING,
    "MistralConfig": GROUPED | {"sliding_window": WINDOW},
    "Phi3Config": GROUPED | {"sliding_window": WINDOW},
    "GPTNeoXConfig": SIZES,
    "GPT2Config": GPT2_SIZES,
    "OPTConfig": SIZES | {"ffn_dim": 48, "word_embed_proj_dim": 32},
    "MixtralConfig": GROUPED | {"sliding_window": WINDOW, "num_local_experts": 4},
    "Gemma2Config": GROUPED | IN_TURNS,
    "Gemma3TextConfig": GROUPED | IN_TURNS,
}
WITH_WINDOW = [
    name for name, settings in ARCHITECTURES.items() if "sliding_window" in settings
]


class Snapshots(NamedTuple):
    """The folders of a target and a draft that often agrees with it."""

    target: str
    draft: str


def random_network(
    name: str, seed: int = 1, **changes: Any
) -> transformers.PreTrainedModel:
    """Returns a random network of an architecture; every weight matters."""
    torch.manual_seed(seed)
    config = getattr(transformers, name)(**ARCHITECTURES[name] | changes)
    network = transformers.AutoModelForCausalLM.from_config(config).eval()
    fill(network)
    return network


def fill(network: transformers.PreTrainedModel) -> None:
    """Draws all weights, with layers that outweigh embeddings and biases.

    Otherwise a network would repeat a single token.
    """
    embedding = network.get_input_embeddings().weight
    for name, weight in network.requires_grad_(False).named_parameters():
        is_norm = "norm" in name or "ln_" in name
        if name.endswith("bias"):
            weight.normal_(0, 0.05)
        elif is_norm:
            weight.uniform_(0.5, 1.5)
        else:
            weight.normal_(0, 0.1 if weight is embedding else 0.3)


def save_snapshots(name: str, folder: Path) -> Snapshots:
    """Saves a target and a draft of the architecture ``name`` under ``folder``."""
    texts = (prompt(46), prompt(644))
    for seed in range(1, 20):
        network = rounded_to_bfloat16(random_network(name, seed))
        end_tokens = end_tokens_of(network, *texts)
        if is_varied(text_of(network, texts[0], end_tokens)):
            break
    target = save_snapshot(network, folder / "target", end_tokens)
    draft = save_snapshot(with_noise(network), folder / "draft", end_tokens)
    return Snapshots(target, draft)


def with_noise(network: transformers.PreTrainedModel) -> transformers.PreTrainedModel:
    """Returns a noisy copy that often agrees with ``network``."""
    other = copy.deepcopy(network)
    torch.manual_seed(2)
    for weight in other.parameters():
        weight += 0.05 * weight.abs().mean() * torch.randn_like(weight)
    return other


def rounded_to_bfloat16(
    network: transformers.PreTrainedModel,
) -> transformers.PreTrainedModel:
    """Returns the network with weights rounded as in a bfloat16 checkpoint.

    Buffers, such as the frequencies of a rotation, are not stored and stay unchanged.
    """
    for weight in network.parameters():
        weight.copy_(weight.to(torch.bfloat16))
    return network


def end_tokens_of(
    network: transformers.PreTrainedModel, *texts: tuple[int, ...]
) -> list[int]:
    """Returns two end tokens: one that is in no text, and one that occurs late."""
    written = [generate(network, text) for text in texts]
    known = set(range(network.config.vocab_size))
    latest = max(set(written[0][:30]), key=written[0].index)
    return [min(known.difference(*written)), latest]


def text_of(
    network: transformers.PreTrainedModel, text: Sequence[int], end_tokens: list[int]
) -> list[int]:
    """Returns the continuation of ``text`` up to the first of ``end_tokens``."""
    written = generate(network, text)
    ends = [written.index(token) for token in end_tokens if token in written]
    return written[: min(ends) + 1]


def is_varied(written: Sequence[int]) -> bool:
    """Whether a text is too varied for a wrong model to write it by accident.

    Any untrained network may alternate two tokens forever.
    """
    return len(written) >= 12 and 3 * len(set(written)) >= len(written)


# -- two widths ------------------------------------------------------------------------
ROWS = 211
ADDED = 24
SHORT_WINDOW = 8
ADDED_DEVIATION = 0.13  # of the added rows; the others have 0.1


class Widths(NamedTuple):
    """The folders of one network, and of a copy with added tokens."""

    few: str
    many: str


FEW_PROMPT = tuple(random.Random(5).choices(range(ROWS), k=20))
MANY_PROMPT = (*FEW_PROMPT[:15], ROWS + 2, 7, ROWS + 20, ROWS + 3, 9)


def save_widths(name: str, folder: Path) -> Widths:
    """Saves two checkpoints of the architecture ``name``, one with more rows.

    Either can be the other's target. Each writes a varied text after its own prompt;
    the wider model's prompt and text both contain added tokens.
    """
    changes: dict[str, Any] = {"vocab_size": ROWS}
    if name in WITH_WINDOW:
        changes["sliding_window"] = SHORT_WINDOW
    for seed in range(1, 40):
        few = rounded_to_bfloat16(random_network(name, seed, **changes))
        many = with_rows(few, ROWS + ADDED, ADDED_DEVIATION)
        many = rounded_to_bfloat16(with_noise(many))
        few_ends = end_tokens_of(few, FEW_PROMPT)
        many_ends = end_tokens_of(many, MANY_PROMPT)
        few_text = text_of(few, FEW_PROMPT, few_ends)
        many_text = text_of(many, MANY_PROMPT, many_ends)
        if is_varied(few_text) and is_varied(many_text) and has_both(many_text):
            break
    return Widths(
        save_snapshot(few, folder / "few", few_ends),
        save_snapshot(many, folder / "many", many_ends),
    )


def has_both(written: Sequence[int]) -> bool:
    """Whether a text has at least four added tokens and four others."""
    added = sum(token >= ROWS for token in written)
    return 4 <= added <= len(written) - 4


# -- single checkpoints ----------------------------------------------------------------


def save_snapshot(
    network: transformers.PreTrainedModel, folder: Path, end_tokens: list[int]
) -> str:
    """Saves a checkpoint, and a tokenizer without an end token."""
    rounded = copy.deepcopy(network).to(torch.bfloat16)
    rounded.generation_config.eos_token_id = end_tokens
    rounded.generation_config.pad_token_id = 0
    rounded.save_pretrained(folder, max_shard_size="20KB")
    save_tokenizer(folder, numbered_words(network.config.vocab_size))
    return str(folder)


@cache
def prompt(length: int) -> tuple[int, ...]:
    """A prompt of random tokens."""
    dice = random.Random(length)
    return tuple(dice.randrange(VOCAB) for _ in range(length))


def generate(
    network: transformers.PreTrainedModel,
    text: Sequence[int],
    new_tokens: int = NEW_TOKENS,
) -> list[int]:
    """Returns transformers' greedy continuation of ``text``, up to an end token."""
    ids = torch.tensor([list(text)])
    output = network.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=new_tokens,
        do_sample=False,
        pad_token_id=0,
    )
    return output[0, len(text) :].tolist()
