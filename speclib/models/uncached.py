"""What toy models share: a prefix, counted as if there were a KV cache behind it.

This module knows no clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from zlib import crc32

import numpy as np

from speclib.core.candidate_tree import paths, stem
from speclib.core.features import Features
from speclib.core.kv_prefix import Prefix
from speclib.core.sampling import Rows, Sampler
from speclib.core.text import AnyText
from speclib.errors import BadValue
from speclib.operations.model import Model, Stopped


class Uncached(Model):
    """A model without weights: everything but its ``rows`` and ``chances``.

    A subclass has these, sets ``vocab``, calls ``reset`` when it is made, and begins
    its ``rows`` with ``_feed``. ``stopped()`` is asked before each pass; when it says
    yes, the pass raises Stopped.

    sharing: how many layers share an input in the pass under way; 1 in an exact pass.
    exact: how many cached tokens, from the first on, come from exact passes.
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
        """Passes in here are fuzzy, as those of ``Layered.drafting``.

        Exact are the first one, with ``calibrate``, and one of whose text nothing is
        cached.
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
        """Counts a pass over ``text`` whose last ``last`` + 1 rows are wanted.

        Raises BadValue for a text that is longer than the context, Stopped when the
        pass is wanted no more.
        """
        self._refuse_beyond(len(text))
        self._pass(text, last)

    def _refuse_beyond(self, length: int) -> None:
        """Raises BadValue for a text of a ``length`` that the context cannot hold."""
        if length > self.context:
            raise BadValue(
                f"a text of {length} tokens does not fit this toy's context of "
                f"{self.context}: ask for fewer tokens, or build it with more"
            )

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
        """The rows [len(parents) + 1, vocab] of a scored tree, counted as one pass.

        Cached stay the text and the tree's stem.
        """
        self._pass(text, len(parents))
        _, kept, _ = self._last_pass
        self.cut(len(text) - len(parents) + stem(parents))
        with self._uncounted():
            rows = super().tree(text, parents, sampler)
        self._last_pass = (text, kept, parents)
        return rows

    def features_fed(self) -> np.ndarray | None:
        """A feature for each token that the last pass fed, [fed, 1].

        A toy's feature of a token is a checksum of the path up to and with it.
        """
        return np.array([[_checksum(path)] for path in self._texts_fed()])

    def _texts_fed(self) -> list[AnyText]:
        """The texts that end with each token which the last pass fed."""
        text, kept, parents = self._last_pass
        start = len(text) - len(parents)
        bare_text = tuple(text[:start])
        texts: list[AnyText] = [bare_text[: end + 1] for end in range(kept, start)]
        texts += paths(text, parents)[1 + max(0, kept - start) :]
        return texts

    @contextmanager
    def reading(self, text: Sequence[int], features: Features) -> Iterator[None]:
        """In here it drafts as a head would: what it caches of nodes is forgotten.

        Raises BadValue for features that are not those of this very text.
        """
        kept = self.prefix.keep(text)
        given = features.before(kept, len(text))
        for index, feature in enumerate(given, kept):
            wanted = _checksum(text[:index]) if index else 0
            if feature.size and feature.tolist() != [wanted]:
                raise BadValue(
                    f"the feature before token {index} is {feature}, but that of this "
                    f"text is {wanted}: features were mixed up"
                )
        try:
            yield
        finally:
            self.cut(len(text))

    def level(
        self, text: Sequence[int], parents: Sequence[int], new: int, sampler: Sampler
    ) -> Rows:
        """The rows [new, vocab] of a tree's last level, counted as one pass.

        As of ``HFModel.level``: greedy rows are ``chances``, and cached stay the text
        and the tree's stem.
        """
        with self._uncounted():
            rows = super().level(text, parents, new, sampler)
        self._count_level(text, parents, new)
        return rows

    def _count_level(
        self, text: Sequence[int], parents: Sequence[int], new: int
    ) -> None:
        """Counts the pass of a level, after which the text and the stem are cached."""
        kept = len(text) - len(parents) + stem(parents)
        self.prefix.hold(text, kept)
        self.prefix.count += new
        if self.sharing == 1:
            self.exact = len(self.prefix.fed)

    @contextmanager
    def _uncounted(self) -> Iterator[None]:
        """What is fed in here does not count.

        Where something was cached, one token stays cached, so that passes are fuzzy in
        here if they are fuzzy outside.
        """
        cached, exact = self.prefix, self.exact
        self.prefix = Prefix()
        self.prefix.hold(cached.fed, min(1, len(cached.fed)))
        try:
            yield
        finally:
            self.prefix, self.exact = cached, exact


def _checksum(path: Sequence[int]) -> int:
    """A number that tells ``path`` from others."""
    return crc32(np.array(path, np.int64).tobytes())
