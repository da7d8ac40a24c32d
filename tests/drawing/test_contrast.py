"""Letters and boxes have enough contrast, and boxes' meanings do not need colour."""

from __future__ import annotations

import pytest
from helpers.contrast import contrast, texts_of
from helpers.toy_runs import toy_runs

import speclab
import speclib
from speclab import teach
from speclib.drawing.svg import KIND_COLOURS, OUTLINES, hatch_patterns

LETTERS, SHAPES = 4.5, 3.0  # WCAG 2.2, 1.4.3 and 1.4.11


def thrown_coins():
    view = speclab.coins()
    view.live.throw(300)
    return view


def stale_ribbon():
    view = speclab.kv_ribbon(speclib.simulate("pearl", alpha=0.4, tokens=24))
    moments = view.live.moments
    stale = [moment for moment in moments if "stale" in moment.kinds["target"]]
    view.live.step = 1 + moments.index(stale[0])
    return view


def wrong_tree():
    view = teach.outcome_tree()
    view.chooser.index = 1
    return view


PICTURES = {
    "timeline": lambda: speclib.timeline(*toy_runs(alpha=0.6)),
    "accept bars": speclab.accept_bars,
    "coins": thrown_coins,
    "ribbon": stale_ribbon,
    "outcome tree": wrong_tree,
    "several targets": lambda: speclib.timeline(
        speclib.simulate("dsi", servers=3, alpha=0.7, tokens=24)
    ),
    "sequences": lambda: speclib.timeline(
        speclib.simulate("duodecoding", gamma=6, k=3, tokens=24)
    ),
}


def test_the_contrast_ratio_is_the_standards():
    """WCAG's examples are black on white and the lightest grey that passes."""
    assert contrast("#000", "#fff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)
    assert contrast("#777777", "#ffffff") < LETTERS


@pytest.mark.parametrize("name", PICTURES)
def test_letters_have_enough_contrast_with_their_background(name):
    texts = texts_of(PICTURES[name]().picture())
    assert len(texts) > 5
    for text in texts:
        assert text.contrast >= LETTERS, text


@pytest.mark.parametrize("kind", KIND_COLOURS)
def test_the_fill_or_outline_of_a_box_has_enough_contrast_with_the_card(kind):
    colours = [KIND_COLOURS[kind], OUTLINES.get(kind, KIND_COLOURS[kind])]
    assert max(contrast(colour, "#fff") for colour in colours) >= SHAPES


def test_a_drafts_outcome_is_visible_without_colour():
    """Accepted drafts are plain; rejected and discarded ones have different stripes."""
    patterns = hatch_patterns("x")
    assert 'id="x-accepted"' not in patterns
    turned = {}
    for kind in ("rejected", "discarded"):
        start = patterns.index(f'id="x-{kind}"')
        turned[kind] = patterns[start:].split("rotate(")[1].split(")")[0]
    assert turned == {"rejected": "-45", "discarded": "45"}
