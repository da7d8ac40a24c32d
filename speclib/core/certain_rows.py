"""Distributions that are each certain of one token, without a number for every token.

A GPU gives only the tokens of greedy rows. To write a row with one 1 and 150,000 zeros,
and to look for the 1 again, takes longer than to bring the token from the GPU.
So these rows know their tokens, and become arrays only where somebody calculates with
them.

They read as the numpy arrays do that they stand for. Know no device.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

Array = npt.NDArray[Any]


class StandInArray(NDArrayOperatorsMixin):
    """Stands for an array that is made when more is asked than what is known of it."""

    @cached_property
    def whole(self) -> Array:
        """The array itself."""
        return self._make()

    def _make(self) -> Array:
        raise NotImplementedError

    @property
    def is_made(self) -> bool:
        """Whether it is an array by now: it may have been written to, too."""
        return "whole" in self.__dict__

    @property
    def shape(self) -> tuple[int, ...]:
        """As of the array."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> Array:
        return np.array(self.whole, dtype=dtype, copy=copy)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Any:
        if "out" in options:
            options["out"] = tuple(_whole_of(array) for array in options["out"])
        return getattr(ufunc, method)(*map(_whole_of, inputs), **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # not what numpy looks for before it calls __array__
            raise AttributeError(name)
        return getattr(self.whole, name)

    def __getitem__(self, key: Any) -> Any:
        return self.whole[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.whole[key] = value

    def __repr__(self) -> str:
        where = "made" if self.is_made else "not made"
        return f"{type(self).__name__}(shape={self.shape}, {where})"


class CertainRow(StandInArray):
    """One distribution, [vocab], that is certain of ``token``."""

    def __init__(self, token: int, vocab: int):
        self.token = token
        self.vocab = vocab

    def _make(self) -> Array:
        row: Array = one_hot((self.token,), self.vocab)[0]
        return row

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.vocab,)

    def __getitem__(self, key: Any) -> Any:
        is_token = isinstance(key, Integral) and 0 <= int(key) < self.vocab
        if is_token and not self.is_made:
            return np.float32(key == self.token)
        return super().__getitem__(key)

    def argmax(self, axis: int = -1) -> int:
        """The token; ``axis``: there is only one."""
        if self.is_made:
            return int(self.whole.argmax(axis))
        return self.token


class CertainRows(StandInArray):
    """Several distributions, [n, vocab], each certain of one of ``tokens``."""

    def __init__(self, tokens: Sequence[int], vocab: int):
        self.tokens = tuple(tokens)
        self.vocab = vocab

    def _make(self) -> Array:
        return one_hot(self.tokens, self.vocab)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.tokens), self.vocab)

    def __getitem__(self, key: Any) -> Any:
        if not self.is_made and isinstance(key, Integral):
            return CertainRow(self.tokens[int(key)], self.vocab)
        if not self.is_made and isinstance(key, slice):
            return CertainRows(self.tokens[key], self.vocab)
        return super().__getitem__(key)

    def argmax(self, axis: int | None = None) -> Any:
        """Along the vocabulary, each row's token."""
        if axis in (-1, 1) and not self.is_made:
            return np.array(self.tokens, int)
        return self.whole.argmax(axis)


def _whole_of(array: Any) -> Any:
    """The array that another one stands for; any other as it is."""
    return array.whole if isinstance(array, StandInArray) else array


def one_hot(
    tokens: Sequence[int] | npt.NDArray[np.integer[Any]], vocab: int
) -> npt.NDArray[np.floating[Any]]:
    """Rows [n, vocab] with all mass on each of ``tokens``."""
    rows = np.zeros((len(tokens), vocab), np.float32)
    rows[np.arange(len(tokens)), list(tokens)] = 1
    return rows


def stacked(rows: Sequence[Any], vocab: int) -> Any:
    """Distributions [vocab] as rows [n, vocab], without the numbers where all are
    certain."""
    tokens = []
    for row in rows:
        if not isinstance(row, CertainRow) or row.is_made:
            return np.stack(rows)
        tokens.append(row.token)
    return CertainRows(tokens, vocab) if tokens else np.empty((0, vocab))
