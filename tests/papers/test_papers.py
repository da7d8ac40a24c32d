"""Tables: read strictly, filled by kind, calibrated on what is printed, claims judged."""

from __future__ import annotations

import csv
import math
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from speclib import papers, paths
from speclib.data.latency import load_latency
from speclib.errors import SpeclibError
from speclib.experiment import machine
from speclib.experiment.run_cells import CellsFailed, example_trace, run_all
from speclib.experiment.spec import FULL, QUICK, CellResult, Profile, Spec
from speclib.papers import claims, rows
from speclib.papers import pearl_figures as items
from speclib.papers import statistics as quantities
from speclib.papers.bootstrap import interval
from speclib.papers.fill import fill, fill_all
from speclib.papers.ledger import KEY, LedgerRow, merge, read_ledger, write_ledger
from speclib.papers.load import load_paper
from speclib.papers.schema import Claim, Paper, Table
from speclib.papers.table_cells import cells_to_run
from speclib.papers.table_result import TableResult
from speclib.theory import closed_forms as theory
from speclib.trace.metrics import Stats

SMALL = Profile("small", 2_048, 1, 8, 1, 1, 8)


@pytest.fixture(scope="module")
def paper():
    return load_paper("pearl")


@pytest.fixture(scope="module")
def small(paper, tmp_path_factory):
    """Some tables filled virtually, with few tokens, in a cache of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "CACHE", tmp_path_factory.mktemp("cache"))
        return fill_all(
            paper,
            SMALL,
            [
                "table-4",
                "table-7",
                "table-9",
                "table-11",
                "figure-2a",
                "figure-2b",
                "figure-3",
                "theorem-2",
            ],
            kinds=("virtual",),
        )


# -- reading -------------------------------------------------------------------------------------
def test_every_table_of_the_paper_is_there_in_order(paper):
    numbers = [
        int(item.split("-")[1]) for item in paper.tables if item.startswith("table")
    ]
    assert numbers == list(range(1, 19))
    assert list(paper.tables)[-2:] == ["blog-figure-1", "extra-1"]
    assert paper.tables["table-5"].printed("3", "CodeLlama 7&34") == 46.06


def test_settings_merge_and_names_are_filled_in(paper):
    assert (
        paper.table("table-7").settings_of("Speculative Decoding", "CodeLlama 7B&70B")[
            "gamma"
        ]
        == 10
    )
    assert (
        paper.table("table-8").settings_of("Llama 3.1 8b&70b", "Math")["alpha"]
        == "llama31-mt-bench-math"
    )


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(paths.DATA / "papers" / "pearl", tmp_path / "pearl")


@pytest.mark.parametrize(
    "file, old, new, says",
    [
        ("table-5.toml", 'unit = "tok/s"', 'unit = "tok/s"\nunits = "s"', "units"),
        (
            "table-5.toml",
            "gamma = 2",
            "gama = 2",
            r'\[row\."2"\] has the unknown setting .gama.; kn',
        ),
        ("table-5.toml", 'kind = "argmax"', 'kind = "best"', r"claims\.0\.kind"),
        ("table-5.toml", "33.25", '"fast"', r"cells\.0\.2"),
        ("table-5.toml", 'item = "table-5"', 'item = "table-50"', "table-50"),
        ("table-5.toml", 'item = "table-5"', "item = ", "not valid TOML"),
        (
            "calibration.toml",
            '[codellama-7-34]\nsolve = "mat"',
            '[codellama-7-34]\nsolve = "guess"',
            "codellama-7-34.*solve",
        ),
        ("paper.toml", "year = 2025", "", "year"),
    ],
)
def test_a_bad_file_is_named_with_its_key(folder, file, old, new, says):
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))
    with pytest.raises(SpeclibError, match=rf"(?s){file}.*{says}"):
        load_paper.__wrapped__("pearl", folder)


def test_unknown_papers_items_and_calibrations_list_the_known(paper):
    known = "dsi, duodecoding, easyspec, pearl"
    with pytest.raises(SpeclibError, match=f"no paper 'perl'.*known: {known}"):
        load_paper("perl")
    with pytest.raises(SpeclibError, match="no 'table-99'; known: figure-2a"):
        paper.table("table-99")
    with pytest.raises(SpeclibError, match="no entry 'gpt'; known: codellama-7-34"):
        paper.alpha("gpt")


# -- calibration ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name", ["codellama-7-34", "codellama-7-70", "deepseek-1.3-33", "deepseek-6.7-33"]
)
def test_calibration_gives_back_the_printed_quantity(paper, name):
    how = paper.calibration[name]
    assert theory.sd_accepted(paper.alpha(name), how.gamma) == pytest.approx(
        paper.printed(*how.cell), abs=1e-4
    )


def test_every_calibration_of_the_paper_has_a_solution(paper):
    rates = {name: paper.alpha(name) for name in paper.calibration}
    assert all(0.6 < alpha < 0.99 for alpha in rates.values()), rates
    assert paper.alpha(0.8) == 0.8


def test_virtual_cells_that_only_echo_their_calibration_say_so(small):
    rows = [r for r in small["table-7"].rows if r.kind == "virtual"]
    assert {r.row for r in rows if "calibration" in r.note} == {"Speculative Decoding"}
    for r in rows:
        if "calibration" in r.note:  # 2,048 tokens leave some 3 %
            printed = small["table-7"].values["paper"][r.row, r.column]
            assert r.value == pytest.approx(printed, rel=0.08)


# -- filling -------------------------------------------------------------------------------------
def test_every_kind_has_its_own_rows_and_no_key_twice(small):
    rows = [r for filled in small.values() for r in filled.rows]
    assert len({r[:KEY] for r in rows}) == len(rows)
    assert {r.kind for r in rows} == {"paper", "virtual"}
    assert all(r.setup == "" and r.low is None for r in rows if r.kind == "paper")
    assert all(r.setup for r in rows if r.kind == "virtual")
    for r in small["table-4"].rows:
        if r.kind == "virtual":
            assert r.low <= r.value <= r.high and r.n == 2 + 6 * ("Llama 2" in r.column)


def test_lost_and_absent_cells_are_rows_without_a_value(paper):
    rows = fill(paper.table("table-1"), SMALL, kinds=()).rows
    absent = [r for r in rows if r.note == "not printed"]
    assert {(r.row, r.column) for r in absent} == {
        ("Ouroboros", "Llama3.1 8&70B"),
        ("Lookahead Decoding", "Llama3.1 8&70B"),
    }
    lost = [
        r
        for r in fill(paper.table("figure-2a"), SMALL, kinds=()).rows
        if r.note == "lost"
    ]
    assert [(r.row, r.value) for r in lost] == [("bars", None)]


def test_the_frame_has_rows_as_printed_and_a_column_per_kind(small):
    frame = small["table-4"].frame()
    assert list(frame.index) == [
        "PEARL w/o pre-verify",
        "PEARL w/o post-verify",
        "PEARL",
    ]
    assert list(frame["CodeLlama 7B&34B"].columns) == ["paper", "virtual", "error"]
    cell = frame.loc["PEARL", "CodeLlama 7B&34B"]
    assert cell["paper"] == 2.35 and cell["error"] == pytest.approx(
        cell["virtual"] / 2.35 - 1
    )


def test_only_the_kinds_and_cells_a_table_has_are_run(paper):
    assert cells_to_run(paper.table("table-2"), QUICK) == []
    kinds = {w.kind for w in cells_to_run(paper.table("table-7"), QUICK)}
    assert kinds == {"virtual", "measured"}
    printed = {
        (w.row, w.column)
        for w in cells_to_run(paper.table("table-14"), QUICK)
        if "bf16" not in w.column
    }
    assert len(printed) == 20  # no window that the paper did not try
    methods = {w.spec.method for w in cells_to_run(paper.table("table-1"), QUICK)}
    assert methods == {"autoregressive", "speculative", "assisted", "pearl"}


def test_tables_share_their_measured_cells(paper):
    specs = {
        item: {w.spec for w in cells_to_run(paper.table(item), QUICK, ("measured",))}
        for item in (
            "table-1",
            "table-4",
            "table-7",
            "table-15",
            "figure-2a",
            "figure-2b",
        )
    }
    pearl = {s for s in specs["table-1"] if s.method == "pearl"}
    assert specs["table-15"] < pearl and specs["figure-2a"] < specs["table-7"]
    assert specs["figure-2b"] < specs["table-1"]
    assert {s for s in specs["table-7"] if s.method == "pearl"} < pearl
    assert {
        s for s in specs["table-4"] if s.task == "humaneval" and not s.settings
    } < pearl


def test_a_window_sweep_is_measured_on_half_the_prompts(paper):
    def prompts(item, profile):
        return {
            w.spec.requests
            for w in cells_to_run(paper.table(item), profile, ("measured",))
        }

    for item in ("table-5", "table-6", "table-14"):
        assert prompts(item, FULL) == {4} and prompts(item, QUICK) == {1}
    assert prompts("table-1", FULL) == prompts("table-11", FULL) == {8}


def test_bfloat16_columns_stand_beside_float32_where_the_machine_computes_it(
    paper, monkeypatch
):
    def columns(item, instructions):
        monkeypatch.setattr(machine, "_cpuinfo", lambda name: instructions)
        return {
            w.column: w.spec.dtype
            for w in cells_to_run(paper.table(item), QUICK, ("measured",))
        }

    for item, column in (
        ("table-1", "Llama2 7&70B"),
        ("table-5", "CodeLlama 7&34"),
        ("table-14", "codellama 7&34B"),
    ):
        with_it, without = columns(item, "avx2 amx_bf16"), columns(item, "avx2")
        assert (with_it[column], with_it[f"{column}, bf16"]) == ("auto", "bfloat16")
        assert f"{column}, bf16" not in without and column in without


def test_claims_look_for_no_print_in_the_engines_own_columns(paper):
    for item in ("table-1", "table-5", "table-14"):
        claims = fill(paper.table(item), SMALL, kinds=()).claims
        assert not any(
            "bf16" in c.note + c.expected for c in claims if c.kind == "paper"
        )


def test_a_failed_cell_is_an_empty_row_and_an_error_with_its_name(paper, monkeypatch):
    def failing(specs, progress=None):
        raise CellsFailed({}, {s: RuntimeError("out of memory") for s in specs})

    monkeypatch.setattr("speclib.papers.fill.run_all", failing)
    filled = fill(paper.table("table-5"), SMALL, kinds=("virtual",))
    assert len(filled.errors) == 15
    assert all(name.startswith("table-5, ") for name in filled.errors)
    broken = [r for r in filled.rows if r.kind == "virtual"]
    assert {r.value for r in broken} == {None} and "out of memory" in broken[0].note
    assert filled.values["paper"] and "virtual" not in filled.values


def test_measured_rows_name_pair_machine_dtype_and_threads(paper, monkeypatch):
    def made_up(specs, progress=None):
        stats = [Stats(1, 9, 1, 2.0, 0.5, 4, 8, 6, 1, 8, 4, 1.0, 1.0)] * 2
        plain = [Stats(1, 9, 1, 4.5, 0.5, 9, 0, 0, 0, 0, 9, 0.0, 4.0)] * 2
        facts = {
            "differs": [None, 3],
            "gap": [None, 0.0039],
            "load": 0.5,
            "contention": {"draft": 1.2, "target": 1.1},
            "draft": "torch",
        }
        return {
            s: CellResult(
                s, stats, plain, 3, 2.9, "xeon-2c-ab12cd", facts=facts, created="today"
            )
            for s in specs
        }

    monkeypatch.setattr("speclib.papers.fill.run_all", made_up)
    filled = fill(paper.table("table-1"), SMALL, kinds=("measured",))
    row = next(
        r
        for r in filled.rows
        if r.row == "PEARL (ours)"
        and r.metric == "speedup"
        and (r.kind, r.column) == ("measured", "CodeLlama 7&34B")
    )
    assert row.setup == "embedded/codellama-7b-34b@xeon-2c-ab12cd/float32/1"
    assert row.value == pytest.approx((8 / 1.5) / (8 / 4.0)) and row.n == 2
    assert (
        "dilated" in row.note
        and (
            "output of plain decoding: 1 of 2; first divergence after "
            "3 tokens, top-2 logit gap 0.0039;"
        )
        in row.note
    )
    whole = next(
        r for r in filled.rows if r.metric == "speedup_e2e" and r.row == row.row
    )
    assert whole.value == pytest.approx((9 / 2.0) / (9 / 4.5))
    below_c = next(
        c for c in filled.claims if (c.claim, c.kind) == ("below-c", "measured")
    )
    assert below_c.holds == "yes"  # against the c that was measured, 2.9
    assert "error measured" in filled.frame()["CodeLlama 7&34B"]


# -- items that replay the print -----------------------------------------------------------------
@pytest.mark.parametrize("item", ["table-9", "figure-3"])
def test_the_engine_takes_the_printed_steps(small, paper, item):
    filled, table = small[item], paper.table(item)
    replayed = filled.figure
    assert replayed.committed == tuple(step.committed for step in table.steps)
    assert replayed.accepted == tuple(len(step.accepted) for step in table.steps)
    assert tuple(t for step in replayed.committed for t in step) == table.output
    assert filled.values["virtual"] == filled.values["paper"]


def test_figure_3_runs_on_the_printed_clock(small):
    assert small["figure-3"].figure.starts == (0, 3, 6, 9)
    assert small["figure-3"].figure.trace.makespan == pytest.approx(12)


def test_figure_2a_is_six_drafts_over_one_verification(small):
    values = small["figure-2a"].values["virtual"]
    assert values[
        "six drafts over one verification", "CodeLlama 7B & 34B"
    ] == pytest.approx(6 * 18.58 / 49.34)
    assert values[
        "speed of the draft over the target", "CodeLlama 7B & 34B"
    ] == pytest.approx(49.34 / 18.58)


def test_best_draft_lengths_fall_by_what_an_iteration_commits():
    """With agreements fixed, the best length drops by gamma + 1 while a run of agreements lasts."""
    series = items.virtual_lengths(
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
    pairs = list(zip(series.values, series.values[1:], strict=False))
    assert any(a > series.gamma for a, _ in pairs)
    assert all(b == a - series.gamma - 1 for a, b in pairs if a > series.gamma)


def test_best_draft_lengths_by_hand():
    """Tokens 1 .. 8, the draft is wrong about the third; iterations commit 1, 2, 2 and 3."""
    agrees = [True, True, False, True, True, True, True, True]
    commits = [SimpleNamespace(tokens=(7,) * n) for n in (1, 2, 2, 3)]
    series = items.best_lengths(agrees, commits, 4)
    assert series.values == (2, 1, 5, 3) and series.gamma == 4
    assert series.complete == 2  # the last two end with the output


def test_measured_best_draft_lengths_are_of_the_run_itself(
    paper, monkeypatch, tmp_path
):
    """What an iteration accepts is the best length, or the window where that is shorter."""
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    table = paper.table("figure-2b")
    toys = table.model_copy(
        update={
            "column": {"toys": {"pair": "toy"}},
            "settings": {**table.settings, "gamma": 4, "task": "toy"},
        }
    )
    toys.join(paper.model_copy(update={"tables": {"figure-2b": toys}}))
    monkeypatch.setattr(rows, "add_scripted_numbers", lambda result, kinds: None)
    profile = replace(SMALL, tokens=100)
    filled = fill(toys, profile, kinds=("measured",))
    lengths = list(filled.values["measured"].values())
    (run,) = run_all(
        w.spec for w in cells_to_run(toys, profile, ("measured",))
    ).values()
    drafted = [e.outcome for e in example_trace(run).operations if e.op == "propose"]
    accepted = [outcomes.count("accepted") for outcomes in drafted]
    assert len(lengths) == len(accepted) > 10 and min(accepted) < 4
    assert [min(4, best) for best in lengths[:-1]] == accepted[:-1]
    assert all(
        r.setup.startswith("toy@") and "window is 4" in r.note
        for r in filled.rows
        if r.kind == "measured"
    )


def test_theorem_2_holds_without_its_plus_one(small):
    """A run of drafts and its replacement is 1 / (1 - alpha) tokens; 2,048 tokens, seeded."""
    values = small["theorem-2"].values["virtual"]
    column = "E(accepted tokens)"
    assert values["0.0", column] == 1
    assert values["0.5", column] == pytest.approx(2, rel=0.1)
    assert values["0.75", column] == pytest.approx(4, rel=0.15)
    verdicts = {
        c.claim: c.holds for c in small["theorem-2"].claims if c.kind == "virtual"
    }
    assert verdicts["plus-one-at-0.0"] == "no"


def test_run_counts_are_those_of_164_prompts_of_1024_tokens(small):
    """Not scaled to print: Table 11's counts come out by themselves."""
    filled = small["table-11"]
    for row in ("Deepseek 6.7B&33B", "Codellama 7B&70B"):
        assert abs(filled.error(row, "Target Model (SD)")) < 0.06


