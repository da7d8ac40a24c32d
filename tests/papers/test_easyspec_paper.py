"""EasySpec's paper: its statistics by hand, its clock against Table 1's own numbers, settings of
one kind, states of a real draft, its items filled and drawn."""

from __future__ import annotations

import shutil
from statistics import variance

import numpy as np
import pytest

from speclib import SpeclibError, paths
from speclib.data.pairs import Pair, load_pair
from speclib.experiment.engines import similarity as states
from speclib.experiment.spec import QUICK, CellResult, Profile, Spec
from speclib.papers import statistics as quantities
from speclib.papers.bootstrap import interval
from speclib.papers.fill import fill_all
from speclib.papers.load import load_paper
from speclib.papers.notes import describe_departures
from speclib.papers.table_cells import cells_to_run
from speclib.papers.table_result import TableResult
from speclib.trace.metrics import Stats
from speclib.views.charts.choose import chart

pytestmark = pytest.mark.usefixtures("own_cache")
SMALL = Profile("small", 2_048, 1, 8, 1, 1, 8)
LLAMA = {"draft": 1 / 36.76, "target": 1 / 13.23, "plain": 1 / 8.39}  # seconds, Table 1


@pytest.fixture(scope="module")
def paper():
    return load_paper("easyspec")


@pytest.fixture(scope="module")
def filled(paper, tmp_path_factory):
    """Every item on the virtual clock, with few tokens."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "CACHE", tmp_path_factory.mktemp("cache"))
        return fill_all(paper, SMALL, kinds=("virtual",))


def run(*stats: Stats, gamma: int | None = 5, **spec) -> CellResult:
    asked = Spec(
        **{
            "kind": "virtual",
            "method": "speculative",
            "gamma": 5,
            "alpha": 0.8,
            "latency": "easyspec/llama3-8-70-tp8",
        }
        | spec
    )
    return CellResult(asked, list(stats), list(stats), gamma, 2.5)


# -- statistics ----------------------------------------------------------------------------------
def test_times_per_100_tokens_are_those_after_the_first_commit():
    """50 tokens in 4 s, of which 1 s drafting, 2 s in the target, 0.5 s comparing; some device
    busy for 3 s. c = 2.5: exact draft passes took 2 s / 2.5."""
    one = Stats(
        requests=1,
        tokens=55,
        first_tokens=5,
        seconds=9,
        ttft=5,
        rounds=11,
        steps=10,
        step_seconds=4,
        step_draft=1,
        step_target=2,
        step_verify=0.5,
        step_busy=3,
        draft_runs=55,
        draft_seconds=1.1,
        accepted=44,
    )
    found = {
        name: quantities.compute(name, run(one))
        for name in (
            "seconds",
            "draft_seconds",
            "verify_seconds",
            "accepted_share",
            "passes_per_second",
            "busy_share",
            "target_share",
            "lent_share",
        )
    }
    assert found == pytest.approx(
        {
            "seconds": 8,
            "draft_seconds": 2,
            "verify_seconds": 5,
            "accepted_share": 44 / 55,
            "passes_per_second": 50,
            "busy_share": 0.75,
            "target_share": 0.5,
            "lent_share": 0.55,
        }
    )


def test_the_variance_is_that_of_the_requests_speeds():
    speeds = [10.0, 12.0, 17.0, 11.0]
    found = run(
        *(
            Stats(requests=1, tokens=101, first_tokens=1, seconds=100 / s)
            for s in speeds
        )
    )
    assert quantities.compute("speed_variance", found) == pytest.approx(
        variance(speeds)
    )
    low, high = interval(quantities.resample("speed_variance", found))
    assert 0 <= low < variance(speeds) < high <= (17 - 10) ** 2 / 3
    assert np.isnan(quantities.compute("speed_variance", run(found.stats[0])))


def test_samples_are_not_called_divergent():
    facts = {"differs": [0, 3], "gap": [1.0, 2.0]}
    told = {}
    for temperature in (0.0, 0.8):
        found = run(Stats(), Stats(), temperature=temperature)
        found.facts = facts
        told[temperature] = describe_departures(found)
    assert told[0.8] == "sampled at temperature 0.8" and "first divergence" in told[0.0]


# -- settings ------------------------------------------------------------------------------------
def test_a_setting_of_one_kind_is_for_that_kind_alone(paper):
    table, cell = (
        paper.table("table-2"),
        ("Llama-3 / T=0.8 / HumanEval", "EasySpec / total"),
    )
    assert (
        table.settings_of(*cell)["width"]
        == table.settings_of(*cell, "virtual")["width"]
        == 1
    )
    assert table.settings_of(*cell, "measured")["width"] == 8
    assert table.settings_of(*cell, "measured")["pair"] == "embedded/easyspec"
    assert not {"pair", "measured"} & table.settings_of(*cell).keys()


def test_an_unknown_setting_of_one_kind_is_named(tmp_path):
    folder = shutil.copytree(paths.DATA / "papers" / "easyspec", tmp_path / "easyspec")
    text = (folder / "table-2.toml").read_text()
    (folder / "table-2.toml").write_text(
        text.replace("measured.width", "measured.wide", 1)
    )
    with pytest.raises(
        SpeclibError, match=r"\[settings\]\.measured has the unknown setting 'wid"
    ):
        load_paper.__wrapped__("easyspec", folder)


def test_speed_is_asked_of_dilated_models_and_acceptance_of_undilated_ones(paper):
    asked = [
        w
        for item in ("table-2", "table-4", "figure-4")
        for w in cells_to_run(paper.table(item), QUICK, ["measured"])
    ]
    assert {w.stat for w in asked} == {
        "seconds",
        "draft_seconds",
        "verify_seconds",
        "accepted_share",
        "decode_speed",
        "speed_variance",
    }
    for cell in asked:
        pair = load_pair(cell.spec.pair)
        assert (
            (pair.target.shape is None)
            == (pair.draft.shape is None)
            == (cell.stat == "accepted_share")
        ), cell


def test_measured_rows_have_prompts_and_a_temperature(paper):
    asked = cells_to_run(paper.table("table-2"), QUICK, ["measured"])
    assert {(w.row.split(" / ")[2], w.spec.task) for w in asked} == {
        ("HumanEval", "humaneval"),
        ("MGSM", "mgsm_en"),
    }
    assert all(f"T={w.spec.temperature:g}" == w.row.split(" / ")[1] for w in asked)
    assert {
        (s.spec.settings, s.spec.gamma) for s in asked if s.spec.method == "easyspec"
    } == {((("lp", 4), ("width", 8)), 5)}
    assert {
        w.spec.temperature
        for w in cells_to_run(paper.table("table-2"), QUICK, ["virtual"])
    } == {0}


def test_the_variance_of_table_4_is_of_the_measured_speeds_and_of_no_other(paper):
    asked = cells_to_run(paper.table("table-4"), QUICK)
    spec = {w.spec: set() for w in asked if w.kind == "measured"}
    for w in asked:
        assert (w.kind == "measured") >= (w.stat == "speed_variance"), w
        spec.get(w.spec, set()).add((w.row, w.stat))
    of_both, of_shares = (
        {row for found in spec.values() for row, stat in found if stat in stats}
        for stats in (("decode_speed", "speed_variance"), ("accepted_share",))
    )
    assert of_both == of_shares == {"MT", "TL", "SUM", "QA", "MR", "RAG"}
    assert (
        sorted(map(len, spec.values())) == [1] * 6 + [2] * 6
    )  # one run, two statistics


def test_figure_4_asks_for_every_size_width_and_calibration(paper):
    asked = cells_to_run(paper.table("figure-4"), QUICK)
    assert {w.kind for w in asked} == {"measured"} and len(asked) == 80
    grid = {
        (
            dict(w.spec.settings)["lp"],
            dict(w.spec.settings)["width"],
            dict(w.spec.settings)["calibrate"],
        )
        for w in asked
    }
    assert grid == {
        (n, w, c) for n in range(1, 6) for w in (1, 4, 8, 12) for c in (True, False)
    }


# -- the virtual clock ---------------------------------------------------------------------------
def test_virtual_times_are_table_1s_passes_and_one_fuzzy_pass(filled):
    """Llama-3, MATH, T=0: share a of five drafts, so 100 tokens take 100 / (1 + 5a) iterations; a
    fuzzy pass by arithmetic from MMLU's 1.70 s at a share of 0.82. 2,048 tokens leave some 4 %."""
    row, values = "Llama-3 / T=0 / MATH", filled["table-2"].values["virtual"]
    fuzzy = (1.70 * (1 + 5 * 0.82) / 100 - LLAMA["draft"]) / 4
    drafting = {
        "+sd": 5 * LLAMA["draft"],
        "+tree": 5 * LLAMA["draft"],
        "EasySpec": LLAMA["draft"] + 4 * fuzzy,
    }
    for method, share in (("+sd", 0.73), ("+tree", 0.95), ("EasySpec", 0.91)):
        assert values[row, f"{method} / alpha"] == pytest.approx(share, abs=0.04), (
            method
        )
        rounds = 100 / (1 + 5 * values[row, f"{method} / alpha"])
        expected = {"d": rounds * drafting[method], "v": rounds * LLAMA["target"]}
        expected["total"] = sum(expected.values())
        for part, seconds in expected.items():
            assert values[row, f"{method} / {part}"] == pytest.approx(
                seconds, rel=0.01
            ), part
    assert values[row, "vanilla / total"] == pytest.approx(100 * LLAMA["plain"])
    assert values[row, "TP / total"] == pytest.approx(100 * LLAMA["target"])


