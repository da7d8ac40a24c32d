"""Random networks and checkpoint folders small enough for tests.

Needs torch and transformers: a test imports this after ``pytest.importorskip``.
"""

from __future__ import annotations

import copy
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

import speclib
from speclib.core.sampling import Sampler
from speclib.data.pairs import ModelSpec, Pair
from speclib.models.checkpoint import Checkpoint, find
from speclib.models.loading import Loading

VOCAB = 61
LAYERS = 9
PLAIN = Sampler(temperature=1.0)
TEXT = (5, 9, 2, 7, 11)


def network(
    family: str = "Llama", dtype=torch.float32, layers: int = LAYERS, **changes
):
    """A random network in which every weight and every layer affects the output."""
    settings = {
        "vocab_size": VOCAB,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 128,
    }
    config_class = getattr(transformers, f"{family}Config")
    config = config_class(**settings | changes)

    torch.manual_seed(1)
    model_class = getattr(transformers, f"{family}ForCausalLM")
    net = model_class(config).to(dtype).eval()
    for name, weight in net.requires_grad_(False).named_parameters():
        if "norm" in name:
            weight.uniform_(0.5, 1.5)
        else:
            weight.normal_(0, 0.15)
    return net


def found(model: object, **settings) -> Checkpoint:
    """Returns the checkpoint in a folder, or of an embedded model."""
    return find(ModelSpec(model=str(model), **settings))


def to_load(
    checkpoint: Checkpoint, dtype: str = "float32", **settings: object
) -> Loading:
    """Returns how to load a checkpoint on the CPU."""
    return Loading(checkpoint, VOCAB, dtype, **{"packed": False} | settings)


def with_rows(
    network: transformers.PreTrainedModel, rows: int, deviation: float = 0.15
) -> transformers.PreTrainedModel:
    """Returns a copy of ``network`` that transformers resized to ``rows`` rows.

    deviation: the standard deviation of the weights in added rows.
    """
    resized = copy.deepcopy(network)
    known = network.config.get_text_config().vocab_size
    resized.resize_token_embeddings(rows, mean_resizing=False)

    torch.manual_seed(3)
    matrices = [resized.get_input_embeddings().weight]
    output_matrix = resized.get_output_embeddings().weight
    if output_matrix is not matrices[0]:  # tied embeddings share one matrix
        matrices.append(output_matrix)
    for weight in matrices:
        weight.requires_grad_(False)[known:].normal_(0, deviation)
    return resized


def save_tokenizer(folder: Path, words: list[str] | dict[str, int]) -> None:
    """Saves a tokenizer of whole words; a word's id is its index in the list."""
    vocabulary = words
    if isinstance(words, list):
        vocabulary = {word: token for token, word in enumerate(words)}
    unknown = next(iter(vocabulary))
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    fast.save_pretrained(folder)


def numbered_words(count: int = VOCAB) -> list[str]:
    """Returns the words w0, w1, w2, ..."""
    return [f"w{number}" for number in range(count)]


def pair_over_ranks(
    folder: Path, ranks: int, spread: str = "layers", role: str = "draft"
) -> Pair:
    """Makes a pair from copies of ``network()``, one spread over several ranks."""
    save_tokenizer(folder, numbered_words())
    network().save_pretrained(folder)

    checkpoint = str(folder)
    members = {"target": checkpoint, "draft": checkpoint}
    members[role] = {"model": checkpoint, "spread": spread}
    places = {"draft": ["cpu"], "target": ["cpu"]}
    places[role] = ["cpu"] * ranks
    return speclib.pair(**members, place=places)
