"""What one place holds of a model. Knows no model: only numbers of bytes."""

from __future__ import annotations

from dataclasses import dataclass

NOWHERE = "nowhere"  # the place of what the GPUs named have no memory for


@dataclass(frozen=True)
class Part:
    """What one place holds of one device's model, in bytes.

    device   draft, target, target-2, ...
    place    core:N, cpu, cuda:N, or NOWHERE
    weights  its parameters
    cache    keys and values of a text of a stated length
    """

    device: str
    place: str
    weights: int
    cache: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.cache

    @property
    def memory(self) -> str:
        """Whose memory that is: all cores share the CPU's."""
        return "cpu" if self.place.startswith("core") else self.place
