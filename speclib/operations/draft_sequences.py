"""Drafting several sequences at once, which begin with different tokens.

This module depends on no method, and uses only a model's ``rows``, ``chances`` and
``continued``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice
from typing import ClassVar

import numpy as np

from speclib.core.sampling import Tokens

from .drafting import Drafting
from .model import GREEDY, Model
from .operation import DecodingRun, Given, Output, RecordedRun, ToDrafts
from .payload import DraftPayload, OwnEvent


@dataclass(frozen=True)
class DraftedSequences(DraftPayload):
    """The event's tokens are ``count`` sequences of equal length, one after another.

    ``fed``: how many drafted tokens were fed. ``threshold``: theta, or 0 if the number
    of sequences was given. ``chances``: the draft's probability of each first token.
    """

    count: int = 0
    fed: int = 0
    threshold: float = 0.0
    chances: tuple[float, ...] = ()

    def pass_count(self, tokens: Tokens) -> int:
        """One pass for the first token of all sequences, one for each fed token."""
        return self.fed + 1 if tokens else 0

    def drafts_fed(self, tokens: Tokens) -> int:
        return self.fed

    def sequences(self, tokens: Tokens) -> tuple[Tokens, ...]:
        length = len(tokens) // max(1, self.count)
        return tuple(
            tokens[number * length : (number + 1) * length]
            for number in range(self.count)
        )

    def depths(self, tokens: Tokens) -> tuple[int, ...]:
        depths: list[int] = []
        for sequence in self.sequences(tokens):
            depths += range(len(sequence))
        return tuple(depths)


@dataclass(frozen=True)
class DraftSequences(Drafting):
    """Draft greedily after ``text``: several sequences if the draft is unsure.

    ``n``: the budget, in tokens. The result is k sequences of n // k tokens each.

    P_i is the draft's i-th highest probability at the first position, and P its highest
    at the second, both at temperature 1. One sequence begins with the likeliest token,
    and one more with each other token whose P_i > theta = P_1 * P. The number k of
    sequences is at most ``most``, and divides ``n``:

        text ── t1 ── t2 ── ...      P_1, always; t2 with P
           ├─── t3 ── ...            P_2 > theta
           └─── t4 ── ...            P_3 > theta

    ``k``: start with the k likeliest tokens, without a threshold.

    Source: DuoDecoding, section 3.2. The limit ``most``, and the rule that k divides n,
    are from its published code.
    """

    k: int | None = None
    most: int = 8

    name: ClassVar[str] = "draft_sequences"
    payload_type: ClassVar = DraftedSequences

    def run(self, model: Model, run: DecodingRun) -> Output:
        """Returns (sequences, [theta, P_i of each sequence])."""
        if not self.n:
            return Output((), np.zeros(1))

        # The first position: how likely is each token?
        model.rows(self.text, 0, GREEDY)
        chances = model.chances()
        ranked = np.argsort(-chances, kind="stable")
        first_start: Tokens = (int(ranked[0]),)

        # The second position, after the likeliest token, gives theta.
        theta = 0.0
        count = self.k or 1
        if self.k is None and self.n > 1:
            model.rows(self.text + first_start, 0, GREEDY)
            after = model.chances()
            theta = chances[first_start[0]] * after.max()
            first_start = (*first_start, int(after.argmax()))
            count = self._allowed((chances > theta).sum())
        count = min(count, self.n, len(ranked))

        length = self.n // count
        starts = [first_start[:length]]
        for token in ranked[1:count]:
            starts.append((int(token),))
        sequences = model.continued(self.text, tuple(starts), length)
        return Output(sequences, np.array([theta, *chances[ranked[:count]]]))

    def _allowed(self, likely: int) -> int:
        """The budget's largest divisor that exceeds neither ``likely`` nor ``most``."""
        allowed = 1
        for count in range(1, self.most + 1):
            if count <= likely and self.n % count == 0:
                allowed = count
        return allowed

    def result(self, output: Output, kept: int, fed: int, to_drafts: ToDrafts) -> Given:
        sequences, numbers = output
        tokens = tuple(chain.from_iterable(sequences))
        drafts = iter(to_drafts(tokens, None))
        value = tuple(tuple(islice(drafts, len(sequence))) for sequence in sequences)

        payload = DraftedSequences(
            count=len(sequences),
            fed=max(0, kept + fed - len(self.text)),
            threshold=float(numbers[0]) if len(numbers) else 0.0,
            chances=tuple(map(float, numbers[1:])),
        )
        return Given(value, tokens, payload)

    def recorded(self, event: OwnEvent, recording: RecordedRun) -> Output:
        payload: DraftedSequences = event.payload
        numbers = np.array([payload.threshold, *payload.chances])
        return Output(payload.sequences(event.tokens), numbers)
