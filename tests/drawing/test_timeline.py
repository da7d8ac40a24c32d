"""What a reader of a timeline sees, tested with the finished SVG, PNG and text."""

from __future__ import annotations

import base64
import re
import struct
import xml.etree.ElementTree as ET
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from helpers.events import event_of
from helpers.svg import Rectangle, elements, rectangles
from helpers.toy_runs import PIECES, toy_run, toy_runs

from speclib import SpeclibError, compare, simulate, timeline
from speclib.drawing.display import png
from speclib.drawing.text_in_pictures import text_width
from speclib.drawing.timeline.axis import GUTTER
from speclib.drawing.timeline.picture import NAME_GAP
from speclib.drawing.timeline.run import timeline_run
from speclib.methods import METHODS, about
from speclib.trace.events import Event, Trace

GREEN = "#009E73"  # from Okabe and Ito
VERMILLION = "#D55E00"
BLUE = "#0072B2"
GREEN_INK = "#00795a"  # for text that the draft wrote
ROUNDING = 0.011  # pixels; coordinates have two decimals
WHITE = 1.52  # the most pixels between neighbours


class LaneSeen(NamedTuple):
    """A lane with its bars, as a reader sees them."""

    device: str
    bars: list[Rectangle]


def lanes(svg: str) -> list[LaneSeen]:
    """Returns every lane, from top to bottom."""
    seen = []
    for group in elements(svg, "g", "lane"):
        bars = rectangles(ET.tostring(group, encoding="unicode"))
        seen.append(LaneSeen(group.get("data-device"), bars))
    return seen


def outcomes(trace: Trace) -> list[str]:
    """Returns the outcome of every drafted token."""
    return [outcome for event in trace.operations for outcome in event.outcome]


# -- lanes -----------------------------------------------------------------------------
def test_bars_in_a_lane_are_in_order_and_do_not_overlap():
    for _, bars in lanes(timeline(*toy_runs()).picture()):
        for bar, following in zip(bars, bars[1:], strict=False):
            assert following.x >= bar.right - ROUNDING


def test_every_drafted_token_is_one_cell_of_its_outcome():
    for item in toy_runs():
        kinds = []
        for _, bars in lanes(timeline(item).picture()):
            kinds += [bar.kind for bar in bars]

        for outcome in ("accepted", "rejected", "discarded"):
            assert kinds.count(outcome) == outcomes(item.trace).count(outcome)
        passes = [event for event in item.trace.operations if event.op == "score"]
        assert kinds.count("score") == len(passes)


def test_colours_differ_by_outcome():
    picture = timeline(toy_run("speculative", gamma=3)).picture()
    fills = {}
    for rectangle in elements(picture, "rect"):
        if rectangle.get("class"):
            fills[rectangle.get("class")] = rectangle.get("fill")

    assert fills["accepted"] == GREEN
    assert fills["rejected"].endswith("-rejected)")  # a pattern on vermillion
    assert f'fill="{VERMILLION}"' in picture
    assert fills["score"] == BLUE
    assert len(set(fills.values())) == len(fills)


def test_busy_and_idle_bars_fill_the_lane_up_to_the_end_of_the_run():
    for item in toy_runs():
        for _, bars in lanes(timeline(item).picture()):
            assert bars[0].x == 0
            for bar, following in zip(bars, bars[1:], strict=False):
                assert -ROUNDING <= following.x - bar.right <= WHITE


def test_one_axis_makes_lengths_comparable():
    plain, speculative, pearl = toy_runs()
    ends = []
    for _, bars in lanes(timeline(plain, pearl).picture()):
        ends.append(max(bar.right for bar in bars))
    share = pearl.trace.makespan / plain.trace.makespan
    assert ends[1] / ends[0] == pytest.approx(share, abs=0.005)

    devices = [lane.device for lane in lanes(timeline(plain, speculative).picture())]
    assert devices == ["target", "draft", "target"]


