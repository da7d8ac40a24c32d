"""Items of the audit: their evidence by sort, and their arithmetic beside a hand's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from speclab.audit.item_schema import Arithmetic, AuditItem
from speclab.audit.printed import work_out
from speclab.audit.runs import run_experiment

ByHand = Mapping[str, Sequence[Mapping[str, float]]]  # by item, of each arithmetic


def pieces(item: AuditItem, sort: type) -> list[Any]:
    """The item's evidence of one sort."""
    return [piece for piece in item.evidence if isinstance(piece, sort)]


def values_of_run(name: str, requests: int = 1, **settings: Any) -> dict[str, float]:
    """The quantities that an experiment of the audit gives, without their ranges."""
    quantities = run_experiment(name, requests, settings)
    return {name: quantity.value for name, quantity in quantities.items()}


def assert_arithmetic_by_hand(item: AuditItem, paper: str, by_hand: ByHand) -> None:
    """Each arithmetic of the item must give the quantities that a hand gives."""
    expected = by_hand[item.id]
    worked = [work_out(piece, paper) for piece in pieces(item, Arithmetic)]
    assert len(worked) == len(expected)
    for arithmetic, quantities in zip(worked, expected, strict=True):
        for name, value in quantities.items():
            assert arithmetic.quantities[name].value == pytest.approx(value), name


def assert_each_arithmetic_is_by_hand(
    items: Mapping[str, AuditItem], by_hand: ByHand
) -> None:
    """No item with an arithmetic may lack numbers by hand."""
    with_arithmetic = {name for name in items if pieces(items[name], Arithmetic)}
    assert with_arithmetic == set(by_hand)
