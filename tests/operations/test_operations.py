"""Every operation can be run, stopped, sent, charged, traced, replayed and drawn."""

from __future__ import annotations

import pickle
from itertools import chain

import numpy as np
import pytest

import speclib
from speclib import replay, timeline
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.drawing.timeline.lanes import Cell, cells_of, row_count
from speclib.methods import METHODS
from speclib.models.toy import Random
from speclib.operations import OPERATIONS
from speclib.operations.draft_dynamic_tree import DraftDynamicTree
from speclib.operations.draft_phrase import DraftPhrase
from speclib.operations.draft_sequences import DraftSequences
from speclib.operations.draft_tree import DraftTree
from speclib.operations.fork import Fork
from speclib.operations.operation import DecodingRun, Output, Performed, perform
from speclib.operations.propose import Propose
from speclib.operations.score import Score, ScoreTree, ScoreTreeFeatures
from speclib.trace.events import Trace
from speclib.worlds.processes import Processes
from speclib.worlds.virtual import Virtual
from speclib.worlds.world import World

TOY = speclib.load_pair("toy")
TEXT = (1, 2, 1, 2, 1)
KINDS = {"accepted", "rejected", "discarded", "dropped", "score", "unused"}


TREE = (*TEXT, 1, 2, 1)
PHRASES = (*TEXT, 1, 2, 1, 3)

# An ordinary operation of every name.
EXAMPLES = {
    "propose": Propose(TEXT, n=3),
    "draft_phrase": DraftPhrase(PHRASES, 3, (-1, 0, -1, 2), 2, likeliest_count=1),
    "draft_sequences": DraftSequences(TEXT, n=4, k=2),
    "draft_tree": DraftTree(TEXT, n=2, width=2),
    "draft_dynamic_tree": DraftDynamicTree(TEXT, n=2, width=2, budget=3),
    "fork": Fork(TEXT, n=2, fan=(1, 2)),
    "score": Score(TEXT, 2),
    "score_tree": ScoreTree(TREE, (-1, 0, -1), likeliest_count=1),
    "score_tree_features": ScoreTreeFeatures(TREE, (-1, 0, -1), likeliest_count=1),
}


@pytest.fixture(params=OPERATIONS)
def operation(request):
    """An example of every registered operation."""
    return EXAMPLES[request.param]


def device_of(operation) -> str:
    """Returns the device: the draft model drafts, the target model scores."""
    return "draft" if operation.payload_type.is_drafting else "target"


def world_of_toys(cancel: str = "immediate") -> Virtual:
    models = {"draft": Random(5, 1), "target": Random(5, 2)}
    world = Virtual(models, Latency.ratio(4), cancel=cancel)
    world.begin(TEXT, sampler=Sampler(1.0), coins=Coins(3), limit=9)
    return world


def run_alone(operation) -> tuple[object, Trace]:
    """Returns the operation's value, and a trace that contains nothing else."""
    world = world_of_toys()
    value = world.wait(world.submit(device_of(operation), operation))
    return value, world.end()


def test_operations_are_registered_by_name():
    assert all(name == kind.name for name, kind in OPERATIONS.items())


def test_an_operation_arrives_in_another_process_unchanged(operation):
    assert pickle.loads(pickle.dumps(operation)) == operation


@pytest.mark.parametrize(
    "committed, concerns",
    [
        ((1, 2), True),  # all three drafts may follow
        ((1, 2, 9, 9), True),  # the third draft may follow
        ((1, 2, 9, 9, 9), False),  # all drafts' positions are taken
        ((1, 9), False),  # the text continued differently
    ],
)
def test_a_drafting_concerns_a_text_that_it_can_extend(committed, concerns):
    assert Propose((1, 2), n=3).concerns(committed) is concerns


def test_an_operation_keeps_what_it_can_and_feeds_the_rest(operation):
    model, request = Random(5, 1), DecodingRun(1, Coins(), Sampler(1.0))
    first = perform(operation, model, request)
    again = perform(operation, model, request)
    assert first.kept == 0
    assert again.kept > 0
    assert again.kept <= len(operation.text) - operation.last - 1
    assert model.prefix.count == first.fed + again.fed


def test_an_operations_passes_feed_every_token_that_was_fed(operation):
    model, request = Random(5, 1), DecodingRun(1, Coins(), Sampler(1.0))
    for _ in range(2):  # with an empty cache, then with a full one
        done = perform(operation, model, request)
        passes = operation.passes(done.kept, done.fed)
        fed = sum(forward.fed * forward.times for forward in passes)
        assert fed == pytest.approx(done.fed)


def test_an_operation_that_failed_before_reading_its_text_costs_nothing(operation):
    assert operation.passes(0, 0) == []


