"""What a test reads from a Markdown page: parts between marks, and tables."""

from __future__ import annotations

import re

Row = dict[str, str]


def marked(page: str, name: str) -> str:
    """What stands between the marks called ``name``."""
    (part,) = re.findall(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", page, re.S)
    return part


def rows_of_tables(text: str) -> list[Row]:
    """The rows of all tables in a text, each as its cells by the column's name."""
    rows: list[Row] = []
    columns: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            columns = []
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not columns:
            columns = cells
        elif not set(line) <= set("|-: "):
            rows.append(dict(zip(columns, cells, strict=True)))
    return rows
