"""Several sequences at once as a reader sees them: in a lane, and round by round.

Judged from the finished SVG and text, against a trace made by hand.
"""

from __future__ import annotations

import base64
from types import SimpleNamespace

import pytest
from helpers.events import event_of
from helpers.svg import elements, number, rectangles, tooltips

from speclab import sequences
from speclib import SpeclibError, simulate, timeline
from speclib.drawing.timeline.run import timeline_run
from speclib.trace.events import Event, Trace

PIECES = dict(enumerate(["", " a", " b", " c", " d", " e", " f"]))
OUTCOMES = ("accepted", "rejected", "discarded", "dropped")


def operation(ts, device, op, round, tokens, outcome=(), **counts) -> Event:
    """An operation of one second."""
    return event_of(
        ts, 1.0, device, op, round, round, tokens, outcome, "virtual", **counts
    )


def commit(ts, round, *tokens) -> Event:
    return event_of(
        ts, 0.0, "controller", "commit", round, round, tokens, (), "virtual"
    )


def hand_made_run():
    """Three rounds after the prompt " " (token 0).

    ::

        round   window   sequences           the target
        0                a                   wants " a": right
        1                b c   or   c d      wants " c": the second one continues
        2       d        e f   or   f f      wants " e" rather than the window's " d",
                                             so the sequences are not looked at
    """
    events = [
        operation(
            0,
            "draft",
            "draft_sequences",
            0,
            (1,),
            ("accepted",),
            fed=1,
            chances=(0.0, 0.9),
        ),
        operation(0, "target", "score", 0, (0,), fed=1),
        commit(1, 0, 1),
        operation(
            1,
            "draft",
            "draft_sequences",
            1,
            (2, 3, 3, 4),
            ("discarded", "discarded", "accepted", "rejected"),
            kept=1,
            fed=3,
            last=2,
            sequences=2,
            chances=(0.2, 0.5, 0.25),
        ),
        operation(1, "target", "score", 1, (1,), kept=1, fed=1),
        commit(2, 1, 3),
        operation(
            2,
            "draft",
            "draft_sequences",
            2,
            (5, 6, 6, 6),
            ("discarded",) * 4,
            kept=2,
            fed=4,
            last=2,
            sequences=2,
            chances=(0.1, 0.3, 0.2),
        ),
        operation(2, "target", "score", 2, (3, 4), kept=2, fed=2, last=1),
        commit(3, 2, 5),
    ]
    trace = Trace(events, {"method": "duodecoding", "gamma": 4})
    return SimpleNamespace(pieces=PIECES, trace=trace)


def run_with_changing_numbers_of_sequences():
    return simulate("duodecoding", gamma=12, c=12, alpha=0.6, doubt=1.5, tokens=60)


def numbers_of_sequences(result) -> list[int]:
    """The cells of every drafting in a run."""
    operations = result.trace.operations
    return [len(event.sequences) for event in operations if event.is_drafting]


# -- in a lane -------------------------------------------------------------------------
def test_sequences_are_stacked_and_only_the_chosen_one_has_the_colours_of_outcomes():
    cells = rectangles(timeline(hand_made_run()).picture(), *OUTCOMES)
    first_round, second_round, third_round = cells[:1], cells[1:5], cells[5:9]
    height = first_round[0].height

    assert kinds(first_round) == ["accepted"]
    assert kinds(second_round) == ["dropped", "dropped", "accepted", "rejected"]
    assert kinds(third_round) == ["discarded", "discarded", "dropped", "dropped"]
    for cells_of_round in (second_round, third_round):
        top = cells_of_round[0].y
        second_row = top + height / 2
        assert [cell.y for cell in cells_of_round] == [top, top, second_row, second_row]
        # A pixel between the rows is white.
        assert {cell.height for cell in cells_of_round} == {height / 2 - 1}
        lefts = [cell.x for cell in cells_of_round]
        assert lefts[:2] == lefts[2:]


def kinds(cells) -> list[str]:
    return [cell.kind for cell in cells]


def test_rows_of_a_lane_stay_inside_it_and_never_overlap_in_time():
    result = run_with_changing_numbers_of_sequences()
    assert set(numbers_of_sequences(result)) > {1, 2}

    picture = timeline(result).picture()
    next_lane = rectangles(picture, "score")[0]
    cells = rectangles(picture, *OUTCOMES)
    assert max(cell.bottom for cell in cells) <= next_lane.y
    for cell in cells:
        for other in cells:
            are_beside_each_other = share_a_row(cell, other)
            begins_inside = cell.x <= other.x < cell.right - 0.02
            assert not (are_beside_each_other and begins_inside)


