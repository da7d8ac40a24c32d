"""DSI's Algorithm 1, line by line as printed, for all small pairs of greedy models.

A model is a table of the next token after each text. A pass's time depends on the model
and on the length of the output so far. The theorem's assumptions hold: times are
positive and bounded, no draft pass is longer than any target pass, and every thread has
its own processor. These tests support DSI's row in the audit's table of losslessness.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import pytest

Text = tuple[int, ...]
Model = Mapping[Text, int]  # its next token after each text
Thread = tuple[int, ...]  # J: which model wrote each token
DRAFTER, TARGET = 1, 2
WORDS = (0, 1)


class Finished(NamedTuple):
    """A thread at the time when its token is computed."""

    time: float
    thread: Thread
    text: Text


class AlgorithmOne:
    """One run of the listing, for a drafter and a target.

    ``seconds`` has the times of each model's passes, by the position of their token.
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
        """Runs until line 18; returns the thread whose text it returns."""
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
        """Line 6: starts a thread of each model after this text."""
        for number, model in self._models.items():
            end = time + self._seconds[number][len(text)]
            child = Finished(end, (*thread, number), (*text, model[text]))
            heapq.heappush(self._running, child)

    def _verify(self) -> None:
        """Lines 8 to 14: moves to the next verifier as long as it has finished."""
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
            assert survivor is not None  # the verifier itself wrote this token
            self._verifier = (*survivor, TARGET)  # line 11

    def _is_terminated(self, thread: Thread) -> bool:
        """Whether the thread, or one of its ancestors, has been terminated."""
        for length in range(1, len(thread) + 1):
            if thread[:length] in self._terminated:
                return True
        return False


def all_models(tokens: int) -> Iterator[Model]:
    """Yields every table of next tokens after all texts shorter than ``tokens``."""
    texts: list[Text] = []
    for length in range(tokens):
        texts.extend(product(WORDS, repeat=length))
    for says in product(WORDS, repeat=len(texts)):
        yield dict(zip(texts, says, strict=True))


def greedy_text(model: Model, tokens: int) -> Text:
    text: Text = ()
    for _ in range(tokens):
        text = (*text, model[text])
    return text


def run_over_all_pairs(first_pass: float, drafter: float) -> tuple[float, float, float]:
    """Runs all pairs for two tokens; the target's passes take ``first_pass`` and 1.

    Returns the share of wrong texts, and the smallest and the largest ratio of the time
    to Proposition 1's, which assumes equal target passes.
    """
    wrong = []
    over_formula = []
    for draft, target in product(all_models(2), repeat=2):
        models = {DRAFTER: draft, TARGET: target}
        seconds = {DRAFTER: [drafter] * 2, TARGET: [first_pass, 1.0]}
        returned = AlgorithmOne(models, seconds).run()
        wrong.append(returned.text != greedy_text(target, 2))
        is_first_right = draft[()] == target[()]
        formula = 1 + drafter if is_first_right else 2
        over_formula.append(returned.time / formula)
    return sum(wrong) / len(wrong), min(over_formula), max(over_formula)


def test_a_text_is_returned_before_its_first_token_is_verified():
    """The second target pass ends at 0.1 + 1, and the first at 1.2.

    With two tokens, a drafter's first token is wrong for half of all pairs of models.
    """
    wrong, _, _ = run_over_all_pairs(first_pass=1.2, drafter=0.1)
    assert wrong == 0.5


def test_with_equal_target_passes_it_takes_the_time_of_proposition_1():
    wrong, least, most = run_over_all_pairs(first_pass=1.0, drafter=0.1)
    assert wrong == 0
    assert (least, most) == pytest.approx((1, 1))


def test_it_is_right_if_the_first_target_pass_ends_in_time():
    """If drafting takes 0.5, the second target pass ends at 1.5, after the first."""
    wrong, _, _ = run_over_all_pairs(first_pass=1.2, drafter=0.5)
    assert wrong == 0
