"""A world serves one request at a time, in its own process, until it is closed."""

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading

import pytest

import speclab
import speclib
from speclib.core.sampling import Coins, Sampler
from speclib.errors import BadValue, SpeclibError
from speclib.worlds.owner import WorldNotFree

TOY = speclib.load_pair("toy")
PLAIN = speclib.decode(
    "3 4", pair=TOY, world="virtual", method="autoregressive", max_new_tokens=24
).tokens
HOW = dict(gamma=3, max_new_tokens=24)
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@pytest.fixture(params=["virtual", "processes"], scope="module")
def world(request):
    with speclib.open_world(request.param, TOY) as opened:
        yield opened


def decode(world, **settings):
    return speclib.decode("3 4", world=world, **{"method": "pearl", **HOW, **settings})


@pytest.mark.parametrize("method", ["pearl", "autoregressive"])
def test_a_second_request_from_a_callback_is_refused_and_the_first_continues(
    world, method
):
    settings = {} if method == "autoregressive" else {"gamma": 3}
    refused = []

    def nested(tokens):
        with pytest.raises(WorldNotFree, match="busy with a request"):
            speclib.decode("7 8", world=world, max_new_tokens=2, gamma=2)
        refused.append(tokens)

    result = speclib.decode(
        "3 4",
        world=world,
        method=method,
        max_new_tokens=24,
        on_commit=nested,
        **settings,
    )
    assert result.tokens == PLAIN
    assert sum(refused, ()) == PLAIN  # refused at every commit


def test_an_uncaught_refusal_ends_the_first_request_but_not_the_world(world):
    with pytest.raises(WorldNotFree):
        decode(world, on_commit=lambda tokens: decode(world))
    assert decode(world).tokens == PLAIN


def test_one_of_many_threads_decodes_and_the_others_get_an_error(world):
    inside, leave = threading.Event(), threading.Event()

    def hold(tokens):
        inside.set()
        leave.wait(10)

    results = []
    first = threading.Thread(
        target=lambda: results.append(decode(world, on_commit=hold)), name="first"
    )
    first.start()
    assert inside.wait(10)
    for _ in range(5):
        with pytest.raises(WorldNotFree, match="thread 'first'"):
            decode(world)
    leave.set()
    first.join(10)
    assert results[0].tokens == PLAIN
    assert decode(world).tokens == PLAIN


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_request_that_failed_leaves_the_world_free(world, error):
    def fail(tokens):
        raise error

    with pytest.raises(error):
        decode(world, on_commit=fail)
    assert decode(world).tokens == PLAIN


def test_an_async_callback_is_refused(world):
    async def callback(tokens):
        """Never runs."""

    for never_runs in (callback, lambda tokens: callback(tokens)):
        with pytest.raises(BadValue, match="async function.*to_thread"):
            decode(world, on_commit=never_runs)
    assert decode(world).tokens == PLAIN


@pytest.mark.parametrize("kind", ["virtual", "processes"])
def test_a_closed_world_accepts_no_request_and_starts_no_process(kind):
    world = speclib.open_world(kind, TOY)
    decode(world)
    world.close()
    world.close()
    children = len(multiprocessing.active_children())
    with pytest.raises(WorldNotFree, match="was closed"):
        decode(world)
    with pytest.raises(WorldNotFree, match="was closed"), world:
        pass
    with pytest.raises(WorldNotFree, match="was closed"):
        world.begin((1,), sampler=Sampler(), coins=Coins(), limit=1)
    assert len(multiprocessing.active_children()) == children


def test_closing_a_world_from_a_callback_is_explained():
    world = speclib.open_world("processes", TOY)
    with pytest.raises(SpeclibError, match="gone|closed"):
        decode(world, on_commit=lambda tokens: world.close())
    with pytest.raises(WorldNotFree, match="was closed"):
        decode(world)