# -- text ------------------------------------------------------------------------------
def test_the_growing_text_is_the_committed_one_with_drafted_words_in_green():
    item = toy_run("pearl", gamma=3)
    wide = timeline(item, width=9000)  # wide enough to omit nothing
    row, *_ = elements(wide.picture(), "g", "row")
    spans = [span for text in row for span in text]

    committed = ""
    for event in item.trace.commits:
        committed += "".join(PIECES[token] for token in event.tokens)
    clean = committed.replace("\n", "\\n").replace("\x00", "\ufffd")
    assert "".join(span.text for span in spans).replace("\u00a0", " ") == clean

    # Only accepted tokens beyond the limit, fewer than gamma, are not committed.
    written_by_draft = sum(span.get("fill") == GREEN_INK for span in spans)
    accepted = outcomes(item.trace).count("accepted")
    assert accepted - 3 < written_by_draft <= accepted


def test_the_same_trace_gives_the_same_bytes_and_no_machine_is_named():
    first, again = timeline(*toy_runs()), timeline(*toy_runs())
    assert first.picture() == again.picture()
    assert first.text() == again.text()
    assert png(first.picture()) == png(again.picture())
    assert "0x" not in first.text()
    assert re.search(r"waits: draft \d+ %, target \d+ %", first.text())


def test_the_summary_counts_the_contents_of_a_hand_made_trace():
    events = [
        proposal(0, 2, (1, 2), ("accepted", "discarded"), id=0),
        score(2, 3, "target", (3, 1, 2), id=1, last=2),
        commit(5, (1, 4), id=2),
    ]
    events = [event._replace(clock="emulated") for event in events]
    text = timeline(Trace(events, {"method": "x", "gamma": 2})).text()
    assert text.splitlines() == [
        "timeline of 1 run",
        "x (γ = 2) [emulated]: 0.40 tok/s, 2 tokens in 5.000 s, "
        "1 of 1 tested accepted, 1 discarded untested, waits: draft 60 %, target 40 %",
    ]


def test_different_kinds_of_number_are_named_and_never_compared():
    measured = toy_run("pearl", gamma=3)
    measured.trace.meta["clock"] = "measured"
    picture = timeline(toy_run("autoregressive"), measured).picture()
    assert "(virtual, measured)" in picture
    assert "× plain" not in picture
    assert "× plain" in timeline(*toy_runs()).picture()


def test_the_speed_next_to_a_panel_matches_its_bars():
    """It is tokens over the seconds until the text is complete, and the speed-up."""
    runs = toy_runs()
    picture = timeline(*runs).picture()
    plain_ends = runs[0].trace.commits[-1].end
    for item in runs:
        ends = item.trace.commits[-1].end
        tokens = sum(len(commit.tokens) for commit in item.trace.commits)
        assert f"{tokens / ends:.1f} tok/s" in picture
        if item is not runs[0]:
            assert f"{plain_ends / ends:.2f}× plain" in picture


def test_the_thick_line_is_where_the_text_is_complete():
    plain, _, pearl = toy_runs()
    picture = timeline(plain, pearl).picture()
    ends = [float(e.get("x1")) for e in elements(picture, "line", "end")]
    shares = [item.trace.commits[-1].end for item in (plain, pearl)]
    assert ends[1] / ends[0] == pytest.approx(shares[1] / shares[0], abs=0.001)


