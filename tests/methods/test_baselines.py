"""Assisted generation and prompt lookup, compared with hand counts and transformers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclib.core.sampling import Coins, Sampler, ids
from speclib.data.latency import Curve, Latency
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.methods.prompt_lookup import continuation
from speclib.models.toy import Random, Scripted, Toy
from speclib.trace.metrics import stats
from speclib.worlds.virtual import Virtual

WORDS = tuple(range(1, 60))  # all different: an end token has one position


def toys(alpha: float = 1.0, words=WORDS, context: int = 128) -> dict:
    return {
        "draft": Toy(alpha, 60, 0, words, context),
        "target": Toy(None, 60, 0, words, context),
    }


def drafts(trace, op: str = "propose") -> list[tuple[int, ...]]:
    return [e.tokens for e in trace.events if e.op == op]


def sizes(trace) -> list[int]:
    return [len(tokens) for tokens in drafts(trace)]


# -- assisted generation ---------------------------------------------------------------
def test_a_constant_schedule_drafts_a_fixed_number_but_never_the_last_token(decode):
    """10 tokens are two rounds of 3 drafts and a bonus, then one draft and a bonus."""
    output, trace = decode(METHODS["assisted"], toys(), 10, num_assistant_tokens=3)
    assert output == WORDS[:10]
    assert sizes(trace) == [3, 3, 1]

    output, trace = decode(METHODS["assisted"], toys(), 9, num_assistant_tokens=3)
    assert output == WORDS[:9]
    assert sizes(trace) == [3, 3]
    assert stats(trace).target_runs == 3


def test_the_heuristic_adds_two_after_full_acceptance_or_subtracts_one(decode):
    """A perfect draft drafts 2, 4, 6 and 8 tokens; with four bonus tokens, that is 24.

    A useless draft drafts 3 tokens, then 2, then 1 per round.
    """
    settings = {"schedule": "heuristic", "num_assistant_tokens": 2}
    _, trace = decode(METHODS["assisted"], toys(), 24, **settings)
    assert sizes(trace) == [2, 4, 6, 8]

    settings["num_assistant_tokens"] = 3
    _, trace = decode(METHODS["assisted"], toys(0.0), 6, **settings)
    assert sizes(trace) == [3, 2, 1, 1, 1]


def test_drafting_ends_after_an_end_token(decode):
    _, trace = decode(METHODS["assisted"], toys(), 40, eos=frozenset({7}))
    assert drafts(trace) == [WORDS[:7]]
    assert trace.commits[-1].tokens == WORDS[:7]


@pytest.mark.parametrize(
    "sampler", [Sampler(), Sampler(1.0)], ids=["greedy", "sampling"]
)
@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
def test_drafting_ends_after_the_first_token_with_low_confidence(threshold, sampler):
    """The draft's confidence is its probability at temperature 1.

    It is not q, which is one-hot in greedy decoding.
    """
    draft = Random(4, 1)
    world = Virtual({"draft": draft, "target": Random(4, 2)}, Latency.ratio(3))
    world.begin((0,), sampler=sampler, coins=Coins(3), limit=40)
    METHODS["assisted"](world, 6, confidence_threshold=threshold)
    text = world.text
    trace = world.end()

    committed = 0
    ended_by_doubt = []
    for proposed, commit in zip(drafts(trace), trace.commits, strict=False):
        chances = []  # the draft's probabilities of its proposed tokens
        for index, token in enumerate(proposed):
            text_before = text[: 1 + committed] + proposed[:index]
            (row,) = draft.rows(text_before, 0, Sampler(1.0))
            chances.append(row[token])

        assert min(chances[:-1], default=1.0) >= threshold
        ended_by_doubt.append(chances[-1] < threshold)
        left = 40 - committed
        assert ended_by_doubt[-1] or len(proposed) == min(6, left - 1)
        committed += len(commit.tokens)

    assert len(ended_by_doubt) > 3
    assert any(ended_by_doubt) == (threshold > 0)
    assert threshold < 1 or all(ended_by_doubt)


def test_a_draft_that_ends_early_takes_the_time_of_the_passes_that_ran():
    """Only 2 of 5 drafts are made: a 9 s prefill of 4 tokens, then a pass of 1 s."""

    class Unsure(Toy):
        def chances(self):
            return np.where(np.arange(60) == WORDS[4], 0.1, 0.9)

    models = {"draft": Unsure(1.0, 60, 0, WORDS), "target": Toy(None, 60, 0, WORDS)}
    world = Virtual(models, Latency(Curve(((1, 1.0),), 9.0), Curve(((1, 30.0),))))
    world.begin((0,) * 4, sampler=Sampler(), coins=Coins(), limit=50)
    drafted = world.wait(world.draft.propose(world.text, 5, confidence=0.4))
    event = world.end().operations[0]
    assert event.tokens == ids(drafted) == WORDS[3:5]
    assert (event.dur, event.kept, event.fed) == (10.0, 0, 5)


# -- prompt lookup ---------------------------------------------------------------------
@given(
    text=st.lists(st.integers(0, 3), min_size=1, max_size=14),
    length=st.integers(1, 6),
    longest=st.integers(1, 4),
    eos=st.sampled_from([(), (2,), (2, 0)]),
)
def test_prompt_lookup_drafts_what_transformers_does(text, length, longest, eos):
    torch = pytest.importorskip("torch")
    from transformers.generation.candidate_generator import (
        PromptLookupCandidateGenerator,
    )

    theirs = PromptLookupCandidateGenerator(
        eos_token_id=torch.tensor(eos) if eos else None,
        num_output_tokens=length,
        max_matching_ngram_size=longest,
        max_length=100,
    )
    candidates, _ = theirs.get_candidates(torch.tensor([text]))
    expected = candidates[0, len(text) :].tolist()

    world = Virtual({"draft": Random(4), "target": Random(4)}, Latency.ratio(2))
    world.begin(text, sampler=Sampler(), coins=Coins(), limit=50, eos=eos)
    guessed = world.guess(continuation(world.text, length, longest))
    assert [drafted.token for drafted in guessed] == expected
    for drafted in guessed:
        assert drafted.q[drafted.token] == drafted.q.sum() == 1


def test_looked_up_tokens_are_tested_like_any_other_and_no_draft_model_runs(decode):
    """In 5 6 7 5, looking up the second 5 finds 6 7 5.

    The target writes 6 8, then 9, 9.
    """
    prompt = (5, 6, 7, 5)
    said = (6, 8, 9, 9)
    lines = {prompt + said[:index]: token for index, token in enumerate(said)}
    models = {"draft": Scripted({}, 10), "target": Scripted(lines, 10)}
    output, trace = decode(METHODS["prompt_lookup"], models, 4, prompt=prompt)
    assert output == said
    assert [e.tokens for e in trace.commits] == [(6, 8), (9,), (9,)]

    (lookup,) = (e for e in trace.events if e.op == "lookup")
    assert (lookup.device, lookup.dur) == ("controller", 0)
    assert lookup.tokens == (6, 7, 5)
    assert lookup.outcome == ("accepted", "rejected", "discarded")

    counts = stats(trace)
    assert (counts.drafted, counts.accepted, counts.rejected) == (3, 1, 1)
    assert (counts.draft_runs, counts.draft_seconds) == (0, 0)
    assert (counts.target_runs, counts.operations) == (3, 3)


def test_a_guess_ends_at_the_end_of_the_context_and_before_unknown_tokens():
    world = Virtual(toys(context=8), Latency.ratio(2))
    world.begin((0,) * 5, sampler=Sampler(), coins=Coins(), limit=3)
    assert ids(world.guess((1, 2, 3, 4))) == (1, 2, 3)
    assert ids(world.guess((1, 60, 2))) == (1,)
    assert world.guess((60,)) == world.guess(()) == ()


# -- bad settings ----------------------------------------------------------------------
@pytest.mark.parametrize(
    "name, settings, says",
    [
        (
            "assisted",
            {"schedule": "linear"},
            "schedule is 'linear': give 'constant' or 'heuristic'",
        ),
        ("prompt_lookup", {"num_tokens": 0}, "num_tokens is 0: give at least 1"),
    ],
)
def test_an_invalid_setting_is_refused(decode, name, settings, says):
    with pytest.raises(SpeclibError, match=says):
        decode(METHODS[name], toys(), 4, **settings)
