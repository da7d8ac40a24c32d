"""Where an output diverges from plain decoding's."""

from __future__ import annotations

from speclab.virtual.outputs import first_difference


def test_the_first_difference_between_outputs():
    assert first_difference((1, 2, 3), (1, 2, 3)) is None
    assert first_difference((1, 2, 3), (1, 9, 3)) == 1
    assert first_difference((1, 2), (1, 2, 3)) == 2
