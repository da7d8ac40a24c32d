"""Several prompts at a time: the output of each, on every clock."""

from __future__ import annotations

import os
import signal

import pytest
import torch

import speclib
from speclib.data.latency import Curve, Latency
from speclib.data.prompts import load
from speclib.errors import BadValue, SpeclibError
from speclib.models.batched import SharedNetwork
from speclib.worlds.devices import DeviceFailed, DeviceLost
from speclib.worlds.process_batch import ProcessBatch

PAIR = "embedded/llama-7b-70b"

# Undilated, the pair writes the same tokens in faster passes.
TRAINED = speclib.load_pair(PAIR)
TRAINED = TRAINED.model_copy(
    update={
        role: TRAINED.model(role).model_copy(update={"shape": None})
        for role in ("draft", "target")
    }
)
PROMPTS = [prompt.input for prompt in load("humaneval", 4)]
SETTINGS = {"autoregressive": {}, "speculative": {"gamma": 3}, "pearl": {"gamma": 3}}
SLOW = Latency(draft=Curve(((1, 0.002),)), target=Curve(((1, 0.01),), per_token=0.001))


@pytest.fixture(scope="module")
def alone():
    """alone(method, number) returns the result of decoding one prompt alone."""
    with speclib.open_world("virtual", speclib.load_pair(PAIR)) as world:

        def answer(method: str, number: int, **how):
            return speclib.decode(
                PROMPTS[number],
                world=world,
                method=method,
                request=number,
                **SETTINGS[method],
                **how,
            )

        yield answer


def together(method: str, world: str, batch: int = 3, pair=PAIR, **how):
    return speclib.decode_batch(
        PROMPTS,
        pair=pair,
        method=method,
        batch=batch,
        world=world,
        **SETTINGS[method],
        **how,
    )


# -- lossless --------------------------------------------------------------------------
@pytest.mark.parametrize("method", SETTINGS)
@pytest.mark.parametrize("temperature, tokens", [(0.0, 80), (1.0, 24)])
def test_each_prompt_is_answered_as_it_is_alone(alone, method, temperature, tokens):
    """The rounds are equal too, though requests end at different times."""
    how = dict(max_new_tokens=tokens, temperature=temperature)
    batch = together(method, "virtual", **how)
    assert batch.seats == 3
    if not temperature:
        assert len({len(result.tokens) for result in batch.results}) > 1
    for number, result in enumerate(batch.results):
        own = alone(method, number, **how)
        assert result.tokens == own.tokens
        assert result.text == own.text
        assert result.stats.target_runs == own.stats.target_runs
        assert result.stats.accepted == own.stats.accepted


@pytest.mark.parametrize("world", ["processes", "emulated"])
def test_real_processes_serve_several_prompts_with_the_same_answers(alone, world):
    how = dict(max_new_tokens=10, latency=SLOW if world == "emulated" else None)
    batch = together("pearl", world, pair=TRAINED, **how)
    for number, result in enumerate(batch.results):
        assert result.tokens == alone("pearl", number, max_new_tokens=10).tokens
        assert {event.clock for event in result.trace.events} == {
            "measured" if world == "processes" else "emulated"
        }


def test_an_open_world_serves_several_calls_in_turn(alone):
    with ProcessBatch(TRAINED, 2) as world:
        how = dict(method="pearl", gamma=3, max_new_tokens=8, world=world)
        first = speclib.decode_batch(PROMPTS, **how)
        again = speclib.decode_batch(PROMPTS, **how)
    assert first.seats == 2
    assert [r.tokens for r in first.results] == [r.tokens for r in again.results]
    own = alone("pearl", 3, max_new_tokens=8)
    assert first.results[3].tokens == own.tokens


def test_c_is_the_cost_ratio_of_passes_for_all_seats():
    """A pass takes 10 ms and 1 ms per request, here 13 ms, and the draft takes 2 ms."""
    how = dict(pair=PAIR, method="speculative", world="virtual", max_new_tokens=4)
    batch = speclib.decode_batch(PROMPTS[:3], latency=SLOW, **how)
    assert {result.trace.meta["gamma"] for result in batch.results} == {round(13 / 2)}


