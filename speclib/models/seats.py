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
    from .batched import Feed, SharedNetwork

LOSSLESS = ("auto", "float32", "float64")


def build_seats(
    opened: OpenPair,
    role: Role,
    seats: int,
    dtype: str,
    *,
    dilated: bool,
    ask: Callable[[SharedNetwork, Feed], Any],
) -> list[Model]:
    """The models of ``seats`` requests in one process.

    ``ask(network, feed)`` gives the logits of a pass of the network that they share.
    Raises BadValue as ``check_seats`` does.
    """
    check_seats(opened, dtype)
    if opened.is_toy:
        return [opened.build(role, dtype) for _ in range(seats)]

    from .batched import SeatModel, SharedFixedRows, SharedNetwork
    from .fixed_rows import FixedRows

    model = opened.build(role, dtype, dilated=dilated)
    kind = SharedFixedRows if isinstance(model, FixedRows) else SharedNetwork
    network = kind(model, seats)
    return [SeatModel(network, seat, ask) for seat in range(seats)]


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
            f"dtype is {dtype!r}: in it a text's logits depend on the shape of a pass, "
            "which changes with the other requests. Give 'float32', or a pair with "
            "passes of one shape, as load_pair(name).with_fixed_rows(16)"
        )
    for role in ROLES:
        spec = opened.pair.model(role)
        is_spread = opened.ranks(role) > 1
        if spec.in_llamacpp or spec.head or spec.recorded or is_spread:
            raise BadValue(
                f"the {role} of pair {opened.pair.name!r} serves one request at a "
                "time: several need models in torch, each on one place, that are no "
                "EAGLE heads and whose passes are not recorded"
            )
