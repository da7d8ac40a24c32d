"""Lookahead decoding: the target writes ahead of itself and keeps what it wrote; no draft runs."""

from itertools import cycle, islice

from speclib.core.sampling import ids
from speclib.core.verification import follow, offer
from speclib.errors import SpeclibError


def lookahead(world, window: int = 7, ngram: int = 5, guesses: int = 7):
    """Every target pass has two branches, one ``Tree`` together. The *lookahead branch* holds the
    last ``ngram`` - 1 levels of a Jacobi iteration over ``window`` places ahead of the text, whose
    last token is the first of the first level. A node follows the one above it, in the first level
    the one before it. What the target finds likeliest after the lowest level is the next level, and
    each column has grown an n-gram, which the pool keeps under its first token, the ``guesses``
    last ones of each. The *verification branch* tests those under the text's last token.

    Source: Fu et al. 2024, "Break the Sequential Dependency of LLM Inference Using Lookahead
    Decoding", section 3, Algorithm 2; the defaults (W, N, G) are those of its README.
    Differences from the paper: the window begins with the prompt's tokens in order, there with
    random ones of it; n-grams that begin alike are fed once; sampling, an n-gram passes where the
    target draws it, there each is tried and removed in turn: as often. The cache keeps the first
    n-gram's tokens only: others that pass are fed again. The window moves one place a pass, however
    many pass, as published ("ALWAYS_FWD_ONE"), and n-grams of the prompt stay out of the pool. The
    window ends where the models' context does.
    """
    for name, value, least in (
        ("window", window, 1),
        ("ngram", ngram, 3),
        ("guesses", guesses, 1),
    ):
        if value < least:
            raise SpeclibError(f"{name} is {value}: give at least {least}")
    deep = window + ngram - 3
    levels, pool = [tuple(islice(cycle(world.text), deep))], {}
    while world.going:
        last, ahead = (
            world.text[-1],
            levels if len(world.text) + deep <= world.context else [()],
        )
        draft, parents = offer(world, reversed(pool.get(last, ())))
        looked = len(ahead[-1])
        rows = world.wait(
            world.target.tree(
                world.text,
                sum(ahead, ids(draft)),
                parents + _links(ahead, len(draft)),
                looked,
            )
        )
        world.commit(follow(world, draft, parents, rows).tokens)
        if looked:
            best = tuple(rows[-looked:].argmax(-1).tolist())
            if len(levels) == ngram - 1:
                for key, *rest in zip(
                    (last, *levels[0]), *levels[1:], best, strict=True
                ):
                    _keep(pool.setdefault(key, {}), tuple(rest), guesses)
            levels = _moved(levels, best, ngram - 1)


def _links(levels, first: int) -> tuple[int, ...]:
    """The parents of a window's nodes, level by level; its first node's place is ``first``."""
    above = (-1, *range(first, first + len(levels[0])))
    parents = above[:-1]
    for level in levels[1:]:
        start = first + len(parents)
        parents, above = parents + tuple(above), range(start, start + len(level))
    return parents


def _moved(levels, best, most: int):
    """The next window: ``best`` is the new level, a place further; the oldest of ``most`` goes."""
    if len(levels) == most:
        return [levels[1][1:], *levels[2:], best]
    return [*(level[1:] for level in levels), best[-len(levels[0]) :]]


def _keep(tails, tail, most: int) -> None:
    """Remembers an n-gram as its key's latest."""
    tails.pop(tail, None)
    tails[tail] = None
    if len(tails) > most:
        del tails[next(iter(tails))]
