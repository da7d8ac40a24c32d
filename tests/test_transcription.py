"""Transcribed numbers (PEARL, DuoDecoding) agree with the papers' texts and with each other, but
for the errata.

Needs no engine: the cells are judged by arithmetic on the print. Where SPECLIB_PAPERS_DIR names a
folder with the papers' texts (pearl.txt, duodecoding.txt), every cell is also read from it a second
time.
"""

import os
import re
import tomllib
from pathlib import Path

import pytest


def load(folder):
    files = (Path(__file__).resolve().parents[1] / "data" / folder).glob("*.toml")
    return {path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted(files)}


LATENCY, TABLES = load("latency/pearl"), load("papers/pearl")
PAPER, CALIBRATION, AUDIT = [TABLES.pop(name) for name in ("paper", "calibration", "audit")]
CELLS = {(item, r, c): v for item, table in TABLES.items() for r, c, v in table["cells"]}
BESIDE = {(item, r, c): v for item, table in TABLES.items()
          for r, c, v in table.get("beside", {}).get("cells", [])}
SPEED = {model: v for (_, model, c), v in CELLS.items() if c == "speed (tok/s)"}


def labels(item, axis):
    return list(dict.fromkeys(key[axis] for key in CELLS if key[0] == item))


def setting(item, row, column, name):
    table = TABLES[item]
    return (table | table.get("settings", {}) | table.get("column", {}).get(column, {})
            | table.get("row", {}).get(row, {})).get(name)


def half(key):
    """Half a unit of the cell's last printed digit; counts are exact."""
    return 0.5 * 10.0 ** -setting(*key, "decimals") * (setting(*key, "decimals") > 0)


def errata(kind, item=None):
    """Each cell that the errata of one kind name, "*" spelled out, with its entry."""
    return {key: entry for key in CELLS for entry in TABLES[key[0]].get("errata", [])
            if entry["kind"] == kind and item in (None, key[0])
            and any(r in (key[1], "*") and c in (key[2], "*") for r, c in entry["cells"])}


def quotient(of, by=None):
    """of / by, and how far rounding in print can have moved it; a copy cannot move."""
    value = CELLS[of] / (CELLS[by] if by else 1)
    return value, value * (half(of) / CELLS[of] + half(by) / CELLS[by]) if by else 0.0


def recomputed():
    """(cell, printed, value, slack): averages, drops, ratios and shares from their own tables."""
    for item in [f"table-{n}" for n in (2, 3, 8, 12, 13, 18)]:
        *others, average = labels(item, 2)
        for row in [row for row in labels(item, 1) if "retain" not in row]:
            key, mean = (item, row, average), sum(CELLS[item, row, c] for c in others) / len(others)
            yield key, CELLS[key], mean, 2 * half(key)
    retained = {key: value for key, value in CELLS.items() if "retain" in key[1]}
    for (item, row, c), printed in (BESIDE | retained).items():
        pair = row.removesuffix(" (RC)").removeprefix("performance retain (").rstrip(")")
        scale, of = (100, f"{pair} (RC)") if "retain" in row else (1, row)
        value, slack = quotient((item, of, c), (item, pair, c.replace("PEARL", "SD")))
        if item == "table-4":
            value, slack = CELLS[item, "PEARL", c] - CELLS[item, row, c], 0.01
        yield (item, row, c), printed, scale * value, scale * slack + 0.005


def test_arithmetic_fails_exactly_where_the_errata_say():
    assert {key: entry["computed"] for key, entry in errata("arithmetic").items()} == {
        key: round(value, 4) for key, printed, value, slack in recomputed()
        if abs(value - printed) > slack + 1e-9}


def test_tables_contradict_each_other_exactly_where_the_errata_say():
    found = {}
    for entry in AUDIT["same"]:
        for column in labels(entry["cell"][0], 2):
            key, of, by = [tuple(column if x == "*" else x for x in entry.get(name, []))
                           for name in ("cell", "of", "by")]
            value, slack = quotient(of, by)
            slack += entry.get("within", 0) * value + (half(key) if by else 0)
            if abs(value - CELLS[key]) > slack + 1e-9:
                found[key] = (of, by, round(value, 3))
    assert found == {key: (tuple(e["of"]), tuple(e.get("by", ())), e["computed"])
                     for key, e in errata("conflict").items()}


