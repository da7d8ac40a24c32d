"""PEARL's transcribed numbers agree with its text and each other, except for errata.

Needs no engine: the cells are judged by arithmetic on the print.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, product
from statistics import fmean
from typing import Any, NamedTuple

import pytest
from helpers.printed import (
    Cell,
    column_labels,
    load_folder,
    numbers_in_brackets,
    printed_cells,
    row_labels,
    text_of,
)

LATENCY = load_folder("latency/pearl")
TABLES = load_folder("papers/pearl")
TABLES.pop("paper")
CALIBRATION = TABLES.pop("calibration")
AUDIT = TABLES.pop("audit")

CELLS = printed_cells(TABLES)
IN_BRACKETS = numbers_in_brackets(TABLES)

# Tokens per second of plain decoding, by model.
SPEED = {cell[1]: value for cell, value in CELLS.items() if cell[2] == "speed (tok/s)"}


# -- reading the tables ----------------------------------------------------------------
def setting(item: str, row: str | None, column: str | None, name: str) -> Any:
    """A setting of a cell: its row's, or else its column's, or else the table's."""
    table = TABLES[item]
    of_row, of_column = table.get("row", {}), table.get("column", {})
    every = (of_row.get(row, {}), of_column.get(column, {}), table.get("settings", {}))
    return next((each[name] for each in (*every, table) if name in each), None)


def half_a_digit(cell: Cell) -> float:
    """Half a unit of the cell's last printed digit; counts are exact."""
    decimals = setting(*cell, "decimals")
    return 0.5 * 10.0**-decimals if decimals else 0.0


def errata_of_kind(kind: str, item: str | None = None) -> dict[Cell, dict[str, Any]]:
    """Each cell that the errata of a kind name, with "*" expanded, and its entry."""
    return {
        cell: entry
        for cell in CELLS
        if item in (None, cell[0])
        for entry in TABLES[cell[0]].get("errata", [])
        if entry["kind"] == kind and names_cell(entry, cell)
    }


def names_cell(entry: dict[str, Any], cell: Cell) -> bool:
    _, row, column = cell
    return any(r in (row, "*") and c in (column, "*") for r, c in entry["cells"])


class Quotient(NamedTuple):
    """A quotient of printed numbers, and its largest rounding error."""

    value: float
    slack: float


def quotient(of: Cell, by: Cell | None = None) -> Quotient:
    """of / by; without ``by`` a copy, which has no rounding error."""
    if not by:
        return Quotient(CELLS[of], 0.0)
    value = CELLS[of] / CELLS[by]
    relative_slack = half_a_digit(of) / CELLS[of] + half_a_digit(by) / CELLS[by]
    return Quotient(value, value * relative_slack)


# -- tables that contradict themselves -------------------------------------------------
class Recomputed(NamedTuple):
    """A printed number and its value computed from other cells of its table."""

    cell: Cell
    printed: float
    value: float
    slack: float


def averages() -> Iterator[Recomputed]:
    """The last column of these tables is the mean of the others."""
    for item in ("table-2", "table-3", "table-8", "table-12", "table-13", "table-18"):
        *columns, average = column_labels(TABLES[item])
        for row in row_labels(TABLES[item]):
            cell = item, row, average
            mean = fmean(CELLS[item, row, column] for column in columns)
            if "retain" not in row:
                yield Recomputed(cell, CELLS[cell], mean, 2 * half_a_digit(cell))


def gains_in_brackets() -> Iterator[Recomputed]:
    """Numbers in brackets: the cell over its baseline, in Table 4 what PEARL loses.

    The baseline is the SD column, or the row without "(RC)".
    """
    for cell, printed in IN_BRACKETS.items():
        item, row, column = cell
        if item == "table-4":
            drop = CELLS[item, "PEARL", column] - CELLS[item, row, column]
            yield Recomputed(cell, printed, drop, 0.01 + 0.005)
        else:
            own_row = row.removesuffix(" (RC)")
            baseline = item, own_row, column.replace("PEARL", "SD")
            value, slack = quotient(cell, baseline)
            yield Recomputed(cell, printed, value, slack + 0.005)


