"""What a draft model wrote in one round, and what the target model made of it.

A round's draft is either several sequences, or a tree, or a branch for each outcome of
the target's test that was guessed. Reads a trace. Knows no picture,
method, clock or notebook.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from speclab.traces.rounds import fork_draftings, sequence_draftings, tree_draftings
from speclib.drawing.text_in_pictures import TextPart, one_line, token_label
from speclib.drawing.timeline.run import TimelineRun
from speclib.errors import BadValue
from speclib.trace.events import Event

# A part for each token, by what became of it: "text" was committed before the round. Of
# the drafted tokens "accepted" and "rejected" were tested; "unread" were not.
MarkedText: TypeAlias = list[TextPart]


class SequencesRound(NamedTuple):
    """A round in which the draft model wrote several sequences.

    ::

        before        window        sequences
        a b c d e     f g h         i j k      likeliest first token
                                    l m n      second
                                    o p q      third
        committed     drafted       drafted in this round,
        until then    before,       while the target tested the window
                      tested now

    ``draft`` is the event of the drafting. ``committed`` is what the round added to the
    text: the tokens of the window that were accepted, then the target's own token.
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
    def sequences(self) -> tuple[tuple[int, ...], ...]:
        """The tokens of each sequence, the likeliest sequence first."""
        return self.draft.sequences

    @property
    def _payload(self) -> Any:
        """What the event of drafting several sequences shows beyond its tokens."""
        return self.draft.payload

    @property
    def threshold(self) -> float:
        """θ, which a first token's chance must exceed; 0 if there was no threshold."""
        threshold: float = self._payload.threshold
        return threshold

    @property
    def chances(self) -> tuple[float, ...]:
        """The chance that the draft model gave the first token of each sequence."""
        chances: tuple[float, ...] = self._payload.chances
        return chances

    @property
    def chance_of_others(self) -> float:
        """The chance of all first tokens for which there is no sequence."""
        return 1 - sum(self.chances)

    @property
    def chosen_sequence(self) -> int | None:
        """Which sequence begins with the target's own token, if one does."""
        outcomes = self.draft.first_outcomes
        return outcomes.index("accepted") if "accepted" in outcomes else None

    @property
    def width(self) -> int:
        """The number of sequences."""
        return len(self.draft.sequences)

    @property
    def position(self) -> int:
        """How many tokens, written or drafted, come before the sequences."""
        return len(self.before) + len(self.window)

    @property
    def accepted(self) -> int:
        """How many tokens of the window the target would have written itself."""
        return common_beginning(self.window, self.committed)

    def outcome(self, sequence: int, position: int) -> str:
        """What became of a token: accepted, rejected, discarded, or dropped.

        Dropped are all tokens of the sequences that did not go on. Where none went on,
        the likeliest stands for what became of them.
        """
        if sequence != (self.chosen_sequence or 0):
            return "dropped"
        length = len(self.sequences[sequence])
        return self.draft.outcome[sequence * length + position]

    def text(self) -> MarkedText:
        """The tokens before the sequences."""
        parts = [
            TextPart("text", one_line(self.run.piece(token))) for token in self.before
        ]
        for position, token in enumerate(self.window):
            if position < self.accepted:
                kind = "accepted"
            elif position == self.accepted:
                kind = "rejected"
            else:
                kind = "unread"
            parts.append(TextPart(kind, one_line(self.run.piece(token))))
        return parts

    def summary(self) -> str:
        """How many sequences there are, and why."""
        number = counted(len(self.sequences), "sequence")
        length = counted(len(self.sequences[0]), "token")
        why = "no threshold asked"
        if self.threshold:
            why = f"θ = P₁·P = {self.threshold:.3f}"
        return f"{number} of {length}, {why}"

    def verdict(self) -> str:
        """What the target's pass did to the sequences."""
        own = token_label(self.run.piece(self.committed[-1]))
        next_word = f"the target's next word is “{own}”"
        if self.chosen_sequence is not None:
            return f"{next_word}: sequence {self.chosen_sequence + 1} goes on"
        if self.draft.outcome[0] == "rejected":
            return f"{next_word}: no sequence begins with it"
        if self.accepted == len(self.committed):
            return "the text ends before the sequences: nobody looks at them"
        wrong = token_label(self.run.piece(self.window[self.accepted]))
        return f"“{wrong}” should have been “{own}”: nobody looks at the sequences"

    def lines(self) -> list[str]:
        """The round in words: a line per sequence, then the verdict."""
        lines = [f"round {self.number}: {self.summary()}"]
        for chance, tokens in zip(self.chances, self.sequences, strict=True):
            text = "".join(self.run.piece(token) for token in tokens)
            lines.append(f"  {chance:.3f} {one_line(text)}")
        lines.append(f"  {self.chance_of_others:.3f} all other words")
        lines.append(self.verdict())
        return lines


