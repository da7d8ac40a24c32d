"""Experiments on the codes of 2026: planted mistakes, and drafts that are random."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from speclab.audit.planted.engines import (
    BLOCK,
    ENGINE_MISTAKES,
    EngineMistake,
    chances_by_products,
)
from speclab.audit.quantity import Quantities, Quantity
from speclib.core.sampling import Sampler
from speclib.errors import BadValue, unknown_name
from speclib.models.toy import Random
from speclib.worlds.enumerator import outcomes, total_variation, truth

from .walks import CLOSE, DRAFT_SEED, TARGET_SEED, UNRELATED, VOCAB, Near

SAMPLED, GREEDY = Sampler(temperature=1.0), Sampler(temperature=0.0)
GREEDY_DRAFTS = 60  # of which some agree with the target for the first few tokens


@cache
def _error(
    method: Callable[..., None],
    settings: tuple[tuple[str, Any], ...],
    tokens: int,
    share: float,
    draft_seed: int = DRAFT_SEED,
    sampler: Sampler = SAMPLED,
) -> float:
    """How far a method's texts are from the target's, as total variation."""
    target = Random(VOCAB, TARGET_SEED, horizon=1 + tokens)
    models = {"draft": Near(target, draft_seed, share), "target": target}
    written = outcomes(method, models, tokens, sampler=sampler, **dict(settings))
    return total_variation(written, truth(target, tokens, sampler=sampler))


def _greedy_error(planted: EngineMistake) -> float:
    """The largest error of greedy texts, over many drafts.

    A greedy text has one outcome. So it is walked with many drafts, among them some
    that agree with the target for a while.
    """
    settings = tuple(planted.settings.items())
    largest = 0.0
    for seed in range(GREEDY_DRAFTS):
        error = _error(
            planted.mistaken, settings, planted.tokens, UNRELATED, 1000 + seed, GREEDY
        )
        largest = max(largest, error)
    return largest


def engine_mistake(requests: int, mistake: str) -> Quantities:
    """What a mistake of an engine costs, and that the method without it costs nothing.

    With models that have nothing in common, with a draft that is close to its target,
    and when the likeliest token is always taken.
    """
    if mistake not in ENGINE_MISTAKES:
        raise unknown_name(f"no engine's mistake {mistake!r}", mistake, ENGINE_MISTAKES)
    planted = ENGINE_MISTAKES[mistake]
    settings = tuple(planted.settings.items())
    tokens = planted.tokens
    errors = {
        "error with the mistake": _error(planted.mistaken, settings, tokens, UNRELATED),
        "error with a draft that is close": _error(
            planted.mistaken, settings, tokens, CLOSE
        ),
        "error when greedy": _greedy_error(planted),
        "error without the mistake": _error(planted.right, settings, tokens, UNRELATED),
    }
    return {name: Quantity.exact(value) for name, value in errors.items()}


def random_draft(requests: int, vocab: int, digits: int, token: int) -> Quantities:
    """How often a random draft is a given token, and so how far a text may be off.

    The draft is the first largest one of ``vocab`` uniform numbers. Numbers with
    ``digits`` binary digits after the point have only 2 ** digits values, and many
    share the largest. Numbers without ties would make all tokens alike.

    A text whose next token is the draft wherever the draft is the target's likeliest,
    and otherwise drawn, is off by at most the draft's chance.
    """
    if not 0 <= token < vocab:
        raise BadValue(
            f"token is {token}; it must be from 0 to vocab - 1 = {vocab - 1}"
        )
    if digits < 1:
        raise BadValue(f"digits is {digits}; it must be 1 or more")
    largest = 2.0**-digits
    quantities = {
        "chance without ties": 1 / vocab,
        "chance of this token": largest * (1 - largest) ** token,
        "chance of token 0": largest,
        "share of drafts under id 1024": 1 - (1 - largest) ** min(vocab, 1024),
    }
    return {name: Quantity.exact(v, "arithmetic") for name, v in quantities.items()}


def block_of_sure_drafts(requests: int, chance: float) -> Quantities:
    """How often a whole block passes whose drafts each have this chance at the target.

    The drafts are certain, so a block must pass as often as the target would write it.
    """
    must_be = chance**BLOCK
    bounds = [chance, chance**2, must_be]
    quantities = {
        "chance by products": float(chances_by_products(bounds)[BLOCK]),
        "chance that it must have": must_be,
    }
    return {name: Quantity.exact(v, "arithmetic") for name, v in quantities.items()}
