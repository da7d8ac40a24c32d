"""Cancelled operations end soon, are counted, and affect nothing else."""

from __future__ import annotations

import threading
from multiprocessing import Pipe

import numpy as np
import pytest

import speclib
from speclib.core.sampling import Coins, Sampler
from speclib.core.text import Text, TextSender
from speclib.data.latency import Latency
from speclib.models.open_pair import open_pair
from speclib.models.toy import BOS, Toy
from speclib.operations.model import Stopped
from speclib.operations.operation import DecodingRun
from speclib.operations.propose import Propose
from speclib.operations.score import Score
from speclib.trace.metrics import stats
from speclib.worlds import performer
from speclib.worlds.devices import Cancelled
from speclib.worlds.performer import STOP, DeviceSpec
from speclib.worlds.processes import Processes
from speclib.worlds.virtual import Virtual

TOY = speclib.load_pair("toy")


class After:
    """Returns False ``count`` times, then True."""

    def __init__(self, count: int):
        self.count = count

    def __call__(self) -> bool:
        self.count -= 1
        return self.count < 0


def rows_as_they_are(rows):
    """Returns an operation's rows as a worker sends them, here unchanged."""
    return rows


def question(operation) -> performer.Question:
    """Returns a question to a worker: an operation after BOS, at temperature 1."""
    request = DecodingRun(-1, Coins(), Sampler(1.0))
    text = TextSender().pack(Text([BOS], 1))
    return performer.Question(operation, text, request)


def begin(world, text=(BOS,)):
    world.begin(text, sampler=Sampler(), coins=Coins(), limit=64)
    return world


# -- between layers --------------------------------------------------------------------
@pytest.fixture(scope="module")
def target():
    pytest.importorskip("torch")
    return open_pair(speclib.load_pair("embedded/llama-7b-70b")).build(
        "target", dilated=False
    )


def test_a_pass_stopped_before_any_layer_does_not_change_later_logits(target):
    layers = target.network.config.num_hidden_layers
    assert layers > 1
    first = tuple(range(3, 11))  # eight tokens
    longer = tuple(range(3, 16))  # continues all of them
    other = (3, 4, 5, 6, 70, 71, 72)  # continues four of them

    def logits_without_a_stop(text):
        target.reset()
        target.rows(first, 0, Sampler())
        target.rows(text, 1, Sampler())
        return target.logits

    def logits_after_a_stop(text, unwanted, layer: int):
        """Returns ``text``'s logits after a pass was stopped before ``layer``."""
        target.reset()
        target.rows(first, 0, Sampler())

        target.stopped = After(layer)
        with pytest.raises(Stopped):
            target.rows(unwanted, 2, Sampler())
        target.stopped = bool
        cached = {layer.get_seq_length() for layer in target.cache.layers}
        assert cached == {len(target.prefix.fed)} == {8 if unwanted is longer else 4}

        target.rows(text, 1, Sampler())
        return target.logits

    for text, unwanted in ((longer, longer), (other, longer), (other, other)):
        expected = logits_without_a_stop(text)
        for layer in range(layers):
            found = logits_after_a_stop(text, unwanted, layer)
            np.testing.assert_allclose(found, expected, atol=1e-6)


def test_stopped_drafting_keeps_its_tokens_and_reports_how_many_were_fed(target):
    from speclib.operations.operation import perform

    layers = target.network.config.num_hidden_layers
    op, request = Propose((3, 4, 5), 6), DecodingRun(-1, Coins(), Sampler())
    whole = perform(op, target, request).output.small
    target.reset()
    target.stopped = After(2 * layers + 1)  # after the first layer of pass three
    done = perform(op, target, request)
    target.stopped = bool
    assert done.output.small == whole[:2]
    assert (done.kept, done.fed) == (0, 4)


# -- traces ----------------------------------------------------------------------------
def test_cancelled_drafting_shows_its_finished_passes():
    """Four draft passes end with the target's pass; the fourth token was not fed."""
    models = {"draft": Toy(0.9), "target": Toy()}
    world = begin(Virtual(models, Latency.ratio(4), cancel="immediate"))
    drafting = world.draft.propose(world.text, 8)
    world.wait(world.target.score(world.text))
    world.cancel(drafting)
    event = world.end().operations[-1]
    assert isinstance(drafting.error, Cancelled)
    assert drafting.done
    assert len(event.tokens) == 4
    assert set(event.outcome) == {"discarded"}
    assert (event.kept, event.fed, event.dur) == (0, 4, 1.0)
    assert stats(world.end()).draft_runs == stats(world.end()).drafted == 4


@pytest.mark.parametrize("device", ["draft", "target"])
def test_a_cancelled_emulated_operation_ends_at_once_or_after_its_full_time(device):
    """The operation that is stopped at once would otherwise last an hour."""
    for policy, seconds in (("immediate", 3600.0), ("after-op", 0.1)):
        latency = Latency.ratio(4, seconds)
        with Processes(TOY, emulate=latency, cancel=policy) as world:
            at = begin(world).devices[device]
            if device == "draft":
                future = at.propose(world.text, 4)
            else:
                future = at.score(world.text)
            world.cancel(future)
            event = world.end().operations[0]

            assert (event.dur < seconds) == (policy == "immediate")
            assert isinstance(future.error, Cancelled) == (policy == "immediate")


def test_in_processes_cancelled_drafting_shows_its_finished_passes():
    """This holds however far drafting was when the target's pass ended."""
    with Processes(TOY, emulate=Latency.ratio(4, 0.4), cancel="immediate") as world:
        drafting = begin(world).draft.propose(world.text, 40)
        world.wait(world.target.score(world.text))
        world.cancel(drafting)
        event = next(e for e in world.end().operations if e.device == "draft")
    assert len(event.tokens) == int(event.dur / 0.1 + 1e-3)
    assert len(event.tokens) == event.fed


# -- the next operation ----------------------------------------------------------------


def test_a_stop_that_arrives_too_late_stops_nothing():
    """A worker's loop, run in a thread, receives STOP after it has answered."""
    ours, theirs = Pipe()
    spec = DeviceSpec("target", "target", 0, "auto")
    serving = threading.Thread(
        target=performer.answer_messages,
        args=(theirs, performer.device, TOY, spec, rows_as_they_are),
    )
    serving.start()
    try:
        assert ours.recv() is None  # it is ready
        answers = []
        for _ in range(4):
            ours.send(question(Score(())))
            answers.append(ours.recv())
            ours.send(STOP)
    finally:
        ours.close()
        serving.join()
        theirs.close()

    for answer in answers:
        np.testing.assert_array_equal(
            answer.performed.output.rows, answers[0].performed.output.rows
        )
        assert len(answer.performed.output.rows) == 1


def test_cancelled_operations_do_not_change_a_devices_later_answers():
    text = tuple(range(1, 9))
    with Processes(TOY, cancel="immediate", emulate=Latency.ratio(2, 0.02)) as world:
        begin(world)
        for n in range(1, 8):
            world.cancel(world.target.score(text[:n]), world.draft.propose(text[:n], 5))
        scored, drafted = world.target.score(text, last=3), world.draft.propose(text, 5)
        rows, tokens = world.all(scored, drafted)
    assert (rows == open_pair(TOY).build("target").rows(text, 3, Sampler())).all()
    draft, said = open_pair(TOY).build("draft"), list(text)
    for _ in range(5):
        said.append(int(draft.rows(said, 0, Sampler())[0].argmax()))
    assert [t.token for t in tokens] == said[8:]
