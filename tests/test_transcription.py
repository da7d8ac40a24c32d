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


def load(folder):
    data = Path(__file__).resolve().parents[1] / "data"
    return {path.stem: tomllib.loads(path.read_text("utf-8"))
            for path in sorted((data / folder).glob("*.toml"))}


LATENCY, TABLES = load("latency/pearl"), load("papers/pearl")
CALIBRATION, AUDIT = TABLES.pop("calibration"), TABLES.pop("audit")
PAPER = TABLES.pop("paper")
CELLS = {(item, r, c): v for item, table in TABLES.items() for r, c, v in table["cells"]}
BESIDE = {(item, r, c): v for item, table in TABLES.items()
          for r, c, v in table.get("beside", {}).get("cells", [])}


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


def errata(kind):
    """Each cell the errata of one kind name, "*" spelled out, with its entry."""
    return {(item, r, c): entry for item, table in TABLES.items()
            for entry in table.get("errata", []) if entry["kind"] == kind
            for row, column in entry["cells"]
            for r in (labels(item, 1) if row == "*" else [row])
            for c in (labels(item, 2) if column == "*" else [column])}


def quotient(of, by=None):
    """of / by, and how far rounding in print can have moved it; a copy cannot move."""
    value = CELLS[of] / (CELLS[by] if by else 1)
    return value, value * (half(of) / CELLS[of] + half(by) / CELLS[by]) if by else 0.0


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


def test_arithmetic_fails_exactly_where_the_errata_say():
    found = {key: round(value, 4) for key, printed, value, slack in recomputed()
             if abs(value - printed) > slack + 1e-9}
    assert found == {key: entry["computed"] for key, entry in errata("arithmetic").items()}


def test_tables_contradict_each_other_exactly_where_the_errata_say():
    found = {}
    for entry in AUDIT["same"]:
        cell = entry["cell"]
        for column in labels(cell[0], 2) if cell[2] == "*" else [cell[2]]:
            key, of, by = [tuple(column if x == "*" else x for x in entry.get(name, []))
                           for name in ("cell", "of", "by")]
            value, slack = quotient(of, by)
            slack += entry.get("within", 0) * value + (half(key) if by else 0)
            if abs(value - CELLS[key]) > slack + 1e-9:
                found[key] = (of, by, round(value, 3))
    assert found == {key: (tuple(e["of"]), tuple(e.get("by", ())), e["computed"])
                     for key, e in errata("conflict").items()}


def test_the_other_findings_of_the_audit():
    step = {pair: sum(CELLS["table-15", part, pair] for part in ("communication", "verify", "target"))
            for pair in labels("table-15", 2)}
    speed = CELLS["table-10", "Deepseek-33B", "speed (tok/s)"]
    limits = {("table-5", "3", "CodeLlama 7&34"): 3 / step["codellama 7&34B"],
              ("table-1", "PEARL (ours)", "DeepSeek 1.3&33B"): 4 / step["deepseek 1.3&33B"] / speed}
    assert all(limit < CELLS[key] for key, limit in limits.items())
    assert limits == {key: pytest.approx(entry["computed"], abs=0.005)
                      for key, entry in errata("ceiling").items()}
    for ours, theirs in [("Speculative Decoding",) * 2, ("PEARL (ours)", "Ours")]:
        assert [CELLS["table-2", ours, c] for c in labels("table-2", 2)] == [
            CELLS["table-12", theirs, c] for c in labels("table-12", 2)]
    above_5_percent = {(row, c) for row in ("Llama 2", "Llama 3.1") for c in labels("table-17", 2)
                       if quotient(("table-17", f"{row} (RC)", c), ("table-17", row, c))[0] < 0.95}
    assert above_5_percent == {(row.removesuffix(" (RC)"), c)
                               for item, row, c in errata("prose") if item == "table-17"}


def alpha_of(gamma, mean):
    """The acceptance rate at which gamma drafts have that many accepted on average."""
    return min((n / 10000 for n in range(5000, 10000)),
               key=lambda alpha: abs(sum(alpha**i for i in range(1, gamma + 1)) - mean))


def test_table_7_counts_no_bonus_and_table_11_ran_every_prompt_to_1024_tokens():
    rows = {setting("table-11", row, None, "alpha"): row for row in labels("table-11", 1)}
    columns = dict(zip(labels("table-7", 2), labels("table-14", 2), strict=True))
    for name in ["codellama-7-34", "codellama-7-70", "deepseek-1.3-33", "deepseek-6.7-33"]:
        cell, gamma, times = CALIBRATION[name]["cell"], CALIBRATION[name]["gamma"], LATENCY[name]
        seconds = gamma / times["draft"]["printed"] + 1 / times["target"]["printed"]
        speed, mean = CELLS["table-14", str(gamma), columns[cell[2]]], CELLS[tuple(cell)]
        assert mean / seconds < speed < (mean + 1) / seconds, name
        per_pass = 164 * 1024 / CELLS["table-11", rows[name], "Target Model (SD)"]
        at_c = alpha_of(setting("table-11", rows[name], None, "gamma"), per_pass - 1)
        assert alpha_of(gamma, mean) == pytest.approx(at_c, abs=0.006), name


