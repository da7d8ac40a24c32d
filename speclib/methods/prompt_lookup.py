"""Prompt lookup: the draft is the text itself; no draft model runs."""

from __future__ import annotations

from speclib.core.sampling import Tokens, ids
from speclib.core.settings import require_counts
from speclib.core.text import AnyText
from speclib.core.verification import verify
from speclib.worlds.world import World

from .page_facts import About


def prompt_lookup(
    world: World, num_tokens: int = 10, max_matching_ngram_size: int = 2
) -> None:
    """Drafts what followed the first earlier occurrence of the text's last tokens.

    The text's last n tokens are sought in it from its start: n is
    ``max_matching_ngram_size`` first, then less. Up to ``num_tokens`` tokens after
    their first occurrence are the draft. It is certain of them (q is one-hot), so a
    token x is accepted with probability p(x). Without a match, or where one token only
    is left to write, this is plain decoding. The draft's device idles.

    Source: Saxena 2023, "Prompt Lookup Decoding"; transformers 5.23,
    ``PromptLookupCandidateGenerator``, whose defaults these are (its argument
    ``prompt_lookup_num_tokens`` must be given; its class has 10).
    Differences from transformers: none in tokens or forward passes. When sampling,
    transformers draws from p and compares; here p(x) is tested and the residual drawn,
    which gives the same distribution.
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
    text = tuple(text)  # of which slices are taken fastest
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
