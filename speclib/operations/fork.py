"""Drafting after several guesses of the target's next token.

This module depends on no method, and uses only a model's ``graded`` and ``level``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, TypeAlias

import numpy as np

from speclib.core.certain_rows import stacked
from speclib.core.sampling import Drafted, Row, Rows, Tokens, certain, scaled
from speclib.core.text import AnyText
from speclib.core.verification import Outcome

from .drafting import DraftingByLevel
from .model import Model
from .operation import DecodingRun, Given, Output, RecordedRun, ToDrafts
from .payload import DraftPayload, OwnEvent

# The drafts for each guessed outcome.
Branches: TypeAlias = Mapping[Outcome, tuple[Drafted, ...]]


@dataclass(frozen=True)
class DraftedBranches(DraftPayload):
    """The event's tokens are branches of equal length, one after another.

    Branch i was drafted for the outcome (``accepted[i]``, ``guesses[i]``). ``window``:
    how many tokens at the text's end await a test; a guess is at the position of one of
    these tokens or right after them. ``fed``: how many guesses and drafts (or masks)
    were fed. ``passes``: one over the window and one for each level of all branches;
    with masks, one for all levels. Without guesses there are no levels.
    """

    accepted: tuple[int, ...] = ()
    guesses: tuple[int, ...] = ()
    window: int = 0
    fed: int = 0
    passes: int = 0

    def drafts_fed(self, tokens: Tokens) -> int:
        return self.fed

    def pass_count(self, tokens: Tokens) -> int:
        return self.passes

    def depths(self, tokens: Tokens) -> tuple[int, ...]:
        levels = tuple(range(self._levels(tokens)))
        return levels * len(self.guesses)

    def places(self, tokens: Tokens) -> tuple[int, ...]:
        places = []
        for accepted in self.accepted:
            of_guess = accepted - self.window
            for level in range(self._levels(tokens)):
                places.append(of_guess + 1 + level)
        return tuple(places)

    def branches(self, tokens: Tokens) -> Iterator[tuple[Outcome, Tokens]]:
        """Each guessed outcome, with its drafts."""
        levels = self._levels(tokens)
        pairs = zip(self.accepted, self.guesses, strict=True)
        for number, (accepted, guess) in enumerate(pairs):
            first = number * levels
            yield Outcome(accepted, guess), tokens[first : first + levels]

    def outcomes(self, event: OwnEvent) -> list[tuple[str, ...]]:
        """What became of each branch's drafts."""
        levels = self._levels(event.tokens)
        firsts = range(0, len(event.tokens), max(1, levels))
        return [event.outcome[first : first + levels] for first in firsts]

    def _levels(self, tokens: Tokens) -> int:
        return len(tokens) // max(1, len(self.guesses))


