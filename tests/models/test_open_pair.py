"""A pair is built for this machine, with llama.cpp or without."""

import os
import subprocess
import sys
import textwrap

import pytest

import speclib
from speclib.data.pairs import ModelSpec
from speclib.data.placement import Place
from speclib.models import gpus
from speclib.models import open_pair as open_pairs
from speclib.models.open_pair import open_pair

DUO = speclib.load_pair("embedded/duo")


def test_of_alternative_places_the_first_that_there_is_counts(monkeypatch):
    alternatives = Place(target=("cuda:1|core:1",), draft=("core:0",))
    pair = DUO.model_copy(update={"place": alternatives})

    monkeypatch.setattr(gpus, "count", lambda: 2)
    assert open_pair(pair).place.of("target") == ("cuda:1",)

    monkeypatch.setattr(gpus, "count", lambda: 1)
    place = open_pair(pair).place
    assert place.of("target") == ("core:1",)
    assert place.of("target", 1) == ("core:2",)
    assert place.of("draft") == ("core:0",)


def test_without_the_extra_auto_is_torch(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, "llama_cpp", None)  # so that it is not found
    assert open_pair(DUO).runtime("draft") == "torch"
    draft = open_pair(DUO).build("draft", dilated=False)
    assert type(draft).__name__ == "Layered"


@pytest.fixture
def three_threads(monkeypatch):
    """torch, which takes three threads by itself."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(open_pairs, "default_torch_threads", lambda: 3)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield torch
    torch.set_num_threads(before)


def test_tokens_are_computed_inline_by_no_more_threads_than_a_device_has(three_threads):
    pair = speclib.load_pair("embedded/llama-7b-70b")
    assert pair.place.threads == 1
    speclib.open_world("virtual", pair).close()
    assert three_threads.get_num_threads() == 1

    for threads, expected in ((2, 2), (16, 3)):
        place = pair.place.model_copy(update={"threads": threads})
        wider = pair.model_copy(update={"place": place})
        speclib.open_world("virtual", wider).close()
        assert three_threads.get_num_threads() == expected


def test_a_pair_that_names_no_threads_is_computed_by_those_that_torch_takes(
    three_threads,
):
    pair = speclib.load_pair("embedded/llama-7b-70b")
    speclib.open_world("virtual", pair).close()

    place = Place(target=pair.place.target, draft=pair.place.draft)
    speclib.open_world("virtual", pair.model_copy(update={"place": place})).close()
    assert three_threads.get_num_threads() == 3


@pytest.mark.slow
def test_without_the_extra_llamacpp_says_how_to_install_it():
    """In a separate process, which has not imported it yet."""
    code = """
        import sys
        sys.modules["llama_cpp"] = None
        import speclib
        from speclib.models.open_pair import open_pair
        from speclib.data.placement import Place
        duo = speclib.load_pair("embedded/duo")
        must = duo.draft.model_copy(update={"runtime": "llamacpp"})
        place = Place(draft=("core:0",), target=("core:1",))
        try:
            pair = duo.model_copy(update={"draft": must, "place": place})
            open_pair(pair).build("draft")
        except speclib.SpeclibError as error:
            print(error)
    """
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    error = process.stdout.strip()
    assert "make llamacpp" in error
    assert "six minutes" in error
    assert 'runtime = "torch"' in error


@pytest.mark.parametrize(
    "setting",
    [{"shape": (4, 512, 8, 1280)}, {"quantization": "F16"}, {"runtime": "torch"}],
)
def test_a_gguf_is_as_it_is(setting):
    name = next(iter(setting))
    with pytest.raises(ValueError, match=f"{name} would have no .*'x.gguf'"):
        ModelSpec(model="x.gguf", **setting)


@pytest.mark.parametrize("pair", ["toy", "embedded/duo-torch"])
def test_an_unknown_dtype_is_refused_for_toys_too(pair):
    with pytest.raises(speclib.SpeclibError, match="'float12'; known: auto, float32"):
        open_pair(speclib.load_pair(pair)).build("draft", "float12")
