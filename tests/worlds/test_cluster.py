"""A Ray cluster writes the same tokens as one machine, and notices every loss.

The cluster has three nodes with one processor each, all on this machine.
``test_cluster_losses`` tests every method, and losses at many points.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from helpers.patience import on_this_machine
from helpers.processes import alive, gone
from helpers.ray_nodes import RayNodes

import speclib
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.data.placement import Place
from speclib.errors import BadValue
from speclib.methods import takes_gamma
from speclib.worlds.devices import DeviceLost

ray = pytest.importorskip("ray", reason="the extra `cluster` is not installed")
from speclib.worlds.cluster.cluster_world import Cluster  # noqa: E402

pytestmark = pytest.mark.slow

TOY = speclib.load_pair("toy")
LARGE = speclib.pair(
    {"model": "toy", "vocab": 30_000}, {"model": "toy", "vocab": 30_000, "alpha": 0.8}
)
SMALL = {"target": "zoo/target", "draft": "zoo/draft-good"}
PROMPT = "def add(a, b):\n"


# -- shared worlds ---------------------------------------------------------------------
class OpenWorld:
    """The only open world, because the cluster has no room for two.

    Consecutive tests that need the same world share it, so they are placed next to each
    other.
    """

    def __init__(self) -> None:
        self._name = ""
        self._world: Cluster | None = None

    def get(self, name: str, open_it: Callable[[], Cluster]) -> Cluster:
        """Returns the world called ``name``; closes any other open world."""
        if self._world is None or name != self._name:
            self.close()
            self._world = open_it()
            self._name = name
        return self._world

    def close(self) -> None:
        if self._world is not None:
            self._world.close()
            self._world = None


@pytest.fixture(scope="module")
def opened(ray_nodes) -> Iterator[OpenWorld]:
    shared = OpenWorld()
    yield shared
    shared.close()


@pytest.fixture
def world(opened):
    """Toys with one node each; one node is free."""
    return opened.get("toys", lambda: Cluster(TOY, timeout=60))


@pytest.fixture
def slow(opened):
    """Toys with passes of 0.05 and 0.2 s, and two targets: no node is free."""
    latency = Latency.ratio(4, 0.2)
    return opened.get(
        "slow toys",
        lambda: Cluster(
            TOY, servers=2, cancel="immediate", emulate=latency, timeout=30
        ),
    )


@pytest.fixture
def large(opened):
    return opened.get("large rows", lambda: Cluster(LARGE, timeout=60))


@pytest.fixture
def free_cluster(ray_nodes, opened):
    """The cluster without an open world."""
    opened.close()
    return ray_nodes


def settings_of(method: str) -> dict:
    return {"gamma": 3} if takes_gamma(method) else {}


def pid_of(world: Cluster, device: str) -> int:
    """Returns the process id of a device; all nodes are on this machine."""
    (pid,) = world.processes[device]
    return pid


# -- tokens ----------------------------------------------------------------------------


@pytest.mark.parametrize("method, temperature", [("pearl", 1.0), ("tree", 0.0)])
def test_a_method_gives_the_tokens_of_the_virtual_clock(world, method, temperature):
    asked = {"method": method, "temperature": temperature, "seed": 5}
    asked |= settings_of(method)

    result = speclib.decode("x", world=world, **asked)
    virtual = speclib.decode("x", pair=TOY, world="virtual", **asked)

    assert result.tokens == virtual.tokens
    assert len(result.tokens) == 64
    assert result.trace.meta["clock"] == "measured"


# -- times -----------------------------------------------------------------------------
def test_each_device_has_its_own_node_and_the_trace_names_it(world):
    meta = speclib.decode("x", world=world, method="pearl", gamma=3).trace.meta
    assert set(meta["nodes"]) == {"draft", "target"}
    assert len(set(meta["nodes"].values())) == 2
    assert set(meta["nodes"].values()) <= {"one", "two", "three"}


def test_clocks_of_one_machine_agree_within_the_stated_error(world):
    """All nodes are on this machine and so share a clock."""
    trace = speclib.decode("x", world=world, method="pearl", gamma=3).trace
    for name, reading in world.clocks.items():
        error = trace.meta["clock_error"][name]
        assert abs(reading.offset) <= error
        assert 0 < reading.error <= error < on_this_machine(0.05)


def test_an_operation_runs_between_its_question_and_its_answer(world):
    trace = speclib.decode("x", world=world, method="pearl", gamma=3).trace
    assert len(trace.operations) > 20
    for event in trace.operations:
        assert event.sent <= event.ts <= event.end <= event.received + 1e-9
        assert 0 < event.message_seconds < on_this_machine(1)
    for device in trace.devices:
        own = sorted(e for e in trace.operations if e.device == device)
        for earlier, later in zip(own, own[1:], strict=False):
            assert earlier.received <= later.sent


# -- a process that is lost ------------------------------------------------------------
def test_a_killed_process_is_named_and_replaced_for_the_next_request(world):
    """Its end is noticed at once; after a timeout, the error would say that it hung."""
    os.kill(pid_of(world, "draft"), signal.SIGKILL)
    with pytest.raises(DeviceLost, match="'draft' of pair 'toy' was lost: its"):
        speclib.decode("x", world=world, method="speculative", gamma=3)
    again = speclib.decode("x", world=world, method="speculative", gamma=3)
    assert len(again.tokens) == 64


def test_a_process_that_hangs_is_abandoned(world, monkeypatch):
    """This needs wall-clock time: a live process does not answer for a second."""
    monkeypatch.setattr(world, "timeout", 1)
    victim = pid_of(world, "target")
    os.kill(victim, signal.SIGSTOP)
    with pytest.raises(DeviceLost, match=r"'target' .* hung: no answer in 1 s"):
        speclib.decode("x", world=world, method="autoregressive")
    assert gone([victim])


def test_closing_a_world_leaves_no_process_behind(world, opened):
    draft = pid_of(world, "draft")
    assert alive(draft)
    opened.close()
    assert gone([draft])


# -- slow devices ----------------------------------------------------------------------


def test_an_unwanted_operation_is_stopped(slow):
    """DSI's draft writes eight tokens at a time; its target rejects one sooner."""
    asked = {"method": "dsi", "lookahead": 8, "max_new_tokens": 30}
    trace = speclib.decode("x", world=slow, **asked).trace
    stopped = [event for event in trace.operations if event.cancelled]
    assert stopped
    # A draft stopped while it writes its last token has written all eight.
    assert min(len(event.tokens) for event in stopped) < 8