def retained_performance() -> Iterator[Recomputed]:
    """Rows "performance retain (pair)" are percentages of the pair's own row."""
    for cell, printed in CELLS.items():
        item, row, column = cell
        if "retain" not in row:
            continue
        pair = row.removeprefix("performance retain (").rstrip(")")
        of, by = (item, f"{pair} (RC)", column), (item, pair, column)
        value, slack = quotient(of, by)
        yield Recomputed(cell, printed, 100 * value, 100 * slack + 0.005)


def test_arithmetic_fails_exactly_where_the_errata_say():
    numbers = chain(averages(), gains_in_brackets(), retained_performance())
    wrong = {
        each.cell: round(each.value, 4)
        for each in numbers
        if abs(each.value - each.printed) > each.slack + 1e-9
    }
    in_errata = errata_of_kind("arithmetic").items()
    assert wrong == {cell: entry["computed"] for cell, entry in in_errata}


# -- tables that contradict each other -------------------------------------------------
def at_column(reference: list[str], column: str) -> Cell:
    """A cell of the audit, with "*" replaced by a column."""
    return tuple(column if part == "*" else part for part in reference)


def test_tables_contradict_each_other_exactly_where_the_errata_say():
    wrong = {}
    for entry in AUDIT["same"]:
        for column in column_labels(TABLES[entry["cell"][0]]):
            cell = at_column(entry["cell"], column)
            of = at_column(entry["of"], column)
            by = at_column(entry.get("by", []), column)
            value, slack = quotient(of, by)
            slack += entry.get("within", 0) * value
            if by:
                slack += half_a_digit(cell)
            if abs(value - CELLS[cell]) > slack + 1e-9:
                wrong[cell] = (of, by, round(value, 3))

    in_errata = {}
    for cell, entry in errata_of_kind("conflict").items():
        of, by = tuple(entry["of"]), tuple(entry.get("by", ()))
        in_errata[cell] = (of, by, entry["computed"])
    assert wrong == in_errata


def test_what_else_the_errata_say():
    # Table 12 repeats Table 2.
    for row, same in (("Speculative Decoding",) * 2, ("PEARL (ours)", "Ours")):
        for column in column_labels(TABLES["table-2"]):
            assert CELLS["table-2", row, column] == CELLS["table-12", same, column]

    # Speeds above what the printed times of a step allow.
    step_seconds = []
    for pair in column_labels(TABLES["table-15"])[1:]:
        parts = [part for part in row_labels(TABLES["table-15"]) if part != "draft"]
        step_seconds.append(sum(CELLS["table-15", part, pair] for part in parts))
    codellama, deepseek = step_seconds
    limits = {
        ("table-5", "3", "CodeLlama 7&34"): round(3 / codellama, 2),
        ("table-1", "PEARL (ours)", "DeepSeek 1.3&33B"): round(
            4 / deepseek / SPEED["Deepseek-33B"], 3
        ),
        # By Table 11's passes: 164 texts, each at most four tokens beyond its 1,024.
        ("table-1", "PEARL (ours)", "CodeLlama 7&70B"): round(164 * 1028 / 39674, 3),
    }
    in_errata = {c: e["computed"] for c, e in errata_of_kind("ceiling").items()}
    assert limits == {c: limit for c, limit in in_errata.items() if limit < CELLS[c]}

    # Table 17 loses more than its caption says.
    on_shared = [c for c in CELLS if c[0] == "table-17" and c[1].endswith("(RC)")]
    apart = {c: (c[0], c[1].removesuffix(" (RC)"), c[2]) for c in on_shared}
    below_caption = {c for c in on_shared if quotient(c, apart[c]).value < 0.95}
    assert set(errata_of_kind("prose", "table-17")) == below_caption


# -- how the paper counts --------------------------------------------------------------
def alpha_of_accepted(accepted: float, gamma: int) -> float:
    """The rate, to four digits, at which ``accepted`` of gamma drafts are accepted."""

    def distance(alpha: float) -> float:
        return abs(sum(alpha**i for i in range(1, gamma + 1)) - accepted)

    return min((n / 10000 for n in range(5000, 10000)), key=distance)