def share_a_row(cell, other) -> bool:
    """Whether two different cells overlap vertically."""
    is_same = (cell.x, cell.y) == (other.x, other.y)
    overlap = cell.y < other.bottom - 0.02 and other.y < cell.bottom - 0.02
    return overlap and not is_same


def test_a_lane_of_one_sequence_is_as_high_as_any_other():
    picture = timeline(simulate("duodecoding", gamma=6, k=1, c=6)).picture()
    heights = {box.height for box in rectangles(picture, *OUTCOMES, "score")}
    assert len(heights) == 1


def test_who_wrote_a_word_is_right_for_every_sequence():
    written = [
        [part.kind for part in parts]
        for _, parts in timeline_run(hand_made_run()).committed_texts()
    ]
    assert written == [["draft"], ["draft"], ["target"]]


def test_tips_say_which_sequence_it_was_and_whether_another_was_chosen():
    tips = tooltips(timeline(hand_made_run()).picture())
    tips_of_sequences = [tip for tip in tips if "sequence " in tip]
    second_round, third_round = tips_of_sequences[:4], tips_of_sequences[4:]

    assert len(tips_of_sequences) == 8
    assert "drafted “\u00a0b”" in second_round[0]
    assert "1 of 2: the target chose another" in second_round[0]
    assert "2 of 2" in second_round[2]
    assert "another" not in second_round[2]
    assert not any("another" in tip for tip in third_round)


# -- round by round --------------------------------------------------------------------
def test_a_round_is_told_in_words():
    def lines(round: int) -> list[str]:
        return sequences(hand_made_run(), round=round).text().splitlines()

    assert lines(1) == [
        "tree, 3 rounds",
        "round 1: 2 sequences of 2 tokens, θ = P₁·P = 0.200",
        "  0.500 \u00a0b\u00a0c",
        "  0.250 \u00a0c\u00a0d",
        "  0.250 all other words",
        "the target's next word is “c”: sequence 2 continues",
    ]
    assert lines(2)[-1] == "“d” should have been “e”: the sequences are discarded"
    assert lines(0)[1] == "round 0: 1 sequence of 1 token, no threshold"


def test_bars_are_as_long_as_chances_and_theta_stands_where_its_own_would_end():
    picture = sequences(hand_made_run(), round=1).picture()
    bars = rectangles(picture, "chance")
    (theta,) = elements(picture, "line", "theta")

    # The first sequence has probability 0.5.
    length_of_1 = bars[0].width / 0.5
    assert [bar.width / length_of_1 for bar in bars] == pytest.approx([0.5, 0.25, 0.25])
    theta_length = number(theta, "x1") - bars[0].x
    assert theta_length / length_of_1 == pytest.approx(0.2)

    without_threshold = sequences(hand_made_run(), round=0).picture()
    assert not elements(without_threshold, "line", "theta")


def test_the_frame_is_around_the_sequence_that_goes_on():
    picture = sequences(hand_made_run(), round=1).picture()
    (frame,) = rectangles(picture, "chosen")
    cells = rectangles(picture, *OUTCOMES)
    inside = [cell for cell in cells if frame.y < cell.y < frame.bottom]
    assert kinds(inside) == ["accepted", "rejected"]

    nobody_looks = sequences(hand_made_run(), round=2).picture()
    assert rectangles(nobody_looks, "chosen") == []


def test_sliders_move_round_and_run_and_the_round_of_another_run_is_the_nearest_in_the_text():  # noqa: E501
    runs = {}
    for k in (1, 3):
        runs[k] = simulate("duodecoding", gamma=6, c=6, k=k, alpha=0.7, doubt=0.6)
    view = sequences(runs, round=5, by="k")
    image_before = view.image.value
    position_before = view.round.position

    view.chooser.value = 3
    distances = [abs(round.position - position_before) for round in view.rounds[3]]
    assert abs(view.round.position - position_before) == min(distances)
    assert view.image.value != image_before
    assert len(view.round.sequences) == 3
    assert view.text().startswith("tree, k = 3: ")

    last_round = view.slider.options[-1]
    view.slider.value = last_round
    assert f">round {last_round}<" in view.image.value

    data, metadata = view._repr_mimebundle_()
    assert base64.b64decode(data["image/png"])[:4] == b"\x89PNG"
    assert data["text/plain"] == view.text()
    assert metadata["image/png"]["width"] == 1100


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: sequences({}), "no run to show"),
        (lambda: sequences(3), "int"),
        (lambda: sequences(simulate("pearl", tokens=4)), "PEARL drafted no sequences"),
        (
            lambda: sequences(hand_made_run(), round=9),
            "round is 9: this run drafted in rounds 0 to 2",
        ),
    ],
)
def test_bad_input_is_named_with_the_next_step(call, message):
    with pytest.raises(SpeclibError, match=message):
        call()
