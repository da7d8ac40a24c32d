"""Distributions that are still where they were computed, on another machine perhaps.

To test a drafted token takes two numbers, p(x) and q(x); to draw the target's own token
takes the token; what is likeliest is a token, too. Whole rows, of as many numbers as
the vocabulary has tokens, matter only after a rejection. So a far row has these few
facts with it, and is fetched when something else is asked of it.

It reads as the numpy array does that it stands for. Nobody has to ask which one it is.

Knows no device and no network: a ``Store`` fetches rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

Array = npt.NDArray[Any]


class RowFacts(NamedTuple):
    """What is said of a distribution [vocab] that is not sent.

    ``likeliest``: the first of its likeliest tokens. ``probabilities``: those of
    ``tokens``, of which a test may ask. ``target_token``: what the target's own coin
    draws from it at ``position`` of the text; both None where nobody draws from it.
    """

    vocab: int
    likeliest: int
    tokens: Array
    probabilities: Array
    position: int | None = None
    target_token: int | None = None


class Store(Protocol):
    """Where far rows are."""

    def fetch(self, references: Sequence[Any]) -> list[Array]:
        """The rows of several references, which are under way at the same time."""
        ...


class FarArray(NDArrayOperatorsMixin):
    """Stands for an array that is fetched when more than its facts is asked for."""

    @cached_property
    def whole(self) -> Array:
        """The array itself."""
        return self._fetch()

    def _fetch(self) -> Array:
        raise NotImplementedError

    @property
    def is_fetched(self) -> bool:
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
        fetch_all(inputs)
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
        where = "fetched" if self.is_fetched else "not fetched"
        return f"{type(self).__name__}(shape={self.shape}, {where})"


class FarRow(FarArray):
    """One distribution, [V]: its ``facts``, and its ``reference`` in a ``store``.

    ``coins``: those that drew the target's token.
    """

    def __init__(self, facts: RowFacts, coins: Any, store: Store, reference: Any):
        self.store = store
        self.reference = reference
        self._facts = facts
        self._coins = coins
        self._probabilities = dict(
            zip(facts.tokens.tolist(), facts.probabilities, strict=True)
        )

    def _fetch(self) -> Array:
        (row,) = self.store.fetch([self.reference])
        self.keep(row)
        return row

    def keep(self, row: Array) -> None:
        """Takes the row that was fetched."""
        self.whole = row
        self.reference = None  # nobody needs it in the store any more

    @property
    def shape(self) -> tuple[int, ...]:
        return (self._facts.vocab,)

    def __getitem__(self, key: Any) -> Any:
        is_token = isinstance(key, Integral) and not self.is_fetched
        if is_token and int(key) in self._probabilities:
            return self._probabilities[int(key)]
        return super().__getitem__(key)

    def argmax(self, axis: int = -1) -> int:
        """The likeliest token; ``axis``: there is only one."""
        if self.is_fetched:
            return int(self.whole.argmax(axis))
        return self._facts.likeliest

    def token_drawn_by(self, coins: Any, position: int) -> int | None:
        """What the target's own coin draws at ``position``; None where no fact says
        it."""
        facts = self._facts
        is_said = facts.position == position and self._coins == coins
        return facts.target_token if is_said and not self.is_fetched else None


class FarRows(FarArray):
    """Several distributions, [n, V], of which each is fetched by itself."""

    def __init__(self, rows: Sequence[FarRow], vocab: int):
        self._rows = rows
        self._vocab = vocab

    def _fetch(self) -> Array:
        fetch_all(self._rows)
        return np.array([row.whole for row in self._rows]).reshape(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self._rows), self._vocab)

    def __getitem__(self, key: Any) -> Any:
        if self.is_fetched:
            return self.whole[key]
        if isinstance(key, Integral):
            return self._rows[int(key)]
        if isinstance(key, slice):
            return FarRows(self._rows[key], self._vocab)
        if isinstance(key, tuple) and all(isinstance(i, Integral) for i in key):
            row, token = key
            return self._rows[int(row)][token]
        return self.whole[key]

    def argmax(self, axis: int | None = None) -> Any:
        """Along the vocabulary, each row's likeliest token."""
        if axis in (-1, 1):
            return np.array([row.argmax() for row in self._rows])
        return self.whole.argmax(axis)


def fetch_all(arrays: Iterable[Any]) -> None:
    """Fetches those of ``arrays`` that are far rows, of each store all at once."""
    rows_of_store: dict[int, list[FarRow]] = {}
    for row in arrays:
        if isinstance(row, FarRow) and not row.is_fetched:
            rows_of_store.setdefault(id(row.store), []).append(row)

    for rows in rows_of_store.values():
        fetched = rows[0].store.fetch([row.reference for row in rows])
        for row, whole in zip(rows, fetched, strict=True):
            row.keep(whole)


def _whole_of(array: Any) -> Any:
    """The array that a far one stands for; any other as it is."""
    return array.whole if isinstance(array, FarArray) else array
