"""What two models must have in common: a vocabulary, and room for a text.

A model is a checkpoint (see ``zoo``) or a .gguf. Importing this module imports neither
torch nor transformers.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from speclib.errors import BadValue

from .configuration import longest_text, text_config
from .zoo import tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Limits(NamedTuple):
    """What a model's configuration allows: rows of its vocabulary, tokens of a text."""

    vocab: int
    context: int


@cache
def limits(model: str) -> Limits:
    """A model's vocabulary rows and longest text, from its configuration alone.

    Raises BadValue for a model that no method can run (see ``configuration``).
    """
    if model.endswith(".gguf"):
        from .llamacpp.gguf import describe

        card = describe(model)
        return Limits(len(card.tokens), card.context)
    config = text_config(model)
    try:
        return Limits(config.vocab_size, longest_text(config))
    except AttributeError as error:
        raise BadValue(
            f"the configuration of model {model!r} does not say its vocabulary or its "
            f"longest text ({error}): give a decoder of text, such as a Llama or Qwen"
        ) from error


def words(model: str) -> dict[int, str]:
    """The tokens of a model by their id, as its tokenizer spells them."""
    if model.endswith(".gguf"):
        from .llamacpp.gguf import describe

        return dict(enumerate(describe(model).tokens))
    vocabulary = tokenizer(model).get_vocab()
    return {token_id: word for word, token_id in vocabulary.items()}


def shared_tokenizer(target: str, draft: str) -> PreTrainedTokenizerBase:
    """The target's tokenizer.

    Raises BadValue if the draft's gives another meaning to any id that both have, and
    for a model that no method can run, whose tokenizer nobody needs to read.
    """
    for model in (target, draft):
        limits(model)
    target_words, draft_words = words(target), words(draft)
    size = min(len(target_words), len(draft_words))
    for token_id in range(size):
        target_word = target_words.get(token_id)
        draft_word = draft_words.get(token_id)
        if target_word != draft_word:
            raise BadValue(
                f"target {target!r} and draft {draft!r} have different tokenizers: id "
                f"{token_id} is {target_word!r} and {draft_word!r}. Speculative "
                "decoding needs one vocabulary: choose models of one family"
            )
    return tokenizer(target)
