"""What a reader sees of several sequences at once: in a timeline's lane, and round by round.

Judged from the finished SVG and text, against a trace made by hand.
"""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest

from speclib import SpeclibError, compare, sequences, simulate, timeline
from speclib.trace.events import Event, Trace
from speclib.views.timeline.run import timeline_run

SVG = "{http://www.w3.org/2000/svg}"
PIECES = dict(enumerate(["", " a", " b", " c", " d", " e", " f"]))


def at_work(ts, device, op, round, tokens, outcome=(), **counts) -> Event:
    return Event(
        ts, 1.0, device, op, round, round, tokens, outcome, "virtual", **counts
    )


def done(ts, round, *tokens) -> Event:
    return Event(ts, 0.0, "controller", "commit", round, round, tokens, (), "virtual")


def by_hand():
    """Prompt 0. Round 0: a draft of one, right. Round 1: " b c" or " c d", and the target wants the
    latter. Round 2: its " d" should have been " e", so nobody looks at " e f" and " f f"."""
    return SimpleNamespace(
        pieces=PIECES,
        trace=Trace(
            [
                at_work(
                    0,
                    "draft",
                    "branch",
                    0,
                    (1,),
                    ("accepted",),
                    fed=1,
                    chances=(0.0, 0.9),
                ),
                at_work(0, "target", "score", 0, (0,), fed=1),
                done(1, 0, 1),
                at_work(
                    1,
                    "draft",
                    "branch",
                    1,
                    (2, 3, 3, 4),
                    ("wasted", "wasted", "accepted", "rejected"),
                    kept=1,
                    fed=3,
                    last=2,
                    sequences=2,
                    chances=(0.2, 0.5, 0.25),
                ),
                at_work(1, "target", "score", 1, (1,), kept=1, fed=1),
                done(2, 1, 3),
                at_work(
                    2,
                    "draft",
                    "branch",
                    2,
                    (5, 6, 6, 6),
                    ("wasted",) * 4,
                    kept=2,
                    fed=4,
                    last=2,
                    sequences=2,
                    chances=(0.1, 0.3, 0.2),
                ),
                at_work(2, "target", "score", 2, (3, 4), kept=2, fed=2, last=1),
                done(3, 2, 5),
            ],
            {"method": "duodecoding", "gamma": 4},
        ),
    )


def rects(svg: str, *classes: str) -> list[tuple]:
    """(class, x, y, width, height) of the rectangles of these classes."""
    return [
        (r.get("class"), *(float(r.get(k)) for k in ("x", "y", "width", "height")))
        for r in ET.fromstring(svg).iter(f"{SVG}rect")
        if r.get("class") in classes
    ]


DRAFTS = ("accepted", "rejected", "wasted", "dropped")


# -- in a lane ------------------------------------------------------------------------------------
def test_sequences_are_stacked_and_only_the_chosen_one_has_the_colours_of_outcomes():
    shown = rects(timeline(by_hand()).picture(), *DRAFTS)
    (first, *_, tall), second, third = shown[0], shown[1:5], shown[5:9]
    assert first == "accepted"
    assert [r[0] for r in second] == ["dropped", "dropped", "accepted", "rejected"]
    assert [r[0] for r in third] == ["wasted", "wasted", "dropped", "dropped"]
    for one in (second, third):
        top = one[0][2]
        assert [r[2] for r in one] == [top, top, top + tall / 2, top + tall / 2]
        assert {r[4] for r in one} == {tall / 2 - 1}  # white between the rows
        assert [r[1] for r in one[:2]] == [r[1] for r in one[2:]]


def test_rows_of_a_lane_stay_inside_it_and_never_overlap_in_time():
    made = simulate("duodecoding", gamma=12, c=12, alpha=0.6, doubt=1.5, tokens=60)
    assert {e.sequences for e in made.trace.operations if e.op == "branch"} > {1, 2}
    picture = timeline(made).picture()
    below = rects(picture, "score")[0][2]
    shown = rects(picture, *DRAFTS)
    assert max(y + high for _, _, y, _, high in shown) <= below
    for _, x, y, width, high in shown:
        for _, x2, y2, _, high2 in shown:
            meet = y < y2 + high2 - 0.02 and y2 < y + high - 0.02 and (x, y) != (x2, y2)
            assert not (meet and x <= x2 < x + width - 0.02)


def test_a_lane_of_one_sequence_is_as_high_as_any_other():
    heights = {
        r[4]
        for r in rects(
            timeline(simulate("duodecoding", gamma=6, k=1, c=6)).picture(),
            *DRAFTS,
            "score",
        )
    }
    assert len(heights) == 1


def test_who_wrote_a_word_is_right_for_every_sequence():
    written = [
        [part.kind for part in parts]
        for _, parts in timeline_run(by_hand()).committed_texts()
    ]
    assert written == [["draft"], ["draft"], ["target"]]


def test_tips_say_which_sequence_it_was_and_whether_another_was_chosen():
    tips = [
        t.text for t in ET.fromstring(timeline(by_hand()).picture()).iter(f"{SVG}title")
    ]
    told = [tip for tip in tips if "sequence " in tip]
    assert len(told) == 8
    assert (
        "drafted “\u00a0b”" in told[0] and "1 of 2: the target chose another" in told[0]
    )
    assert "2 of 2" in told[2] and "another" not in told[2]
    assert not any("another" in tip for tip in told[4:])


