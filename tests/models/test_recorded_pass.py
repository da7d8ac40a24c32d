"""Recorded passes equal the pass itself at every position, and can be stopped.

``helpers.tape`` records them on a CPU; no GPU has recorded one yet.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helpers import snapshots  # noqa: E402
from helpers.tape import TapeRecorder  # noqa: E402

from speclib import SpeclibError  # noqa: E402
from speclib.core.sampling import Sampler  # noqa: E402
from speclib.models.fixed_rows import FIRST_ROOM, FixedRows  # noqa: E402
from speclib.models.recorded_pass import (  # noqa: E402
    CudaRecorder,
    RecordedPass,
    first_layers,
)
from speclib.operations.model import Stopped  # noqa: E402

PLAIN = Sampler(temperature=1.0)
COUNT = 8
WITHOUT_EXPERTS = [name for name in snapshots.ARCHITECTURES if name != "MixtralConfig"]


def both(name, **changes):
    """Returns a recorder, a model that uses it, and the same model without it."""
    networks = [snapshots.random_network(name, **changes) for _ in range(2)]
    recorder = TapeRecorder()
    recorded = FixedRows(networks[0], snapshots.VOCAB, COUNT, recorder)
    return recorder, recorded, FixedRows(networks[1], snapshots.VOCAB, COUNT)


# -- results ---------------------------------------------------------------------------
@pytest.mark.parametrize("name", WITHOUT_EXPERTS)
def test_replays_have_the_same_bits_as_passes_wherever_they_begin(name):
    """For sequences and trees, after rejections, and beyond a model's window."""
    recorder, recorded, plain = both(name)
    dice = random.Random(1)
    text = snapshots.prompt(2 * snapshots.WINDOW)
    for step in range(25):
        text = text[: dice.randint(snapshots.WINDOW, len(text))][:200]
        text += snapshots.prompt(dice.randint(1, 20))
        last = dice.randrange(6)
        rows = recorded.rows(text, last, PLAIN)
        np.testing.assert_array_equal(rows, plain.rows(text, last, PLAIN))

        if step % 5 == 0:
            parents = [-1, 0, 0, 2, -1]
            nodes = snapshots.prompt(len(parents))
            rows = recorded.tree((*text, *nodes), parents, PLAIN)
            expected = plain.tree((*text, *nodes), parents, PLAIN)
            np.testing.assert_array_equal(rows, expected)
        np.testing.assert_array_equal(recorded.features_fed(), plain.features_fed())
    assert len(recorder.pieces) == 1  # one recording serves every pass
    assert recorder.log.count("replay") >= 25
    assert recorded.recorder is recorder


def test_a_text_that_outgrows_its_room_is_recorded_again():
    recorder, recorded, plain = both("LlamaConfig")
    text = snapshots.prompt(2 * FIRST_ROOM)
    for length in (100, FIRST_ROOM - COUNT, FIRST_ROOM + 5, 120, 400, 90, 300):
        rows = recorded.rows(text[:length], 2, PLAIN)
        np.testing.assert_array_equal(rows, plain.rows(text[:length], 2, PLAIN))
    # The first room, the larger one, and the first again, because its cache has moved.
    assert len(recorder.pieces) == 3


def test_with_a_larger_first_room_one_recording_serves_texts_that_would_outgrow_it():
    """Its rows equal those of unrecorded passes over the same number of slots."""
    networks = [snapshots.random_network("LlamaConfig") for _ in range(2)]
    recorder, room = TapeRecorder(), 2 * FIRST_ROOM
    recorded = FixedRows(networks[0], snapshots.VOCAB, COUNT, recorder, room)
    plain = FixedRows(networks[1], snapshots.VOCAB, COUNT, first_room=room)
    recorded.prepare()
    text = snapshots.prompt(2 * FIRST_ROOM)
    for length in (100, FIRST_ROOM - COUNT, FIRST_ROOM + 5, 120, 400, 90, 300):
        rows = recorded.rows(text[:length], 2, PLAIN)
        np.testing.assert_array_equal(rows, plain.rows(text[:length], 2, PLAIN))
    assert len(recorder.pieces) == 1
    rows = recorded.rows(text, 2, PLAIN)
    np.testing.assert_array_equal(rows, plain.rows(text, 2, PLAIN))
    assert len(recorder.pieces) == 2
    assert recorded.room == 2 * room


def test_another_request_uses_the_same_recording():
    recorder, recorded, plain = both("LlamaConfig")
    recorded.prepare()
    assert len(recorder.pieces) == 1
    for seed in range(3):
        text = random.Random(seed).choices(range(snapshots.VOCAB), k=30)
        recorded.reset()
        plain.reset()
        rows = recorded.rows(text, 2, PLAIN)
        np.testing.assert_array_equal(rows, plain.rows(text, 2, PLAIN))
    assert len(recorder.pieces) == 1


