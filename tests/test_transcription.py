"""PEARL's transcribed numbers agree with the paper's text and with each other, but for the errata.

Needs no engine: the cells are judged by arithmetic on the print. With SPECLIB_PAPERS_DIR set to a
folder that has the paper's text (pearl.txt), every cell is also read from it a second time.
"""
from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[1] / "data"


def load(folder):
    return {path.stem: tomllib.loads(path.read_text("utf-8"))
            for path in sorted((DATA / folder).glob("*.toml"))}


LATENCY, TABLES = load("latency/pearl"), load("papers/pearl")
PAPER, CALIBRATION = TABLES.pop("paper"), TABLES.pop("calibration")
CELLS = {(item, r, c): v for item, table in TABLES.items() for r, c, v in table["cells"]}
BESIDE = {(item, r, c): v for item, table in TABLES.items()
          for r, c, v in table.get("beside", {}).get("cells", [])}
# One quantity printed twice: cell = of / by; by is a model, for its speed in table 10, or a cell.
# "~": to 1 %, because plain decoding's speed is known on code only; else to the printed digits.
IDENTITIES = """
table-1|PEARL (ours)|CodeLlama 7&34B = table-5|3|CodeLlama 7&34 / Codellama-34B
table-1|PEARL (ours)|CodeLlama 7&70B = table-5|5|CodeLlama 7&70 / Codellama-70B
table-1|PEARL (ours)|DeepSeek 6.7&33B = table-5|3|DeepSeek 6.7&33 / Deepseek-33B
table-1|PEARL (ours)|Llama2 7&70B = table-6|5|HumanEval / Llama-2-70B
table-1|PEARL (ours)|Llama3.1 8&70B = table-17|Llama 3.1|Humaneval / Llama-3.1-70B
table-1|Speculative Decoding|CodeLlama 7&34B = table-14|6|codellama 7&34B / Codellama-34B
table-1|Speculative Decoding|CodeLlama 7&70B = table-14|10|codellama 7&70B / Codellama-70B
table-1|Speculative Decoding|DeepSeek 1.3&33B = table-14|8|deepseek 1.3&33B / Deepseek-33B
table-1|Speculative Decoding|DeepSeek 6.7&33B = table-14|6|deepseek 6.7&33B / Deepseek-33B
table-2|PEARL (ours)|English (GSM8K) = table-6|5|GSM8K / Llama-2-70B ~
table-2|PEARL (ours)|Avg. = table-17|Llama 2|MGSM / Llama-2-70B ~
table-3|PEARL (ours)|* = table-8|Llama 2 7b&70b|* / Llama-2-70B ~
table-4|PEARL|CodeLlama 7B&34B = table-1|PEARL (ours)|CodeLlama 7&34B
table-4|PEARL|CodeLlama 7B&70B = table-1|PEARL (ours)|CodeLlama 7&70B
table-4|PEARL|DeepSeek 1.3B&33B = table-1|PEARL (ours)|DeepSeek 1.3&33B
table-4|PEARL|Llama 2 7B&70B = table-6|5|GSM8K / Llama-2-70B
table-6|5|MT-Bench = table-8|Llama 2 7b&70b|Avg.
table-12|Ours|English (GSM8K) = table-17|Llama 3.1|GSM8K / Llama-3.1-70B ~
table-12|Ours|Avg. = table-17|Llama 3.1|MGSM / Llama-3.1-70B ~
table-13|Llama 2 7B&70B / Ours|* = table-8|Llama 2 7b&70b|* / Llama-2-70B ~
table-13|Llama 3.1 8B&70B / Ours|* = table-8|Llama 3.1 8b&70b|* / Llama-3.1-70B ~
table-17|Llama 2|Humaneval = table-6|5|HumanEval
table-17|Llama 2|GSM8K = table-6|5|GSM8K
table-17|Llama 2|MT-bench = table-8|Llama 2 7b&70b|Avg.
table-17|Llama 2 (RC)|MT-bench = table-8|Llama 2 7b&70b (RC)|Avg.
table-17|Llama 3.1|MT-bench = table-8|Llama 3.1 8b&70b|Avg.
table-17|Llama 3.1 (RC)|MT-bench = table-8|Llama 3.1 8b&70b (RC)|Avg.
table-18|llama 2 (RC)|english (GSM8K) = table-17|Llama 2 (RC)|GSM8K / table-17|Llama 2|GSM8K
table-18|llama 3.1 (RC)|english (GSM8K) = table-17|Llama 3.1 (RC)|GSM8K / table-17|Llama 3.1|GSM8K
table-18|llama 2 (RC)|average = table-17|Llama 2 (RC)|MGSM / table-17|Llama 2|MGSM
table-18|llama 3.1 (RC)|average = table-17|Llama 3.1 (RC)|MGSM / table-17|Llama 3.1|MGSM
blog-figure-1|up to, over Auto Regressive|HumanEval = table-1|PEARL (ours)|CodeLlama 7&70B
blog-figure-1|up to, over Auto Regressive|GSM8K = table-12|Ours|English (GSM8K)
blog-figure-1|up to, over Auto Regressive|MT-bench = table-13|Llama 3.1 8B&70B / Ours|Avg.
blog-figure-1|up to, over Auto Regressive|MGSM = table-12|Ours|Avg.
blog-figure-1|abstract, over Auto Regressive|any = table-1|PEARL (ours)|CodeLlama 7&70B
blog-figure-1|abstract, over Speculative Decoding|any = \
table-1|PEARL (ours)|DeepSeek 1.3&33B / table-1|Speculative Decoding|DeepSeek 1.3&33B
"""


