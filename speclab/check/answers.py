"""Converts what a rule returns to tokens, or explains why that is impossible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set, Sized
from itertools import islice
from operator import index
from typing import Any

import numpy as np

from speclab.check.calls import MOST_YIELDED, Failed, as_written
from speclib.core.sampling import Tokens
from speclib.errors import BadCall

NOTHING_GIVEN = "Your function returns nothing. Does it end with a return?"


def token_in(given: Any, vocab: int) -> int:
    """``given`` as a token. Raises Failed unless it is one of ``vocab`` tokens."""
    if given is None:
        raise Failed(NOTHING_GIVEN)
    try:
        token = whole_number(given)
    except BadCall as error:  # a coin
        raise Failed(f"Your function returns no token: {error}") from None
    except Exception:  # a user's class may raise anything
        raise Failed(
            f"Your function returns {as_written(given)}: return one token."
        ) from None
    if not 0 <= token < vocab:
        raise Failed(
            f"Your function returns {as_written(token)}, which is no token here."
        )
    return token


def committed_in(given: Any, drafted: Tokens, most: int, vocab: int) -> Tokens:
    """``given`` as committed tokens. Raises Failed if it contains anything else.

    ``most``: the most tokens that one target pass can decide.
    """
    if given is None:
        raise Failed(NOTHING_GIVEN)
    try:
        _require_few(given, drafted, most)  # before looking at each value
        tokens = tuple(whole_number(token) for token in _in_order(given))
    except BadCall as error:  # a coin among them
        raise Failed(f"Your function returns no tokens: {error}") from None
    except Failed:
        raise
    except Exception:  # a user's class may raise anything
        raise Failed(
            f"Your function returns {as_written(given)}: return a list of tokens, "
            f"which are whole numbers, such as {list(drafted)}."
        ) from None
    if not tokens:
        raise Failed(
            f"For the drafts {list(drafted)} your function commits no token: every "
            "pass decides at least one."
        )
    _require_few(tokens, drafted, most)
    for token in tokens:
        if not 0 <= token < vocab:
            raise Failed(
                f"Your function commits {as_written(token)}, which is no token here."
            )
    return tokens


def _in_order(given: Any) -> Iterable[Any]:
    """The values in order. Raises TypeError for sets, dicts and strings."""
    if isinstance(given, Set | Mapping | str | bytes):
        raise TypeError
    return islice(given, MOST_YIELDED)


def _require_few(given: Any, drafted: Tokens, most: int) -> None:
    """Raises Failed for more values than one pass can decide."""
    if isinstance(given, Sized) and len(given) > most:
        raise Failed(
            f"For the drafts {list(drafted)} your function commits {len(given)} "
            f"tokens: one pass decides {most} at most."
        )


def whole_number(value: Any) -> int:
    """A whole number of any type, 2.0 included. Raises TypeError for anything else.

    True and False are not tokens: they say whether a draft was accepted.
    """
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return int(value)
    return index(value)
