"""A fault ends in a prompt, clear error or a right result, and leaves nothing behind.

Real processes are killed, stopped, interrupted and starved of memory. ``recovers``
states what a fault may cost: its request, but never the world or a correct token.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from functools import partial
from multiprocessing import Pipe, connection
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pytest
from helpers.announced import Announced, end_in_the_build
from helpers.patience import HANG, wait_until
from helpers.processes import (
    OWN_SESSION,
    gone,
    living_children,
    living_in_session,
    process_status,
)

import speclib
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Curve, Latency
from speclib.data.pairs import ModelSpec, Pair
from speclib.worlds import processes
from speclib.worlds.devices import DeviceFailed, DeviceLost, Future
from speclib.worlds.processes import Processes

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="reads /proc, limits memory"
)

TOY = speclib.load_pair("toy")
EXPECTED = speclib.decode(
    "x", pair=TOY, method="autoregressive", world="virtual"
).tokens
SWIFT = Latency(
    Curve(((1, 0.002), (1001, 1.002))), Curve(((1, 0.006), (1001, 1.006))), "swift"
)
LONG = (0,) * 2000  # its first operation takes SWIFT a second
DEVICES = ["draft", "target"]


def run(world, tokens: int = 64, **settings):
    return speclib.decode(
        "x", world=world, method="pearl", gamma=3, max_new_tokens=tokens, **settings
    )


def begin(world, text=(0,)) -> None:
    world.begin(text, sampler=Sampler(), coins=Coins(), limit=8)


def pids(world) -> dict[str, int]:
    return {name: own[0] for name, own in world.processes.items()}


def kill(world, device: str) -> None:
    with contextlib.suppress(KeyError):  # already lost
        os.kill(pids(world)[device], signal.SIGKILL)


@contextlib.contextmanager
def at_once():
    """Asserts that the block waits neither for a world's timeouts nor forever."""
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < HANG


def server(world) -> int:
    return process_status(pids(world)["draft"]).parent


def recovers(world, before: dict[str, int], noticed: bool = True) -> None:
    """Asserts that the next request is right and that replaced workers have ended.

    If a death was not ``noticed``, it may cost one more request.
    """
    if not noticed:
        with contextlib.suppress(DeviceLost):
            run(world, 8)
    assert run(world).tokens == EXPECTED
    now = pids(world)
    assert set(now) == set(DEVICES)
    assert gone(set(before.values()) - set(now.values()))


@pytest.fixture(scope="module")
def announcements():
    """Both ends of the pipe through which devices announce long operations."""
    return Pipe()


@pytest.fixture
def world(announcements):
    """Toys whose operations last milliseconds, or a second if the text is long.

    A fault noticed before the long timeout was noticed without it.
    """
    _, tell = announcements
    latency = Announced(SWIFT.draft, SWIFT.target, SWIFT.name, tell=tell)
    with Processes(TOY, emulate=latency, timeout=2 * HANG) as opened:
        yield opened


@pytest.fixture
def ask_amid_an_operation(announcements):
    """Submits a long operation to a device, and waits until it is running."""
    hear, _ = announcements

    def ask_it(world, device: str) -> Future:
        begin(world, LONG)
        if device == "draft":
            world.target.score((0,))
            asked = world.draft.propose(world.text, 3)
        else:
            world.draft.propose((0,), 1)
            asked = world.target.score(world.text)
        assert hear.poll(HANG)
        assert hear.recv() == device
        return asked

    return ask_it


# -- a worker is killed ----------------------------------------------------------------
def while_it_is_built(world, device, monkeypatch, **_):
    kill(world, device)
    with pytest.raises(DeviceLost):
        run(world)

    build = partial(end_in_the_build, device, signal.SIGKILL)
    with monkeypatch.context() as patched:
        patched.setattr(processes, "device", build)
        run(world)


def while_idle(world, device, **_):
    run(world, 8)
    killed = pids(world)[device]
    kill(world, device)
    assert gone([killed])
    run(world)


def right_before_begin(world, device, **_):
    kill(world, device)
    run(world)


def between_operations(world, device, **_):
    run(world, on_commit=lambda _: kill(world, device))


def amid_an_operation(world, device, ask_amid_an_operation, **_):
    asked = ask_amid_an_operation(world, device)
    kill(world, device)
    world.wait(asked)


