"""Emulated cells: the virtual cell's decisions on real processes, cached, and reported or not."""

from __future__ import annotations

import threading

import pytest

from speclib import paths
from speclib.data import latency
from speclib.experiment import cache_keys, machine
from speclib.experiment.cells import emulated as emulated_cells
from speclib.experiment.engines import emulated as emulating
from speclib.experiment.engines import virtual as simulating
from speclib.experiment.engines import virtual_cell
from speclib.experiment.run_cells import CellsFailed, example_trace, run_all
from speclib.experiment.spec import CellResult, Profile, Spec
from speclib.papers.fill import fill
from speclib.papers.load import load_paper
from speclib.papers.table_cells import cells_to_run
from speclib.reproduce.book import of_another_machine
from speclib.trace.metrics import Stats, total
from speclib.views.charts.choose import chart
from speclib.views.tables.html import section_html
from speclib.views.tables.markdown import section_md

TIMES = {
    "seconds",
    "with_tail_seconds",
    "ttft",
    "draft_seconds",
    "target_seconds",
    "overruns",
    "step_seconds",
    "step_busy",
    "step_draft",
    "step_target",
    "step_verify",
}
SMALL = Profile("small", 2_048, 1, 8, 1, 2, 8)


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    """A cache, and latencies of a few milliseconds, or of none that a process can keep."""
    (tmp_path / "latency").mkdir()
    for name, draft, target in (("quick", 0.002, 0.006), ("impossible", 1e-9, 3e-9)):
        (tmp_path / "latency" / f"{name}.toml").write_text(
            "".join(
                f"[{model}]\nforward = [[1, {seconds}]]\nprefill = 0.0\n"
                for model, seconds in (("draft", draft), ("target", target))
            )
        )
    for module in (latency, virtual_cell, emulating):
        monkeypatch.setattr(module, "DATA", tmp_path)
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")


def emulated(method="pearl", gamma=3, **changes) -> Spec:
    return Spec(
        **{
            "kind": "emulated",
            "method": method,
            "gamma": gamma,
            "latency": "quick",
            "alpha": 0.8,
            "requests": 3,
            "tokens": 24,
        }
        | changes
    )


def identity(event) -> int:
    return event.id


def counts(run: CellResult) -> list[dict]:
    return [{k: v for k, v in vars(s).items() if k not in TIMES} for s in run.stats]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_emulated_cell_decides_as_the_virtual_one(temperature):
    for spec in (
        emulated(temperature=temperature),
        emulated("speculative", 4, alpha=0.6, temperature=temperature),
    ):
        twin = spec.but(kind="virtual")
        runs = run_all([spec, twin])
        assert counts(runs[spec]) == counts(runs[twin])
        traces = example_trace(runs[spec]), simulating.example_trace(twin, spec.tokens)
        events = [
            [
                (e.op, e.round, e.tokens, e.outcome)
                for e in sorted(t.events, key=identity)
            ]
            for t in traces
        ]
        assert events[0] == events[1]
        assert {e.clock for e in example_trace(runs[spec]).events} == {"emulated"}


def test_no_cell_is_faster_than_its_virtual_twin_and_says_by_how_much():
    spec = emulated()
    runs = run_all([spec, spec.but(kind="virtual")])
    facts, (ours, twins) = (
        runs[spec].facts,
        (total(r.stats).seconds for r in runs.values()),
    )
    assert (
        facts["over_virtual"] == pytest.approx(ours / twins, abs=1e-4) and ours > twins
    )
    assert 0 <= facts["overruns"] <= 1
    assert runs[spec].machine == machine.name() and runs[spec].c == pytest.approx(3)


def test_methods_of_a_latency_share_one_emulated_baseline():
    plain, pearl = emulated("autoregressive", None), emulated()
    sd = emulated("speculative", 4, alpha=0.6)
    runs = run_all([plain, pearl, sd])
    assert runs[plain].stats == runs[pearl].baseline == runs[sd].baseline
    assert [s.tokens for s in runs[sd].baseline] == [24, 24, 24]
    again = run_all([plain, pearl, sd])
    assert all(again[s].cached and again[s].stats == runs[s].stats for s in runs)


def test_the_best_window_is_that_of_the_virtual_search():
    spec = emulated("speculative", "best", requests=1)
    runs = run_all([spec, spec.but(kind="virtual")])
    assert runs[spec].gamma == runs[spec.but(kind="virtual")].gamma
    assert (
        runs[spec].facts["searched"] == runs[spec.but(kind="virtual")].facts["searched"]
    )


def test_operations_too_fast_to_emulate_are_overruns():
    run = run_all([s := emulated(latency="impossible", requests=1)])[s]
    kept = 1  # the target's prefill, which takes no time
    assert run.facts["overruns"] == 1 - kept / run.stats[0].operations > 0.9


