"""Where a table's numbers come from, one line per file or machine."""

from __future__ import annotations

from collections.abc import Iterable

from speclab.papers.ledger import LedgerRow
from speclab.papers.table_result import TableResult

from .grid import rows_of_cells


def list_sources(
    result: TableResult, others: Iterable[LedgerRow] = ()
) -> dict[str, list[str]]:
    """Lines by kind: latency files and texts, or machines with the models they ran."""
    rows = rows_of_cells(result.table, result.rows)
    rows += rows_of_cells(result.table, others)

    # kind -> line -> models; dicts, since they keep the order
    models_of_lines: dict[str, dict[str, dict[str, None]]] = {}
    for row in rows:
        if row.value is None:
            continue
        lines = models_of_lines.setdefault(row.kind, {})
        models = lines.setdefault(_describe_source(row), {})
        if "@" in row.setup:
            models[_models_of(row)] = None

    sources = {}
    for kind, lines in models_of_lines.items():
        sources[kind] = [_join(line, models) for line, models in lines.items()]
    return sources


def _describe_source(row: LedgerRow) -> str:
    """A file; or, of what was timed, machine, n and day as far as they are known."""
    _, at_sign, machine = row.setup.partition("@")
    if not at_sign:
        return row.source or row.setup
    day = " ".join(row.source.split()[:2])  # a mean of cells has none
    return ", ".join(part for part in (machine, f"n = {row.n}", day) if part)


def _models_of(row: LedgerRow) -> str:
    """The pair of models that was timed."""
    pair = row.setup.partition("@")[0]
    return f"{pair} (dilated)" if "dilated" in row.note else pair


def _join(line: str, models: Iterable[str]) -> str:
    names = ", ".join(models)
    return f"{line}: {names}" if names else line
