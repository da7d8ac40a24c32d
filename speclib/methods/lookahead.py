"""Lookahead decoding: the target writes ahead of itself and keeps what it wrote.

There is no draft model. Every target pass scores one tree with two parts: candidates to
test now, and a window that grows candidates for later. With window = 4 and ngram = 4
the window is

    position     0    1    2    3    4    5    6
    level 0      x    a1   a2   a3                     x is the text's last token
    level 1           b1   b2   b3   b4                b2 follows a1, b1 follows x
    level 2                c2   c3   c4   c5           c3 follows b2
    likeliest                   d3   d4   d5   d6      the likeliest after each c

and each diagonal is an n-gram that the target itself might write:
x b1 c2 d3,  a1 b2 c3 d4,  a2 b3 c4 d5,  a3 b4 c5 d6. They go into a pool. Then the
window moves by one position. Level 0 is dropped, and so is b1: the text's new last
token takes its position. The likeliest tokens become the new lowest level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, islice

from speclib.core.sampling import Tokens
from speclib.core.settings import require_counts
from speclib.core.verification import match_tree, offer
from speclib.worlds.world import World

from .method_facts import About


def lookahead(world: World, window: int = 7, ngram: int = 5, guesses: int = 7) -> None:
    """Writes ahead in a window, and tests n-grams that it wrote there earlier.

    ``window``: how many n-grams the window has, one along each diagonal.
    ``ngram``: how many tokens an n-gram has; the window has one level fewer.
    ``guesses``: how many of the latest n-grams the pool keeps for each first token.

    The *lookahead branch* of the paper is the window: the last levels of a Jacobi
    iteration ahead of the text. The *verification branch* tests the pool's n-grams that
    begin with the text's last token.

    Source: Fu et al. 2024, "Break the Sequential Dependency of LLM Inference Using
    Lookahead Decoding", section 3, Algorithm 2; the defaults (W, N, G) are from its
    README.
    Differences from the published code (github.com/hao-ai-lab/LookaheadDecoding, branch
    main, eed010d): it never credits a full match. If all tokens of an n-gram are
    accepted, it counts one too few, so the token that the pass returns after them is
    thrown away and decoded again; its pull request 68 fixes this. And its window starts
    with random tokens of the prompt; here it starts with the prompt's tokens in order.
    The first difference usually costs the published code passes; the second costs or
    saves some, depending on the text. ``speclab/mutants/lookahead_as_published.py``
    reverts both.
    Differences from the paper: its window starts at random, ours as described above.
    N-grams with a common prefix share its tokens in the pass. When sampling, an n-gram
    is accepted as far as the target draws it; the paper tries and removes n-grams one
    by one, which accepts equally often. The KV cache keeps only the first n-gram's
    tokens: any other accepted tokens are fed again. A pass moves the window by one
    position, no matter how many tokens are accepted, as in the published code
    ("ALWAYS_FWD_ONE"), and the prompt's n-grams stay out of the pool. The window is
    omitted once it no longer fits into the models' context.
    """
    require_window(window, ngram, guesses)
    pool = Pool(guesses)
    levels_ahead = Window(world.text, window_span(window, ngram), height=ngram - 1)
    while world.going:
        world.commit(write_ahead(world, pool, levels_ahead))


def require_window(window: int, ngram: int, guesses: int) -> None:
    """Raises BadValue if the window, the n-gram or the pool is too small."""
    require_counts(window=window, guesses=guesses)
    require_counts(least=3, ngram=ngram)


def window_span(window: int, ngram: int) -> int:
    """How many positions a window spans after the text's last token.

    Each level begins one position after the level above it, and level 0 begins with
    the text's last token, at position 0. The lowest of the ``ngram`` - 1 levels ends
    last: it has a node for each of ``window`` diagonals.
    """
    lowest_level = ngram - 2
    first_of_lowest = lowest_level  # level k begins at position k
    return first_of_lowest + window - 1


def write_ahead(world: World, pool: Pool, window: Window) -> Tokens:
    """Makes one target pass and returns its tokens; the pool and the window grow.

    The pass scores the pool's candidates and, as far as the context allows, the window.
    """
    last_token = world.text[-1]
    candidates = offer(world, pool.starting_with(last_token))
    window_fits = len(world.text) + window.span <= world.context
    tokens, parents = candidates.tokens, candidates.parents
    lowest_width = 0
    if window_fits:
        tokens += window.tokens
        parents += window.parents(first=len(candidates.drafted))
        lowest_width = window.lowest_width
    rows = world.wait(
        world.target.score_tree(world.text, tokens, parents, lowest_width)
    )

    if window_fits:
        likeliest = tuple(rows[-lowest_width:].argmax(-1).tolist())
        for ngram in window.ngrams(last_token, likeliest):
            pool.add(ngram)
        window.move(likeliest)
    return match_tree(world, candidates, rows).tokens


class Window:
    """The last levels of a Jacobi iteration; see the picture at the top of this file.

    It starts as one level of ``span`` tokens, which repeat the prompt. Each pass adds a
    level and drops the other levels' first tokens, until there are ``height`` levels.
    """

    def __init__(self, prompt: Sequence[int], span: int, height: int):
        self.span = span
        self.height = height
        self.levels: list[Tokens] = [tuple(islice(cycle(prompt), span))]

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
        """The parents of all nodes, which are numbered from ``first``.

        Level 0 is a line after the text. From level 1 down, a node's parent is the node
        one position before it in the level above::

            text ─┬─ a1 ─┬─ a2 ─┬─ a3 ─┐        nodes      parents if first = 0
                  │      │      │      │        0 1 2      -1  0  1
                  b1     b2     b3     b4       3 4 5 6    -1  0  1  2
                  └─ c2  └─ c3  └─ c4  └─ c5    7 8 9 10    3  4  5  6
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
        """Moves by one position; ``likeliest`` becomes the lowest level."""
        if len(self.levels) == self.height:
            top = self.levels[1][1:]
            self.levels = [top, *self.levels[2:], likeliest]
        else:
            shorter = [level[1:] for level in self.levels]
            self.levels = [*shorter, likeliest[-len(self.levels[0]) :]]


class Pool:
    """The latest n-grams by their first token, at most ``most`` for each."""

    def __init__(self, most: int):
        self.most = most
        self._tails: dict[int, dict[Tokens, None]] = {}  # as ordered sets, oldest first

    def starting_with(self, token: int) -> list[Tokens]:
        """The rest of each n-gram that begins with ``token``, latest first."""
        return list(reversed(self._tails.get(token, {})))

    def replace(self, ngram: Tokens, better: Tokens) -> None:
        """Replaces ``ngram`` with ``better``, now the latest for its first token."""
        first_token, tail = ngram[0], ngram[1:]
        self._tails.get(first_token, {}).pop(tail, None)
        self.add(better)

    def add(self, ngram: Tokens) -> None:
        """Adds ``ngram``, now the latest for its first token."""
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
    uses_draft=False,
    narrow="window=2, ngram=3, guesses=2",
)
