"""Toy models: exact acceptance rates and tiny vocabularies, without torch.

``Toy`` follows a script: the target always wants the script's token; the draft agrees with it
independently at each position, with probability exactly alpha (greedy), or has an overlap
sum(min(p, q)) of exactly alpha with it (sampling). ``Random`` draws an unrelated distribution for
every text: for the enumerator and for statistical tests. Knows no clock.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..errors import SpeclibError
from ..grow import one_by_one
from ..operations import Prefix, Stopped
from ..tokens import Sampler
from ..tree import paths, stem

BOS = 0                     # a toy prompt is this one token; no toy ever writes it


class _Uncached:
    """What toys share: a prefix counted as if there were a KV cache behind it. ``stopped()`` is
    asked before each pass; where it says yes, ``rows`` raises Stopped."""

    context = 1 << 14
    stopped = staticmethod(bool)                # False

    def reset(self) -> None:
        self.prefix = Prefix()

    def cut(self, length: int) -> None:
        self.prefix.cut(length)

    def _feed(self, text, last: int) -> None:
        if len(text) > self.context:
            raise SpeclibError(f"a text of {len(text)} tokens does not fit this toy's context of "
                               f"{self.context}: ask for fewer tokens, or build it with more")
        self._pass(text, last)

    def _pass(self, text, last: int) -> None:
        kept = self.prefix.keep(text, last)
        if self.stopped():
            self.cut(kept)
            raise Stopped
        self.prefix.move(text, kept)

    def tree(self, text, parents, sampler: Sampler) -> np.ndarray:
        """The rows of a Tree, as if of one pass; cached stay the text and the tree's stem."""
        self._pass(text, len(parents))
        self.cut(len(text) - len(parents) + stem(parents))
        cached, self.prefix = self.prefix, Prefix()
        try:
            return np.concatenate([self.rows(t, 0, sampler) for t in paths(text, parents)])
        finally:
            self.prefix = cached

    def level(self, text, parents, new: int, sampler: Sampler) -> np.ndarray:
        """As of HFModel, as if of one pass; greedy rows are ``chances``."""
        cached, self.prefix = self.prefix, Prefix()
        try:
            rows = one_by_one(self, text, parents, new, sampler)
        finally:
            self.prefix = cached
        cached.fed[:] = text[:len(text) - len(parents) + stem(parents)]
        cached.count += new
        return rows


class Toy(_Uncached):
    """A target (``alpha=None``) or draft of the script of ``seed``, or of ``words``.

    Token ids are 1 .. vocab-1. With ``words``, position i of the text wants words[i - 1]
    (repeating), so a timeline can show real text. Sampling: p spreads over the odd ids; the draft
    puts alpha of its mass there in proportion to p and the rest on even ids, where p is zero.

    ``doubt`` > 0 makes the draft know how sure it may be: at each position its best token has a
    chance s of its own, Beta with mean alpha (the wider, the more doubt), every further one the
    share s of what is left; and the script's token is its i-th best as often as these chances say.
    """

    def __init__(self, alpha: float | None = None, vocab: int = 16, seed: int = 0,
                 words: tuple[int, ...] = (), context: int = 1 << 14, doubt: float = 0.0):
        if alpha is not None and not 0 <= alpha <= 1:
            raise SpeclibError(f"alpha is {alpha}: an acceptance rate lies in 0 .. 1")
        if vocab < 3:
            raise SpeclibError(f"a toy's vocab is {vocab}: give at least 3")
        self.alpha, self.vocab, self.context = alpha, vocab, context
        random = np.random.default_rng(seed)
        script = random.integers(1, vocab, context)
        if words:
            script = np.resize(np.asarray(words), context)
        agree = random.random(context)
        wrong = (script - 1 + random.integers(1, vocab - 1, context)) % (vocab - 1) + 1
        self._says = script if alpha is None else np.where(agree < alpha, script, wrong)
        self._script, self._sure = script, None
        if doubt and alpha not in (None, 0, 1):
            self._sure = random.beta(alpha / doubt, (1 - alpha) / doubt, context)
            self._rank = np.minimum(random.geometric(np.maximum(self._sure, 1e-9)), vocab - 1)
            self._says = np.where(self._rank == 1, script, wrong)
        self._weights = np.random.default_rng([seed, vocab]).random((64, vocab)) + 0.1
        self.reset()

    @cached_property
    def _eye(self) -> np.ndarray:
        return np.eye(self.vocab)               # only when asked for: its size is vocab squared

    def rows(self, text, last: int, sampler: Sampler) -> np.ndarray:
        self._feed(text, last)
        first = len(text) - last - 1
        if sampler.greedy:
            return self._eye[self._says[first:first + last + 1]]
        with np.errstate(divide="ignore"):
            return sampler(np.log(self._mixed(np.arange(first, first + last + 1))))

    def chances(self) -> np.ndarray:
        """A row of ranks with ``doubt``; without, the toy is sure of its word."""
        at = len(self.prefix.fed) - 1
        if self._sure is None:
            return self._eye[self._says[at]]
        ranked, sure = [t for t in range(1, self.vocab) if t not in (
            self._says[at], self._script[at])], self._sure[at]
        ranked.insert(0, self._says[at])
        if self._rank[at] > 1:
            ranked.insert(self._rank[at] - 1, self._script[at])
        row = np.zeros(self.vocab)
        row[ranked] = sure * (1 - sure) ** np.arange(len(ranked))
        return row

    def _mixed(self, positions: np.ndarray) -> np.ndarray:
        rows = self._weights[positions % 64].copy()
        alpha = 1.0 if self.alpha is None else self.alpha
        for half, mass in ((slice(1, None, 2), alpha), (slice(2, None, 2), 1 - alpha)):
            rows[:, half] *= mass / rows[:, half].sum(1, keepdims=True)
        rows[:, BOS] = 0
        return rows


class Random(_Uncached):
    """An unrelated distribution for every text, cached; ``seed`` tells models apart.

    Texts of ``horizon`` tokens or more are followed by token 0, surely: an enumerator need not walk
    the tokens that a method drafts beyond the end of the output.
    """

    def __init__(self, vocab: int = 3, seed: int = 0, horizon: int | None = None):
        self.vocab, self.seed, self.horizon, self._cache = vocab, seed, horizon, {}
        self.reset()

    def rows(self, text, last: int, sampler: Sampler) -> np.ndarray:
        self._feed(text, last)
        text = tuple(text)
        return np.stack([self._row(text[:n], sampler)
                         for n in range(len(text) - last, len(text) + 1)])

    def chances(self) -> np.ndarray:
        return self._row(tuple(self.prefix.fed), Sampler(1.0))

    def _row(self, text, sampler: Sampler) -> np.ndarray:
        key = (text, sampler)
        if key not in self._cache:
            beyond = self.horizon is not None and len(text) >= self.horizon
            row = (np.eye(self.vocab)[0] if beyond else
                   np.random.default_rng([self.seed, *text]).dirichlet(np.ones(self.vocab)))
            with np.errstate(divide="ignore"):
                self._cache[key] = sampler(np.log(row)[None])[0]
        return self._cache[key]


class Scripted(_Uncached):
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