def test_nan_values_in_a_cache_do_not_affect_the_next_request():
    network = snapshots.random_network("LlamaConfig")
    model = FixedRows(network, snapshots.VOCAB, COUNT, TapeRecorder())
    text = snapshots.prompt(30)
    expected = model.rows(text, 0, PLAIN)
    with torch.inference_mode():
        for layer in model.layers:
            layer.values.fill_(float("nan"))
    model.reset()
    np.testing.assert_array_equal(model.rows(text, 0, PLAIN), expected)


def test_the_first_long_prompt_is_read_unrecorded_and_a_later_one_replayed():
    recorder, recorded, plain = both("LlamaConfig")
    text = snapshots.prompt(100)
    recorded.rows(text, 0, PLAIN)
    assert recorder.log.count("replay") == 1
    recorded.reset()
    rows = recorded.rows(text, 0, PLAIN)
    np.testing.assert_array_equal(rows, plain.rows(text, 0, PLAIN))
    assert recorder.log.count("replay") == 1 + 13


@pytest.mark.parametrize(
    "rope_type, is_refused", [("dynamic", True), ("linear", False)]
)
def test_dynamic_rope_cannot_be_recorded(rope_type, is_refused):
    rope = {"rope_type": rope_type, "factor": 2.0, "rope_theta": 10_000.0}
    _, recorded, plain = both("LlamaConfig", rope_parameters=rope)
    text = snapshots.prompt(30)
    if is_refused:
        with pytest.raises(SpeclibError, match="cannot be recorded"):
            recorded.rows(text, 2, PLAIN)
        return
    rows = recorded.rows(text, 2, PLAIN)
    np.testing.assert_array_equal(rows, plain.rows(text, 2, PLAIN))


# -- pieces ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "layers, pieces", [(1, 1), (4, 1), (12, 3), (22, 5), (32, 8), (80, 8)]
)
def test_a_pass_has_up_to_eight_pieces_of_at_least_four_layers(layers, pieces):
    starts = first_layers(layers)
    assert len(starts) == pieces
    assert starts[0] == 0
    lengths = np.diff([*starts, layers])
    assert layers < 4 or lengths.min() >= 4
    assert lengths.max() - lengths.min() <= 1


def test_a_pass_in_pieces_can_be_stopped_before_each_and_goes_on_afterwards():
    recorder, recorded, plain = both("LlamaConfig", num_hidden_layers=12)
    text = snapshots.prompt(40)
    recorded.rows(text[:30], 0, PLAIN)
    assert len(recorder.pieces) == 3
    for pieces_before in range(3):
        recorder.log.clear()
        asked = iter([False] * pieces_before + [True])
        recorded.stopped = lambda asked=asked: next(asked)
        with pytest.raises(Stopped):
            recorded.rows(text[:34], 0, PLAIN)
        assert recorder.log.count("replay") == pieces_before
        recorded.stopped = bool
        rows = recorded.rows(text[:36], 1, PLAIN)
        np.testing.assert_array_equal(rows, plain.rows(text[:36], 1, PLAIN))
        recorded.cut(30)


class Noted:
    """A piece that logs its replays and waits."""

    def __init__(self, name, log):
        self.name, self.log = name, log

    def replay(self):
        self.log.append(f"ask {self.name}")

    def wait(self):
        self.log.append(f"wait {self.name}")


def test_the_next_piece_is_launched_while_one_computes():
    log = []
    RecordedPass([Noted(name, log) for name in "abc"]).replay(bool)
    assert log == ["ask a", "ask b", "wait a", "ask c", "wait b"]


# -- on a GPU --------------------------------------------------------------------------
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("name", WITHOUT_EXPERTS)
def test_a_gpu_replays_what_it_computes(name):
    """The text outgrows the first room and shrinks; a stop and a new request follow."""
    device = torch.device("cuda", torch.cuda.device_count() - 1)
    network = snapshots.random_network(name).to(device)
    recorded = FixedRows(network, snapshots.VOCAB, COUNT, CudaRecorder(device))
    recorded.prepare()
    plain = FixedRows(network, snapshots.VOCAB, COUNT)
    text = snapshots.prompt(2 * FIRST_ROOM)
    for _ in range(2):
        for length in (100, FIRST_ROOM - COUNT, FIRST_ROOM + 5, 120, 400, 90, 300):
            rows = recorded.rows(text[:length], 2, PLAIN)
            np.testing.assert_array_equal(rows, plain.rows(text[:length], 2, PLAIN))
        recorded.stopped = lambda: True
        with pytest.raises(Stopped):
            recorded.rows(text[:310], 0, PLAIN)
        recorded.stopped = bool
        recorded.reset()
        plain.reset()
    assert recorded.recorder is not None