# -- claims --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "key, many", [("pearl", 60), ("duodecoding", 55), ("easyspec", 45)]
)
def test_the_judge_agrees_with_the_transcriber_on_every_printed_claim(key, many):
    judged = 0
    for filled in fill_all(load_paper(key), SMALL, kinds=()).values():
        found = {c.claim: c.holds for c in filled.claims if c.kind == "paper"}
        for claim in filled.table.claims:
            if "paper" in claim.kinds and filled.table.cells:
                assert found[claim.id] == claim.printed, (filled.table.item, claim.id)
                judged += 1
    assert judged > many


def test_calibrated_acceptance_gives_back_duodecodings_printed_speculative_decoding():
    duo = load_paper("duodecoding")
    by_speedup = {
        n: how for n, how in duo.calibration.items() if how.solve == "speedup"
    }
    assert len(by_speedup) == 10 and all(
        "SpS" in how.cell[1] for how in by_speedup.values()
    )
    for name, how in by_speedup.items():
        latency = load_latency(how.latency)
        speed = sum(duo.alpha(name) ** i for i in range(6)) / (
            5 * latency.draft(1) + latency.target(1)
        )
        assert speed * latency.target(1) == pytest.approx(
            duo.printed(*how.cell), abs=1e-4
        ), name


def test_calibrated_acceptance_gives_back_easyspecs_printed_shares():
    """The share is of five drafts: the mean depth reached, over five."""
    easy = load_paper("easyspec")
    for name, how in easy.calibration.items():
        reached = [easy.alpha(name) ** depth for depth in range(1, 6)]
        assert sum(reached) / 5 == pytest.approx(easy.printed(*how.cell), abs=1e-5), (
            name
        )
    assert {how.cell for how in easy.calibration.values()} == {
        (item, row, column)
        for item, table in easy.tables.items()
        for row, column, _ in table.cells
        if column.endswith("alpha")
        and "EAGLE" not in column
        and "difference" not in column
    }


