"""PEARL's paper, and some of its tables filled."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.tables import SMALL, fill_virtually

from speclab.papers.load_papers import load_paper
from speclab.papers.paper_schema import Paper
from speclab.papers.table_result import TableResult

# Tests of these items compare statistics, which need 2,048 tokens; tests of the others
# hold however few tokens there are.
LONG_ITEMS = ("table-4", "table-7", "table-9", "table-11", "figure-3", "theorem-2")
BRIEF_ITEMS = ("table-18", "figure-2a", "figure-2b")
BRIEF = replace(SMALL, virtual_tokens=256)


@pytest.fixture(scope="package")
def pearl() -> Paper:
    return load_paper("pearl")


@pytest.fixture(scope="package")
def pearl_results(pearl, tmp_path_factory) -> dict[str, TableResult]:
    """Some tables filled virtually, with few tokens, in a cache of their own."""
    cache = tmp_path_factory.mktemp("cache")
    long = fill_virtually(pearl, cache, items=LONG_ITEMS)
    brief = fill_virtually(pearl, cache, BRIEF, items=BRIEF_ITEMS)
    return long | brief
