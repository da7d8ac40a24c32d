"""Computes how many tokens DuoDecoding's published loop counts, and how many it tests.

Every outcome of the loop is enumerated. Each draft is right with the same probability,
independently of the others. No clock is needed, since a round is one target pass. Here
is a round with one sequence of four tokens, after a round that left three untested:

    text so far   t t t t u u u        u: drafted, counted, not tested by any pass
    drafted now                 d d d d

If all u and the first d are right, the text grows by four tokens, three of them
untested. Otherwise it ends with the target's own token at the first wrong position.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple


class CountingLoop(NamedTuple):
    """A published loop that ends as soon as it counts ``limit`` tokens.

    Every round drafts ``sequences`` that share the ``budget`` of tokens evenly, except
    for the first round, which drafts a single token. ``alpha`` is the probability that
    a draft is right. We assume that if the first sequence is wrong, so are the others.
    """

    alpha: float
    limit: int
    budget: int
    sequences: int = 1


class CountedTokens(NamedTuple):
    """Expected values at the end of the loop."""

    counted: float
    tested: float
    passes: float

    @property
    def over_tested(self) -> float:
        """The ratio of counted to tested tokens."""
        return self.counted / self.tested


class _Round(NamedTuple):
    """A possible outcome of a round, with its probability.

    The round adds ``gained`` tokens to the tested text; the last ``untested`` of them
    are not tested yet.
    """

    probability: float
    gained: int
    untested: int


@cache
def count_tokens(
    loop: CountingLoop, tested: int = 0, untested: int = 0, first: bool = True
) -> CountedTokens:
    """The expected values at the loop's end, starting from this state."""
    if tested + untested >= loop.limit:
        return CountedTokens(tested + untested, tested, passes=0)

    counted = all_tested = 0.0
    passes = 1.0
    for way in _rounds(loop, untested, first):
        newly_tested = tested + way.gained - way.untested
        rest = count_tokens(loop, newly_tested, way.untested, False)
        counted += way.probability * rest.counted
        all_tested += way.probability * rest.tested
        passes += way.probability * rest.passes
    return CountedTokens(counted, all_tested, passes)


def _rounds(loop: CountingLoop, untested: int, first: bool) -> Iterator[_Round]:
    """All outcomes of a round that tests ``untested`` earlier drafts."""
    for right in range(untested):
        is_next_wrong = loop.alpha**right * (1 - loop.alpha)
        yield _Round(is_next_wrong, gained=right + 1, untested=0)

    all_right = loop.alpha**untested
    drafted = 1 if first else loop.budget // loop.sequences
    yield _Round(all_right * loop.alpha, untested + drafted, drafted - 1)
    yield _Round(all_right * (1 - loop.alpha), untested + 1, 0)