def test_an_operation_fits_into_the_remaining_context(operation):
    for tokens_left in range(4):
        fitted = operation.within(tokens_left)
        assert type(fitted) is type(operation)
        assert fitted.text == operation.text
        model, request = Random(5, 1), DecodingRun(tokens_left, Coins(), Sampler(1.0))
        model.context = len(operation.text) + tokens_left  # longer texts are refused
        perform(fitted, model, request)


def test_a_stopped_operation_shows_no_more_than_a_complete_one(operation):
    _, undisturbed = run_alone(operation)
    (complete,) = undisturbed.operations

    world = world_of_toys()
    device = device_of(operation)
    other_device = "draft" if device == "target" else "target"
    future = world.submit(device, operation)
    clock = world.submit(other_device, OPERATIONS["score"]((1, 2)))
    if other_device == "target":
        world.wait(clock)  # four draft passes
    world.cancel(future)

    (event,) = (event for event in world.end().operations if event.device == device)
    if event.cancelled:
        assert len(event.tokens) <= len(complete.tokens)
        assert event.kept + event.fed <= complete.kept + complete.fed
        assert set(event.outcome) <= {"discarded"}


def test_an_operations_event_survives_json(operation):
    _, trace = run_alone(operation)
    assert Trace.from_json(trace.to_json()) == trace


def test_an_operations_event_describes_every_token(operation):
    _, trace = run_alone(operation)
    (event,) = trace.operations
    assert event.is_drafting != event.is_scoring
    assert event.pass_count >= 1
    assert len(event.depths) == len(event.tokens)
    assert event.is_scoring or event.text_length == len(TEXT)
    if event.is_drafting:
        joined = tuple(chain.from_iterable(event.sequences))
        assert joined == tuple(event.tokens)
        assert event.outcome == ("discarded",) * len(event.tokens)


class Spelling:
    def label_of(self, token: int) -> str:
        return str(token)

    def spelled(self, tokens) -> str:
        return " ".join(map(str, tokens))


def test_an_operation_is_drawn_within_its_time_and_its_lane(operation):
    _, trace = run_alone(operation)
    (event,) = trace.operations
    cells = cells_of(event, Spelling())
    rows = row_count(event)
    assert cells
    for cell in cells:
        assert isinstance(cell, Cell)
        assert cell.kind in KINDS
        assert cell.tip
        assert cell.start >= 0
        assert cell.start + cell.share <= 1 + 1e-12
        assert 0 <= cell.row < cell.rows <= rows
    assert "<svg" in timeline(trace).picture()


def test_an_operation_without_output_can_be_drawn(operation):
    _, trace = run_alone(operation)
    (event,) = trace.operations
    nothing = event._replace(tokens=(), outcome=(), payload=operation.unfinished())
    assert [cell.start for cell in cells_of(nothing, Spelling())] == [0.0]


def test_a_replay_repeats_an_operations_result(operation, monkeypatch):
    def once(world) -> None:
        world.wait(world.submit(device_of(operation), operation))
        world.commit((1,))

    monkeypatch.setitem(METHODS, "once", once)
    world = world_of_toys()
    once(world)
    trace = world.end(method="once", prompt=list(TEXT))
    assert replay(trace).events == trace.events


@pytest.fixture(scope="module")
def world_of_processes():
    """A world for all operations; each request begins with empty caches."""
    with Processes(TOY) as world:
        yield world


def test_a_worker_and_the_virtual_world_agree(operation, world_of_processes):
    """Tokens, KV counts and payload are equal for a greedy toy pair."""
    with speclib.open_world("virtual", TOY) as virtual:
        expected = shown_by(virtual, operation)
    assert shown_by(world_of_processes, operation) == expected


def shown_by(world: World, operation) -> tuple[object, ...]:
    """Returns tokens, KV counts and payload from the event of this operation alone."""
    world.begin((0,), sampler=Sampler(), coins=Coins(), limit=9)
    world.wait(world.submit(device_of(operation), operation))
    (event,) = world.end().operations
    return event.tokens, event.kept, event.fed, event.payload


@pytest.mark.parametrize(
    "share, written, fed",
    [(0.2, 0, 0), (0.34, 1, 2), (0.5, 1, 2), (2 / 3, 2, 3), (0.99, 2, 3), (1.0, 3, 4)],
)
def test_a_stopped_draft_returns_the_tokens_of_complete_passes(share, written, fed):
    """Of three passes of equal length, one feeds two text tokens, the others a draft.

    An incomplete pass writes nothing, and its tokens are not in the cache.
    """
    whole = Performed(Output((4, 5, 6), np.eye(9)[[4, 5, 6]]), kept=1, fed=2 + 1 + 1)
    stopped = Propose((1, 2, 3), n=3).until(whole, share)
    assert stopped.output.small == (4, 5, 6)[:written]
    assert len(stopped.output.rows) == written
    assert (stopped.kept, stopped.fed) == (1, fed)
