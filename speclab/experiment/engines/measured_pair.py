"""A pair as its cells measure it on a machine: with the draft that was chosen there."""

from __future__ import annotations

from speclab.experiment.environments import Environment
from speclib.data.pairs import Pair, load_pair
from speclib.models.open_pair import open_pair
from speclib.worlds import kept_draft_sizes


def pair_to_measure(
    name: str, dtype: str, environment: Environment | None = None
) -> Pair:
    """A pair as its cells measure it: the draft has the size that was chosen for it.

    ``environment``: of the machine that chose it; None: this one's.
    """
    pair = load_pair(name)
    size = kept_draft_sizes.kept(pair, dtype, environment)
    return pair.unfitted if size is None else pair.with_draft_shape(size.shape)


def describe_draft_size(name: str, dtype: str) -> str:
    """In words, the draft of a pair that is fitted to this machine; else nothing."""
    pair = load_pair(name)
    size = kept_draft_sizes.kept(pair, dtype)
    if size is not None:
        return str(size)
    if kept_draft_sizes.reference_of(open_pair(pair)) is None:
        return ""
    return "draft as in the pair's file: the machine was too busy to choose its size"
