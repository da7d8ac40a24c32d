"""c = t_target / t_draft, measured in a second: for tests of something else."""

from __future__ import annotations

import pytest

from speclib.worlds import cost_ratio


def measure_c_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets trials end after a second, however little c is settled then.

    Where it is not settled they go on for ten. Ask for ``own_cache`` as well, or later
    runs on this machine may go by the c of a test.
    """
    monkeypatch.setattr(cost_ratio, "MOST_SECONDS", 1.0)
