"""A GPU's faults, simulated without a GPU.

The messages are CUDA's own words.
"""

from __future__ import annotations

from multiprocessing import Pipe

import pytest
from helpers.announced import HandClock

import speclib
from speclib.core.sampling import Coins, Sampler
from speclib.core.text import Text, TextSender
from speclib.models.toy import Toy
from speclib.operations.operation import DecodingRun
from speclib.operations.propose import Propose
from speclib.worlds import performer
from speclib.worlds.devices import DeviceFailed, DeviceLost
from speclib.worlds.processes import Processes
from speclib.worlds.worker import Worker

LASTING = (
    "AcceleratorError: CUDA error: device-side assert triggered",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "AcceleratorError: CUDA error: unspecified launch failure",
)
PASSING = (
    "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "AcceleratorError: CUDA error: out of memory",
    "ValueError: the features have 3 channels",
)


def answer_instead(monkeypatch, failure: performer.Failure) -> None:
    """Replaces every worker's answers with ``failure``."""
    receive_truly = Worker.receive

    def receive(self, *timeout):
        receive_truly(self, 60.0)
        return failure

    monkeypatch.setattr(Worker, "receive", receive)


@pytest.mark.parametrize("cause", LASTING)
def test_cuda_errors_are_lasting(cause):
    assert performer.Failure(cause).is_lasting


@pytest.mark.parametrize("cause", PASSING)
def test_out_of_memory_and_our_own_errors_are_not_lasting(cause):
    assert not performer.Failure(cause).is_lasting


def test_a_worker_is_replaced_after_a_lasting_error_and_else_kept(monkeypatch):
    with Processes(speclib.load_pair("toy")) as world:
        for cause, is_replaced in ((PASSING[1], False), (LASTING[0], True)):
            target = world.processes["target"]
            begin(world)
            with monkeypatch.context() as patched:
                answer_instead(patched, performer.Failure(cause))
                failed = "'target' failed in score: .*CUDA"
                with pytest.raises(DeviceFailed, match=failed):
                    world.wait(world.target.score(world.text))
            world.end()

            begin(world)
            world.wait(world.target.score(world.text))
            world.end()
            assert (world.processes["target"] != target) == is_replaced


def test_a_lasting_error_of_a_cancelled_operation_is_raised_by_the_next(monkeypatch):
    with Processes(speclib.load_pair("toy")) as world:
        begin(world)
        world.cancel(world.target.score(world.text))
        scoring = world.target.score(world.text)
        answer_instead(monkeypatch, performer.Failure(LASTING[0]))
        with pytest.raises(DeviceFailed, match="failed in score: .*device-side assert"):
            world.wait(scoring)


def test_a_device_that_loses_a_rank_is_lost(monkeypatch):
    with Processes(speclib.load_pair("toy")) as world:
        begin(world)
        answer = performer.Failure("rank 1 of 2 ended", has_lost_rank=True)
        answer_instead(monkeypatch, answer)
        with pytest.raises(DeviceLost, match="failed in score: rank 1 of 2 ended"):
            world.wait(world.target.score(world.text))


def begin(world):
    world.begin((0, 1, 2), sampler=Sampler(), coins=Coins(), limit=4)


# -- the duration of a stopped operation -----------------------------------------------
class LateGpu(Toy):
    """A toy whose device stays busy for two seconds after its pass is stopped."""

    def __init__(self, clock: HandClock):
        super().__init__(alpha=None)
        self.clock = clock

    def wait_for_device(self):
        self.clock.seconds += 2.0


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_stopped_operation_ends_when_its_device_has_finished(is_stopped):
    clock = HandClock()
    ours, theirs = Pipe()
    if is_stopped:
        ours.send(performer.STOP)
    text = (0, 1, 2)
    question = performer.Question(
        Propose((), 2),
        TextSender().pack(Text(text, len(text))),
        DecodingRun(1, Coins(), Sampler()),
    )
    answer = performer.Performer(
        LateGpu(clock),
        performer.DeviceSpec("draft", "draft", 0, "auto"),
        lambda raw, *_: raw.rows,
        clock=clock,
    )
    reply = answer(question, theirs)
    assert reply.start == 0.0
    assert reply.end == (2.0 if is_stopped else 0.0)
