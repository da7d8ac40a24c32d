"""Pictures of a draft pass over devices, exact and fuzzy, tested with their SVG."""

from __future__ import annotations

import base64

import pytest
from helpers.svg import rectangles

from speclab import layers

LAYER_SECONDS = 27.2e-3 / 32  # EasySpec, Table 1: 36.76 tok/s; 32 layers


def test_bars_are_as_long_as_their_parts_and_both_passes_share_an_axis():
    controls = {"lp": (1, 8, 1, 4), "devices": (1, 8, 1, 4)}
    picture = layers(LAYER_SECONDS, controls).picture()

    # A lane's background has its pass's duration; each pass has four lanes.
    exact_pass, *_, fuzzy_pass = rectangles(picture, "idle")
    share_of_exact = fuzzy_pass.width / exact_pass.width
    assert share_of_exact == pytest.approx(14.86 / 27.2, abs=0.001)

    attentions = rectangles(picture, "attention")
    (width,) = {attention.width for attention in attentions}
    # Minus the white gap between two bars.
    assert width / exact_pass.width == pytest.approx(0.66 / 32, rel=0.06)

    assert len(attentions) == 32 + 32
    assert len(rectangles(picture, "attention copy")) == 2 * 3  # first and last layer
    assert len(rectangles(picture, "mlp copy")) == 32 * 3


def test_on_one_device_fuzzy_and_exact_passes_take_the_same_time():
    view = layers(LAYER_SECONDS, {"devices": (1, 8, 1, 1)})
    assert view.headings() == (
        "exact: one layer after the other, 27.20 ms",
        "fuzzy: N = 4, 27.20 ms, 1.00× as fast",
    )


def test_the_picture_follows_its_sliders_and_has_a_still_version():
    view = layers(LAYER_SECONDS)
    image_before = view.image.value
    view.controls["lp"].value = 2
    assert view.image.value != image_before
    assert "N = 2, 18.7" in view.image.value  # 27.2 - 15 * .66 * .85

    data, metadata = view._repr_mimebundle_()
    assert base64.b64decode(data["image/png"])[:4] == b"\x89PNG"
    assert "groups: 0, 1-2, 3-4" in data["text/plain"]
    assert metadata["image/png"]["width"] == 1100