@dataclass(frozen=True)
class Fork(DraftingByLevel):
    """Draft ``n`` tokens for each likely outcome of a test that is under way.

    ``text`` ends with the window: drafted tokens that the target is testing. It will
    accept the first k of them and then write one token itself. ``fan[k]`` is how many
    guesses we make for that token. They are the draft's likeliest tokens after those k,
    without the window's own next token, which would have been accepted. So ``fan`` has
    one more entry than the window has tokens::

        text ──┬── w1 ──┬── w2 ──┬── e ── e1 e2      fan = (1, 2, 1), n = 2
               │        │        └ all accepted, then e
               │        ├── b ── b1 b2               w1 accepted, then b
               │        └── c ── c1 c2               w1 accepted, then c
               └── a ── a1 a2                        nothing accepted, then a

    One pass reads the window (the paper's glue). Each further pass writes one level of
    all branches; with a ``mask`` (see ``Propose``), one pass writes all levels. The
    result is Branches: n Drafted tokens with their q for every guessed outcome.

    Branches share the coins of a position, since at most one branch is followed.
    ``index``: which of a position's coins they use.

    ``factor``: multiplies the probabilities of the ``likeliest`` tokens in each q.
    Below 1, drafts are rejected more often, but the target's token is then more often
    among the guesses. The factor does not change greedy drafts.

    Source: Kumar, Dao and May 2026, "Speculative Speculative Decoding". The tree of all
    branches, and the choice of tokens that are not guessed, are from its published
    code.
    """

    fan: tuple[int, ...]
    index: int = 0
    factor: float = 1.0
    likeliest: int = 0
    mask: int | None = None

    name: ClassVar[str] = "fork"
    payload_type: ClassVar = DraftedBranches
    gives_distributions: ClassVar[bool] = True

    @property
    def last(self) -> int:
        return len(self.fan) - 1

    @property
    def most_drafts(self) -> int:
        return self.n * sum(self.fan)

    @property
    def is_empty(self) -> bool:
        return not self.most_drafts

    def within(self, tokens_left: int) -> Fork:
        """The same operation, shortened; each branch's guess needs a position, too."""
        return super().within(max(0, tokens_left - 1))

    def run(self, model: Model, run: DecodingRun) -> Output:
        """Returns ((outcomes, tokens of each branch), q rows [branches * n, V]).

        An empty operation reads nothing, and the first part of its output is ().
        """
        if self.is_empty:
            return Output((), np.empty((0, model.vocab)))
        outcomes = self._guess(model, run)
        if not outcomes:
            return Output(((), ()), np.empty((0, model.vocab)))
        return self._draft(outcomes, model, run)

    def _guess(self, model: Model, run: DecodingRun) -> tuple[Outcome, ...]:
        """The likeliest outcomes, from the draft's rows along the window."""
        rows = model.graded(self.text, self.last, run.sampler)
        window = tuple(self.text[len(self.text) - self.last :])
        outcomes: list[Outcome] = []
        for accepted, (row, count) in enumerate(zip(rows, self.fan, strict=True)):
            own_next = window[accepted : accepted + 1]
            ranked = np.argsort(-row, kind="stable")[: count + len(own_next)]
            guesses = [int(token) for token in ranked if row[token] > 0]
            others = [token for token in guesses if token not in own_next]
            for token in others[:count]:
                outcomes.append(Outcome(accepted, token))
        return tuple(outcomes)

    def _draft(
        self, outcomes: tuple[Outcome, ...], model: Model, run: DecodingRun
    ) -> Output:
        # For the model this is a tree after the text before the window. Its first nodes
        # are the window, in a line. Then come the guesses, each after the last window
        # token that it assumes to be accepted. Then come the drafts, level by level.
        text = self.text
        parents = list(range(-1, self.last - 1))
        places = []  # the position of each branch's first draft
        before_window = len(self.text) - self.last
        for outcome in outcomes:
            text += (outcome.token,)
            parents.append(outcome.accepted - 1)
            places.append(before_window + outcome.accepted + 1)

        masked_levels: Sequence[Rows] = ()
        if self.mask is not None:
            masked_levels = self._rows_at_once(self.mask, text, parents, model, run)

        width = len(outcomes)
        tokens: list[Tokens] = [()] * width
        q_rows: list[list[Row]] = [[] for _ in outcomes]
        for level in range(self.n):
            if self.mask is None:
                rows = model.level(text, parents, width, run.sampler)
            else:
                rows = masked_levels[level]
            first_of_level = len(parents) - width
            drawn: Tokens = ()
            for branch, row in enumerate(rows):
                q = self._q_of(row, run)
                position = places[branch] + level
                token = run.coins.choose(q, position, "draft", self.index)
                q_rows[branch].append(q)
                tokens[branch] += (token,)
                drawn += (token,)
            text += drawn
            parents += range(first_of_level, first_of_level + width)

        rows_in_order = [row for rows in q_rows for row in rows]
        return Output((outcomes, tuple(tokens)), stacked(rows_in_order, model.vocab))

    def _rows_at_once(
        self,
        mask: int,
        text: AnyText,
        parents: Sequence[int],
        model: Model,
        run: DecodingRun,
    ) -> list[Rows]:
        """The rows of each level, from one pass with masks after every guess."""
        parents = list(parents)
        width = len(parents) - self.last
        for _ in range(1, self.n):
            first_of_level = len(parents) - width
            text += (mask,) * width
            parents += range(first_of_level, first_of_level + width)
        rows = model.level(text, parents, width * self.n, run.sampler)
        return [rows[first : first + width] for first in range(0, len(rows), width)]

    def _q_of(self, row: Row, run: DecodingRun) -> Row:
        """The q that a branch's token is drawn from, made from the draft's row."""
        if run.sampler.greedy:
            q: Row = certain((int(row.argmax()),), len(row))[0]
            return q
        return scaled(row, self.likeliest, self.factor)

    @property
    def level_passes(self) -> int:
        """One pass per level of all branches; with a mask, one pass for all levels."""
        return self.n if self.mask is None else 1

    def result(self, output: Output, kept: int, fed: int, to_drafts: ToDrafts) -> Given:
        if not output.small:
            return Given({}, (), DraftedBranches())
        outcomes, tokens_of = output.small
        tokens = tuple(token for branch in tokens_of for token in branch)
        drafts = iter(to_drafts(tokens, output.rows))
        branches = {}
        for outcome, branch in zip(outcomes, tokens_of, strict=True):
            branches[Outcome(*outcome)] = tuple(islice(drafts, len(branch)))

        payload = DraftedBranches(
            accepted=tuple(outcome[0] for outcome in outcomes),
            guesses=tuple(outcome[1] for outcome in outcomes),
            window=self.last,
            fed=kept + fed - len(self.text),
            passes=1 + (self.level_passes if outcomes else 0),
        )
        return Given(branches, tokens, payload)

    def recorded(self, event: OwnEvent, recording: RecordedRun) -> Output:
        payload: DraftedBranches = event.payload
        rows = certain(event.tokens, recording.vocab)
        if not payload.passes:
            return Output((), rows)
        outcomes, tokens = [], []
        for outcome, branch in payload.branches(event.tokens):
            outcomes.append(outcome)
            tokens.append(branch)
        return Output((tuple(outcomes), tuple(tokens)), rows)
