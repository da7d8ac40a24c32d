"""One-hot distributions that store only their token, not a number for every token.

For greedy decoding a GPU returns only tokens. Writing a row with one 1 and 150,000
zeros, and finding the 1 again, takes longer than copying the token from the GPU. So
these rows store only their tokens, and become arrays when a calculation needs one.

They behave like the numpy arrays that they represent. This module uses no device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from .sampling import certain


class CertainRows(NDArrayOperatorsMixin):
    """One-hot distributions [n, vocab], one for each of ``tokens`` [n].

    For a single token it is one distribution, [vocab].
    """

    def __init__(self, tokens: npt.ArrayLike, vocab: int):
        self.tokens = np.array(tokens, int)
        self.vocab = vocab

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.tokens.shape, self.vocab)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        is_one_row = self.tokens.ndim == 0
        if is_one_row and isinstance(key, int):
            return np.float32(self.tokens == range(self.vocab)[key])
        if not is_one_row and isinstance(key, int | slice):
            return CertainRows(self.tokens[key], self.vocab)
        return np.asarray(self)[key]

    def argmax(self, axis: int = -1) -> np.ndarray:
        """The tokens: ``axis`` is the vocabulary."""
        return self.tokens

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray:
        rows = certain(self.tokens.ravel(), self.vocab)
        return rows.reshape(self.shape).astype(dtype or rows.dtype)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Any:
        arrays = [np.asarray(array) for array in inputs]
        return getattr(ufunc, method)(*arrays, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # numpy looks for these before it calls __array__
            raise AttributeError(name)
        return getattr(np.asarray(self), name)


def stacked(rows: Sequence[Any], vocab: int) -> Any:
    """Stacks distributions [vocab] as rows [n, vocab]; CertainRows if they all are."""
    if not rows:
        return np.empty((0, vocab))
    if all(isinstance(row, CertainRows) for row in rows):
        return CertainRows([row.tokens for row in rows], vocab)
    return np.stack(rows)