def test_every_name_in_easyspecs_settings_is_that_of_a_calibration_and_a_clock():
    easy = load_paper("easyspec")
    used = [
        table.settings_of(row, column, "virtual")
        for table in map(easy.table, ("table-2", "table-3", "table-4"))
        for row in table.row_labels
        for column in table.column_labels
    ]
    used = [s for s in used if "latency" in s]
    assert len(used) == 20 * 14 + 2 * 9 + 6 * 4  # plain decoding asks no draft
    for s in used:
        assert (easy.alpha(s["alpha"]) == 1) == (s["method"] == "autoregressive")
        assert 0 < easy.alpha(s["alpha"]) <= 1 < load_latency(s["latency"]).c


TABLE = Table(
    item="table-0",
    title="",
    about="",
    metric="speedup",
    unit="x",
    decimals=2,
    rows="gamma",
    columns_are="pair",
    cells=[
        ("2", "A", 1.0),
        ("3", "A", 3.0),
        ("4", "A", 2.0),
        ("2", "B", 4.0),
        ("3", "B", 5.0),
        ("4", "B", 6.0),
    ],
)
TABLE.join(
    Paper(
        key="made-up", title="", authors=(), year=0, url="", tables={"table-0": TABLE}
    )
)


class MadeUpNumbers:
    """The print of TABLE, with made-up resamples; every pair has c = 3.2."""

    kind = "paper"

    def __init__(self, samples: dict[tuple[str, str], np.ndarray]):
        self._samples = samples

    def value(self, cell):
        return TABLE.printed(cell.row, cell.column)

    def samples(self, cell):
        return self._samples.get((cell.row, cell.column))

    def cost_ratio(self, row, column):
        return 3.2


