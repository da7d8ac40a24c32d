"""Claims about what a reader sees, judged from the finished SVG, PNG and text."""

from __future__ import annotations

import base64
import json
import re
import struct
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.decoding.simulate import compare, simulate
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.models.toy import Toy
from speclib.trace.events import Event, Trace
from speclib.views.display import png
from speclib.views.text import text_width
from speclib.views.timeline.facts import speedup
from speclib.views.timeline.run import timeline_run
from speclib.views.timeline.shapes import GUTTER
from speclib.views.timeline.widget import timeline
from speclib.views.widgets.explorer import expected_speedup, explorer
from speclib.worlds.virtual import Virtual

SVG = "{http://www.w3.org/2000/svg}"
GREEN = "#009E73"  # Okabe and Ito's
VERMILLION = "#D55E00"
BLUE = "#0072B2"
GREEN_INK = "#00795a"  # of text that the draft wrote
ROUNDING = 0.011  # pixels; coordinates have two decimals
WHITE = 1.52  # pixels between neighbours, at most
WORDS = [
    "def",
    " fib",
    "(",
    "n",
    "):",
    "\n",
    "    ",
    "return",
    " <b>&\"'",
    " 数",
    "\x00",
]
PIECES = dict(enumerate(WORDS, 1))


class Bar(NamedTuple):
    """A rectangle of a lane, as a reader sees it."""

    kind: str
    x: float
    width: float

    @property
    def end(self) -> float:
        return self.x + self.width


class LaneSeen(NamedTuple):
    device: str
    bars: list[Bar]


def lanes(svg: str) -> list[LaneSeen]:
    """Every lane with its bars, top to bottom."""
    seen = []
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        if group.get("class") != "lane":
            continue
        bars = []
        for rectangle in group.findall(f"{SVG}rect"):
            x = float(rectangle.get("x"))
            width = float(rectangle.get("width"))
            bars.append(Bar(rectangle.get("class"), x, width))
        seen.append(LaneSeen(group.get("data-device"), bars))
    return seen


def pictures(*results: object) -> list[str]:
    """The two forms of a timeline: the still one and the one that can be zoomed."""
    shown = timeline(*results)
    return [shown.picture(), shown.svg]


def result(
    method: str,
    limit: int = 24,
    alpha: float = 0.8,
    c: float = 3.0,
    target: float = 0.05,
    **settings: object,
) -> SimpleNamespace:
    """A run of two toy models on the virtual clock."""
    models = {
        "draft": Toy(alpha, 12, 1, tuple(PIECES)),
        "target": Toy(None, 12, 1, tuple(PIECES)),
    }
    world = Virtual(models, Latency.ratio(c, target))
    settings = {} if method == "autoregressive" else settings
    world.begin((0,), sampler=Sampler(), coins=Coins(0), limit=limit)
    METHODS[method](world, **settings)
    return SimpleNamespace(trace=world.end(method=method, **settings), pieces=PIECES)


def three(**settings: object) -> list[SimpleNamespace]:
    return [
        result("autoregressive", **settings),
        result("speculative", gamma=3, **settings),
        result("pearl", gamma=3, **settings),
    ]


def outcomes(trace: Trace) -> list[str]:
    """What became of every drafted token."""
    return [outcome for event in trace.operations for outcome in event.outcome]


# -- lanes -----------------------------------------------------------------------------
def test_bars_of_a_lane_follow_each_other_and_do_not_overlap():
    for picture in pictures(*three()):
        for _, bars in lanes(picture):
            for bar, following in zip(bars, bars[1:], strict=False):
                assert following.x >= bar.end - ROUNDING


def test_every_drafted_token_is_one_cell_of_its_outcome():
    for item in three():
        kinds = []
        for _, bars in lanes(timeline(item).picture()):
            kinds += [bar.kind for bar in bars]

        for outcome in ("accepted", "rejected", "wasted"):
            assert kinds.count(outcome) == outcomes(item.trace).count(outcome)
        passes = [event for event in item.trace.operations if event.op == "score"]
        assert kinds.count("score") == len(passes)


def test_colours_differ_by_outcome():
    root = ET.fromstring(timeline(result("speculative", gamma=3)).picture())
    fills = {}
    for rectangle in root.iter(f"{SVG}rect"):
        if rectangle.get("class"):
            fills[rectangle.get("class")] = rectangle.get("fill")

    assert fills["accepted"] == GREEN
    assert fills["rejected"] == VERMILLION
    assert fills["score"] == BLUE
    assert len(set(fills.values())) == len(fills)


def test_busy_and_idle_fill_the_lane_up_to_the_end_of_the_run():
    for item in three():
        for _, bars in lanes(timeline(item).picture()):
            assert bars[0].x == 0
            for bar, following in zip(bars, bars[1:], strict=False):
                assert -ROUNDING <= following.x - bar.end <= WHITE


