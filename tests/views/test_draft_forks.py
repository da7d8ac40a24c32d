"""SSD's branches as a reader sees them: in a lane, and round by round.

The finished SVG and text are compared with a run whose texts are known.
"""

from __future__ import annotations

from helpers.svg import elements, rectangles

from speclab import sequences
from speclib import simulate, timeline

WINDOW = ("accepted", "rejected", "discarded")
RIGHT = {"gamma": 2, "fan": 1, "c": 4.0, "alpha": 1.0, "tokens": 10}
DOUBTFUL = {"gamma": 4, "fan": 3, "c": 6.0, "alpha": 0.6, "doubt": 1.0, "tokens": 60}


def test_rounds_of_an_always_right_draft_are_described_in_words():
    """A confident draft guesses only the token after its whole window."""
    result = simulate("ssd", text="a b c d e f g h i j", **RIGHT)
    view = sequences(result)
    view.slider.value = 0
    assert view.text().splitlines()[1:] == [
        "round 0: 1 outcome guessed, 2 tokens drafted for each",
        "  * 0 accepted, then “a”: \u00a0b\u00a0c",
        "0 of 0 pass, then the target writes “a”: a hit, the framed branch is the next "
        "window",
    ]
    view.slider.value = 1
    assert view.text().splitlines()[1:] == [
        "round 1: 1 outcome guessed, 2 tokens drafted for each",
        "  * 2 accepted, then “d”: \u00a0e\u00a0f",
        "2 of 2 pass, then the target writes “d”: a hit, the framed branch is the next "
        "window",
    ]


def rounds_of(view):
    for number in view.slider.options:
        view.slider.value = number
        yield view.round


def test_the_framed_branch_is_the_next_rounds_window():
    view = sequences(simulate("ssd", **DOUBTFUL))
    rounds = list(rounds_of(view))
    hits = 0
    for drafted, following in zip(rounds, rounds[1:], strict=False):
        if drafted.hit is not None:
            _, tokens = drafted.branches[drafted.hit]
            assert following.window == tokens
            hits += 1
    assert 0 < hits < len(rounds) - 1


def test_only_the_hit_has_a_frame():
    view = sequences(simulate("ssd", **DOUBTFUL))
    for drafted in rounds_of(view):
        frames = rectangles(view.picture(), "chosen")
        dark = [
            edge
            for edge in elements(view.picture(), "path", "edge")
            if edge.get("stroke-width") == "2.5"
        ]
        is_hit = drafted.hit is not None
        assert (len(frames), len(dark)) == (is_hit, is_hit)
        assert ("a hit" in view.text()) == is_hit


def test_no_two_cells_overlap_and_all_are_inside():
    view = sequences(simulate("ssd", **(DOUBTFUL | {"gamma": 8, "tokens": 80})))
    for _ in rounds_of(view):
        _, height = view.size
        cells = rectangles(view.picture(), *WINDOW, "dropped", "guess")
        for index, cell in enumerate(cells):
            assert cell.right < 1100 - 8
            assert cell.y < height - 24
            for other in cells[:index]:
                is_apart = cell.x >= other.right - 0.1 or other.x >= cell.right - 0.1
                assert cell.y != other.y or is_apart


def test_in_a_lane_a_fork_is_one_row_of_levels_and_a_count_of_other_branches():
    result = simulate("ssd", gamma=2, fan=2, c=4.0, alpha=0.7, doubt=1.0, tokens=12)
    assert "+ 5" in timeline(result).picture()  # of 2 x 3 branches, one is shown