class TreeRound(NamedTuple):
    """A round in which the draft model wrote a tree.

    ``draft`` is the event of the drafting, ``committed`` what the round added to the
    text ``before``: the tokens on the path that the target followed, then its own
    token. Nodes are numbered in the order in which they were drafted; a parent comes
    before its children.
    """

    run: TimelineRun
    draft: Event
    committed: tuple[int, ...]
    before: tuple[int, ...]

    @property
    def number(self) -> int:
        return self.draft.round

    @property
    def tokens(self) -> tuple[int, ...]:
        """The token of each node."""
        return self.draft.tokens

    @property
    def parents(self) -> tuple[int, ...]:
        """The parent of each node; -1 is the end of the text."""
        payload: Any = self.draft.payload  # of drafting a tree
        parents: tuple[int, ...] = payload.parents
        return parents

    @property
    def levels(self) -> tuple[int, ...]:
        """How many nodes come before each node on its path from the text's end."""
        return self.draft.depths

    @property
    def depth(self) -> int:
        """The number of levels."""
        return max(self.levels) + 1

    @property
    def width(self) -> int:
        """The most nodes of a level."""
        return max(self.levels.count(level) for level in self.levels)

    @property
    def position(self) -> int:
        """How many tokens come before the tree."""
        return len(self.before)

    @property
    def leaves(self) -> list[int]:
        """The nodes without children, in their order."""
        parents = set(self.parents)
        return [node for node in range(len(self.tokens)) if node not in parents]

    def outcome(self, node: int) -> str:
        """accepted, rejected, or dropped: not on the path that the target followed."""
        outcome = self.draft.outcome[node]
        if outcome == "discarded":
            return "dropped"
        return outcome

    def text(self) -> MarkedText:
        """The tokens before the tree."""
        return [
            TextPart("text", one_line(self.run.piece(token))) for token in self.before
        ]

    def label(self, node: int) -> str:
        """A node's text; its blanks are shown if a sibling differs in them alone."""
        piece = self.run.piece(self.tokens[node])
        label = token_label(piece)
        if label in self._labels_of_siblings(node):
            return piece.replace(" ", "·")
        return label

    def _labels_of_siblings(self, node: int) -> list[str]:
        labels = []
        for other, parent in enumerate(self.parents):
            if parent == self.parents[node] and other != node:
                labels.append(token_label(self.run.piece(self.tokens[other])))
        return labels

    def summary(self) -> str:
        """How large the tree is."""
        levels = counted(self.depth, "level")
        return f"a tree of {len(self.tokens)}: {levels}, at most {self.width} wide"

    def verdict(self) -> str:
        """How far the target followed the tree."""
        accepted = self.draft.outcome.count("accepted")
        followed = f"the target follows it for {accepted} of {self.depth} levels"
        if len(self.committed) <= accepted:
            return f"{followed}, to the text's end"
        own = token_label(self.run.piece(self.committed[-1]))
        return f"{followed}, then writes “{own}”"

    def lines(self) -> list[str]:
        """The round in words: a line per node, with a star if it was accepted."""
        lines = [f"round {self.number}: {self.summary()}"]
        for node, level in enumerate(self.levels):
            sign = "*" if self.outcome(node) == "accepted" else "-"
            lines.append(f"  {'  ' * level}{sign} {self.label(node)}")
        lines.append(self.verdict())
        return lines