def test_one_axis_makes_lengths_comparable():
    plain, speculative, pearl = three()
    ends = []
    for _, bars in lanes(timeline(plain, pearl).picture()):
        ends.append(max(bar.end for bar in bars))
    share = pearl.trace.makespan / plain.trace.makespan
    assert ends[1] / ends[0] == pytest.approx(share, abs=0.005)

    devices = [lane.device for lane in lanes(timeline(plain, speculative).picture())]
    assert devices == ["target", "draft", "target"]


# -- text ------------------------------------------------------------------------------
def test_the_growing_text_is_what_was_committed_green_where_the_draft_wrote_it():
    item = result("pearl", gamma=3)
    wide = timeline(item, width=9000)  # so that nothing is left out
    root = ET.fromstring(wide.picture())
    row = next(g for g in root.iter(f"{SVG}g") if g.get("class") == "row")
    spans = [span for text in row for span in text]

    committed = ""
    for event in item.trace.commits:
        committed += "".join(PIECES[token] for token in event.tokens)
    clean = committed.replace("\n", "\\n").replace("\x00", "\ufffd")
    assert "".join(span.text for span in spans).replace("\u00a0", " ") == clean

    # Of the accepted tokens only those beyond the limit are not committed: fewer than
    # gamma.
    written_by_draft = sum(span.get("fill") == GREEN_INK for span in spans)
    accepted = outcomes(item.trace).count("accepted")
    assert accepted - 3 < written_by_draft <= accepted


def test_same_trace_same_bytes_and_no_machine_in_the_text():
    first, again = timeline(*three()), timeline(*three())
    assert first.picture() == again.picture()
    assert first.text() == again.text()
    assert png(first.picture()) == png(again.picture())
    assert "0x" not in first.text()
    assert re.search(r"draft: busy \d+ %, idle \d+ %", first.text())


def test_summary_counts_what_a_hand_made_trace_holds():
    events = [
        proposal(0, 2, (1, 2), ("accepted", "wasted"), id=0),
        score(2, 3, "target", (3, 1, 2), id=1, last=2),
        commit(5, (1, 4), id=2),
    ]
    events = [event._replace(clock="emulated") for event in events]
    text = timeline(Trace(events, {"method": "x", "gamma": 2})).text()
    assert text.splitlines() == [
        "timeline of 1 run",
        "x (γ = 2): makespan 5.000 s [emulated], 2 tokens, "
        "– tok/s after the first commit",
        "  draft: busy 40 %, idle 60 %",
        "  target: busy 60 %, idle 40 %",
        "  drafted 2: accepted 1, rejected 0, wasted 1",
    ]


def test_kinds_of_number_are_named_and_never_compared():
    measured = result("pearl", gamma=3)
    measured.trace.meta["clock"] = "measured"
    picture = timeline(result("autoregressive"), measured).picture()
    assert "(virtual, measured)" in picture
    assert "× AR" not in picture
    assert "× AR" in timeline(*three()).picture()