@pytest.mark.parametrize("item", ["table-9", "figure-3"])
def test_steps_follow_the_rule_of_pearl(item):
    steps, block = TABLES[item]["steps"], []
    for row, step in zip(labels(item, 1), steps, strict=True):
        tested = step["block"][1:] + step["draft"][:1]      # the last row tests the new draft
        passed = len(step["accepted"])
        assert (step["block"], step["accepted"]) == (block, tested[:passed]), row
        assert step["mode"] == ("post-verify" if block else "pre-verify")
        assert step.get("rejected") == (tested[passed] if passed < len(tested) else None)
        fix = [step["instead"]] if "instead" in step else []
        assert step["committed"] == step["accepted"] + fix
        assert (CELLS[item, row, "accepted"], CELLS[item, row, "committed"]) == (
            passed, passed + len(fix))
        block = [] if fix else step["draft"]
    assert sum((step["committed"] for step in steps), []) == TABLES[item]["output"]


def test_latency_files_are_table_10():
    for name, file in LATENCY.items():
        for side in (file["draft"], file["target"]):
            assert CELLS["table-10", side["model"], "speed (tok/s)"] == side["printed"]
            assert side["forward"] == [[1, pytest.approx(1 / side["printed"], rel=1e-12)]], name
    for item in ("table-5", "table-6"):
        for column in labels(item, 2):
            file = LATENCY[setting(item, None, column, "latency").removeprefix("pearl/")]
            ratio = file["draft"]["printed"] / file["target"]["printed"]
            assert round(ratio) == setting(item, None, column, "printed_c")


def test_every_name_refers_to_something():
    assert len(CELLS) == sum(len(table["cells"]) for table in TABLES.values()), "a cell twice"
    assert set(BESIDE) | set(errata("text")) | set(errata("prose")) <= set(CELLS)
    assert all(table["item"] == item for item, table in TABLES.items())
    for item, table in TABLES.items():
        for row in table.get("row", [""]):
            for column in table.get("column", [""]):
                alpha, latency, series = (setting(item, row, column, name)
                                          for name in ("alpha", "latency", "series"))
                assert not isinstance(alpha, str) or alpha.format(series=series) in CALIBRATION
                assert not latency or latency.removeprefix("pearl/") in LATENCY, (item, row, column)
    for entry in CALIBRATION.values():
        assert {tuple(entry["cell"]), tuple(entry.get("over", entry["cell"]))} <= set(CELLS)


def read(item):
    """(row, column) -> raw text, from the tab-separated lines under the table's caption."""
    folder = os.environ.get("SPECLIB_PAPERS_DIR") or pytest.skip("SPECLIB_PAPERS_DIR is not set")
    text = (Path(folder) / "pearl.txt").read_text("utf-8")
    block = re.search(rf"^Table {item[6:]}:.*\n\n((?:.*\t.*(?:\n|$))+)", text, re.M)[1]
    head, *body = [line.split("\t") for line in block.replace("GSMBK", "GSM8K").splitlines()]
    if item == "table-4":
        head, *body = body                                  # two lines of column labels
    elif item == "table-13":                                # two columns of row labels
        pairs = [body[n - n % 3][0] for n in range(6)]
        head, body = head[1:], [[f"{p} / {line[1]}", *line[2:]] for p, line in zip(pairs, body)]
    elif item == "table-8":                                 # two rows of one name
        body = [[line[0] + f" ({body[n - 2][0]})" * (n % 3 == 2), *line[1:]]
                for n, line in enumerate(body)]
    elif item == "table-14":                                # the row's label is in the cell
        return {(re.search(r"= (\d+)", raw)[1], column): raw.split(" (")[0]
                for line in body for column, raw in zip(head, line, strict=True)}
    return {(re.sub(r" \([^()]*, \d{4}\)", "", line[0]), column.split(" ($c")[0]): raw.strip()
            for line in body for column, raw in zip(head[1:], line[1:], strict=True)}


@pytest.mark.parametrize("item", [f"table-{n}" for n in range(1, 19) if n != 9])
def test_every_cell_equals_the_text(item):
    raw, beside = read(item), TABLES[item].get("beside", {})
    scale = 1000 if "printed_unit" in TABLES[item] else 1
    ours = {key[1:]: [f"{value * scale:.{setting(*key, 'decimals')}f}"]
            + [f"{BESIDE[key]:.{beside['decimals']}f}"] * (key in BESIDE)
            for key, value in CELLS.items() if key[0] == item}
    ours |= {tuple(cell): [] for cell in TABLES[item].get("absent", [])}
    assert {key: re.findall(r"\d+(?:\.\d+)?", text) for key, text in raw.items()} == ours
    percent = {(item, *key) for key, text in raw.items() if "%" in text and "retain" not in key[0]}
    assert percent == {key for key, entry in errata("text").items()
                       if key[0] == item and "percent sign" in entry["note"]}


def test_the_steps_of_table_9_equal_the_text():
    raw, said = read("table-9"), ""
    for step in TABLES["table-9"]["steps"]:
        row = str(step["step"])
        draft, answer = [re.sub(r"\s", "", raw[row, f"{model} model output"])
                         for model in ("draft", "target")]
        damaged = ("table-9", row, "accepted") in errata("text")
        assert damaged == (row == "1") and (damaged or draft == "".join(step["draft"]))
        assert damaged or answer == "".join(step["accepted"] or step["committed"])
        assert raw[row, "current mode"] == step["mode"]
        prefix = re.sub(r"\s", "", raw[row, "input prefix"])
        assert row == "0" or prefix == said + "".join(step["block"])[len(said) and 0:]
        said += "".join(step["committed"])