def test_what_else_the_errata_say():
    assert all(CELLS["table-2", row, c] == CELLS["table-12", row.replace("PEARL (ours)", "Ours"), c]
               for row in ("Speculative Decoding", "PEARL (ours)") for c in labels("table-2", 2))
    codellama, deepseek = [sum(CELLS["table-15", part, pair] for part in labels("table-15", 1)
                               if part != "draft") for pair in labels("table-15", 2)[1:]]
    limits = {("table-5", "3", "CodeLlama 7&34"): round(3 / codellama, 2),
              ("table-1", "PEARL (ours)", "DeepSeek 1.3&33B"):
                  round(4 / deepseek / SPEED["Deepseek-33B"], 3)}
    assert limits == {key: entry["computed"] for key, entry in errata("ceiling").items()
                      if entry["computed"] < CELLS[key]}
    assert set(errata("prose", "table-17")) == {            # more lost than the caption says
        key for key in CELLS if key[0] == "table-17" and key[1].endswith("(RC)")
        and quotient(key, (key[0], key[1].removesuffix(" (RC)"), key[2]))[0] < 0.95}


def test_table_7_counts_no_bonus_and_table_11_ran_every_prompt_to_1024_tokens():
    rows = {setting("table-11", row, None, "alpha"): row for row in labels("table-11", 1)}
    columns = dict(zip(labels("table-7", 2), labels("table-14", 2), strict=True))
    for name in ["codellama-7-34", "codellama-7-70", "deepseek-1.3-33", "deepseek-6.7-33"]:
        cell, gamma, times = CALIBRATION[name]["cell"], CALIBRATION[name]["gamma"], LATENCY[name]
        seconds = gamma / times["draft"]["printed"] + 1 / times["target"]["printed"]
        mean, rate = CELLS[tuple(cell)], CELLS["table-14", str(gamma), columns[cell[2]]]
        assert mean < rate * seconds < mean + 1, name
        per_pass = 164 * 1024 / CELLS["table-11", rows[name], "Target Model (SD)"]
        at_c = (setting("table-11", rows[name], None, "gamma"), per_pass - 1)
        alphas = [min((n / 10000 for n in range(5000, 10000)),     # m of g drafts are accepted
                      key=lambda a, g=g, m=m: abs(sum(a**i for i in range(1, g + 1)) - m))
                  for g, m in [(gamma, mean), at_c]]
        assert alphas[0] == pytest.approx(alphas[1], abs=0.006), name


def test_an_item_of_ours_prints_nothing_and_says_that_it_is_ours():
    ours = {item for item in TABLES if item.startswith("extra-")}
    assert ours == {item for item, table in TABLES.items()
                    if table["about"].startswith("Ours, not the paper's")}
    for item in ours:
        assert TABLES[item]["cells"] == [] and "errata" not in TABLES[item]
        for claim in TABLES[item]["claims"]:
            assert claim["source"].startswith("ours") and "paper" not in claim["kinds"]


@pytest.mark.parametrize("item", ["table-9", "figure-3"])
def test_steps_follow_the_rule_of_pearl(item):
    steps, block = TABLES[item]["steps"], []
    for row, step in zip(labels(item, 1), steps, strict=True):
        tested = step["block"][1:] + step["draft"][:1]      # the last row tests the new draft
        accepted, fix = step["accepted"], [step["instead"]] if "instead" in step else []
        assert step["block"] == block and step["mode"] == ("post" if block else "pre") + "-verify"
        assert tested == accepted + tested[len(accepted):] and bool(fix) == (tested != accepted)
        assert not fix or step["rejected"] == tested[len(accepted)]
        assert step["committed"] == accepted + fix
        assert CELLS[item, row, "accepted"] == len(accepted)
        assert CELLS[item, row, "committed"] == len(accepted + fix)
        block = [] if fix else step["draft"]
    assert sum((step["committed"] for step in steps), []) == TABLES[item]["output"]


