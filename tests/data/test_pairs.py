"""Files of pairs, places and latencies: valid contents, and errors for damaged ones."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import speclib
from speclib.data import latency, pairs
from speclib.data.pairs import ModelSpec, Pair
from speclib.data.placement import Place
from speclib.data.toml_files import names_under
from speclib.errors import BadValue, UnknownName
from speclib.models import gpus
from speclib.models.open_pair import open_pair
from speclib.paths import DATA

TOYS = 'target = {model = "toy"}\ndraft = {model = "toy", alpha = 0.9}\n'
CURVES = "[draft]\nforward = [[1, 0.1]]\n[target]\nforward = [[1, 0.5]]\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """write(folder, text) writes mine.toml and hides the project's own files."""
    monkeypatch.setattr(pairs, "DATA", tmp_path)
    monkeypatch.setattr(latency, "DATA", tmp_path)

    def write(folder: str, text: str | bytes) -> None:
        (tmp_path / folder).mkdir(exist_ok=True)
        path = tmp_path / folder / "mine.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    return write


# -- files -----------------------------------------------------------------------------
@pytest.mark.parametrize("name", names_under(DATA / "pairs"))
def test_each_of_our_pairs_can_be_read_and_sent(name):
    pair = speclib.load_pair(name)
    assert pair.name == name
    assert pickle.loads(pickle.dumps(pair)) == pair


@pytest.mark.parametrize(
    "text, says",
    [
        (TOYS.encode("utf-16"), "is not TOML in UTF-8"),
        (TOYS + "target = 3", "is not TOML"),
        (TOYS + "name = 'me'", "unknown key 'name': a pair is named after its file"),
        (TOYS + "speed = 3", "unknown key 'speed'; known: target, draft, place"),
        (TOYS + "place = {treads = 2}", "'place.treads'.*Did you mean 'threads'"),
        (TOYS + "place = {draft = ['gpu']}", r"place.draft is .*gpu.*: give core:N"),
        ('target = {model = "toy"}', "the key 'draft' is missing"),
        (TOYS.replace("0.9", "9.9"), "draft.alpha is 9.9: give .* up to 1"),
        ("", "the key 'target' is missing; the key 'draft' is missing"),
    ],
)
def test_a_damaged_pair_file_is_named_in_one_line(write, text, says):
    write("pairs", text)
    with pytest.raises(BadValue, match=rf"mine\.toml.*{says}") as caught:
        speclib.load_pair("mine")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text, says",
    [
        (CURVES.encode("utf-16"), "is not TOML in UTF-8"),
        (CURVES.replace("0.5", "nan"), "seconds in .*nan"),
        (CURVES.replace("0.5", "0.0"), r"seconds in \(\(1, 0.0\),\)"),
        (CURVES.replace("0.5", '"x"'), "could not convert string to float"),
        (CURVES + "prefill = nan", "prefill.*nan"),
        (CURVES + "prefil = 1", "unexpected keyword argument 'prefil'"),
        (CURVES.replace("[target]", "[taget]"), "KeyError.*target"),
    ],
)
def test_a_damaged_latency_file_is_named_in_one_line(write, text, says):
    write("latency", text)
    with pytest.raises(BadValue, match=rf"mine\.toml.*{says}") as caught:
        speclib.load_latency("mine")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "..", "\ud800", "mine.toml"])
def test_a_name_that_no_file_can_have_is_refused_as_unknown(write, name):
    write("pairs", TOYS)
    with pytest.raises(UnknownName, match="no pair .*; known: mine"):
        speclib.load_pair(name)


# -- descriptions ----------------------------------------------------------------------
def test_a_printed_pair_has_only_what_was_given():
    """A .gguf runs in llama.cpp with its own quantization, whatever the defaults."""
    pair = speclib.pair("a/big", "a/small.gguf")
    assert str(pair.draft) == "model='a/small.gguf'"
    assert str(speclib.load_pair("toy").draft) == "model='toy' alpha=0.9"


