"""Acceptance rates of virtual runs, each solved from one printed number.

Everything else in a virtual table is a prediction. The formulas inverted here come from
``speclab.theory``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict, PositiveInt, model_validator

from speclab.theory import closed_forms
from speclib.data.latency import load_latency
from speclib.errors import BadValue, SpeclibError

Cell = tuple[str, str, str]  # item, row and column
Lookup = Callable[
    [str, str, str], float | None
]  # a cell's printed number, if it has one


class Calibration(BaseModel):
    """The printed cell from which an acceptance rate is solved, and how.

    ``solve`` names the printed quantity, ``gamma`` its draft length, and ``latency``
    the clock. A quotient of two printed cells is ``cell`` over ``over``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    solve: Literal[
        "mat", "run-ratio", "run-tokens", "speedup", "one-sequence", "accepted-share"
    ]
    cell: Cell
    gamma: PositiveInt | Literal["best"]
    latency: str
    over: Cell | None = None

    @model_validator(mode="after")
    def _fits(self) -> Calibration:
        if self.gamma == "best" and self.solve != "speedup":
            raise ValueError(f"gamma is 'best': give a number to solve {self.solve!r}")
        if self.over is None and self.solve == "run-ratio":
            raise ValueError(
                "'run-ratio' is a quotient: give the divisor's cell as `over`"
            )
        return self

    def alpha(self, printed: Lookup, where: str) -> float:
        """The acceptance rate at which ``cell`` has its printed value.

        ``printed`` looks up a cell's number; ``where`` names the entry in errors.
        Raises BadValue if a cell is not printed or no rate gives its number.
        """
        value = _look_up(self.cell, printed, where)
        below = 1.0
        if self.over is not None:
            below = _look_up(self.over, printed, where)
        try:
            return self._solve(value, below)
        except (SpeclibError, ArithmeticError) as error:
            raise BadValue(f"{where}: {error}") from error

    def _solve(self, value: float, below: float) -> float:
        """The acceptance rate for a printed ``value``, or its quotient by ``below``."""
        latency = load_latency(self.latency)
        draft, target = latency.draft(1), latency.target(1)
        if self.solve == "speedup":
            return closed_forms.alpha_from_speedup(value, self.gamma, draft, target)

        gamma = int(self.gamma)
        if self.solve == "mat":
            return closed_forms.alpha_from_accepted(value, gamma)
        if self.solve == "accepted-share":
            return closed_forms.alpha_from_accepted(value * gamma, gamma)
        if self.solve == "run-tokens":
            return closed_forms.alpha_from_run_tokens(value)
        if self.solve == "run-ratio":
            return closed_forms.alpha_from_run_ratio(value / below, gamma)
        return closed_forms.alpha_from_duodecoding(value, gamma, draft, target)

    def role(self, item: str, row: str, column: str) -> str:
        """A printed cell's role in solving this rate, for its note; "" if it has none.

        The virtual number of such a cell predicts nothing: its printed number set the
        rate.
        """
        if (item, row, column) not in (self.cell, self.over):
            return ""
        if self.over is None:
            return "calibration"
        return "calibration (of the two cells' ratio only)"


def _look_up(cell: Cell | None, printed: Lookup, where: str) -> float:
    value = printed(*cell) if cell else None
    if value is None:
        raise BadValue(f"{where}: the cell {list(cell or ())} is not printed")
    return value
