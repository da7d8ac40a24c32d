"""From the printed number to the measured one, in rows whose cause is known.

The rows come from toys on the virtual clock, which differ from the paper's inputs in
only one respect. Texts are short and few, so chance and their ends are causes, too.
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
from speclab.runs.spec import Spec
from speclab.virtual.settle import outcomes_of
from speclab.virtual.toy_requests import ToyCell, run_requests
from speclib import Latency, SpeclibError, load_latency, paths
from speclib.methods import METHODS

pytestmark = pytest.mark.slow

CELL = ("pearl", "table-1", "PEARL (ours)", "CodeLlama 7&34B")
PAPERS = load_latency("pearl/codellama-7-34")  # its c is 2.66, so PEARL's window is 3
ALPHA = load_paper("pearl").alpha("codellama-7-34")
PROMPTS = 60
BY_CHANCE = ("short texts", "acceptance", "not explained")


@pytest.fixture(scope="module", autouse=True)
def predicted_once() -> Iterator[None]:
    """All tests of a window share the prediction of its number."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("speclab.papers.why.outcomes_of", cache(outcomes_of))
        yield


@pytest.fixture
def few_texts(monkeypatch) -> None:
    """Simulates as many texts as the rows have."""
    monkeypatch.setattr("speclab.papers.why.SHORT_TEXTS", PROMPTS)


def rows(spec: Spec, latency: Latency = PAPERS, alpha=ALPHA, gamma=None) -> list[Row]:
    """Runs of a measured cell, made by toys."""
    settings = {} if gamma is None else {"gamma": gamma}
    cell = ToyCell(METHODS[spec.method], latency, alpha, spec.tokens, settings)
    *_, row = rows_of(spec, seconds=(1.0,), plain=(1.0,))
    made = []
    for number, stats in enumerate(run_requests(cell, PROMPTS)):
        group = f"{spec.task} {number}"
        row = replace(row, key=key_of(spec), gamma=gamma, prompt=number, group=group)
        made.append(replace(row, stats=stats))
    return made


def found(beside: Latency = PAPERS, busy: Latency | None = None, gamma=3, **how):
    """The causes behind PEARL's number.

    beside  seconds of passes while the other model is idle
    busy    the same while both work
    """
    measured = {
        cell.row: cell.spec
        for cell in cells_to_run(load_paper("pearl").table(CELL[1]), ("measured",))
        if cell.column == CELL[3]
    }
    return [
        *rows(measured["Auto Regressive"], beside),
        *rows(measured["Speculative Decoding"], beside, gamma=5),
        *rows(measured[CELL[2]], busy or beside, gamma=gamma, **how),
    ]


def why_of(known: list[Row]):
    return speclab.why(
        *CELL, known=Known(Rows(known), virtual=virtual_numbers.read(), machine="here")
    )


def others(reconciled, *causes: str) -> list[float]:
    """The relative changes by all other causes after the prediction."""
    after = [change for change in reconciled.changes if change.cause in AFTER]
    return [
        change.after / change.before - 1
        for change in after
        if change.cause not in (*causes, *BY_CHANCE)
    ]


AFTER = (
    "window",
    "short texts",
    "cost ratio",
    "acceptance",
    "longer passes",
    "both at work",
    "uneven passes",
    "messages",
    "not explained",
)


def level(reconciled, cause: str) -> tuple[float, float]:
    """The speed-up before and after a cause is included."""
    (change,) = (c for c in reconciled.changes if c.cause == cause)
    return change.before, change.after


def test_it_begins_with_the_print_and_ends_with_the_measurement(few_texts):
    reconciled = why_of(found())
    assert [cause.name for cause in reconciled.causes] == [
        "printed",
        "unexplained by its tables",
        "predicted",
        *AFTER,
    ]
    assert reconciled.causes[0].speedup == 2.48  # Table 1
    assert others(reconciled) == pytest.approx([0] * 6, abs=0.01)
    assert reconciled.not_explained < 0.05