def test_an_interrupted_cell_goes_on_at_its_next_request(monkeypatch):
    real, asked, plain = emulated_cells.trace_request, [], threading.Event()

    def interrupted(cell, request, on_commit):
        if cell.method.__name__ == "pearl":
            asked.append(request)
            if len(asked) == 2:
                plain.wait(30)  # the other cell has begun
                raise KeyboardInterrupt
        elif request == 1:
            plain.set()
        return real(cell, request, on_commit)

    monkeypatch.setattr(emulated_cells, "trace_request", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_all([emulated()])
    assert asked == [0, 1]
    run = run_all([emulated()])[emulated()]
    assert asked == [0, 1, 1, 2] and len(run.stats) == len(run.baseline) == 3


def test_a_cell_that_fails_leaves_the_others(monkeypatch):
    real = emulated_cells.trace_request

    def broken(cell, request, on_commit):
        if cell.method.__name__ == "speculative":
            raise ZeroDivisionError("no draft")
        return real(cell, request, on_commit)

    monkeypatch.setattr(emulated_cells, "trace_request", broken)
    good, bad, none = emulated(), emulated("speculative"), emulated(latency="nowhere")
    with pytest.raises(CellsFailed, match="2 of 3 cells") as failed:
        run_all([good, bad, none])
    assert set(failed.value.results) == {good}
    assert "no draft" in str(failed.value.errors[bad])
    assert "no latency file 'nowhere'" in str(failed.value.errors[none])


def test_a_cell_depends_on_processes_machine_and_latency(tmp_path, monkeypatch):
    keys = [emulating.key_of(emulated())]
    monkeypatch.setattr(machine, "environment", lambda: (("cpu", "another"),))
    keys.append(emulating.key_of(emulated()))
    (tmp_path / "latency" / "quick.toml").write_text("# another\n")
    keys.append(emulating.key_of(emulated()))
    assert len({*keys, virtual_cell.key_of(emulated().but(kind="virtual"))}) == 4
    names = cache_keys.imported_modules(emulating.CODE)
    assert {
        "speclib.worlds.processes",
        "speclib.worlds.worker",
        "speclib.models.toy",
    } <= set(names)
    assert not {"speclib.experiment", "speclib.methods.speculative"} & set(names)


# -- in tables -------------------------------------------------------------------------
@pytest.fixture
def filled(monkeypatch):
    """Table 1, emulated: plain decoding in 4 s, all else in 2; DeepSeek's with overruns."""
    monkeypatch.undo()

    def made_up(specs, progress=None):
        ours = [Stats(1, 9, 1, 2.0, 0.5, 4, 8, 6, 1, 8, 4, 1.0, 1.0)] * 2
        plain = [Stats(1, 9, 1, 4.5, 0.5, 9, 0, 0, 0, 0, 9, 0.0, 4.0)] * 2
        return {
            s: CellResult(
                s,
                ours,
                plain,
                7,
                3.0,
                "xeon-2c-ab12cd",
                created="2026-01-02 03:04",
                facts={
                    "searched": {"5": 1.0, "7": 2.0},
                    "over_virtual": 1.0123,
                    "overruns": 0.011 if "deepseek-6.7" in s.latency else 0.01,
                },
            )
            for s in specs
        }

    monkeypatch.setattr("speclib.papers.fill.run_all", made_up)
    return fill(load_paper("pearl").table("table-1"), SMALL, kinds=("emulated",))


def row(filled, column: str):
    return next(
        r
        for r in filled.rows
        if r.kind == "emulated"
        and r.column == column
        and r.row == "Speculative Decoding"
    )


def test_an_emulated_row_names_latency_machine_window_ratio_and_overruns(filled):
    found = row(filled, "Llama2 7&70B")
    assert found.setup == "pearl/llama2-7-70@xeon-2c-ab12cd" and of_another_machine(
        found
    )
    assert found.value == pytest.approx((8 / 1.5) / (8 / 4.0)) and found.n == 2
    for words in (
        "gamma 7, best of 5..7 on the virtual clock",
        "virtual clock x1.012",
        "overruns 1.0%",
        "alpha 0.9",
    ):
        assert words in found.note
    assert found.source == "emulated 2026-01-02 03:04"
    here = found._replace(setup=f"pearl/llama2-7-70@{machine.name()}")
    assert not of_another_machine(here)


def test_more_than_one_percent_of_overruns_leaves_the_cell_empty_with_the_reason(
    filled,
):
    found = row(filled, "DeepSeek 6.7&33B")
    assert found.value is found.low is found.high is None
    assert found.note.startswith("not reported: ") and "overruns 1.1%" in found.note
    assert (found.row, found.column) not in filled.values["emulated"]
    for text in (section_md(filled), section_html(filled)):
        assert (
            text.count(">not reported<" if "<td" in text else "| not reported |") == 4
        )


def test_emulated_claims_are_judged_beside_the_printed_ones(filled):
    verdicts = {(c.claim, c.kind): c for c in filled.claims}
    assert verdicts["below-c", "emulated"].holds == "yes"
    assert verdicts["below-c", "paper"].holds == "yes"
    assert ("is-table-6-llama2", "emulated") not in verdicts
    assert "error emulated" in filled.frame()["Llama2 7&70B"]


def test_emulated_numbers_have_their_place_in_charts(filled):
    assert [panel.text for panel in chart(filled).layout.annotations] == [
        "paper",
        "emulated",
    ]


def test_an_emulated_cell_is_as_long_as_the_profile_says_and_calibrates_as_the_virtual(
    paper,
):
    cells = {
        k: cells_to_run(paper.table("table-1"), SMALL, (k,))
        for k in ("virtual", "emulated")
    }
    assert {(w.spec.requests, w.spec.tokens) for w in cells["emulated"]} == {(2, 8)}
    assert [w.calibrates for w in cells["emulated"]] == [
        w.calibrates for w in cells["virtual"]
    ]


@pytest.fixture
def paper(monkeypatch):
    monkeypatch.undo()
    return load_paper("pearl")
