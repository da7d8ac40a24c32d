"""DuoDecoding's paper.

The published accounting is done again from scratch, sequences are counted by hand, and
its items are filled and rendered.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.events import event_of
from helpers.printed import assert_ours_print_nothing, load_folder
from helpers.tables import (
    SMALL,
    assert_filled_as_the_paper_says,
    fill_virtually,
    verdicts_of_kind,
)
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from speclab.experiment.run_cells import run_all
from speclab.experiment.spec import FULL, QUICK, CellResult, Spec
from speclab.papers.duodecoding_sequences import SHARES, count_draftings
from speclab.papers.estimates import Estimate
from speclab.papers.ledger import VerdictLine
from speclab.papers.load_papers import load_paper
from speclab.papers.paper_schema import Paper
from speclab.papers.statistics import apply_accounting, compute, resample
from speclab.papers.table_cells import cells_to_run
from speclab.papers.table_result import TableResult
from speclab.views.charts.choose import chart
from speclib import SpeclibError
from speclib.core.sampling import Sampler
from speclib.data import prompts
from speclib.data.latency import Latency, load_latency
from speclib.data.pairs import load_pair
from speclib.decoding.decode import decode as speclib_decode
from speclib.methods import METHODS
from speclib.models.open_pair import open_pair
from speclib.models.toy import BOS, Toy
from speclib.trace.events import Event, Trace
from speclib.trace.metrics import Stats, stats, total
from speclib.trace.rounds import cut_at, longest_tail, sequence_choices

pytestmark = pytest.mark.usefixtures("own_cache")

SMALLER = replace(SMALL, virtual_tokens=1_024)
LATENCY = "duodecoding/llama2-7b"


@pytest.fixture(scope="module")
def paper() -> Paper:
    return load_paper("duodecoding")


def virtual_spec(method: str = "duodecoding", **changes: Any) -> Spec:
    fields: dict[str, Any] = {
        "kind": "virtual",
        "method": method,
        "latency": LATENCY,
        "alpha": 0.8,
        "requests": 4,
        "tokens": 64,
    }
    if method != "autoregressive":
        fields["gamma"] = "auto"
    return Spec(**fields | changes)


def run(**changes: Any) -> CellResult:
    spec = virtual_spec(**changes)
    return run_all([spec])[spec]


# -- the published accounting ----------------------------------------------------------
def written_by(toy: Toy, count: int) -> np.ndarray:
    """The tokens that a toy writes at its first positions, whatever it has read."""
    text = (BOS,) * count
    return toy.rows(text, count - 1, Sampler()).argmax(-1)


def published_count(
    agrees: list[bool], gamma: int, first_budget: int, limit: int
) -> tuple[int, int]:
    """(tokens, target passes) of the loop as published, with one sequence.

    It goes on as long as the text with its unverified end is short of the limit. A
    round is one target pass over that end while the draft goes on.
    """
    text = window = passes = 0
    budget = first_budget
    while text + window < limit:
        passes += 1
        tested = agrees[text : text + window]
        if not all(tested):
            text += tested.index(False) + 1
            window = 0
        else:
            text += window + 1
            window = budget - 1 if agrees[text - 1] else 0
        budget = gamma
    return text + window, passes


@pytest.mark.parametrize("method", ["duodecoding", "pearl"])
@given(
    alpha=st.sampled_from([0.0, 0.5, 0.8, 0.95, 1.0]),
    gamma=st.integers(1, 9),
    limit=st.integers(1, 60),
    seed=st.integers(0, 5),
)
def test_tokens_and_time_with_the_tail_are_those_of_the_published_loop(
    decode, method, alpha, gamma, limit, seed
):
    """c = 100, so a round lasts one target pass whatever is drafted beside it."""
    draft, target = Toy(alpha, seed=seed), Toy(seed=seed)
    agrees = (written_by(draft, 400) == written_by(target, 400)).tolist()
    settings, first_budget = {}, gamma
    if method == "duodecoding":
        settings, first_budget = {"k": 1}, 1

    models = {"draft": draft, "target": target}
    latency = Latency.ratio(100)
    longer = limit + longest_tail(gamma)
    _, trace = decode(
        METHODS[method], models, longer, gamma=gamma, latency=latency, **settings
    )
    counts = stats(cut_at(trace, limit))
    tokens, passes = published_count(agrees, gamma, first_budget, limit)
    assert counts.with_tail == tokens >= limit == counts.tokens
    assert counts.with_tail_seconds == pytest.approx(passes)
    assert passes <= counts.seconds + 1e-9


def test_what_leaves_nothing_unverified_is_counted_as_committed(case, decode):
    leaves_drafts_to_its_next_round = case.name in (
        "pearl",
        "ssd",
        "duodecoding",
        "dsi",
    )
    for settings in case.at(1, 4):
        models = {"draft": Toy(0.8), "target": Toy()}
        _, trace = decode(case.method, models, 30, **settings)
        counts = stats(trace)
        assert counts.with_tail >= counts.tokens
        assert counts.with_tail_seconds <= counts.seconds
        if not leaves_drafts_to_its_next_round:
            assert counts.with_tail == counts.tokens
            assert counts.with_tail_seconds == counts.seconds


def test_an_output_that_ends_early_is_counted_as_far_as_it_went(decode):
    words = (1, 2, 3, 4, 5, 6, 7, 8)
    models = {"draft": Toy(1.0, words=words), "target": Toy(words=words)}
    _, trace = decode(METHODS["duodecoding"], models, 40, gamma=4, eos=frozenset({7}))
    counts = stats(trace)
    assert (counts.tokens, counts.with_tail) == (7, 7)


def test_one_round_with_a_block_ahead_is_counted_whole_by_the_published_code(decode):
    """gamma 24, all right: a round of one token, then one that commits the second and
    leaves 23. With them 16 tokens are there after two passes, where plain decoding has
    two."""
    models = {"draft": Toy(1.0), "target": Toy()}
    latency = Latency.ratio(24)
    longer = 16 + longest_tail(24)
    _, trace = decode(
        METHODS["duodecoding"], models, longer, gamma=24, k=1, latency=latency
    )
    counts = stats(cut_at(trace, 16))
    assert (counts.with_tail, counts.with_tail_seconds) == (25, pytest.approx(2))
    assert (counts.tokens, counts.seconds) == (16, pytest.approx(3))
    assert counts.inflation == pytest.approx((25 / 2) / (16 / 3))


@pytest.mark.parametrize("tokens", [16, 32])
def test_a_cell_with_the_tail_counts_what_the_published_loop_counts(tokens):
    """All drafts right: after one round of one token each leaves 23 to the next."""
    cell = run(alpha=1.0, tokens=tokens, settings=(("k", 1),), with_tail=True)
    published, passes = published_count([True] * 400, cell.gamma, 1, tokens)
    target = load_latency(LATENCY).target(1)
    for counts in cell.stats:
        assert (counts.with_tail, counts.tokens) == (published, tokens)
        assert counts.with_tail_seconds == pytest.approx(passes * target)


def test_an_accounting_is_a_setting_of_a_cell(paper):
    cells = {}
    for cell in cells_to_run(paper.table("extra-2"), QUICK):
        cells[cell.row, cell.column, cell.kind] = cell

    committed = cells["Math", "committed, k = 1", "measured"]
    assert committed.stat == "speedup"
    assert not committed.spec.ignore_eos
    assert not committed.spec.with_tail

    published = cells["Math", "as published, k = 1", "measured"]
    assert published.stat == "published_speedup"
    assert published.spec.ignore_eos
    assert published.spec.with_tail
    assert not published.spec.plain_decoding.with_tail

    with pytest.raises(SpeclibError, match="accounting is 'loose': give 'committed' o"):
        apply_accounting("speedup", "loose")


# -- several sequences -----------------------------------------------------------------
def drafting(
    round: int, tokens: tuple[int, ...], first_tested: str, sequences: int = 1
) -> Event:
    """Sequences drafted in a round, of which only the first token was tested."""
    untested = ("discarded",) * (len(tokens) - 1)
    return event_of(
        float(round),
        1.0,
        "draft",
        "draft_sequences",
        0,
        round,
        tokens,
        (first_tested, *untested),
        "virtual",
        sequences=sequences,
    )


def second_sequence_chosen(round: int) -> Event:
    """Two sequences of two tokens, of which the second one's first was accepted."""
    outcome = ("discarded", "discarded", "accepted", "discarded")
    event = drafting(round, (2, 3, 4, 5), "discarded", sequences=2)
    return event._replace(outcome=outcome)


