"""Lookahead decoding: the target writes ahead of itself and keeps what it wrote.

No draft model runs. Every target pass scores one tree that has two parts: candidates to
test now, and a window that grows candidates for later. With window = 4
and ngram = 4 it is

    place        0    1    2    3    4    5    6
    level 0      x    a1   a2   a3                     x is the text's last token
    level 1           b1   b2   b3   b4                b2 follows a1, b1 follows x
    level 2                c2   c3   c4   c5           c3 follows b2
    likeliest                   d3   d4   d5   d6      what the pass says after each c

and each diagonal is an n-gram that the target itself might write:
x b1 c2 d3,  a1 b2 c3 d4,  a2 b3 c4 d5,  a3 b4 c5 d6. They go into a pool. Then the
window moves one place: level 0 goes, and b1, whose place the text's new last token has
taken, whatever that is. The likeliest tokens are the new lowest level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, islice

from speclib.core.sampling import Tokens
from speclib.core.settings import require_counts
from speclib.core.verification import match_tree, offer
from speclib.worlds.world import World

from .page_facts import About, as_it_is


def lookahead(world: World, window: int = 7, ngram: int = 5, guesses: int = 7) -> None:
    """Writes ahead in a ``window``, and tests n-grams that it wrote before.

    The *lookahead branch* of the paper is the window: the last ``ngram`` - 1 levels of
    a Jacobi iteration over ``window`` places ahead of the text. The *verification
    branch* tests the pool's n-grams that begin with the text's last token. The pool
    keeps the latest ``guesses`` n-grams for each first token.

    Source: Fu et al. 2024, "Break the Sequential Dependency of LLM Inference Using
    Lookahead Decoding", section 3, Algorithm 2; the defaults (W, N, G) are those of its
    README.
    Differences from the published code (github.com/hao-ai-lab/LookaheadDecoding, branch
    main, eed010d): it never credits a full match. Where all tokens of an n-gram pass,
    its count of them ends one too low, so the token that the pass gives after them is
    thrown away and decoded again; its pull request 68 mends this. And its window begins
    with random tokens of the prompt, here with the prompt's tokens in order. As a rule
    the first costs passes; the second costs or saves some, as the text has it. Both are
    put back in ``speclab/mutants/lookahead_as_published.py``.
    Differences from the paper: the window begins as said, there at random. N-grams that
    begin alike are fed once. When sampling, an n-gram passes where the target draws it;
    there each is tried and removed in turn, which passes as often. The cache keeps the
    first n-gram's tokens only: others that pass are fed again. The window moves one
    place a pass, however many tokens pass, as published ("ALWAYS_FWD_ONE"), and n-grams
    of the prompt stay out of the pool. The window is left out once it no longer fits
    into the models' context.
    """
    require_window(window, ngram, guesses)
    pool = Pool(guesses)
    ahead = Window(world.text, places_ahead(window, ngram), height=ngram - 1)
    while world.going:
        world.commit(write_ahead(world, pool, ahead))


def require_window(window: int, ngram: int, guesses: int) -> None:
    """Raises BadValue for a window, an n-gram or a pool that is too small."""
    require_counts(window=window, guesses=guesses)
    require_counts(least=3, ngram=ngram)


def places_ahead(window: int, ngram: int) -> int:
    """How many places level 0 of a window has at first.

    There will be ``ngram`` - 1 levels, and each new one takes a place of level 0. In
    the end it has ``window`` - 1, which with the text's last token begin ``window``
    diagonals.
    """
    return window + ngram - 3


def write_ahead(world: World, pool: Pool, ahead: Window) -> Tokens:
    """One target pass: the tokens that it gives; the pool and the window grow.

    The pass scores the pool's candidates and, as far as the context allows, the window.
    """
    last_token = world.text[-1]
    candidates = offer(world, pool.starting_with(last_token))
    has_room = len(world.text) + ahead.places <= world.context
    tokens, parents = candidates.tokens, candidates.parents
    looked = 0
    if has_room:
        tokens += ahead.tokens
        parents += ahead.parents(first=len(candidates.drafted))
        looked = ahead.lowest_width
    rows = world.wait(world.target.score_tree(world.text, tokens, parents, looked))

    if has_room:
        likeliest = tuple(rows[-looked:].argmax(-1).tolist())
        for written in ahead.ngrams(last_token, likeliest):
            pool.add(written)
        ahead.move(likeliest)
    return match_tree(world, candidates, rows).tokens


class Window:
    """The last levels of a Jacobi iteration; see the picture at the top of this file.

    It begins as one level of ``places`` tokens, the prompt's own repeated. Each pass
    adds a level until there are ``height`` of them.
    """

    def __init__(self, prompt: Sequence[int], places: int, height: int):
        self.places = places
        self.height = height
        self.levels: list[Tokens] = [tuple(islice(cycle(prompt), places))]

    @property
    def tokens(self) -> Tokens:
        """All nodes, level by level."""
        every: Tokens = ()
        for level in self.levels:
            every += level
        return every

    @property
    def lowest_width(self) -> int:
        """How many nodes the lowest level has."""
        return len(self.levels[-1])

    def parents(self, first: int) -> tuple[int, ...]:
        """The parents of all nodes, the first of which has the place ``first``.

        Level 0 is a line after the text. From level 1 down, a node follows the one that
        stands a place to the left in the level above; for the first of level 1 that is
        the text.
        """
        top = self.levels[0]
        line = (-1, *range(first, first + len(top)))
        parents = line[:-1]
        above = line
        for level in self.levels[1:]:
            start = first + len(parents)
            parents += above
            above = tuple(range(start, start + len(level)))
        return parents

    def ngrams(self, last_token: int, likeliest: Tokens) -> Iterator[Tokens]:
        """The diagonals of a full window: n-grams that the target might write."""
        if len(self.levels) < self.height:
            return
        first_tokens = (last_token, *self.levels[0])
        yield from zip(first_tokens, *self.levels[1:], likeliest, strict=True)

    def move(self, likeliest: Tokens) -> None:
        """Goes one place further; ``likeliest`` becomes the lowest level."""
        if len(self.levels) == self.height:
            top = self.levels[1][1:]
            self.levels = [top, *self.levels[2:], likeliest]
        else:
            shorter = [level[1:] for level in self.levels]
            self.levels = [*shorter, likeliest[-len(self.levels[0]) :]]


class Pool:
    """The latest n-grams by their first token, at most ``most`` of each."""

    def __init__(self, most: int):
        self.most = most
        self._tails: dict[int, dict[Tokens, None]] = {}  # as ordered sets, oldest first

    def starting_with(self, token: int) -> list[Tokens]:
        """What followed ``token``, the latest first."""
        return list(reversed(self._tails.get(token, {})))

    def replace(self, ngram: Tokens, better: Tokens) -> None:
        """Has ``better`` in place of ``ngram``, as the latest of its first token."""
        first_token, tail = ngram[0], ngram[1:]
        self._tails.get(first_token, {}).pop(tail, None)
        self.add(better)

    def add(self, ngram: Tokens) -> None:
        """Remembers ``ngram`` as the latest of its first token."""
        first_token, tail = ngram[0], ngram[1:]
        tails = self._tails.setdefault(first_token, {})
        tails.pop(tail, None)
        tails[tail] = None
        if len(tails) > self.most:
            oldest = next(iter(tails))
            del tails[oldest]


ABOUT = About(
    name="Lookahead decoding",
    variants=(
        {"window": 3, "ngram": 3, "guesses": 2},
        {"window": 1, "ngram": 4},
    ),
    worth_trying=as_it_is,
)
