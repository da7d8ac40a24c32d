"""Toy models: exact acceptance rates and tiny vocabularies, without torch.

``Toy`` follows a script: the target always writes the script's token. A toy draft
agrees with it independently at each position, with probability exactly alpha (greedy),
or has an overlap sum(min(p, q)) of exactly alpha with it (sampling). ``Random`` draws
an unrelated distribution for every text, for the exact enumerator and for statistical
tests. ``Scripted`` repeats an example that a paper prints. All are ``Uncached``: they
track which tokens a KV cache would hold. This module uses no clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TypeAlias
from zlib import crc32

import numpy as np

from speclib.core.candidate_tree import paths, stem
from speclib.core.features import Features
from speclib.core.kv_prefix import Prefix
from speclib.core.sampling import Row, Rows, Sampler, certain
from speclib.core.text import AnyText
from speclib.errors import BadValue
from speclib.operations.model import Model, Stopped, shaped

from .vocabulary import known_tokens

BOS = 0  # a toy's prompt is this one token, and no ``Toy`` ever writes it
PATTERNS = 64  # positions after which a sampling toy's distributions repeat
LARGEST_TABLE = 4096  # the largest vocabulary whose one-hot rows are kept in a table

# What a distribution depends on: its text, the sampler, and the kind of pass.
DistributionKey: TypeAlias = tuple[tuple[int, ...], Sampler, tuple[int, ...]]


class Uncached(Model):
    """The base class of models without weights.

    A subclass defines ``rows`` and ``chances``, sets ``vocab``, calls ``reset`` in its
    constructor, and calls ``_feed`` first in ``rows``. Each pass first calls
    ``stopped()``, and raises Stopped if it returns true.

    sharing: how many layers share an input in the current pass; 1 in an exact pass.
    exact: how many of the first cached tokens come from exact passes.
    """

    context = 1 << 14
    sharing = 1
    _last_pass: tuple[Sequence[int], int, Sequence[int]]  # text, kept, parents
    _lp = 1  # layers that share an input while it drafts
    _next_is_exact = False  # the next pass calibrates

    def reset(self) -> None:
        """Empties the cache."""
        self.prefix = Prefix()
        self.exact = 0

    def cut(self, length: int) -> None:
        """Keeps the first ``length`` tokens of the cache."""
        self.prefix.cut(length)
        self.exact = min(self.exact, length)

    @contextmanager
    def drafting(self, lp: int, calibrate: bool) -> Iterator[None]:
        """The context of one drafting operation, whose passes are fuzzy.

        As in ``Layered.drafting``, a pass over a text with nothing cached is exact;
        with ``calibrate``, so is the first pass.
        """
        self._lp = lp
        self._next_is_exact = calibrate
        try:
            yield
        finally:
            self._lp = 1
            self._next_is_exact = False
            if calibrate:
                self.cut(self.exact)

    def _feed(self, text: Sequence[int], last: int) -> None:
        """Counts a pass over ``text`` that returns the last ``last`` + 1 rows.

        Raises BadValue for a text longer than the context, and Stopped if the pass is
        cancelled.
        """
        if len(text) > self.context:
            raise BadValue(
                f"a text of {len(text)} tokens does not fit this toy's context of "
                f"{self.context}: ask for fewer tokens, or build it with more"
            )
        self._pass(text, last)

    def _pass(self, text: Sequence[int], last: int) -> None:
        kept = self.prefix.keep(text, last)
        self._last_pass = (text, kept, ())
        if self.stopped():
            self.cut(kept)
            raise Stopped

        is_fuzzy = kept > 0 and not self._next_is_exact
        self.sharing = self._lp if is_fuzzy else 1
        self._next_is_exact = False
        if self.sharing == 1:
            self.exact = len(text)
        self.prefix.move(text, kept)

    def tree(
        self, text: Sequence[int], parents: Sequence[int], sampler: Sampler
    ) -> Rows:
        """Scores a tree, counted as one pass: rows [len(parents) + 1, vocab].

        The cache keeps the text and the tree's stem.
        """
        self._pass(text, len(parents))
        _, kept, _ = self._last_pass
        self.cut(len(text) - len(parents) + stem(parents))
        with self._uncounted():
            rows = super().tree(text, parents, sampler)
        self._last_pass = (text, kept, parents)
        return rows

    def features_fed(self) -> np.ndarray | None:
        """Returns a feature for each token that the last pass fed, [fed, 1].

        A toy's feature is a checksum of the path that ends with the token.
        """
        return np.array([[checksum(path)] for path in self._texts_fed()])

    def _texts_fed(self) -> list[AnyText]:
        """The texts that end with each of the tokens that the last pass fed."""
        text, kept, parents = self._last_pass
        start = len(text) - len(parents)
        bare_text = tuple(text[:start])
        texts: list[AnyText] = [bare_text[: end + 1] for end in range(kept, start)]
        texts += paths(text, parents)[1 + max(0, kept - start) :]
        return texts

    @contextmanager
    def reading(self, text: Sequence[int], features: Features) -> Iterator[None]:
        """As in ``eagle_head.Head``: at the end, the cache drops the tree's nodes.

        Raises BadValue for features of another text.
        """
        kept = self.prefix.keep(text)
        given = features.before(kept, len(text))
        for index, feature in enumerate(given, kept):
            wanted = checksum(text[:index]) if index else 0
            if feature.size and feature.tolist() != [wanted]:
                raise BadValue(
                    f"the feature before token {index} is {feature}, but this text has "
                    f"{wanted} there: features were mixed up"
                )
        try:
            yield
        finally:
            self.cut(len(text))

    def level(
        self, text: Sequence[int], parents: Sequence[int], new: int, sampler: Sampler
    ) -> Rows:
        """Computes the rows [new, vocab] of a tree's last level, counted as one pass.

        As in ``HFModel.level``, greedy rows are ``chances``, and the cache keeps the
        text and the tree's stem.
        """
        with self._uncounted():
            rows = super().level(text, parents, new, sampler)
        kept = len(text) - len(parents) + stem(parents)
        self.prefix.hold(text, kept)
        self.prefix.count += new
        if self.sharing == 1:
            self.exact = len(self.prefix.fed)
        return rows

    @contextmanager
    def _uncounted(self) -> Iterator[None]:
        """The context of passes that are not counted.

        If anything was cached, one token stays cached, so that a pass here is fuzzy if
        it would be fuzzy outside.
        """
        cached, exact = self.prefix, self.exact
        self.prefix = Prefix()
        self.prefix.hold(cached.fed, min(1, len(cached.fed)))
        try:
            yield
        finally:
            self.prefix, self.exact = cached, exact


def checksum(path: Sequence[int]) -> int:
    """A checksum that identifies ``path``."""
    return crc32(np.array(path, np.int64).tobytes())


class Toy(Uncached):
    """A target (``alpha=None``) or a draft that follows a script of random tokens.

    alpha: the draft's acceptance rate, 0 .. 1; None for the target.
    vocab: the number of token ids; the toy writes 1 .. vocab - 1.
    seed: decides the script; a pair's target and draft share it.
    words: the script itself, instead of a random one, so that a timeline can show real
        text. Position i of the text has words[i - 1]; at the end the words repeat.
    context: the longest text, in tokens.
    doubt: if above 0, the draft's confidence varies. At each position, its best token
        has probability s, drawn from a Beta distribution with mean alpha (the more
        doubt, the wider); each further token gets the share s of the remaining mass.
        The script's token has rank i with the probability of the token of that rank.
    fuzzy: the share of its agreement with the target that a fuzzy pass keeps for every
        further layer that shares an input. In groups of lp layers, it agrees with
        probability alpha * fuzzy ** (lp - 1).
    by_place: acceptance rates that replace alpha: for the first token that a greedy
        draft writes after text that is not its own, for the second in a row, and so on;
        all further tokens have the last rate.

    When sampling, the target's p covers the odd ids. The draft puts alpha of its mass
    there, in proportion to p, and the rest on even ids, where p is zero.
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
        by_place: tuple[float, ...] = (),
    ):
        _check_settings(alpha, vocab, fuzzy)
        self.alpha = alpha
        self.vocab = vocab
        self.context = context
        self.fuzzy = fuzzy

        # Arrays have one entry per position. Keep the order of draws: seeds rely on it.
        random = np.random.default_rng(seed)
        self._script = random.integers(1, vocab, context)
        if words:
            self._script = np.resize(np.asarray(words), context)
        agreement = random.random(context)
        offset = random.integers(1, vocab - 1, context)
        self._by_place = by_place
        self._agreement = agreement
        self._place = np.zeros(context, int)  # 1, 2, ... for tokens in a row; 0: none
        # Never the script's token, and never BOS.
        self._wrong = (self._script - 1 + offset) % (vocab - 1) + 1

        # What this toy writes: the script, or with probability 1 - alpha a wrong token.
        self._choice = self._script
        if alpha is not None:
            self._choice = np.where(agreement < alpha, self._script, self._wrong)
        if by_place:
            self._choice = self._choice.copy()  # later choices overwrite it

        self._confidence: np.ndarray | None = None
        if doubt and alpha not in (None, 0, 1):
            self._draw_confidence(random, alpha, doubt)

        self._blur = np.random.default_rng([seed, vocab, 1]).random(context)
        weights = np.random.default_rng([seed, vocab]).random((PATTERNS, vocab))
        self._weights = weights + 0.1
        self.reset()

    def _draw_confidence(
        self, random: np.random.Generator, alpha: float, doubt: float
    ) -> None:
        """Draws the draft's confidence, and its ranking of the script's token."""
        context = len(self._script)
        self._confidence = random.beta(alpha / doubt, (1 - alpha) / doubt, context)
        rank = random.geometric(np.maximum(self._confidence, 1e-9))
        self._script_rank = np.minimum(rank, self.vocab - 1)
        self._choice = np.where(self._script_rank == 1, self._script, self._wrong)

    @property
    def _agreement_left(self) -> float:
        """The share of the agreement that this pass keeps; 1 in an exact pass."""
        return self.fuzzy ** (self.sharing - 1)

    def _chosen(self, positions: slice | int) -> np.ndarray:
        """The tokens that this pass writes at ``positions``."""
        choice = self._choice[positions]
        if self.sharing == 1:
            return choice
        is_clear = self._blur[positions] < self._agreement_left
        return np.where(is_clear, choice, self._wrong[positions])

    def _choose_by_place(self, text: Sequence[int], last: int) -> None:
        """Chooses its tokens after text[:-last] ... text, by their places in a row."""
        for position in range(len(text) - last - 1, len(text)):
            place = self._place_after(text, position)
            rate = self._by_place[min(place, len(self._by_place)) - 1]
            is_right = self._agreement[position] < rate
            right, wrong = self._script[position], self._wrong[position]
            self._choice[position] = right if is_right else wrong
            self._place[position] = place
            self._place[position + 1 :] = 0

    def _place_after(self, text: Sequence[int], position: int) -> int:
        """The place in a row of the token that the toy writes after ``position``."""
        is_in_row = (
            position > 0
            and self._place[position - 1] > 0
            and text[position] == self._choice[position - 1]
        )
        return int(self._place[position - 1]) + 1 if is_in_row else 1

    @cached_property
    def _one_hot(self) -> np.ndarray:
        """One-hot rows [vocab, vocab], made on first use."""
        return np.eye(self.vocab)

    def _certain(self, tokens: Sequence[int] | np.ndarray) -> Rows:
        """The one-hot rows [tokens, vocab] of ``tokens``."""
        if self.vocab > LARGEST_TABLE:
            return certain(tokens, self.vocab)
        return self._one_hot[tokens]

    def rows(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """Distributions [last + 1, vocab] after text[:-last] ... text."""
        self._feed(text, last)
        end = len(text)
        start = end - last - 1
        if self._by_place:
            self._choose_by_place(text, last)

        if sampler.greedy and not sampler.penalties:
            return self._certain(self._chosen(slice(start, end)))
        distributions = self._sampling_rows(np.arange(start, end))
        with np.errstate(divide="ignore"):
            return shaped(np.log(distributions), sampler, text)

    def chances(self) -> Row:
        """The probabilities [vocab] after the last text, at temperature 1.

        With ``doubt``, they fall geometrically from the best token to the worst;
        without it, the distribution is one-hot.
        """
        return self._chances_at(len(self.prefix.fed) - 1)

    def graded(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """Probabilities [last + 1, vocab] at temperature 1; if greedy, ``chances``."""
        if not sampler.greedy:
            return super().graded(text, last, sampler)
        self._feed(text, last)
        positions = range(len(text) - last - 1, len(text))
        return np.array([self._chances_at(position) for position in positions])

    def _chances_at(self, position: int) -> Row:
        """The probabilities [vocab] after the token at ``position``."""
        chosen = int(self._chosen(position))
        if self._confidence is None:
            one_hot: Row = self._certain([chosen])[0]
            return one_hot

        ranking = self._ranking(position, chosen)
        confidence = self._confidence[position]
        ranks = np.arange(len(ranking))
        probabilities = np.zeros(self.vocab)
        probabilities[ranking] = confidence * (1 - confidence) ** ranks
        return probabilities

    def _ranking(self, position: int, chosen: int) -> list[int]:
        """All tokens at ``position``, from the likeliest to the least likely."""
        wanted = int(self._script[position])
        ranking = [t for t in range(1, self.vocab) if t not in (chosen, wanted)]
        ranking.insert(0, chosen)
        if chosen != wanted:
            rank = max(2, self._script_rank[position])  # the first rank is taken
            ranking.insert(rank - 1, wanted)
        return ranking

    def _sampling_rows(self, positions: np.ndarray) -> np.ndarray:
        """Distributions [n, vocab]: alpha of the mass on odd ids, the rest on even."""
        rows: np.ndarray = self._weights[positions % PATTERNS].copy()
        alpha = 1.0 if self.alpha is None else self.alpha
        odd_mass = self._agreement_left * alpha

        odd_ids = slice(1, None, 2)
        even_ids = slice(2, None, 2)
        for ids, mass in ((odd_ids, odd_mass), (even_ids, 1 - odd_mass)):
            rows[:, ids] *= mass / rows[:, ids].sum(1, keepdims=True)
        rows[:, BOS] = 0
        return rows


def _check_settings(alpha: float | None, vocab: int, fuzzy: float) -> None:
    """Raises BadValue for settings that no toy can have."""
    if alpha is not None and not 0 <= alpha <= 1:
        raise BadValue(f"alpha is {alpha}: give an acceptance rate in 0 .. 1")
    if not 0 <= fuzzy <= 1:
        raise BadValue(f"fuzzy is {fuzzy}: give a share of the agreement in 0 .. 1")
    if vocab < 3:
        raise BadValue(f"a toy's vocab is {vocab}: give at least 3")


class Random(Uncached):
    """Draws an unrelated distribution for every text; ``seed`` distinguishes models.

    In a fuzzy pass, the distribution also depends on the number of layers that share an
    input, and on the number of exact tokens in the cache.

    own_rows: how many tokens its own vocabulary has; None: ``vocab``. Further tokens
        have probability 0, and the model is fed token 0 in their place. Tokens beyond
        ``vocab`` are cut off.
    horizon: once the text has this length, the next token is always 0, so that an
        enumerator need not branch on tokens that a method drafts beyond the end of the
        output. None: no horizon.
    """

    def __init__(
        self,
        vocab: int = 3,
        seed: int = 0,
        horizon: int | None = None,
        own_rows: int | None = None,
    ):
        self.vocab = vocab
        self.own_rows = own_rows or vocab
        self.seed = seed
        self.horizon = horizon
        self._known: dict[DistributionKey, np.ndarray] = {}
        self.reset()

    def rows(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """Distributions [last + 1, vocab] after text[:-last] ... text."""
        self._feed(text, last)
        text = tuple(text)
        ends = range(len(text) - last, len(text) + 1)
        return np.array([self._distribution_after(text[:end], sampler) for end in ends])

    def chances(self) -> Row:
        """The probabilities [vocab] after the last text, at temperature 1."""
        return self._distribution_after(tuple(self.prefix.fed), Sampler(1.0))

    def _distribution_after(
        self, text: tuple[int, ...], sampler: Sampler
    ) -> np.ndarray:
        """The distribution [vocab] after ``text``, which is drawn only once."""
        kind_of_pass = (self.sharing, self.exact) if self.sharing > 1 else ()
        key = (text, sampler, kind_of_pass)
        if key not in self._known:
            distribution = self._draw_distribution(text, kind_of_pass)
            with np.errstate(divide="ignore"):
                self._known[key] = shaped(np.log(distribution)[None], sampler, text)[0]
        return self._known[key]

    def _draw_distribution(
        self, text: tuple[int, ...], kind_of_pass: tuple[int, ...]
    ) -> np.ndarray:
        """Draws the distribution [vocab] after ``text``, before any sampler."""
        if self.horizon is not None and len(text) >= self.horizon:
            zero_for_sure: np.ndarray = np.eye(self.vocab)[0]
            return zero_for_sure
        fed = known_tokens(text, self.own_rows, stand_in=BOS)
        padding = [self.vocab] * len(kind_of_pass)  # unlike the seed of any longer text
        random = np.random.default_rng([self.seed, *fed, *kind_of_pass, *padding])
        own_part = random.dirichlet(np.ones(self.own_rows))[: self.vocab]
        distribution = np.zeros(self.vocab)
        distribution[: len(own_part)] = own_part
        return distribution


class Scripted(Uncached):
    """Repeats a printed example.

    lines: a text (token ids) -> the id that follows it; after any other text, BOS.
    """

    def __init__(self, lines: dict[tuple[int, ...], int], vocab: int):
        self.lines = lines
        self.vocab = vocab
        self.reset()

    def rows(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """One-hot rows [last + 1, vocab] after text[:-last] ... text."""
        self._feed(text, last)
        text = tuple(text)
        ends = range(len(text) - last, len(text) + 1)
        return certain([self.lines.get(text[:end], BOS) for end in ends], self.vocab)


class ToyTokenizer:
    """Encodes any text as the toy's one-token prompt; spells token ids as t1 t2 ..."""

    chat_template = None

    def __init__(self, vocab: int):
        self.vocab = vocab

    def encode(self, text: str) -> list[int]:
        """Returns the prompt: one token, or none for an empty text."""
        return [BOS] if text else []

    def decode(self, tokens: Sequence[int], skip_special_tokens: bool = False) -> str:
        """Writes the tokens as text, for example " t3 t7"."""
        return "".join(f" t{token}" for token in tokens)