def labels(item, axis):
    return list(dict.fromkeys(key[axis] for key in CELLS if key[0] == item))


def setting(item, row, column, name):
    table = TABLES[item]
    return (table | table.get("settings", {}) | table.get("column", {}).get(column, {})
            | table.get("row", {}).get(row, {})).get(name)


def half(key):
    """Half a unit of the cell's last printed digit; counts are exact."""
    decimals = setting(*key, "decimals")
    return 0.5 * 10.0**-decimals if decimals else 0.0


def named(item, cells):
    """The cells an erratum names, "*" spelled out."""
    return {(item, r, c) for row, column in cells
            for r in (labels(item, 1) if row == "*" else [row])
            for c in (labels(item, 2) if column == "*" else [column])}


def errata(kind):
    return {key: entry for item, table in TABLES.items() for entry in table.get("errata", [])
            if entry["kind"] == kind for key in named(item, entry["cells"])}


def quotient(of, by=None):
    """of / by, and how far rounding in print can have moved it."""
    value = CELLS[of] / (CELLS[by] if by else 1)
    return value, value * (half(of) / CELLS[of] + (half(by) / CELLS[by] if by else 0))


def recomputed():
    """(cell, printed, value, slack): averages, drops, ratios and shares from their own tables."""
    for item in ["table-2", "table-3", "table-8", "table-12", "table-13", "table-18"]:
        average = labels(item, 2)[-1]
        for row in labels(item, 1):
            key, others = (item, row, average), [CELLS[item, row, c] for c in labels(item, 2)[:-1]]
            if "retain" not in row:
                yield key, CELLS[key], sum(others) / len(others), 2 * half(key)
    for key, printed in BESIDE.items():
        if key[0] == "table-4":
            full = CELLS["table-4", "PEARL", key[2]]
            yield key, printed, full - CELLS[key], 3 * half(key)
        else:
            base = (key[0], key[1].removesuffix(" (RC)"), key[2].replace("PEARL", "SD"))
            value, slack = quotient(key, base)
            yield key, printed, value, slack + 0.005
    for key in [key for key in CELLS if "retain" in key[1]]:
        pair = re.search(r"\((.*)\)", key[1])[1]
        value, slack = quotient((key[0], f"{pair} (RC)", key[2]), (key[0], pair, key[2]))
        yield key, CELLS[key], 100 * value, 100 * slack + half(key)


def identities():
    """(cell, value, slack) of every line of IDENTITIES."""
    for line in IDENTITIES.strip().splitlines():
        rough, (cell, source) = line.endswith("~"), line.rstrip(" ~").split(" = ")
        parts = re.match(r"(.*?\|.*\|.*?)(?: / (.*))?$", source).groups()
        by = parts[1] if not parts[1] or "|" in parts[1] else f"table-10|{parts[1]}|speed (tok/s)"
        for column in labels(cell.split("|")[0], 2) if "|*" in cell else [""]:
            key, of, over = [tuple(part.replace("*", column).split("|")) if part else None
                             for part in (cell, parts[0], by)]
            value, slack = quotient(of, over)
            yield key, value, slack + half(key) + 0.01 * value * rough


def test_arithmetic_fails_exactly_where_the_errata_say():
    found = {key: round(value, 4) for key, printed, value, slack in recomputed()
             if abs(value - printed) > slack + 1e-9}
    assert found == {key: entry["computed"] for key, entry in errata("arithmetic").items()}


def test_tables_contradict_each_other_exactly_where_the_errata_say():
    found = {key: round(value, 3) for key, value, slack in identities()
             if abs(value - CELLS[key]) > slack + 1e-9}
    assert found == {key: entry["computed"] for key, entry in errata("conflict").items()}
    for key, entry in errata("conflict").items():
        value, _ = quotient(tuple(entry["of"]), tuple(entry["by"]) if "by" in entry else None)
        assert round(value, 3) == entry["computed"], key