def test_names_refer_to_something_and_latencies_are_table_10():
    assert len(CELLS) == sum(len(table["cells"]) for table in TABLES.values()), "one cell twice"
    for side in [file[name] for file in LATENCY.values() for name in ("draft", "target")]:
        assert SPEED[side["model"]] == side["printed"]
        assert side["forward"] == [[1, pytest.approx(1 / side["printed"], rel=1e-12)]]
    names = {(item, *cell) for item, r, c in CELLS for cell in [(r, c), (r, "*"), ("*", c)]}
    assert {(item, *cell) for item, table in TABLES.items() for entry in table.get("errata", [])
            for cell in entry["cells"]} <= names
    assert {tuple(entry.get(key, entry["cell"])) for entry in CALIBRATION.values()
            for key in ("cell", "over")} <= set(CELLS)
    for place in [(item, row, column) for item, table in TABLES.items()
                  for row in table.get("row", [""]) for column in table.get("column", [""])]:
        alpha, latency, series, c = [setting(*place, name) for name in
                                     ("alpha", "latency", "series", "printed_c")]
        assert not isinstance(alpha, str) or alpha.format(series=series) in CALIBRATION, place
        file = LATENCY[latency.removeprefix("pearl/")] if latency else None
        assert not c or c == round(file["draft"]["printed"] / file["target"]["printed"]), place


def read(item):
    """(row, column) -> raw text, from the tab-separated lines under the table's caption."""
    folder = os.environ.get("SPECLIB_PAPERS_DIR") or pytest.skip("SPECLIB_PAPERS_DIR is not set")
    text = (Path(folder) / "pearl.txt").read_text("utf-8").replace("GSMBK", "GSM8K")
    found = re.search(rf"^Table {item[6:]}:.*\n\n((?:.*\t.*(?:\n|$))+)", text, re.M)
    head, *body = [line.split("\t") for line in found[1].splitlines()]
    if item == "table-4":
        head, *body = body                                  # two lines of column labels
    elif item == "table-13":                                # two columns of row labels
        body = [[f"{body[n // 3 * 3][0]} / {line[1]}", *line[2:]] for n, line in enumerate(body)]
        head = head[1:]
    elif item == "table-8":                                 # two rows of one name
        body[2][0], body[5][0] = [f"{body[n][0]} ({body[n - 2][0]})" for n in (2, 5)]
    elif item == "table-14":                                # the row's label is in the cell
        return {(re.search(r"= (\d+)", raw)[1], column): raw.split(" (")[0]
                for line in body for column, raw in zip(head, line, strict=True)}
    return {(re.sub(r" \([^()]*, \d{4}\)", "", line[0]), column.split(" ($c")[0]): raw.strip()
            for line in body for column, raw in zip(head[1:], line[1:], strict=True)}


@pytest.mark.parametrize("item", [f"table-{n}" for n in range(1, 19) if n != 9])
def test_every_cell_equals_the_text(item):
    raw, scale = read(item), 1000 if "printed_unit" in TABLES[item] else 1
    ours = {tuple(cell): [] for cell in TABLES[item].get("absent", [])}
    for key in [key for key in CELLS if key[0] == item]:
        bracket = [f"{BESIDE[key]:.2f}"] if key in BESIDE else []
        ours[key[1:]] = [f"{CELLS[key] * scale:.{setting(*key, 'decimals')}f}", *bracket]
    assert {key: re.findall(r"\d+(?:\.\d+)?", text) for key, text in raw.items()} == ours
    percent = {(item, *key) for key, text in raw.items() if "%" in text and "retain" not in key[0]}
    assert percent == {k for k, entry in errata("text", item).items() if "percent" in entry["note"]}


