"""DSI's Algorithm 1, line by line as printed, over all small pairs of greedy models.

A model is a table: the token that it says after each text. A pass takes a time that
depends on the model and on how much of the output is there. The theorem's assumptions
hold: times are positive and bounded, no draft pass is longer than any target pass, and
every thread has a processor of its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from speclab.audit.quantity import Quantities, Quantity

Text = tuple[int, ...]
Model = Mapping[Text, int]  # what it says after each text
Thread = tuple[int, ...]  # J: which model wrote each token
DRAFTER, TARGET = 1, 2
WORDS = (0, 1)


class Finished(NamedTuple):
    """A thread at the moment when its token is there."""

    time: float
    thread: Thread
    text: Text


class AlgorithmOne:
    """One run of the listing, for a drafter and a target.

    ``seconds`` has the times of each model's passes by the position of their token.
    """

    def __init__(
        self,
        models: Mapping[int, Model],
        seconds: Mapping[int, Sequence[float]],
    ):
        self._models = models
        self._seconds = seconds
        self._tokens = len(seconds[TARGET])
        self._running: list[Finished] = []
        self._written: dict[Thread, Text] = {}
        self._terminated: set[Thread] = set()
        self._verifier: Thread = (TARGET,)  # line 3

    def run(self) -> Finished:
        """The thread whose text line 18 returns."""
        self._initiate((), (), time=0.0)  # line 2
        while True:
            finished = heapq.heappop(self._running)  # line 4
            if self._is_terminated(finished.thread):
                continue
            self._written[finished.thread] = finished.text
            if len(finished.thread) < self._tokens:  # line 5
                self._initiate(finished.thread, finished.text, finished.time)
                if finished.thread == self._verifier:  # line 7
                    self._verify()
            elif finished.thread[-1] == TARGET:  # line 17
                return finished

    def _initiate(self, thread: Thread, text: Text, time: float) -> None:
        """Line 6: a thread of each model goes on from this text."""
        for number, model in self._models.items():
            end = time + self._seconds[number][len(text)]
            child = Finished(end, (*thread, number), (*text, model[text]))
            heapq.heappush(self._running, child)

    def _verify(self) -> None:
        """Lines 8 to 14, from one verifier to the next while these have finished."""
        while self._verifier in self._written:
            parent = self._verifier[:-1]
            token = self._written[self._verifier][-1]
            survivor = None
            for number in sorted(self._models):
                sibling = (*parent, number)
                said = self._written[sibling][-1]
                if said == token and survivor is None:
                    survivor = sibling  # line 9
                else:
                    self._terminated.add(sibling)  # lines 8 and 10
            assert survivor is not None  # the verifier itself said this token
            self._verifier = (*survivor, TARGET)  # line 11

    def _is_terminated(self, thread: Thread) -> bool:
        """Whether the thread, or one that it originates from, has been terminated."""
        for length in range(1, len(thread) + 1):
            if thread[:length] in self._terminated:
                return True
        return False


def every_text_of_algorithm_1(
    requests: int, tokens: int, first_pass: float, drafter: float
) -> Quantities:
    """What Algorithm 1 returns and when, over all pairs of a drafter and a target.

    A target pass takes 1, and a draft pass ``drafter``, which is at most 1. Where the
    passes are of unequal length, the target's first one takes ``first_pass``.
    """
    draft_times = [drafter] * tokens
    target_times = [1.0] * tokens
    unequal_times = [first_pass, *target_times[1:]]
    wrong = wrong_if_unequal = pairs = 0
    over_formula, over_plain = [], []
    for draft, target in product(_all_models(tokens), repeat=2):
        models = {DRAFTER: draft, TARGET: target}
        right = _greedy_text(target, tokens)
        equal = AlgorithmOne(models, {DRAFTER: draft_times, TARGET: target_times})
        unequal = AlgorithmOne(models, {DRAFTER: draft_times, TARGET: unequal_times})
        returned = equal.run()
        wrong += returned.text != right
        wrong_if_unequal += unequal.run().text != right
        pairs += 1

        right_drafts = 0
        for position in range(tokens - 1):
            right_drafts += draft[right[:position]] == right[position]
        formula = drafter * right_drafts + (tokens - right_drafts)
        over_formula.append(returned.time / formula)
        over_plain.append(returned.time / tokens)
    return {
        "wrong texts, passes of one length": Quantity.exact(wrong / pairs),
        "wrong texts, a longer first pass": Quantity.exact(wrong_if_unequal / pairs),
        "time over Proposition 1's, least": _rounded(min(over_formula)),
        "time over Proposition 1's, most": _rounded(max(over_formula)),
        "time over plain decoding's, most": _rounded(max(over_plain)),
    }


def _rounded(ratio: float) -> Quantity:
    """A ratio of two sums, without what floating point adds."""
    return Quantity.exact(round(ratio, 9))


def _all_models(tokens: int) -> Iterator[Model]:
    """Every table of what may be said after each text of fewer than so many tokens."""
    texts: list[Text] = []
    for length in range(tokens):
        texts.extend(product(WORDS, repeat=length))
    for says in product(WORDS, repeat=len(texts)):
        yield dict(zip(texts, says, strict=True))


def _greedy_text(model: Model, tokens: int) -> Text:
    text: Text = ()
    for _ in range(tokens):
        text = (*text, model[text])
    return text
