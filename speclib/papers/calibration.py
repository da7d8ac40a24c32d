"""One printed quantity per pair, from which virtual runs take their acceptance rate.

Everything else that a virtual table shows is prediction. The inverses are ``theory``'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict

from speclib.data.latency import load_latency
from speclib.errors import SpeclibError
from speclib.theory import closed_forms as theory

Cell = tuple[str, str, str]


class Calibration(BaseModel):
    """Which printed cell an acceptance rate is solved from, and how (``calibration.toml``)."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    solve: Literal["mat", "run-ratio", "speedup", "one-sequence", "accepted-share"]
    cell: Cell
    gamma: int | Literal["best"]
    latency: str
    over: Cell | None = None

    def alpha(
        self, printed: Callable[[str, str, str], float | None], where: str
    ) -> float:
        """The acceptance rate at which ``cell`` comes out; ``printed`` looks a cell up."""
        value, latency = (
            self._print(self.cell, printed, where),
            load_latency(self.latency),
        )
        if self.solve == "mat":
            return theory.alpha_from_accepted(value, self.gamma)
        if self.solve == "accepted-share":
            return theory.alpha_from_accepted(value * self.gamma, self.gamma)
        if self.solve == "run-ratio":
            over = self._print(self.over, printed, where)
            return theory.alpha_from_run_ratio(value / over, self.gamma)
        costs = latency.draft(1), latency.target(1)
        if self.solve == "one-sequence":
            return theory.alpha_from_duodecoding(value, self.gamma, *costs)
        return theory.alpha_from_speedup(value, self.gamma, *costs)

    def _print(self, cell: Cell | None, printed, where: str) -> float:
        value = printed(*cell) if cell else None
        if value is None:
            raise SpeclibError(f"{where}: the cell {list(cell or ())} is not printed")
        return value

    def role(self, item: str, row: str, column: str) -> str:
        """ "calibration" if a printed cell set this rate, so that no virtual number predicts it."""
        if (item, row, column) not in (self.cell, self.over):
            return ""
        return (
            "calibration"
            if self.over is None
            else "calibration (of the two cells' ratio only)"
        )
