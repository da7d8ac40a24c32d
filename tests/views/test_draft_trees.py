"""A drafted tree as a reader sees it: in a lane, and round by round.

Judged from the finished SVG and text, against a trace made by hand.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from helpers.events import event_of
from helpers.svg import elements, rectangles, tooltips

from speclab import sequences
from speclib import simulate, timeline
from speclib.trace.events import Trace

PIECES = dict(enumerate(["", " a", " b", " c", " d", " e"]))
OUTCOMES = ("accepted", "rejected", "dropped")


def run_with_tree(outcome: tuple[str, ...], committed: tuple[int, ...]):
    """A round after the text " e" in which the draft wrote this tree.

    ::

        e ---- a ---- b
           `-- c ---- d

    ``outcome`` of the nodes a, b, c, d; ``committed``: tokens that the round added.
    """
    tree = event_of(
        1.0,
        2.0,
        "draft",
        "draft_tree",
        3,
        1,
        (1, 2, 3, 4),
        outcome,
        "virtual",
        2,
        3,
        3,
        parents=(-1, 0, -1, 2),
    )
    fed = (5, 1, 2, 3, 4)
    events = [
        event_of(0.0, 1.0, "target", "score", 0, 0, (0,), (), "virtual", 0, 1),
        event_of(1.0, 0.0, "controller", "commit", 1, 0, (5,), (), "virtual"),
        tree,
        event_of(
            3.0,
            1.0,
            "target",
            "score_tree",
            4,
            1,
            fed,
            (),
            "virtual",
            1,
            5,
            4,
            parents=(-1, 0, -1, 2),
        ),
        event_of(4.0, 0.0, "controller", "commit", 5, 1, committed, (), "virtual"),
    ]
    trace = Trace(events, {"method": "tree", "gamma": 2, "width": 2})
    return SimpleNamespace(pieces=PIECES, trace=trace)


def run_that_follows_c():
    """The target accepts " c", then writes " e" instead of " d"."""
    return run_with_tree(("discarded", "discarded", "accepted", "rejected"), (3, 5))


def run_that_follows_a_and_b():
    """The target accepts " a" and " b", and the text ends."""
    return run_with_tree(("accepted", "accepted", "discarded", "discarded"), (1, 2))


def test_a_tree_is_told_in_words():
    assert sequences(run_that_follows_c()).text().splitlines() == [
        "tree, 1 rounds",
        "round 1: a tree of 4: 2 levels, at most 2 wide",
        "  - a",
        "    - b",
        "  * c",
        "    - d",
        "the target follows it for 1 of 2 levels, then writes “e”",
    ]
    ended = sequences(run_that_follows_a_and_b()).text()
    assert ended.endswith("2 of 2 levels, to the end of the text")


def test_nodes_stand_behind_their_parents_and_only_the_way_has_colours():
    picture = sequences(run_that_follows_c()).picture()
    a, b, c, d = rectangles(picture, *OUTCOMES)
    assert (a.kind, b.kind) == ("dropped", "dropped")
    assert (c.kind, d.kind) == ("accepted", "rejected")
    assert a.x == c.x < b.x == d.x
    assert a.y == b.y < c.y == d.y

    edges = elements(picture, "path", "edge")
    dark_edges = [edge for edge in edges if edge.get("stroke-width") == "2.5"]
    assert len(edges) == 4
    assert dark_edges == edges[3:]  # the path is drawn on top


def test_no_two_nodes_of_a_wide_tree_overlap_and_all_are_inside():
    result = simulate("tree", gamma=6, width=8, c=3.0, alpha=0.6, doubt=1.0, tokens=40)
    view = sequences(result)
    for round in view.slider.options:
        view.slider.value = round
        _, height = view.size
        nodes = rectangles(view.picture(), *OUTCOMES)
        assert len(nodes) == len(view.round.tokens)
        for index, node in enumerate(nodes):
            assert node.right < 1100 - 8
            assert node.y < height - 24
            assert not any(overlap(node, other) for other in nodes[:index])


def overlap(node, other) -> bool:
    """Whether two nodes in the same row overlap."""
    return node.y == other.y and node.x < other.right and other.x < node.right


def test_a_tree_in_a_lane_is_a_cell_per_level_and_a_count_of_the_others():
    picture = timeline(run_that_follows_c()).picture()
    cells = rectangles(picture, *OUTCOMES, "discarded")
    kinds = [cell.kind for cell in cells]
    assert kinds == ["accepted", "dropped", "rejected", "dropped"]
    first_level, _, second_level, _ = cells
    assert second_level.x - first_level.x == pytest.approx(first_level.width, abs=2)

    assert any("not followed: \u00a0a" in tip for tip in tooltips(picture))
    assert "+ 1" in picture
    assert "4 candidates" in picture
