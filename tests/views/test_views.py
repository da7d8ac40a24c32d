"""Claims about what a reader sees, judged from the finished SVG, PNG and text."""

from __future__ import annotations

import base64
import json
import re
import struct
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest
from helpers.events import event_of

from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.decoding.simulate import compare, simulate
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.models.toy import Toy
from speclib.trace.events import Trace
from speclib.views.display import png
from speclib.views.text import text_width
from speclib.views.timeline.facts import run_of, speedup
from speclib.views.timeline.shapes import GUTTER
from speclib.views.timeline.svg import render
from speclib.views.timeline.widget import timeline
from speclib.views.widgets.explorer import expected_speedup, explorer
from speclib.worlds.virtual import Virtual

SVG = "{http://www.w3.org/2000/svg}"
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


def result(method, limit=24, alpha=0.8, c=3.0, target=0.05, **settings):
    models = {
        "draft": Toy(alpha, 12, 1, tuple(PIECES)),
        "target": Toy(None, 12, 1, tuple(PIECES)),
    }
    world = Virtual(models, Latency.ratio(c, target))
    settings = {} if method == "autoregressive" else settings
    world.begin((0,), sampler=Sampler(), coins=Coins(0), limit=limit)
    METHODS[method](world, **settings)
    return SimpleNamespace(trace=world.end(method=method, **settings), pieces=PIECES)


def three(**settings):
    return [
        result("autoregressive", **settings),
        result("speculative", gamma=3, **settings),
        result("pearl", gamma=3, **settings),
    ]


def lanes(svg: str) -> list[tuple[str, list[tuple[str, float, float]]]]:
    """(device, [(class, x, width)]) of every lane, top to bottom."""
    groups = [g for g in ET.fromstring(svg).iter(f"{SVG}g") if g.get("class") == "lane"]
    return [
        (
            g.get("data-device"),
            [
                (r.get("class"), float(r.get("x")), float(r.get("width")))
                for r in g.findall(f"{SVG}rect")
            ],
        )
        for g in groups
    ]


def test_bars_of_a_lane_follow_each_other_and_do_not_overlap():
    for zoomable in (False, True):
        for _, bars in lanes(render(list(map(run_of, three())), zoomable=zoomable)):
            ends = [x + width for _, x, width in bars]
            assert all(
                b[1] >= end - 0.011 for b, end in zip(bars[1:], ends, strict=False)
            )


def test_every_drafted_token_is_one_cell_of_its_outcome():
    for item in three():
        told = [o for e in item.trace.operations for o in e.outcome]
        bars = [kind for _, lane in lanes(render([run_of(item)])) for kind, *_ in lane]
        for outcome in ("accepted", "rejected", "wasted"):
            assert bars.count(outcome) == told.count(outcome)
        assert bars.count("score") == sum(e.is_scoring for e in item.trace.operations)


def test_colours_differ_by_outcome():
    root = ET.fromstring(render([run_of(result("speculative", gamma=3))]))
    fills = {
        r.get("class"): r.get("fill") for r in root.iter(f"{SVG}rect") if r.get("class")
    }
    assert (
        fills["accepted"] == "#009E73" and fills["rejected"] == "#D55E00"
    )  # Okabe and Ito
    assert fills["score"] == "#0072B2" and len(set(fills.values())) == len(fills)


def test_busy_and_idle_fill_the_lane_up_to_the_end_of_the_run():
    for item in three():
        for _, bars in lanes(render([run_of(item)])):
            assert bars[0][1] == 0
            gaps = [b[1] - a[1] - a[2] for a, b in zip(bars, bars[1:], strict=False)]
            assert all(
                -0.011 <= gap <= 1.52 for gap in gaps
            )  # white between neighbours


def test_one_axis_makes_lengths_comparable():
    ar, sd, pearl = three()
    picture = render([run_of(ar), run_of(pearl)])
    ends = [max(x + width for _, x, width in bars) for _, bars in lanes(picture)]
    share = pearl.trace.makespan / ar.trace.makespan
    assert ends[1] / ends[0] == pytest.approx(share, abs=0.005)
    names = [name for name, _ in lanes(render([run_of(ar), run_of(sd)]))]
    assert names == ["target", "draft", "target"]