@pytest.mark.parametrize("method", ["pearl", "duodecoding"])
def test_in_bfloat16_passes_of_one_shape_write_what_plain_decoding_writes(method):
    """The order of requests does not matter; plain decoding has three seats too."""
    pair = speclib.load_pair(PAIR).with_fixed_rows(8, draft=4)
    how = dict(pair=pair, dtype="bfloat16", max_new_tokens=24, world="virtual")
    plain = speclib.decode_batch(PROMPTS, method="autoregressive", batch=3, **how)
    turned = speclib.decode_batch(PROMPTS[::-1], method=method, batch=3, **how)
    expected = [result.tokens for result in plain.results]
    assert [result.tokens for result in turned.results[::-1]] == expected


# -- one network for several seats -----------------------------------------------------


@pytest.mark.parametrize("mistake", ["rows swapped", "padding seen"])
def test_requests_that_are_mixed_are_noticed(alone, mistake, monkeypatch):
    """With a planted mistake, the answers above differ."""
    right = SharedNetwork.logits
    right_mask = SharedNetwork._mask

    def logits(self, feeds):
        found = right(self, feeds)
        if mistake == "rows swapped" and len(found) > 1:
            found[0], found[1] = found[1][-1:].expand_as(found[0]), found[1]
        return found

    def mask(self, positions):
        seen = right_mask(self, positions)
        return torch.zeros_like(seen) if mistake == "padding seen" else seen

    monkeypatch.setattr(SharedNetwork, "logits", logits)
    monkeypatch.setattr(SharedNetwork, "_mask", mask)
    how = dict(max_new_tokens=16)
    batch = together("speculative", "virtual", **how)
    written = [result.tokens for result in batch.results]
    expected = [alone("speculative", number, **how).tokens for number in range(4)]
    assert written != expected


# -- bad input -------------------------------------------------------------------------
@pytest.mark.parametrize(
    "wrong, message",
    [
        (dict(prompts=[]), r"prompts is \[\]"),
        (dict(prompts="one text"), "give a list"),
        (dict(method="dsi"), "one at a time"),
        (dict(world="cluster"), "unknown world 'cluster'"),
        (dict(dtype="bfloat16"), "with_fixed_rows"),
        (dict(temperature=[0.0, 1.0]), "temperature is"),
        (dict(batch=65, prompts=PROMPTS * 17, world="processes"), "up to 64"),
        (dict(pair="embedded/eagle"), "one place"),
    ],
)
def test_requests_that_cannot_be_decoded_together_are_refused(wrong, message):
    how = dict(prompts=PROMPTS, pair=PAIR, world="virtual", max_new_tokens=4) | wrong
    with pytest.raises(SpeclibError, match=message):
        speclib.decode_batch(how.pop("prompts"), **how)


def test_seats_without_memory_are_refused_before_a_worker_starts():
    """The target caches keys and values of 12 layers with 768 channels in float32.

    A billion tokens per seat are requested.
    """
    with pytest.raises(BadValue, match="caches of 64,000,000,000 tokens.*fewer"):
        ProcessBatch(speclib.load_pair(PAIR), 64, length=10**9)


def test_a_killed_worker_is_named():
    with ProcessBatch(speclib.load_pair(PAIR), 2) as steps:
        os.kill(steps.devices.processes["target"][0], signal.SIGKILL)
        with pytest.raises(DeviceLost, match="'target'.*exit code -9"):
            steps.settle(with_c=True)


def test_an_error_in_a_worker_is_explained():
    with ProcessBatch(speclib.load_pair(PAIR), 1) as steps:

        def serve(seat):
            seat.begin((10**6,), sampler=None, coins=None, limit=2)
            seat.wait(seat.target.score(seat.text))

        with pytest.raises((DeviceFailed, BadValue)):
            steps.run(serve)
