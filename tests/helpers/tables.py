"""Rows made by hand for table cells, and lookups in the tables that they fill."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from speclab.papers import virtual_numbers
from speclab.papers.fill import Known, fill_all
from speclab.papers.ledger import LedgerLine, VerdictLine
from speclab.papers.load_papers import load_paper
from speclab.papers.table_result import TableResult
from speclab.runs.rows import Row, Rows, key_of
from speclab.runs.spec import Spec
from speclab.runs.values import Value, ValuesStep
from speclab.traces.counts import Counts


# -- rows ------------------------------------------------------------------------------
def counts(seconds: float, **changes: Any) -> Counts:
    """Returns counts: nine tokens, four target passes, the first token after 0.5 s."""
    run = Counts(
        requests=1,
        tokens=9,
        first_tokens=1,
        seconds=seconds,
        ttft=0.5,
        rounds=4,
        drafted=8,
        accepted=6,
        rejected=1,
        draft_runs=8,
        target_runs=4,
        draft_seconds=1.0,
        target_seconds=1.0,
        operations=100,
    )
    return replace(run, **changes)


def rows_of(
    spec: Spec,
    seconds: tuple[float, ...] = (2.0, 2.5),
    plain: tuple[float, ...] = (4.5, 4.5),
    **changes: Any,
) -> list[Row]:
    """Returns a cell's and its baseline's runs in turn, one prompt per ``seconds``.

    changes: fields of the rows, and counts of the cell's own runs.
    """
    of_stats = {k: changes.pop(k) for k in [*changes] if hasattr(Counts, k)}
    rows = []
    for prompt, (own, base) in enumerate(zip(seconds, plain, strict=True)):
        for turn, each in enumerate((spec.baseline, spec)):
            stats = counts(own, **of_stats) if turn else counts(base)
            row = Row(
                machine="here",
                key=key_of(each),
                group=f"2026-01-02 {key_of(each).task} {prompt}",
                prompt=prompt,
                turn=turn,
                gamma=7 if turn else None,
                how="",
                c=3.0,
                draft="torch",
                stats=stats,
                others=0.0,
                differs=None,
                date="2026-01-02T03:04:05",
                commit="abc1234",
            )
            rows.append(replace(row, **changes))
    return rows


def value_of(
    asked: ValuesStep, at: str, n: int, number: float, **changes: str
) -> Value:
    """Returns a requested value of the n-th text or repeat."""
    settings = " ".join(f"{name}={value}" for name, value in asked.settings)
    named = {"what": asked.what, "pair": asked.pair, "settings": settings}
    where = {"machine": "here", "date": "2026-01-02", "commit": "abc1234", **changes}
    return Value(**named, at=at, n=n, value=number, **where)


# -- committed reports -----------------------------------------------------------------
@cache
def committed(paper: str) -> dict[str, TableResult]:
    """Returns a paper's tables with the committed virtual numbers, without rows."""
    known = Known(Rows([]), virtual=virtual_numbers.read())
    return fill_all(load_paper(paper), known, kinds=("virtual",))


def assert_filled_as_the_paper_says(paper: str) -> None:
    """Asserts that no number is missing, and that [fill] names exactly the items with
    numbers.
    """
    results = committed(paper)
    assert {item: r.left_out for item, r in results.items() if r.left_out} == {}
    with_virtual = {item for item, r in results.items() if "virtual" in r.kinds}
    assert with_virtual == set(load_paper(paper).facts["fill"]["virtual"])


# -- lines and verdicts ----------------------------------------------------------------
def lines_of(result: TableResult, kind: str, **fields: Any) -> list[LedgerLine]:
    """Returns the lines of a kind with these values in these columns."""
    wanted = {"kind": kind, **fields}
    return [line for line in result.lines if wanted.items() <= line._asdict().items()]


def verdicts_of(result: TableResult, kind: str) -> dict[str, VerdictLine]:
    """Returns the verdicts on a table's claims, by claim."""
    return {row.claim: row for row in result.claims if row.kind == kind}


def read_ledger(path: Path) -> list[LedgerLine]:
    """Returns the lines of a ledger, with numbers parsed."""
    lines = []
    with open(path, newline="", encoding="utf-8") as file:
        for texts in csv.DictReader(file, strict=True):
            values: dict[str, Any] = dict(texts)
            for name in ("value", "low", "high"):
                values[name] = float(texts[name]) if texts[name] else None
            values["n"] = int(texts["n"]) if texts["n"] else None
            lines.append(LedgerLine(**values))
    return lines
