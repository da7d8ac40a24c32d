"""What an operation may ask of a model, with defaults for everything optional.

A model predicts which token follows a text. It must return the rows after a text, and
manage its cache. Everything else has a default here, which reads path by path or has no
effect, so callers need not check what a model can do:

    graded               rows with a probability for every token
    tree, level          one pass for a whole tree, or for its last level
    continued            several sequences, one token of each per pass
    drafting             several layers that share one input (EasySpec's fuzzy passes)
    reading, features    a draft that continues from the target's features (EAGLE)
    go_to_first, _last   several devices that compute one at a time
    wait_for_device      a device that is still computing after the call returns

This module uses no operation, no method and no clock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from speclib.core.candidate_tree import paths
from speclib.core.features import Features
from speclib.core.kv_prefix import Prefix
from speclib.core.sampling import Row, Rows, Sampler, Tokens
from speclib.core.text import AnyText
from speclib.errors import SpeclibError

GREEDY = Sampler()
PLAIN = Sampler(temperature=1.0)


def shaped(
    logits: Rows,
    sampler: Sampler,
    text: Sequence[int],
    parents: Sequence[int] | None = None,
) -> Rows:
    """Distributions [n, V] from the last ``logits`` [n, V] of a pass over ``text``.

    ``parents``: the parents in the tree at the end of the text (see ``Model.tree``);
    None: there is no tree.
    """

    def texts() -> Sequence[AnyText]:
        rows = len(logits)
        nodes = range(-1, rows - 2) if parents is None else parents
        return paths(text, nodes)[-rows:]

    return sampler(logits, texts)


class Stopped(Exception):
    """Raised by a model if ``stopped()`` returns True: its pass is no longer wanted."""


class Model(ABC):
    """What a device computes with.

    vocab: the size of its distributions.
    context: the longest text, in tokens.
    prefix: the tokens in its KV cache.
    run_number: the number of the last run that it served.

    The model calls ``stopped()`` before each layer or pass, and raises Stopped if it
    returns True.
    """

    vocab: int
    context: int = 1 << 30
    prefix: Prefix
    run_number: int | None = None
    stopped: Callable[[], bool] = staticmethod(bool)  # bool() is False: never

    # -- what every model must provide -------------------------------------------------
    @abstractmethod
    def rows(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """Distributions [last + 1, vocab] after text[:-last] ... text."""

    @abstractmethod
    def cut(self, length: int) -> None:
        """Keeps the first ``length`` tokens of the KV cache."""

    @abstractmethod
    def reset(self) -> None:
        """Empties the KV cache."""

    def chances(self) -> Row:
        """The probabilities [vocab] after the last text, at temperature 1.

        Raises NotImplementedError by default: a model need not provide them.
        """
        raise NotImplementedError(f"{type(self).__name__} has no probabilities")

    def graded(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """Probabilities [last + 1, vocab] at temperature 1, for the texts of ``rows``.

        By default they do not depend on the run's ``sampler``. Only a toy's do: it has
        one script when it is greedy, and another when it samples.
        """
        return self.rows(text, last, PLAIN)

    # -- trees and sequences -----------------------------------------------------------
    def tree(
        self, text: Sequence[int], parents: Sequence[int], sampler: Sampler
    ) -> Rows:
        """Scores a tree: rows [len(parents) + 1, vocab].

        text: the text, then the tokens of the tree's nodes.
        parents: for each node the number of the node that it follows; -1: the text.

        The first row follows the bare text, and each other row a node's path. By
        default the paths are read one by one.
        """
        rows = [self.rows(path, 0, sampler) for path in paths(text, parents)]
        return np.concatenate(rows)

    def level(
        self, text: Sequence[int], parents: Sequence[int], new: int, sampler: Sampler
    ) -> Rows:
        """The draft's rows [new, vocab] after a tree's last ``new`` nodes.

        ``text`` and ``parents``: see ``tree``. Greedy rows do not rank the tokens, so
        with a greedy ``sampler`` the rows are at temperature 1. By default the paths
        are read one by one.
        """
        rows = []
        for path in paths(text, parents)[-new:]:
            row = self.rows(path, 0, sampler)[0]
            rows.append(self.chances() if sampler.greedy else row)
        return np.array(rows)

    def continued(
        self, text: AnyText, starts: Sequence[Tokens], n: int
    ) -> tuple[Tokens, ...]:
        """Continues each of ``starts`` greedily after ``text``, up to ``n`` tokens.

        By default the sequences are continued one by one, and the first sequence last,
        so that it stays in the KV cache.
        """
        sequences = []
        for tokens in reversed(starts):
            while len(tokens) < n:
                following: Row = self.rows(text + tokens, 0, GREEDY)[0]
                tokens += (int(following.argmax()),)
            sequences.append(tokens)
        return tuple(reversed(sequences))

    # -- layers that share an input ----------------------------------------------------
    def drafting(self, lp: int, calibrate: bool) -> AbstractContextManager[None]:
        """A context for one drafting operation, with up to ``lp`` layers in a group.

        calibrate: whether its first pass is exact.

        By default a model computes its layers one after another, and raises
        SpeclibError if ``lp`` is above 1.
        """
        if lp > 1:
            raise SpeclibError(
                f"lp is {lp}, but this draft cannot compute several layers at "
                "once: use a Llama, Qwen2 or Qwen3 in torch, on one place or with "
                'spread = "layers"; or give lp=1, which is tree SD'
            )
        return nullcontext()

    # -- features ----------------------------------------------------------------------
    def features_fed(self) -> np.ndarray | None:
        """The features [fed, width] of the tokens fed to the last pass, or None.

        See ``core.features``.
        """
        return None

    def reading(
        self, text: AnyText, features: Features
    ) -> AbstractContextManager[None]:
        """A context for one drafting operation after ``text`` from target features.

        By default they are ignored: only a head, such as EAGLE's, needs them.
        """
        return nullcontext()

    # -- devices -----------------------------------------------------------------------
    def go_to_first(self) -> None:
        """Moves to the first of several devices, with the KV cache."""

    def go_to_last(self) -> None:
        """Moves to the last of several devices, with the KV cache."""

    def wait_for_device(self) -> None:
        """Waits until the device has computed everything that was launched on it."""