def test_the_growing_text_is_what_was_committed_green_where_the_draft_wrote_it():
    item = result("pearl", gamma=3)
    root = ET.fromstring(
        render([run_of(item)], width=9000)
    )  # wide: nothing is left out
    row = next(g for g in root.iter(f"{SVG}g") if g.get("class") == "row")
    spans = [s for t in row for s in t]
    text = "".join(PIECES[t] for e in item.trace.commits for t in e.tokens)
    clean = text.replace("\n", "\\n").replace("\x00", "\ufffd")
    assert "".join(s.text for s in spans).replace("\u00a0", " ") == clean
    # Of the accepted tokens only those beyond the limit are not committed: fewer than gamma.
    drafted = sum(s.get("fill") == "#00795a" for s in spans)
    accepted = sum(o == "accepted" for e in item.trace.operations for o in e.outcome)
    assert accepted - 3 < drafted <= accepted


def test_same_trace_same_bytes_and_no_machine_in_the_text():
    first, again = (timeline(*three()) for _ in range(2))
    assert first.picture() == again.picture() and first.text() == again.text()
    assert png(first.picture()) == png(again.picture())
    assert "0x" not in first.text() and re.search(
        r"draft: busy \d+ %, idle \d+ %", first.text()
    )


def test_summary_counts_what_a_hand_made_trace_holds():
    events = [
        event_of(
            0,
            2,
            "draft",
            "propose",
            0,
            0,
            (1, 2),
            ("accepted", "wasted"),
            "emulated",
            0,
            2,
        ),
        event_of(2, 3, "target", "score", 1, 0, (3, 1, 2), (), "emulated", 0, 3, 2),
        event_of(5, 0, "controller", "commit", 2, 0, (1, 4), (), "emulated"),
    ]
    text = timeline(Trace(events, {"method": "x", "gamma": 2})).text()
    assert text.splitlines() == [
        "timeline of 1 run",
        "x (γ = 2): makespan 5.000 s [emulated], 2 tokens, – tok/s after the first commit",
        "  draft: busy 40 %, idle 60 %",
        "  target: busy 60 %, idle 40 %",
        "  drafted 2: accepted 1, rejected 0, wasted 1",
    ]


def test_kinds_of_number_are_named_and_never_compared():
    real = result("pearl", gamma=3)
    real.trace.meta["clock"] = "measured"
    picture = timeline(result("autoregressive"), real).picture()
    assert "(virtual, measured)" in picture
    assert "× AR" not in picture and "× AR" in timeline(*three()).picture()


