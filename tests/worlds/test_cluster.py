"""Devices in a Ray cluster: the tokens of one machine, and no loss that goes unnoticed.

The cluster has three nodes of one processor each, all on this machine.
"""

import os
import signal
import threading
import time

import numpy as np
import pytest
from helpers.patience import on_this_machine
from helpers.processes import alive, gone

import speclib
from speclib.core.far_rows import FarRows
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.data.placement import Place
from speclib.errors import BadValue
from speclib.methods import takes_gamma
from speclib.models import fingerprint
from speclib.worlds.world import DeviceLost

ray = pytest.importorskip("ray", reason="the extra `cluster` is not installed")
from ray.cluster_utils import Cluster as RayCluster  # noqa: E402
from ray.util.scheduling_strategies import (  # noqa: E402
    NodeAffinitySchedulingStrategy,
)

from speclib.worlds.cluster import laptop  # noqa: E402
from speclib.worlds.cluster.world import Cluster  # noqa: E402

pytestmark = pytest.mark.slow

TOY = speclib.load_pair("toy")
LARGE = speclib.pair(
    {"model": "toy", "vocab": 30_000}, {"model": "toy", "vocab": 30_000, "alpha": 0.8}
)
SMALL = {"target": "zoo/target", "draft": "zoo/draft-good"}
PROMPT = "def add(a, b):\n"


@pytest.fixture(scope="module")
def cluster():
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    options = {"num_cpus": 1, "include_dashboard": False}
    running = RayCluster(
        initialize_head=True, head_node_args={"node_name": "one", **options}
    )
    for name in ("two", "three"):
        running.add_node(node_name=name, **options)
    before = os.environ.get("RAY_ADDRESS")
    os.environ["RAY_ADDRESS"] = running.address
    yield running
    ray.shutdown()
    running.shutdown()
    os.environ.pop("RAY_ADDRESS")
    if before is not None:
        os.environ["RAY_ADDRESS"] = before


@pytest.fixture(scope="module")
def world(cluster):
    with Cluster(TOY, timeout=5) as opened:
        yield opened


@pytest.fixture
def large(room):
    with Cluster(LARGE, timeout=5) as opened:
        yield opened


@pytest.fixture
def room(cluster, world):
    """The cluster with all of its places free; ``world`` starts again when used."""
    world.close()
    return cluster


def settings_of(method: str) -> dict:
    return {"gamma": 3} if takes_gamma(method) else {}


def pids(world: Cluster) -> dict[str, int]:
    """The process of each device."""
    found = {}
    for name, worker in world._workers.items():
        found[name] = ray.get(worker._first.__ray_call__.remote(lambda _: os.getpid()))
    return found


# -- tokens ----------------------------------------------------------------------------
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("method", speclib.METHODS)
def test_every_method_gives_the_tokens_of_the_virtual_clock(world, method, temperature):
    asked = {"method": method, "temperature": temperature, "seed": 5}
    asked |= settings_of(method)
    here = speclib.decode("x", world=world, **asked)
    virtual = speclib.decode("x", pair=TOY, world="virtual", **asked)
    assert here.tokens == virtual.tokens and len(here.tokens) == 64
    assert here.trace.meta["clock"] == "measured"


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_real_models_give_the_tokens_of_processes(room, temperature):
    asked = {
        "pair": speclib.pair(**SMALL),
        "method": "pearl",
        "gamma": 4,
        "max_new_tokens": 24,
        "temperature": temperature,
    }
    there = speclib.decode(PROMPT, world="cluster", **asked)
    here = speclib.decode(PROMPT, world="processes", **asked)
    assert there.tokens == here.tokens and len(there.tokens) == 24


def virtual_world():
    return speclib.open_world("virtual", LARGE, latency=Latency.ratio(4))


def test_large_rows_stay_where_they_are_and_every_method_gives_its_tokens(large):
    """At temperature 1; a row of 30,000 tokens is left in the object store."""
    for method in speclib.METHODS:
        asked = {"method": method, "temperature": 1.0, "seed": 5, "max_new_tokens": 24}
        asked |= settings_of(method)
        here = speclib.decode("x", world=large, **asked)
        with virtual_world() as virtual:
            expected = speclib.decode("x", world=virtual, **asked).tokens
        assert here.tokens == expected and len(here.tokens) == 24, method


