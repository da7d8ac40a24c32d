"""What a loader is told: which model to build, where, and in which numbers.

Every loader takes one ``Loading``. Importing this module imports no torch.
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
}  # what a caller may ask for -> torch's name of it


def check_dtype(dtype: str) -> None:
    """Raises SpeclibError for a number format that is not known."""
    if dtype not in TORCH_NAMES:
        raise unknown_name(f"unknown dtype {dtype!r}", dtype, TORCH_NAMES)


def torch_dtype(dtype: str) -> torch.dtype:
    """torch's dtype of this name; raises SpeclibError if it is not known."""
    import torch

    check_dtype(dtype)
    found: torch.dtype = getattr(torch, TORCH_NAMES[dtype])
    return found


class RankLost(SpeclibError):
    """One of a device's processes ended, or hangs; its message names the rank.

    What else goes wrong on a rank is an error of what it computes.
    """


class Rank(NamedTuple):
    """One of the ``size`` processes that compute a device's model together.

    The first has ``pipes`` to the others. All wait ``patience`` seconds for one that is
    late.
    """

    number: int
    size: int
    patience: float
    pipes: tuple[Connection, ...] = ()

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"rank {self.number} of {self.size}"


@dataclass(frozen=True)
class Loading:
    """A model that is to be built in torch.

    checkpoint  its files
    vocab       how many rows its distributions have: those of the pair's target
    dtype       of its weights, a key of ``TORCH_NAMES``
    places      such as "core:0", "cpu" or "cuda:0"
    packed      linear layers as ``packed_linear`` makes them, not as transformers
                leaves them
    rank        this process among those of the places; None: it builds the whole model
    """

    checkpoint: Checkpoint
    vocab: int
    dtype: str = "auto"
    places: tuple[str, ...] = ("cpu",)
    packed: bool = True
    rank: Rank | None = None

    @property
    def torch_dtype(self) -> torch.dtype:
        """Its dtype; raises SpeclibError if it is not known."""
        return torch_dtype(self.dtype)

    @property
    def gpus(self) -> list[str]:
        """The GPUs of this process, such as "cuda:0"; empty on the CPU."""
        places = self.places
        if self.rank is not None:
            places = places[self.rank.number : self.rank.number + 1]
        return [place for place in places if place.startswith("cuda")]

    @property
    def device(self) -> torch.device:
        """The first GPU of this process, or the CPU."""
        import torch

        return torch.device(self.gpus[0] if self.gpus else "cpu")
