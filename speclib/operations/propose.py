"""Drafting one sequence of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

from speclib.core.certain_rows import stacked
from speclib.core.sampling import Row, Tokens, certain
from speclib.core.text import AnyText, begins_with

from .drafting import Drafting
from .model import Model, Stopped
from .operation import (
    DecodingRun,
    Given,
    Output,
    Pass,
    Performed,
    RecordedRun,
    ToDrafts,
)
from .payload import DraftPayload, OwnEvent


@dataclass(frozen=True)
class DraftedInALine(DraftPayload):
    """The payload of tokens in one sequence.

    ``masks``: how many masks one pass was fed to write them all; None: each token had
    its own pass.
    """

    masks: int | None = None

    def pass_count(self, tokens: Tokens) -> int:
        if self.masks is None:
            return super().pass_count(tokens)
        return 1 if tokens else 0

    def drafts_fed(self, tokens: Tokens) -> int:
        if self.masks is None:
            return super().drafts_fed(tokens)
        return self.masks


@dataclass(frozen=True)
class Propose(Drafting):
    """Draft ``n`` tokens after ``text``. The result is Drafted tokens with their q.

    ``index`` identifies the drafter: each drafter has its own coins.

    ``confidence``: stop early, after an end token or after a token that the draft gives
    a lower probability than this. Greedy rows are one-hot, so with a greedy sampler it
    is the probability at temperature 1.

    ``mask``: the placeholder token of a draft trained to write all tokens in one pass.
    The text is followed by n - 1 masks, and each token comes from the row before its
    position::

        fed      t1 t2 t3  m  m         n = 3
        drafts          d1 d2 d3        d3 depends on neither d1 nor d2

    If the operation is stopped, its result is the tokens written so far.

    A draft with replicas on two devices writes the first half of the tokens, rounded
    up, on one device and the rest on the other (PEARL, Appendix G).

    Source of masks: An et al. 2025, "PARD: Accelerating LLM Inference with Low-Cost
    PARallel Draft Model Adaptation", arXiv:2504.18583.
    """

    index: int = 0
    confidence: float | None = None
    mask: int | None = None

    name: ClassVar[str] = "propose"
    payload_type: ClassVar = DraftedInALine
    gives_distributions: ClassVar[bool] = True

    def concerns(self, text: AnyText) -> bool:
        """Whether it can still write a token after ``text``."""
        is_same_way = begins_with(self.text, text) or begins_with(text, self.text)
        return is_same_way and len(self.text) + self.n > len(text)

    def run(self, model: Model, run: DecodingRun) -> Output:
        if self.mask is None or self.n < 2:
            return self._write_in_turn(model, run)
        return self._write_at_once(self.mask, model, run)

    def _write_in_turn(self, model: Model, run: DecodingRun) -> Output:
        text = self.text
        q_rows: list[Row] = []
        first_half = ceil(self.n / 2)

        for count in range(self.n):
            if count == first_half:
                model.go_to_last()
            try:
                q = model.rows(text, 0, run.sampler)[0]
            except Stopped:
                break
            token = run.coins.choose(q, len(text), "draft", self.index)
            text += (token,)
            q_rows.append(q)
            chances = q
            if self.confidence is not None and run.sampler.greedy:
                chances = model.chances()
            if self._ends_with(token, chances, run):
                break
        model.go_to_first()

        rows = stacked(q_rows, model.vocab)
        return Output(text[len(self.text) :], rows)

    def _write_at_once(self, mask: int, model: Model, run: DecodingRun) -> Output:
        masked = self.text + (mask,) * (self.n - 1)
        asks_for_chances = self.confidence is not None and run.sampler.greedy
        ask = model.graded if asks_for_chances else model.rows
        chances_in_rows = ask(masked, self.n - 1, run.sampler)
        rows = chances_in_rows
        if asks_for_chances:  # greedy rows are one-hot at the likeliest token
            rows = certain(chances_in_rows.argmax(-1).tolist(), model.vocab)
        tokens: Tokens = ()
        for q, chances in zip(rows, chances_in_rows, strict=True):
            position = len(self.text) + len(tokens)
            token = run.coins.choose(q, position, "draft", self.index)
            tokens += (token,)
            if self._ends_with(token, chances, run):
                break
        return Output(tokens, rows[: len(tokens)])

    def _ends_with(self, token: int, chances: Row, run: DecodingRun) -> bool:
        """Whether ``token`` is an end token, or the draft is too unsure of it."""
        if self.confidence is None:
            return False
        return token in run.eos or bool(self.confidence > chances[token])

    def passes(self, kept: int, fed: int) -> list[Pass]:
        """The passes; with masks, a single pass."""
        if self.mask is None:
            return super().passes(kept, fed)
        return [Pass(fed=fed, kept=kept)] if fed else []

    def until(self, done: Performed, share: float) -> Performed:
        """The tokens whose passes had ended, assuming that all take equally long."""
        if done.output is None:
            return Performed(None, done.kept, 0)
        tokens, rows = done.output
        written = min(len(tokens), int(len(tokens) * share + 1e-9))
        if self.mask is not None and written < len(tokens):
            written = 0  # the pass returns all tokens when it ends, and none before
        fed = done.fed - (len(tokens) - written) if written else 0
        return Performed(Output(tokens[:written], rows[:written]), done.kept, fed)

    def result(self, output: Output, kept: int, fed: int, to_drafts: ToDrafts) -> Given:
        tokens, rows = output
        payload = DraftedInALine()
        if self.mask is not None and tokens:
            payload = DraftedInALine(masks=max(0, kept + fed - len(self.text)))
        return Given(to_drafts(tokens, rows), tuple(tokens), payload)

    def recorded(self, event: OwnEvent, recording: RecordedRun) -> Output:
        return Output(event.tokens, certain(event.tokens, recording.vocab))