def test_a_large_row_is_fetched_only_when_it_is_looked_at(large):
    large.begin((1,), sampler=Sampler(1.0), coins=Coins(3), limit=4)
    rows = large.wait(large.target.score((1, 2, 3), last=2))
    with virtual_world() as world:
        world.begin((1,), sampler=Sampler(1.0), coins=Coins(3), limit=4)
        expected = world.wait(world.target.score((1, 2, 3), last=2))

    assert isinstance(rows, FarRows) and len(rows) == 3
    for place, (row, whole) in enumerate(zip(rows, expected, strict=True)):
        assert row[2] == whole[2] and row[3] == whole[3]
        drawn = Coins(3).choose(whole, 1 + place, "target")
        assert Coins(3).choose(row, 1 + place, "target") == drawn
        assert row.argmax() == whole.argmax()
        assert not row.is_fetched
    np.testing.assert_array_equal(rows, expected)
    large.end()


def test_a_device_keeps_large_rows_as_long_as_somebody_refers_to_them(large):
    def score():
        return large.wait(large.target.score((1, 2, 3), last=2))

    def kept() -> int:
        worker = large._workers["target"]
        count = worker._first.__ray_call__.remote(lambda actor: len(actor._kept._rows))
        return ray.get(count)

    large.begin((1,), sampler=Sampler(1.0), coins=Coins(3), limit=4)
    first = score()
    for _ in range(4):
        score()
    assert kept() == 2  # the first one's and the last one's
    np.testing.assert_array_equal(first, score())
    del first
    score()
    assert kept() == 1
    large.end()


def test_the_ranks_of_a_device_may_be_on_two_nodes(room):
    target = {"model": "zoo/target", "spread": "tensors"}
    place = {"draft": ["core:0"], "target": ["core:0", "core:1"]}
    pair = speclib.pair(target, SMALL["draft"], place=place)
    asked = {"method": "speculative", "gamma": 4, "max_new_tokens": 24}
    whole = speclib.decode(PROMPT, pair=speclib.pair(**SMALL), **asked)
    with Cluster(pair) as world:
        assert len(world._workers["target"]._actors) == 2
        parted = speclib.decode(PROMPT, world=world, **asked)
    assert parted.tokens == whole.tokens


def test_auto_servers_are_as_many_as_the_cluster_has_room_for(cluster):
    assert Cluster.room_for_targets(TOY, at_most=7) == 2


# -- times -----------------------------------------------------------------------------
def test_devices_are_on_nodes_of_their_own_and_the_trace_says_so(world):
    meta = speclib.decode("x", world=world, method="pearl", gamma=3).trace.meta
    assert set(meta["nodes"]) == {"draft", "target"}
    assert len(set(meta["nodes"].values())) == 2
    assert set(meta["nodes"].values()) <= {"one", "two", "three"}


def test_clocks_of_one_machine_are_found_to_agree_within_the_error_stated(world):
    """All nodes are on this machine, so that their clocks are one and the same."""
    trace = speclib.decode("x", world=world, method="pearl", gamma=3).trace
    for name, reading in world._clock_of.items():
        assert abs(reading.offset) <= trace.meta["clock_error"][name]
        assert trace.meta["clock_error"][name] < on_this_machine(0.05)


def test_an_operation_lies_between_its_question_and_its_answer(world):
    trace = speclib.decode("x", world=world, method="pearl", gamma=3).trace
    assert len(trace.operations) > 20
    for event in trace.operations:
        assert event.sent <= event.ts <= event.end <= event.received + 1e-9
        assert 0 < event.message_seconds < on_this_machine(1)
    for device in trace.devices:
        own = sorted(e for e in trace.operations if e.device == device)
        for earlier, later in zip(own, own[1:], strict=False):
            assert earlier.received <= later.sent


# -- stopping --------------------------------------------------------------------------
def test_an_operation_that_nobody_wants_any_more_is_stopped(room):
    """The draft would take 4 times 0.5 s; DSI's target contradicts it sooner."""
    with Cluster(TOY, cancel="immediate", emulate=Latency.ratio(2, 0.2)) as world:
        trace = speclib.decode(
            "x", world=world, method="dsi", lookahead=8, max_new_tokens=12
        ).trace
    stopped = [event for event in trace.operations if event.cancelled]
    assert stopped
    for event in stopped:
        assert event.dur < 8 * 0.1


