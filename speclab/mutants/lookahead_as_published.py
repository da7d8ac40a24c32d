"""Lookahead decoding with what its published code does otherwise put back.

Read in github.com/hao-ai-lab/LookaheadDecoding at eed010d, and written anew.
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
    """Takes the passes of the published code, and gives the same text as ``lookahead``.

    Where all tokens of an n-gram are accepted, the token that the pass gives after them
    is thrown away: a pass gives ``ngram`` - 1 tokens at most. The window begins with
    tokens of the prompt that are drawn at random.
    """
    require_window(window, ngram, guesses)
    span = window_span(window, ngram)
    pool = Pool(guesses)
    levels_ahead = Window(draw_from_text(world, span), span, height=ngram - 1)
    while world.going:
        verified = write_ahead(world, pool, levels_ahead)
        world.commit(verified[: ngram - 1])


def draw_from_text(world: World, count: int) -> Tokens:
    """``count`` tokens of the text, each drawn from all of its positions alike."""
    shares = np.bincount(tuple(world.text), minlength=world.vocab) / len(world.text)
    tokens = []
    for index in range(count):
        position = len(world.text) + index
        tokens.append(world.coins.choose(shares, position, "draft"))
    return tuple(tokens)
