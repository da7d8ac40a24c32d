"""Texts that share a log behave as tuples, but cost only their new tokens."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
from helpers.watched_world import common_prefix
from hypothesis import given
from hypothesis import strategies as st

from speclib.core.kv_prefix import Prefix
from speclib.core.text import (
    Text,
    TextReceiver,
    TextSender,
    as_text,
    begins_with,
    first_tokens,
)
from speclib.errors import SpeclibError

LONG = 32_000
SOME_TOKENS = st.lists(st.integers(0, 2), max_size=6)


@st.composite
def texts(draw) -> Text:
    """Draws a text from a log that may have grown since."""
    log = draw(SOME_TOKENS)
    shared = draw(st.integers(0, len(log)))
    return Text(log, shared, tuple(draw(SOME_TOKENS)))


class CountedLog(list):
    """A log that counts its reads of tokens."""

    read = 0

    def __getitem__(self, key):
        value = super().__getitem__(key)
        self.read += len(value) if isinstance(key, slice) else 1
        return value


# -- texts as tuples -------------------------------------------------------------------
@given(texts(), st.integers(-15, 15), st.integers(-15, 15), st.sampled_from([1, 2, -1]))
def test_a_text_behaves_as_the_tuple_of_its_tokens(text, start, stop, step):
    whole = (*text.log[: text.shared], *text.tail)
    assert tuple(text) == whole
    assert len(text) == len(whole)
    assert hash(text) == hash(whole)
    assert repr(text) == repr(whole)

    # It equals its tuple, from either side, and nothing else.
    assert text == whole
    assert whole == text
    assert text == whole
    assert text != (*whole, 0)
    assert text != list(whole)

    assert text + (1, 2) == whole + (1, 2)
    assert (1, 2) + text == (1, 2) + whole
    assert np.array(text, int).tolist() == list(whole)
    assert pickle.loads(pickle.dumps(text)) == whole
    assert (1 in text) == (1 in whole)
    assert text.count(2) == whole.count(2)

    assert text[start:stop:step] == whole[start:stop:step]
    assert text[start:] == whole[start:]
    assert text[:stop] == whole[:stop]
    assert type(text[start:stop]) is tuple
    if -len(whole) <= start < len(whole):
        assert text[start] == whole[start]
    else:
        with pytest.raises(IndexError):
            _ = text[start]


@given(texts(), SOME_TOKENS, st.data())
def test_one_text_begins_with_another_exactly_if_their_tuples_do(text, tail, data):
    shared = data.draw(st.integers(0, len(text.log)))
    same_log = Text(text.log, shared, tuple(tail))
    for start in (same_log, tuple(same_log), Text(list(text.log), same_log.shared)):
        expected = tuple(text)[: len(start)] == tuple(start)
        assert begins_with(text, start) is expected
        assert (text == start) is (tuple(text) == tuple(start))


@given(texts(), st.data())
def test_the_first_tokens_of_a_text_share_its_log(text, data):
    length = data.draw(st.integers(0, len(text)))
    beginning = first_tokens(text, length)
    assert beginning == tuple(text)[:length]
    assert beginning.log is text.log
    assert first_tokens(tuple(text), length) == tuple(text)[:length]


def test_a_text_does_not_change_when_its_log_grows():
    log = [1, 2, 3]
    text = Text(log, 3, (4,))
    log += [5, 6]
    assert text == (1, 2, 3, 4)
    assert as_text(text) is text
    assert as_text([1, 2]) == (1, 2)
    assert type(as_text([1, 2])) is tuple


# -- texts in caches -------------------------------------------------------------------
def random_tokens(dice: random.Random, count: int) -> list[int]:
    """Returns ``count`` random tokens, each 0 or 1."""
    return [dice.randrange(2) for _ in range(count)]


@pytest.mark.parametrize("seed", range(6))
def test_a_cache_keeps_the_same_part_of_a_text_as_of_its_tuple(seed):
    """Texts come from several logs, in any order, and are cut and kept in between.

    The expected part follows from the tokens themselves.
    """
    dice = random.Random(seed)
    prefix = Prefix()
    logs = [random_tokens(dice, 4), random_tokens(dice, 4)]
    for _ in range(300):
        log = dice.choice(logs)
        log += random_tokens(dice, dice.choice((0, 0, 1, 3)))
        shared = dice.randint(max(0, len(log) - 4), len(log))
        tail = tuple(random_tokens(dice, dice.randint(1, 4)))
        text = Text(log, shared, tail)
        asked = tuple(text) if dice.random() < 0.2 else text

        last = dice.randint(0, min(2, len(text) - 1))
        kept = prefix.keep(asked, last)
        agreeing = common_prefix(prefix.fed, tuple(text))
        assert kept == min(agreeing, len(text) - last - 1)

        change = dice.choice(("move", "move", "cut", "hold", "nothing"))
        if change == "move":
            prefix.move(asked, kept)
            assert prefix.fed == list(text)
        elif change == "cut":
            before = list(prefix.fed)
            length = dice.randint(0, len(before))
            prefix.cut(length)
            assert prefix.fed == before[:length]
        elif change == "hold":
            length = dice.randint(0, len(text))
            prefix.hold(asked, length)
            assert prefix.fed == list(text)[:length]


def test_a_match_reads_only_new_tokens_however_long_the_text():
    log = CountedLog(range(LONG))
    prefix = Prefix()
    prefix.move(Text(log, LONG, (1, 2)), 0)

    log += [1, 7, 8]
    log.read = 0
    for window in ((), (5,), (6, 5), (6, 4)):
        text = Text(log, len(log), window)
        kept = prefix.keep(text, len(window))
        prefix.cut(kept)
        prefix.move(text, kept)
    assert prefix.fed == [*range(LONG), 1, 7, 8, 6, 4]
    assert log.read <= 3 * len(log[LONG:])


# -- texts in messages -----------------------------------------------------------------
def test_texts_arrive_as_they_were_sent_in_any_order():
    dice = random.Random(0)
    sender, receiver = TextSender(), TextReceiver()
    log = [1, 2]
    for _ in range(500):
        if dice.random() < 0.05:
            log = [dice.randrange(9) for _ in range(3)]  # another request
        log += [dice.randrange(9) for _ in range(dice.randint(0, 3))]
        text = Text(log, dice.randint(0, len(log)), (dice.randrange(9),))
        asked = tuple(text) if dice.random() < 0.1 else text
        message = pickle.loads(pickle.dumps(sender.pack(asked)))
        sender.note_sent(asked, message)
        assert receiver.unpack(message) == text


def test_a_message_contains_only_new_tokens():
    sizes = []
    for length in (100, LONG):
        log = list(range(length))
        sender = TextSender()
        for committed in ((), (3, 4)):
            log += committed
            text = Text(log, len(log), (5, 6))
            message = sender.pack(text)
            sender.note_sent(text, message)
        sizes.append(len(pickle.dumps(message)))
        assert message.new == (3, 4)
    assert sizes[1] <= sizes[0] + 8  # its numbers are larger


def test_unsent_tokens_go_with_the_next_message():
    log = [1, 2, 3]
    sender, receiver = TextSender(), TextReceiver()
    sender.pack(Text(log, 3))  # then the pipe broke
    log += [4]
    assert receiver.unpack(sender.pack(Text(log, 4))) == (1, 2, 3, 4)


def test_a_message_that_goes_on_from_one_that_was_lost_is_refused():
    log = [1, 2, 3]
    sender, receiver = TextSender(), TextReceiver()
    lost = sender.pack(Text(log, 3))
    sender.note_sent(Text(log, 3), lost)
    log += [4]
    following = sender.pack(Text(log, 4))
    with pytest.raises(SpeclibError, match="after 3 tokens, but 0 have arrived.*lost"):
        receiver.unpack(following)
    assert receiver.unpack(TextSender().pack(Text(log, 4))) == (1, 2, 3, 4)