@pytest.mark.parametrize(
    "act, device",
    [
        (while_it_is_built, "draft"),
        (while_idle, "target"),
        (right_before_begin, "draft"),
        (between_operations, "target"),
        (amid_an_operation, "draft"),
        (amid_an_operation, "target"),
    ],
)
def test_a_killed_worker_is_named_at_once_and_replaced(
    world, act, device, monkeypatch, ask_amid_an_operation
):
    before = pids(world)
    lost = f"device '{device}' of pair 'toy' was lost.*code -9"
    with at_once(), pytest.raises(DeviceLost, match=lost):
        act(
            world,
            device,
            monkeypatch=monkeypatch,
            ask_amid_an_operation=ask_amid_an_operation,
        )
    recovers(world, before)


@pytest.mark.parametrize("device", DEVICES)
def test_a_worker_killed_at_the_end_does_not_harm_the_finished_output(world, device):
    written, before = [], pids(world)

    def end(tokens):
        written.extend(tokens)
        if len(written) == 64:
            kill(world, device)

    with at_once():
        result = run(world, on_commit=end)
    assert result.tokens == tuple(written) == EXPECTED
    recovers(world, before, noticed=False)


@pytest.mark.parametrize("device", DEVICES)
def test_a_worker_killed_while_c_is_measured_is_named_and_replaced(device):
    with Processes(TOY) as world:
        before = pids(world)
        kill(world, device)
        with pytest.raises(DeviceLost, match=f"{device}.*-9"):
            _ = world.ratio
        recovers(world, before)
        assert world.ratio > 0


def strike_at_random(world, seed: int) -> None:
    """Kills a device at a random time in a request, and checks the outcome."""
    chance = random.Random(seed)
    device = chance.choice(DEVICES)
    before = pids(world)
    strike = threading.Timer(chance.uniform(0, 0.3), kill, (world, device))
    strike.start()
    with at_once():
        try:
            assert run(world).tokens == EXPECTED
            noticed = False
        except DeviceLost as error:
            assert f"device {device!r}" in str(error)
            noticed = True
    strike.join()
    recovers(world, before, noticed)


@pytest.mark.parametrize(
    "seed",
    [pytest.param(s, marks=pytest.mark.thorough if s > 2 else ()) for s in range(50)],
)
def test_a_worker_killed_at_any_time_costs_one_request(world, seed):
    strike_at_random(world, seed)


@pytest.mark.slow
def test_a_killed_fork_server_is_replaced(world):
    before = pids(world)
    killed = server(world)
    os.kill(killed, signal.SIGKILL)
    assert gone([killed])
    with contextlib.suppress(DeviceLost):  # workers seem lost, though they answer
        assert run(world).tokens == EXPECTED
    recovers(world, before, noticed=False)


# -- a worker hangs --------------------------------------------------------------------
# These tests need wall-clock time: a live process that does not answer for this long
# counts as hung. No test limits the additional time on a busy machine.
SHORT_TIMEOUT = 0.5


@pytest.fixture
def short_timeout(monkeypatch):
    """Gives a world a short timeout for one request."""

    @contextlib.contextmanager
    def shorten(world):
        with monkeypatch.context() as patched:
            patched.setattr(world, "timeout", SHORT_TIMEOUT)
            yield

    return shorten


@pytest.mark.parametrize("device", DEVICES)
def test_of_two_busy_devices_the_hanging_one_is_stopped_in_time(device, short_timeout):
    with Processes(TOY, emulate=SWIFT) as world:
        before = pids(world)
        os.kill(before[device], signal.SIGSTOP)
        hung = f"{device}.*hung.*0.5 s.*timeout="
        with short_timeout(world), at_once(), pytest.raises(DeviceLost, match=hung):
            run(world)
        assert gone([before[device]])
        recovers(world, before)


def test_a_hanging_device_is_noticed_while_another_keeps_answering(short_timeout):
    with Processes(TOY, emulate=SWIFT) as world:
        begin(world)
        os.kill(pids(world)["target"], signal.SIGSTOP)
        asked = world.target.score(world.text)
        with short_timeout(world), at_once():
            while not asked.done:
                world.first(asked, world.draft.propose(world.text, 1))
        assert "hung" in str(asked.error)


