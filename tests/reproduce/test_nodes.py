"""Measured cells on nodes of a cluster: what one machine would do, and stored here."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from helpers.nodes_in_processes import NodesInProcesses
from helpers.specs import measured_spec, virtual_spec

from speclab.experiment import cache, environments, other_load
from speclab.experiment.engines.measured_cell import MeasuredCell, key_of
from speclab.experiment.on_nodes import (
    Answer,
    CellsOfNode,
    Nodes,
    Order,
    Report,
    is_of,
)
from speclab.experiment.run_cells import Runner, is_complete, run_all, stored
from speclab.experiment.spec import Spec
from speclab.progress import Progress
from speclab.reproduce import measuring_on_nodes
from speclab.reproduce.batches import Batch
from speclab.reproduce.pace import Pace
from speclab.reproduce.schedule import Schedule
from speclib import machine, paths
from speclib.errors import SpeclibError

HOUR = 3600.0  # seconds
FASTER = (("cpu", "Another Processor 9000"), ("cores", "64"))  # another machine's


@pytest.fixture(autouse=True)
def _own_cache(own_cache):
    """Every test has a cache of its own."""


# -- cells from elsewhere --------------------------------------------------------------
def test_of_two_files_of_a_cell_the_one_with_more_requests_stays():
    spec = measured_spec()
    run_all([spec.changed(requests=1)])
    short = cache.text_of(key_of(spec))
    run_all([spec])
    long = cache.text_of(key_of(spec))

    cache.take_in(key_of(spec), short)
    assert cache.text_of(key_of(spec)) == long
    cache.take_in(key_of(spec), short, at_least_as_many=True)
    assert cache.text_of(key_of(spec)) == long
    (cache.cells_folder() / f"{key_of(spec)}.jsonl").write_text(short)
    cache.take_in(key_of(spec), long)
    assert len(stored(spec).stats) == 3


def test_a_node_of_other_hardware_counts_while_a_cluster_measures(monkeypatch):
    """It has done three requests, and this machine one."""
    spec = measured_spec()
    run_all([spec])
    own, of_node = MeasuredCell(spec), MeasuredCell(spec, FASTER)
    of_node.header = replace(own.header, machine="another-64c-123456")
    of_node.requests = own.requests
    of_node.save()
    own.requests = own.requests[:1]
    own.save()

    environments.remember(FASTER)
    assert len(stored(spec).stats) == 1
    monkeypatch.setenv(environments.IN_CLUSTER, "cluster")
    assert len(stored(spec).stats) == 3
    assert stored(spec).machine == "another-64c-123456"


def test_machines_are_remembered_once_and_a_damaged_list_counts_as_none(monkeypatch):
    monkeypatch.setenv(environments.IN_CLUSTER, "cluster")
    for _ in range(2):
        environments.remember(FASTER)
    assert environments.known_environments() == [machine.environment(), FASTER]
    (paths.CACHE / "environments.json").write_text("[[1")
    assert environments.known_environments() == [machine.environment()]


# -- nodes -------------------------------------------------------------------------
@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """Two nodes that are processes, which keep their cells in a folder of their own."""
    nodes = NodesInProcesses(["one", "two"], tmp_path_factory.mktemp("nodes"))
    yield nodes
    nodes.end()


@pytest.fixture
def nodes_in_processes(processes, monkeypatch):
    helpers = pytest.importorskip("speclib.worlds.cluster.helpers")
    monkeypatch.setattr(helpers, "Helpers", processes.helpers)
    return processes


# What a lost node leaves to others is tried in a real cluster, too, at each change.
@pytest.fixture(
    params=["nodes_in_processes", pytest.param("ray_nodes", marks=pytest.mark.thorough)]
)
def nodes(request):
    """The nodes that work is done on."""
    return request.getfixturevalue(request.param)


def batch_of(name: str, *specs, is_main: bool = False) -> Batch:
    pool = specs[0].worker_pool
    return Batch(name, "measured", "pearl", is_main, list(specs), pool=pool)


def batches() -> list[Batch]:
    """Cells of four pools, which is more than the nodes can do at once.

    Their keys are fresh: the nodes' cache outlives a test.
    """
    length = 10 + batches.calls
    batches.calls += 1
    made = []
    for number, cancel in enumerate(("after-op", "immediate")):
        specs = [
            measured_spec(method, cancel=cancel, tokens=length)
            for method in ("pearl", "speculative")
        ]
        made.append(batch_of(f"measured {number}", *specs))
    for number, dtype in enumerate(("float64", "float32"), start=2):
        precise = measured_spec("pearl", dtype=dtype, tokens=length)
        made.append(batch_of(f"measured {number}", precise))
    return made


batches.calls = 0


def specs_of(measured: list[Batch]) -> list[Spec]:
    """The specs of all cells, in order."""
    specs: list[Spec] = []
    for batch in measured:
        specs += batch.specs
    return specs


def are_complete(measured: list[Batch]) -> bool:
    """Whether every cell has all of its requests, here."""
    return all(is_complete(spec) for spec in specs_of(measured))


def schedule_of(measured: list[Batch], runner: Runner, nodes: Nodes, deadline=None):
    other = virtual_spec(gamma=2)
    virtual = Batch("virtual", "virtual", "pearl", specs=[other])
    all_batches = [virtual, *measured]
    return Schedule(all_batches, runner, Pace({}), deadline, lambda _: None, nodes)


class NodesThatTell(Nodes):
    """Nodes that call ``after_a_step`` when the first report has been stored here."""

    def __init__(self, after_a_step: Callable[[], object]):
        super().__init__()
        self._after_a_step: Callable[[], object] | None = after_a_step

    def wait_for_answer(self) -> Answer:
        answer = super().wait_for_answer()
        if self._after_a_step is not None:
            after_a_step, self._after_a_step = self._after_a_step, None
            after_a_step()
        return answer


def do_on_nodes(
    measured: list[Batch],
    seconds: float | None = None,
    after_a_step: Callable[[], object] = lambda: None,
) -> Runner:
    """Does the work; ``after_a_step`` is called when the first step has been taken.

    ``seconds``: how long it may take from when the nodes are there.
    """
    with (
        Progress("cells", show=False) as bar,
        Runner(bar) as runner,
        NodesThatTell(after_a_step) as nodes,
    ):
        deadline = None if seconds is None else time.monotonic() + seconds
        schedule = schedule_of(measured, runner, nodes, deadline)
        schedule.run()
    return runner


@pytest.mark.slow
def test_every_cell_is_done_and_stored_here_and_names_its_node(ray_nodes):
    measured = batches()
    runner = do_on_nodes(measured)
    assert not runner.errors
    assert are_complete(measured)
    assert stored(virtual_spec(gamma=2)) is not None

    nodes_at_work = set()
    for batch in measured:
        (node_of_pair,) = {stored(spec).facts["node"] for spec in batch.specs}
        nodes_at_work.add(node_of_pair)
    assert nodes_at_work == {"one", "two", "three"}

    for spec in specs_of(measured):  # plain decoding's outputs, as on one machine
        assert stored(spec).facts["differs"] == [None] * spec.requests


@pytest.mark.slow
def test_what_is_here_already_is_not_done_again(nodes, monkeypatch):
    """Unless other programs disturbed it, which here nothing does."""
    monkeypatch.setattr(other_load, "others_between", lambda start, end: 0.0)
    measured = batches()
    specs = specs_of(measured)
    run_all([spec.changed(requests=2) for spec in specs])
    before = {spec: stored(spec).stats for spec in specs}
    do_on_nodes(measured)
    for spec, stats in before.items():
        assert stored(spec).stats[:2] == stats
        assert len(stored(spec).stats) == 3


@pytest.mark.slow
@pytest.mark.timeout(900, method="thread")  # it needs the alarm for itself
def test_an_interrupt_loses_nothing_that_is_finished(nodes):
    measured = batches()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            do_on_nodes(
                measured,
                after_a_step=lambda: signal.setitimer(signal.ITIMER_REAL, 0.01),
            )
    finally:
        signal.signal(signal.SIGALRM, before)
    begun = [spec for spec in specs_of(measured) if stored(spec) is not None]
    assert begun
    assert not all(is_complete(spec) for spec in begun)
    do_on_nodes(measured)
    assert are_complete(measured)


@pytest.mark.slow
def test_what_a_lost_node_did_not_finish_another_one_does(ray_nodes):
    measured = batches()
    runner = do_on_nodes(measured, after_a_step=lambda: ray_nodes.kill("two"))
    ray_nodes.add_missing()
    assert not runner.errors
    assert are_complete(measured)


@pytest.mark.slow
def test_what_two_nodes_began_one_finishes_when_the_other_is_lost(nodes_in_processes):
    measured = batches()
    runner = do_on_nodes(measured, after_a_step=lambda: nodes_in_processes.kill("two"))
    assert not runner.errors
    assert are_complete(measured)


@pytest.mark.slow
def test_a_pair_that_no_node_can_run_fails_once_and_all_others_are_done(nodes):
    measured = batches()
    on_gpus = measured_spec(pair="hub/llama-7b-70b", task="gsm8k")
    broken = batch_of("measured on GPUs", on_gpus)
    nobody = measured_spec(pair="embedded/nobody")
    unknown = batch_of("measured by nobody", nobody)
    runner = do_on_nodes([measured[0], broken, unknown, *measured[1:]])
    assert set(runner.errors) == {on_gpus, nobody}
    assert are_complete(measured)


def test_cells_that_were_not_asked_for_are_noticed():
    spec, other = measured_spec(), measured_spec("speculative")
    report = Report({key_of(spec): "file"}, {}, 1.0, machine.environment())
    assert is_of(report, [spec, other])
    assert not is_of(report, [other])
    assert not is_of(replace(report, environment=FASTER), [spec])


class ClockThatLeaps:
    """The clock on the wall, until it leaps by a day."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    def leap(self) -> None:
        self._ahead = 24 * HOUR


@pytest.mark.slow
def test_a_budget_ends_a_sweep(nodes, monkeypatch):
    """It is over when the first step has been taken; what is under way is finished."""
    clock = ClockThatLeaps()
    monkeypatch.setattr(measuring_on_nodes, "time", clock)
    measured = batches()
    for batch in measured:
        batch.specs = [spec.changed(requests=1000) for spec in batch.specs]

    do_on_nodes(measured, seconds=HOUR, after_a_step=clock.leap)

    specs = specs_of(measured)
    assert any(stored(spec) for spec in specs)
    assert not any(is_complete(spec) for spec in specs)


def test_a_node_that_is_given_no_time_begins_nothing():
    spec = measured_spec()
    order = Order((spec,), requests=2, seconds=0.0, again=False, files={})

    report = CellsOfNode("one")(order)

    assert not report.files
    assert not report.errors
    assert stored(spec) is None


def test_without_a_cluster_it_says_how_to_start_one(monkeypatch):
    pytest.importorskip("ray", reason="the extra `cluster` is not installed")
    from speclib.worlds.cluster import nodes as cluster_nodes

    monkeypatch.setattr(cluster_nodes.ray, "is_initialized", lambda: False)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(SpeclibError, match="ray start --head"), Nodes():
        pass
