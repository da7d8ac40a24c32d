"""What an operation may ask of a model, and what a model does unless it can do better.

A model says which token follows a text. Its own are the rows after a text, and what
stays in its cache. Everything else has a default here, path by path or without effect,
so that nobody needs to ask what a model is able to do:

    graded               rows that say of every token how likely it is
    tree, level          one pass for a whole tree, or for its last level
    continued            several sequences, a token of each in one pass
    drafting             several layers that share one input (EasySpec's fuzzy passes)
    reading, features    a draft that goes on from its target's features (EAGLE)
    go_to_first, _last   several devices, of which one computes at a time
    wait_for_device      a device that computes on after the call returns

Knows no operation, no method and no clock.
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
    """Distributions [n, V] of the last ``logits`` [n, V] of a pass over ``text``.

    ``parents``: of the tree that the text ends with, as of ``Model.tree``; None: the
    text is a line.
    """

    def texts() -> Sequence[AnyText]:
        rows = len(logits)
        nodes = range(-1, rows - 2) if parents is None else parents
        return paths(text, nodes)[-rows:]

    return sampler(logits, texts)


class Stopped(Exception):
    """Raised by a model when ``stopped()`` says that its pass is not wanted."""


class Model(ABC):
    """What a device computes with.

    vocab: how many rows its distributions have.
    context: the longest text, in tokens.
    prefix: the tokens in its KV cache.
    run_number: of the last run that it served.

    ``stopped()`` is asked before each layer or pass; where it says yes, the model
    raises Stopped.
    """

    vocab: int
    context: int = 1 << 30
    prefix: Prefix
    run_number: int | None = None
    stopped: Callable[[], bool] = staticmethod(bool)  # bool() is False: never

    # -- what every model has of its own -----------------------------------------------
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
        """The probabilities [vocab] of what follows the last text, at temperature 1.

        Raises NotImplementedError, as here, where a model knows none.
        """
        raise NotImplementedError(f"{type(self).__name__} knows no probabilities")

    def graded(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """Probabilities [last + 1, vocab] at temperature 1, as of ``rows``.

        Here they are the same whatever the ``sampler`` of the run: only a toy
        writes by one script when it is greedy, and by another when it samples.
        """
        return self.rows(text, last, PLAIN)

    # -- trees and sequences -----------------------------------------------------------
    def tree(
        self, text: Sequence[int], parents: Sequence[int], sampler: Sampler
    ) -> Rows:
        """Scores a tree: rows [len(parents) + 1, vocab].

        text: the text, then the tokens of the tree's nodes.
        parents: for each node the number of the node that it follows; -1: the text.

        The rows follow the bare text and each node's path. Here one path is read after
        the other.
        """
        rows = [self.rows(path, 0, sampler) for path in paths(text, parents)]
        return np.concatenate(rows)

    def level(
        self, text: Sequence[int], parents: Sequence[int], new: int, sampler: Sampler
    ) -> Rows:
        """The draft's rows [new, vocab] after a tree's last ``new`` nodes.

        ``text`` and ``parents`` are as of ``tree``. Greedy rows rank nothing, so those
        are at temperature 1. Here one path is read after the other.
        """
        rows = []
        for path in paths(text, parents)[-new:]:
            row = self.rows(path, 0, sampler)[0]
            rows.append(self.chances() if sampler.greedy else row)
        return np.array(rows)

    def continued(
        self, text: AnyText, starts: Sequence[Tokens], n: int
    ) -> tuple[Tokens, ...]:
        """Each of ``starts`` continued greedily after ``text``, to ``n`` tokens.

        Here one sequence follows the other, the first one last: so that is the one
        which stays in the KV cache.
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
        """In here is one drafting operation, with up to ``lp`` layers in a group.

        calibrate: whether its first pass is exact.

        Raises SpeclibError where ``lp`` is above 1 and the model computes its layers
        one after the other, as here.
        """
        if lp > 1:
            raise SpeclibError(
                f"lp is {lp}, but this draft cannot compute several layers at "
                "once: take a Llama, Qwen2 or Qwen3 in torch, on one place or with "
                'spread = "layers"; or give lp=1, which is tree SD'
            )
        return nullcontext()

    # -- features ----------------------------------------------------------------------
    def features_fed(self) -> np.ndarray | None:
        """Those of the tokens that the last pass fed, [fed, width]; None has none.

        See ``core.features``.
        """
        return None

    def reading(
        self, text: AnyText, features: Features
    ) -> AbstractContextManager[None]:
        """In here is one drafting operation after ``text``, from the target's features.

        Here they are not used: only a head, such as EAGLE's, needs them.
        """
        return nullcontext()

    # -- devices -----------------------------------------------------------------------
    def go_to_first(self) -> None:
        """The first of several devices computes, with all that is cached."""

    def go_to_last(self) -> None:
        """The last of several devices computes, with all that is cached."""

    def wait_for_device(self) -> None:
        """Returns when the device has computed all that it was told."""
