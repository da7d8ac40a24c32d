"""Clocks, actors, addresses and places, tested without a cluster."""

import socket

import pytest

import speclib
from speclib.errors import BadValue

pytest.importorskip("ray", reason="the extra `cluster` is not installed")

from helpers.stand_in_for_ray import StandInForRay  # noqa: E402

from speclib.worlds.cluster import clocks, nodes  # noqa: E402
from speclib.worlds.cluster.actor import Actor  # noqa: E402
from speclib.worlds.performer import Question  # noqa: E402

SMALL = {"target": "zoo/target", "draft": "zoo/draft-good"}


# -- clocks ----------------------------------------------------------------------------
@pytest.mark.parametrize("ahead", [-500.0, 0.0, 3e5])
@pytest.mark.parametrize("way_there", [0.0, 0.25, 1.0])
def test_another_clock_is_off_by_at_most_the_stated_error(ahead, way_there):
    """This holds however the round trip is divided between the two directions."""

    our_time = 100.0

    def our_clock() -> float:
        return our_time

    def other_clock() -> float:
        nonlocal our_time
        our_time += 0.02 * way_there
        reads = our_time + ahead
        our_time += 0.02 * (1 - way_there)
        return reads

    reading = clocks.read(other_clock, our_clock)
    assert abs(reading.offset - ahead) <= reading.error + 1e-6
    assert reading.error == pytest.approx(0.01)
    assert reading.taken == pytest.approx(100.02)


def test_a_more_precise_clock_reading_wins_and_old_ones_lose_precision():
    old = clocks.Reading(offset=5.0, error=0.001, taken=100.0)
    vague = clocks.Reading(offset=5.1, error=0.02, taken=101.0)
    assert clocks.surer(None, vague) is vague
    assert clocks.surer(old, vague) is old
    assert clocks.surer(old, vague._replace(taken=400.0)) == vague._replace(taken=400.0)


# -- stopping --------------------------------------------------------------------------
class WhetherStopped:
    """Builds a device whose operations report whether STOP had arrived."""

    size = 1

    def build(self, pipes):
        return lambda question, pipe: pipe.poll()


@pytest.fixture
def actor(monkeypatch) -> Actor:
    ray = StandInForRay(["one"])
    ray.install(monkeypatch)
    monkeypatch.setattr(ray, "get_runtime_context", lambda: OnNode)
    actor = Actor()
    actor.start(WhetherStopped())
    return actor


class OnNode:
    @staticmethod
    def get_node_id() -> str:
        return "number-of-one"


def test_a_stop_that_arrives_too_late_stops_no_other_operation(actor):
    assert actor.perform(1, Question(None, None, None)) is False
    actor.stop(1)
    assert actor.perform(2, Question(None, None, None)) is False


def test_a_stop_that_overtakes_its_question_still_stops_it(actor):
    actor.stop(1)
    assert actor.perform(1, Question(None, None, None)) is True
    assert actor.perform(2, Question(None, None, None)) is False


# -- addresses -------------------------------------------------------------------------
@pytest.fixture
def no_connection(monkeypatch):
    """A process that has not joined a cluster; asking Ray is an error."""
    monkeypatch.setattr(nodes.ray, "is_initialized", lambda: False)

    def refuse(*_, **__):
        raise AssertionError("Ray was asked and would wait in vain")

    monkeypatch.setattr(nodes.ray, "init", refuse)


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def test_a_cluster_that_does_not_answer_is_reported_at_once(no_connection):
    address = f"127.0.0.1:{closed_port()}"
    with pytest.raises(BadValue, match=f"answers at {address} .*ray start --head"):
        nodes.join(address)


def test_a_local_cluster_that_is_gone_is_reported_at_once(no_connection, monkeypatch):
    address = f"127.0.0.1:{closed_port()}"
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(nodes, "read_ray_address", lambda: address)
    with pytest.raises(BadValue, match=f"answers at {address}"):
        nodes.join()


