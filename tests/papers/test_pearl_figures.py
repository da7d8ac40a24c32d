"""PEARL's figures: printed steps taken again, phases timed, the best draft lengths."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
from helpers.tables import SMALL, lines_of_kind, verdicts_of_kind

from speclab.experiment.run_cells import example_trace, run_all
from speclab.experiment.spec import Spec
from speclab.papers import table_rows
from speclab.papers.fill import fill
from speclab.papers.pearl_figures import best_lengths, virtual_lengths
from speclab.papers.table_cells import cells_to_run
from speclib import paths


# -- printed steps ---------------------------------------------------------------------
@pytest.mark.parametrize("item", ["table-9", "figure-3"])
def test_the_engine_takes_the_printed_steps(pearl_results, pearl, item):
    result, table = pearl_results[item], pearl.table(item)
    replayed = result.figure
    assert replayed.committed == tuple(step.committed for step in table.steps)
    assert replayed.accepted == tuple(len(step.accepted) for step in table.steps)
    output = []
    for step in replayed.committed:
        output += step
    assert tuple(output) == table.output
    assert result.values["virtual"] == result.values["paper"]


def test_figure_3_runs_on_the_printed_clock(pearl_results):
    replayed = pearl_results["figure-3"].figure
    assert replayed.starts == (0, 3, 6, 9)
    assert replayed.trace.makespan == pytest.approx(12)


# -- phases ----------------------------------------------------------------------------
def test_figure_2a_is_six_drafts_over_one_verification(pearl_results):
    values = pearl_results["figure-2a"].values["virtual"]
    pair = "CodeLlama 7B & 34B"
    phases = values["six drafts over one verification", pair]
    assert phases == pytest.approx(6 * 18.58 / 49.34)
    speeds = values["speed of the draft over the target", pair]
    assert speeds == pytest.approx(49.34 / 18.58)


# -- best draft lengths ----------------------------------------------------------------
def test_best_draft_lengths_fall_by_what_an_iteration_commits():
    """While a run of agreements lasts, the best length drops by gamma + 1."""
    lengths = virtual_lengths(
        Spec(
            kind="virtual",
            method="speculative",
            gamma=4,
            alpha=0.95,
            latency="pearl/codellama-7-34",
            requests=1,
            tokens=200,
        )
    )
    within_a_run = []
    for length, next_length in pairwise(lengths.values):
        if length > lengths.gamma:
            within_a_run.append((length, next_length))
    assert within_a_run
    for length, next_length in within_a_run:
        assert next_length == length - lengths.gamma - 1


def test_best_draft_lengths_by_hand():
    """Tokens 1 .. 8, the draft is wrong about the third; commits of 1, 2, 2 and 3."""
    agrees = [True, True, False, True, True, True, True, True]
    commits = [SimpleNamespace(tokens=(7,) * n) for n in (1, 2, 2, 3)]
    lengths = best_lengths(agrees, commits, 4)
    assert lengths.values == (2, 1, 5, 3)
    assert lengths.gamma == 4
    assert lengths.complete == 2  # the last two end with the output


def test_measured_best_draft_lengths_are_of_the_run_itself(
    pearl, monkeypatch, tmp_path
):
    """An iteration accepts the best length, or the window where that is shorter."""
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    monkeypatch.setattr(table_rows, "add_scripted_numbers", lambda *_, **__: None)
    table = pearl.table("figure-2b")
    toys = table.model_copy(
        update={
            "column": {"toys": {"pair": "toy"}},
            "settings": {**table.settings, "gamma": 4, "task": "toy"},
        }
    )
    toys.join(pearl.model_copy(update={"tables": {"figure-2b": toys}}))
    profile = replace(SMALL, tokens=100)

    result = fill(toys, profile, kinds=("measured",))
    lengths = list(result.values["measured"].values())
    (cell,) = cells_to_run(toys, profile, ("measured",))
    trace = example_trace(run_all([cell.spec])[cell.spec])
    accepted = []
    for event in trace.operations:
        if event.is_drafting:
            accepted.append(event.outcome.count("accepted"))

    assert len(lengths) == len(accepted) > 10
    assert min(accepted) < 4
    assert [min(4, best) for best in lengths[:-1]] == accepted[:-1]
    for row in lines_of_kind(result, "measured"):
        assert row.setup.startswith("toy@")
        assert "window is 4" in row.note


# -- items that are cells --------------------------------------------------------------
def test_theorem_2_holds_without_its_plus_one(pearl_results):
    """A run of drafts and its replacement is 1 / (1 - alpha) tokens; 2,048, seeded."""
    result = pearl_results["theorem-2"]
    values, column = result.values["virtual"], "E(accepted tokens)"
    assert values["0.0", column] == 1
    assert values["0.5", column] == pytest.approx(2, rel=0.1)
    assert values["0.75", column] == pytest.approx(4, rel=0.15)
    assert verdicts_of_kind(result, "virtual")["plus-one-at-0.0"].holds == "no"


def test_run_counts_are_those_of_164_prompts_of_1024_tokens(pearl_results):
    """Not scaled to print: Table 11's counts come out by themselves."""
    result = pearl_results["table-11"]
    for row in ("Deepseek 6.7B&33B", "Codellama 7B&70B"):
        assert abs(result.error(row, "Target Model (SD)")) < 0.06
