"""Rows that are fetched when they are looked at: they read as arrays, and hardly any
is."""

import numpy as np
import pytest

import speclib
from speclib.core.far_rows import FarRow, FarRows, RowFacts
from speclib.core.sampling import Coins, invert, residual
from speclib.operations.operation import Raw
from speclib.operations.row_facts import facts_of_rows
from speclib.worlds.devices import DeviceLost
from speclib.worlds.virtual import Virtual

ROW = np.array([0.5, 0.25, 0.125, 0.125], np.float32)
OTHER = np.array([0.25, 0.5, 0.25, 0.0], np.float32)
COINS = Coins(3)


class Store:
    """Rows that are somewhere else, and how many were fetched from there.

    A reference is a row and the device that left it; ``lost``: devices that are gone.
    """

    def __init__(self):
        self.fetched = []
        self.lost = set()

    def fetch(self, references):
        for _, device in references:
            if device in self.lost:
                raise DeviceLost(f"device {device!r} was lost")
        rows = [row for row, _ in references]
        self.fetched.append(len(rows))
        return [row.copy() for row in rows]

    @property
    def count(self):
        return sum(self.fetched)


def far_row(row, store=None, tokens=(), position=None, target_token=None):
    tokens = np.array(tokens, int)
    likeliest = int(row.argmax())
    facts = RowFacts(len(row), likeliest, tokens, row[tokens], position, target_token)
    return FarRow(facts, COINS, store or Store(), (row, "target"))


# -- as arrays -------------------------------------------------------------------------
@pytest.mark.parametrize(
    "read",
    [
        len,
        lambda row: row[2],
        lambda row: row[1:3],
        lambda row: row[np.array([3, 0])],
        lambda row: row.argmax(),
        lambda row: row.sum(),
        lambda row: row.dtype,
        lambda row: row.tolist(),
        lambda row: list(row),
        lambda row: np.asarray(row, np.float64),
        lambda row: np.zeros_like(row),
        lambda row: np.cumsum(row, dtype=np.float64),
        lambda row: np.add.reduceat(row, [0, 2]),
        lambda row: np.maximum(row - OTHER, 0),
        lambda row: OTHER - row,
        lambda row: 2 * row > OTHER,
        lambda row: np.stack([row, OTHER]),
        lambda row: residual(row, OTHER),
        lambda row: residual(OTHER, row),
        lambda row: invert(row, 0.6),
        lambda row: Coins(1).choose(row, 4, "draft"),
    ],
)
def test_a_far_row_reads_as_the_array_it_stands_for(read):
    result = read(far_row(ROW, tokens=[2]))
    expected = read(ROW)
    np.testing.assert_array_equal(result, expected)
    assert type(result) is type(expected) or isinstance(expected, np.intp)


@pytest.mark.parametrize(
    "read",
    [
        len,
        lambda rows: rows[-1],
        lambda rows: rows[1:],
        lambda rows: rows[0, 2],
        lambda rows: rows[:, 1],
        lambda rows: [row[0] for row in rows],
        lambda rows: rows.argmax(-1),
        lambda rows: rows.shape,
        lambda rows: np.concatenate([rows, rows]),
        lambda rows: rows * 2,
    ],
)
def test_far_rows_read_as_the_array_they_stand_for(read):
    store = Store()
    far = FarRows([far_row(ROW, store), far_row(OTHER, store)], 4)
    near = np.stack([ROW, OTHER])
    np.testing.assert_array_equal(read(far), read(near))


@pytest.mark.parametrize(
    "write",
    [
        lambda row: row.__setitem__(2, 0.5),
        lambda row: row.__isub__(OTHER),
        lambda row: row.__itruediv__(2),
        lambda row: np.maximum(row, OTHER, out=row),
        lambda row: np.asarray(row).fill(0.25),
    ],
)
def test_what_is_written_to_a_far_row_is_read_from_it(write):
    near = ROW.copy()
    far = far_row(ROW, tokens=[2], position=7, target_token=0)
    write(near)
    write(far)

    np.testing.assert_array_equal(far, near)
    assert far[2] == near[2]
    assert far.argmax() == near.argmax()
    drawn = COINS.choose(far, 7, "target")
    assert drawn == COINS.choose(near, 7, "target")


# -- what needs no row -----------------------------------------------------------------
def test_what_is_known_of_a_row_does_not_fetch_it():
    store = Store()
    far = far_row(ROW, store, [1], position=7, target_token=2)
    assert far[1] == far[np.int64(1)] == 0.25
    assert len(far) == 4
    assert far.shape == (4,)
    assert far.argmax() == 0
    assert COINS.choose(far, 7, "target") == 2
    assert repr(far) == "FarRow(shape=(4,), not fetched)"

    rows = FarRows([far, far], 4)
    later_rows = rows[1:]
    assert rows.shape == (2, 4)
    assert rows[1, 1] == 0.25
    assert later_rows[0][1] == 0.25
    assert store.count == 0

    # What is not known of it has the row fetched, once.
    assert far[0] == 0.5
    assert far[3] == 0.125
    assert store.fetched == [1]


@pytest.mark.parametrize(
    "coins, position, role, index",
    [
        (Coins(4), 7, "target", 0),
        (COINS, 8, "target", 0),
        (COINS, 7, "residual", 0),
        (COINS, 7, "target", 1),
    ],
)
def test_another_coin_than_the_one_that_was_tossed_is_tossed_anew(
    coins, position, role, index
):
    far = far_row(ROW, position=7, target_token=99)
    token = coins.choose(far, position, role, index)
    assert token == coins.choose(ROW, position, role, index)