# -- what is lost ----------------------------------------------------------------------
def test_a_killed_process_is_named_and_the_next_request_has_a_new_one(room):
    with Cluster(TOY, timeout=5) as world:
        os.kill(pids(world)["draft"], signal.SIGKILL)
        begun = time.monotonic()
        with pytest.raises(DeviceLost, match="'draft' of pair 'toy' was lost: its"):
            speclib.decode("x", world=world, method="speculative", gamma=3)
        assert time.monotonic() - begun < on_this_machine(5)
        again = speclib.decode("x", world=world, method="speculative", gamma=3)
        assert len(again.tokens) == 64


def test_a_process_that_hangs_is_given_up(room):
    with Cluster(TOY, timeout=1) as world:
        victim = pids(world)["target"]
        os.kill(victim, signal.SIGSTOP)
        with pytest.raises(DeviceLost, match=r"'target' .* hung: no answer in 1 s"):
            speclib.decode("x", world=world, method="speculative", gamma=3)
        assert gone([victim])


def test_nothing_is_left_of_a_world_that_is_closed(room):
    with Cluster(TOY) as world:
        processes = list(pids(world).values())
        assert all(alive(pid) for pid in processes)
    assert gone(processes)
    with Cluster(TOY) as world:  # its places are free again
        assert len(world._workers) == 2


def test_an_interrupt_ends_the_request_and_the_world_serves_the_next(room):
    with Cluster(TOY, emulate=Latency.ratio(4, 0.4)) as world:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                speclib.decode("x", world=world, method="pearl", gamma=4)
        finally:
            signal.signal(signal.SIGALRM, before)
        result = speclib.decode(
            "x", world=world, method="pearl", gamma=4, max_new_tokens=8
        )
        assert len(result.tokens) == 8


# -- what cannot be --------------------------------------------------------------------
def test_a_pair_that_needs_more_than_the_cluster_has_is_refused_at_once(room):
    begun = time.monotonic()
    with pytest.raises(BadValue, match=r"needs 4 CPU .*3 node\(s\).* have 1 CPU; 1"):
        Cluster(TOY, servers=3)
    two_threads = TOY.model_copy(update={"place": Place(threads=2)})
    with pytest.raises(BadValue, match="needs 4 CPU"):
        Cluster(two_threads)
    assert time.monotonic() - begun < on_this_machine(1)


def test_places_that_others_use_are_waited_for_and_then_named(room):
    with (
        Cluster(TOY, servers=2),
        pytest.raises(
            DeviceLost, match="no node of the cluster had room .* used by others"
        ),
    ):
        Cluster(TOY, start_timeout=1)


def test_a_model_that_is_not_built_in_time_is_not_called_a_lack_of_room(room):
    with Cluster(speclib.pair(**SMALL)) as world:
        world._workers["draft"].stop()
        worker = world._start_worker("draft")
        assert worker._group.wait(60)  # it has its place, and begins to build
        with pytest.raises(DeviceLost, match="no answer in 0.01 s; it was stopped"):
            worker.receive(0.01)


def test_a_process_can_be_in_one_cluster_only(room):
    with pytest.raises(BadValue, match="has joined the Ray cluster at .* 10.0.0.1:1"):
        Cluster(TOY, address="10.0.0.1:1")


def test_a_node_with_another_version_is_refused(room, monkeypatch):
    monkeypatch.setattr(fingerprint, "of_code", lambda: "0123456789abcdef")
    with pytest.raises(BadValue, match="another version of speclib .* here it is 0123"):
        Cluster(TOY)


def test_devices_that_draft_and_target_share_stay_on_one_machine(room):
    with pytest.raises(BadValue, match="share devices"):
        Cluster(TOY, emulate=Latency.ratio(4).sharing(2))