BY_HAND = Trace(
    [
        drafting(0, (1,), "accepted"),  # too short for several sequences
        drafting(1, (2, 3, 4, 5), "accepted"),  # one, and it is it
        drafting(2, (2, 3, 4, 5), "discarded", sequences=2),  # its block failed
        second_sequence_chosen(3),
        drafting(4, (2, 3, 4, 5), "rejected", sequences=4),
        drafting(5, (2, 3, 4, 5), "rejected"),
        drafting(6, (2, 3, 4, 5), "accepted", sequences=2),
    ]
)


def cell_with(choices: list[tuple[int, int | None]]) -> CellResult:
    """A cell of one request with these choices among sequences."""
    return CellResult(
        virtual_spec(), [Stats()], [Stats()], 4, 24.0, sequence_choices=[choices]
    )


@pytest.mark.parametrize("item", ["table-1", "figure-3"])
def test_texts_are_as_long_as_the_scripts_have_them_for_each_target(paper, item):
    """cmds/*_llama.sh end QA and RAG at 32 tokens, cmds/*_vicuna.sh nothing at all."""
    lengths = defaultdict(set)  # by target, and by whether the task is QA or RAG
    for cell in cells_to_run(paper.table(item), FULL, ["virtual"]):
        label = cell.row if item == "table-1" else cell.column
        target = "Vicuna" if label.startswith("Vicuna") else "Llama"
        *_, task = cell.column.removesuffix(" / speedup").split(" / ")
        if task in ("average", "TPS", "Avg."):
            continue
        lengths[target, task in ("QA", "RAG")].add(cell.spec.tokens)

    assert lengths == {
        ("Vicuna", True): {128},
        ("Vicuna", False): {128},
        ("Llama", True): {32},
        ("Llama", False): {128},
    }


