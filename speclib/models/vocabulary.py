"""What two models must have in common: a vocabulary, and a context for a text.

A model has a *row* for each token that it can be fed and can write. It may have more
rows than its tokenizer has tokens. What is written is the target's to say, so all
distributions of a pair have the target's rows::

    target   0 1 2 3 4 5 6 7       target   0 1 2 3 4 5
    draft    0 1 2 3 4 5 . .       draft    0 1 2 3 4 5 x x

On the left the draft lacks two rows. There its q is 0, so that it never proposes them,
and it is fed a stand-in where the text has them. On the right two of its rows are cut
off before the softmax, so that its q is a distribution of tokens that can be written.

A model is a checkpoint (see ``zoo``) or a .gguf. Importing this module imports neither
torch nor transformers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from speclib.errors import BadValue

from .configuration import end_tokens, longest_text, real_rows, text_config
from .file_states import remembered
from .zoo import locate, tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


FIRST = 0  # a token that every model has

# How two kinds of tokenizers write a space within a word.
BYTE_LEVEL = "Ġ"
SENTENCE_PIECE = "▁"


class Limits(NamedTuple):
    """What a model's configuration allows: rows of its vocabulary, tokens of a text."""

    vocab: int
    context: int


@remembered(locate)
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
        return Limits(real_rows(config), longest_text(config))
    except AttributeError as error:
        raise BadValue(
            f"the configuration of model {model!r} does not say its vocabulary or its "
            f"longest text ({error}): give a decoder of text, such as a Llama or Qwen"
        ) from error


def stand_in(model: str) -> int:
    """What a draft is fed instead of a token that it has no row for.

    That is its unknown token or else its end token; where it names neither, or has no
    row for it, its first token. What it drafts then may be poor, but it is tested as
    every draft is: the output stays the target's own.
    """
    for token in _named_tokens(model):
        if token < limits(model).vocab:
            return token
    return FIRST


def _named_tokens(model: str) -> list[int]:
    """The unknown token of a model, if it has one, and its end tokens."""
    if model.endswith(".gguf"):
        from .llamacpp.gguf import describe

        return list(describe(model).named_tokens)
    unknown = tokenizer(model).unk_token_id
    unknown_tokens = [] if unknown is None else [unknown]
    return unknown_tokens + sorted(end_tokens(model))


def words(model: str) -> dict[int, str]:
    """The tokens of a model by their id, as its tokenizer spells them."""
    if model.endswith(".gguf"):
        from .llamacpp.gguf import describe

        return dict(enumerate(describe(model).tokens))
    vocabulary = tokenizer(model).get_vocab()
    return {token_id: word for word, token_id in vocabulary.items()}


@remembered(locate)
def shared_tokenizer(target: str, draft: str) -> PreTrainedTokenizerBase:
    """The target's tokenizer.

    Raises BadValue if the draft's gives another meaning to any id that both have, and
    for a model that no method can run, whose tokenizer nobody needs to read. An id that
    only one of them has is no hindrance: see the top of this file.
    """
    for model in (target, draft):
        limits(model)
    target_words, draft_words = words(target), words(draft)
    for token_id in sorted(target_words.keys() & draft_words.keys()):
        target_word = target_words[token_id]
        draft_word = draft_words[token_id]
        if target_word != draft_word:
            raise BadValue(
                f"target {target!r} and draft {draft!r} have different tokenizers: id "
                f"{token_id} is {target_word!r} and {draft_word!r}"
                f"{_on_spellings(target_word, draft_word)}. Speculative "
                "decoding needs one vocabulary: choose models of one family"
            )
    return tokenizer(target)


def _on_spellings(target_word: str, draft_word: str) -> str:
    """A part of a sentence on two spellings of one word; empty for two words."""
    target_word = target_word.replace(BYTE_LEVEL, SENTENCE_PIECE)
    draft_word = draft_word.replace(BYTE_LEVEL, SENTENCE_PIECE)
    if target_word != draft_word:
        return ""
    return (
        ", one word in two spellings: the tokenizers are of different kinds, a "
        f"byte-level BPE, which writes a space as {BYTE_LEVEL!r}, and a SentencePiece, "
        f"which writes it as {SENTENCE_PIECE!r}"
    )
