"""What tests of views share: a few of PEARL's tables with their virtual numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from speclab.experiment.spec import QUICK
from speclab.papers.fill import fill_all
from speclab.papers.load_papers import load_paper
from speclib import paths

SHORT = replace(QUICK, virtual_tokens=512)
ITEMS = (
    "figure-2b",
    "table-1",
    "table-4",
    "table-5",
    "table-9",
    "table-15",
    "theorem-2",
)


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """Tables of every form with what is known of them, by item; cells are short."""
    cache_before = paths.CACHE
    paths.CACHE = tmp_path_factory.mktemp("cache")
    try:
        yield fill_all(load_paper("pearl"), SHORT, ITEMS, kinds=("virtual",))
    finally:
        paths.CACHE = cache_before