@pytest.mark.parametrize(
    "name", ["codellama-7-34", "codellama-7-70", "deepseek-1.3-33", "deepseek-6.7-33"]
)
def test_table_7_counts_no_bonus_and_table_11_ran_every_prompt_to_1024_tokens(name):
    table_7_columns = column_labels(TABLES["table-7"])
    table_14_columns = column_labels(TABLES["table-14"])
    gamma, times = CALIBRATION[name]["gamma"], LATENCY[name]
    cell = tuple(CALIBRATION[name]["cell"])
    table_14_column = table_14_columns[table_7_columns.index(cell[2])]

    # Without a bonus, a round's tokens exceed the mean by less than one.
    seconds = gamma / times["draft"]["printed"] + 1 / times["target"]["printed"]
    rate = CELLS["table-14", str(gamma), table_14_column]
    accepted = CELLS[cell]
    assert accepted < rate * seconds < accepted + 1

    # Table 11's passes give the same acceptance rate, if all outputs were that long.
    rows = row_labels(TABLES["table-11"])
    (table_11_row,) = (
        row for row in rows if setting("table-11", row, None, "alpha") == name
    )
    passes = CELLS["table-11", table_11_row, "Target Model (SD)"]
    tokens_per_pass = 164 * 1024 / passes
    table_11_gamma = setting("table-11", table_11_row, None, "gamma")
    from_passes = alpha_of_accepted(tokens_per_pass - 1, table_11_gamma)
    from_table_7 = alpha_of_accepted(accepted, gamma)
    assert from_table_7 == pytest.approx(from_passes, abs=0.006)


# -- printed steps ---------------------------------------------------------------------
@pytest.mark.parametrize("item", ["table-9", "figure-3"])
def test_steps_follow_the_rule_of_pearl(item):
    block: list[str] = []
    output: list[str] = []
    for row, step in zip(row_labels(TABLES[item]), TABLES[item]["steps"], strict=True):
        assert step["block"] == block
        assert step["mode"] == ("post-verify" if block else "pre-verify")

        # The last row that the target returns tests the new draft's first token.
        tested = step["block"][1:] + step["draft"][:1]
        accepted = step["accepted"]
        replacement = [step["instead"]] if "instead" in step else []
        assert tested[: len(accepted)] == accepted
        assert bool(replacement) == (tested != accepted)
        if replacement:
            assert step["rejected"] == tested[len(accepted)]

        assert step["committed"] == accepted + replacement
        assert CELLS[item, row, "accepted"] == len(accepted)
        assert CELLS[item, row, "committed"] == len(accepted + replacement)
        output += step["committed"]
        block = [] if replacement else step["draft"]
    assert output == TABLES[item]["output"]


# -- names -----------------------------------------------------------------------------


def test_names_refer_to_something_and_latencies_are_table_10():
    for times in LATENCY.values():
        for side in (times["draft"], times["target"]):
            assert SPEED[side["model"]] == side["printed"]
            seconds = pytest.approx(1 / side["printed"], rel=1e-12)
            assert side["forward"] == [[1, seconds]]

    for item, table in TABLES.items():
        for entry in table.get("errata", []):
            for row, column in entry["cells"]:
                assert (row, column) != ("*", "*")
                assert row == "*" or row in row_labels(TABLES[item])
                assert column == "*" or column in column_labels(TABLES[item])
                if "*" not in (row, column):
                    assert (item, row, column) in CELLS

    for entry in CALIBRATION.values():
        assert tuple(entry["cell"]) in CELLS
        assert tuple(entry.get("over", entry["cell"])) in CELLS


def test_a_printed_c_equals_the_clocks():
    compared = 0
    for item, table in TABLES.items():
        for row, column in product(table.get("row", [""]), table.get("column", [""])):
            printed_c = setting(item, row, column, "printed_c")
            if printed_c:
                name = setting(item, row, column, "latency").removeprefix("pearl/")
                times = LATENCY[name]
                c = times["draft"]["printed"] / times["target"]["printed"]
                assert printed_c == round(c), (item, row, column)
                compared += 1
    assert compared > 20


