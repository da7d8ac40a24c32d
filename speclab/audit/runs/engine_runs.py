"""Experiments on the codes of 2026: planted mistakes, and drafts that are random."""

from __future__ import annotations

from speclab.audit.quantity import Quantities, Quantity
from speclab.mutants.engine_mistakes import BLOCK, ENGINE_MUTANTS, chances_by_products
from speclab.mutants.mutant import Mutant
from speclib.core.sampling import Sampler
from speclib.errors import BadValue, unknown_name

from .walks import UNRELATED, error_of, errors_of

GREEDY = Sampler(temperature=0.0)
GREEDY_DRAFTS = 60  # of which some agree with the target for the first few tokens


def _greedy_error(mutant: Mutant) -> float:
    """The largest error of greedy texts, over many drafts.

    A greedy text has one outcome. So it is walked with many drafts, among them some
    that agree with the target for a while.
    """
    settings = tuple(mutant.settings.items())
    largest = 0.0
    for seed in range(1000, 1000 + GREEDY_DRAFTS):
        error = error_of(
            mutant.mistaken, settings, UNRELATED, mutant.tokens, seed, GREEDY
        )
        largest = max(largest, error)
    return largest


def engine_mistake(requests: int, mistake: str) -> Quantities:
    """What a mistake of an engine costs, and that the method without it costs nothing.

    With models that have nothing in common, with a draft that is close to its target,
    and when the likeliest token is always taken.
    """
    if mistake not in ENGINE_MUTANTS:
        raise unknown_name(f"no engine's mistake {mistake!r}", mistake, ENGINE_MUTANTS)
    mutant = ENGINE_MUTANTS[mistake]
    errors = errors_of(mutant)
    without_mistake = errors.pop("error without the mistake")
    errors["error when greedy"] = _greedy_error(mutant)
    errors["error without the mistake"] = without_mistake  # reports list it last
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
    """How often a block is accepted whose drafts each have this chance at the target.

    The drafts are certain, so a block must be accepted as often as the target would
    write it.
    """
    must_be = chance**BLOCK
    bounds = [chance, chance**2, must_be]
    quantities = {
        "chance by products": float(chances_by_products(bounds)[BLOCK]),
        "chance that it must have": must_be,
    }
    return {name: Quantity.exact(v, "arithmetic") for name, v in quantities.items()}
