"""Lookahead decoding that behaves like its published code where ours differs from it.

Written from scratch after github.com/hao-ai-lab/LookaheadDecoding at eed010d.
"""

from __future__ import annotations

import numpy as np

from speclib.core.sampling import Tokens
from speclib.methods.lookahead import (
    Pool,
    Window,
    require_window,
    window_span,
    write_ahead,
)
from speclib.worlds.world import World


def lookahead_as_published(
    world: World, window: int = 7, ngram: int = 5, guesses: int = 7
) -> None:
    """Writes the same text as ``lookahead``, with the passes of the published code.

    If all tokens of an n-gram are accepted, the token after them is discarded, so a
    pass yields at most ``ngram`` - 1 tokens. The window begins with random tokens of
    the prompt.
    """
    require_window(window, ngram, guesses)
    span = window_span(window, ngram)
    pool = Pool(guesses)
    levels_ahead = Window(draw_from_text(world, span), span, height=ngram - 1)
    while world.going:
        verified = write_ahead(world, pool, levels_ahead)
        world.commit(verified[: ngram - 1])


def draw_from_text(world: World, count: int) -> Tokens:
    """``count`` tokens from uniformly random positions of the text."""
    shares = np.bincount(tuple(world.text), minlength=world.vocab) / len(world.text)
    tokens = []
    for index in range(count):
        position = len(world.text) + index
        tokens.append(world.coins.choose(shares, position, "draft"))
    return tuple(tokens)