# -- the paper's text, read a second time ----------------------------------------------
TEXT_ITEMS = [f"table-{n}" for n in range(1, 19) if n != 9]


def read_table(item: str) -> dict[tuple[str, str], str]:
    """(row, column) -> raw text, from the lines with tabs under a table's caption."""
    text = text_of("pearl").replace("GSMBK", "GSM8K")
    number = item.removeprefix("table-")
    caption = rf"^Table {number}:.*\n\n((?:.*\t.*(?:\n|$))+)"
    table = re.search(caption, text, re.M)[1]
    head, *body = [line.split("\t") for line in table.splitlines()]
    if item == "table-14":
        return read_table_14(head, body)
    if item == "table-4":
        head, *body = body  # two lines of column labels
    if item == "table-13":
        head = head[1:]
        body = join_row_labels(body)
    if item == "table-8":  # two rows of one name
        body[2][0] = f"{body[2][0]} ({body[0][0]})"
        body[5][0] = f"{body[5][0]} ({body[3][0]})"

    cells = {}
    for label, *raws in body:
        row = re.sub(r" \([^()]*, \d{4}\)", "", label)  # without a citation
        for column, raw in zip(head[1:], raws, strict=True):
            column_label = column.split(" ($c")[0]
            cells[row, column_label] = raw.strip()
    return cells


def read_table_14(head: list[str], body: list[list[str]]) -> dict[tuple[str, str], str]:
    """Table 14 prints the row's label inside the cell: "gamma = 4" and so on."""
    return {
        (re.search(r"= (\d+)", raw)[1], column): raw.split(" (")[0]
        for line in body
        for column, raw in zip(head, line, strict=True)
    }


def join_row_labels(body: list[list[str]]) -> list[list[str]]:
    """Table 13 prints two columns of row labels, the first in every third row."""
    groups = [body[n // 3 * 3][0] for n in range(len(body))]
    return [
        [f"{group} / {line[1]}", *line[2:]]
        for group, line in zip(groups, body, strict=True)
    ]


@pytest.mark.parametrize("item", TEXT_ITEMS)
def test_every_cell_equals_the_text(item):
    texts = read_table(item).items()
    numbers = {cell: re.findall(r"\d+(?:\.\d+)?", text) for cell, text in texts}
    scale = 1000 if "printed_unit" in TABLES[item] else 1
    ours = {tuple(cell): [] for cell in TABLES[item].get("absent", [])}
    for cell in CELLS:
        if cell[0] != item:
            continue
        decimals = setting(*cell, "decimals")
        ours[cell[1:]] = [f"{CELLS[cell] * scale:.{decimals}f}"]
        if cell in IN_BRACKETS:
            ours[cell[1:]].append(f"{IN_BRACKETS[cell]:.2f}")
    assert numbers == ours


@pytest.mark.parametrize("item", TEXT_ITEMS)
def test_percent_signs_are_printed_where_the_errata_say(item):
    texts = read_table(item).items()
    with_percent = {c for c, text in texts if "%" in text and "retain" not in c[0]}
    entries = errata_of_kind("text", item).items()
    assert with_percent == {c[1:] for c, entry in entries if "percent" in entry["note"]}


def test_the_steps_of_table_9_equal_the_text():
    texts = read_table("table-9").items()
    raw = {cell: re.sub(r"\s", "", text) for cell, text in texts}
    output, table = "", TABLES["table-9"]
    for row, step in zip(row_labels(table), table["steps"], strict=True):
        if row != "0":
            prefix = output + "".join(step["block"][1:])
            assert raw[row, "input prefix"] == prefix
        output += "".join(step["committed"])

        assert raw[row, "current mode"] == step["mode"]
        printed = raw[row, "draft model output"] + raw[row, "target model output"]
        ours = "".join(step["draft"] + (step["accepted"] or step["committed"]))
        is_damaged = row == "1"  # the only one, by the errata
        assert (printed != ours) == is_damaged
    assert raw["7", "rea- son"] + raw["", "rea- son"] == output
