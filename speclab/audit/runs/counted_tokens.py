"""Tokens that DuoDecoding's published loop counts, and those that a pass has tested.

The loop is walked over every outcome: each draft is right with the same probability,
whatever came before it. No clock is needed, since a round is one target pass. A round
with one sequence of four tokens, of which three were drafted and not tested before:

    text so far   t t t t u u u        u: drafted, counted, not tested by any pass
    drafted now                 d d d d

If all u and the first d are right, the text grows by four, of which three are not
tested. Else it ends with the target's own token at the first position that was wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from speclab.audit.quantity import Quantities, Quantity
from speclab.papers.load_papers import load_paper
from speclab.theory.closed_forms import sd_tokens
from speclib.errors import BadValue


class Loop(NamedTuple):
    """A published loop that ends as soon as it counts ``limit`` tokens.

    Every round drafts ``sequences`` of so many tokens that they share the ``budget``,
    but for the first round, which drafts one token. ``alpha`` is the probability that
    a draft is right. A further sequence finds nothing that the first one missed.
    """

    alpha: float
    limit: int
    budget: int
    sequences: int

    @property
    def length(self) -> int:
        """How many tokens a sequence has."""
        return self.budget // self.sequences


class Ended(NamedTuple):
    """What is expected when the loop has ended."""

    counted: float
    tested: float
    passes: float


class Round(NamedTuple):
    """One way in which a round can go, with its probability.

    ``gained`` tokens are added to the tested ones of before, and the last ``untested``
    of them are drafts that no pass has tested.
    """

    probability: float
    gained: int
    untested: int


@cache
def walk(loop: Loop, tested: int = 0, untested: int = 0, first: bool = True) -> Ended:
    """What is expected of the loop from here on, over every outcome."""
    counted = tested + untested
    if counted >= loop.limit:
        return Ended(counted, tested, passes=0)

    expected = Ended(0.0, 0.0, passes=1.0)
    for way in _rounds(loop, untested, first):
        newly_tested = tested + way.gained - way.untested
        rest = walk(loop, newly_tested, way.untested, False)
        expected = Ended(
            expected.counted + way.probability * rest.counted,
            expected.tested + way.probability * rest.tested,
            expected.passes + way.probability * rest.passes,
        )
    return expected


def _rounds(loop: Loop, untested: int, first: bool) -> Iterator[Round]:
    """All ways in which a round can go that tests so many drafts of before."""
    for right in range(untested):
        is_next_wrong = loop.alpha**right * (1 - loop.alpha)
        yield Round(is_next_wrong, gained=right + 1, untested=0)

    all_right = loop.alpha**untested
    drafted = 1 if first else loop.length
    yield Round(all_right * loop.alpha, untested + drafted, drafted - 1)
    yield Round(all_right * (1 - loop.alpha), untested + 1, 0)


def counted_tokens(
    requests: int, alpha: float, tokens: int, budget: int, sequences: int = 1
) -> Quantities:
    """Expected tokens that are counted and tested, a text and a target pass each.

    Plain decoding has one token a pass, so tokens a pass are a speed-up, as far as a
    round takes no longer than a target pass.
    """
    if budget % sequences:
        raise BadValue(f"{sequences} sequences do not share {budget} tokens evenly")
    ended = walk(Loop(alpha, tokens, budget, sequences))
    numbers = {
        "counted tokens": ended.counted,
        "tested tokens": ended.tested,
        "target passes": ended.passes,
        "counted tokens a pass": ended.counted / ended.passes,
        "tested tokens a pass": ended.tested / ended.passes,
        "counted over tested": ended.counted / ended.tested,
    }
    return {name: Quantity.exact(number) for name, number in numbers.items()}


# -- speculative decoding's window -----------------------------------------------------
MOST_DRAFTS = 24  # a round, of those that are tried
DRAFT_SHARE = 0.143  # of a target pass: data/latency/duodecoding/llama2-7b-sps.toml


def speculative_at_its_best(requests: int, target: str, task: str) -> Quantities:
    """A printed speed-up of speculative decoding, and what another window would give.

    The print gives the acceptance rate at the window of the scripts, if each draft is
    right with the same probability and a draft pass costs the share of a target pass
    that explains most of the table.
    """
    paper = load_paper("duodecoding")
    printed = paper.printed("table-1", f"{target} / SpS", f"{task} / speedup")
    duodecoding = paper.printed("table-1", f"{target} / DuoDec", f"{task} / speedup")
    if printed is None or duodecoding is None:
        raise BadValue(f"DuoDecoding's Table 1 has no speed-up {[target, task]}")

    window = paper.facts["scripts"]["sps_gamma"]
    alpha = _alpha_behind(printed, window)
    speeds = {drafts: _speed(alpha, drafts) for drafts in range(1, MOST_DRAFTS + 1)}
    best_window = max(speeds, key=speeds.__getitem__)
    return {
        "printed": Quantity.exact(printed, "paper"),
        "acceptance rate": Quantity.exact(alpha, "arithmetic"),
        "best window": Quantity.exact(best_window, "arithmetic"),
        "at its best window": Quantity.exact(speeds[best_window], "arithmetic"),
        "DuoDecoding, printed": Quantity.exact(duodecoding, "paper"),
    }


def _speed(alpha: float, drafts: int) -> float:
    """Speculative decoding's speed-up over plain decoding."""
    return float(sd_tokens(alpha, drafts)) / (1 + drafts * DRAFT_SHARE)


def _alpha_behind(speedup: float, drafts: int) -> float:
    """The acceptance rate at which speculative decoding has this speed-up."""
    low, high = 0.0, 1.0
    for _ in range(60):  # halves the range each time
        middle = (low + high) / 2
        if _speed(middle, drafts) < speedup:
            low = middle
        else:
            high = middle
    return low