def test_cells_that_made_the_clock_or_the_rate_say_so(filled):
    noted = {
        item: {
            (r.row, r.column)
            for r in filled[item].rows
            if r.kind == "virtual" and r.note.startswith("calibration")
        }
        for item in ("table-1", "table-2")
    }
    every = {(r.row, r.column) for r in filled["table-1"].rows if r.kind == "virtual"}
    assert noted["table-1"] == every and len(every) == 15
    assert {c for c in noted["table-2"] if c[1].endswith(" / d")} == {
        (f"{family} / T=0 / MMLU", "EasySpec / d") for family in ("Llama-3", "Qwen2")
    }
    assert {c for c in noted["table-2"] if "alpha" in c[1]} == {
        (row, f"{method} / alpha")
        for row in filled["table-2"].table.row_labels
        for method in ("+sd", "+tree", "EasySpec")
    }


def test_table_1_gives_the_clock_back(filled):
    one = filled["table-1"]
    assert one.values["virtual"] == pytest.approx(one.values["paper"], rel=1e-6)


def test_groups_are_drawn_as_printed(filled):
    assert filled["table-6"].values["virtual"] == filled["table-6"].values["paper"]
    assert len(filled["table-6"].values["paper"]) == 57


def test_gpus_beyond_the_lp_size_are_no_busier_than_the_target(filled):
    busy = filled["figure-1"].values["virtual"]
    assert [
        busy[row, "GPU 1"] for row in filled["figure-1"].table.row_labels
    ] == pytest.approx([1, 1, 1, 1])
    assert busy["TP", "GPUs 5-8"] == pytest.approx(1)
    shares = {row: busy[row, "GPUs 5-8"] for row in ("+sd", "+tree", "EasySpec")}
    iteration = 5 * LLAMA["draft"] + LLAMA["target"]
    share = pytest.approx(LLAMA["target"] / iteration)
    assert shares["+sd"] == share and shares["+tree"] == share
    fuzzy = (
        1.70 * (1 + 5 * 0.82) / 100 - LLAMA["draft"]
    )  # the four passes that are shared
    iteration = LLAMA["draft"] + fuzzy + LLAMA["target"]
    assert busy["EasySpec", "GPUs 2-4"] == pytest.approx(
        (LLAMA["target"] + fuzzy) / iteration
    )


