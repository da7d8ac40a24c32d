"""Peers run in a separate process.

transformers writes the same tokens in the same number of passes, and reports failures.
"""

from __future__ import annotations

import os
import signal
from functools import cache

import pytest

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


import speclib  # noqa: E402
from speclab.peers import external  # noqa: E402
from speclab.peers.external import EXTERNAL, External  # noqa: E402
from speclib.data import prompts  # noqa: E402
from speclib.errors import BadValue  # noqa: E402
from speclib.models import zoo  # noqa: E402
from speclib.models.open_pair import open_pair  # noqa: E402
from speclib.worlds.devices import DeviceLost  # noqa: E402

if not (zoo.ZOO / "draft-good" / "model.safetensors").exists():
    pytest.skip(
        "the embedded models are not trained: make models", allow_module_level=True
    )

FEW = ("humaneval", "mgsm_te")
TASKS = (*FEW, "gsm8k", "rag", "summarization")
COUNTS = (
    "tokens",
    "first_tokens",
    "rounds",
    "drafted",
    "accepted",
    "rejected",
    "draft_runs",
    "target_runs",
)
EMBEDDED = speclib.load_pair("embedded/llama-7b-70b")
PAIR = EMBEDDED.model_copy(
    update={
        r: getattr(EMBEDDED, r).model_copy(update={"shape": None})
        for r in ("target", "draft")
    }
)
ASSIST, LOOKUP = "transformers-assisted", "transformers-prompt-lookup"
HEURISTIC = {
    "num_assistant_tokens": 5,
    "num_assistant_tokens_schedule": "heuristic_transient",
}
OURS = {
    "transformers-plain": "autoregressive",
    ASSIST: "assisted",
    LOOKUP: "prompt_lookup",
}
SAME = [  # a peer's settings, and our method's equivalent settings
    ("transformers-plain", {}, {}),
    (ASSIST, {}, {}),
    (
        ASSIST,
        {**HEURISTIC, "assistant_confidence_threshold": 0.0},
        {
            "num_assistant_tokens": 5,
            "schedule": "heuristic",
            "confidence_threshold": 0.0,
        },
    ),
    (
        LOOKUP,
        {"prompt_lookup_num_tokens": 5, "max_matching_ngram_size": 3},
        {"num_tokens": 5, "max_matching_ngram_size": 3},
    ),
]


@pytest.fixture(scope="module")
def virtual():
    with speclib.open_world("virtual", PAIR) as world:
        yield world


@pytest.fixture(scope="module")
def wanted(virtual):
    """wanted(task) returns plain decoding's tokens for the task's first prompt."""

    @cache
    def wanted(task: str) -> tuple[int, ...]:
        prompt = prompts.load(task)[0].input
        result = speclib.decode(
            prompt, world=virtual, max_new_tokens=40, method="autoregressive"
        )
        return result.tokens

    return wanted


@pytest.fixture(scope="module")
def plain():
    with External("transformers-plain", PAIR) as peer:
        yield peer


def counts(stats) -> dict:
    return {name: getattr(stats, name) for name in COUNTS}


def compare(peer, world, ours: dict, prompt, limit: int) -> tuple:
    """Returns a peer's answer and our result, after checking that they agree."""
    answer = peer.decode(prompt, max_new_tokens=limit)
    result = speclib.decode(
        prompt, world=world, method=OURS[peer.name], max_new_tokens=limit, **ours
    )
    assert answer.tokens == result.tokens
    assert answer.text == result.text
    assert counts(answer.stats) == counts(result.stats)
    return answer, result


# -- agreement -------------------------------------------------------------------------
@pytest.mark.parametrize("name, theirs, ours", SAME, ids=str)
@pytest.mark.parametrize(
    "tasks",
    [FEW, pytest.param(TASKS, marks=pytest.mark.thorough)],
    ids=["two tasks", "five"],
)
def test_our_methods_and_peers_write_the_same_tokens_in_the_same_passes(
    virtual, wanted, name, theirs, ours, tasks
):
    """All counts are equal: prefill is each model's first pass in both."""
    with External(name, PAIR, **theirs) as peer:
        for task in tasks:
            answer, _ = compare(peer, virtual, ours, prompts.load(task)[0].input, 40)
            assert answer.tokens == wanted(task)
            assert (answer.stats.draft_runs > 0) == EXTERNAL[name].drafts
            assert (answer.stats.drafted > 0) == (name != "transformers-plain")


@pytest.mark.thorough
@pytest.mark.parametrize("name", [ASSIST, LOOKUP])
def test_they_agree_up_to_the_end_token_and_at_every_limit(virtual, name):
    with External(name, PAIR) as peer:
        for task in ("gsm8k", "translation"):
            answer, _ = compare(peer, virtual, {}, prompts.load(task)[0].input, 400)
            assert answer.tokens[-1] == open_pair(PAIR).tokenizer.eos_token_id
        for limit in range(1, 12):
            compare(peer, virtual, {}, prompts.load("humaneval")[0].input, limit)


# -- place -----------------------------------------------------------------------------
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no pinning here")
def test_a_single_thread_is_pinned_to_the_targets_core_but_several_are_not(plain):
    allowed = sorted(os.sched_getaffinity(0))
    assert EMBEDDED.place.target == ("core:1",)
    assert EMBEDDED.place.threads == 1
    (process,) = plain.processes
    assert os.sched_getaffinity(process) == {allowed[1 % len(allowed)]}

    with External("transformers-plain", PAIR, threads=2) as peer:
        (process,) = peer.processes
        assert sorted(os.sched_getaffinity(process)) == allowed


# -- failures --------------------------------------------------------------------------
def test_a_killed_peer_is_named_and_replaced_for_the_next_request():
    with External("transformers-plain", PAIR) as peer:
        wanted = peer.decode("def f", max_new_tokens=4).tokens
        (process,) = peer.processes

        os.kill(process, signal.SIGKILL)
        with pytest.raises(DeviceLost, match="'transformers-plain' on .* exit code -9"):
            peer.decode("def f", max_new_tokens=4)
        assert peer.decode("def f", max_new_tokens=4).tokens == wanted


def test_a_peer_that_answers_too_late_is_stopped():
    late = pytest.raises(DeviceLost, match="no answer in 0.001 s")
    with External("transformers-plain", PAIR, timeout=1e-3) as peer, late:
        peer.decode("def f", max_new_tokens=64)


HUGE = {"model": "zoo/target", "like": "llama-2-70b"}  # 276 GB in float32


def test_models_without_memory_are_refused_before_any_is_built(monkeypatch):
    """A peer builds models in its own process, which must not be started."""

    def begin_a_process(*_):
        pytest.fail("a process was started")

    monkeypatch.setattr(external, "Worker", begin_a_process)
    small = {"model": "zoo/draft-good"}
    with pytest.raises(BadValue, match="does not fit in float32: cpu would hold 27"):
        External(ASSIST, speclib.pair(HUGE, small), dtype="float32")
    with pytest.raises(BadValue, match="does not fit"):
        External(ASSIST, speclib.pair(small, HUGE), dtype="float32")
