"""Shapes of published models agree with the papers and the hub."""

from __future__ import annotations

import tomllib

import pytest

import speclib
from speclib.data.shapes import load_shape, published_config, shape_of
from speclib.data.toml_files import names_under
from speclib.errors import BadValue, UnknownName
from speclib.paths import DATA

SHAPES = names_under(DATA / "shapes")
HUB_PAIRS = [f"hub/{name}" for name in names_under(DATA / "pairs" / "hub")]
SHAPE_PAIRS = [f"shape/{name}" for name in names_under(DATA / "pairs" / "shape")]

# A model of PEARL's Table 10 -> the file that has its shape.
IN_TABLE_10 = {
    "Codellama-7B": "codellama-7b",
    "Codellama-34B": "codellama-34b",
    "Codellama-70B": "codellama-70b",
    "Deepseek-1.3B": "deepseek-coder-1.3b",
    "Deepseek-6.7B": "deepseek-coder-6.7b",
    "Deepseek-33B": "deepseek-coder-33b",
    "Llama-2-7B": "llama-2-7b",
    "Llama-2-70B": "llama-2-70b",
    "Llama-3.1-8B": "llama-3-8b",
    "Llama-3.1-70B": "llama-3-70b",
}
PRINTED = {
    "Layers": "num_hidden_layers",
    "dim": "hidden_size",
    "FFN dim": "intermediate_size",
}


@pytest.mark.parametrize("model", IN_TABLE_10)
def test_layers_and_widths_equal_those_printed_in_pearl(model):
    table = tomllib.loads((DATA / "papers" / "pearl" / "table-10.toml").read_text())
    printed = {row[1]: row[2] for row in table["cells"] if row[0] == model}
    shape = load_shape(IN_TABLE_10[model])
    for column, key in PRINTED.items():
        assert shape.config[key] == printed[column], column


@pytest.mark.parametrize("name", HUB_PAIRS)
def test_every_model_of_a_paper_has_a_shape_and_is_named_once(name):
    pair = speclib.load_pair(name)
    for model in (pair.target.model, pair.draft.model):
        shape = shape_of(model)
        assert shape is not None, model
        holders = [holder for holder in SHAPES if model in load_shape(holder).models]
        assert holders == [shape.name]
        model_type, config = published_config(model)
        assert model_type == shape.model_type
        assert config["max_position_embeddings"] == shape.models[model].context


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_used_by_a_pair_and_names_its_source(name):
    shape = load_shape(name)
    assert "config.json" in shape.source
    wanted = set()
    for pair in map(speclib.load_pair, HUB_PAIRS):
        wanted |= {pair.target.model, pair.draft.model}
    assert set(shape.models) <= wanted


@pytest.mark.parametrize("name", SHAPE_PAIRS)
def test_a_pair_without_weights_has_the_shapes_and_places_of_its_hub_pair(name):
    ours = speclib.load_pair(name)
    theirs = speclib.load_pair(name.replace("shape/", "hub/"))
    assert ours.place == theirs.place
    assert ours.latency == theirs.latency
    for role in ("target", "draft"):
        assert theirs.model(role).model in load_shape(ours.model(role).like).models


def test_pearls_pairs_use_the_printed_numbers_of_gpus():
    """Appendix C.3 places models up to 8B on one GPU, 34B on two, 70B on three."""
    for name in HUB_PAIRS:
        pair = speclib.load_pair(name)
        if not pair.latency.startswith("pearl/") or pair.draft.spread == "replicas":
            continue
        gpus = 3 if "70b" in name else 2
        assert (len(pair.place.draft), len(pair.place.target)) == (1, gpus)


# -- errors ----------------------------------------------------------------------------
def test_an_unknown_shape_is_refused_with_the_known_ones():
    with pytest.raises(UnknownName, match="no shape 'llama-9'.*known: .*llama-2-7b"):
        load_shape("llama-9")
    with pytest.raises(BadValue, match="no shape 'llama-9'"):
        speclib.pair("zoo/target", {"model": "zoo/draft-good", "like": "llama-9"})


@pytest.mark.parametrize(
    "settings",
    [
        {"shape": [6, 256, 4, 688]},
        {"runtime": "llamacpp"},
        {"head": True, "model": "zoo/target"},
    ],
)
def test_a_published_shape_excludes_other_settings_of_the_network(settings):
    draft = {"model": "zoo/draft-good", "like": "llama-2-7b"} | settings
    with pytest.raises(BadValue, match="like (is 'llama-2-7b' with|would have no)"):
        speclib.pair("zoo/target", draft)


def test_an_architecture_that_dilation_does_not_support_is_refused_by_name():
    with pytest.raises(BadValue, match="dilated to 'starcoder'.*gpt_bigcode"):
        print(load_shape("starcoder").dilation)