def test_every_item_is_filled_judged_and_drawn(paper, filled):
    assert not any(f.errors for f in filled.values())
    assert {i for i, f in filled.items() if "virtual" in f.kinds} == {
        *paper.facts["fill"]["virtual"]
    }
    for item in ("table-1", "table-2", "table-3", "table-4", "figure-1"):
        drawn = chart(filled[item])
        assert len(drawn.data) > 2 and all(len(t.y) for t in drawn.data), item
    seen = {
        (i, c.claim): c.holds
        for i, f in filled.items()
        for c in f.claims
        if c.kind == "virtual"
    }
    assert seen["table-2", "each-addition-is-faster"] == "yes"
    assert seen["table-2", "drafting-takes-less-time"] == "yes"
    assert seen["figure-1", "layer-parallelism-fills-gpus"] == "yes"
    assert not [
        c
        for f in filled["table-4"].values.get("virtual", {})
        for c in f
        if "EAGLE" in c
    ]


# -- states, measured ----------------------------------------------------------------------------
@pytest.mark.slow
def test_states_of_one_layer_at_a_time_are_exact_and_of_more_are_not():
    """The first layer reads the embeddings in both passes."""
    pair = Pair(
        target=load_pair("ladder/good").target, draft=load_pair("ladder/good").target
    )
    exact, fuzzy = (states.compute_similarities(pair, "stem", 64, 2, n) for n in (1, 3))
    assert len(exact) == len(fuzzy) == 2
    for one, other in zip(exact, fuzzy, strict=True):
        assert set(one) == {"h", "q", "k", "v", "Attn output"}
        for state in one:
            assert one[state] == pytest.approx([1] * len(one[state]), abs=1e-9)
            assert (
                other[state][0] == pytest.approx(1, abs=1e-9)
                and min(other[state]) < 0.999
            )