@pytest.mark.parametrize("address", ["nowhere", "host:", ":6379", "10.0.0.1:many"])
def test_a_malformed_address_is_refused(no_connection, address):
    with pytest.raises(BadValue, match="give host:port"):
        nodes.join(address)


# -- places ----------------------------------------------------------------------------
def test_each_rank_requests_a_gpu_and_sees_it_as_the_first():
    target = {"model": "zoo/target", "spread": "tensors"}
    place = {"draft": ["cuda:0"], "target": ["cuda:1", "cuda:2"]}
    pair = speclib.pair(target, SMALL["draft"], place=place)
    assert nodes.needs_of_device(pair, pair.place, "target", 0) == (
        nodes.Resources(gpus=1, cpus=1),
        nodes.Resources(gpus=1, cpus=1),
    )
    seen = nodes.as_seen_by_actor(pair, pair.place, "target", 0)
    assert seen.place.target == ("cuda:0", "cuda:0")


def test_blocks_of_layers_on_several_gpus_are_one_process():
    place = {"draft": ["core:0"], "target": ["cuda:2", "cuda:3"]}
    pair = speclib.pair(**SMALL, place=place)
    assert nodes.needs_of_device(pair, pair.place, "target", 0) == (
        nodes.Resources(gpus=2, cpus=1),
    )


THREE = {"target": ["core:1"], "servers": [["core:2"], ["core:3"]]}


@pytest.mark.parametrize(
    "place, target, is_emulated, seen",
    [
        ({"target": ["cuda:2", "cuda:3"]}, 0, False, ("cuda:0", "cuda:1")),
        ({"target": ["core:1", "cuda:3"]}, 0, False, ("core:1", "cuda:0")),
        (THREE, 2, False, ("core:3",)),
        ({"target": ["cuda:1"]}, 2, False, ("cuda:0",)),  # Ray chooses which one
        ({"target": ["cuda:1"]}, 0, True, ("cpu",)),
    ],
)
def test_a_process_counts_the_gpus_assigned_to_it(place, target, is_emulated, seen):
    pair = speclib.pair(**SMALL, place={"draft": ["core:0"], **place})
    own = nodes.as_seen_by_actor(
        pair, pair.place, "target", target, is_emulated=is_emulated
    )
    assert own.place.of("target", target) == seen


def test_gpus_shared_by_draft_and_target_are_refused():
    place = {"draft": ["cuda:0"], "target": ["cuda:0", "cuda:1"]}
    pair = speclib.pair(**SMALL, place=place)
    with pytest.raises(BadValue, match="share cuda:0, but in a cluster each"):
        nodes.check_places(pair, pair.place)


# -- resources -------------------------------------------------------------------------
PARTED = speclib.pair(
    {"model": "zoo/target", "spread": "tensors"},
    SMALL["draft"],
    place={"draft": ["core:0"], "target": ["core:0", "core:1"]},
)
DEVICES = [("draft", "draft", 0), ("target", "target", 0)]


def needs(monkeypatch, *cpus: int):
    """Returns what the split pair needs on nodes with these CPU counts."""
    listed = [{"Alive": True, "Resources": {"CPU": float(n)}} for n in cpus]
    listed.append({"Alive": False, "Resources": {"CPU": 64.0}})
    monkeypatch.setattr(nodes.ray, "nodes", lambda: listed)
    return nodes.needs_of(PARTED, PARTED.place, DEVICES, is_emulated=False)


def test_a_device_needs_a_single_node_and_the_largest_is_placed_first(monkeypatch):
    for cpus in ((3,), (2, 1), (1, 2), (4, 4)):
        assert list(needs(monkeypatch, *cpus)) == ["target", "draft"]


@pytest.mark.parametrize("cpus", [(), (1,), (2,), (1, 1), (1, 1, 1)])
def test_nodes_without_resources_for_every_device_are_refused(monkeypatch, cpus):
    with pytest.raises(BadValue, match="needs 3 CPU .*target: 2 CPU.*on one node"):
        needs(monkeypatch, *cpus)