def test_the_facts_of_the_paper_have_the_lengths_of_both_targets(paper):
    tasks = paper.facts["tasks"]
    for task in ("qa", "rag"):
        lengths = tasks[task]["max_new_tokens"]
        assert lengths == {"Llama-2-7b": 32, "Vicuna-7b-v1.5": 128}
    assert tasks["gsm8k"]["max_new_tokens"] == 128


def test_branches_are_those_of_a_trace_written_by_hand():
    choices = [(1, 0), (2, None), (2, 1), (4, -1), (1, -1), (2, 0)]
    assert sequence_choices(BY_HAND) == choices


def test_shares_of_need_and_prediction_equal_a_count_by_hand():
    """Of the six, 5 are decided. The likeliest was accepted with one sequence (1) and
    with several (1), not accepted with one (1) and with several (2); undecided with
    several (1)."""
    cell = cell_with(sequence_choices(BY_HAND))
    share = {name: compute(name, cell) for name in SHARES}
    assert share["actual =1, pred =1, decided"] == 1 / 5
    assert share["actual =1, pred >1, decided"] == 1 / 5
    assert share["actual >1, pred =1, decided"] == 1 / 5
    assert share["actual >1, pred >1, decided"] == 2 / 5
    assert share["actual Total, pred Total, decided"] == 1
    assert share["actual >1, pred >1, all"] == 3 / 6
    assert share["actual =1, pred =1, all"] == 1 / 6
    assert share["actual Total, pred =1, all"] == 2 / 6
    assert share["sequences 1"] == 2 / 6
    assert share["sequences 2"] == 3 / 6
    assert share["sequences 4"] == 1 / 6
    assert np.isnan(compute("sequences 1", cell_with([])))