# -- what becomes of a picture ---------------------------------------------------------
def test_a_bundle_has_the_widget_a_png_and_text():
    data, meta = timeline(*three())._repr_mimebundle_()
    image = base64.b64decode(data["image/png"])
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    width, _ = struct.unpack(">II", image[16:24])
    assert width == 1.5 * meta["image/png"]["width"] == 1650
    assert len(image) < 300_000
    assert "PEARL (γ = 3)" in data["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in data


def test_saves_four_formats_and_html_loads_nothing(tmp_path):
    shown = timeline(*three(), labels=["plain", "</script>", "<PEARL>"])
    for ending in ("svg", "png", "html", "json"):
        assert shown.save(tmp_path / f"a.{ending}").stat().st_size > 1000

    page = (tmp_path / "a.html").read_text()
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "<PEARL>" not in page
    assert page.count("</script>") == 1
    assert "mount(" in page

    saved = json.loads((tmp_path / "a.json").read_text())
    again = Trace.from_json(json.dumps(saved[2]["trace"]))
    assert again.makespan == shown.runs[2].seconds
    assert saved[2]["label"] == "<PEARL>"

    with pytest.raises(SpeclibError, match="a.pdf.*end the name in"):
        shown.save(tmp_path / "a.pdf")


BAD_CALLS = {
    "of nothing": lambda: timeline(),
    "int": lambda: timeline(3),
    "until is 0": lambda: timeline(*three(), until=0),
    "width is 10": lambda: timeline(*three(), width=10),
    "labels has 1": lambda: timeline(*three(), labels=["a"]),
    "control 'c'": lambda: explorer(lambda c: three(), {"c": (1, 2)}),
}


@pytest.mark.parametrize("message", BAD_CALLS)
def test_bad_input_is_named_with_the_next_step(message):
    with pytest.raises(SpeclibError, match=message):
        BAD_CALLS[message]()


# -- sliders ---------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("alpha, gamma, c", [(0.8, 3, 3), (0.9, 5, 5), (0.7, 3, 5)])
def test_expected_speedups_are_what_4000_tokens_show(alpha, gamma, c):
    long = {"limit": 4000, "alpha": alpha, "c": float(c)}
    plain = timeline_run(result("autoregressive", **long))
    for method in ("speculative", "pearl"):
        run = timeline_run(result(method, gamma=gamma, **long))
        expected = expected_speedup(method, gamma, float(c), alpha)
        assert speedup(run, [plain, run]) == pytest.approx(expected, rel=0.04)


def test_a_slider_moves_the_timeline_in_place():
    shown = explorer(result)
    widget, svg, figures = shown.timeline, shown.timeline.svg, shown.figures.value
    for c in (4.0, 5.0, 6.0):
        shown.controls["c"].value = c
    assert shown.timeline is widget
    assert widget.svg != svg
    assert shown.figures.value != figures

    data, _ = shown._repr_mimebundle_()
    state = "explorer at method = pearl, gamma = 3, c = 6.0"
    assert data["text/plain"].startswith(state)
    assert base64.b64decode(data["image/png"])[:4] == b"\x89PNG"


def test_the_price_beside_the_sliders_is_device_time_over_plain_decodings():
    """alpha = 1, gamma = c = 5: six tokens for five drafts of 1/5 and a pass: 2 / 6."""
    shown = explorer(
        compare,
        {
            "method": ("speculative",),
            "gamma": (1, 9, 1, 5),
            "c": (1, 9, 1, 5),
            "alpha": (0.0, 1.0, 0.1, 1.0),
            "tokens": (6, 60, 6, 24),
        },
    )
    assert [row.device_time for row in shown.rows()] == ["1.00×", "0.33×"]
    assert [row.over_sd for row in shown.rows()] == ["0.33×", "1.00×"]


# -- several servers -------------------------------------------------------------------
def dsi(servers: int, **settings: object) -> SimpleNamespace:
    return simulate("dsi", servers=servers, lookahead=1, cancel="immediate", **settings)


def test_every_server_has_a_lane_and_a_name_that_fits_beside_it():
    made = dsi(7, c=7, alpha=1.0)
    devices = [lane.device for lane in lanes(timeline(made).picture())]
    assert devices == ["draft", "target", *(f"target-{i}" for i in range(2, 8))]
    assert max(map(text_width, devices)) <= GUTTER - 8


def test_a_lost_servers_lane_says_so_from_then_on():
    made = dsi(2, c=5, alpha=0.8, lost={"target-2": 0.3})
    bars = dict(lanes(timeline(made).picture()))
    kind, x, _ = bars["target-2"][-1]
    assert kind == "lost"
    whole = bars["target"][-1].end
    assert x / whole == pytest.approx(0.3 / made.trace.makespan, abs=0.01)
    assert "lost" not in [bar.kind for bar in bars["target"]]


# -- traces made by hand ---------------------------------------------------------------
def proposal(
    ts: float,
    dur: float,
    tokens: Sequence[int],
    outcome: Sequence[str],
    id: int,
    round: int = 0,
    kept: int = 0,
) -> Event:
    """The draft's; it was fed as many tokens as it drafted."""
    fed = len(tokens)
    return Event(
        ts, dur, "draft", "propose", id, round, tokens, outcome, "virtual", kept, fed
    )


def score(
    ts: float,
    dur: float,
    device: str,
    tokens: Sequence[int],
    id: int,
    round: int = 0,
    kept: int = 0,
    last: int = 0,
) -> Event:
    """A target pass that tests the ``last`` of its tokens."""
    fed = len(tokens)
    return Event(
        ts, dur, device, "score", id, round, tokens, (), "virtual", kept, fed, last
    )


def commit(ts: float, tokens: Sequence[int], id: int, round: int = 0) -> Event:
    return Event(ts, 0, "controller", "commit", id, round, tokens, (), "virtual")


def test_a_pass_on_a_text_that_was_not_to_be_is_not_shown_as_used():
    """The prompt is 0. The second server tests the 6 after a 7 that was an 8."""
    events = [
        proposal(0, 0.2, (7, 6), ("rejected", "wasted"), id=0),
        score(0, 1, "target", (0,), id=1),
        score(0.2, 1, "target-2", (0, 7, 6), id=2, last=1),
        commit(1, (8,), id=3),
        score(1, 1, "target", (8,), id=4, kept=1),
        score(1.2, 1, "target-2", (8,), id=5, kept=1),
        commit(3, (9,), id=6, round=1),
    ]
    kinds = {}
    for device, bars in lanes(timeline(Trace(events, {"method": "dsi"})).picture()):
        kinds[device] = [bar.kind for bar in bars if bar.kind != "idle"]
    assert kinds == {
        "draft": ["rejected", "wasted"],
        "target": ["score", "score"],
        "target-2": ["unused", "score"],
    }


def test_who_wrote_a_word_is_right_also_where_the_first_proposal_came_to_nothing():
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