class ForkRound(NamedTuple):
    """A round in which the draft model wrote a branch for each outcome that it guessed.

    ::

        before      window      branches
        a b c d     w1 w2       (0, x): x1 x2      should w1 fail, and x be written
                                (1, y): y1 y2      should w1 pass, and y be written
                                (2, z): z1 z2      should both pass

    ``draft`` is the event of the drafting. ``committed`` is what the round added to the
    text: the tokens of the window that were accepted, then the target's own token.
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
    def branches(self) -> list[tuple[Any, tuple[int, ...]]]:
        """Each outcome that was guessed, with what was drafted for it.

        An outcome has ``accepted`` and ``token``, as ``core.verification.Outcome``.
        """
        payload: Any = self.draft.payload  # of drafting branches
        return list(payload.branches(self.draft.tokens))

    @property
    def width(self) -> int:
        """The number of branches."""
        return len(self.branches)

    @property
    def length(self) -> int:
        """How many tokens each of them has."""
        return len(self.branches[0][1])

    @property
    def position(self) -> int:
        """How many tokens come before the window."""
        return len(self.before)

    @property
    def accepted(self) -> int:
        """How many tokens of the window the target would have written itself."""
        return common_beginning(self.window, self.committed)

    @property
    def own(self) -> int | None:
        """The target's own token; None where the text ended before it."""
        if len(self.committed) == self.accepted:
            return None
        return self.committed[self.accepted]

    @property
    def hit(self) -> int | None:
        """The branch that was drafted for what the target said; None for a miss."""
        for number, (outcome, _) in enumerate(self.branches):
            if outcome == (self.accepted, self.own):
                return number
        return None

    def outcome_in_window(self, place: int) -> str:
        """What became of a token of the window: accepted, rejected or discarded."""
        if place < self.accepted:
            return "accepted"
        is_replaced = place == self.accepted and self.own is not None
        return "rejected" if is_replaced else "discarded"

    def outcome(self, branch: int, place: int) -> str:
        """What became of a branch's token: dropped, if its branch is not followed."""
        if branch != self.hit:
            return "dropped"
        return self.draft.outcome[branch * self.length + place]

    def text(self) -> MarkedText:
        """The tokens before the window."""
        return [
            TextPart("text", one_line(self.run.piece(token))) for token in self.before
        ]

    def label(self, token: int) -> str:
        """A token as it stands in a cell."""
        return token_label(self.run.piece(token))

    def summary(self) -> str:
        """How many outcomes were guessed."""
        number = counted(self.width, "outcome")
        return f"{number} guessed, {counted(self.length, 'token')} drafted for each"

    def verdict(self) -> str:
        """What the target said, and whether it had been guessed."""
        if self.own is None:
            return "the text ends before the target's own token"
        own = self.label(self.own)
        passed = f"{self.accepted} of {len(self.window)} pass"
        said = f"{passed}, then the target writes “{own}”"
        if self.hit is None:
            return f"{said}: nobody guessed that, a miss"
        return f"{said}: a hit, the framed branch is the next window"

    def lines(self) -> list[str]:
        """The round in words: a line per branch, the hit with a star."""
        lines = [f"round {self.number}: {self.summary()}"]
        for branch, (outcome, tokens) in enumerate(self.branches):
            sign = "*" if branch == self.hit else "-"
            drafted = "".join(self.run.piece(token) for token in tokens)
            guess = self.label(outcome.token)
            lines.append(
                f"  {sign} {outcome.accepted} accepted, then “{guess}”: "
                f"{one_line(drafted)}"
            )
        lines.append(self.verdict())
        return lines


DraftedRound: TypeAlias = SequencesRound | TreeRound | ForkRound


def drafted_rounds(run: TimelineRun) -> list[DraftedRound]:
    """Every round in which the draft model wrote sequences, a tree or branches.

    Raises SpeclibError where there is none.
    """
    of_sequences = drafts_by_round(sequence_draftings(run.trace))
    of_trees = drafts_by_round(tree_draftings(run.trace))
    of_forks = drafts_by_round(fork_draftings(run.trace))
    target_passes = {e.round: e for e in run.trace.operations if e.is_scoring}

    rounds: list[DraftedRound] = []
    before: tuple[int, ...] = ()
    for commit in run.trace.commits:
        number = commit.round
        if commit.tokens and number in of_trees:
            tree = of_trees[number]
            rounds.append(TreeRound(run, tree, commit.tokens, before))
        elif commit.tokens and number in of_sequences:
            drafted = of_sequences[number]
            window = tested_tokens(target_passes[number])
            rounds.append(SequencesRound(run, drafted, window, commit.tokens, before))
        elif commit.tokens and number in of_forks:
            drafted = of_forks[number]
            window = tested_tokens(target_passes[number])
            rounds.append(ForkRound(run, drafted, window, commit.tokens, before))
        before += commit.tokens

    if not rounds:
        raise BadValue(
            f"{run.label} drafted no sequences: a tree shows runs of duodecoding, ssd, "
            "tree and easyspec"
        )
    return rounds


def drafts_by_round(events: list[Event]) -> dict[int, Event]:
    """Draftings by the number of their round."""
    return {event.round: event for event in events}


def tested_tokens(target_pass: Event) -> tuple[int, ...]:
    """The drafted tokens that a target pass tested: the last ones that it was fed."""
    first = len(target_pass.tokens) - target_pass.candidates
    return target_pass.tokens[first:]


def common_beginning(some: tuple[int, ...], others: tuple[int, ...]) -> int:
    """How many tokens two sequences begin with in common."""
    count = 0
    for token, other in zip(some, others, strict=False):
        if token != other:
            break
        count += 1
    return count


def counted(count: int, noun: str) -> str:
    """``count`` and the noun in the number that it asks for: "2 sequences"."""
    if count > 1:
        return f"{count} {noun}s"
    return f"{count} {noun}"
