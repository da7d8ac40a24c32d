"""A round's draft, and which part of it the target model accepted.

A draft is several sequences, a tree, or a branch for each guessed outcome of the
target's test. This module reads a trace. It uses no picture, method, clock or
notebook.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from speclab.traces.rounds import fork_draftings, sequence_draftings, tree_draftings
from speclib.drawing.text_in_pictures import TextPart, one_line, token_label
from speclib.drawing.timeline.run import TimelineRun
from speclib.errors import BadValue
from speclib.trace.events import Event

# A part for each token; its kind is the token's outcome. A token committed before the
# round is "text". A tested draft is "accepted" or "rejected", an untested one "unread".
MarkedText: TypeAlias = list[TextPart]


@dataclass(frozen=True)
class DraftedRound:
    """A round, its draft, and the tokens that the round committed.

    ``draft`` is the drafting event. ``window`` contains the tokens drafted before it,
    which the target tests at the same time. ``committed`` contains the tokens that the
    round added to the text ``before``: accepted drafts, then the target's own token.
    """

    run: TimelineRun
    draft: Event
    window: tuple[int, ...]
    committed: tuple[int, ...]
    before: tuple[int, ...]

    @property
    def number(self) -> int:
        return self.draft.round

    @property
    def position(self) -> int:
        """The number of tokens committed before the round."""
        return len(self.before)

    @property
    def width(self) -> int:
        """The number of sequences, of branches, or of nodes on the widest level."""
        raise NotImplementedError

    @property
    def accepted(self) -> int:
        """The number of window tokens that the target accepted."""
        return common_prefix(self.window, self.committed)

    @property
    def payload(self) -> Any:
        """The drafting event's payload."""
        return self.draft.payload

    def piece(self, token: int) -> str:
        """A token's text."""
        return self.run.piece(token)

    def word(self, token: int) -> str:
        """A token's label in its cell."""
        return token_label(self.piece(token))

    def outcome_in_window(self, index: int) -> str:
        """The outcome of a window token: accepted, rejected or unread."""
        if index < self.accepted:
            return "accepted"
        is_replaced = index == self.accepted and index < len(self.committed)
        return "rejected" if is_replaced else "unread"

    def text(self) -> MarkedText:
        """The tokens before the draft: the text, then the window."""
        parts = [TextPart("text", one_line(self.piece(token))) for token in self.before]
        for index, token in enumerate(self.window):
            kind = self.outcome_in_window(index)
            parts.append(TextPart(kind, one_line(self.piece(token))))
        return parts

    def summary(self) -> str:
        """The size of the draft, in words."""
        raise NotImplementedError

    def verdict(self) -> str:
        """The effect of the target's pass on the draft, in words."""
        raise NotImplementedError

    def draft_in_words(self) -> list[str]:
        """A line per sequence, node or branch."""
        raise NotImplementedError

    def lines(self) -> list[str]:
        """The whole round in words."""
        first = f"round {self.number}: {self.summary()}"
        draft = [f"  {line}" for line in self.draft_in_words()]
        return [first, *draft, self.verdict()]


