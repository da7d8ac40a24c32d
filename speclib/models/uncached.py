"""What toys share: a prefix counted as if there were a KV cache behind it. Knows no clock."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

from speclib.core.candidate_tree import paths, stem
from speclib.core.kv_prefix import Prefix
from speclib.core.sampling import Sampler
from speclib.errors import SpeclibError
from speclib.operations.draft_tree import rows_path_by_path
from speclib.operations.operation import Stopped


class Uncached:
    """A model but for its ``rows`` and ``chances``, which begin with ``_feed``. ``stopped()`` is
    asked before each pass; where it says yes, ``rows`` raises Stopped.

    ``sharing``: how many layers share an input in the pass under way, 1 in an exact one; ``exact``:
    how many cached tokens, from the first on, come from exact passes.
    """

    context = 1 << 14
    stopped = staticmethod(bool)  # False
    sharing, _lp, _calibrates = 1, 1, False

    def reset(self) -> None:
        self.prefix, self.exact = Prefix(), 0

    def cut(self, length: int) -> None:
        self.prefix.cut(length)
        self.exact = min(self.exact, length)

    @contextmanager
    def drafting(self, lp: int, calibrate: bool):
        """As of Layered: in here passes are fuzzy; but the first, if they ``calibrate``, and one of
        whose text nothing is cached."""
        self._lp, self._calibrates = lp, calibrate
        try:
            yield
        finally:
            self._lp, self._calibrates = 1, False
            if calibrate:
                self.cut(self.exact)

    def _feed(self, text, last: int) -> None:
        if len(text) > self.context:
            raise SpeclibError(
                f"a text of {len(text)} tokens does not fit this toy's context of "
                f"{self.context}: ask for fewer tokens, or build it with more"
            )
        self._pass(text, last)

    def _pass(self, text, last: int) -> None:
        kept = self.prefix.keep(text, last)
        if self.stopped():
            self.cut(kept)
            raise Stopped
        self.sharing = self._lp if kept and not self._calibrates else 1
        self.exact, self._calibrates = (
            len(text) if self.sharing == 1 else self.exact,
            False,
        )
        self.prefix.move(text, kept)

    def tree(self, text, parents, sampler: Sampler) -> np.ndarray:
        """The rows of a Tree, as if of one pass; cached stay the text and the tree's stem."""
        self._pass(text, len(parents))
        self.cut(len(text) - len(parents) + stem(parents))
        with self._aside():
            return np.concatenate(
                [self.rows(t, 0, sampler) for t in paths(text, parents)]
            )

    def level(self, text, parents, new: int, sampler: Sampler) -> np.ndarray:
        """As of HFModel, as if of one pass; greedy rows are ``chances``."""
        with self._aside():
            rows = rows_path_by_path(self, text, parents, new, sampler)
        self.prefix.fed[:] = text[: len(text) - len(parents) + stem(parents)]
        self.prefix.count += new
        self.exact = len(self.prefix.fed) if self.sharing == 1 else self.exact
        return rows

    @contextmanager
    def _aside(self):
        """What is fed in here does not count; something stays cached where something is."""
        cached, exact, self.prefix = self.prefix, self.exact, Prefix()
        self.prefix.fed[:] = cached.fed[:1]
        try:
            yield
        finally:
            self.prefix, self.exact = cached, exact