class NoNumbers:
    """Nothing was measured."""

    kind = "measured"

    def value(self, cell):
        return None

    def samples(self, cell):
        return None

    def cost_ratio(self, row, column):
        return None


def verdict(samples=None, **claim):
    """Judged on the print of TABLE; every pair has c = 3.2."""
    numbers = MadeUpNumbers(samples or {})
    return claims.judge(Claim(id="x", text="", source="", **claim), TABLE, numbers)


@pytest.mark.parametrize(
    "holds, claim",
    [
        ("yes", dict(kind="order", over="row", column="A", order=["3", "4", "2"])),
        ("no", dict(kind="order", over="row", column="*", order=["3", "4", "2"])),
        ("yes", dict(kind="order", over="column", row="*", order=["B", "A"])),
        ("no", dict(kind="order", over="column", row="2", order=["A", "B"])),
        ("yes", dict(kind="argmax", over="row", column="A", expected="3")),
        ("yes", dict(kind="argmax", over="row", column="A", expected="round(c)")),
        ("no", dict(kind="argmax", over="row", column="*", expected="round(c)")),
        (
            "yes",
            dict(kind="argmax", over="row", column="*", expected={"A": "3", "B": "4"}),
        ),
        ("yes", dict(kind="argmax", over="column", row="2", expected="B")),
        (
            "yes",
            dict(kind="order", over="column", row="3", by="2", order=["A", "B"]),
        ),  # 3, 1.25
        ("no", dict(kind="order", over="column", row="3", by="2", order=["B", "A"])),
        (
            "yes",
            dict(kind="order", over="row", column="B", by="A", order=["2", "4", "3"]),
        ),
        ("yes", dict(kind="argmax", over="column", row="3", by="2", expected="A")),
        ("yes", dict(kind="ratio", of=["3", "A"], by=["4", "A"], expected=1.5)),
        (
            "yes",
            dict(kind="ratio", of=["3", "A"], by=["4", "A"], expected=1.4, within=0.1),
        ),
        (
            "no",
            dict(kind="ratio", of=["3", "A"], by=["4", "A"], expected=1.4, within=0.05),
        ),
        (
            "yes",
            dict(
                kind="ratio", over="columns", of="3", by="2", reduce="max", expected=3.0
            ),
        ),
        (
            "yes",
            dict(
                kind="ratio",
                over="columns",
                of="3",
                by="2",
                reduce="min",
                expected=1.25,
            ),
        ),
        (
            "yes",
            dict(
                kind="ratio",
                over="rows",
                of="B",
                by="A",
                expected={"2": 4.0, "3": 5 / 3, "4": 3.0},
            ),
        ),
        ("yes", dict(kind="range", over="columns", of="3", by="2", low=1.25, high=3.0)),
        ("no", dict(kind="range", over="columns", of="3", by="2", low=1.25, high=2.9)),
        (
            "yes",
            dict(
                kind="range",
                over="columns",
                of="3",
                by="2",
                low=1.3,
                high=3.0,
                decimals=1,
            ),
        ),
        (
            "yes",
            dict(
                kind="range",
                over="columns",
                of="3",
                by=["minus", "2"],
                low=1.0,
                high=2.0,
            ),
        ),
        (
            "no",
            dict(
                kind="range",
                over="columns",
                of="3",
                by=["minus", "2"],
                low=1.0,
                high=1.9,
            ),
        ),
        (
            "yes",
            dict(
                kind="range",
                over="rows",
                of="B",
                by=["minus", "A"],
                reduce="max",
                low=4,
                high=4,
            ),
        ),
        (
            "yes",
            dict(
                kind="ratio",
                of=["2", "B"],
                by=["minus", "table-0", "4", "A"],
                expected=2.0,
            ),
        ),
        (
            "yes",
            dict(kind="ratio", of=["2", "A"], by=["minus", "2", "A"], expected=0.0),
        ),
        ("yes", dict(kind="range", of=["3", "A"], low=1.0, high="c")),
        ("no", dict(kind="range", of=["4", "B"], low=1.0, high="c")),
        ("yes", dict(kind="equal", of=["*", "A"], expected=[1, 3, 2])),
        ("no", dict(kind="equal", of=["*", "A"], expected=[1, 3])),
        ("no", dict(kind="equal", of=["*", "A"], by=["*", "B"])),
        ("yes", dict(kind="equal", of=["table-0", "2", "*"], by=["2", "*"])),
        ("yes", dict(kind="equal", of=["4", "B"], expected=6)),
    ],
)
def test_a_claim_is_judged(holds, claim):
    assert verdict(**claim).holds == holds


