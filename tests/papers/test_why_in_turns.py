"""From EasySpec's printed seconds to measured ones, in rows whose cause is known.

The rows come from toys on the virtual clock. They differ from the paper in only one
latency, apart from chance and the ends of short texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
from helpers.tables import rows_of

import speclab
from speclab.papers import virtual_numbers
from speclab.papers.fill import Known
from speclab.papers.load_papers import load_paper
from speclab.papers.table_cells import cells_to_run
from speclab.runs.rows import Row, Rows, key_of, read
from speclab.virtual.settle import outcomes_of, toy_cell
from speclab.virtual.toy_requests import run_requests
from speclib import Latency, SpeclibError, load_latency, paths

pytestmark = pytest.mark.slow

CELL = ("easyspec", "table-2", "Llama-3 / T=0 / HumanEval", "EasySpec / total")
ON_EIGHT = load_latency("easyspec/llama3-8-70-tp8")
ALONE = load_latency("easyspec/llama3-8-70-tp1")
TEXTS = 20
BY_CHANCE = 0.005


@pytest.fixture(scope="module", autouse=True)
def predicted_once() -> Iterator[None]:
    """All tests share the prediction of the row's number."""
    with pytest.MonkeyPatch.context() as patch:
        module = "speclab.papers.why_in_turns"
        patch.setattr(f"{module}.outcomes_of", cache(outcomes_of))
        yield


@pytest.fixture(autouse=True)
def few_texts(monkeypatch) -> None:
    """Simulates as many texts as the rows have, with the same seeds."""
    monkeypatch.setattr("speclab.papers.why_in_turns.SHORT_TEXTS", TEXTS)


def found(parallel: Latency = ON_EIGHT, waited: float = 0.0) -> list[Row]:
    """Runs of the row's cells, made by toys.

    parallel  seconds of passes on several devices
    waited    seconds of a round in which nothing works
    """
    cells = {
        cell.key: cell for cell in cells_to_run(load_paper(CELL[0]).table(CELL[1]))
    }
    rows = []
    for column in ("vanilla / total", "TP / total", "+sd / total", CELL[3]):
        measured, virtual = (
            cells[CELL[2], column, kind].spec for kind in ("measured", "virtual")
        )
        toys = toy_cell(virtual.changed(tokens=measured.tokens))
        latency = ALONE if column.startswith("vanilla") else parallel
        *_, row = rows_of(measured, seconds=(1.0,), plain=(1.0,))
        for number, stats in enumerate(
            run_requests(replace(toys, latency=latency), TEXTS)
        ):
            is_own = column == CELL[3]
            seconds = stats.steps * waited if is_own else 0.0
            stats = replace(stats, step_seconds=stats.step_seconds + seconds)
            place = {"prompt": number, "group": f"{measured.task} {number}"}
            gamma = virtual.gamma
            key = key_of(measured)
            rows.append(replace(row, key=key, gamma=gamma, stats=stats, **place))
    return rows


def why_of(rows: list[Row]):
    known = Known(Rows(rows), virtual=virtual_numbers.read(), machine="here")
    return speclab.why(*CELL, known=known)


def shares(reconciled) -> dict[str, float]:
    """The relative change by each cause after the prediction."""
    changes = {change.cause: change for change in reconciled.changes}
    return {
        name: changes[name].after / changes[name].before - 1
        for name in (
            "tensor parallelism",
            "cost ratio",
            "approximate passes",
            "acceptance",
            "longer passes",
            "messages",
            "not explained",
        )
    }


def test_it_begins_with_the_print_and_ends_with_the_measurement():
    reconciled = why_of(found())
    assert reconciled.causes[0] == ("printed", 11.79 / 3.24)
    assert list(shares(reconciled).values()) == pytest.approx([0] * 7, abs=BY_CHANCE)
    assert reconciled.not_explained < 0.01


def test_the_printed_seconds_of_verification_are_a_step_to_the_prediction():
    """1.57 s per 100 tokens are printed; the pass of Table 1 over 1 + 5 x 0.87 tokens
    is 1 / 13.23 s, which makes 1.41."""
    changes = {change.cause: change for change in why_of(found()).changes}
    verification = changes["verification"]
    seconds = 100 / 13.23 / (1 + 5 * 0.87)
    before, after = (11.92 / verification.before, 11.92 / verification.after)
    assert before - after == pytest.approx(1.57 - seconds, abs=0.02)


def test_tensor_parallelism_explains_a_slower_target_on_several_devices():
    """Drafting takes 1.60 and verification 1.40 of 3.00: the second part doubles."""
    slower = replace(ON_EIGHT, target=Latency.ratio(1, 2 * ON_EIGHT.target(1)).target)
    found_shares = shares(why_of(found(slower)))
    assert found_shares.pop("tensor parallelism") == pytest.approx(
        3.0 / 4.4 - 1, abs=0.01
    )
    assert list(found_shares.values()) == pytest.approx([0] * 6, abs=BY_CHANCE)


def test_approximate_passes_explain_layers_that_gain_nothing_together():
    """One exact pass and four approximate ones become five exact ones."""
    exact, approximate = ON_EIGHT.draft(1), ON_EIGHT.fuzzy.curve(1)
    without = replace(ON_EIGHT, fuzzy=replace(ON_EIGHT.fuzzy, curve=ON_EIGHT.draft))
    found_shares = shares(why_of(found(without)))
    target = ON_EIGHT.target(1)
    expected = (exact + 4 * approximate + target) / (5 * exact + target) - 1
    assert found_shares.pop("approximate passes") == pytest.approx(expected, abs=0.03)
    assert list(found_shares.values()) == pytest.approx([0] * 6, abs=BY_CHANCE)


def test_messages_explain_the_time_in_which_no_model_works():
    """A round drafts for 0.087 s and verifies for 0.076; here it takes 0.163 s more."""
    found_shares = shares(why_of(found(waited=0.163)))
    assert found_shares.pop("messages") == pytest.approx(-0.5, abs=0.01)
    assert list(found_shares.values()) == pytest.approx([0] * 6, abs=BY_CHANCE)


def test_a_cell_that_was_not_run_is_named():
    with pytest.raises(SpeclibError, match="'EasySpec / total': it, or speculative"):
        why_of([])


@pytest.fixture(scope="module")
def published() -> Known:
    files = (paths.DATA / "runs").glob("*[0-9a-f].csv")  # not those of values
    rows = Rows(row for path in files for row in read(path))
    return Known(rows, virtual=virtual_numbers.read())


def test_each_row_has_its_own_printed_parts(published):
    """MATH has the same accepted share, 0.94, but HumanEval prints 1.53 and 1.49."""
    cell = (*CELL[:2], "Llama-3 / T=0.8 / HumanEval", CELL[3])
    printed, own_sum, *_ = speclab.why(*cell, known=published).causes
    assert printed.speedup == pytest.approx(11.79 / 3.02)
    assert own_sum.speedup == pytest.approx(11.79 / (1.53 + 1.49))


def test_the_published_runs_are_explained(published):
    reconciled = speclab.why(*CELL, known=published)
    assert reconciled.not_explained < 0.05
    assert shares(reconciled)["tensor parallelism"] < -0.4  # two cores, one memory
