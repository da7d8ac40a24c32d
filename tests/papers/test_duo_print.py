"""DuoDecoding's transcribed numbers agree with its text, except for the errata.

The text has lost most speeds of Table 1. Needs no engine: the tests check the printed
cells by arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from helpers.printed import (
    computed_in_errata,
    load_folder,
    numbers_of,
    printed_cells,
    row_labels,
    text_of,
)
from scipy.optimize import brentq

TABLES = load_folder("papers/duodecoding")
LATENCY = load_folder("latency/duodecoding")
CELLS = printed_cells(TABLES)

TASKS = ["MT-Bench", "Trans", "Sum", "QA", "Math", "RAG", "Code"]
TARGETS = ["Vicuna", "Llama"]


def table_1(row: str, column: str, quantity: str) -> float | None:
    return CELLS.get(("table-1", row, f"{column} / {quantity}"))


def rows_with_a_speed(target: str, task: str) -> list[str]:
    """A target's rows for which Table 1 prints the speed, in tokens per second."""
    cells = [cell for cell in CELLS if cell[0::2] == ("table-1", f"{task} / TPS")]
    return [row for _, row, _ in cells if row.startswith(target)]


def plain_speed(target: str, task: str) -> float:
    """Plain decoding's tokens per second: a method's speed over its speed-up."""
    row = rows_with_a_speed(target, task)[0]
    return table_1(row, task, "TPS") / table_1(row, task, "speedup")


# -- Table 1 ---------------------------------------------------------------------------
def test_every_cell_of_duodecodings_table_1_is_printed_or_lost():
    printed = set(numbers_of(TABLES["table-1"]))
    lost = [tuple(cell) for cell in TABLES["table-1"]["lost"]]

    columns = [f"{t} / {what}" for t in [*TASKS, "Avg."] for what in ("TPS", "speedup")]
    every_cell = set(product(row_labels(TABLES["table-1"]), columns))
    assert printed | set(lost) == every_cell
    assert len(lost) == len(set(lost)) == 90
    assert len(every_cell) == 192


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("task", TASKS)
def test_duodecodings_speeds_survive_exactly_where_the_speed_up_is_the_highest(
    target, task
):
    """So a row's numbers cannot belong to other columns."""
    rows = [r for r in row_labels(TABLES["table-1"]) if r.startswith(target)]
    speedups = {row: table_1(row, task, "speedup") for row in rows}
    assert len(speedups) == 6
    fastest = max(speedups, key=speedups.get)
    assert rows_with_a_speed(target, task) == [fastest]


@pytest.mark.parametrize(
    "target, lost_tasks", [("Vicuna", ["Sum", "QA", "RAG"]), ("Llama", ["Sum"])]
)
def test_duodecodings_averages_are_quotients_of_mean_speeds_and_give_a_lost_one(
    target, lost_tasks
):
    row = f"{target} / DuoDec"
    plain = {task: plain_speed(target, task) for task in TASKS}
    average_speed = table_1(row, "Avg.", "TPS")
    average_speedup = table_1(row, "Avg.", "speedup")
    mean_plain = sum(plain.values()) / 7
    assert average_speedup * mean_plain == pytest.approx(average_speed, rel=0.004)

    printed = [table_1(row, task, "TPS") for task in TASKS if task not in lost_tasks]
    lost_speeds = 7 * average_speed - sum(printed)
    from_speedups = sum(table_1(row, t, "speedup") * plain[t] for t in lost_tasks)
    assert lost_speeds == pytest.approx(from_speedups, rel=0.003)
    if target == "Llama":  # as `about` says
        assert lost_speeds == pytest.approx(85.8, abs=0.05)


@pytest.mark.parametrize(
    "target, method, average",
    [
        ("Vicuna", "SpS", 1.42),
        ("Vicuna", "Lookahead", 1.35),
        ("Llama", "PLD", 2.10),
        ("Llama", "SpS", 1.80),
    ],
)
def test_duodecodings_averages_in_words_are_those_of_its_speed_ups(
    target, method, average
):
    """The averages of section 4.2, weighted with the speeds of plain decoding."""
    weights = [plain_speed(target, task) for task in TASKS]
    gains = [table_1(f"{target} / {method}", task, "speedup") for task in TASKS]
    assert np.average(gains, weights=weights) == pytest.approx(average, abs=0.01)


# -- clocks ----------------------------------------------------------------------------
CLOCKS = {
    "llama2-7b": ("Llama", "Avg."),
    "vicuna-7b": ("Vicuna", "Avg."),
    "llama2-7b-mt": ("Llama", "MT-Bench"),
    "llama2-7b-trans": ("Llama", "Trans"),
    "llama2-7b-math": ("Llama", "Math"),
    "llama2-7b-code": ("Llama", "Code"),
}


