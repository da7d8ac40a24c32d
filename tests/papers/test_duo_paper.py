"""DuoDecoding's paper: its accounting repeated, and its sequences counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.specs import virtual_spec
from helpers.tables import committed, verdicts_of
from hypothesis import given
from hypothesis import strategies as st

from speclab.papers.statistics import number_of
from speclab.runs.rows import CellRuns
from speclab.traces.counts import counts_of
from speclab.traces.cut_traces import cut_at, longest_tail
from speclab.virtual import cells
from speclib.core.sampling import Sampler
from speclib.data.latency import Latency, load_latency
from speclib.methods import METHODS
from speclib.models.toy import BOS, Toy

LATENCY = "duodecoding/llama2-7b"  # its c is 24
K_1 = (("k", 1),)


def run(method: str = "duodecoding", gamma: Any = "auto", **changes: Any) -> CellRuns:
    fields = {"latency": LATENCY, "alpha": 0.8, "requests": 4, "tokens": 64, **changes}
    return cells.run(virtual_spec(method, gamma, **fields))


def value_of(name: str, runs: CellRuns) -> float:
    return number_of(name, runs).value


# -- the published accounting ----------------------------------------------------------
def written_by(toy: Toy, count: int) -> np.ndarray:
    """The tokens that a toy writes at its first positions, whatever the text."""
    text = (BOS,) * count
    return toy.rows(text, count - 1, Sampler()).argmax(-1)


def published_count(
    agrees: list[bool], gamma: int, first_budget: int, limit: int
) -> tuple[int, int]:
    """(tokens, target passes) of the loop as published, with one sequence.

    It runs until the text with its unverified tail reaches the limit. In each round,
    one target pass verifies that tail while the draft continues.
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
    """c = 100, so a round lasts one target pass for any number of drafts."""
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
    counted = counts_of(cut_at(trace, limit))
    tokens, passes = published_count(agrees, gamma, first_budget, limit)
    assert counted.with_tail == tokens >= limit == counted.tokens
    assert counted.with_tail_seconds == pytest.approx(passes)
    assert passes <= counted.seconds + 1e-9


def test_without_an_unverified_tail_only_committed_tokens_count(case, decode):
    leaves_drafts = case.name in ("pearl", "ssd", "duodecoding", "dsi")
    for settings in case.at(1, 4):
        models = {"draft": Toy(0.8), "target": Toy()}
        _, trace = decode(case.method, models, 30, **settings)
        counted = counts_of(trace)
        assert counted.with_tail >= counted.tokens
        assert counted.with_tail_seconds <= counted.seconds
        if not leaves_drafts:
            assert counted.with_tail == counted.tokens
            assert counted.with_tail_seconds == counted.seconds


@pytest.mark.parametrize("tokens", [16, 32])
def test_a_cell_with_the_tail_counts_what_the_published_loop_counts(tokens):
    """All drafts right: one round drafts a token; the next commits the second one and
    leaves 23. If the text ends after two passes, 25 tokens are counted, not 16."""
    runs = run(alpha=1.0, tokens=tokens, settings=K_1, with_tail=True)
    published, passes = published_count([True] * 400, runs.gamma, 1, tokens)
    target = load_latency(LATENCY).target(1)
    for counted in runs.stats:
        assert (counted.with_tail, counted.tokens) == (published, tokens)
        assert counted.with_tail_seconds == pytest.approx(passes * target)
    if tokens == 16:
        assert (published, passes) == (25, 2)
        inflation = value_of("inflation", runs)
        assert inflation == pytest.approx((25 / 2) / (16 / 3))


# -- cells -----------------------------------------------------------------------------
def test_iterations_handle_the_budget_and_take_a_target_pass():
    """With the tail; without it, the last rounds draft only to the end of the text."""
    latency = load_latency(LATENCY)
    runs = run(tokens=400, requests=1, settings=K_1, with_tail=True)
    plain = run("autoregressive", None)
    rounds = runs.stats[0].rounds
    drafted = (1 + 24 * (rounds - 1)) / rounds
    assert value_of("drafted_per_round", runs) == pytest.approx(drafted)
    assert value_of("drafted_per_round", plain) == 1
    one_pass = pytest.approx(latency.target(1))
    assert value_of("seconds_per_step", runs) == one_pass
    assert value_of("seconds_per_step", plain) == one_pass
    draft_seconds = value_of("draft_per_step", runs)
    assert draft_seconds == pytest.approx(24 * latency.draft(1))


def test_speculative_decodings_first_token_waits_for_its_drafts():
    for method, later in (("speculative", 5 / 24), ("duodecoding", 0)):
        over_plain = value_of("ttft_over_plain", run(method, 5))
        assert over_plain == pytest.approx(1 + later)


# -- items -----------------------------------------------------------------------------


def test_verdicts_of_the_virtual_clock_on_the_papers_claims():
    results = committed("duodecoding")
    for item, claim, holds in (
        ("figure-1", "eight-drafts-match-one-verification", "no"),
        ("table-1", "parallel-beats-sequential-on-the-same-draft", "no"),
        ("table-3", "above-c-an-iteration-lasts-longer", "yes"),
        ("extra-1", "less-with-length", "yes"),
    ):
        assert verdicts_of(results[item], "virtual")[claim].holds == holds, claim
    processed = results["figure-4"].values["virtual"]
    assert processed["Autoregressive", "processed tokens"] == 1
