"""PEARL's paper, which most tests of this folder read."""

from __future__ import annotations

import pytest

from speclab.papers.load_papers import load_paper
from speclab.papers.paper_schema import Paper


@pytest.fixture(scope="package")
def pearl() -> Paper:
    return load_paper("pearl")
