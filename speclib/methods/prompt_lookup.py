"""Prompt lookup: the draft is the text itself; no draft model runs."""

from speclib.core.sampling import ids
from speclib.core.verification import verify
from speclib.errors import SpeclibError


def prompt_lookup(world, num_tokens: int = 10, max_matching_ngram_size: int = 2):
    """What followed the text's last words at their first place in it is drafted again.

    The text's last n tokens, n = ``max_matching_ngram_size`` first, then fewer, are sought in it
    from its start; up to ``num_tokens`` tokens after their first place are the draft. It is certain
    of them (q is one-hot), so a token x passes with probability p(x). Without a match, or where one
    token only is left to write, this is plain decoding. The draft's device idles.

    Source: Saxena 2023, "Prompt Lookup Decoding"; transformers 5.23,
    ``PromptLookupCandidateGenerator``, whose defaults these are (its argument
    ``prompt_lookup_num_tokens`` must be given; its class has 10).
    Differences from transformers: none in tokens or forward passes. When sampling, transformers
    draws from p and compares, here p(x) is tested and the residual drawn: the same distribution.
    """
    for name, value in (
        ("num_tokens", num_tokens),
        ("max_matching_ngram_size", max_matching_ngram_size),
    ):
        if value < 1:
            raise SpeclibError(f"{name} is {value}: give at least 1")
    while world.going:
        found = _continuation(world.text, num_tokens, max_matching_ngram_size)
        draft = world.guess(found if world.left > 1 else ())
        rows = world.wait(world.target.score(world.text + ids(draft), last=len(draft)))
        world.commit(verify(world, draft, rows).tokens)


def _continuation(text: tuple[int, ...], length: int, longest: int) -> tuple[int, ...]:
    """Up to ``length`` tokens that follow the first earlier place of the text's last tokens."""
    for size in range(min(longest, len(text) - 1), 0, -1):
        last = text[-size:]
        for start in range(len(text) - size):
            if text[start : start + size] == last:
                return text[start + size : start + size + length]
    return ()
