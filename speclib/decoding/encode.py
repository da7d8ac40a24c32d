"""From a prompt to token ids, and from token ids to text.

Knows no world and no method: only a pair's tokenizer and its limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from speclib.arguments import shown
from speclib.errors import BadValue
from speclib.models.open_pair import OpenPair
from speclib.trace.events import Trace

Messages: TypeAlias = Sequence[Mapping[str, Any]]  # {"role": ..., "content": ...}


def encode(
    prompt: str | Messages, opened: OpenPair, max_new_tokens: int
) -> tuple[int, ...]:
    """The token ids of ``prompt`` for both models of an open pair.

    A str is tokenised as it is, chat messages by the tokenizer's chat template. Raises
    BadValue for a prompt that is empty or neither of the two, for one with a token that
    the target has no row for, and for one that leaves no context for ``max_new_tokens``
    more tokens.
    """
    tokenizer = opened.tokenizer
    if isinstance(prompt, str):
        token_ids = _encode_text(prompt, tokenizer)
    else:
        check_messages(prompt)
        token_ids = _encode_chat(prompt, tokenizer, opened.pair.name)
    if len(prompt) == 0 or len(token_ids) == 0:
        raise BadValue(
            f"the prompt {prompt!r} is empty: give at least one token of text"
        )
    _check_rows(token_ids, opened)
    _check_length(len(token_ids), max_new_tokens, opened)
    return tuple(token_ids)


def check_messages(prompt: object) -> None:
    """Raises BadValue if ``prompt`` is no list of chat messages."""
    advice = 'give a str, or chat messages [{"role": "user", "content": "..."}, ...]'
    if isinstance(prompt, bytes) or not isinstance(prompt, Sequence):
        raise BadValue(f"the prompt is {shown(prompt)}: {advice}")
    for message in prompt:
        if not isinstance(message, Mapping) or "role" not in message:
            raise BadValue(f"the prompt has {shown(message)} as a message: {advice}")


def _encode_text(text: str, tokenizer: Any) -> list[int]:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadValue(
            f"the prompt has half of a character (a surrogate, "
            f"{text[error.start]!r}) at position {error.start}: give text that can "
            "be written as UTF-8"
        ) from None
    token_ids: list[int] = tokenizer.encode(text)
    return token_ids


def _encode_chat(messages: Messages, tokenizer: Any, pair_name: str) -> list[int]:
    if not tokenizer.chat_template:
        raise BadValue(
            f"pair {pair_name!r} has no chat template: give the prompt as a str"
        )
    try:
        token_ids: list[int] = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=True, return_dict=False
        )
    except Exception as error:  # a template is a program of the model's author
        raise BadValue(
            f"the chat template of pair {pair_name!r} does not take these messages "
            f"({type(error).__name__}: {error}): give others, or the prompt as a str"
        ) from error
    return token_ids


def _check_rows(token_ids: Sequence[int], opened: OpenPair) -> None:
    """Raises BadValue for a token that the target's tokenizer has and its weights lack.

    The draft may lack it: see ``models.vocabulary``.
    """
    rows = opened.vocab
    largest = max(token_ids)
    if largest >= rows:
        word = opened.tokenizer.decode([largest])
        target = opened.pair.target.model
        raise BadValue(
            f"the prompt has {word!r}, which is token {largest} of the tokenizer of "
            f"{target!r}, but the model has rows for {rows} tokens: leave "
            "it out, or give a checkpoint whose weights go with its tokenizer"
        )


def _check_length(prompt_length: int, max_new_tokens: int, opened: OpenPair) -> None:
    """Raises BadValue where the whole text is longer than the models' context."""
    context = opened.context
    if prompt_length + max_new_tokens > context:
        raise BadValue(
            f"the prompt has {prompt_length} tokens; with max_new_tokens="
            f"{max_new_tokens} it exceeds the {context} tokens that pair "
            f"{opened.pair.name!r} can hold: shorten either"
        )


def token_texts(trace: Trace, tokenizer: Any) -> dict[int, str]:
    """The text of every token that a trace mentions, by its id."""
    mentioned: set[int] = set()
    for event in trace.events:
        mentioned.update(event.tokens)
    return {token: tokenizer.decode([token]) for token in sorted(mentioned)}