@pytest.mark.parametrize("order", [["A", "B"], ["B", "A"]])
def test_an_order_of_equal_numbers_does_not_hold(monkeypatch, order):
    monkeypatch.setattr(MadeUpNumbers, "value", lambda self, cell: 2.0)
    row = verdict(kind="order", over="column", row="3", order=order)
    assert row.holds == "no" and f"{order[0]} 2, {order[1]} 2" in row.note


def test_a_claim_without_numbers_is_neither_held_nor_broken():
    one = Claim(id="x", text="", source="", kind="ratio", of=["3", "A"], expected=3)
    nothing = NoNumbers()
    for claim in (one, one.model_copy(update={"kinds": ("paper",)})):
        assert claims.judge(claim, TABLE, nothing).holds == "n/a"


@pytest.mark.parametrize(
    "claim",
    [
        dict(
            kind="range", over="columns", of="3", by=["2", "minus", "4"], low=0, high=1
        ),
        dict(
            kind="range", over="columns", of="3", by=["minus", "2", "4"], low=0, high=1
        ),
        dict(kind="ratio", of=["3", "A"], by=["minus", "2"], expected=1),
        dict(kind="equal", of=["3", "A"], by=["minus", "3", "A"]),
        dict(kind="order", over="column", row="3", by=["minus", "2"], order=["A", "B"]),
    ],
)
def test_a_claim_of_a_difference_and_a_quotient_or_of_a_wrong_form_is_named(claim):
    with pytest.raises(SpeclibError, match=r"claim 'x': by = \[.*minus.*not both"):
        verdict(**claim)


