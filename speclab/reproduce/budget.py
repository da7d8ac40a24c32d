"""A budget of time: how long ``make reproduce`` may take."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from math import ceil

from speclib.errors import BadValue

DEFAULT_MINUTES = 25.0
QUICK_MINUTES = 5.0
FULL_MINUTES = 60.0


@dataclass(frozen=True)
class Budget:
    """So many minutes from now on; None: as long as it takes."""

    minutes: float | None
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def of_minutes(cls, minutes: float | None) -> Budget:
        """The budget; raises BadValue if it is no time at all."""
        if minutes is not None and not 0 < minutes < float("inf"):
            raise BadValue(
                f"minutes is {minutes:g}: give a number of minutes above 0; "
                f"{QUICK_MINUTES:g} with QUICK=1 is the shortest that was tried"
            )
        return cls(minutes)

    def deadline(self, reserved: float) -> float | None:
        """When cells must stop, so that ``reserved`` seconds remain for the pages.

        It is on the clock of ``time.monotonic``.
        """
        if self.minutes is None:
            return None
        return self.started + 60 * self.minutes - reserved

    def check_least(self, seconds: float) -> None:
        """Raises BadValue if not even so many seconds, of the cheapest step, fit."""
        if self.minutes is not None and 60 * self.minutes < seconds:
            least = ceil(10 * seconds / 60) / 10  # rounded down it would be refused
            raise BadValue(
                f"minutes is {self.minutes:g}: the cheapest cell that is missing and "
                f"the pages of the reports take about {least:.1f} min here; give at "
                "least that"
            )

    def describe(self) -> str:
        """The budget, for people."""
        if self.minutes is None:
            return "there is no limit of time"
        return f"the budget is {self.minutes:g} min"

    def describe_elapsed(self) -> str:
        """How long ago the budget began, for people."""
        return f"{time.monotonic() - self.started:.0f} s"
