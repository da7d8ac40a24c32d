"""Five tests of a draft, each with a bug to find, and a picture of their outcomes."""

from __future__ import annotations

from typing import Any

from speclab.check.line import LineCase
from speclab.check.line_mistakes import MISTAKES, verify
from speclab.views.live.live_picture import WithSentence
from speclab.views.live.outcome_tree import Branch, OutcomeTreePicture
from speclab.views.widgets.controls import control, toolbar
from speclib.core.sampling import Row, Tokens
from speclib.errors import unknown_name

from .card import Card, not_begun, right_card, wrong_card
from .formulas import distribution
from .tests_to_write import Verify

NO_BUG = "no bug"
# The mistake behind each letter, in no particular order.
HIDDEN = {
    "A": "residual from p",
    "B": "q forgotten in the test",
    "C": "reused coin",
    "D": "untested drafts",
    "E": "residual not normalised",
}
# How the outcome tree of each bug differs from that of the correct test.
SHOWN = {
    "residual from p": "The right number of drafts is accepted. But after b is "
    "rejected, b may still be written.",
    "q forgotten in the test": "Too few drafts of each token are accepted. Even a and "
    "c, which the draft model proposes too rarely, are rejected at times.",
    "reused coin": "The right number of drafts is accepted, and after b is rejected, b "
    "is never written. But c is the replacement more often than it should be, though "
    "less often than a.",
    "untested drafts": "No draft is rejected, so nothing is replaced: the sums on the "
    "right are q.",
    "residual not normalised": "The right number of drafts is accepted, and after b is "
    "rejected, b is never written. But most replacements are c, the last token.",
}
TOKENS = ("a", "b", "c")
P, Q = distribution(0.5, 0.2, 0.3), distribution(0.2, 0.6, 0.2)


def method_of(letter: str) -> Verify:
    """The test behind this letter, or the correct test for "no bug"."""
    if letter == NO_BUG:
        return verify
    for mistake in MISTAKES:
        if mistake.name == HIDDEN[letter]:
            return mistake.solution
    raise AssertionError(f"no mistake is called {HIDDEN[letter]!r}")


def branches_of(test: Verify, p: Row = P, q: Row = Q) -> list[Branch]:
    """The outcomes for each drafted token, over all coins."""
    texts: list[Tokens] = [(), *((token,) for token in range(len(p)))]
    draft, target = dict.fromkeys(texts, q), dict.fromkeys(texts, p)
    case = LineCase("one draft", draft, target, gamma=1)

    branches = []
    for (token,), probability in case.proposals():
        accepted, replaced = 0.0, [0.0] * len(p)
        for committed, share in case.outcomes(test, (token,), list).items():
            if len(committed) == 2:  # the draft and a bonus
                accepted += probability * share
            else:
                replaced[committed[0]] += probability * share
        branches.append(Branch(TOKENS[token], probability, accepted, tuple(replaced)))
    return branches


class OutcomeTree(WithSentence):
    """The outcomes of a test of drafts, which the reader chooses from a dropdown."""

    def __init__(self) -> None:
        self.tree = OutcomeTreePicture(branches_of(verify), TOKENS, P.tolist())
        self.chooser = control("test of a draft", (NO_BUG, *HIDDEN))
        self.chooser.observe(self._show, "value")
        super().__init__(toolbar({"test": self.chooser}), self.tree)

    def _show(self, _change: object) -> None:
        self.tree.show(branches_of(method_of(self.chooser.value)))


def outcome_tree() -> OutcomeTree:
    """All outcomes of one draft, under the correct test and five tests with a bug."""
    return OutcomeTree()


class NamedBugs:
    """A card for each letter, shown one below another."""

    def __init__(self, cards: dict[str, Card]):
        self.cards = cards

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.cards.values()))

    def _repr_html_(self) -> str:
        return "".join(card._repr_html_() for card in self.cards.values())


def find_bugs(**names: Any) -> NamedBugs:
    """Judges whether a student has named the bug behind each letter.

    ``names``: letter -> name, as in ``find_bugs(A="reused coin")``. A ``...`` is
    skipped. Case and extra spaces do not matter. The card for an unknown letter or name
    lists the known ones.
    """
    cards = {}
    for letter, name in names.items():
        if name is not ...:
            cards[letter] = _card_of(letter.upper(), str(name))
    if not cards:
        next_step = "Replace each `...` with a name, and run this cell again."
        cards = {"": not_begun(next_step)}
    return NamedBugs(cards)


def _card_of(letter: str, name: str) -> Card:
    name = " ".join(name.casefold().split())
    if letter not in HIDDEN:
        return wrong_card(str(unknown_name(f"no test {letter!r}", letter, HIDDEN)))
    if name not in HIDDEN.values():
        problem = f"test {letter}: there is no bug {name!r}"
        return wrong_card(str(unknown_name(problem, name, sorted(HIDDEN.values()))))
    if HIDDEN[letter] == name:
        return right_card(f"Test {letter} has this bug: {name}.")
    return wrong_card(
        f"Test {letter} has a different bug, not {name!r}.",
        f"In {letter}: {SHOWN[HIDDEN[letter]]}",
        f"With {name!r}: {SHOWN[name]}",
    )