def test_a_users_pair_is_named_after_its_models():
    pair = speclib.pair("big", {"model": "small", "shape": [2, 8, 2, 16]})
    assert pair.name == "small+big"
    assert pair.model("draft").shape == (2, 8, 2, 16)
    assert pair.model("target").shape is None


def test_a_path_becomes_absolute_so_it_cannot_be_a_hub_id(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/someone")
    own = speclib.pair(
        target=Path("a/b"), draft={"model": Path("~/c")}, datastore="~/d"
    )
    assert own.target.model == str(tmp_path / "a" / "b")
    assert own.draft.model == "/someone/c"
    assert own.datastore == "/someone/d"
    by_id = speclib.pair(target="a/b", draft="a/c")
    assert (by_id.target.model, by_id.draft.model) == ("a/b", "a/c")


def test_the_context_of_two_toys_is_the_shorter_one():
    pair = speclib.pair({"model": "toy", "context": 90}, {"model": "toy", "context": 8})
    assert open_pair(pair).context == 8


# -- places ----------------------------------------------------------------------------
def test_additional_targets_use_the_cores_after_the_first_ones():
    place = Place(target=("core:2", "core:3"))
    cores = [place.of("target", index) for index in range(3)]
    assert cores == [
        ("core:2", "core:3"),
        ("core:4", "core:5"),
        ("core:6", "core:7"),
    ]
    assert Place().of("target", 5) == ("cpu",)


def test_gpus_for_additional_targets_must_be_named():
    with pytest.raises(BadValue, match="target-2 has no place"):
        Place(target=("cuda:0",)).of("target", 1)


@pytest.mark.parametrize(
    "gpu_count, target, second",
    [(0, "core:1", "core:2"), (1, "cuda:0", None), (2, "cuda:1", None)],
)
def test_the_first_alternative_that_the_machine_has_is_used(gpu_count, target, second):
    place = Place(target=("cuda:1|cuda:0|core:1",)).on_machine_with(gpu_count)
    assert place.of("target") == (target,)
    if second is not None:
        assert place.of("target", 1) == (second,)


def test_torch_counts_gpus_only_if_a_place_depends_on_them(monkeypatch):
    asked = []
    monkeypatch.setattr(gpus, "count", lambda: asked.append("torch") or 0)
    toys = speclib.load_pair("toy")
    assert open_pair(toys).place == toys.place
    assert asked == []
    alternatives = Place(draft=("cuda:0|cpu",))
    pair = Pair(target=toys.target, draft=toys.draft, place=alternatives)
    assert open_pair(pair).place.of("draft") == ("cpu",)
    assert asked == ["torch"]


def test_a_users_latency_file_is_given_by_its_path(tmp_path, monkeypatch):
    text = "[draft]\nforward = [[1, 0.5]]\n[target]\nforward = [[1, 4.0]]\n"
    (tmp_path / "mine.toml").write_text(text)
    assert speclib.load_latency(str(tmp_path / "mine.toml")).c == 8
    monkeypatch.chdir(tmp_path)
    assert speclib.load_latency("mine.toml").c == 8
    assert speclib.simulate("autoregressive", latency="mine.toml", tokens=3).stats
    with pytest.raises(UnknownName, match="no latency file 'absent.toml'"):
        speclib.load_latency("absent.toml")


@pytest.mark.parametrize(
    "spec, says",
    [
        ({"model": "zoo/x", "quantization": "Q8_0"}, "quantization would .*'zoo/x'"),
        ({"model": "zoo/x", "alpha": 0.5, "seed": 3}, "alpha, seed would .*'zoo/x'"),
        ({"model": "toy", "shape": (1, 8, 1, 8)}, "shape would have no .*'toy'"),
    ],
    ids=str,
)
def test_a_setting_without_effect_on_a_model_is_refused(spec, says):
    with pytest.raises(ValueError, match=says):
        ModelSpec(**spec)