def test_a_lane_names_its_place():
    shown = timeline(by_hand(), places={"draft": "CPU", "target": "GPU"}).picture()
    names = ["".join(t.itertext()) for t in ET.fromstring(shown).iter(f"{SVG}text")]
    assert {"draftCPU", "targetGPU"} <= set(names)
    assert "CPU" not in timeline(by_hand()).picture()


def test_the_label_names_k():
    shown = [
        timeline_run(r).note
        for r in (
            *compare("duodecoding", k=2, gamma=4, tokens=4)[1:],
            simulate("duodecoding", gamma=4, tokens=4),
        )
    ]
    assert shown == ["γ = 4", "γ = 4, k = 2", "γ = 4, dynamic k"]


# -- round by round -------------------------------------------------------------------------------
def test_a_round_is_told_in_words():
    assert sequences(by_hand(), round=1).text().splitlines() == [
        "tree, 3 rounds",
        "round 1: 2 sequences of 2 tokens, θ = P₁·P = 0.200",
        "  0.500 \u00a0b\u00a0c",
        "  0.250 \u00a0c\u00a0d",
        "  0.250 all other words",
        "the target's next word is “c”: sequence 2 goes on",
    ]
    assert sequences(by_hand(), round=2).text().splitlines()[-1] == (
        "“d” should have been “e”: nobody looks at the sequences"
    )
    assert sequences(by_hand(), round=0).text().splitlines()[1] == (
        "round 0: 1 sequence of 1 token, no threshold asked"
    )


def test_bars_are_as_long_as_chances_and_theta_stands_where_its_own_would_end():
    picture = sequences(by_hand(), round=1).picture()
    bars = rects(picture, "chance")
    (line,) = (
        e
        for e in ET.fromstring(picture).iter(f"{SVG}line")
        if e.get("class") == "theta"
    )
    start, whole = bars[0][1], bars[0][3] / 0.5
    assert [b[3] / whole for b in bars] == pytest.approx([0.5, 0.25, 0.25])
    assert (float(line.get("x1")) - start) / whole == pytest.approx(0.2)
    assert not [
        e
        for e in ET.fromstring(sequences(by_hand(), round=0).picture()).iter()
        if e.get("class") == "theta"
    ]


def test_the_frame_is_around_the_sequence_that_goes_on():
    picture = sequences(by_hand(), round=1).picture()
    ((_, _, y, _, high),) = rects(picture, "chosen")
    inside = [
        kind for kind, _, top, _, _ in rects(picture, *DRAFTS) if y < top < y + high
    ]
    assert inside == ["accepted", "rejected"]
    assert rects(sequences(by_hand(), round=2).picture(), "chosen") == []


def test_the_text_before_shows_what_became_of_the_window():
    picture = ET.fromstring(sequences(by_hand(), round=2).picture())
    spans = {s.text: s for s in picture.iter(f"{SVG}tspan")}
    assert [t.replace("\u00a0", " ") for t in spans][1:] == [" a", " c", " d"]
    assert spans["\u00a0d"].get("text-decoration") == "line-through"
    assert spans["\u00a0c"].get("text-decoration") is None


def test_a_long_sequence_ends_before_the_picture_does_and_counts_the_rest():
    made = simulate("duodecoding", gamma=24, c=24, k=1, alpha=1.0, tokens=60)
    picture = sequences(made, round=2).picture()
    shown = rects(picture, *DRAFTS)
    assert max(x + width for _, x, _, width, _ in shown) < 1100 - 16
    assert f"+ {24 - len(shown)}" in picture and len(shown) < 24


def test_sliders_move_round_and_run_and_the_round_of_another_run_is_the_nearest_in_the_text():
    runs = {
        k: simulate("duodecoding", gamma=6, c=6, k=k, alpha=0.7, doubt=0.6)
        for k in (1, 3)
    }
    shown = sequences(runs, round=5, by="k")
    still = shown.image.value
    place = shown.round.place
    shown.chooser.value = 3
    assert abs(shown.round.place - place) == min(
        abs(r.place - place) for r in shown.rounds[3]
    )
    assert shown.image.value != still and shown.round.width == 3
    assert shown.text().startswith("tree, k = 3: ")
    shown.slider.value = shown.slider.options[-1]
    assert f">round {shown.slider.options[-1]}<" in shown.image.value
    data, meta = shown._repr_mimebundle_()
    assert base64.b64decode(data["image/png"])[:4] == b"\x89PNG"
    assert data["text/plain"] == shown.text() and meta["image/png"]["width"] == 1100


def test_left_out_the_round_is_the_one_with_most_sequences():
    made = simulate("duodecoding", gamma=12, c=12, alpha=0.6, doubt=1.5, tokens=60)
    most = max(e.sequences for e in made.trace.operations if e.op == "branch")
    assert sequences(made).round.width == most > 2


@pytest.mark.parametrize(
    "call, told",
    [
        (lambda: sequences({}), "a tree of nothing"),
        (lambda: sequences(3), "int"),
        (lambda: sequences(simulate("pearl", tokens=4)), "PEARL drafted no sequences"),
        (
            lambda: sequences(by_hand(), round=9),
            "round is 9: this run drafted in rounds 0 to 2",
        ),
    ],
)
def test_bad_input_is_named_with_the_next_step(call, told):
    with pytest.raises(SpeclibError, match=told):
        call()