@pytest.mark.parametrize("device", DEVICES)
def test_a_worker_that_hangs_while_it_is_built_is_stopped_in_time(
    world, device, monkeypatch
):
    parent = server(world)
    kill(world, device)
    with pytest.raises(DeviceLost):
        run(world)

    others = set(living_children(parent))
    build = partial(end_in_the_build, device, signal.SIGSTOP)
    with monkeypatch.context() as patched, at_once():
        patched.setattr(processes, "device", build)
        patched.setattr(world, "start_timeout", SHORT_TIMEOUT)
        with pytest.raises(DeviceLost, match=f"{device}.*0.5 s.*larger start_timeout"):
            run(world)

    assert gone(set(living_children(parent)) - others)
    recovers(world, {})


def test_closing_does_not_wait_for_workers_that_hang():
    world = Processes(TOY)
    before = pids(world).values()
    for pid in before:
        os.kill(pid, signal.SIGSTOP)
    with at_once():
        world.close()
    assert gone(before)


# -- memory, numbers, methods ----------------------------------------------------------
def size(process: int) -> int:
    """Returns the address space of a process in bytes."""
    return (
        int(Path(f"/proc/{process}/statm").read_text().split()[0])
        * resource.getpagesize()
    )


def test_an_operation_without_memory_gives_advice_and_the_world_continues():
    wide = Pair(
        target=ModelSpec(model="toy", vocab=2000),
        draft=ModelSpec(model="toy", vocab=2000, alpha=0.9),
        name="wide",
    )
    with Processes(wide) as world:
        target, text = pids(world)["target"], (0,) * 8000
        free = resource.prlimit(target, resource.RLIMIT_AS, (size(target) + 2**24, -1))
        begin(world, text)
        with pytest.raises(
            DeviceFailed, match="'target' failed in score.*emory.*smaller model"
        ):
            world.wait(world.target.score(text, 7000))  # 112 MB of rows; 16 MB are free
        resource.prlimit(target, resource.RLIMIT_AS, free)
        begin(world, text)
        assert np.array_equal(
            world.wait(world.target.score(text, 3)).sum(1), np.ones(4)
        )
        assert pids(world)["target"] == target


def test_the_error_for_a_model_too_large_for_memory_says_what_to_do():
    huge = Pair(
        target=ModelSpec(model="toy", context=1 << 26),  # its script: 512 MB
        draft=ModelSpec(model="toy", alpha=0.9),
        name="huge",
    )
    with Processes(TOY) as world:
        parent = server(world)
        free = resource.prlimit(parent, resource.RLIMIT_AS, (size(parent) + 2**27, -1))
        try:
            with pytest.raises(
                DeviceLost, match="'target' could not build 'huge'.*emory.*smaller"
            ):
                Processes(huge)
        finally:
            resource.prlimit(parent, resource.RLIMIT_AS, free)
        assert living_children(parent) == sorted(pids(world).values())
        recovers(world, {})


def test_a_method_that_raises_leaves_the_world_usable(world):
    before = pids(world)

    def fails(world):
        world.draft.propose(world.text, 3)
        world.target.score(world.text)
        raise ZeroDivisionError

    begin(world)
    with pytest.raises(ZeroDivisionError):
        fails(world)
    recovers(world, before)
    assert pids(world) == before


# -- texts sent in parts ---------------------------------------------------------------
class Asked(NamedTuple):
    """A target's pass over ``text`` and a sequence of nodes after it."""

    text: tuple[int, ...]
    nodes: tuple[int, ...]
    future: Future


def ask(world, nodes: tuple[int, ...]) -> Asked:
    """Has the target score the world's text and a sequence of nodes, with features."""
    line = range(-1, len(nodes) - 1)
    future = world.target.score_tree_features(world.text, nodes, tuple(line))
    return Asked(tuple(world.text), nodes, future)


def check_features(asked: Asked) -> None:
    """Checks with the features which text the worker has received.

    A toy's feature at a token is a checksum of all tokens up to it.
    """
    features = asked.future.result().features
    whole = asked.text + asked.nodes
    for position, feature in enumerate(features.values[:, 0], features.start):
        path = np.array(whole[: position + 1], np.int64)
        assert int(feature) == crc32(path.tobytes())
    assert features.end == len(whole)