# -- display and files -----------------------------------------------------------------
def test_a_bundle_has_the_widget_a_png_and_text():
    data, meta = timeline(*toy_runs())._repr_mimebundle_()
    image = base64.b64decode(data["image/png"])
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    width, _ = struct.unpack(">II", image[16:24])
    assert width == meta["image/png"]["width"] == 1100
    assert len(image) < 300_000
    assert "PEARL (γ = 3)" in data["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in data


def test_a_picture_is_saved_in_three_formats_and_the_page_loads_nothing(tmp_path):
    view = timeline(*toy_runs(), labels=["plain", "</script>", "<PEARL>"])
    for ending in ("svg", "png", "html"):
        assert view.save(tmp_path / f"a.{ending}").stat().st_size > 1000

    page = (tmp_path / "a.html").read_text()
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "<PEARL>" not in page
    assert page.count("</script>") == 1
    assert "makeTimeline(root).show(" in page

    with pytest.raises(SpeclibError, match="a.pdf.*end the name in"):
        view.save(tmp_path / "a.pdf")


# -- several servers -------------------------------------------------------------------
def dsi(servers: int, **settings: object) -> SimpleNamespace:
    return simulate("dsi", servers=servers, lookahead=1, cancel="immediate", **settings)


def test_every_server_has_a_lane_and_a_name_that_fits_next_to_it():
    made = dsi(7, c=7, alpha=1.0)
    devices = [lane.device for lane in lanes(timeline(made).picture())]
    assert devices == ["draft", "target", *(f"target-{i}" for i in range(2, 8))]
    assert max(map(text_width, devices)) <= GUTTER - NAME_GAP


def test_a_lost_servers_lane_shows_the_loss_from_then_on():
    made = dsi(2, c=5, alpha=0.8, lost={"target-2": 0.3})
    bars = dict(lanes(timeline(made).picture()))
    last = bars["target-2"][-1]
    assert last.kind == "lost"
    end = bars["target"][-1].right
    assert last.x / end == pytest.approx(0.3 / made.trace.makespan, abs=0.01)
    assert "lost" not in [bar.kind for bar in bars["target"]]


# -- hand-made traces ------------------------------------------------------------------
def proposal(ts, dur, tokens, outcome, id, round=0, kept=0) -> Event:
    """Returns a proposal of the draft, which was fed as many tokens as it drafted."""
    fed = len(tokens)
    return event_of(
        ts, dur, "draft", "propose", id, round, tokens, outcome, "virtual", kept, fed
    )


def score(ts, dur, device, tokens, id, round=0, kept=0, last=0) -> Event:
    """Returns a target pass that tests the ``last`` of its tokens."""
    fed = len(tokens)
    return event_of(
        ts, dur, device, "score", id, round, tokens, (), "virtual", kept, fed, last
    )


def commit(ts, tokens, id, round=0) -> Event:
    return event_of(ts, 0, "controller", "commit", id, round, tokens, (), "virtual")


def test_a_pass_over_a_rejected_text_is_not_shown_as_used():
    """The prompt is 0. The second server tests the 6 after a 7, which should be 8."""
    events = [
        proposal(0, 0.2, (7, 6), ("rejected", "discarded"), id=0),
        score(0, 1, "target", (0,), id=1),
        score(0.2, 1, "target-2", (0, 7, 6), id=2, last=1),
        commit(1, (8,), id=3),
        score(1, 1, "target", (8,), id=4, kept=1),
        score(1.2, 1, "target-2", (8,), id=5, kept=1),
        commit(3, (9,), id=6, round=1),
    ]
    picture = timeline(Trace(events, {"method": "dsi"})).picture()
    kinds = {}
    for device, bars in lanes(picture):
        kinds[device] = [bar.kind for bar in bars if bar.kind != "idle"]
    assert kinds == {
        "draft": ["rejected", "discarded"],
        "target": ["score", "score"],
        "target-2": ["unused", "score"],
    }


def test_a_words_writer_is_right_even_if_the_first_proposal_is_empty():
    events = [
        proposal(0, 0.1, (), (), id=0),
        score(0, 1, "target", (0,), id=1),
        commit(1, (8,), id=2),
        proposal(1, 1, (9,), ("accepted",), id=3, round=1, kept=1),
        score(2, 1, "target", (8, 9), id=4, round=1, kept=1, last=1),
        commit(3, (9, 4), id=5, round=1),
    ]
    writers = []
    for text in timeline_run(Trace(events)).committed_texts():
        writers += [part.kind for part in text.parts]
    assert writers == ["target", "draft", "target"]


WITH_A_DRAFT_MODEL_ALONE = ("speculative", "pearl", "ssd", "dsi", "duodecoding", "tree")


@pytest.mark.parametrize("method", [name for name in METHODS if name != "eagle"])
def test_an_accepted_draft_is_in_the_text_at_its_events_position(method):
    """EAGLE is excluded, because a toy has no head."""
    of_its_draft = {"alpha": 0.7, "doubt": 0.8} if about(method).uses_draft else {}
    for seed in range(3):
        run = simulate(method, tokens=24, seed=seed, **of_its_draft)
        text = (0, *run.tokens)  # after the prompt's only token
        accepted = []
        for event in run.trace.operations:
            if not event.is_drafting:
                continue
            drafts = zip(event.positions, event.tokens, event.outcome, strict=True)
            for position, token, outcome in drafts:
                if outcome == "accepted":
                    assert text[position] == token
                    accepted.append(position)
        if accepted:  # not only the draft model drafts
            assert len(set(accepted)) <= run.stats.accepted
        if method in WITH_A_DRAFT_MODEL_ALONE:
            assert len(set(accepted)) == run.stats.accepted


# -- the width of the page -------------------------------------------------------------
def letter_sizes(svg: str) -> set[float]:
    """Returns the sizes of all letters, in pixels of the page."""
    root = ET.fromstring(svg)
    sizes = {float(root.get("font-size"))}
    for element in root.iter():
        if element.get("font-size"):
            sizes.add(float(element.get("font-size")))
    return sizes


@pytest.mark.parametrize("width", [860, 1400])
def test_the_picture_is_laid_out_for_the_width_of_the_page(width):
    view = timeline(*toy_runs())
    still = view.picture()
    view.page_width = width
    root = ET.fromstring(view.svg)
    assert float(root.get("width")) == width
    assert min(letter_sizes(view.svg)) >= 14
    assert view.picture() == still

    view.page_width = 500  # the page shrinks wider pictures
    assert float(ET.fromstring(view.svg).get("width")) == 860


@pytest.mark.parametrize("width", [860, 1100])
def test_captions_and_legend_end_within_the_picture(width):
    root = ET.fromstring(timeline(*toy_runs(), width=width).picture())
    texts = [e for e in root if e.tag.endswith("text")]
    assert len(texts) > 20
    for element in texts:
        x, words = float(element.get("x")), "".join(element.itertext())
        # text_width allows for other fonts, so in our font this is the maximum.
        length = text_width(words, float(element.get("font-size", 14))) / 1.12
        if element.get("text-anchor") == "end":
            x -= length
        assert x > 0, words
        assert x + length < width, words


def test_a_lane_has_labels_only_if_most_of_them_fit():
    """Words in only a few wide bars among narrow ones would look stray."""
    for width in (900, 2000, 6000):
        svg = timeline(*toy_runs(), width=width).picture()
        for group in elements(svg, "g", "lane"):
            labels = [e for e in group if e.get("class") == "label"]
            labels = [label for label in labels if label.get("display") != "none"]
            cells = rectangles(ET.tostring(group, encoding="unicode"))
            drafted = [c for c in cells if c.kind in ("accepted", "rejected")]
            if group.get("data-device") == "draft" and labels:
                assert 2 * len(labels) >= len(drafted)


# The area below the sliders: its width and height in CSS pixels, and the zoom.
SCREENS = {"150 % on 1280 x 720": (833, 330, 1.5), "1280 x 720": (1260, 570, 1.0)}


@pytest.mark.parametrize("width, height, zoom", SCREENS.values(), ids=SCREENS)
@pytest.mark.parametrize("method", ["pearl", "dsi"])
def test_on_a_projector_all_runs_fit_on_the_screen_below_the_sliders(
    method, width, height, zoom
):
    """The page scales the picture to the width or the height of the screen."""
    view = timeline(*compare(method, c=5.0, tokens=24))
    view.page_width = width
    view.is_large = True
    root = ET.fromstring(view.svg)
    drawn_width, drawn_height = float(root.get("width")), float(root.get("height"))
    enlarged = min(width / drawn_width, height / drawn_height)
    assert len(elements(view.svg, "g", "run")) == 3
    letters = [float(text.get("font-size", 14)) for text in elements(view.svg, "text")]
    assert min(letters) * enlarged * zoom >= 14
    assert "(virtual)" in view.svg
    assert "discarded untested" not in view.svg

    view.is_large = False
    assert "discarded untested" in view.svg
