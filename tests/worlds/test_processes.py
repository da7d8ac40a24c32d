"""Worker processes write the virtual clock's tokens, and leave nothing behind."""

import os
import random
import signal
import subprocess
import sys
import textwrap
from itertools import chain, pairwise, product

import numpy as np
import pytest
from helpers.processes import gone

import speclib
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.data.pairs import ModelSpec, Pair
from speclib.methods import METHODS, takes_gamma
from speclib.worlds.devices import DeviceFailed, DeviceLost
from speclib.worlds.performer import Array
from speclib.worlds.processes import Processes

TOY = speclib.load_pair("toy")


@pytest.fixture(scope="module")
def world():
    with Processes(TOY) as opened:
        yield opened


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("method", speclib.METHODS)
def test_lock_step_methods_give_the_same_tokens_in_every_world(
    world, method, temperature
):
    settings = {
        "pair": TOY,
        "method": method,
        "temperature": temperature,
        "seed": 5,
        **({"gamma": 3} if takes_gamma(method) else {}),
    }
    real = speclib.decode("x", world=world, **settings)
    virtual = speclib.decode("x", world="virtual", **settings)
    assert real.tokens == virtual.tokens
    assert len(real.tokens) == 64
    assert real.trace.meta["clock"] == "measured"
    assert virtual.trace.meta["clock"] == "virtual"


def test_a_device_runs_one_operation_at_a_time(world):
    trace = speclib.decode(
        "x", world=world, method="pearl", gamma=4, max_new_tokens=200
    ).trace
    for device in trace.devices:
        events = sorted(e for e in trace.operations if e.device == device)
        for event, following in pairwise(events):
            assert event.ts + event.dur <= following.ts


def test_draft_and_target_overlap():
    """Passes wait instead of computing, so devices overlap even on a busy machine."""
    with Processes(TOY, emulate=Latency.ratio(4, 0.02)) as world:
        trace = speclib.decode(
            "x", world=world, method="pearl", gamma=4, max_new_tokens=20
        ).trace
    target_pass = {e.round: e for e in trace.operations if e.device == "target"}
    drafts = [e for e in trace.operations if e.op == "propose"]
    overlapping = []
    for draft in drafts:
        target = target_pass.get(draft.round)
        if target is None:
            continue
        begins = max(draft.ts, target.ts)
        ends = min(draft.ts + draft.dur, target.ts + target.dur)
        if begins < ends:
            overlapping.append(draft)
    assert overlapping


def test_c_is_measured_and_gamma_auto_is_c_rounded(world):
    assert world.ratio > 0
    result = speclib.decode("x", world=world, method="pearl", gamma="auto")
    assert result.trace.meta["gamma"] == max(1, round(world.ratio))


def kill(world: Processes, device: str) -> None:
    (pid,) = world.processes[device]
    os.kill(pid, signal.SIGKILL)


GREEDY_ROWS = ["speculative", "tree", "lookahead"]


@pytest.fixture
def rows_left(monkeypatch) -> list[Array]:
    """A list of the rows that are read from the workers' shared memory."""
    found: list[Array] = []

    read_truly = Array.read

    def read(self: Array, shared) -> np.ndarray:
        found.append(self)
        return read_truly(self, shared)

    monkeypatch.setattr(Array, "read", read)
    return found


@pytest.mark.parametrize("method", GREEDY_ROWS)
def test_greedy_rows_are_sent_as_tokens_only(method, world, rows_left):
    """This includes trees. At temperature 1, the same operations send whole rows."""
    settings = {"gamma": 3} if takes_gamma(method) else {"lookahead": 2}
    if method == "lookahead":
        settings = {"window": 3}
    for temperature in (0.0, 1.0):
        speclib.decode(
            "x", world=world, method=method, temperature=temperature, **settings
        )
        assert bool(rows_left) is (temperature > 0)


