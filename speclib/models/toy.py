"""Toy models: exact acceptance rates and tiny vocabularies, without torch.

``Toy`` follows a script: the target always wants the script's token; the draft agrees with it
independently at each position, with probability exactly alpha (greedy), or has an overlap
sum(min(p, q)) of exactly alpha with it (sampling). ``Random`` draws an unrelated distribution for
every text: for the enumerator and for statistical tests. Knows no clock.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from speclib.core.sampling import Sampler
from speclib.errors import SpeclibError

from .uncached import Uncached

BOS = 0  # a toy prompt is this one token; no toy ever writes it


class Toy(Uncached):
    """A target (``alpha=None``) or draft of the script of ``seed``, or of ``words``.

    Token ids are 1 .. vocab-1. With ``words``, position i of the text wants words[i - 1]
    (repeating), so a timeline can show real text. Sampling: p spreads over the odd ids; the draft
    puts alpha of its mass there in proportion to p and the rest on even ids, where p is zero.

    ``doubt`` > 0 makes the draft know how sure it may be: at each position its best token has a
    chance s of its own, Beta with mean alpha (the wider, the more doubt), every further one the
    share s of what is left; and the script's token is its i-th best as often as these chances say.

    ``fuzzy``: the share of its agreement with the target that a fuzzy pass keeps for every further
    layer that shares an input; so in groups of lp it agrees with probability alpha * fuzzy**(lp-1).
    """

    def __init__(
        self,
        alpha: float | None = None,
        vocab: int = 16,
        seed: int = 0,
        words: tuple[int, ...] = (),
        context: int = 1 << 14,
        doubt: float = 0.0,
        fuzzy: float = 1.0,
    ):
        if alpha is not None and not 0 <= alpha <= 1:
            raise SpeclibError(f"alpha is {alpha}: an acceptance rate lies in 0 .. 1")
        if not 0 <= fuzzy <= 1:
            raise SpeclibError(
                f"fuzzy is {fuzzy}: the share of an agreement lies in 0 .. 1"
            )
        if vocab < 3:
            raise SpeclibError(f"a toy's vocab is {vocab}: give at least 3")
        self.alpha, self.vocab, self.context, self.fuzzy = alpha, vocab, context, fuzzy
        random = np.random.default_rng(seed)
        script = random.integers(1, vocab, context)
        if words:
            script = np.resize(np.asarray(words), context)
        agree = random.random(context)
        self._wrong = (script - 1 + random.integers(1, vocab - 1, context)) % (
            vocab - 1
        ) + 1
        self._says = (
            script if alpha is None else np.where(agree < alpha, script, self._wrong)
        )
        self._script, self._sure = script, None
        if doubt and alpha not in (None, 0, 1):
            self._sure = random.beta(alpha / doubt, (1 - alpha) / doubt, context)
            self._rank = np.minimum(
                random.geometric(np.maximum(self._sure, 1e-9)), vocab - 1
            )
            self._says = np.where(self._rank == 1, script, self._wrong)
        self._blur = np.random.default_rng([seed, vocab, 1]).random(context)
        self._weights = np.random.default_rng([seed, vocab]).random((64, vocab)) + 0.1
        self.reset()

    @property
    def _clear(self) -> float:
        """The share of its agreement that is left in this pass."""
        return self.fuzzy ** (self.sharing - 1)

    def _said(self, at) -> np.ndarray:
        """What this pass says at the positions ``at``."""
        if self.sharing == 1:
            return self._says[at]
        return np.where(self._blur[at] < self._clear, self._says[at], self._wrong[at])

    @cached_property
    def _eye(self) -> np.ndarray:
        return np.eye(self.vocab)  # only when asked for: its size is vocab squared

    def rows(self, text, last: int, sampler: Sampler) -> np.ndarray:
        self._feed(text, last)
        first = len(text) - last - 1
        if sampler.greedy:
            return self._eye[self._said(slice(first, first + last + 1))]
        with np.errstate(divide="ignore"):
            return sampler(np.log(self._mixed(np.arange(first, first + last + 1))))

    def chances(self) -> np.ndarray:
        """A row of ranks with ``doubt``; without, the toy is sure of its word."""
        at = len(self.prefix.fed) - 1
        says, true = int(self._said(at)), int(self._script[at])
        if self._sure is None:
            return self._eye[says]
        ranked, sure = (
            [t for t in range(1, self.vocab) if t not in (says, true)],
            self._sure[at],
        )
        ranked.insert(0, says)
        if says != true:
            ranked.insert(max(2, self._rank[at]) - 1, true)
        row = np.zeros(self.vocab)
        row[ranked] = sure * (1 - sure) ** np.arange(len(ranked))
        return row

    def _mixed(self, positions: np.ndarray) -> np.ndarray:
        rows = self._weights[positions % 64].copy()
        alpha = self._clear * (1.0 if self.alpha is None else self.alpha)
        for half, mass in ((slice(1, None, 2), alpha), (slice(2, None, 2), 1 - alpha)):
            rows[:, half] *= mass / rows[:, half].sum(1, keepdims=True)
        rows[:, BOS] = 0
        return rows


class Random(Uncached):
    """An unrelated distribution for every text, cached; ``seed`` tells models apart.

    Texts of ``horizon`` tokens or more are followed by token 0, surely: an enumerator need not walk
    the tokens that a method drafts beyond the end of the output. A fuzzy pass draws another one for
    every text, number of layers that share an input, and number of exact tokens in the cache.
    """

    def __init__(self, vocab: int = 3, seed: int = 0, horizon: int | None = None):
        self.vocab, self.seed, self.horizon, self._cache = vocab, seed, horizon, {}
        self.reset()

    def rows(self, text, last: int, sampler: Sampler) -> np.ndarray:
        self._feed(text, last)
        text = tuple(text)
        return np.array(
            [
                self._row(text[:n], sampler)
                for n in range(len(text) - last, len(text) + 1)
            ]
        )

    def chances(self) -> np.ndarray:
        return self._row(tuple(self.prefix.fed), Sampler(1.0))

    def _row(self, text, sampler: Sampler) -> np.ndarray:
        fuzzy = (self.sharing, self.exact) if self.sharing > 1 else ()
        key = (text, sampler, fuzzy)
        if key not in self._cache:
            beyond = self.horizon is not None and len(text) >= self.horizon
            random = np.random.default_rng(
                [self.seed, *text, *fuzzy, *[self.vocab] * len(fuzzy)]
            )
            row = (
                np.eye(self.vocab)[0]
                if beyond
                else random.dirichlet(np.ones(self.vocab))
            )
            with np.errstate(divide="ignore"):
                self._cache[key] = sampler(np.log(row)[None])[0]
        return self._cache[key]


class Scripted(Uncached):
    """Says what a printed example says: ``lines`` maps a text (ids) to the id that follows it."""

    def __init__(self, lines: dict[tuple[int, ...], int], vocab: int):
        self.lines, self.vocab = lines, vocab
        self.reset()

    def rows(self, text, last: int, sampler: Sampler) -> np.ndarray:
        self._feed(text, last)
        text, rows = tuple(text), np.zeros((last + 1, self.vocab))
        for row, n in zip(rows, range(len(text) - last, len(text) + 1), strict=True):
            row[self.lines.get(text[:n], BOS)] = 1
        return rows


class ToyTokenizer:
    """Any text is the toy's one-token prompt; ids read as t1 t2 ..."""

    eos_token_id = None
    chat_template = None

    def __init__(self, vocab: int):
        self.vocab = vocab

    def encode(self, text: str) -> list[int]:
        return [BOS] if text else []

    def decode(self, tokens, skip_special_tokens: bool = False) -> str:
        return "".join(f" t{t}" for t in tokens)