class SequencesRound(DraftedRound):
    """A round in which the draft model wrote several sequences.

    ::

        before        window        sequences
        a b c d e     f g h         i j k      likeliest first token
                                    l m n      second
                                    o p q      third
        committed     drafted       drafted in this round,
        until then    before,       while the target tested the window
                      tested now
    """

    @property
    def sequences(self) -> tuple[tuple[int, ...], ...]:
        """The tokens of each sequence, the likeliest sequence first."""
        return self.draft.sequences

    @property
    def threshold(self) -> float:
        """θ, which a first token's probability must exceed; 0 without a threshold."""
        threshold: float = self.payload.threshold
        return threshold

    @property
    def chances(self) -> tuple[float, ...]:
        """The draft model's probability of each sequence's first token."""
        chances: tuple[float, ...] = self.payload.chances
        return chances

    @property
    def chance_of_others(self) -> float:
        """The total probability of the first tokens that have no sequence."""
        return 1 - sum(self.chances)

    @property
    def chosen_sequence(self) -> int | None:
        """The sequence that begins with the target's own token, if any."""
        outcomes = self.draft.first_outcomes
        return outcomes.index("accepted") if "accepted" in outcomes else None

    @property
    def width(self) -> int:
        """The number of sequences."""
        return len(self.draft.sequences)

    def outcome(self, sequence: int, position: int) -> str:
        """The outcome of a token: accepted, rejected, discarded or dropped.

        The tokens of sequences that did not continue are dropped. If none continued,
        the likeliest sequence shows the outcome of all.
        """
        if sequence != (self.chosen_sequence or 0):
            return "dropped"
        length = len(self.sequences[sequence])
        return self.draft.outcome[sequence * length + position]

    def summary(self) -> str:
        """The number and length of the sequences, and the threshold."""
        number = counted(len(self.sequences), "sequence")
        length = counted(len(self.sequences[0]), "token")
        threshold = "no threshold"
        if self.threshold:
            threshold = f"θ = P₁·P = {self.threshold:.3f}"
        return f"{number} of {length}, {threshold}"

    def verdict(self) -> str:
        """The effect of the target's pass on the sequences."""
        own = self.word(self.committed[-1])
        next_word = f"the target's next word is “{own}”"
        if self.chosen_sequence is not None:
            return f"{next_word}: sequence {self.chosen_sequence + 1} continues"
        if self.draft.outcome[0] == "rejected":
            return f"{next_word}: no sequence begins with it"
        if self.accepted == len(self.committed):
            return "the text ends before the sequences, which are discarded"
        wrong = self.word(self.window[self.accepted])
        return f"“{wrong}” should have been “{own}”: the sequences are discarded"

    def draft_in_words(self) -> list[str]:
        lines = []
        for chance, tokens in zip(self.chances, self.sequences, strict=True):
            text = "".join(map(self.piece, tokens))
            lines.append(f"{chance:.3f} {one_line(text)}")
        return [*lines, f"{self.chance_of_others:.3f} all other words"]


class TreeRound(DraftedRound):
    """A round in which the draft model wrote a tree; it has no window.

    Nodes are numbered in the order in which they were drafted; a parent comes before
    its children.
    """

    @property
    def tokens(self) -> tuple[int, ...]:
        """The token of each node."""
        return self.draft.tokens

    @property
    def parents(self) -> tuple[int, ...]:
        """The parent of each node; -1 is the end of the text."""
        parents: tuple[int, ...] = self.payload.parents
        return parents

    @property
    def levels(self) -> tuple[int, ...]:
        """Each node's depth: the number of nodes before it on its path."""
        return self.draft.depths

    @property
    def depth(self) -> int:
        """The number of levels."""
        return max(self.levels) + 1

    @property
    def width(self) -> int:
        """The number of nodes on the widest level."""
        return max(self.levels.count(level) for level in self.levels)

    @property
    def leaves(self) -> list[int]:
        """The nodes without children, in drafting order."""
        parents = set(self.parents)
        return [node for node in range(len(self.tokens)) if node not in parents]

    def outcome(self, node: int) -> str:
        """A node's outcome: accepted, rejected, or dropped if off the target's path."""
        outcome = self.draft.outcome[node]
        if outcome == "discarded":
            return "dropped"
        return outcome

    def label(self, node: int) -> str:
        """A node's text, with visible spaces if a sibling differs only in spaces."""
        siblings = []
        for other, parent in enumerate(self.parents):
            if parent == self.parents[node] and other != node:
                siblings.append(self.word(self.tokens[other]))
        label = self.word(self.tokens[node])
        if label in siblings:
            return self.piece(self.tokens[node]).replace(" ", "·")
        return label

    def summary(self) -> str:
        """The size of the tree."""
        levels = counted(self.depth, "level")
        return f"a tree of {len(self.tokens)}: {levels}, at most {self.width} wide"

    def verdict(self) -> str:
        """How far the target followed the tree."""
        accepted = self.draft.outcome.count("accepted")
        followed = f"the target follows it for {accepted} of {self.depth} levels"
        if len(self.committed) <= accepted:
            return f"{followed}, to the end of the text"
        own = self.word(self.committed[-1])
        return f"{followed}, then writes “{own}”"

    def draft_in_words(self) -> list[str]:
        lines = []
        for node, level in enumerate(self.levels):
            sign = "*" if self.outcome(node) == "accepted" else "-"
            lines.append(f"{'  ' * level}{sign} {self.label(node)}")
        return lines


