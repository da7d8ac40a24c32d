"""Checks that a pair's draft writes the same text with and without its KV cache.

Checking a rule does not show this: if a cache is cut wrongly, the target still corrects
every token. Only the speed suffers, more and more as the text grows. So the draft
writes greedily here, along a text of a few hundred tokens. We mislead it in every round
so that its cache is cut often. Then it writes each window again with an empty cache.

This does not cover trees, sampling, fuzzy passes, other processes, or batched drafts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from speclab.check.report import Checked
from speclib.core.sampling import Row, Sampler, Tokens
from speclib.data.pairs import Pair
from speclib.errors import BadValue
from speclib.models.open_pair import open_pair
from speclib.operations.model import GREEDY, Model

PROMPT = 'def fib(n):\n    """Return the n-th Fibonacci number, counted from 0."""\n'
TOKENS = 300  # in the text, without the prompt
GAMMA = 4
QUARTERS = 4
LEAST = 8 * GAMMA  # tokens; a shorter text is not judged
CLOSE = 0.01  # the change in a probability that rounding may cause
ALL_CHANCES = Sampler(temperature=1.0)


class Window(NamedTuple):
    """Drafts after a text, with their probabilities according to the draft model."""

    text: Tokens
    tokens: Tokens
    chances: Row


@dataclass(frozen=True, repr=False)
class CheckedPair(Checked):
    """The answer for a pair: ``is_lossless`` if the cache leaves the tokens unchanged.

    acceptance  the share of tested drafts that the target accepts, in each quarter of
                the text in order; () for a short text
    fed         tokens that were fed to the draft's passes
    needed      tokens that a correctly cut cache would need
    """

    acceptance: tuple[float, ...] = ()
    fed: int = 0
    needed: int = 0

    @property
    def heading(self) -> str:
        if self.is_lossless:
            return "The draft writes the same with and without its cache."
        return "The draft's cache is cut wrongly."

    @property
    def sentences(self) -> list[str]:
        if not self.acceptance:
            return super().sentences
        shares = ", ".join(f"{share:.2f}" for share in self.acceptance)
        by_age = (
            f"Share of tested drafts accepted, in each quarter of the text: {shares}."
        )
        return [*super().sentences, by_age]


def check_pair(pair: Pair, seconds: float = 30.0) -> CheckedPair:
    """Checks that a pair's draft writes the same text with and without its KV cache.

    Raises BadValue if the draft has no cache, or needs the target's features.
    """
    if pair.draft.is_toy or pair.draft.head:
        kind = "a toy has no KV cache" if pair.draft.is_toy else "EAGLE is only a head"
        raise BadValue(
            f"pair {pair.name}: {kind}, so its draft cannot be checked alone"
        )
    opened = open_pair(pair)
    tokenizer: Any = opened.tokenizer
    prompt = tuple(tokenizer(PROMPT)["input_ids"])
    tokens = min(TOKENS, opened.context - len(prompt) - 2 * GAMMA)
    if tokens < LEAST:
        raise BadValue(
            f"pair {pair.name}: a context of {opened.context} tokens is too short to "
            "see a cache grow"
        )
    draft = opened.build("draft", dilated=False)
    target = opened.build("target", dilated=False)
    opened.set_threads()
    return check_draft(draft, target, prompt, tokens, seconds, pair.draft.mask)


def check_draft(
    draft: Model,
    target: Model,
    prompt: Tokens,
    tokens: int = TOKENS,
    seconds: float = 30.0,
    mask: int | None = None,
) -> CheckedPair:
    """Checks that ``draft`` writes the same with and without its cache.

    ``tokens``: the length of the text. ``mask``: the mask token of a draft that writes
    all tokens in one pass; see ``Propose``.
    """
    ends = perf_counter() + seconds / 2
    writer = _Writer(draft, mask)
    text, windows = prompt, list[Window]()
    rounds: list[tuple[int, int]] = []  # where each starts, and its accepted drafts
    most = len(prompt) + tokens
    while not rounds or (len(text) < most and perf_counter() < ends):
        astray = (*text[:-GAMMA], *text[-GAMMA + 1 :])  # leaves one token out
        windows += [writer.write(astray), writer.write(text)]
        drafted = windows[-1].tokens
        rows = target.rows(text + drafted, GAMMA, GREEDY)
        own = tuple(np.asarray(rows).argmax(-1).tolist())
        right = next((i for i in range(GAMMA) if drafted[i] != own[i]), GAMMA)
        rounds.append((len(text) - len(prompt), right))
        text += own[: right + 1]

    fed = draft.prefix.count - writer.fed_before
    problem, compared = _first_difference(draft, mask, windows, ends + seconds / 2)
    if problem is None and fed > writer.needed:
        problem = (
            f"The draft's passes were fed {fed:,} tokens, but {writer.needed:,} would "
            "have been enough: its cache keeps too little. This costs time, not tokens."
        )
    written = len(text) - len(prompt)
    return CheckedPair(
        is_lossless=problem is None,
        problem=problem or "",
        scope=f"In a text of {written} tokens, {compared} windows of {GAMMA} drafts "
        "were written again without a cache.",
        acceptance=_acceptance(rounds, written) if written >= LEAST else (),
        fed=fed,
        needed=writer.needed,
    )


def _acceptance(rounds: Sequence[tuple[int, int]], written: int) -> tuple[float, ...]:
    """The share of tested drafts that were accepted, in each quarter of the text."""
    accepted, tested = np.zeros(QUARTERS), np.zeros(QUARTERS)
    for begins, right in rounds:
        quarter = begins * QUARTERS // written
        accepted[quarter] += right
        tested[quarter] += min(right + 1, GAMMA)
    return tuple((accepted / np.maximum(tested, 1)).tolist())


class _Writer:
    """Makes a draft write windows with its cache, and counts the tokens fed to it."""

    def __init__(self, draft: Model, mask: int | None):
        draft.reset()
        self.draft, self.mask = draft, mask
        self.needed = 0
        self.fed_before = draft.prefix.count
        self._cached: Sequence[int] = ()

    def write(self, text: Tokens) -> Window:
        """A window of the draft's likeliest tokens after ``text``."""
        if self.mask is not None:
            masked = text + (self.mask,) * (GAMMA - 1)
            rows = self._rows(masked, GAMMA - 1)
            return Window(text, tuple(rows.argmax(-1).tolist()), rows.max(-1))
        tokens: Tokens = ()
        chances: list[float] = []
        for _ in range(GAMMA):
            (row,) = self._rows(text + tokens, 0)
            tokens += (int(row.argmax()),)
            chances.append(float(row.max()))
        return Window(text, tokens, np.array(chances))

    def _rows(self, text: Tokens, last: int) -> np.ndarray:
        longest = min(len(self._cached), len(text) - last - 1)
        kept = 0
        while kept < longest and text[kept] == self._cached[kept]:
            kept += 1
        self.needed += len(text) - kept
        self._cached = text
        return np.asarray(self.draft.rows(text, last, ALL_CHANCES))


def _first_difference(
    draft: Model, mask: int | None, windows: Sequence[Window], ends: float
) -> tuple[str | None, int]:
    """The first window that differs without a cache, and how many were compared."""
    for number, (text, tokens, chances) in enumerate(windows):
        if number and perf_counter() > ends:
            return None, number
        draft.reset()
        fed = tokens[:-1] if mask is None else (mask,) * (GAMMA - 1)
        rows = np.asarray(draft.rows(text + fed, GAMMA - 1, ALL_CHANCES))
        off = np.abs(rows[np.arange(GAMMA), tokens] - chances)
        if off.max() > CLOSE:
            worst = int(off.argmax())
            return (
                f"After {len(text) + worst} tokens, the draft writes {tokens[worst]} "
                f"with probability {chances[worst]:.4f}; without a cache it is "
                f"{rows[worst, tokens[worst]]:.4f}."
            ), number + 1
    return None, len(windows)
