"""What is known of an output: where it leaves plain decoding's, where models agree."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.specs import LATENCY, measured_spec

from speclab.experiment.cells import toy_requests as virtual_cells
from speclab.experiment.cells.outputs import (
    Departure,
    find_agreements,
    find_departure,
    first_difference,
)
from speclab.experiment.run_cells import example_trace, run_all
from speclib.data.latency import Latency, load_latency
from speclib.data.pairs import load_pair
from speclib.decoding.decode import open_world
from speclib.methods import METHODS
from speclib.models import zoo
from speclib.models.open_pair import open_pair
from speclib.models.toy import Toy
from speclib.trace.events import Trace
from speclib.worlds.virtual import Virtual


def test_the_first_difference_between_outputs():
    assert first_difference((1, 2, 3), (1, 2, 3)) is None
    assert first_difference((1, 2, 3), (1, 9, 3)) == 1
    assert first_difference((1, 2), (1, 2, 3)) == 2


class LeadThatGrows(Toy):
    """After n tokens the best logit leads by n eighths."""

    def rows(self, text, last, sampler):
        self._feed(text, last)
        logits = []
        for length in range(len(text) - last, len(text) + 1):
            logits.append([-1.0, 3.0, 3.0 + length / 8])
        return sampler(np.array(logits))


def test_a_departure_has_the_gap_between_the_targets_two_best_logits():
    models = {"draft": LeadThatGrows(vocab=3), "target": LeadThatGrows(vocab=3)}
    world = Virtual(models, Latency.ratio(3))
    departure = find_departure(world, (0,), (2, 2, 1, 2), (2, 2, 2, 2))
    assert departure == Departure(position=2, gap=pytest.approx(3 / 8))
    no_departure = find_departure(world, (0,), (2, 2), (2, 2))
    assert no_departure == Departure(position=None, gap=None)


def accepted_or_not(trace: Trace) -> list[bool]:
    """Whether each draft that the target tested was accepted, in order."""
    accepted = []
    for event in trace.operations:
        for outcome in event.outcome:
            if outcome != "discarded":
                accepted.append(outcome == "accepted")
    return accepted


def test_agreements_are_what_verification_finds():
    """PEARL tests a draft at every position that it commits."""
    cell = virtual_cells.ToyCell(
        METHODS["pearl"], load_latency(LATENCY), 0.8, tokens=80, settings={"gamma": 3}
    )
    world = virtual_cells.open_world(cell)
    trace = virtual_cells.decode_request(cell, 0, world)
    output = world.text[1:]
    accepted = accepted_or_not(trace)
    assert 5 < accepted.count(False) < 40
    assert find_agreements(world, (0,), output) == accepted


@pytest.mark.thorough
def test_a_gap_of_the_embedded_target_is_that_of_its_logits():
    import torch
    from transformers import AutoModelForCausalLM

    pair = load_pair("embedded/llama-7b-70b")
    text = open_pair(pair).tokenizer.encode("def add(a, b):\n    return")
    network = AutoModelForCausalLM.from_pretrained(zoo.ZOO / "target", dtype="float32")
    logits = network(torch.tensor([text])).logits[0, -1, : open_pair(pair).vocab]
    best, second_best = logits.topk(2).values
    plain_output = (logits.argmax().item(),)

    world = open_world("virtual", pair)
    departure = find_departure(world, tuple(text), (1,), plain_output)
    assert departure.gap == pytest.approx((best - second_best).item(), abs=1e-4)


@pytest.mark.thorough
def test_agreements_of_embedded_models_are_what_verification_finds():
    spec = measured_spec(
        pair="embedded/llama-7b-70b", task="humaneval", requests=1, tokens=48
    )
    result = run_all([spec])[spec]
    accepted = accepted_or_not(example_trace(result))
    assert result.facts["agree"] == accepted
    assert False in accepted