@pytest.mark.parametrize("cancel", ["immediate", "after-op"])
def test_a_worker_has_the_right_text_whatever_was_cancelled(cancel):
    """A text grows, changes, is scored and cancelled, in any order."""
    dice = random.Random(cancel)
    swift = Latency.ratio(2, 0.004)
    with Processes(TOY, cancel=cancel, emulate=swift) as world:
        for _ in range(4):
            prompt = [dice.randrange(1, 9) for _ in range(dice.choice((1, 300)))]
            world.begin(prompt, sampler=Sampler(), coins=Coins(), limit=400)
            for _ in range(40):
                nodes = [dice.randrange(1, 9) for _ in range(dice.randint(0, 3))]
                asked = ask(world, tuple(nodes))
                if dice.random() < 0.4:
                    for _ in range(dice.randrange(3)):  # the text continues meanwhile
                        world.wait(world.draft.propose((0,), 1))
                    world.cancel(asked.future)
                else:
                    world.wait(asked.future)
                    check_features(asked)
                world.commit([dice.randrange(1, 9) for _ in range(dice.randint(0, 3))])


def test_a_replaced_worker_is_sent_the_whole_text_again():
    with Processes(TOY) as world:
        text = tuple(random.Random(1).choices(range(1, 9), k=3000))
        for _ in range(3):
            begin(world, text)
            for nodes in ((1, 2), (1, 3), ()):
                asked = ask(world, nodes)
                world.wait(asked.future)
                check_features(asked)
                world.commit((4,))

            kill(world, "target")
            with pytest.raises(DeviceLost):
                world.wait(ask(world, ()).future)


def test_a_lost_target_does_not_affect_the_others_copies_of_a_text():
    with Processes(TOY, servers=3) as world:
        begin(world, tuple(range(1, 9)) * 50)
        for count in range(8):
            if count == 3:
                kill(world, "target-2")
            for target in world.targets:
                nodes = (1 + count,)
                future = target.score_tree_features(world.text, nodes, (-1,))
                if target.name == "target-2" and count >= 3:
                    with pytest.raises(DeviceLost):
                        world.wait(future)
                else:
                    world.wait(future)
                    check_features(Asked(tuple(world.text), nodes, future))
            world.commit((1 + count % 3,))


def test_a_text_continues_after_an_error_in_a_worker():
    """Only one operation fails; the worker stays and keeps its text."""
    with Processes(TOY) as world:
        begin(world, (1,) * 500)
        before = pids(world)
        too_long = (2,) * (world.context - 400)
        with pytest.raises(DeviceFailed, match="does not fit this toy's context"):
            world.wait(world.target.score(world.text + too_long))
        world.commit((3,))
        asked = ask(world, (4, 5))
        world.wait(asked.future)
        check_features(asked)
        assert pids(world) == before


# -- an interrupt ----------------------------------------------------------------------
WATCHED = {
    str(Path(speclib.__file__).parent / f"{name}.py")
    for name in (
        "worlds/world",
        "worlds/real_devices",
        "worlds/processes",
        "worlds/worker",
        "core/text",
        "decoding/decode",
    )
} | {connection.__file__}

UNSAFE = (
    "__del__",
    "close",
    "_close",
)  # multiprocessing's own: a half-closed connection is lost


def interrupted(world, line: int) -> bool:
    """Interrupts a request before the ``line``-th line of WATCHED files.

    Returns False if the request ends first.
    """
    seen = 0

    def trace(frame, event, _):
        nonlocal seen
        code = frame.f_code
        if code.co_filename not in WATCHED or code.co_name in UNSAFE:
            return None
        seen += event == "line"
        if seen == line:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run(world, 3)
        return False
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("lost", [False, True], ids=["all there", "one to be replaced"])
@pytest.mark.parametrize("stride", [61, pytest.param(1, marks=pytest.mark.thorough)])
def test_an_interrupt_at_any_line_leaves_the_world_usable(stride, lost):
    with Processes(TOY) as world:
        parent, line = server(world), stride
        while True:
            if lost:
                kill(world, "draft")
                with contextlib.suppress(DeviceLost):
                    run(world, 3)
            if not interrupted(world, line):
                break
            with at_once():
                assert run(world, 8).tokens == EXPECTED[:8], line
            line += stride
        assert line > 400
    assert gone(living_children(parent))


@pytest.mark.parametrize("times", [8, pytest.param(30, marks=pytest.mark.thorough)])
@pytest.mark.timeout(300, method="thread")  # the test uses SIGALRM itself
def test_interrupts_at_random_times_leave_the_world_usable(times):
    chance, usual = (
        random.Random(0),
        signal.signal(signal.SIGALRM, signal.default_int_handler),
    )
    try:
        with Processes(TOY) as world:
            for _ in range(times):
                with pytest.raises(KeyboardInterrupt):
                    signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.001, 0.05))
                    while True:
                        run(world)
                assert run(world).tokens == EXPECTED
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, usual)