def test_a_greedy_row_arrives_as_on_the_virtual_clock():
    rows = []
    for world in (speclib.open_world("virtual", TOY), Processes(TOY)):
        with world:
            world.begin((0,), sampler=Sampler(), coins=Coins(), limit=9)
            text = world.text + (3, 1, 4)
            scored = world.wait(world.target.score(text, last=2))
            tree = world.wait(world.target.score_tree(world.text, (5, 6), (-1, -1)))
            drafted = world.wait(world.draft.propose(world.text, 3))
            q_rows = [draft.q for draft in drafted]
            rows.append(np.concatenate((scored, tree, q_rows)))
    assert rows[0].shape == rows[1].shape
    assert np.array_equal(*rows)


# -- several target servers ------------------------------------------------------------
class AnyTime(Latency):
    """Gives each operation a random duration, so that results come in any order."""

    def __init__(self, seed: int):
        super().__init__(**vars(Latency.ratio(3)))
        self.random = random.Random(seed)

    def seconds(self, device, op, kept, fed) -> float:
        self.random.seed(f"{self.random.random()}{device}")  # servers differ
        return self.random.choice((0.0, 0.001, 0.002, 0.006, 0.015))


def overtaken(trace) -> int:
    """Counts target passes that ended after one that began later."""
    passes = [event for event in trace.operations if event.is_scoring]
    count = 0
    for early in passes:
        later = [event for event in passes if event.ts > early.ts]
        count += any(event.end < early.end for event in later)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("cancel", ["immediate", "after-op"])
@pytest.mark.parametrize(
    "servers",
    [
        1,
        pytest.param(2, marks=pytest.mark.thorough),
        pytest.param(3, marks=pytest.mark.thorough),
        4,
    ],
)
def test_dsi_writes_plain_decodings_tokens_in_any_order_of_results(servers, cancel):
    late = caught_up = 0
    with Processes(
        TOY, servers=servers, cancel=cancel, emulate=AnyTime(servers)
    ) as world:
        for seed, lookahead in product(range(2), (1, 2, 5)):
            asked = {"max_new_tokens": 24, "temperature": float(seed), "seed": seed}
            result = speclib.decode(
                "x", world=world, method="dsi", lookahead=lookahead, **asked
            )
            plain = speclib.decode(
                "x", pair=TOY, world="virtual", method="autoregressive", **asked
            )
            assert result.tokens == plain.tokens
            assert len(result.tokens) == 24
            late += overtaken(result.trace)
            caught_up += result.stats.caught_up
    assert (late > 0) == (caught_up > 0) == (servers > 1)


def killed(*devices, servers: int = 3):
    """Kills ``devices`` after ten tokens of DSI; then decodes plainly and by DSI again.

    Returns the first request's result or error, and plain decoding's result.

    It would take four servers to keep up with the drafter, so all servers are busy,
    even on a slow machine.
    """
    with Processes(
        TOY, servers=servers, cancel="immediate", emulate=Latency.ratio(4, 0.04)
    ) as world:
        committed = []
        victims = list(devices)

        def strike(tokens):
            committed.extend(tokens)
            while len(committed) >= 10 and victims:
                kill(world, victims.pop())

        asked = {"method": "dsi", "lookahead": 1, "max_new_tokens": 24}
        try:
            hurt = speclib.decode("x", world=world, on_commit=strike, **asked)
        except DeviceLost as error:
            hurt = error
        again = speclib.decode("x", world=world, **asked)

    plain = speclib.decode(
        "x", pair=TOY, world="virtual", method="autoregressive", max_new_tokens=24
    )
    assert again.tokens == plain.tokens
    assert not any(event.lost for event in again.trace.events)
    return hurt, plain


@pytest.mark.slow
@pytest.mark.parametrize(
    "device",
    [
        "target",
        pytest.param("target-2", marks=pytest.mark.thorough),
        "target-3",
        "draft",
    ],
)
def test_a_device_killed_in_mid_run_costs_dsi_only_time_as_the_trace_shows(device):
    hurt, plain = killed(device)
    assert hurt.tokens == plain.tokens
    lost = [event for event in hurt.trace.operations if event.lost]
    assert [event.device for event in lost] == [device]

    end_of_device = lost[0].end
    later = [
        event.device for event in hurt.trace.operations if event.ts > end_of_device
    ]
    assert later
    assert device not in later


