"""PEARL's paper, and some of its tables filled."""

from __future__ import annotations

import pytest
from helpers.tables import fill_virtually

from speclib.papers.load import load_paper
from speclib.papers.schema import Paper
from speclib.papers.table_result import TableResult

FILLED_ITEMS = (
    "table-4",
    "table-7",
    "table-9",
    "table-11",
    "table-18",
    "figure-2a",
    "figure-2b",
    "figure-3",
    "theorem-2",
)


@pytest.fixture(scope="package")
def pearl() -> Paper:
    return load_paper("pearl")


@pytest.fixture(scope="package")
def pearl_results(pearl, tmp_path_factory) -> dict[str, TableResult]:
    """Some tables filled virtually, with few tokens, in a cache of their own."""
    cache = tmp_path_factory.mktemp("cache")
    return fill_virtually(pearl, cache, items=FILLED_ITEMS)
