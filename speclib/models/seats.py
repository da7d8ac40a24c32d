"""Models of several requests at a time: of each seat one, over the same weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from speclib.core.settings import ROLES, Role
from speclib.errors import BadValue
from speclib.operations.model import Model

from .dtypes import check_dtype
from .open_pair import OpenPair

if TYPE_CHECKING:
    from .side_by_side import Feed, SideBySide

LOSSLESS = ("auto", "float32", "float64")


def build_seats(
    opened: OpenPair,
    role: Role,
    seats: int,
    dtype: str,
    *,
    dilated: bool,
    ask: Callable[[SideBySide, Feed], Any],
) -> list[Model]:
    """The models of ``seats`` requests in one process.

    ``ask(network, feed)`` gives the logits of a pass of the network that they share.
    Raises BadValue as ``check_seats`` does.
    """
    check_seats(opened, dtype)
    if opened.is_toy:
        return [opened.build(role, dtype) for _ in range(seats)]

    from .fixed_rows import FixedRows
    from .one_shape import OneShape
    from .side_by_side import SeatModel, SideBySide

    model = opened.build(role, dtype, dilated=dilated)
    network: SideBySide
    if isinstance(model, FixedRows):
        network = OneShape(model, seats)
    else:
        network = SideBySide(model, seats)

    def ask_network(feed: Feed) -> Any:
        return ask(network, feed)

    return [SeatModel(network, seat, ask_network) for seat in range(seats)]


def check_seats(opened: OpenPair, dtype: str) -> None:
    """Raises BadValue for a pair that cannot serve several requests at a time.

    That is one with a model that is not torch's on one place, and a dtype in which a
    text would depend on those beside it, unless the target's passes have one shape.
    """
    check_dtype(dtype)
    if opened.is_toy:
        return
    if dtype not in LOSSLESS and opened.pair.target.fixed_rows is None:
        raise BadValue(
            f"dtype is {dtype!r}: in it a text's logits hang on the shape of a pass, "
            "which changes with the requests beside it. Give 'float32', or a pair with "
            "passes of one shape, as load_pair(name).with_fixed_rows(16)"
        )
    for role in ROLES:
        reason = _why_not_seated(opened, role)
        if reason:
            raise BadValue(
                f"the {role} of pair {opened.pair.name!r} {reason}: several requests "
                "at a time need models in torch, each on one place, whose passes are "
                "not recorded"
            )


def _why_not_seated(opened: OpenPair, role: Role) -> str:
    """Why the model of ``role`` cannot serve several requests; "" where it can."""
    spec = opened.pair.model(role)
    if spec.in_llamacpp:
        return "is computed by llama.cpp"
    if spec.head:
        return "is an EAGLE head"
    if opened.ranks(role) > 1:
        return f"is spread over {opened.ranks(role)} places"
    if spec.recorded:
        return "has recorded passes"
    return ""