def test_another_table_of_the_paper_is_a_cause(few_texts):
    """Table 14's best window is 33.57 tok/s, and Table 10's plain decoding 18.58."""
    cell = (*CELL[:2], "Speculative Decoding", CELL[3])
    known = Known(Rows(found()), virtual=virtual_numbers.read(), machine="here")
    by_turns = speclab.why(*cell, known=known)
    assert level(by_turns, "its own tables") == pytest.approx(
        (1.76, 33.57 / 18.58), abs=1e-3
    )
    assert "both at work" not in by_turns.shares


def test_the_window_explains_a_shorter_window(few_texts):
    """With a window of 2, a target pass gives at most two tokens."""
    reconciled = why_of(found(gamma=2))
    _, after = level(reconciled, "window")
    assert 1.7 < after < 2
    assert others(reconciled, "window") == pytest.approx([0] * 5, abs=0.01)


def test_the_cost_ratio_explains_a_draft_of_half_the_speed(few_texts):
    """Three drafts outlast a target pass, so rounds take twice as long, except for some
    last ones, which draft less."""
    slow = Latency.ratio(PAPERS.c / 2, PAPERS.target(1))
    reconciled = why_of(found(slow))
    before, after = level(reconciled, "cost ratio")
    assert before / 2 < after < before / 1.8
    assert others(reconciled, "cost ratio") == pytest.approx([0] * 5, abs=0.01)


def test_the_acceptance_explains_rejected_drafts(few_texts):
    reconciled = why_of(found(alpha=0.3))
    before, after = level(reconciled, "acceptance")
    assert after < 0.7 * before
    assert others(reconciled) == pytest.approx([0] * 6, abs=0.01)


def test_longer_passes_explain_passes_that_grow_with_their_tokens(few_texts):
    grown = replace(PAPERS, target=PAPERS.target.lengthened(0.3))
    reconciled = why_of(found(grown))
    before, after = level(reconciled, "longer passes")
    assert after < 0.9 * before
    assert others(reconciled, "longer passes") == pytest.approx([0] * 5, abs=0.05)


def test_both_at_work_explains_passes_that_slow_each_other_down(few_texts):
    """All of PEARL's passes take 1.3 times as long, and so does PEARL."""
    busy = Latency.ratio(PAPERS.c, 1.3 * PAPERS.target(1))
    reconciled = why_of(found(busy=busy))
    before, after = level(reconciled, "both at work")
    assert after == pytest.approx(before / 1.3, rel=0.01)
    assert others(reconciled, "both at work") == pytest.approx([0] * 5, abs=0.01)


def test_messages_explain_the_time_in_which_no_model_works(few_texts):
    """A round takes three draft passes, and here the same time again without work."""
    known = found()
    round_seconds = 3 * PAPERS.draft(1)
    waited = []
    for row in known:
        if row.key.method == "pearl":
            seconds = row.stats.steps * round_seconds
            stats = replace(
                row.stats,
                seconds=row.stats.seconds + seconds,
                step_seconds=row.stats.step_seconds + seconds,
            )
            row = replace(row, stats=stats)
        waited.append(row)
    reconciled = why_of(waited)
    before, after = level(reconciled, "messages")
    assert after == pytest.approx(before / 2, rel=0.02)
    assert others(reconciled, "messages") == pytest.approx([0] * 5, abs=0.01)


def test_a_cell_without_such_a_number_is_refused_and_named(few_texts):
    with pytest.raises(SpeclibError, match="'Ouroboros', 'CodeLlama 7&34B' is no"):
        speclab.why(*CELL[:2], "Ouroboros", CELL[3])
    with pytest.raises(SpeclibError, match="was not run: `PAPER=pearl make reproduce`"):
        why_of([])


@pytest.mark.parametrize(
    "pair",
    [
        "CodeLlama 7&34B",
        pytest.param("CodeLlama 7&70B", marks=pytest.mark.thorough),
        pytest.param("Llama2 7&70B", marks=pytest.mark.thorough),
    ],
)
def test_almost_nothing_of_the_published_runs_remains_unexplained(pair):
    files = (paths.DATA / "runs").glob("*[0-9a-f].csv")  # the files of rows
    published = Rows(row for path in files for row in read(path))
    known = Known(published, virtual=virtual_numbers.read())
    assert speclab.why(*CELL[:3], pair, known=known).not_explained < 0.05
