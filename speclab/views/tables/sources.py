"""Where a table's numbers come from, one line per file or machine."""

from __future__ import annotations

from collections.abc import Iterable

from speclab.papers.ledger import LedgerLine
from speclab.papers.table_result import TableResult

from .grid import lines_of_cells


def list_sources(
    result: TableResult, others: Iterable[LedgerLine] = ()
) -> dict[str, list[str]]:
    """Lines by kind: latency files and texts, or machines with the models they ran."""
    ledger_lines = lines_of_cells(result.table, result.lines)
    ledger_lines += lines_of_cells(result.table, others)

    # kind -> line -> models; dicts, since they keep the order
    models_of_lines: dict[str, dict[str, dict[str, None]]] = {}
    for ledger_line in ledger_lines:
        is_computed = "@" in ledger_line.setup and not ledger_line.source
        if ledger_line.value is None or is_computed:
            continue  # what is computed from other cells has their sources
        lines = models_of_lines.setdefault(ledger_line.kind, {})
        models = lines.setdefault(_describe_source(ledger_line), {})
        if "@" in ledger_line.setup:
            models[_models_of(ledger_line)] = None

    sources = {}
    for kind, lines in models_of_lines.items():
        sources[kind] = [_join(line, models) for line, models in lines.items()]
    return sources


def _describe_source(ledger_line: LedgerLine) -> str:
    """A file; or the machine and the day of what was timed."""
    _, at_sign, machine = ledger_line.setup.partition("@")
    if not at_sign:
        return ledger_line.source or ledger_line.setup
    return f"{machine}, {ledger_line.source.partition('T')[0]}"


def _models_of(ledger_line: LedgerLine) -> str:
    """The pair of models that was timed."""
    pair = ledger_line.setup.partition("@")[0]
    return f"{pair} (dilated)" if "dilated" in ledger_line.note else pair


def _join(line: str, models: Iterable[str]) -> str:
    names = ", ".join(models)
    return f"{line}: {names}" if names else line