def test_branches_of_real_runs_are_stored_with_their_cell():
    """With the tail, since then every round has its whole budget, also the last."""
    what = {"doubt": 0.5, "alpha": 0.6, "with_tail": True}
    first, again = run(**what), run(**what)
    assert again.cached
    assert first.stats == again.stats
    assert len(first.sequence_choices) == 4
    counts_of_both = []
    for cell in (first, again):
        counts = sum(count_draftings(choices) for choices in cell.sequence_choices)
        counts_of_both.append(counts.tolist())
    assert counts_of_both[0] == counts_of_both[1]

    for choices, counts in zip(first.sequence_choices, first.stats, strict=True):
        assert len(choices) == counts.rounds - 1  # the first has a budget of one
        assert {k for k, _ in choices} <= {1, 2, 3, 4, 6, 8}
    share = Estimate(compute("sequences 1", first), resample("sequences 1", first))
    assert 0 <= share.interval.low < share.value < share.interval.high

    for choices in run(settings=(("k", 3),), with_tail=True).sequence_choices:
        assert all(k == 3 for k, _ in choices)


# -- cells -----------------------------------------------------------------------------
def test_a_budget_may_be_so_far_from_c():
    budgets = {}
    for gamma in ("c-2", "auto", "c+1"):
        budgets[gamma] = run(gamma=gamma, settings=(("k", 1),)).gamma
    assert budgets == {"c-2": 22, "auto": 24, "c+1": 25}
    with pytest.raises(ValidationError, match="gamma"):
        virtual_spec(gamma="c*2")


def test_doubt_and_end_tokens_belong_to_one_kind():
    measured = {"kind": "measured", "pair": "toy", "task": "toy"}
    for wrong in ({"doubt": 0.3, **measured}, {"ignore_eos": True}, {"length": 64}):
        with pytest.raises(ValidationError, match="and batch are a virtual cell's"):
            virtual_spec(**wrong)
    # Plain decoding asks no draft.
    assert virtual_spec(doubt=0.3).baseline == virtual_spec().baseline


def test_iterations_handle_the_budget_and_take_a_target_pass():
    """With the tail: else the last rounds draft no further than the text goes."""
    latency = load_latency(LATENCY)
    cell = run(tokens=400, requests=1, settings=(("k", 1),), with_tail=True)
    plain = run(method="autoregressive")
    rounds = cell.stats[0].rounds
    drafted = (1 + 24 * (rounds - 1)) / rounds
    assert compute("drafted_per_round", cell) == pytest.approx(drafted)
    assert compute("drafted_per_round", plain) == 1
    one_pass = pytest.approx(latency.target(1))
    assert compute("seconds_per_step", cell) == one_pass
    assert compute("seconds_per_step", plain) == one_pass
    draft_seconds = compute("draft_per_step", cell)
    assert draft_seconds == pytest.approx(24 * latency.draft(1))


def test_speculative_decodings_first_token_waits_for_its_drafts():
    speculative = compute("ttft_over_plain", run(method="speculative", gamma=5))
    assert speculative == pytest.approx(1 + 5 / 24)
    duodecoding = compute("ttft_over_plain", run(method="duodecoding", gamma=5))
    assert duodecoding == pytest.approx(1)


@pytest.mark.thorough
def test_without_end_tokens_every_output_has_its_length():
    pair = load_pair("ladder/poor")
    prompt = prompts.load("qa", 1)[0].input
    common = {
        "pair": pair,
        "method": "prompt_lookup",
        "world": "virtual",
        "max_new_tokens": 200,
    }
    ended = speclib_decode(prompt, ignore_eos=False, **common)
    unended = speclib_decode(prompt, ignore_eos=True, **common)
    assert len(ended.tokens) < 200 == len(unended.tokens)

    end_token = open_pair(pair).tokenizer.eos_token_id
    last = len(ended.tokens) - 1
    assert ended.tokens[last] == end_token == unended.tokens[last]


# -- items -----------------------------------------------------------------------------
@pytest.mark.thorough
@pytest.mark.parametrize("task", ["mt", "trans", "math", "code"])
def test_one_sequences_rate_gives_back_the_printed_speed(paper, task):
    """By a simulation of the method itself, 1,600 tokens: 3 %."""
    name = f"llama2-{task}"
    calibration = paper.calibration[name]
    cell = run(
        latency=calibration.latency,
        alpha=paper.alpha(name),
        tokens=1600,
        requests=4,
        settings=(("k", 1),),
    )
    printed = paper.printed(*calibration.cell)
    assert total(cell.stats).decode_speed == pytest.approx(printed, rel=0.04)


