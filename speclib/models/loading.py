"""The input of every loader: which model to build, where, and in which dtype.

Importing this module does not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from speclib.errors import SpeclibError, unknown_name

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import torch

    from .checkpoint import Checkpoint

THIS_MACHINE = "127.0.0.1"

TORCH_NAMES = {
    "auto": "float32",
    "float32": "float32",
    "float64": "float64",
    "bfloat16": "bfloat16",
    "float16": "float16",
}  # the name that a caller gives -> torch's name


def check_dtype(dtype: str) -> None:
    """Raises SpeclibError for an unknown dtype."""
    if dtype not in TORCH_NAMES:
        raise unknown_name(f"unknown dtype {dtype!r}", dtype, TORCH_NAMES)


def torch_dtype(dtype: str) -> torch.dtype:
    """torch's dtype with this name; raises SpeclibError if it is unknown."""
    import torch

    check_dtype(dtype)
    found: torch.dtype = getattr(torch, TORCH_NAMES[dtype])
    return found


class RankLost(SpeclibError):
    """One of a device's processes ended, or hangs; the message names the rank.

    Any other failure of a rank is an error in its computation.
    """


class Rank(NamedTuple):
    """One of the ``size`` processes that together run a device's model.

    The first has ``pipes`` to the others. No rank waits more than ``patience`` seconds
    for another.
    """

    number: int
    size: int
    patience: float
    pipes: tuple[Connection, ...] = ()

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"rank {self.number} of {self.size}"


@dataclass(frozen=True)
class Loading:
    """A model to build in torch.

    checkpoint  its files
    vocab       the length of its distributions: the size of the target's vocabulary
    dtype       its weights' dtype, a key of ``TORCH_NAMES``
    places      such as "core:0", "cpu" or "cuda:0"
    packed      whether ``packed_linear`` replaces transformers' linear layers
    rank        which part this process builds; None: the whole model
    """

    checkpoint: Checkpoint
    vocab: int
    dtype: str = "auto"
    places: tuple[str, ...] = ("cpu",)
    packed: bool = True
    rank: Rank | None = None

    @property
    def torch_dtype(self) -> torch.dtype:
        """Its dtype; raises SpeclibError if it is unknown."""
        return torch_dtype(self.dtype)

    @property
    def gpus(self) -> list[str]:
        """This process's GPUs, such as "cuda:0"; empty on the CPU."""
        places = self.places
        if self.rank is not None:
            places = places[self.rank.number : self.rank.number + 1]
        return [place for place in places if place.startswith("cuda")]

    @property
    def device(self) -> torch.device:
        """This process's first GPU, or the CPU."""
        import torch

        return torch.device(self.gpus[0] if self.gpus else "cpu")
