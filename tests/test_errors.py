"""Errors: Python's handlers catch them, and they suggest the right names."""

from __future__ import annotations

import pickle

import pytest

from speclib.errors import BadCall, BadValue, SpeclibError, UnknownName, unknown_name
from speclib.worlds.devices import DeviceLost


@pytest.mark.parametrize(
    "error, python_s",
    [(BadValue, ValueError), (UnknownName, LookupError), (BadCall, TypeError)],
)
def test_an_error_is_also_pythons_own_kind_of_error(error, python_s):
    assert issubclass(error, SpeclibError)
    assert issubclass(error, python_s)


def test_an_unknown_name_is_a_bad_value_and_a_lost_device_is_neither():
    assert issubclass(UnknownName, ValueError)
    assert not issubclass(DeviceLost, ValueError | LookupError)


@pytest.mark.parametrize(
    "name, message",
    [
        ("perl", "no perl; known: pearl, dsi. Did you mean 'pearl'?"),
        ("DSI", "no DSI; known: pearl, dsi. Did you mean 'dsi'?"),
        ("medusa", "no medusa; known: pearl, dsi"),
        (None, "no None; known: pearl, dsi"),
    ],
)
def test_the_nearest_name_is_suggested_if_it_is_close(name, message):
    assert str(unknown_name(f"no {name}", name, ["pearl", "dsi"])) == message


def test_advice_comes_last_and_an_empty_list_of_names_is_stated():
    error = unknown_name("no a", "a", [], "Make one")
    assert str(error) == "no a; known: none. Make one"
    error = unknown_name("no a", "a", ["aa"], "Make one")
    assert str(error) == "no a; known: aa. Did you mean 'aa'? Make one"


def test_errors_pass_through_a_pipe_unchanged():
    error = unknown_name("no a", "a", ["b"])
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is UnknownName
    assert str(copy) == str(error)


def test_of_many_names_the_three_nearest_are_listed():
    known = [f"embedded/llama-{size}b" for size in range(1, 60)]
    assert str(unknown_name("no pair 'lama-7b'", "lama-7b", known)) == (
        "no pair 'lama-7b'; the nearest of 59 known: embedded/llama-7b, "
        "embedded/llama-57b, embedded/llama-47b"
    )
