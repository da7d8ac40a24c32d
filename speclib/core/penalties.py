"""Penalties and bans, which make tokens less likely or impossible.

All of them are pure functions of the text before a position. So a row is the same in
every pass that computes it, whether the pass covers one token or a window, and whether
or not its drafts are accepted. No counts are kept between passes, so nothing has to be
undone.

This module uses no model and no method.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from speclib.arguments import Number

from .settings import require_number
from .text import AnyText

Logits = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Penalties:
    """Changes to the logits, made before the temperature is applied.

    repetition       the logits of tokens in the text, prompt included, are divided by
                     this if positive, else multiplied; 1: off
    presence         is subtracted for tokens in the new text; 0: off
    frequency        is subtracted for each occurrence in the new text; 0: off
    prompt_length    where the new text begins
    shortest         while a text has fewer tokens than this, ``ends`` are banned
    suppressed       tokens that are never written

    Source: repetition: Keskar et al. 2019, "CTRL", section 4.1, as in transformers;
    presence, frequency: OpenAI's API, as in vLLM. As in both libraries, penalties are
    applied in this order, then the bans.
    """

    repetition: float = 1.0
    presence: float = 0.0
    frequency: float = 0.0
    prompt_length: int = 0
    shortest: int = 0
    ends: frozenset[int] = frozenset()
    suppressed: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        require_number("repetition_penalty", self.repetition, Number(above=0))
        require_number("presence_penalty", self.presence, Number())
        require_number("frequency_penalty", self.frequency, Number())

    def __bool__(self) -> bool:
        """Whether any penalty or ban is on."""
        is_penalty = self.repetition != 1 or self.presence != 0 or self.frequency != 0
        has_bans = bool(self.suppressed or (self.ends and self.shortest))
        return is_penalty or has_bans

    def applied(self, logits: Logits, texts: Iterable[AnyText]) -> Logits:
        """A changed copy of ``logits`` [n, V]; row i follows the i-th of ``texts``."""
        changed = logits.copy()
        for row, text in zip(changed, texts, strict=True):
            self._change(row, text)
        return changed

    def _change(self, row: Logits, text: AnyText) -> None:
        """Changes the logits [V] after ``text`` in place."""
        tokens = np.array(text[:], dtype=np.int64)
        if self.repetition != 1:
            seen = np.unique(tokens)
            factor = row.dtype.type(self.repetition)
            scores = row[seen]
            row[seen] = np.where(scores < 0, scores * factor, scores / factor)

        new, counts = np.unique(tokens[self.prompt_length :], return_counts=True)
        lowered = self.frequency * counts + self.presence
        row[new] -= lowered.astype(row.dtype)

        banned = self.suppressed
        if len(text) < self.shortest:
            banned |= self.ends
        row[[token for token in banned if token < len(row)]] = -np.inf
