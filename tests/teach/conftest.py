"""No test of the lessons writes into a student's own record."""

import pytest

from speclib import paths


@pytest.fixture(autouse=True)
def own_record(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "CACHE", tmp_path)