def test_every_item_asks_for_what_its_kind_can_say(paper):
    virtual, measured = {}, {}
    for item, table in paper.tables.items():
        virtual[item] = cells_to_run(table, QUICK, ["virtual"])
        measured[item] = cells_to_run(table, QUICK, ["measured"])

    with_measured = {item for item, cells in measured.items() if cells}
    assert with_measured == set(paper.facts["fill"]["measured"])
    budgets = {cell.spec.gamma for cell in measured["table-3"]}
    assert budgets == {"c-2", "c-1", "auto", "c+1", "c+2"}
    assert {cell.spec.doubt for cell in virtual["table-2"]} == {0.3}
    lengths = {cell.spec.length for cell in measured["figure-1"]}
    assert lengths == {64, 128, 256, 512, 1024}
    outputs = {(cell.row, cell.spec.tokens) for cell in measured["extra-1"]}
    assert outputs == {("16", 16), ("32", 32), ("64", 64), ("128", 128)}

    tested = set()
    for cell in measured["table-4"]:
        if "tested" in cell.row:
            tested.add(cell.stat)
    assert tested == {
        "actual =1, pred =1, decided",
        "actual =1, pred >1, decided",
        "actual =1, pred Total, decided",
        "actual >1, pred =1, decided",
        "actual >1, pred >1, decided",
        "actual >1, pred Total, decided",
    }


def test_items_of_ours_print_nothing_and_say_so():
    tables = load_folder("papers/duodecoding")
    assert_ours_print_nothing(tables, {"extra-1", "extra-2"})


def test_measured_numbers_are_drawn_one_panel_per_unit_or_kind(paper):
    by_length = TableResult(paper.table("figure-1"), QUICK)
    by_length.values["measured"] = {}
    for length in (64, 128, 1024):
        for column in by_length.table.column_labels:
            cell = f"{length} tokens", column
            by_length.values["measured"][cell] = length / 64
    lines = chart(by_length).data
    assert [list(line.x) for line in lines] == [[64, 128, 1024]] * 3
    assert len({line.yaxis for line in lines}) == 2  # a quotient, and seconds

    by_sequences = TableResult(paper.table("figure-5"), QUICK)
    by_sequences.values["measured"] = {
        ("1", "Math"): 0.5,
        ("1", "Trans"): 0.5,
        ("8", "Math"): 0.5,
        ("8", "Trans"): 0.5,
    }
    bars = chart(by_sequences).data
    assert [(bar.name, list(bar.x), list(bar.y)) for bar in bars] == [
        ("Math", ["1", "8"], [0.5, 0.5]),
        ("Trans", ["1", "8"], [0.5, 0.5]),
    ]


@pytest.mark.thorough
def test_every_item_is_filled_judged_and_drawn(paper, tmp_path):
    results = fill_virtually(paper, tmp_path, SMALLER)
    assert_filled_as_the_paper_says(paper, results)

    for item, result in results.items():
        figure = chart(result)
        is_measured_only = item in ("figure-1", "figure-5")
        assert (figure is None) == is_measured_only, item
        if figure is not None:
            assert len(figure.data) > 2, item
            assert all(len(part.y) for part in figure.data), item

    def verdict(item: str, claim: str) -> VerdictLine:
        return verdicts_of_kind(results[item], "virtual")[claim]

    assert verdict("figure-1", "eight-drafts-match-one-verification").holds == "no"
    same_draft = verdict("table-1", "parallel-beats-sequential-on-the-same-draft")
    assert same_draft.holds == "no"

    # The numbers are as claimed; so few requests do not settle it.
    above_c = verdict("table-3", "above-c-an-iteration-lasts-longer")
    assert above_c.holds == "open"
    assert max(float(share) for share in above_c.value.split(", ")) <= 0.93
    less_with_length = verdict("extra-1", "less-with-length")
    assert (less_with_length.holds, less_with_length.value) == ("open", "6 of 6")

    processed = results["figure-4"].values["virtual"]
    assert processed["Autoregressive", "processed tokens"] == 1