def test_with_every_target_killed_dsi_ends_and_names_one():
    error, _ = killed("target", "target-2", servers=2)
    assert isinstance(error, DeviceLost)
    assert "target" in str(error)


@pytest.mark.parametrize(
    "method, broken", [("dsi", "draft"), ("pearl", "target"), ("speculative", "draft")]
)
def test_an_error_in_a_worker_ends_the_run_and_is_no_lost_device(method, broken):
    """One model has less context than the world assumes, and refuses a text."""
    context_of = {"draft": 1024, "target": 1024, broken: 64}
    pair = Pair(
        target=ModelSpec(model="toy", context=context_of["target"]),
        draft=ModelSpec(model="toy", alpha=0.9, context=context_of["draft"]),
        name="short",
    )
    settings = {"lookahead": 2} if method == "dsi" else {"gamma": 2}
    with Processes(pair) as world:
        world.context = 1024
        # Long enough for the draft to be used before the target alone could finish.
        world.begin((0,) * 60, sampler=Sampler(), coins=Coins(), limit=400)
        with pytest.raises(DeviceFailed, match=f"'{broken}' failed in .*context of 64"):
            METHODS[method](world, **settings)


def test_additional_servers_use_the_next_cores_but_gpus_must_be_named():
    place = TOY.place.model_copy(
        update={"target": ("core:1",), "servers": (("core:5",),)}
    )
    assert [place.of("target", i) for i in range(3)] == [
        ("core:1",),
        ("core:5",),
        ("core:3",),
    ]
    assert place.of("draft") == TOY.place.draft
    gpus = TOY.model_copy(
        update={
            "place": place.model_copy(update={"target": ("cuda:0",), "servers": ()})
        }
    )
    with pytest.raises(
        speclib.SpeclibError, match="target-2 has no place.*place.servers"
    ):
        Processes(gpus, servers=2)


def test_no_worker_outlives_an_exception():
    with pytest.raises(ZeroDivisionError), Processes(TOY) as world:
        pids = list(chain(*world.processes.values()))
        _ = 1 / 0
    assert gone(pids)


SCRIPT = """
    import sys, speclib
    world = speclib.Processes(speclib.load_pair("toy"))
    print(*[pid for pid, in world.processes.values()], flush=True)
    result = speclib.decode("x", world=world, method="pearl", gamma=2)
    print(len(result.tokens), flush=True)
"""


def test_a_script_without_a_main_guard_works_and_leaves_nothing(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT))
    process = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, timeout=60
    )
    pids, tokens = process.stdout.splitlines()
    assert process.returncode == 0
    assert tokens == "64"
    assert process.stderr == ""
    assert gone([int(p) for p in pids.split()])


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity"), reason="no CPU affinity on this system"
)
def test_a_core_place_pins_its_worker():
    place = TOY.place.model_copy(update={"draft": ("core:0",), "target": ("core:1",)})
    with Processes(TOY.model_copy(update={"place": place})) as world:
        cores = {}
        for name, (pid,) in world.processes.items():
            cores[name] = os.sched_getaffinity(pid)
    allowed = sorted(os.sched_getaffinity(0))
    assert cores == {"draft": {allowed[0]}, "target": {allowed[1 % len(allowed)]}}


@pytest.mark.slow
def test_the_fork_server_never_touches_cuda():
    """A process forked after CUDA's initialisation cannot use CUDA."""
    script = """
        from importlib import import_module

        import torch

        def refuse(*_):
            raise SystemExit("CUDA was initialised")

        torch.cuda._lazy_init = refuse

        from speclib.worlds.worker import PRELOADED, PRELOADED_FOR_REAL_MODELS

        for name in PRELOADED + PRELOADED_FOR_REAL_MODELS:
            import_module(name)
        try:
            torch.cuda.current_stream()
        except SystemExit:
            print("untouched until now")
    """
    pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True
    )
    assert done.stdout == "untouched until now\n", done.stderr
