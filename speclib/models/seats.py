"""Models of several requests at a time: of each seat one, over the same weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from speclib.core.settings import Role
from speclib.errors import BadValue
from speclib.operations.model import Model

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

    Raises BadValue for a model that is not torch's on one place, and for a dtype in
    which a text would depend on those beside it.
    """
    if dtype not in LOSSLESS:
        raise BadValue(
            f"dtype is {dtype!r}: with several requests at a time, passes have other "
            "shapes than with one, and in that dtype other logits: give 'float32'"
        )
    if opened.is_toy:
        return [opened.build(role, dtype) for _ in range(seats)]

    from .hf import HFModel
    from .parallel.layer_parallel import Layered
    from .side_by_side import SeatModel, SideBySide

    model = opened.build(role, dtype, dilated=dilated)
    if type(model) not in (HFModel, Layered):
        raise BadValue(
            f"the {role} of pair {opened.pair.name!r} is a {type(model).__name__}: "
            "several requests at a time need models in torch, each on one place"
        )
    network = SideBySide(model, seats)

    def ask_network(feed: Feed) -> Any:
        return ask(network, feed)

    return [SeatModel(network, seat, ask_network) for seat in range(seats)]
