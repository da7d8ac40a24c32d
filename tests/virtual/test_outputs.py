"""What is known of an output: where it leaves plain decoding's, where models agree."""

from __future__ import annotations

from helpers.specs import LATENCY

from speclab.virtual import toy_requests
from speclab.virtual.outputs import find_agreements, first_difference
from speclib.data.latency import load_latency
from speclib.methods import METHODS


def test_the_first_difference_between_outputs():
    assert first_difference((1, 2, 3), (1, 2, 3)) is None
    assert first_difference((1, 2, 3), (1, 9, 3)) == 1
    assert first_difference((1, 2), (1, 2, 3)) == 2


def test_agreements_are_what_verification_finds():
    """PEARL tests a draft at every position that it commits."""
    cell = toy_requests.ToyCell(
        METHODS["pearl"], load_latency(LATENCY), 0.8, tokens=80, settings={"gamma": 3}
    )
    world = toy_requests.open_world(cell)
    trace = toy_requests.decode_request(cell, 0, world)
    accepted = []
    for event in trace.operations:
        tested = [outcome for outcome in event.outcome if outcome != "discarded"]
        accepted += [outcome == "accepted" for outcome in tested]
    assert 5 < accepted.count(False) < 40
    assert find_agreements(world, (0,), world.text[1:]) == accepted