def test_after_an_interrupt_a_virtual_world_starts_afresh(monkeypatch):
    """The clock's n-th step is interrupted, for n from 1 to 11."""
    with speclib.open_world("virtual", TOY) as world:
        step = world._step
        for after in range(1, 12):
            left = [after]

            def interrupted(left=left):
                left[0] -= 1
                if left[0] == 0:
                    world._heap.pop()
                    raise KeyboardInterrupt
                step()

            monkeypatch.setattr(world, "_step", interrupted)
            with pytest.raises(KeyboardInterrupt):
                decode(world)
            monkeypatch.setattr(world, "_step", step)
            assert decode(world).tokens == PLAIN


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_world_cannot_be_copied_or_sent(world, copied):
    with pytest.raises(WorldNotFree, match="cannot be copied or sent"):
        copied(world)


# -- forks -----------------------------------------------------------------------------
def exit_code_of_fork(function) -> int:
    """Runs ``function`` in a forked child, which then exits as scripts do."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if function() else 2
        finally:
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def is_refused(world) -> bool:
    try:
        decode(world)
    except WorldNotFree as error:
        return "fork" in str(error)
    return False


@forks
def test_a_forked_child_is_refused_and_closes_nothing_of_its_parent(world):
    decode(world)
    processes = getattr(world, "processes", None)
    assert exit_code_of_fork(lambda: is_refused(world)) == 0
    assert exit_code_of_fork(lambda: world.close() is None) == 0
    assert decode(world).tokens == PLAIN
    assert getattr(world, "processes", None) == processes


SCRIPT = """
import os, sys
import speclib
pair = speclib.load_pair("toy")
with speclib.open_world("processes", pair) as world:
    def decode(world):
        return speclib.decode("3 4", world=world, method="pearl", gamma=3).tokens
    plain, before = decode(world), world.processes
    for kind in ("nothing", "its own world"):
        child = os.fork()
        if child == 0:
            if kind == "its own world":
                with speclib.open_world("processes", pair) as own:
                    assert decode(own) == plain
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0, kind
        assert decode(world) == plain and world.processes == before, kind
print("both are well")
"""


@forks
@pytest.mark.timeout(60)
def test_a_forked_child_that_exits_as_scripts_do_leaves_the_workers_running():
    """At exit, multiprocessing ends all processes that it has started."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=50
    )
    assert done.stdout.strip() == "both are well", done.stderr


def open_in_daemon(answers) -> None:
    try:
        speclib.open_world("processes", TOY).close()
    except SpeclibError as error:
        answers.put(str(error))
    answers.put("")


@forks
def test_the_error_in_a_daemonic_process_names_the_alternative():
    fork = multiprocessing.get_context("fork")
    answers = fork.Queue()
    daemon = fork.Process(target=open_in_daemon, args=(answers,), daemon=True)
    daemon.start()
    message = answers.get(timeout=20)
    daemon.join(10)
    assert "ProcessPoolExecutor" in message
    assert "virtual" in message


def in_another_thread(function) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join(10)


# -- batches ---------------------------------------------------------------------------
def test_a_batch_also_has_an_owner():
    with speclib.ProcessBatch(TOY, 2) as steps:

        def batch():
            return speclib.decode_batch(["3", "4"], world=steps, **HOW)

        assert len(batch().results) == 2
        in_another_thread(steps.owner.take)
        with pytest.raises(WorldNotFree, match="busy"):
            batch()
        steps.owner.give_back()
        assert len(batch().results) == 2
    with pytest.raises(WorldNotFree, match="was closed"):
        batch()


# -- transformers' process -------------------------------------------------------------
@pytest.mark.slow
def test_a_peer_also_has_an_owner():
    """Otherwise two answers in one pipe would be mixed up."""
    pytest.importorskip("torch")
    peer = speclab.External("transformers-plain", speclib.load_pair("embedded/once"))
    with peer:
        in_another_thread(peer._owner.take)
        with pytest.raises(WorldNotFree, match="busy"):
            peer.decode("x", max_new_tokens=2)
        peer._owner.give_back()
        assert peer.decode("x", max_new_tokens=2).tokens
    with pytest.raises(WorldNotFree, match="was closed"):
        peer.decode("x", max_new_tokens=2)
    assert peer.processes == ()
