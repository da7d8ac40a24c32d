"""Random Llama checkpoints and pairs for tests of llama.cpp.

Needs torch and transformers: a test imports this after ``pytest.importorskip``.
"""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from speclib.data.pairs import ModelSpec, Pair

TINY = {
    "vocab_size": 300,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-3,
    "bos_token_id": None,
    "eos_token_id": None,
}


def save_checkpoint(folder: Path, kind=transformers.LlamaForCausalLM, **changes):
    """Saves a random model in which every weight matters, with a byte-level BPE.

    Returns the folder as a string, and the model.
    """
    torch.manual_seed(1)
    network = kind(kind.config_class(**TINY | changes)).eval()
    for name, weight in network.requires_grad_(False).named_parameters():
        if "norm" in name:
            weight.uniform_(0.5, 1.5)
        else:
            weight.normal_(0, 0.15)
    network.save_pretrained(folder)

    words = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "th", "he"]
    vocabulary = {word: token_id for token_id, word in enumerate(words)}
    bpe = Tokenizer(models.BPE(vocabulary, [("t", "h"), ("h", "e")]))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel()
    bpe.decoder = decoders.ByteLevel()
    transformers.PreTrainedTokenizerFast(tokenizer_object=bpe).save_pretrained(folder)
    return str(folder), network


def pair_with(draft: ModelSpec) -> Pair:
    """Returns a pair of zoo/target and ``draft``."""
    return Pair(target=ModelSpec(model="zoo/target"), draft=draft, name="own")


def write_with_tokens(model: str, shape, path: Path, quantization: str = "F16") -> str:
    """Writes a GGUF that includes the vocabulary, as llama.cpp's own tools do."""
    import gguf

    from speclib.models.checkpoint import find
    from speclib.models.llamacpp import export

    checkpoint = find(ModelSpec(model=model))
    bpe = checkpoint.tokenizer

    def add_tokens(writer: gguf.GGUFWriter, _: str) -> None:
        add_tokenizer_model(writer, "gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(bpe.convert_ids_to_tokens(range(len(bpe))))
        special = gguf.SpecialVocab(
            checkpoint.folder, load_merges=True, n_vocab=len(bpe)
        )
        special.add_to_gguf(writer, quiet=True)

    add_tokenizer_model = gguf.GGUFWriter.add_tokenizer_model
    with patch.object(gguf.GGUFWriter, "add_tokenizer_model", add_tokens):
        export.write(checkpoint, shape, path, quantization)
    return str(path)
