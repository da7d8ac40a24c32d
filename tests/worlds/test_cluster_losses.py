"""A cluster notices, names and replaces what it loses, wherever the loss occurs.

Nodes and processes are simulated, and die during a given operation. ``test_cluster``
tries each outcome once in a real cluster.
"""

from collections.abc import Iterator

import pytest

import speclib
from speclib.data.latency import Latency
from speclib.methods import takes_gamma
from speclib.worlds.devices import DeviceLost

pytest.importorskip("ray", reason="the extra `cluster` is not installed")

from helpers.stand_in_for_ray import StandInForRay  # noqa: E402

from speclib.worlds.cluster import actor  # noqa: E402
from speclib.worlds.cluster.cluster_world import Cluster  # noqa: E402

TOY = speclib.load_pair("toy")
LARGE = speclib.pair(
    {"model": "toy", "vocab": 30_000}, {"model": "toy", "vocab": 30_000, "alpha": 0.8}
)
NAMES = ("one", "two", "three", "four")
SWIFT = Latency.ratio(4, 0.02)  # keeps both of DSI's targets busy


@pytest.fixture
def ray(monkeypatch) -> Iterator[StandInForRay]:
    """Four simulated nodes with one processor each."""
    stand_in = StandInForRay(NAMES)
    stand_in.install(monkeypatch)
    yield stand_in
    stand_in.end()


def request(method: str, **more) -> dict:
    settings = {"gamma": 3} if takes_gamma(method) else {}
    return {"method": method, "seed": 5, **settings, **more}


def on_virtual_clock(pair, **asked) -> tuple[int, ...]:
    with speclib.open_world("virtual", pair, latency=Latency.ratio(4)) as world:
        return speclib.decode("x", world=world, **asked).tokens


def test_a_cluster_world_is_opened_by_name(ray):
    asked = request("pearl", max_new_tokens=12)
    written = speclib.decode("x", pair=TOY, world="cluster", **asked)
    assert written.tokens == on_virtual_clock(TOY, **asked)
    assert set(written.trace.meta["nodes"].values()) == {"one", "two"}
    assert not any(node.is_taken for node in ray.node_of_name.values())


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("method", speclib.METHODS)
def test_every_method_gives_the_tokens_of_the_virtual_clock(ray, method, temperature):
    asked = request(method, temperature=temperature)
    with Cluster(TOY) as world:
        written = speclib.decode("x", world=world, **asked).tokens
    assert written == on_virtual_clock(TOY, **asked)
    assert len(written) == 64


@pytest.mark.parametrize("method", ["speculative", "pearl", "dsi", "tree", "ssd"])
def test_large_rows_do_not_change_a_methods_tokens(ray, method):
    """At temperature 1, with a vocabulary of 30,000."""
    asked = request(method, temperature=1.0, max_new_tokens=16)
    with Cluster(LARGE) as world:
        written = speclib.decode("x", world=world, **asked).tokens
    assert written == on_virtual_clock(LARGE, **asked)
    assert len(written) == 16


# -- a node that dies ------------------------------------------------------------------
@pytest.mark.parametrize("operation", [1, 3])
@pytest.mark.parametrize("method", [name for name in speclib.METHODS if name != "dsi"])
def test_a_node_that_dies_ends_a_method_with_an_error_that_names_it(
    ray, method, operation
):
    asked = request(method)
    expected = on_virtual_clock(TOY, **asked)
    with Cluster(TOY) as world:
        node = ray.after_operations("target", operation)
        with pytest.raises(DeviceLost, match=f"'target'.*{node!r}"):
            speclib.decode("x", world=world, **asked)

        again = speclib.decode("x", world=world, **asked)
        assert again.tokens == expected
        assert node not in again.trace.meta["nodes"].values()


@pytest.mark.parametrize("operation", [1, 5])
@pytest.mark.parametrize("device", ["target", "target-2"])
def test_dsi_continues_with_its_other_servers_when_a_node_dies(ray, device, operation):
    asked = request("dsi", lookahead=2, max_new_tokens=30)
    with Cluster(TOY, servers=2, emulate=SWIFT) as world:
        node = ray.after_operations(device, operation)
        result = speclib.decode("x", world=world, servers=2, **asked)
    assert result.tokens == on_virtual_clock(TOY, **asked)
    assert {e.device for e in result.trace.operations if e.lost} == {device}
    assert result.trace.meta["nodes"][device] == node


@pytest.mark.parametrize("operation", [1, 5])
@pytest.mark.parametrize("test", ["exact", "ratio"])
def test_dsi_with_large_rows_continues_when_a_node_dies(ray, test, operation):
    asked = request("dsi", lookahead=2, temperature=1.0, max_new_tokens=24)
    with Cluster(LARGE, servers=2, emulate=SWIFT) as world:
        ray.after_operations("target-2", operation)
        result = speclib.decode("x", world=world, servers=2, test=test, **asked)
    assert len(result.tokens) == 24
    assert {e.device for e in result.trace.operations if e.lost} == {"target-2"}
    if test == "exact":
        assert result.tokens == on_virtual_clock(LARGE, **asked)


def test_dsi_names_a_node_if_no_server_is_left(ray):
    with Cluster(TOY, servers=2, emulate=SWIFT) as world:
        nodes = [ray.after_operations(d, 3) for d in ("target", "target-2")]
        with pytest.raises(DeviceLost, match="|".join(nodes)):
            speclib.decode("x", world=world, servers=2, **request("dsi", lookahead=2))


# -- a process that dies or hangs ------------------------------------------------------


def test_the_error_for_a_slow_build_does_not_blame_a_lack_of_resources(ray):
    """The device has its node and is building its model."""
    ray.starts_silent_actors = True
    with pytest.raises(DeviceLost, match="no answer in 0.01 s; it was stopped"):
        Cluster(TOY, start_timeout=0.01)
    assert not any(node.is_taken for node in ray.node_of_name.values())


def test_a_node_with_another_version_is_refused(ray, monkeypatch):
    monkeypatch.setattr(actor, "fingerprint_of_code", lambda: "0123456789abcdef")
    with pytest.raises(DeviceLost, match="another version of speclib: install"):
        Cluster(TOY)
    assert not any(node.is_taken for node in ray.node_of_name.values())
