"""How far a call may go: how many requests of each cell, and until when."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf

from .spec import Spec, first_part


@dataclass(frozen=True)
class Limits:
    """How far a call may go; without arguments, as far as every cell asks.

    requests   of each cell, at most; None: as many as its spec says. Of a virtual cell
               1 stands for its first part (see ``spec.first_part``), and more for all.
    deadline   on the clock of ``time.monotonic``; None: none. What is under way when
               it comes is finished, and nothing more is begun.
    end        on the same clock; None: none. What models are doing when it comes is
               given up at the next request, for it was not needed.
    """

    requests: int | None = None
    deadline: float | None = None
    end: float | None = None

    def requests_of(self, spec: Spec) -> int:
        """How many requests of this cell may be done."""
        if self.requests is None:
            return spec.requests
        if spec.kind == "virtual":
            return first_part(spec) if self.requests == 1 else spec.requests
        return min(self.requests, spec.requests)

    @property
    def is_over(self) -> bool:
        """Whether the deadline has come."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    @property
    def seconds_left(self) -> float:
        """Until the deadline; infinity where there is none."""
        return inf if self.deadline is None else self.deadline - time.monotonic()

    @property
    def must_end(self) -> bool:
        """Whether what is under way is to be given up."""
        return self.end is not None and time.monotonic() >= self.end


NO_LIMITS = Limits()
