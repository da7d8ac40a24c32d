"""EasySpec's transcribed numbers agree with its text, except for the errata.

Its draft length is not printed, and follows from its times. Needs no engine: the cells
are judged by arithmetic on the print.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import pytest
from helpers.printed import (
    computed_in_errata,
    load_folder,
    numbers_in_brackets,
    printed_cells,
    row_labels,
    text_of,
)

TABLES = load_folder("papers/easyspec")
LATENCY = load_folder("latency/easyspec")
CELLS = printed_cells(TABLES)
IN_BRACKETS = numbers_in_brackets(TABLES)

POINTS = row_labels(TABLES["table-2"])  # a family, a temperature and a data set each
FAMILIES = {"Llama-3": ("L3-8B", "L3-70B"), "Qwen2": ("Q2-7B", "Q2-72B")}


def printed(row: str, column: str, item: str = "table-2") -> float | None:
    return CELLS.get((item, row, column))


# -- Table 2 against itself ------------------------------------------------------------
def test_easyspecs_totals_are_drafting_and_verifying_except_for_the_errata():
    wrong = {}
    drafting_cells = [cell for cell in CELLS if cell[2].endswith(" / d")]
    assert len(drafting_cells) == 20 * 3 + 2 * 3
    for item, row, column in drafting_cells:
        method = column.removesuffix(" / d")
        drafting, verifying, total = (
            printed(row, f"{method} / {part}", item) for part in ("d", "v", "total")
        )
        if abs(drafting + verifying - total) > 0.0151:  # three roundings
            wrong[row, f"{method} / v"] = round(total - drafting, 2)
    assert wrong == computed_in_errata(TABLES["table-2"], "arithmetic")


def test_easyspecs_speed_ups_are_quotients_of_its_times():
    """One time of plain decoding is missing; the speed-ups over it give its value."""
    least_missing = 0.0
    most_missing = math.inf
    for (_, row, column), speedup in IN_BRACKETS.items():
        is_drafting = column == "EasySpec / d"
        seconds = printed(row, column)
        baseline = printed(row, "+tree / d" if is_drafting else "vanilla / total")
        if baseline is None:
            least = (speedup - 0.005) * (seconds - 0.005)
            most = (speedup + 0.005) * (seconds + 0.005)
            least_missing = max(least_missing, least)
            most_missing = min(most_missing, most)
            continue

        quotient = baseline / seconds
        slack = 0.005 + quotient * (0.005 / baseline + 0.005 / seconds)
        assert abs(quotient - speedup) <= slack + 1e-9, (row, column)

    assert len(IN_BRACKETS) == 20 * 5
    assert round(least_missing, 2) == 11.91
    assert round(most_missing, 2) == 11.94
    assert TABLES["table-2"]["absent"] == [["Qwen2 / T=0.8 / MMLU", "vanilla / total"]]


# -- the draft length ------------------------------------------------------------------
def iteration(row: str, method: str, stage: str, n: int) -> float:
    """Seconds per iteration of n drafts, if n times the printed share are accepted."""
    share = printed(row, f"{method} / alpha")
    return printed(row, f"{method} / {stage}") * (1 + n * share) / 100


def verifying_over_a_pass(n: int) -> list[float]:
    """The time of a verification divided by one pass of the TP row, for every row."""
    return [
        iteration(row, "+sd", "v", n) / (printed(row, "TP / total") / 100)
        for row in POINTS
    ]


def drafting_over_table_1(n: int) -> list[float]:
    """The time of a draft pass divided by Table 1's, for Llama-3's rows."""
    speed = printed("L3-8B", "TP=1", "table-1")
    rows = [row for row in POINTS if row.startswith("Llama-3")]
    return [iteration(row, "+sd", "d", n) / n * speed for row in rows]


def test_five_is_the_only_draft_length_that_explains_easyspecs_times():
    """With fewer, verifying n + 1 tokens takes less time than the TP row's one; with
    more, drafts are faster than in Table 1."""
    lengths = range(2, 10)
    slow_enough_to_verify = [n for n in lengths if min(verifying_over_a_pass(n)) > 1]
    assert slow_enough_to_verify == [5, 6, 7, 8, 9]
    slow_enough_to_draft = [n for n in lengths if max(drafting_over_table_1(n)) > 1]
    assert slow_enough_to_draft == [2, 3, 4, 5]
    assert max(abs(ratio - 1) for ratio in drafting_over_table_1(5)) < 0.03
    assert TABLES["paper"]["derived"]["drafts_per_iteration"] == 5


@pytest.mark.parametrize("row", POINTS)
def test_a_tree_and_layer_parallelism_leave_easyspecs_draft_length_at_five(row):
    exact, tree = (iteration(row, method, "d", 5) for method in ("+sd", "+tree"))
    assert tree == pytest.approx(exact, rel=0.07)  # a wider pass takes as long
    tree, easyspec = (
        iteration(row, method, "v", 5) for method in ("+tree", "EasySpec")
    )
    assert tree == pytest.approx(easyspec, rel=0.055)


# -- clocks ----------------------------------------------------------------------------
PAIRS = {"Llama-3": "llama3-8-70", "Qwen2": "qwen2-7-72"}


def check_side(side: dict[str, Any], speed: float) -> None:
    """One model's side of a latency file must contain a speed as seconds per pass."""
    assert side["printed"] == speed
    assert side["forward"] == [[1, pytest.approx(1 / speed, rel=1e-12)]]