def test_a_broken_claim_says_where_and_how_close_it_was():
    row = verdict(kind="order", over="row", column="*", order=["3", "4", "2"])
    assert row.value == "1 of 2" and row.note.startswith("B: 3 5, 4 6")
    near = verdict(
        kind="equal",
        of=["3", "A"],
        expected=3.2,
        samples={("3", "A"): np.linspace(2.8, 3.3, 101)},
    )
    assert (
        near.holds == "no" and "the 95 % interval 2.812 .. 3.287 holds 3.2" in near.note
    )
    outside = verdict(
        kind="range",
        of=["3", "A"],
        low=0,
        high=2.9,
        samples={("3", "A"): np.linspace(2.8, 3.3, 101)},
    )
    assert outside.note.startswith("3 / A: 3 (95 %: 2.812 .. 3.287) not in 0 .. 2.9")


def test_an_order_is_settled_by_joint_resamples_not_by_overlap():
    """Two cells that swing together may overlap and still be in order in every resample."""
    swing = np.linspace(0.5, 1.5, 200)
    order = dict(kind="order", over="row", column="A", order=["3", "4", "2"])
    together = {("3", "A"): 3 * swing, ("4", "A"): 2 * swing, ("2", "A"): swing}
    assert verdict(together, **order).note == ""
    apart = together | {("4", "A"): 2 * swing[::-1]}
    assert (
        verdict(apart, **order).note
        == "not settled by these requests: A: 3 and 4, A: 4 and 2"
    )
    best = verdict(apart, kind="argmax", over="row", column="A", expected="3")
    assert (
        best.holds == "yes" and best.note == "not settled by these requests: A: 3 and 4"
    )