# -- the user's process is killed ------------------------------------------------------
SCRIPT = """
    import os, signal, sys
    from speclib import Processes
    from speclib.core.sampling import Coins, Sampler
    from speclib.data.latency import Latency
    from speclib.data.pairs import ModelSpec, Pair
    toy = Pair(target=ModelSpec(model="toy", context=1 << 17),
               draft=ModelSpec(model="toy", alpha=0.9, context=1 << 17))
    print("started", flush=True)
    pair, emulate, tokens = {case}
    world = Processes(pair, emulate=emulate)
    world.begin((1,), sampler=Sampler(), coins=Coins(), limit=1 << 17)
    asked = world.target.propose((1,), tokens), world.draft.propose((1,), tokens)
    print("busy", flush=True)
    {then}
"""
CASES = {
    "computing": ("toy, None, 100_000", "world.wait(asked[0])"),
    "waiting": ("toy, Latency.ratio(1, 30), 1", "world.wait(asked[0])"),
    "hung": (
        "toy, None, 1",
        "[os.kill(pid, signal.SIGSTOP) for pid, in world.processes.values()]"
        "; print('hung', flush=True); signal.pause()",
    ),
}


@pytest.fixture
def tmp_path():
    """A short path, because a socket's address has at most about 100 characters."""
    with tempfile.TemporaryDirectory(prefix="s") as folder:
        yield Path(folder)


def script(folder: Path, name: str) -> subprocess.Popen:
    """Starts a script in a new session; its temporary files go to ``folder``/tmp."""
    case, then = CASES[name]
    (folder / "tmp").mkdir()
    (folder / "script.py").write_text(
        textwrap.dedent(SCRIPT).format(case=case, then=then)
    )
    process = subprocess.Popen(
        [sys.executable, folder / "script.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **OWN_SESSION,
        env=os.environ | {"TMPDIR": str(folder / "tmp")},
    )
    assert process.stdout.readline() == "started\n"
    return process


def end(process: subprocess.Popen, sig: signal.Signals) -> str:
    """Sends the signal, asserts that no process survives, and returns stderr.

    SIGINT goes to the whole group, as from a terminal.
    """
    send = os.killpg if sig == signal.SIGINT else os.kill
    send(process.pid, sig)
    process.wait(HANG)
    have_ended = wait_until(lambda: not living_in_session(process.pid))
    left = living_in_session(process.pid)
    assert have_ended, [Path(f"/proc/{pid}/cmdline").read_text() for pid in left]
    assert not list(Path("/dev/shm").glob(f"pym-{process.pid}-*"))
    return process.communicate(timeout=HANG)[1]


def is_computing(session: int) -> bool:
    """Whether a worker in the script's session is computing."""
    workers = [pid for pid in living_in_session(session) if pid != session]
    return any(process_status(pid).state == "R" for pid in workers)


@pytest.mark.slow
@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("name", ["computing", "waiting"])
def test_nothing_outlives_a_stopped_parent(tmp_path, name, sig):
    process = script(tmp_path, name)
    assert process.stdout.readline() == "busy\n"
    assert name == "waiting" or wait_until(lambda: is_computing(process.pid))
    # The script, the fork server and two workers.
    assert len(living_in_session(process.pid)) >= 4
    said = end(process, sig)
    assert said.count("Traceback") == (sig == signal.SIGINT), said  # the script's
    assert not list((tmp_path / "tmp").glob("pymp-*"))


def test_a_script_ends_though_its_workers_hang(tmp_path):
    process = script(tmp_path, "hung")
    assert process.stdout.readline() == "busy\n"
    assert process.stdout.readline() == "hung\n"
    end(process, signal.SIGINT)


@pytest.mark.slow
@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=pytest.mark.thorough if n else ()) for n in range(9)]
)
def test_nothing_outlives_a_parent_that_is_stopped_while_workers_start(
    tmp_path, seed, sig
):
    """The parent is stopped at a random moment."""
    process = script(tmp_path, "computing")
    time.sleep(random.Random(seed).uniform(0, 0.5))
    end(process, sig)