def test_after_an_interrupt_the_world_serves_the_next_request(slow):
    """The interrupt comes after the first tokens, during a target pass of 0.2 s."""
    timers: list[threading.Timer] = []

    def interrupt_soon(_) -> None:
        if not timers:
            timers.append(threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)))
            timers[0].start()

    with pytest.raises(KeyboardInterrupt):
        speclib.decode(
            "x",
            world=slow,
            method="pearl",
            gamma=4,
            max_new_tokens=500,
            on_commit=interrupt_soon,
        )

    result = speclib.decode("x", world=slow, method="pearl", gamma=4, max_new_tokens=8)
    assert len(result.tokens) == 8


# -- a node that dies ------------------------------------------------------------------
class Victim:
    """The node of one of ``devices``, which dies when the first tokens are written.

    The node through which this process joined the cluster is never chosen.
    """

    def __init__(self, nodes: RayNodes, world: Cluster, devices: list[str]):
        self._nodes = nodes
        self._is_alive = True
        node_of_device = world.nodes
        self.device = next(d for d in devices if node_of_device[d] != "one")
        self.name = node_of_device[self.device]

    def die(self, tokens: tuple[int, ...]) -> None:
        if self._is_alive:
            self._is_alive = False
            self._nodes.kill(self.name)


@pytest.fixture
def nodes(ray_nodes):
    """The nodes; a node that dies in a test is replaced for the next test."""
    yield ray_nodes
    ray_nodes.add_missing()