def seconds_of(clock: str, model: str) -> float:
    """Seconds of a pass by a latency file."""
    _, seconds = LATENCY[clock][model]["forward"][0]
    return seconds


def test_duodecodings_clocks_are_its_table_1_and_its_budget():
    assert set(LATENCY) == {*CLOCKS, "llama2-7b-sps", "vicuna-7b-sps"}
    budget = TABLES["paper"]["budget"]
    for clock, (target, task) in CLOCKS.items():
        target_seconds = seconds_of(clock, "target")
        plain = plain_speed(target, task)
        assert 1 / target_seconds == pytest.approx(plain, rel=1e-12)
        c = target_seconds / seconds_of(clock, "draft")
        assert c == pytest.approx(budget, rel=1e-12)
    for clock in ("llama2-7b", "vicuna-7b"):
        assert LATENCY[f"{clock}-sps"]["target"] == LATENCY[clock]["target"]


def geometric(alpha: float, n: int) -> float:
    """1 + alpha + ... + alpha^(n-1)."""
    return sum(alpha**i for i in range(n))


def root(formula: Callable[[float], float], value: float) -> float:
    """The alpha at which an increasing formula has a given value."""
    return float(brentq(lambda alpha: formula(alpha) - value, 0.0, 1.0))


def test_duodecodings_cost_of_a_gpu_draft_reproduces_its_named_cells():
    """At Math's acceptance with one sequence, 5 drafts and a pass give SpS's 2.35."""

    def gain_of_one_sequence(alpha: float) -> float:
        """By pre- and post-verify, c = 24."""
        return 1 / (1 - alpha + alpha / geometric(alpha, 24))

    gain = CELLS["table-3", "c", "Math"] / plain_speed("Llama", "Math")
    alpha = root(gain_of_one_sequence, gain)
    draft = seconds_of("llama2-7b-sps", "draft")
    share = draft / seconds_of("llama2-7b-sps", "target")
    speedup = geometric(alpha, 6) / (1 + 5 * share)
    assert speedup == pytest.approx(2.35, rel=1e-3)


def test_duodecodings_ceilings_follow_from_its_speculative_decoding():
    above = {}
    for task in TASKS:
        tokens = table_1("Llama / SpS", task, "speedup") * (1 + 5 * 0.16)
        alpha = root(lambda a: geometric(a, 6), tokens)
        limit = (1 + geometric(alpha, 24)) / 2  # every block's first token is found
        if table_1("Llama / DuoDec", task, "speedup") > limit + 0.1:
            above["Llama / DuoDec", f"{task} / speedup"] = round(limit, 2)

    assert above == computed_in_errata(TABLES["table-1"], "ceiling")


# -- Table 4 ---------------------------------------------------------------------------
def test_duodecodings_table_4_adds_up_and_reads_as_its_errata_say():
    cells = numbers_of(TABLES["table-4"])
    for label in ("=1", ">1", "Total"):
        row_sum = cells[label, "=1"] + cells[label, ">1"]
        assert row_sum == pytest.approx(cells[label, "Total"])
        column_sum = cells["=1", label] + cells[">1", label]
        assert column_sum == pytest.approx(cells["Total", label])

    of_several = cells["=1", ">1"] / cells["Total", ">1"]
    of_one = cells[">1", "=1"] / cells["Total", "=1"]
    errata = TABLES["table-4"]["errata"]
    in_errata = [entry["computed"] for entry in errata if "computed" in entry]
    assert [round(of_several, 3), round(of_one, 3)] == in_errata


# -- the paper's text, read a second time ----------------------------------------------
@pytest.mark.parametrize(
    "item, head, decimals",
    [
        ("table-1", "| Method |", 2),
        ("table-2", "| #Seq |", 2),
        ("table-3", "| Budget |", 2),
        ("table-4", "| =1 | >1 |", 3),
    ],
)
def test_duodecodings_cells_equal_the_text_in_order(item, head, decimals):
    text = text_of("duodecoding")
    paragraph = text[text.index(head) :].split("\n\n")[0]
    lines = paragraph.splitlines()[2:]
    numbers = [re.findall(r"(?<![\d.])\d+\.\d+(?![\d.])", line) for line in lines]
    printed = [of_line for of_line in numbers if of_line]
    ours: dict[str, list[str]] = {}
    for (cell_item, row, _), value in CELLS.items():
        if cell_item == item:
            ours.setdefault(row, []).append(f"{value:.{decimals}f}")
    assert printed[: len(ours)] == list(ours.values())