@pytest.mark.parametrize("family", FAMILIES)
def test_easyspecs_clocks_are_its_table_1(family):
    """By the number of the target's GPUs and, if printed, the draft's."""
    draft, target = FAMILIES[family]
    for gpus in (1, 2, 4, 8):
        column = f"TP={gpus}"
        times = LATENCY[f"{PAIRS[family]}-tp{gpus}"]
        check_side(times["draft"], printed(draft, "TP=1", "table-1"))
        check_side(times["target"], printed(target, column, "table-1"))
        draft_speed = printed(draft, column, "table-1")
        if gpus > 1 and draft_speed:
            times = LATENCY[f"{PAIRS[family]}-draft-tp{gpus}"]
            check_side(times["draft"], draft_speed)
            check_side(times["target"], printed(target, "TP=8", "table-1"))
    assert len(LATENCY) == 15


@pytest.mark.parametrize("family", FAMILIES)
def test_one_fuzzy_pass_explains_all_of_easyspecs_drafting(family):
    times = LATENCY[f"{PAIRS[family]}-tp8"]
    exact = times["draft"]["forward"][0][1]
    fuzzy = times["fuzzy"]["forward"][0][1]
    its_source = f"{family} / T=0 / MMLU"
    assert times["fuzzy"]["printed"] == printed(its_source, "EasySpec / d")
    for row in POINTS:
        if row.startswith(family):
            within = 1e-9 if row == its_source else 0.03
            seconds = iteration(row, "EasySpec", "d", 5)
            assert seconds == pytest.approx(exact + 4 * fuzzy, rel=within), row


def test_the_clock_of_easyspecs_32b_model_is_solved_from_its_own_rows():
    row, times = "Q2.5-Coder-32B / HumanEval", LATENCY["qwen25-7-32-tp8"]
    share = printed(row, "+tree / alpha", "table-3")
    verifications = 100 / (1 + 5 * share)
    seconds = verifications * times["target"]["forward"][0][1]
    assert seconds == pytest.approx(printed(row, "+tree / v", "table-3"))

    plain = LATENCY["qwen25-7-32-tp1"]["target"]["forward"][0][1]
    assert 100 * plain == pytest.approx(printed(row, "vanilla / total", "table-3"))
    of_qwen2 = LATENCY["qwen2-7-72-tp8"]["fuzzy"]["forward"]
    assert times["fuzzy"]["forward"] == of_qwen2


# -- Table 6 ---------------------------------------------------------------------------
def group_sizes(layers: int, n: int) -> list[int]:
    """The first layer, then min(n, 3), groups of n, the remainder, the last layer."""
    sizes = [1]
    left = layers - 2
    while left:
        most = min(n, 3) if len(sizes) == 1 else n
        sizes.append(min(left, most))
        left -= sizes[-1]
    return [*sizes, 1]


def printed_sizes(row: str) -> list[float]:
    return [size for cell, size in CELLS.items() if cell[:2] == ("table-6", row)]


def test_one_rule_gives_every_strategy_of_easyspecs_table_6():
    for row in row_labels(TABLES["table-6"]):
        model, n = row.split(" / ")
        layers = 32 if model == "Llama-3-8B" else 28
        assert printed_sizes(row) == group_sizes(layers, int(n))


# -- other errata ----------------------------------------------------------------------
def test_easyspecs_accuracy_falls_by_7_points_and_by_more_than_7_percent():
    drops, drops_of_itself = [], {}
    for row in POINTS:
        tree = printed(row, "+tree / alpha")
        easyspec = printed(row, "EasySpec / alpha")
        drops.append(round(tree - easyspec, 2))
        drops_of_itself[row, "EasySpec / alpha"] = round(1 - easyspec / tree, 4)
    assert max(drops) == 0.07
    worst = max(drops_of_itself, key=drops_of_itself.get)
    in_errata = computed_in_errata(TABLES["table-2"], "prose")
    assert {worst: drops_of_itself[worst]} == in_errata


