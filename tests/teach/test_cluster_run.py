"""A cluster on one machine behind a button: it runs, it loses a node, it is ended."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
from helpers.processes import own_processes_but

from speclab import teach
from speclab.teach.cluster_run import node_to_kill
from speclib import SpeclibError, decode

MODULE = import_module("speclab.teach.cluster_run")  # the function has its name
PASSES = "dsi/starcoder-15b-mbpp"


def test_nothing_runs_before_a_click():
    shown = teach.cluster_run("x", "toy", latency=PASSES)
    assert not shown.runs
    assert shown.timeline is None
    assert "Not run yet" in repr(shown)


def test_without_ray_the_button_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(MODULE, "find_spec", lambda name: None)
    shown = teach.cluster_run("x", "toy", latency=PASSES)
    assert "make cluster" in repr(shown)
    shown.button.click()
    shown.wait()
    assert shown.error is None
    assert "make cluster" in repr(shown)

    monkeypatch.setenv("SPECLIB_CLICK", "1")  # nor is it an error where lessons run
    assert "make cluster" in repr(teach.cluster_run("x", "toy", latency=PASSES))


def test_unknown_names_are_refused_before_anything_runs():
    with pytest.raises(SpeclibError, match="'perl'.*pearl"):
        teach.cluster_run("x", "toy", latency=PASSES, methods=("perl",))
    with pytest.raises(SpeclibError, match="toi"):
        teach.cluster_run("x", "toi", latency=PASSES)
    with pytest.raises(SpeclibError, match="starcoder-15b-mbp'"):
        teach.cluster_run("x", "toy", latency="dsi/starcoder-15b-mbp")


@pytest.mark.parametrize(
    "setting",
    [
        {"methods": ("pearl",), "servers": 2},
        {"methods": ("dsi", "pearl"), "servers": 2},
        {"methods": ("dsi",)},
    ],
)
def test_a_node_is_killed_only_where_somebody_can_go_on(setting):
    with pytest.raises(SpeclibError, match="kill_a_node needs"):
        teach.cluster_run("x", "toy", latency=PASSES, kill_a_node=True, **setting)


def test_the_node_to_kill_has_a_target_and_is_not_the_first():
    places = {"draft": "node-2", "target": "node-1", "target-2": "node-3"}
    assert node_to_kill(places, "node-1") == "node-3"
    with pytest.raises(SpeclibError, match="no target is on another node"):
        node_to_kill({"draft": "node-2", "target": "node-1"}, "node-1")


# -- with Ray --------------------------------------------------------------------------
def plain_tokens(count: int) -> tuple[int, ...]:
    asked = {"method": "autoregressive", "max_new_tokens": count, "ignore_eos": True}
    return decode("x", pair="toy", world="virtual", **asked).tokens


def click(shown) -> None:
    """Runs it to its end; no process of the cluster is left then."""
    known = own_processes_but(set())  # those of other tests
    shown.button.click()
    assert shown.button.description == "Stop"
    shown.wait()
    assert shown.error is None, shown.spoken
    assert not own_processes_but(known)


@pytest.mark.thorough
def test_a_click_runs_every_method_on_nodes_of_their_own(capfd):
    pytest.importorskip("ray", reason="the extra `cluster` is not installed")
    shown = teach.cluster_run("x", "toy", latency=PASSES, max_new_tokens=8)
    click(shown)
    assert [run.tokens for run in shown.runs] == [plain_tokens(8)] * 3
    for run in shown.runs:
        assert set(run.trace.meta["nodes"].values()) == {"node-1", "node-2"}
    assert "All methods wrote the same" in repr(shown)
    assert "the nodes' clocks agree to ±" in repr(shown)
    picture = shown.picture()
    assert "node-1" in picture
    assert "message under way" in picture
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_methods_write_the_same_text_and_dsi_also_while_a_node_is_killed(capfd):
    pytest.importorskip("ray", reason="the extra `cluster` is not installed")
    shown = teach.cluster_run(
        "x",
        "toy",
        latency="dsi/c-5",
        methods=("speculative", "pearl", "dsi"),
        servers=2,
        max_new_tokens=40,
        kill_a_node=True,
    )
    click(shown)
    assert [run.tokens for run in shown.runs] == [plain_tokens(40)] * 4
    assert "wrote the same" in repr(shown)
    *healthy, dying = shown.runs
    for run in healthy:
        nodes = run.trace.meta["nodes"]
        assert sorted(nodes.values()) == ["node-1", "node-2", "node-3"]
        for event in run.trace.operations:
            assert not event.lost
            if not event.cancelled:
                assert event.message_seconds > 0

    lost = {event.device for event in dying.trace.operations if event.lost}
    places = dying.trace.meta["nodes"]
    assert [places[device] for device in lost] == [shown.killed]
    assert f"{shown.killed} was killed" in repr(shown)
    picture = shown.picture()
    assert f"{shown.killed} is killed" in picture
    # Of a run this long the messages, recorded above, may be too short to be drawn.
    assert "node-1" in picture
    assert re.search(r"clocks agree to ± \d+\.\d+ ms", picture)
    assert capfd.readouterr() == ("", "")