def test_the_steps_of_table_9_equal_the_text():
    said, raw = "", {key: re.sub(r"\s", "", text) for key, text in read("table-9").items()}
    for row, step in zip(labels("table-9", 1), TABLES["table-9"]["steps"], strict=True):
        outputs = raw[row, "draft model output"] + raw[row, "target model output"]
        assert row == "0" or raw[row, "input prefix"] == said + "".join(step["block"][1:])
        said += "".join(step["committed"])
        assert raw[row, "current mode"] == step["mode"]
        ours = "".join(step["draft"] + (step["accepted"] or step["committed"]))
        assert (outputs == ours) == (row != "1"), "only step 1 is damaged (errata)"
    assert raw["7", "rea- son"] + raw["", "rea- son"] == said


# -- DuoDecoding: of its Table 1 the text has lost most speeds -------------------------------------
DUO, DUO_LATENCY = load("papers/duodecoding"), load("latency/duodecoding")
CELL = {(item, r, c): v for item, table in DUO.items() for r, c, v in table.get("cells", [])}
TASKS = ["MT-Bench", "Trans", "Sum", "QA", "Math", "RAG", "Code"]


def duo(row, column, quantity):
    return CELL.get(("table-1", row, f"{column} / {quantity}"))


def plain(target, task):
    """Plain decoding's tokens per second: speed over speed-up of a method that has both."""
    rows = [r for item, r, c in CELL if item == "table-1" and c == f"{task} / TPS"
            and r.startswith(target)]
    return duo(rows[0], task, "TPS") / duo(rows[0], task, "speedup")


def test_every_cell_of_duodecodings_table_1_is_printed_or_lost():
    rows = {r for item, r, _ in CELL if item == "table-1"}
    lost = [tuple(cell) for cell in DUO["table-1"]["lost"]]
    whole = {(r, f"{t} / {q}") for r in rows for t in [*TASKS, "Avg."] for q in ("TPS", "speedup")}
    assert {(r, c) for item, r, c in CELL if item == "table-1"} | set(lost) == whole
    assert len(lost) == len(set(lost)) == 90 and len(whole) == 192


def test_duodecodings_speeds_survive_exactly_where_the_speed_up_is_the_highest():
    """So a row's numbers can stand in no other columns."""
    for target in ("Vicuna", "Llama"):
        for task in TASKS:
            rows = [r for item, r, c in CELL if item == "table-1" and c == f"{task} / speedup"
                    and r.startswith(target)]
            assert len(rows) == 6
            best = max(rows, key=lambda r, t=task: duo(r, t, "speedup"))
            assert [r for r in rows if duo(r, task, "TPS")] == [best], (target, task)


def test_duodecodings_averages_are_quotients_of_mean_speeds_and_tell_a_lost_one():
    for target, lost in (("Vicuna", ["Sum", "QA", "RAG"]), ("Llama", ["Sum"])):
        row, speeds = f"{target} / DuoDec", {task: plain(target, task) for task in TASKS}
        assert duo(row, "Avg.", "speedup") * sum(speeds.values()) / 7 == pytest.approx(
            duo(row, "Avg.", "TPS"), rel=0.004)
        rest = 7 * duo(row, "Avg.", "TPS") - sum(duo(row, t, "TPS") for t in TASKS if t not in lost)
        theirs = sum(duo(row, t, "speedup") * speeds[t] for t in lost)
        assert rest == pytest.approx(theirs, rel=0.003)
    assert rest == pytest.approx(85.8, abs=0.05)            # as `about` says
    said = {("Vicuna", "SpS"): 1.42, ("Vicuna", "Lookahead"): 1.35, ("Llama", "PLD"): 2.10,
            ("Llama", "SpS"): 1.80}                         # section 4.2
    for (target, method), average in said.items():
        weights = [plain(target, task) for task in TASKS]
        mean = sum(w * duo(f"{target} / {method}", task, "speedup")
                   for w, task in zip(weights, TASKS, strict=True)) / sum(weights)
        assert mean == pytest.approx(average, abs=0.01)


