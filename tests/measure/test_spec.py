"""Specs that cannot run are refused with the reason."""

from __future__ import annotations

import pytest
from helpers.specs import emulated_spec, measured_spec, virtual_spec
from pydantic import ValidationError


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"alpha": None}, "alpha\n"),
        ({"method": "warp"}, "unknown method 'warp'; known: auto"),
        ({"gamma": None}, "gamma is None for method 'pearl'"),
        ({"speed": 3}, "speed"),
        ({"kind": "dreamt"}, "'virtual'"),
        ({"gamma": "fast"}, "gamma"),
    ],
)
def test_the_error_for_a_spec_that_cannot_run_says_why(wrong, says):
    with pytest.raises(ValidationError, match=says):
        virtual_spec(**wrong)


def test_a_peer_is_measured_without_settings_and_greedily():
    assert measured_spec("transformers-plain", None).is_peer
    for wrong in ({"temperature": 0.5}, {"gamma": 3}, {"settings": (("k", 2),)}):
        with pytest.raises(ValidationError, match="greedily, without settings"):
            measured_spec("transformers-plain", **{"gamma": None, **wrong})
    with pytest.raises(ValidationError, match="unknown method 'transformers-plain'"):
        virtual_spec("transformers-plain", None)


@pytest.mark.parametrize(
    "make, foreign",
    [
        (virtual_spec, {"ignore_eos": True}),
        (virtual_spec, {"length": 64}),
        (virtual_spec, {"batch": 0}),
        (emulated_spec, {"batch": 2}),
        (emulated_spec, {"doubt": 0.5}),
        (measured_spec, {"doubt": 0.5}),
        (measured_spec, {"gamma": (2, 3)}),
        (measured_spec, {"settings": (("fan", (1, 2)),)}),
    ],
)
def test_a_field_of_another_kind_of_spec_is_named(make, foreign):
    with pytest.raises(ValidationError, match=next(iter(foreign))):
        make(**foreign)


def test_choices_are_all_combinations_of_one_value_per_tuple():
    spec = virtual_spec("speculative", (2, 3), settings=(("a", (1, 2)), ("b", 5)))
    combinations = [(choice.gamma, choice.settings) for choice in spec.choices]
    assert combinations == [
        (2, (("a", 1), ("b", 5))),
        (2, (("a", 2), ("b", 5))),
        (3, (("a", 1), ("b", 5))),
        (3, (("a", 2), ("b", 5))),
    ]
    assert spec.is_choice
    assert not virtual_spec().is_choice
    assert virtual_spec().choices == [virtual_spec()]