class ForkRound(DraftedRound):
    """A round in which the draft model wrote a branch for each guessed outcome.

    ::

        before      window      branches
        a b c d     w1 w2       (0, x): x1 x2      if w1 fails and x is written
                                (1, y): y1 y2      if w1 passes and y is written
                                (2, z): z1 z2      if both pass
    """

    @property
    def branches(self) -> list[tuple[Any, tuple[int, ...]]]:
        """Each guessed outcome, and the tokens drafted for it.

        An outcome has ``accepted`` and ``token``; see ``core.verification.Outcome``.
        """
        return list(self.payload.branches(self.draft.tokens))

    @property
    def width(self) -> int:
        """The number of branches."""
        return len(self.branches)

    @property
    def length(self) -> int:
        """The number of tokens in each branch."""
        return len(self.branches[0][1])

    @property
    def own(self) -> int | None:
        """The target's own token; None if the text ended before it."""
        if len(self.committed) == self.accepted:
            return None
        return self.committed[self.accepted]

    @property
    def hit(self) -> int | None:
        """The branch for the actual outcome; None for a miss."""
        for number, (outcome, _) in enumerate(self.branches):
            if outcome == (self.accepted, self.own):
                return number
        return None

    def outcome(self, branch: int, index: int) -> str:
        """The outcome of a branch's token, dropped unless the branch is a hit."""
        if branch != self.hit:
            return "dropped"
        return self.draft.outcome[branch * self.length + index]

    def text(self) -> MarkedText:
        """The tokens before the window, which the picture draws separately."""
        return super().text()[: len(self.before)]

    def summary(self) -> str:
        """The number of guessed outcomes, and the length of their branches."""
        number = counted(self.width, "outcome")
        return f"{number} guessed, {counted(self.length, 'token')} drafted for each"

    def verdict(self) -> str:
        """The actual outcome, and whether it had been guessed."""
        if self.own is None:
            return "the text ends before the target's own token"
        own = self.word(self.own)
        passed = f"{self.accepted} of {len(self.window)} pass"
        outcome = f"{passed}, then the target writes “{own}”"
        if self.hit is None:
            return f"{outcome}: not guessed, a miss"
        return f"{outcome}: a hit, the framed branch is the next window"

    def draft_in_words(self) -> list[str]:
        lines = []
        for branch, (outcome, tokens) in enumerate(self.branches):
            sign = "*" if branch == self.hit else "-"
            drafted = one_line("".join(map(self.piece, tokens)))
            guess = self.word(outcome.token)
            guessed = f"{outcome.accepted} accepted, then “{guess}”"
            lines.append(f"{sign} {guessed}: {drafted}")
        return lines


def drafted_rounds(run: TimelineRun) -> list[DraftedRound]:
    """Every round in which the draft model wrote sequences, a tree or branches.

    Raises SpeclibError if the run has no such round.
    """
    drafts: dict[int, tuple[type[DraftedRound], Event]] = {}
    all_draftings: dict[type[DraftedRound], list[Event]] = {
        SequencesRound: sequence_draftings(run.trace),
        ForkRound: fork_draftings(run.trace),
        TreeRound: tree_draftings(run.trace),
    }
    for kind, draftings in all_draftings.items():
        for event in draftings:
            drafts[event.round] = kind, event
    passes = {e.round: e for e in run.trace.operations if e.is_scoring}

    rounds: list[DraftedRound] = []
    before: tuple[int, ...] = ()
    for commit in run.trace.commits:
        if commit.tokens and commit.round in drafts:
            kind, draft = drafts[commit.round]
            window = () if kind is TreeRound else tested_tokens(passes[commit.round])
            rounds.append(kind(run, draft, window, commit.tokens, before))
        before += commit.tokens

    if not rounds:
        raise BadValue(
            f"{run.label} drafted no sequences: give a run of duodecoding, ssd, tree "
            "or easyspec"
        )
    return rounds


def tested_tokens(target_pass: Event) -> tuple[int, ...]:
    """The drafted tokens that a target pass tested: the last tokens of its input."""
    first = len(target_pass.tokens) - target_pass.tested
    return target_pass.tokens[first:]


def common_prefix(some: tuple[int, ...], others: tuple[int, ...]) -> int:
    """The length of the common prefix of two sequences."""
    count = 0
    for token, other in zip(some, others, strict=False):
        if token != other:
            break
        count += 1
    return count


def counted(count: int, noun: str) -> str:
    """``count`` with the noun in singular or plural: "2 sequences"."""
    if count > 1:
        return f"{count} {noun}s"
    return f"{count} {noun}"
