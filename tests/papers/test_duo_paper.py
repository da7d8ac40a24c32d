"""DuoDecoding's paper: the published accounting re-done from scratch, branches counted by hand, the
statistics of its tables and figures, its items filled and drawn."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.events import event_of
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from speclib import SpeclibError
from speclib.data import prompts
from speclib.data.latency import Latency, load_latency
from speclib.data.pairs import load_pair
from speclib.decoding.decode import decode as speclib_decode
from speclib.experiment.run_cells import run_all
from speclib.experiment.spec import QUICK, CellResult, Profile, Spec
from speclib.methods import METHODS
from speclib.models import factory
from speclib.models.toy import Toy
from speclib.papers import statistics as quantities
from speclib.papers.bootstrap import interval
from speclib.papers.duodecoding_sequences import count_draftings
from speclib.papers.fill import fill_all
from speclib.papers.load import load_paper
from speclib.papers.table_cells import cells_to_run
from speclib.papers.table_result import TableResult
from speclib.trace.events import Event, Trace
from speclib.trace.metrics import Stats, stats, total
from speclib.trace.rounds import sequence_choices
from speclib.views.charts.choose import chart

pytestmark = pytest.mark.usefixtures("own_cache")
SMALL = Profile("small", 1_024, 1, 8, 1, 1, 8)
LATENCY = "duodecoding/llama2-7b"


@pytest.fixture(scope="module")
def paper():
    return load_paper("duodecoding")


def virtual(method="duodecoding", **changes) -> Spec:
    gamma = {"gamma": "auto"} if method != "autoregressive" else {}
    return Spec(
        **{
            "kind": "virtual",
            "method": method,
            "latency": LATENCY,
            "alpha": 0.8,
            "requests": 4,
            "tokens": 64,
        }
        | gamma
        | changes
    )


def run(**spec) -> CellResult:
    asked = virtual(**spec)
    return run_all([asked])[asked]


# -- the published accounting --------------------------------------------------------------------
def published(
    agrees: list[bool], gamma: int, first: int, limit: int
) -> tuple[int, int]:
    """(tokens, target passes) of the loop as published, one sequence: as long as the text with its
    unverified end is short of the limit, one target pass over that end while the draft goes on."""
    text, window, budget, passes = 0, 0, first, 0
    while text + window < limit:
        passes += 1
        right = agrees[text : text + window]
        if not all(right):
            text, window = text + right.index(False) + 1, 0
        else:
            text += window + 1
            window = budget - 1 if agrees[text - 1] else 0
        budget = gamma
    return text + window, passes


@given(
    alpha=st.sampled_from([0.0, 0.5, 0.8, 0.95, 1.0]),
    gamma=st.integers(1, 9),
    limit=st.integers(1, 60),
    seed=st.integers(0, 5),
)
def test_tokens_and_time_with_the_tail_are_those_of_the_published_loop(
    decode, alpha, gamma, limit, seed
):
    """c = 100, so a round lasts one target pass whatever is drafted beside it."""
    draft, target = Toy(alpha, seed=seed), Toy(seed=seed)
    agrees = (draft._choice == target._script)[:400].tolist()
    for name, first, settings in (("duodecoding", 1, {"k": 1}), ("pearl", gamma, {})):
        models = {"draft": Toy(alpha, seed=seed), "target": Toy(seed=seed)}
        _, trace = decode(
            METHODS[name],
            models,
            limit,
            gamma=gamma,
            latency=Latency.ratio(100),
            **settings,
        )
        found = stats(trace)
        tokens, passes = published(agrees, gamma, first, limit)
        assert found.with_tail == tokens >= limit == found.tokens, name
        assert (
            found.with_tail_seconds == pytest.approx(passes)
            and passes <= found.seconds + 1e-9
        )


def test_what_leaves_nothing_unverified_is_counted_as_committed(case, decode):
    leaves = case.name in ("pearl", "duodecoding", "dsi")  # drafts to its next round
    for settings in case.at(1, 4):
        _, trace = decode(
            case.method, {"draft": Toy(0.8), "target": Toy()}, 30, **settings
        )
        found = stats(trace)
        assert (
            found.with_tail >= found.tokens and found.with_tail_seconds <= found.seconds
        )
        assert leaves or (found.with_tail, found.with_tail_seconds) == (
            found.tokens,
            found.seconds,
        )


def test_an_output_that_ends_early_is_counted_as_far_as_it_went(decode):
    words = (1, 2, 3, 4, 5, 6, 7, 8)
    models = {"draft": Toy(1.0, words=words), "target": Toy(words=words)}
    _, trace = decode(METHODS["duodecoding"], models, 40, gamma=4, eos=frozenset({7}))
    assert (stats(trace).tokens, stats(trace).with_tail) == (7, 7)


def test_one_round_with_a_block_ahead_is_counted_whole_by_the_published_code(decode):
    """gamma 24, all right: a round of one token, one that commits the second and leaves 23; with
    them 16 tokens are there after two passes, where plain decoding has two."""
    _, trace = decode(
        METHODS["duodecoding"],
        {"draft": Toy(1.0), "target": Toy()},
        16,
        gamma=24,
        k=1,
        latency=Latency.ratio(24),
    )
    found = stats(trace)
    assert (found.with_tail, found.with_tail_seconds) == (25, pytest.approx(2))
    assert (found.tokens, found.seconds) == (16, pytest.approx(3))
    assert found.inflation == pytest.approx((25 / 2) / (16 / 3))


def test_an_accounting_is_a_setting_of_a_cell(paper):
    cells = {
        (w.row, w.column, w.kind): w
        for w in cells_to_run(paper.table("extra-2"), QUICK)
    }
    committed, counted = (
        cells["Math", f"{how}, k = 1", "measured"]
        for how in ("committed", "as published")
    )
    assert (committed.stat, counted.stat) == ("speedup", "published_speedup")
    assert not committed.spec.ignore_eos and counted.spec.ignore_eos
    with pytest.raises(
        SpeclibError, match="accounting is 'loose': give 'committed' or"
    ):
        quantities.apply_accounting("speedup", "loose")


# -- branches ------------------------------------------------------------------------------------
def event(op: str, round_: int, tokens=(), outcome=(), **more) -> Event:
    ts = float(round_)
    device = "controller" if op == "commit" else "target" if op == "score" else "draft"
    return event_of(ts, 1.0, device, op, 0, round_, tokens, outcome, "virtual", **more)


HAND = Trace(
    [
        event("draft_sequences", 0, (1,), ("accepted",)),  # no room to branch
        event(
            "draft_sequences", 1, (2, 3, 4, 5), ("accepted",) + ("wasted",) * 3
        ),  # one, and it is it
        event(
            "draft_sequences", 2, (2, 3, 4, 5), ("wasted",) * 4, sequences=2
        ),  # its block failed
        event(
            "draft_sequences",
            3,
            (2, 3, 4, 5),
            ("wasted", "wasted", "accepted", "wasted"),
            sequences=2,
        ),
        event(
            "draft_sequences",
            4,
            (2, 3, 4, 5),
            ("rejected",) + ("wasted",) * 3,
            sequences=4,
        ),
        event("draft_sequences", 5, (2, 3, 4, 5), ("rejected",) + ("wasted",) * 3),
        event(
            "draft_sequences",
            6,
            (2, 3, 4, 5),
            ("accepted",) + ("wasted",) * 3,
            sequences=2,
        ),
    ]
)


def test_branches_are_those_of_a_trace_written_by_hand():
    assert sequence_choices(HAND) == [
        (1, 0),
        (2, None),
        (2, 1),
        (4, -1),
        (1, -1),
        (2, 0),
    ]


def test_shares_of_need_and_prediction_equal_a_count_by_hand():
    """Of the six: 5 decided; the likeliest accepted with one sequence (1) and with several (1);
    not accepted with one (1), with several (2); undecided with several (1)."""
    found = CellResult(
        virtual(),
        [Stats()],
        [Stats()],
        4,
        24.0,
        sequence_choices=[sequence_choices(HAND)],
    )
    share = {name: quantities.compute(name, found) for name in quantities.SHARES}
    assert {
        n: share[f"actual {n}, decided"]
        for n in (
            "=1, pred =1",
            "=1, pred >1",
            ">1, pred =1",
            ">1, pred >1",
            "Total, pred Total",
        )
    } == {
        "=1, pred =1": 1 / 5,
        "=1, pred >1": 1 / 5,
        ">1, pred =1": 1 / 5,
        ">1, pred >1": 2 / 5,
        "Total, pred Total": 1,
    }
    assert (
        share["actual >1, pred >1, all"] == 3 / 6
        and share["actual =1, pred =1, all"] == 1 / 6
    )
    assert share["actual Total, pred =1, all"] == 2 / 6
    assert [share[f"sequences {n}"] for n in (1, 2, 4)] == [2 / 6, 3 / 6, 1 / 6]
    assert np.isnan(
        quantities.compute(
            "sequences 1",
            CellResult(virtual(), [Stats()], [Stats()], 4, 24.0, sequence_choices=[[]]),
        )
    )


def test_branches_of_real_runs_are_kept_with_their_cell():
    first, again = run(doubt=0.5, alpha=0.6), run(doubt=0.5, alpha=0.6)
    assert (
        again.cached and len(first.sequence_choices) == 4 and first.stats == again.stats
    )
    assert (
        sum(map(count_draftings, first.sequence_choices)).tolist()
        == sum(map(count_draftings, again.sequence_choices)).tolist()
    )
    for one, counted in zip(first.sequence_choices, first.stats, strict=True):
        assert len(one) == counted.rounds - 1  # the first has a budget of one
    assert {k for one in first.sequence_choices for k, _ in one} <= {1, 2, 3, 4, 6, 8}
    low, high = interval(quantities.resample("sequences 1", first))
    assert 0 <= low < quantities.compute("sequences 1", first) < high <= 1
    assert all(
        k == 3 for one in run(settings=(("k", 3),)).sequence_choices for k, _ in one
    )


# -- cells ---------------------------------------------------------------------------------------
def test_a_budget_may_be_so_far_from_c():
    budgets = {
        g: run(gamma=g, settings=(("k", 1),)).gamma for g in ("c-2", "auto", "c+1")
    }
    assert budgets == {"c-2": 22, "auto": 24, "c+1": 25}
    with pytest.raises(ValidationError, match="gamma"):
        virtual(gamma="c*2")


def test_doubt_and_end_tokens_belong_to_one_kind():
    measured = {"kind": "measured", "pair": "toy", "task": "toy"}
    for wrong in ({"doubt": 0.3, **measured}, {"ignore_eos": True}, {"length": 64}):
        with pytest.raises(ValidationError, match="doubt is a virtual cell's"):
            virtual(**wrong)
    assert (
        virtual(doubt=0.3).baseline == virtual().baseline
    )  # plain decoding asks no draft


def test_iterations_handle_the_budget_and_take_a_target_pass():
    latency, found = (
        load_latency(LATENCY),
        run(tokens=400, requests=1, settings=(("k", 1),)),
    )
    plain = run(method="autoregressive")
    rounds = found.stats[0].rounds
    value = quantities.compute
    assert value("drafted_per_round", found) == pytest.approx(
        (1 + 24 * (rounds - 1)) / rounds
    )
    assert value("drafted_per_round", plain) == 1
    for one in (found, plain):
        assert value("seconds_per_step", one) == pytest.approx(latency.target(1))
    assert value("draft_per_step", found) == pytest.approx(24 * latency.draft(1))


def test_speculative_decodings_first_token_waits_for_its_drafts():
    first = {
        m: quantities.compute("ttft_over_plain", run(method=m, gamma=5))
        for m in ("speculative", "duodecoding")
    }
    assert first == pytest.approx({"speculative": 1 + 5 / 24, "duodecoding": 1})


@pytest.mark.slow
def test_without_end_tokens_every_output_has_its_length():
    pair, prompt = load_pair("ladder/poor"), prompts.load("qa", 1)[0].input
    common = {
        "pair": pair,
        "method": "prompt_lookup",
        "world": "virtual",
        "max_new_tokens": 200,
    }
    ended, whole = (
        speclib_decode(prompt, ignore_eos=on, **common) for on in (False, True)
    )
    assert len(ended.tokens) < 200 == len(whole.tokens)
    assert (
        ended.tokens[-1]
        == factory.tokenizer(pair).eos_token_id
        == whole.tokens[len(ended.tokens) - 1]
    )


# -- items ---------------------------------------------------------------------------------------
@pytest.mark.slow
def test_one_sequences_rate_gives_back_the_printed_speed(paper):
    """By a simulation of the method itself, 1,600 tokens: 3 %."""
    for name in ("mt", "trans", "math", "code"):
        how = paper.calibration[f"llama2-{name}"]
        found = run(
            latency=how.latency,
            alpha=paper.alpha(f"llama2-{name}"),
            tokens=1600,
            requests=4,
            settings=(("k", 1),),
        )
        assert total(found.stats).decode_speed == pytest.approx(
            paper.printed(*how.cell), rel=0.04
        )


def test_every_item_asks_for_what_its_kind_can_say(paper):
    asked = {
        item: {k: cells_to_run(t, QUICK, [k]) for k in ("virtual", "measured")}
        for item, t in paper.tables.items()
    }
    assert {i for i, a in asked.items() if a["measured"]} == {
        *paper.facts["fill"]["measured"]
    }
    assert {c.spec.gamma for c in asked["table-3"]["measured"]} == {
        "c-2",
        "c-1",
        "auto",
        "c+1",
        "c+2",
    }
    assert {c.spec.doubt for c in asked["table-2"]["virtual"]} == {0.3}
    lengths = {c.spec.length for c in asked["figure-1"]["measured"]}
    assert lengths == {64, 128, 256, 512, 1024}
    assert {(c.row, c.spec.tokens) for c in asked["extra-1"]["measured"]} == {
        (str(n), n) for n in (16, 32, 64, 128)
    }
    tested = {c.stat for c in asked["table-4"]["measured"] if "tested" in c.row}
    assert tested == {
        f"actual {a}, pred {p}, decided"
        for a in ("=1", ">1")
        for p in ("=1", ">1", "Total")
    }


def test_items_of_ours_print_nothing_and_say_so(paper):
    for item in ("extra-1", "extra-2"):
        table = paper.table(item)
        assert not table.cells and table.about.strip().startswith(
            "Ours, not the paper's"
        )
        assert all(
            c.source.startswith("ours") and "paper" not in c.kinds for c in table.claims
        )


def test_measured_numbers_are_drawn_one_panel_per_unit_or_kind(paper):
    lengths, sequences = (
        TableResult(paper.table(item), QUICK) for item in ("figure-1", "figure-5")
    )
    lengths.values["measured"] = {
        (f"{n} tokens", c): n / 64
        for n in (64, 128, 1024)
        for c in paper.table("figure-1").column_labels
    }
    drawn = chart(lengths)
    assert [list(line.x) for line in drawn.data] == [[64, 128, 1024]] * 3
    assert len({line.yaxis for line in drawn.data}) == 2  # a quotient, and seconds
    sequences.values["measured"] = {
        (k, t): 0.5 for k in ("1", "8") for t in ("Math", "Trans")
    }
    assert [(bar.name, list(bar.x), list(bar.y)) for bar in chart(sequences).data] == [
        ("Math", ["1", "8"], [0.5, 0.5]),
        ("Trans", ["1", "8"], [0.5, 0.5]),
    ]


@pytest.mark.slow
def test_every_item_is_filled_judged_and_drawn(paper):
    filled = fill_all(paper, SMALL, kinds=("virtual",))
    assert not any(f.errors for f in filled.values())
    assert {i for i, f in filled.items() if "virtual" in f.kinds} == {
        *paper.facts["fill"]["virtual"]
    }
    for item, one in filled.items():
        drawn = chart(one)
        assert (drawn is None) == (item in ("figure-1", "figure-5")), (
            item
        )  # these are measured
        assert (
            drawn is None or len(drawn.data) > 2 and all(len(t.y) for t in drawn.data)
        ), item
    seen = {
        (i, c.claim): c.holds
        for i, f in filled.items()
        for c in f.claims
        if c.kind == "virtual"
    }
    assert seen["figure-1", "eight-drafts-match-one-verification"] == "no"
    assert seen["table-1", "parallel-beats-sequential-on-the-same-draft"] == "no"
    assert seen["table-3", "above-c-an-iteration-lasts-longer"] == "yes"
    assert seen["extra-1", "less-with-length"] == "yes"
    assert (
        filled["figure-4"].values["virtual"]["Autoregressive", "processed tokens"] == 1
    )
