"""Where checkpoints are: the embedded zoo, folders, hub ids; checked before they are loaded."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from speclib.errors import SpeclibError
from speclib.paths import DATA

ZOO = DATA / "models"


def locate(model: str) -> str:
    """``zoo/<name>`` -> its folder, verified against SHA256SUMS; anything else as it is."""
    if not model.startswith("zoo/"):
        return model
    folder = ZOO / model.removeprefix("zoo/")
    if not (folder / "model.safetensors").exists():
        raise SpeclibError(
            f"embedded model {model!r} is missing in {folder}: restore it from the "
            "repository, or train it with `make models`"
        )
    _check(folder)
    return str(folder)


@cache
def _check(folder: Path) -> None:
    """Compares a folder's files with their committed checksums, once per process."""
    sums = dict(
        reversed(line.split(maxsplit=1))
        for line in (ZOO / "SHA256SUMS").read_text().splitlines()
        if line.strip()
    )
    for path in sorted(folder.iterdir()):
        name = str(path.relative_to(ZOO))
        if name in sums and hashlib.sha256(path.read_bytes()).hexdigest() != sums[name]:
            raise SpeclibError(
                f"embedded model file {path} does not match data/models/SHA256SUMS: "
                "it is corrupt or changed; restore it from the repository, or run "
                "`make models`, which rewrites the checksums"
            )


def load_part(model: str, loader, what: str, **options):
    """Loads a part of a checkpoint with transformers; a failure names the model and the step."""
    try:
        return loader.from_pretrained(locate(model), trust_remote_code=False, **options)
    except (OSError, ValueError, KeyError) as error:
        raise SpeclibError(
            f"cannot load the {what} of model {model!r}: {error}. Give zoo/<name>, "
            "a folder of a transformers checkpoint, or a hub id that this machine "
            "can reach"
        ) from error


@cache
def limits(model: str) -> tuple[int, int]:
    """(vocabulary rows, longest text) of a model, from its configuration alone."""
    if model.endswith(".gguf"):
        from speclib.models.llamacpp.gguf import described

        card = described(model)
        return len(card.tokens), card.context
    from transformers import AutoConfig

    config = load_part(model, AutoConfig, "configuration")
    return config.vocab_size, config.max_position_embeddings


@cache
def tokenizer(model: str):
    if model.endswith(".gguf"):
        raise SpeclibError(
            f"{model} has no tokenizer for transformers: let the target be a "
            "checkpoint; its draft may be a .gguf"
        )
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    # AutoTokenizer gives whatever is a Qwen2 the original's way of cutting words, not its file's
    loader = PreTrainedTokenizerFast if model.startswith("zoo/") else AutoTokenizer
    return load_part(model, loader, "tokenizer")


def words(model: str) -> dict[int, str]:
    """The tokens of a model by their id, as its tokenizer spells them."""
    if model.endswith(".gguf"):
        from speclib.models.llamacpp.gguf import described

        return dict(enumerate(described(model).tokens))
    return {i: word for word, i in tokenizer(model).get_vocab().items()}


def shared_tokenizer(target: str, draft: str):
    """The target's tokenizer; an error if the draft's gives any shared id another meaning."""
    ours, theirs = words(target), words(draft)
    size = min(len(ours), len(theirs))
    strip = [{i: t for i, t in vocab.items() if i < size} for vocab in (ours, theirs)]
    if strip[0] != strip[1]:
        odd = next(i for i in range(size) if strip[0].get(i) != strip[1].get(i))
        raise SpeclibError(
            f"target {target!r} and draft {draft!r} have different tokenizers: id "
            f"{odd} is {strip[0].get(odd)!r} and {strip[1].get(odd)!r}. Speculative "
            "decoding needs one vocabulary: choose models of one family"
        )
    return tokenizer(target)
