"""Prompt lookup: drafts are copied from the text itself, without a draft model."""

from __future__ import annotations

from speclib.core.sampling import Tokens, ids
from speclib.core.settings import require_counts
from speclib.core.text import AnyText
from speclib.core.verification import verify
from speclib.worlds.world import World

from .method_facts import About


def prompt_lookup(
    world: World, num_tokens: int = 10, max_matching_ngram_size: int = 2
) -> None:
    """Drafts what followed the first earlier occurrence of the text's last tokens.

    The text is searched from its start for its own last n tokens. n is first
    ``max_matching_ngram_size``, then smaller. Up to ``num_tokens`` tokens after the
    first match are the draft. Its q is one-hot, so a token x is accepted with
    probability p(x). Without a match, or if only one token is left to write, this is
    plain decoding. The draft's device is idle.

    Source: Saxena 2023, "Prompt Lookup Decoding"; transformers 5.23,
    ``PromptLookupCandidateGenerator``, which has these defaults (there a user must
    give ``prompt_lookup_num_tokens``; the class's default is 10).
    Differences from transformers: none in tokens or forward passes. When sampling,
    transformers draws from p and compares; here the ratio test accepts x with
    probability p(x), else draws from the residual. The distribution is the same.
    """
    require_counts(
        num_tokens=num_tokens, max_matching_ngram_size=max_matching_ngram_size
    )
    while world.going:
        guessed: Tokens = ()
        if world.left > 1:
            guessed = continuation(world.text, num_tokens, max_matching_ngram_size)
        draft = world.guess(guessed)
        rows = world.wait(world.target.score(world.text + ids(draft), last=len(draft)))
        world.commit(verify(world, draft, rows).tokens)


def continuation(text: AnyText, length: int, longest: int) -> Tokens:
    """Up to ``length`` tokens after the first occurrence of the text's last tokens."""
    text = tuple(text)  # the fastest to slice
    for size in range(min(longest, len(text) - 1), 0, -1):
        last_tokens = text[-size:]
        for start in range(len(text) - size):
            end = start + size
            if text[start:end] == last_tokens:
                return text[end : end + length]
    return ()


ABOUT = About(
    name="Prompt lookup",
    variants=({}, {"num_tokens": 3, "max_matching_ngram_size": 1}),
    uses_draft=False,
)
