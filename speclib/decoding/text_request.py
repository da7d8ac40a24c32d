"""A request for a text: the prompt's token ids, and how new tokens are chosen.

This module uses no world and no method: only a pair's tokenizer, its limits, and the
sampling settings in the target's files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from speclib.arguments import Whole, shown
from speclib.core.penalties import Penalties
from speclib.core.sampling import Coins, Sampler
from speclib.errors import BadValue
from speclib.models.open_pair import OpenPair
from speclib.trace.events import Trace

Messages: TypeAlias = Sequence[Mapping[str, Any]]  # {"role": ..., "content": ...}
Least: TypeAlias = Annotated[int, Whole(least=0)]
OnCommit: TypeAlias = Callable[[tuple[int, ...]], object]


@dataclass(frozen=True)
class TextRequest:
    """A prompt's token ids, and how new tokens are chosen; see ``World.begin``."""

    prompt: tuple[int, ...]
    sampler: Sampler
    coins: Coins
    limit: int
    eos: frozenset[int]
    on_commit: OnCommit | None


@dataclass(frozen=True)
class TextOptions:
    """The arguments of ``decode`` that concern the text.

    None: the value in the target's generation_config.json.
    """

    max_new_tokens: int
    temperature: float
    top_k: Any
    top_p: float | None
    repetition_penalty: float | None
    presence_penalty: float
    frequency_penalty: float
    min_new_tokens: int | None
    ignore_eos: bool
    on_commit: OnCommit | None = None

    def request(self, prompt: Any, opened: OpenPair, coins: Coins) -> TextRequest:
        """The request for a text that begins with ``prompt``, a str or chat messages.

        Raises BadValue for a prompt or an option that cannot be used, and if the
        target's files ask for something that speclib does not support.
        """
        prompt_ids = encode(prompt, opened, self.max_new_tokens)
        return TextRequest(
            prompt=prompt_ids,
            sampler=self._sampler(opened, len(prompt_ids)),
            coins=coins,
            limit=self.max_new_tokens,
            eos=frozenset() if self.ignore_eos else opened.end_tokens,
            on_commit=self.on_commit,
        )

    def _sampler(self, opened: OpenPair, prompt_length: int) -> Sampler:
        files = opened.generation_settings
        files.check(opened.pair.target.model, sampling=self.temperature > 0)
        least = self.min_new_tokens
        if least is not None and least > self.max_new_tokens:
            raise BadValue(
                f"min_new_tokens is {least}, more than max_new_tokens="
                f"{self.max_new_tokens}: give at most that many"
            )
        repetition = self.repetition_penalty
        penalties = Penalties(
            repetition=files.repetition_penalty if repetition is None else repetition,
            presence=self.presence_penalty,
            frequency=self.frequency_penalty,
            prompt_length=prompt_length,
            shortest=files.shortest(prompt_length, least),
            ends=opened.end_tokens,
            suppressed=frozenset(files.suppress_tokens),
        )
        top_k = files.top_k if self.top_k is None else self.top_k
        top_p = files.top_p if self.top_p is None else self.top_p
        return Sampler(self.temperature, top_k, top_p, penalties)


# -- from a prompt to token ids --------------------------------------------------------
def encode(
    prompt: str | Messages, opened: OpenPair, max_new_tokens: int
) -> tuple[int, ...]:
    """The token ids of ``prompt`` for both models of an open pair.

    A str is tokenised as it is; chat messages go through the tokenizer's chat template.
    Raises BadValue if the prompt is empty or of another type, if it contains a token
    that the target has no row for (the draft may lack it: see ``models.vocabulary``),
    or if it leaves too little context for ``max_new_tokens`` more tokens.
    """
    if isinstance(prompt, str):
        token_ids = opened.tokenizer.encode(prompt)
    else:
        token_ids = _encode_chat(prompt, opened)
    if len(prompt) == 0 or len(token_ids) == 0:
        raise BadValue(
            f"the prompt {prompt!r} is empty: give at least one token of text"
        )
    largest = max(token_ids)
    if largest >= opened.vocab:
        raise BadValue(
            f"the prompt contains {opened.tokenizer.decode([largest])!r}, token "
            f"{largest} of the tokenizer, but {opened.pair.target.model!r} has rows "
            f"for {opened.vocab} tokens: leave it out, or give a checkpoint whose "
            "weights match its tokenizer"
        )
    if len(token_ids) + max_new_tokens > opened.context:
        raise BadValue(
            f"the prompt has {len(token_ids)} tokens; with max_new_tokens="
            f"{max_new_tokens} it exceeds the {opened.context} tokens that pair "
            f"{opened.pair.name!r} can read: shorten either"
        )
    return tuple(token_ids)


def _encode_chat(messages: Any, opened: OpenPair) -> list[int]:
    is_list = isinstance(messages, Sequence) and not isinstance(messages, bytes)
    if not is_list or not all(map(_is_message, messages)):
        raise BadValue(
            f"the prompt is {shown(messages)}: give a str, or chat messages "
            '[{"role": "user", "content": "..."}, ...]'
        )

    tokenizer: Any = opened.tokenizer
    if not tokenizer.chat_template:
        raise BadValue(
            f"pair {opened.pair.name!r} has no chat template: give the prompt as a str"
        )
    try:
        token_ids: list[int] = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=True, return_dict=False
        )
    except Exception as error:  # the model's author programmed the template
        raise BadValue(
            f"the chat template of pair {opened.pair.name!r} rejects these messages "
            f"({type(error).__name__}: {error}): give others, or the prompt as a str"
        ) from error
    return token_ids


def _is_message(value: object) -> bool:
    return isinstance(value, Mapping) and "role" in value


def token_texts(trace: Trace, tokenizer: Any) -> dict[int, str]:
    """The text of every token that a trace mentions, by its id."""
    mentioned: set[int] = set()
    for event in trace.events:
        mentioned.update(event.tokens)
    return {token: tokenizer.decode([token]) for token in sorted(mentioned)}
