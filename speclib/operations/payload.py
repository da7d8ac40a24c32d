"""What an operation's trace event shows of it, beyond what every event has.

A payload answers for its own event: how many forward passes it stands for, which of its
tokens follow which, how it is drawn in a timeline. So whoever reads a trace never asks
for an operation's name.

Knows no picture: a ``Cell`` is a rectangle in shares of the operation's time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from speclib.core.sampling import Tokens


class Cell(NamedTuple):
    """A rectangle in a timeline's lane.

    ``kind``: accepted, rejected, discarded, dropped (of a sequence or a tree that went
    another way), score, unused. It begins after ``start`` of the operation's time and
    takes ``share`` of it. It stands in ``row`` of the ``rows`` that share the lane's
    height. ``tip``: lines that say what it is.
    """

    kind: str
    start: float
    share: float
    label: str
    tip: tuple[str, ...]
    row: int = 0
    rows: int = 1


class OwnEvent(Protocol):
    """What an operation asks of its own trace event; see ``trace.events.Event``."""

    @property
    def op(self) -> str: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def outcome(self) -> tuple[str, ...]: ...
    @property
    def kept(self) -> int: ...
    @property
    def fed(self) -> int: ...
    @property
    def cancelled(self) -> bool: ...
    @property
    def payload(self) -> Any: ...


class Words(Protocol):
    """How token ids are spelled in a picture."""

    def label(self, token: int) -> str:
        """Short: what a cell has room for."""
        ...

    def spelled(self, tokens: Sequence[int]) -> str:
        """All of the tokens' text, on one line."""
        ...


@dataclass(frozen=True)
class Payload:
    """Of an event about which there is nothing more to say, such as a commit."""

    is_drafting: ClassVar[bool] = False  # the draft model's work: its tokens are drafts
    is_scoring: ClassVar[bool] = False  # one pass of the target model

    @property
    def candidates(self) -> int:
        """How many of the tokens fed, the last ones, the target was asked to test."""
        return 0

    @property
    def likeliest(self) -> Tokens:
        """What the target found likeliest after the last of its candidates."""
        return ()

    def pass_count(self, tokens: Tokens) -> int:
        """Forward passes."""
        return 1

    def drafts_fed(self, tokens: Tokens) -> int:
        """How many of the tokens fed it had drafted itself."""
        return 0

    @property
    def fuzzy_places(self) -> int:
        """How many places of the KV cache, the last ones, fuzzy passes have filled."""
        return 0

    @property
    def drops_fuzzy_places(self) -> bool:
        """Whether it forgets them when it ends."""
        return False

    def depths(self, tokens: Tokens) -> tuple[int, ...]:
        """For every token, how many of the same event come before it on its way."""
        return tuple(range(len(tokens)))

    def is_line(self, tokens: Tokens) -> bool:
        """Whether each token follows the one before it: no tree, and one sequence."""
        return self.depths(tokens) == tuple(range(len(tokens)))

    def sequences(self, tokens: Tokens) -> tuple[Tokens, ...]:
        """The tokens by sequence; of a line or a tree there is one."""
        return (tokens,)

    def row_count(self, tokens: Tokens) -> int:
        """How many rows of cells it takes."""
        return 1

    def cells(self, event: OwnEvent, words: Words) -> list[Cell]:
        """How a timeline draws it."""
        return [Cell("unused", 0.0, 1.0, "", (event.op,))]


@dataclass(frozen=True)
class DraftPayload(Payload):
    """Of tokens that the draft model wrote."""

    is_drafting: ClassVar[bool] = True

    def pass_count(self, tokens: Tokens) -> int:
        """One for each token of the longest way; none where nothing came out."""
        return 1 + max(self.depths(tokens), default=-1)

    def drafts_fed(self, tokens: Tokens) -> int:
        """All but the last one: nothing has been drafted after that yet."""
        return max(0, len(tokens) - 1)

    def cells(self, event: OwnEvent, words: Words) -> list[Cell]:
        """One cell per drafted token, an equal share of the duration each."""
        return draft_cells(event.tokens, event.outcome, words)


def draft_cells(
    tokens: Sequence[int], outcomes: Sequence[str], words: Words
) -> list[Cell]:
    """A row of cells, one per drafted token, coloured by what became of it."""
    if not tokens:
        return [Cell("unused", 0.0, 1.0, "", ("drafting, cancelled",))]

    cells = []
    count = len(tokens)
    for place, (token, outcome) in enumerate(zip(tokens, outcomes, strict=True)):
        tip = (drafted_tip(token, outcome, words), f"token {place + 1} of {count}")
        label = words.label(token)
        cells.append(Cell(outcome, place / count, 1 / count, label, tip))
    return cells


def drafted_tip(token: int, outcome: str, words: Words) -> str:
    """One line on a drafted token."""
    what_became = "discarded: never tested" if outcome == "discarded" else outcome
    return f"drafted “{words.spelled([token])}” (id {token}): {what_became}"