def test_a_node_that_dies_ends_pearl_with_an_error_that_names_it(nodes, slow):
    victim = Victim(nodes, slow, ["target", "draft"])
    pearl = {"method": "pearl", "gamma": 4}
    with pytest.raises(DeviceLost, match=f"{victim.device!r}.*{victim.name!r}"):
        speclib.decode("x", world=slow, on_commit=victim.die, **pearl)
    nodes.add_missing()
    again = speclib.decode("x", world=slow, max_new_tokens=5, **pearl)
    assert len(again.tokens) == 5


def test_dsi_continues_with_its_other_servers_when_a_node_dies(nodes, slow):
    asked = {"method": "dsi", "lookahead": 2, "max_new_tokens": 30}
    plain = speclib.decode("x", pair=TOY, world="virtual", **asked)
    victim = Victim(nodes, slow, ["target", "target-2"])
    result = speclib.decode("x", world=slow, servers=2, on_commit=victim.die, **asked)
    assert result.tokens == plain.tokens
    assert {e.device for e in result.trace.operations if e.lost} == {victim.device}
    assert result.trace.meta["nodes"][victim.device] == victim.name


# -- large rows ------------------------------------------------------------------------
def virtual_world():
    return speclib.open_world("virtual", LARGE, latency=Latency.ratio(4))


@pytest.mark.parametrize("sampler", [Sampler(1.0), Sampler(1.0, top_k=3)])
def test_rows_arrive_as_plain_arrays(large, sampler):
    """This includes rows of which only three numbers were sent."""
    large.begin((1,), sampler=sampler, coins=Coins(3), limit=4)
    rows = large.wait(large.target.score((1, 2, 3), last=2))
    large.end()
    with virtual_world() as world:
        world.begin((1,), sampler=sampler, coins=Coins(3), limit=4)
        expected = world.wait(world.target.score((1, 2, 3), last=2))

    assert type(rows) is np.ndarray
    np.testing.assert_array_equal(rows, expected)


# -- real models -----------------------------------------------------------------------


@pytest.fixture
def large_node(free_cluster):
    """Adds a node with two processors."""
    free_cluster.add("large", processors=2)
    yield "large"
    free_cluster.kill("large")
    free_cluster.add_missing()  # waits until Ray no longer counts the large node


def test_the_ranks_of_a_device_are_on_one_node(large_node):
    """The ranks write what the undivided models write in this process."""
    target = {"model": "zoo/target", "spread": "tensors"}
    place = {"draft": ["core:0"], "target": ["core:0", "core:1"]}
    in_parts = speclib.pair(target, SMALL["draft"], place=place)
    asked = {"method": "speculative", "gamma": 4, "max_new_tokens": 24}

    whole = speclib.pair(**SMALL)
    with speclib.open_world("virtual", whole, latency=Latency.ratio(4)) as virtual:
        expected = speclib.decode(PROMPT, world=virtual, **asked)
    with Cluster(in_parts) as world:
        assert len(set(world.processes["target"])) == 2
        assert world.nodes["target"] == large_node
        result = speclib.decode(PROMPT, world=world, **asked)

    assert result.tokens == expected.tokens
    assert len(result.tokens) == 24


# -- refusals --------------------------------------------------------------------------
def test_a_pair_that_needs_more_than_the_cluster_has_is_refused_at_once(free_cluster):
    """Waiting would end minutes later, with a DeviceLost."""
    with pytest.raises(BadValue, match=r"needs 4 CPU .*3 node\(s\).* have 1 CPU; 1"):
        Cluster(TOY, servers=3)
    two_threads = TOY.model_copy(update={"place": Place(threads=2)})
    with pytest.raises(BadValue, match="needs 4 CPU"):
        Cluster(two_threads)


def test_a_process_can_be_in_one_cluster_only(opened):
    with pytest.raises(BadValue, match="has joined the Ray cluster at .* 10.0.0.1:1"):
        Cluster(TOY, address="10.0.0.1:1")


def test_devices_shared_by_draft_and_target_must_be_on_one_machine(free_cluster):
    with pytest.raises(BadValue, match="share devices"):
        Cluster(TOY, emulate=Latency.ratio(4).sharing(2))