def test_a_bundle_has_the_widget_a_png_and_text():
    data, meta = timeline(*three())._repr_mimebundle_()
    image = base64.b64decode(data["image/png"])
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    width, _ = struct.unpack(">II", image[16:24])
    assert width == 1.5 * meta["image/png"]["width"] == 1650
    assert len(image) < 300_000 and "PEARL (γ = 3)" in data["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in data


def test_saves_four_formats_and_html_loads_nothing(tmp_path):
    shown = timeline(*three(), labels=["plain", "</script>", "<PEARL>"])
    for end in ("svg", "png", "html", "json"):
        assert shown.save(tmp_path / f"a.{end}").stat().st_size > 1000
    page = (tmp_path / "a.html").read_text()
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "<PEARL>" not in page and page.count("</script>") == 1 and "mount(" in page
    saved = json.loads((tmp_path / "a.json").read_text())
    again = Trace.from_json(json.dumps(saved[2]["trace"]))
    assert again.makespan == shown.runs[2].seconds and saved[2]["label"] == "<PEARL>"
    with pytest.raises(SpeclibError, match="a.pdf.*end the name in"):
        shown.save(tmp_path / "a.pdf")


def test_bad_input_is_named_with_the_next_step():
    for call, words in [
        (lambda: timeline(), "of nothing"),
        (lambda: timeline(3), "int"),
        (lambda: timeline(*three(), until=0), "until is 0"),
        (lambda: timeline(*three(), width=10), "width is 10"),
        (lambda: timeline(*three(), labels=["a"]), "labels has 1"),
        (lambda: explorer(lambda c: three(), {"c": (1, 2)}), "control 'c'"),
    ]:
        with pytest.raises(SpeclibError, match=words):
            call()


@pytest.mark.slow
def test_expected_speedups_are_what_4000_tokens_show():
    for alpha, gamma, c in [(0.8, 3, 3.0), (0.9, 5, 5.0), (0.7, 3, 5.0)]:
        long = dict(limit=4000, alpha=alpha, c=c)
        runs = [run_of(result("autoregressive", **long))]
        runs += [
            run_of(result(m, gamma=gamma, **long)) for m in ("speculative", "pearl")
        ]
        for run in runs[1:]:
            known = expected_speedup(run.trace.meta["method"], gamma, c, alpha)
            assert speedup(run, runs) == pytest.approx(known, rel=0.04)


def test_a_slider_moves_the_timeline_in_place():
    shown = explorer(result)
    widget, before, figures = shown.timeline, shown.timeline.svg, shown.figures.value
    for c in (4.0, 5.0, 6.0):
        shown.controls["c"].value = c
    assert (
        shown.timeline is widget
        and widget.svg != before
        and shown.figures.value != figures
    )
    data, _ = shown._repr_mimebundle_()
    assert data["text/plain"].startswith(
        "explorer at method = pearl, gamma = 3, c = 6.0"
    )
    assert base64.b64decode(data["image/png"])[:4] == b"\x89PNG"


def dsi(servers=3, cancel="immediate", **how):
    return simulate("dsi", servers=servers, lookahead=1, cancel=cancel, **how)


def test_every_server_has_a_lane_and_a_name_that_fits_beside_it():
    made = dsi(7, c=7, alpha=1.0)
    names = [name for name, _ in lanes(render([run_of(made)]))]
    assert names == ["draft", "target", *(f"target-{i}" for i in range(2, 8))]
    assert max(map(text_width, names)) <= GUTTER - 8


def test_a_pass_on_a_text_that_was_not_to_be_is_not_shown_as_used():
    def score(ts, id, device, tokens, kept, last):
        return event_of(
            ts,
            1,
            device,
            "score",
            id,
            0,
            tokens,
            (),
            "virtual",
            kept,
            len(tokens),
            last,
        )

    events = [
        event_of(
            0,
            0.2,
            "draft",
            "propose",
            0,
            0,
            (7, 6),
            ("rejected", "wasted"),
            "virtual",
            0,
            2,
        ),
        score(0, 1, "target", (0,), 0, 0),
        score(0.2, 2, "target-2", (0, 7, 6), 0, 1),  # after a 7 that was an 8
        event_of(1, 0, "controller", "commit", 3, 0, (8,), (), "virtual"),
        score(1, 4, "target", (8,), 1, 0),
        score(1.2, 5, "target-2", (8,), 1, 0),
        event_of(3, 0, "controller", "commit", 6, 1, (9,), (), "virtual"),
    ]
    shown = lanes(render([run_of(Trace(events, {"method": "dsi"}))]))
    kinds = {
        name: [kind for kind, *_ in bars if kind != "idle"] for name, bars in shown
    }
    assert kinds == {
        "draft": ["rejected", "wasted"],
        "target": ["score", "score"],
        "target-2": ["unused", "score"],
    }


def test_who_wrote_a_word_is_right_also_where_the_first_proposal_came_to_nothing():
    events = [
        event_of(0, 0.1, "draft", "propose", 0, 0, (), (), "virtual", 0, 0),
        event_of(0, 1, "target", "score", 1, 0, (0,), (), "virtual", 0, 1),
        event_of(1, 0, "controller", "commit", 2, 0, (8,), (), "virtual"),
        event_of(1, 1, "draft", "propose", 3, 1, (9,), ("accepted",), "virtual", 1, 1),
        event_of(2, 1, "target", "score", 4, 1, (8, 9), (), "virtual", 1, 2, 1),
        event_of(3, 0, "controller", "commit", 5, 1, (9, 4), (), "virtual"),
    ]
    written = [who for _, parts in run_of(Trace(events)).written() for who, _ in parts]
    assert written == ["target", "draft", "target"]


def test_the_price_beside_the_sliders_is_device_time_over_plain_decodings():
    """alpha = 1, gamma = c = 5: six tokens for five drafts of 1/5 and one pass, so 2 / 6."""
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
    assert [row[6] for row in shown.rows()] == ["1.00×", "0.33×"]
    assert [row[3] for row in shown.rows()] == ["0.33×", "1.00×"]


def test_a_lost_servers_lane_says_so_from_then_on():
    made = dsi(2, c=5, alpha=0.8, lost={"target-2": 0.3})
    kinds = {name: bars for name, bars in lanes(render([run_of(made)]))}
    kind, x, width = kinds["target-2"][-1]
    whole = kinds["target"][-1][1] + kinds["target"][-1][2]
    assert kind == "lost" and x / whole == pytest.approx(
        0.3 / made.trace.makespan, abs=0.01
    )
    assert not [kind for kind, *_ in kinds["target"] if kind == "lost"]