def test_measured_numbers_have_panels_of_their_own(paper):
    two, four, five = (
        TableResult(paper.table(i), QUICK) for i in ("table-2", "figure-4", "table-5")
    )
    for one in (two, four, five):
        one.values["measured"] = {
            (w.row, w.column): 0.5 for w in cells_to_run(one.table, QUICK, ["measured"])
        }
    two.values["paper"], two.values["virtual"] = (
        {(r, c): v for r, c, v in two.table.cells},
    ) * 2
    drawn = chart(two)
    measured = [t for t in drawn.data if t.type == "bar"]
    assert {t.name for t in measured} == {"vanilla", "TP", "+sd", "+tree", "EasySpec"}
    assert (
        len({t.xaxis for t in measured}) == 4
        and len({t.xaxis for t in drawn.data}) == 7
    )
    assert {tuple(t.x) for t in chart(four).data} == {(1, 2, 3, 4, 5)}
    assert len(chart(four).data) == 16
    five.values = {"paper": {(r, c): v for r, c, v in five.table.cells}}
    assert [list(t.x) for t in chart(five).data] == [[2, 3, 4]] * 5


# -- claims about the print ----------------------------------------------------------------------
def test_a_drop_in_percent_is_judged_in_points_and_as_a_share_of_itself(paper, filled):
    """0.89 to 0.82 on IFEval, 0.83 to 0.73 on TL: 7 and 10 points; 0.92 and 0.88 of themselves."""
    found = {
        (i, c.claim): (c.holds, c.value)
        for i in ("table-2", "table-4")
        for c in filled[i].claims
        if c.kind == "paper"
    }
    assert found["table-2", "accuracy-falls-by-at-most-7-points"] == ("yes", "0.07")
    assert found["table-2", "accuracy-falls-by-at-most-7-percent-of-itself"] == (
        "no",
        "0.9213",
    )
    assert found["table-4", "accuracy-carries-over"] == ("yes", "0.1")
    assert found["table-4", "accuracy-carries-over-as-a-share-of-itself"][0] == "no"


def test_a_claim_that_drafting_takes_less_time_names_the_two_that_are_compared(paper):
    said = {
        c.order: c.text
        for c in paper.table("table-2").claims
        if c.id.startswith("drafting-t")
    }
    assert said == {
        (f"{method} / d", "EasySpec / d"): f"EasySpec spends less time drafting than "
        f"{name}, everywhere"
        for method, name in (("+tree", "the tree"), ("+sd", "speculative decoding"))
    }


def test_figure_4_asks_at_each_width_for_the_best_size_and_for_one_too_large(paper):
    asked = {
        (c.kind, c.column, c.expected or c.order)
        for c in paper.table("figure-4").claims
        if "4" in (c.expected, *c.order)
    }
    assert asked == {
        (kind, (f"width {w}, calibrated / throughput",), sizes)
        for w in (1, 4, 8, 12)
        for kind, sizes in (("argmax", "4"), ("order", ("4", "5")))
    }
