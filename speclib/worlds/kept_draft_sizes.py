"""Chosen draft sizes on disk: all runs of a pair on one machine have the same draft.

A file lies in ``paths.CACHE/draft_sizes``, beside the cost ratios (``kept_ratios``),
and depends on the same: the two models with their weights and the shapes of the pair's
file, where they are, the number format, the machine and the libraries; and on the c
that is wanted. The code that computes is not part of its name but written into it.
After a change of code c is measured again with the size that was chosen before, and
where c is still the wanted one, the size stays, and with it the key of all cells that
were measured with it.

A busy machine chooses nothing: there the size that was chosen last counts, or the
file's. Whatever a process has decided, it goes by for as long as it runs: so all that
it measures of a pair is of one draft.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from speclib import machine
from speclib.data.latency import load_latency
from speclib.data.pairs import Pair, load_pair
from speclib.errors import BadValue
from speclib.models import fingerprint
from speclib.models.dtypes import TORCH_NAMES
from speclib.models.open_pair import OpenPair, open_pair

from . import kept_files
from .cost_ratio import CostRatio
from .draft_size import DraftSize, Shape
from .kept_ratios import machine_is_busy

FOLDER = "draft_sizes"
SETTING = (
    "SPECLIB_FITTED"  # in the environment; "0": all pairs keep their files' shapes
)

_decided: dict[str, DraftSize | None] = {}  # in this process, by what it is kept under

Environment = tuple[tuple[str, str], ...]  # as of ``machine.environment``
Find = Callable[[OpenPair, str, Shape], DraftSize | None]


# -- what is asked for -----------------------------------------------------------------
def reference_of(opened: OpenPair) -> OpenPair | None:
    """The pair whose measured c decides: ``opened``, or the one that it names.

    None where a pair keeps its file's shapes. Raises BadValue for a named pair that is
    not fitted itself, or has other shapes.
    """
    pair = opened.pair
    if not pair.fitted or os.environ.get(SETTING) == "0":
        return None
    if pair.fitted is True:
        return opened

    other = load_pair(str(pair.fitted))
    if other.fitted is not True:
        raise BadValue(
            f"pair {pair.name!r} is fitted as {other.name!r}, which is not fitted "
            "itself: give its file `fitted = true`, or leave out fitted here"
        )
    if other.draft.shape != pair.draft.shape or other.target.shape != pair.target.shape:
        raise BadValue(
            f"pair {pair.name!r} is fitted as {other.name!r}, whose models have other "
            "shapes: give both files the same, or leave out fitted here"
        )
    return open_pair(other)


def wanted_c(pair: Pair) -> float:
    """The c that a fitted pair is to have."""
    return load_latency(str(pair.latency)).c


# -- what was chosen -------------------------------------------------------------------
def kept(
    pair: Pair, dtype: str, environment: Environment | None = None
) -> DraftSize | None:
    """The size that was chosen last for a pair's draft; None: it has its file's shape.

    ``environment``: of the machine that chose; None: this one's.
    """
    reference = reference_of(open_pair(pair))
    if reference is None:
        return None
    key = key_of(reference, dtype, environment)
    if key is None or key in _decided:
        return _decided.get(str(key))
    return _size_in(kept_files.load(FOLDER, key))


def is_known(pair: Pair, dtype: str) -> bool:
    """Whether nothing has to be tried to know the size of a pair's draft."""
    reference = reference_of(open_pair(pair))
    if reference is None:
        return True
    key = key_of(reference, dtype)
    return (
        key is None or key in _decided or _is_of_this_code(kept_files.load(FOLDER, key))
    )


def load_or_find(opened: OpenPair, dtype: str, find: Find) -> DraftSize | None:
    """The size that is stored for a fitted pair; else one that is found now.

    ``find``: finds one; it is told the pair, the dtype and the shape to begin with.
    """
    key = key_of(opened, dtype)
    if key is None:
        return None
    if key in _decided:
        return _decided[key]
    stored = kept_files.load(FOLDER, key)
    size = _size_in(stored)
    if size is None or not _is_of_this_code(stored):
        start = Shape(*shape_of_file(opened.pair)) if size is None else size.shape
        size = _find_while_quiet(key, lambda: find(opened, dtype, start)) or size
    if size is not None and not size.is_reached:
        _warn(opened.pair, size)
    _decided[key] = size
    return size


def shape_of_file(pair: Pair) -> tuple[int, int, int, int]:
    """The shape that the pair's file gives the draft."""
    assert pair.draft.shape is not None  # a fitted pair has one
    return pair.draft.shape


def _find_while_quiet(
    key: str, find: Callable[[], DraftSize | None]
) -> DraftSize | None:
    """A size that is found now, and stored; None on a busy machine."""
    if machine_is_busy():
        return None
    size = find()
    if size is None or machine_is_busy():
        return None

    # Another process may have stored its own in the meantime.
    earlier = kept_files.load(FOLDER, key)
    if _is_of_this_code(earlier):
        return _size_in(earlier)
    kept_files.save(FOLDER, key, {**asdict(size), "code": fingerprint.of_code()})
    return size


def _warn(pair: Pair, size: DraftSize) -> None:
    warnings.warn(
        f"pair {pair.name!r}: c = t_target / t_draft should be {size.wanted:.3g}, as "
        f"in {pair.latency!r}, and {size.reached} is the nearest that was found on "
        f"this machine, with a {size}. Another shape in the pair's file may come "
        "nearer; pair.unfitted keeps the file's",
        stacklevel=2,
    )


# -- files -----------------------------------------------------------------------------
def key_of(
    opened: OpenPair, dtype: str, environment: Environment | None = None
) -> str | None:
    """What the size of a fitted pair's draft is stored under.

    None where it is not known which weights a model has: then nothing is stored.
    """
    pair = opened.pair
    weights = [fingerprint.of_weights(spec) for spec in (pair.target, pair.draft)]
    if None in weights:
        return None
    parts = (
        pair.target.model_dump_json(),
        pair.draft.model_dump_json(),
        weights,
        opened.place.model_dump_json(),
        TORCH_NAMES[dtype],
        wanted_c(pair),
        machine.environment() if environment is None else environment,
    )
    return kept_files.key_of(parts)


def texts() -> dict[str, str]:
    """All that is stored here, to be taken in on another machine."""
    return kept_files.texts(FOLDER)


def take_in(of_another_machine: dict[str, str]) -> None:
    """Stores what ``texts`` gave on another machine, as far as it is whole."""
    for key, text in of_another_machine.items():
        stored = kept_files.parse(key, text)
        if stored is not None:
            kept_files.save(FOLDER, key, stored)


def _is_of_this_code(stored: dict[str, Any] | None) -> bool:
    return stored is not None and stored.get("code") == fingerprint.of_code()


def _size_in(stored: dict[str, Any] | None) -> DraftSize | None:
    """The size that a file says; None where it is of another version."""
    if stored is None:
        return None
    try:
        return DraftSize(
            shape=Shape(*stored["shape"]),
            wanted=stored["wanted"],
            reached=CostRatio(**stored["reached"]),
            tries=stored["tries"],
        )
    except (KeyError, TypeError):
        return None
