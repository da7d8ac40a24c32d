"""What one round of several drafts was: the text before them, what the target's pass said.

Reads a trace. Knows no picture, method, clock or notebook.
"""

from __future__ import annotations

from typing import NamedTuple

from speclib.errors import SpeclibError
from speclib.trace.events import Event
from speclib.trace.rounds import sequence_draftings, tree_draftings
from speclib.views.text import label_of, shown
from speclib.views.timeline.facts import Run

from .tree import Grown


class Round(NamedTuple):
    """One ``branch`` and, of the same round, the ``window`` that the target checked and what was
    committed; ``before`` is the text that was committed until then."""

    run: Run
    branch: Event
    window: tuple[int, ...]
    commit: tuple[int, ...]
    before: tuple[int, ...]

    @property
    def number(self) -> int:
        return self.branch.round

    @property
    def width(self) -> int:
        return len(self.branch.sequences)

    @property
    def place(self) -> int:
        """Tokens written or drafted before the sequences begin."""
        return len(self.before) + len(self.window)

    @property
    def passed(self) -> int:
        """Tokens of the window that the target would have written itself."""
        same = [a == b for a, b in zip(self.window, self.commit, strict=False)]
        return [*same, False].index(False)

    def text(self) -> list[tuple[str, str]]:
        """(what became of it, text) of every token before the sequences."""
        kinds = ["text"] * len(self.before) + ["passed"] * self.passed + ["failed"]
        kinds += ["unread"] * len(self.window)
        return [
            (kind, shown(self.run.piece(token)))
            for kind, token in zip(kinds, self.before + self.window, strict=False)
        ]

    def said(self) -> str:
        """How many sequences there are, and why."""
        k, each, theta = (
            len(self.branch.sequences),
            len(self.branch.sequences[0]),
            self.branch.payload.threshold,
        )
        why = f"θ = P₁·P = {theta:.3f}" if theta else "no threshold asked"
        return f"{k} sequence{'s' * (k > 1)} of {each} token{'s' * (each > 1)}, {why}"

    def verdict(self) -> str:
        """What the target's pass did to the sequences."""
        taken, own = (
            self.branch.payload.chosen(self.branch),
            f"“{label_of(self.run.piece(self.commit[-1]))}”",
        )
        if taken is not None:
            return f"the target's next word is {own}: sequence {taken + 1} goes on"
        if self.branch.outcome[0] == "rejected":
            return f"the target's next word is {own}: no sequence begins with it"
        if self.passed == len(self.commit):
            return "the text ends before the sequences: nobody looks at them"
        wrong = label_of(self.run.piece(self.window[self.passed]))
        return f"“{wrong}” should have been {own}: nobody looks at the sequences"

    def lines(self) -> list[str]:
        """In words: a line per sequence, then the verdict."""
        chances = self.branch.payload.chances
        return [
            f"round {self.number}: {self.said()}",
            *(
                f"  {chance:.3f} {shown(''.join(map(self.run.piece, tokens)))}"
                for chance, tokens in zip(chances, self.branch.sequences, strict=True)
            ),
            f"  {1 - sum(chances):.3f} all other words",
            self.verdict(),
        ]


def rounds_of(run: Run) -> list[Round] | list[Grown]:
    """Every round in which ``run`` drafted. Raises SpeclibError where there is none."""
    trace = run.trace
    passes = {event.round: event for event in trace.operations if event.is_scoring}
    sequences = {event.round: event for event in sequence_draftings(trace)}
    trees = {event.round: event for event in tree_draftings(trace)}

    rounds, before = [], ()
    for commit in trace.commits:
        number = commit.round
        if commit.tokens and number in trees:
            rounds.append(Grown(run, trees[number], commit.tokens, before))
        elif commit.tokens and number in sequences:
            target_pass = passes[number]
            first = len(target_pass.tokens) - target_pass.candidates
            window = target_pass.tokens[first:]
            rounds.append(Round(run, sequences[number], window, commit.tokens, before))
        before += commit.tokens
    if not rounds:
        raise SpeclibError(
            f"{run.label} drafted no sequences: a tree shows runs of duodecoding, "
            "tree and easyspec"
        )
    return rounds