def test_an_order_of_quotients_is_settled_by_quotients_of_joint_resamples():
    """3 over 2 is the same in every resample of each column, however much the cells swing."""
    swing = np.linspace(0.5, 1.5, 200)
    order = dict(kind="order", over="column", row="3", by="2", order=["A", "B"])
    together = {
        ("3", "A"): 3 * swing,
        ("2", "A"): swing,
        ("3", "B"): 5 * swing[::-1],
        ("2", "B"): 4 * swing[::-1],
    }
    assert verdict(together, **order).note == ""
    apart = together | {("2", "A"): swing[::-1]}
    assert verdict(apart, **order).note == "not settled by these requests: 3: A and B"


def test_a_ratio_has_the_interval_of_the_joint_resamples():
    swing = np.linspace(0.5, 1.5, 200)
    found = verdict(
        {("3", "A"): 3 * swing, ("4", "A"): 2 * swing},
        kind="ratio",
        of=["3", "A"],
        by=["4", "A"],
        expected=1.49,
    )
    assert found.holds == "no" and "interval" not in found.note  # 1.5 in every resample


def test_a_difference_has_the_interval_of_the_joint_resamples():
    """Both swing alike, so the difference is 1 in every resample."""
    swing = np.linspace(-0.5, 0.5, 200)
    found = verdict(
        {("3", "A"): 3 + swing, ("4", "A"): 2 + swing},
        kind="range",
        of=["3", "A"],
        by=["minus", "4", "A"],
        low=0,
        high=0.9,
    )
    assert found.note == "3 / A: 1 (95 %: 1 .. 1) not in 0 .. 0.9"


# -- statistics and the ledger -------------------------------------------------------------------
def run_with(*requests) -> CellResult:
    spec = Spec(
        kind="virtual",
        method="pearl",
        gamma=2,
        latency="pearl/codellama-7-34",
        alpha=0.9,
    )
    stats = [
        Stats(1, t, 1, s, 0.0, t, 2 * t, a, r, 2 * t, t, s, s)
        for t, s, a, r in requests
    ]
    return CellResult(spec, stats, [Stats(1, 11, 1, 10.0, 0.0)] * len(stats), 2, 3.0)