def test_duodecodings_clocks_are_its_table_1_and_its_budget():
    files = {"llama2-7b": ("Llama", "Avg."), "vicuna-7b": ("Vicuna", "Avg."),
             "llama2-7b-mt": ("Llama", "MT-Bench"), "llama2-7b-trans": ("Llama", "Trans"),
             "llama2-7b-math": ("Llama", "Math"), "llama2-7b-code": ("Llama", "Code")}
    assert set(DUO_LATENCY) == {*files, "llama2-7b-sps", "vicuna-7b-sps"}
    for name, where in files.items():
        (_, draft), (_, target) = [DUO_LATENCY[name][m]["forward"][0] for m in ("draft", "target")]
        assert 1 / target == pytest.approx(plain(*where), rel=1e-12)
        assert target / draft == pytest.approx(DUO["paper"]["budget"], rel=1e-12)
    for name in ("llama2-7b", "vicuna-7b"):
        assert DUO_LATENCY[f"{name}-sps"]["target"] == DUO_LATENCY[name]["target"]


def blocks(alpha, n):
    return sum(alpha**i for i in range(n))


def root(formula, value):
    """Where a rising formula of alpha has a value, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        low, high = ((low + high) / 2, high) if formula((low + high) / 2) < value else (
            low, (low + high) / 2)
    return low


def test_what_duodecoding_charges_a_draft_on_the_gpu_solves_its_named_cells():
    """At Math's acceptance with one sequence, five drafts and a pass give SpS's 2.35."""
    gain = CELL["table-3", "c", "Math"] / plain("Llama", "Math")
    alpha = root(lambda a: 1 / (1 - a + a / blocks(a, 24)), gain)   # pre- and post-verify, c = 24
    times = DUO_LATENCY["llama2-7b-sps"]
    share = times["draft"]["forward"][0][1] / times["target"]["forward"][0][1]
    assert blocks(alpha, 6) / (1 + 5 * share) == pytest.approx(2.35, rel=1e-3)


def test_duodecodings_ceilings_are_what_its_speculative_decoding_leaves_room_for():
    found = {}
    for task in TASKS:
        alpha = root(lambda a: blocks(a, 6), duo("Llama / SpS", task, "speedup") * (1 + 5 * 0.16))
        limit = (1 + blocks(alpha, 24)) / 2                 # every block's first token is found
        if duo("Llama / DuoDec", task, "speedup") > limit + 0.1:
            found["Llama / DuoDec", f"{task} / speedup"] = round(limit, 2)
    assert found == {tuple(e["cells"][0]): e["computed"] for e in DUO["table-1"]["errata"]
                     if e["kind"] == "ceiling"}


def test_duodecodings_table_4_adds_up_and_reads_as_its_errata_say():
    cell = {(r, c): v for (item, r, c), v in CELL.items() if item == "table-4"}
    for label in ("=1", ">1", "Total"):
        assert cell[label, "=1"] + cell[label, ">1"] == pytest.approx(cell[label, "Total"])
        assert cell["=1", label] + cell[">1", label] == pytest.approx(cell["Total", label])
    quotients = [cell["=1", ">1"] / cell["Total", ">1"], cell[">1", "=1"] / cell["Total", "=1"]]
    assert [round(q, 3) for q in quotients] == [
        e["computed"] for e in DUO["table-4"]["errata"] if "computed" in e]


@pytest.mark.parametrize("item", ["table-1", "table-2", "table-3", "table-4"])
def test_duodecodings_cells_equal_the_text_in_order(item):
    folder = os.environ.get("SPECLIB_PAPERS_DIR") or pytest.skip("SPECLIB_PAPERS_DIR is not set")
    text = (Path(folder) / "duodecoding.txt").read_text("utf-8")
    first = {"table-1": "| Method |", "table-2": "| #Seq |", "table-3": "| Budget |",
             "table-4": "| =1 | >1 |"}[item]
    lines = text[text.index(first):].split("\n\n")[0].splitlines()[2:]
    ours = {}
    for _, r, c in [key for key in CELL if key[0] == item]:
        value = CELL[item, r, c]
        ours.setdefault(r, []).append(f"{value:.{3 if item == 'table-4' else 2}f}")
    printed = [re.findall(r"(?<![\d.])\d+\.\d+(?![\d.])", line) for line in lines]
    assert [row for row in printed if row][:len(ours)] == list(ours.values())
