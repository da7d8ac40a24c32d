"""c = t_target / t_draft, measured within a second: for tests of something else."""

from __future__ import annotations

import pytest

from speclib.worlds import cost_ratio


def measure_c_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets trials go on for about a second, whether or not round(c) is settled then.

    Without this they go on for at least a second where it is settled, and else for five
    to ten. Ask for ``own_cache`` as well, or later runs on this
    machine may go by the c of a test.
    """
    monkeypatch.setattr(cost_ratio, "MOST_SECONDS", 1.0)
