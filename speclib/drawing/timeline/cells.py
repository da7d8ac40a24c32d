"""How an operation is drawn: cells, in shares of its time, from what its event says.

A target pass is one cell. What was drafted is a row of cells, one a token::

    a line        | d1 | d2 | d3 | d4 |

    a tree        | d1 | d2 | d3 |          each level's accepted node, or the first one
                  |    | +2 | +1 |          how many other nodes the level has

    sequences     | a1 | a2 | a3 |          the likeliest on top
                  | b1 | b2 | b3 |

Knows no operation by name, and no position on the time axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from speclib.trace.events import Event


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


class Words(Protocol):
    """How token ids are spelled in a picture."""

    def label(self, token: int) -> str:
        """Short: what fits into a cell."""
        ...

    def spelled(self, tokens: Sequence[int]) -> str:
        """All of the tokens' text, on one line."""
        ...


def row_count(event: Event) -> int:
    """How many rows of cells the operation takes."""
    if is_tree(event):
        return 2
    return max(1, len(event.sequences))


def cells_of(event: Event, words: Words) -> list[Cell]:
    """The cells of one operation."""
    if event.is_scoring:
        return [_target_pass(event, words)]
    if not event.is_drafting:
        return [Cell("unused", 0.0, 1.0, "", (event.op,))]
    if not event.tokens:
        return [Cell("unused", 0.0, 1.0, "", ("drafting, cancelled",))]
    if is_tree(event):
        return _tree(event, words)
    if len(event.sequences) > 1:
        return _sequences(event, words)
    return _line(event.tokens, event.outcome, words)


def is_tree(event: Event) -> bool:
    """Whether a token of one sequence has others beside it."""
    if len(event.sequences) > 1:
        return False
    return len(event.tokens) > _levels(event)


def _levels(event: Event) -> int:
    return 1 + max(event.depths, default=-1)


# -- a target pass ---------------------------------------------------------------------
def _target_pass(event: Event, words: Words) -> Cell:
    """One cell, labelled with the drafted text that the pass tests.

    A tree that has several ways is no text: only the number of its candidates fits.
    """
    count = event.payload.candidates
    tested = event.tokens[len(event.tokens) - count :]
    label = words.spelled(tested).strip("\u00a0")
    if not event.payload.is_line(tested):
        label = f"{count} candidates"

    tip: tuple[str, ...] = ("target pass: one row, for the next token",)
    if tested:
        tip = (f"target pass: verifies {count} drafted", f"“{words.spelled(tested)}”")
    return Cell("score", 0.0, 1.0, label, tip)


# -- what was drafted ------------------------------------------------------------------
def _line(tokens: Sequence[int], outcomes: Sequence[str], words: Words) -> list[Cell]:
    """One cell a token, an equal share of the duration each."""
    cells = []
    count = len(tokens)
    for number, (token, outcome) in enumerate(zip(tokens, outcomes, strict=True)):
        tip = (_drafted(token, outcome, words), f"token {number + 1} of {count}")
        label = words.label(token)
        cells.append(Cell(outcome, number / count, 1 / count, label, tip))
    return cells


def _tree(event: Event, words: Words) -> list[Cell]:
    """A cell per level, with the node that was accepted, or else with the first one.

    Below it stands how many other nodes the level has. All levels get an equal share of
    the duration, since nothing tells them apart.
    """
    cells: list[Cell] = []
    way = way_through(event)
    levels = len(way)
    for level, leading in enumerate(way):
        nodes = [node for node, depth in enumerate(event.depths) if depth == level]
        token, outcome = event.tokens[leading], event.outcome[leading]
        start, share = level / levels, 1 / levels
        tip: tuple[str, ...] = (
            _drafted(token, outcome, words),
            f"level {level + 1} of {levels}",
        )
        cells.append(Cell(outcome, start, share, words.label(token), tip, 0, 2))

        others = [event.tokens[node] for node in nodes if node != leading]
        if others:
            listed = " |".join(words.spelled([token]) for token in others)
            tip = (f"level {level + 1}, not on the way: {listed}",)
            cells.append(Cell("dropped", start, share, f"+ {len(others)}", tip, 1, 2))
    return cells


def way_through(event: Event) -> list[int]:
    """Of each level of what was drafted, the node that was tested, or else the first.

    Of a line these are all of its tokens.
    """
    way = []
    for level in range(_levels(event)):
        nodes = [node for node, depth in enumerate(event.depths) if depth == level]
        tested = [node for node in nodes if event.outcome[node] != "discarded"]
        way.append((tested or nodes)[0])
    return way


def _sequences(event: Event, words: Words) -> list[Cell]:
    """A row of cells per sequence, the likeliest on top.

    All sequences share the duration, since nothing says in which order they were
    written. Those that the target did not choose are ``dropped``.
    """
    count = len(event.sequences)
    length = len(event.tokens) // count
    first_outcomes = event.outcome[::length]
    was_tested = first_outcomes[0] != "discarded" or "accepted" in first_outcomes
    leading = 0
    if "accepted" in first_outcomes:
        leading = first_outcomes.index("accepted")

    cells = []
    for row, tokens in enumerate(event.sequences):
        outcomes = event.outcome[row * length : (row + 1) * length]
        note = f"sequence {row + 1} of {count}"
        if was_tested and row != leading:
            note += ": the target chose another"
        for cell in _line(tokens, outcomes, words):
            kind = cell.kind if row == leading else "dropped"
            tip = (*cell.tip, note)
            cells.append(cell._replace(kind=kind, tip=tip, row=row, rows=count))
    return cells


def _drafted(token: int, outcome: str, words: Words) -> str:
    """One line on a drafted token."""
    what_became = "discarded: never tested" if outcome == "discarded" else outcome
    return f"drafted “{words.spelled([token])}” (id {token}): {what_became}"
