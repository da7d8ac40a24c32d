"""How often drafts pass, place by place in their window, of a pair's real models.

Counts alone: no duration is in them, so the models run undilated on the virtual clock.
What they say is remembered within a text, so that it is asked for once.

Knows no paper and no cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from speclib.core.sampling import Tokens
from speclib.data.pairs import Pair
from speclib.decoding.decode import decode, open_world
from speclib.decoding.encode import encode
from speclib.models.remembering import Memories
from speclib.trace.acceptance import acceptance
from speclib.worlds.virtual import Virtual


class PlaceCounts(NamedTuple):
    """Of one text, for each place of a window: how many drafts were tested there, and
    how many passed."""

    tested: list[int]
    accepted: list[int]


def place_counts(
    pair: Pair, texts: Sequence[Any], gamma: int, tokens: int
) -> list[PlaceCounts]:
    """The counts of speculative decoding with windows of ``gamma``, greedy, by text.

    Up to ``tokens`` tokens follow each of ``texts``, prompts as ``decode`` takes them.
    ``pair`` names a latency, for the clock. Raises BadValue where no draft of a text
    was tested.
    """
    memories = Memories()
    with open_world("virtual", pair) as world:
        assert isinstance(world, Virtual)
        opened = world.opened
        world.models = memories.models(opened, world.models)
        prompts = [encode(text, opened, tokens) for text in texts]
        written: list[Tokens] = [()] * len(texts)
        if not opened.is_toy:
            written = memories.write(opened, prompts, tokens)

        counts = []
        for text, prompt, target_text in zip(texts, prompts, written, strict=True):
            memories.forget()
            if target_text:
                memories.read(opened, prompt, target_text, gamma)
            run = decode(
                text,
                world=world,
                method="speculative",
                gamma=gamma,
                max_new_tokens=tokens,
            )
            counts.append(_counts_of(run, gamma))
        return counts


def _counts_of(run: Any, gamma: int) -> PlaceCounts:
    counts = acceptance(run)
    rest = [0] * (gamma - len(counts.tested))  # places that no window had
    return PlaceCounts([*counts.tested, *rest], [*counts.accepted, *rest])