def test_statistics_by_hand():
    run = run_with((11, 5.0, 8, 2), (11, 5.0, 4, 2))
    assert (
        quantities.compute("speedup", run) == 2.0
    )  # 20 tokens in 10 s over 20 in 20 s
    assert quantities.compute("run_length", run) == 3.0  # 12 accepted over 4 rejected
    assert quantities.compute("run_tokens", run) == 4.0  # and one replacement each
    assert quantities.compute("mat", run) == 12 / 22
    assert quantities.compute("target_runs", run, 220) == 220
    assert quantities.compute("gamma", run) == 2 and quantities.compute("c", run) == 3.0
    with pytest.raises(SpeclibError, match="unknown statistic 'luck'; known: speedup"):
        quantities.compute("luck", run)


def test_times_of_a_step_by_hand():
    """Four steps of 0.5 s: a device is busy for 1.7 s of them, 0.1 s go to verifying."""
    run = run_with((11, 5.0, 8, 2))
    run.stats = [
        replace(
            run.stats[0],
            steps=4,
            step_seconds=2.0,
            step_busy=1.7,
            step_draft=1.6,
            step_target=0.8,
            step_verify=0.1,
        )
    ]
    found = {
        name: quantities.compute(f"{name}_per_step", run)
        for name in ("communication", "verify", "draft", "target")
    }
    assert found == pytest.approx(
        {"communication": 0.05, "verify": 0.025, "draft": 0.4, "target": 0.2}
    )
    assert quantities.compute("draft_over_verify", run) == pytest.approx(2)


def test_intervals_are_seeded_hold_the_value_and_shrink():
    few = run_with(*[(11, 4.0 + i % 3, 8, 2) for i in range(6)])
    many = run_with(*[(11, 4.0 + i % 3, 8, 2) for i in range(60)])

    def span(name, run):
        return interval(quantities.resample(name, run))

    spans = [span("speedup", run) for run in (few, many)]
    assert span("speedup", few) == spans[0]
    assert all(low < quantities.compute("speedup", few) < high for low, high in spans)
    assert spans[1][1] - spans[1][0] < 0.5 * (spans[0][1] - spans[0][0])
    assert span("speedup", run_with((11, 5.0, 8, 2))) is None
    assert span("run_length", run_with(*[(11, 5.0, 8, 0)] * 3)) is None


def test_the_ledger_comes_back_as_written_with_its_columns(small, tmp_path):
    rows = [r for filled in small.values() for r in filled.rows]
    write_ledger(tmp_path / "ledger.csv", rows)
    with open(tmp_path / "ledger.csv", newline="") as file:
        assert next(csv.reader(file)) == (
            "paper,item,row,column,metric,unit,kind,setup,value,low,high,n,source,note"
        ).split(",")
    back = read_ledger(tmp_path / "ledger.csv")
    assert [r[:KEY] for r in back] == [r[:KEY] for r in rows]
    for ours, theirs in zip(rows, back, strict=True):
        assert (ours.value is None) == (theirs.value is None)
        assert ours.value is None or math.isclose(
            ours.value, theirs.value, rel_tol=1e-5
        )


def test_a_ledger_refuses_two_numbers_for_one_key_and_foreign_columns(tmp_path):
    row = LedgerRow("pearl", "table-1", "r", "c", "speedup", "x", "paper", "", 1.0)
    with pytest.raises(SpeclibError, match="two ledger rows share the key"):
        write_ledger(tmp_path / "ledger.csv", [row, row._replace(value=2.0)])
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SpeclibError, match=r"other\.csv is no ledger.*a, b"):
        read_ledger(tmp_path / "other.csv")


def test_merging_keeps_ours_and_adds_other_machines():
    ours = LedgerRow(
        "pearl", "table-1", "r", "c", "speedup", "x", "measured", "p@here/f/1", 1.0
    )
    same, other = ours._replace(value=9.0), ours._replace(setup="p@there/f/1")
    assert merge([ours], [same, other]) == [ours, other]


def test_public_names():
    """The package itself holds none: each is imported from the module that owns it."""
    assert not hasattr(papers, "__all__")
    owners = {
        "fill": [fill, fill_all],
        "load": [load_paper],
        "schema": [Paper, Table],
        "table_result": [TableResult],
    }
    for module, objects in owners.items():
        for named in objects:
            assert named.__module__ == f"speclib.papers.{module}", named