def test_easyspecs_plain_rows_contradict_its_table_1_where_the_errata_say():
    conflicts = computed_in_errata(TABLES["table-2"], "conflict")
    expected = {}
    for model, gpus, column, family in (
        ("L3-70B", "TP=1", "vanilla / total", "Llama-3"),
        ("Q2-72B", "TP=8", "TP / total", "Qwen2"),
    ):
        seconds = 100 / printed(model, gpus, "table-1")
        for temperature in ("T=0", "T=0.8"):
            row = f"{family} / {temperature} / MMLU"
            expected[row, column] = round(seconds, 2)
            assert abs(printed(row, column) / seconds - 1) > 0.01
    assert conflicts == expected


def test_easyspecs_accuracy_carries_over_except_where_the_errata_say():
    lost = {}
    for task in ("MT", "TL", "SUM", "QA", "MR", "RAG"):
        before = printed(task, "Llama-3 / EasySpec / alpha", "table-4")
        after = printed(task, "Llama-3.3 / EasySpec / alpha", "table-4")
        if after < 0.9 * before:
            lost[task, "Llama-3.3 / EasySpec / alpha"] = round(1 - after / before, 2)
    in_errata = computed_in_errata(TABLES["table-4"], "prose").items()
    assert lost == {cell: computed for cell, computed in in_errata if computed}


# -- the paper's text, read a second time ----------------------------------------------
def printed_lines(item: str) -> list[str]:
    """The table's lines in the text, under its caption."""
    number = item.removeprefix("table-")
    caption = rf"^Table {number}: .*\n+((?:.+\n)+)"
    table = re.search(caption, text_of("easyspec"), re.M)[1]
    return table.replace("Human Eval", "HumanEval").splitlines()


def numbers_of(words: Iterable[str]) -> list[float]:
    """Every number of a line, including those in brackets."""
    return [float(x) for word in words for x in re.findall(r"-?\d+(?:\.\d+)?", word)]


def our_numbers(method: str, temperature: str, data: str) -> list[float]:
    """A line of our Table 2: both families, with the numbers in brackets."""
    cells = [
        ("table-2", f"{family} / {temperature} / {data}", f"{method} / {quantity}")
        for family in FAMILIES
        for quantity in ("d", "v", "total", "alpha")
    ]
    both = [numbers.get(cell) for cell in cells for numbers in (CELLS, IN_BRACKETS)]
    return [number for number in both if number is not None]


def test_easyspecs_table_2_equals_the_text():
    temperature = data = ""
    compared = 0
    shifted = set()
    for line in printed_lines("table-2"):
        words = line.split()
        if line.startswith("temperature="):
            temperature = f"T={line.split('=')[1]}"
        if words[0] in ("MMLU", "HumanEval", "MATH", "IFEval", "MGSM"):
            data = words.pop(0)
        if words[0] not in ("vanilla", "TP", "+sd", "+tree", "EasySpec"):
            continue
        method, *rest = words
        ours = our_numbers(method, temperature, data)
        assert numbers_of(rest) == ours, line
        compared += len(ours)

        # A dash means no number; plain decoding has two numbers, its totals.
        columns = [i for i, word in enumerate(rest) if word != "-"]
        if method == "vanilla" and len(columns) == 2 and columns != [2, 6]:
            shifted.add((f"Qwen2 / {temperature} / {data}", "vanilla / total"))

    assert compared == 279 + 100
    assert shifted == set(computed_in_errata(TABLES["table-2"], "text"))


@pytest.mark.parametrize("item", ["table-1", "table-3", "table-4", "table-5"])
def test_easyspecs_cells_equal_the_text_in_order(item):
    words = [word for line in printed_lines(item) for word in line.split()]
    words = [word for word in words if re.match(r"[+-]?\d+\.\d", word)]  # no labels
    cells = [cell for cell in CELLS if cell[0] == item]
    if item == "table-4":  # the text has all of Llama-3 first
        cells.sort(key=lambda cell: not cell[2].startswith("Llama-3 /"))
    assert numbers_of(words) == [CELLS[cell] for cell in cells]


def test_easyspecs_table_6_equals_the_text():
    for line in printed_lines("table-6")[1:]:
        words = line.replace(",", "").split()
        n = next(word for word in words if word.isdigit())
        model = "Llama-3-8B"
        if not words[0].isdigit() and not words[0].startswith("Llama"):
            model = "Qwen"

        ours, start = set(), 0
        for size in printed_sizes(f"{model} / {n}"):
            ours.add(f"{start}-{start + size - 1}" if size > 1 else f"{start}")
            start += size
        theirs = words[words.index(n) + 1 :]
        assert {word for word in theirs if word != "…"} <= ours, line
        assert len(theirs) >= 6, line