def test_a_residual_has_both_its_rows_under_way_at_the_same_time():
    store = Store()
    residual(far_row(ROW, store), far_row(OTHER, store))
    assert store.fetched == [2]


# -- methods ---------------------------------------------------------------------------
class FarWorld(Virtual):
    """Every distribution stays where it is, and only what a test needs is said."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.store = Store()
        self.wanted = self.unwanted = 0  # rows

    def _finish(self, future, raw, end, kept, fed, error=None, overrun=False):
        if raw is not None and future.op.gives_distributions and len(raw.rows):
            if future.cancelled:
                self.unwanted += len(raw.rows)
            else:
                self.wanted += len(raw.rows)
            raw = Raw(raw.small, self._leave(future, raw))
        super()._finish(future, raw, end, kept, fed, error, overrun)

    def _leave(self, future, raw):
        rows = []
        facts = facts_of_rows(future.op, raw, self.request)
        for row, of_row in zip(raw.rows, facts, strict=True):
            rows.append(FarRow(of_row, self.coins, self.store, (row, future.device)))
        return FarRows(rows, self.vocab)


TOY = speclib.load_pair("toy")
EXACT_MATCH = ("duodecoding", "dsi", "lookahead", "rest")


@pytest.fixture
def far(monkeypatch):
    """A virtual world of toys whose rows are far."""
    monkeypatch.setattr("speclib.decoding.decode.Virtual", FarWorld)
    with speclib.open_world("virtual", TOY) as world:
        yield world


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("method", speclib.METHODS)
def test_every_method_writes_with_far_rows_what_it_writes_with_rows(
    method, temperature, far
):
    asked = {"method": method, "temperature": temperature, "seed": 5}
    with Virtual(far.models, far.latency, cancel=far.cancel_policy) as near:
        near.pair = TOY
        expected = speclib.decode("x", world=near, **asked)
    result = speclib.decode("x", world=far, **asked)
    assert result.tokens == expected.tokens
    assert len(result.tokens) == 64
    assert result.trace.events == expected.trace.events


@pytest.mark.parametrize("method", ["autoregressive", *EXACT_MATCH])
def test_exact_match_needs_no_row(method, far):
    speclib.decode("x", world=far, method=method, temperature=1.0)
    assert far.store.count == 0


def test_speculative_decoding_needs_two_rows_for_a_rejection(far):
    how = {"gamma": 4, "temperature": 1.0, "max_new_tokens": 300}
    result = speclib.decode("x", world=far, method="speculative", **how)
    rejected = result.stats.rejected
    assert rejected > 3
    assert far.store.fetched == [2] * rejected


def test_pearl_needs_rows_for_rejections_only(far):
    """Its target is not told of a block's first token, which is a likely one."""
    how = {"gamma": 4, "temperature": 1.0, "max_new_tokens": 300}
    result = speclib.decode("x", world=far, method="pearl", **how)
    rejected = result.stats.rejected
    assert rejected > 3
    assert result.stats.accepted > 100
    assert len(far.store.fetched) <= 2 * rejected


# -- what is lost ----------------------------------------------------------------------
@pytest.mark.parametrize("method", ["speculative", "pearl", "tree"])
def test_a_row_that_is_lost_when_it_is_needed_ends_the_method(method, far):
    far.store.lost = {"draft", "target"}
    with pytest.raises(DeviceLost, match="device '(draft|target)' was lost"):
        speclib.decode("x", world=far, method=method, temperature=1.0)


@pytest.fixture
def two_targets(monkeypatch):
    monkeypatch.setattr("speclib.decoding.decode.Virtual", FarWorld)
    with speclib.open_world("virtual", TOY, servers=2) as world:
        yield world


RATIO = {"method": "dsi", "lookahead": 2, "servers": 2, "test": "ratio"}


def test_dsi_goes_on_where_the_rows_of_one_target_are_lost(two_targets):
    two_targets.store.lost = {"target-2"}
    result = speclib.decode("x", world=two_targets, temperature=1.0, **RATIO)
    assert len(result.tokens) == 64
    assert two_targets.store.count > 64

    # It is not asked again.
    (asked,) = [e for e in result.trace.operations if e.device == "target-2"]
    assert asked.lost


@pytest.mark.parametrize("device", ["target-2", "draft"])
def test_a_replay_loses_the_device_whose_rows_were_lost(two_targets, device):
    two_targets.store.lost = {device}
    result = speclib.decode("x", world=two_targets, temperature=1.0, **RATIO)
    again = speclib.replay(result.trace)
    assert again.events == result.trace.events
    (lost,) = [event for event in again.operations if event.lost]
    assert lost.device == device
    assert not lost.tokens
    assert not lost.outcome


def test_dsi_ends_where_the_rows_of_all_targets_are_lost(two_targets):
    two_targets.store.lost = {"target", "target-2"}
    with pytest.raises(DeviceLost, match="device 'target(-2)?' was lost"):
        speclib.decode("x", world=two_targets, temperature=1.0, **RATIO)


def test_dsi_fetches_no_row_that_it_does_not_want_any_more(monkeypatch):
    """Those of passes that the committed text has left stay where they are."""
    monkeypatch.setattr("speclib.decoding.decode.Virtual", FarWorld)
    asked = {"pair": TOY, "servers": 2, "cancel": "after-op"}
    with speclib.open_world("virtual", **asked) as world:
        speclib.decode("x", world=world, temperature=1.0, **RATIO)
        assert world.unwanted > 0
        assert world.store.count == world.wanted