# -- a node that dies ------------------------------------------------------------------
class Victim:
    """A device's node, which loses its power half a second from now and is replaced."""

    def __init__(self, cluster: RayCluster, world: Cluster, devices: list[str]):
        self.cluster = cluster
        places = {name: world._workers[name].node for name in devices}
        self.device = next(name for name in devices if places[name] != "one")
        self.name = places[self.device]
        self.node = next(
            n for n in cluster.worker_nodes if n._ray_params.node_name == self.name
        )
        self.timer = threading.Timer(0.5, self._kill)

    def _kill(self) -> None:
        laptop.kill(self.cluster, self.node)

    def __enter__(self) -> "Victim":
        self.timer.start()
        return self

    def __exit__(self, *exception) -> None:
        self.timer.join()
        self.cluster.add_node(node_name=self.name, num_cpus=1, include_dashboard=False)


@pytest.fixture
def other_nodes(room):
    """The cluster with the first node's only processor taken: it cannot be killed."""

    class Taken:  # in here, or the node would look for this module
        def is_there(self) -> bool:
            return True

    ray.init(address=room.address, ignore_reinit_error=True)
    (first,) = [node for node in ray.nodes() if node["NodeName"] == "one"]
    there = NodeAffinitySchedulingStrategy(first["NodeID"], soft=False)
    taken = ray.remote(num_cpus=1)(Taken).options(scheduling_strategy=there).remote()
    assert ray.get(taken.is_there.remote())
    yield room
    ray.kill(taken)


OFTEN_TRIED = ("speculative", "pearl")  # the other methods take minutes in all


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(name, marks=() if name in OFTEN_TRIED else pytest.mark.thorough)
        for name in speclib.METHODS
        if name != "dsi"
    ],
)
def test_a_node_that_dies_ends_a_method_with_an_error_that_names_it(
    other_nodes, method
):
    with Cluster(TOY, emulate=Latency.ratio(4, 0.2), timeout=30) as world:
        with Victim(other_nodes, world, ["target"]) as victim:
            begun = time.monotonic()
            with pytest.raises(DeviceLost, match=f"'target'.*{victim.name!r}"):
                speclib.decode("x", world=world, method=method, max_new_tokens=500)
            assert time.monotonic() - begun < 0.5 + on_this_machine(5)
        again = speclib.decode("x", world=world, method=method, max_new_tokens=5)
        assert len(again.tokens) == 5


def test_a_row_whose_device_is_lost_is_a_device_lost(other_nodes):
    """No device is on the first node, which is ours: the row is on another."""
    with Cluster(LARGE, timeout=5) as world:
        world.begin((1,), sampler=Sampler(1.0), coins=Coins(3), limit=4)
        rows = world.wait(world.target.score((1, 2, 3), last=2))
        os.kill(pids(world)["target"], signal.SIGKILL)
        begun = time.monotonic()
        with pytest.raises(DeviceLost, match="'target' was lost, and with it a distr"):
            np.asarray(rows[0])
        assert time.monotonic() - begun < on_this_machine(5)


@pytest.mark.parametrize("test", ["exact", "ratio"])
def test_dsi_goes_on_where_large_rows_are_lost_with_a_node(room, test):
    with (
        Cluster(LARGE, servers=2, emulate=Latency.ratio(4, 0.2), timeout=30) as world,
        Victim(room, world, ["target", "target-2"]) as victim,
    ):
        result = speclib.decode(
            "x",
            world=world,
            method="dsi",
            lookahead=2,
            servers=2,
            test=test,
            temperature=1.0,
            max_new_tokens=90,
        )
    assert len(result.tokens) == 90
    assert {e.device for e in result.trace.operations if e.lost} == {victim.device}


def test_dsi_goes_on_with_its_other_servers_when_a_node_dies(room):
    asked = {"method": "dsi", "lookahead": 2, "max_new_tokens": 30}
    plain = speclib.decode("x", pair=TOY, world="virtual", **asked)
    slow = Latency.ratio(4, 0.2)
    with (
        Cluster(TOY, servers=2, emulate=slow, timeout=30) as world,
        Victim(room, world, ["target", "target-2"]) as victim,
    ):
        result = speclib.decode("x", world=world, servers=2, **asked)
    assert result.tokens == plain.tokens
    assert {e.device for e in result.trace.operations if e.lost} == {victim.device}
    assert result.trace.meta["nodes"][victim.device] == victim.name
