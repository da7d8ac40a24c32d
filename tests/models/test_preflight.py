"""A pair that cannot be loaded is refused at once, before anything is read."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helpers.checkpoints import (  # noqa: E402
    network,
    pair_over_ranks,
)
from helpers.snapshots import ARCHITECTURES, VOCAB, random_network  # noqa: E402
from huggingface_hub import constants  # noqa: E402

import speclib  # noqa: E402
from speclib import machine  # noqa: E402
from speclib.core.sampling import Sampler  # noqa: E402
from speclib.data.shapes import load_shape  # noqa: E402
from speclib.errors import BadValue  # noqa: E402
from speclib.models import gpus, preflight  # noqa: E402
from speclib.models.hf import HFModel  # noqa: E402
from speclib.models.open_pair import open_pair  # noqa: E402
from speclib.models.preflight import published  # noqa: E402
from speclib.worlds import processes  # noqa: E402


@pytest.fixture
def no_worker(monkeypatch) -> None:
    """Makes starting a worker an error, because a refusal must come first."""

    def start(*args, **kwargs):
        raise AssertionError("a worker was started")

    monkeypatch.setattr(processes, "Worker", start)


needs_no_gpu = pytest.mark.skipif(gpus.count() > 0, reason="there are GPUs here")


@needs_no_gpu
def test_a_missing_gpu_is_named_with_those_that_exist(no_worker):
    pair = speclib.pair(
        "zoo/target", "zoo/draft-good", place={"draft": ["cpu"], "target": ["cuda:1"]}
    )
    with pytest.raises(BadValue, match="on cuda:1, but torch can use 0 GPUs.*doctor"):
        speclib.Processes(pair)


def test_counting_gpus_does_not_initialise_cuda():
    code = """
        import torch
        from speclib import machine
        from speclib.models import gpus
        gpus.count(), machine.gpus()
        assert not torch.cuda.is_initialized()
        print("untouched")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True
    )
    assert done.stdout.strip() == "untouched", done.stderr


def test_a_model_that_does_not_fit_is_refused_with_the_memory_it_needs(no_worker):
    """Llama 3 70B would need 282 GB in float32, and nothing is allocated."""
    if machine.memory().total > 250e9:
        pytest.skip("it would fit")
    target = {"model": "zoo/target", "like": "llama-3-70b"}
    pair = speclib.pair(target, "zoo/draft-good")
    with pytest.raises(
        BadValue, match=r"cpu would hold 28\d\.\d GB of weights and caches of 0"
    ):
        speclib.Processes(pair)


# -- how much memory -------------------------------------------------------------------
# Parameter counts by the hub, from the models' safetensors or copies of them.
PUBLISHED = {
    "llama-2-7b": 6_738_415_616,
    "llama-2-70b": 68_976_648_192,
    "codellama-7b": 6_738_546_688,
    "codellama-34b": 33_743_970_304,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "deepseek-coder-1.3b": 1_346_471_936,
    "deepseek-coder-6.7b": 6_740_512_768,
    "qwen2-7b": 7_615_616_512,
    "qwen2-72b": 72_706_203_648,
    "qwen2.5-32b": 32_763_876_352,
    "llama-13b": 13_015_864_320,
    "starcoder": 15_517_456_384,
    "phi-3-medium": 13_960_238_080,
    "phi-3-mini": 3_821_079_552,
}
# CodeLlama 70B is Llama 2 70B with 16 more tokens, each with a row in two matrices.
PUBLISHED["codellama-70b"] = PUBLISHED["llama-2-70b"] + 16 * 2 * 8192
# Only rounded numbers are published for these: a model's name, or its files' size.
ROUNDED = {
    "deepseek-coder-33b": (33.34e9, 0.01e9),
    "llama-68m": (68e6, 1e6),
    "tiny-starcoder": (164e6, 1e6),
}


def uses_of(pair, dtype="bfloat16", length=1024, free=None):
    """Estimates each place's memory for a pair whose models are not on this machine."""
    roles = ("draft", "target")
    configs = {role: published(pair.model(role).model) for role in roles}
    targets = 1 + len(pair.place.servers)
    return preflight.estimate(
        pair, configs, pair.place, dtype, length, targets, free or {}
    )


def bytes_held(uses, device: str) -> tuple[int, int]:
    """Returns the bytes of weights and of caches over all places of a device."""
    own = [use for use in uses if use.device == device]
    return sum(use.weights for use in own), sum(use.cache for use in own)


@pytest.mark.parametrize("name", sorted({*PUBLISHED, *ROUNDED}))
def test_each_shape_has_the_published_models_parameter_count(name):
    model = next(iter(load_shape(name).models))
    uses = uses_of(speclib.pair(model, model), length=0)
    weights, cache = bytes_held(uses, "target")
    assert cache == 0
    printed, last_digit = ROUNDED.get(name, (PUBLISHED.get(name), 0.5))
    assert abs(weights / 2 - printed) < last_digit  # two bytes in bfloat16


@pytest.mark.parametrize("like", ["llama-2-7b", "qwen2-7b"])
def test_a_dilated_model_has_the_published_models_parameters(like):
    """The count comes from the configuration; nothing is dilated."""
    model = {"model": "zoo/target", "like": like}
    if like.startswith("qwen"):
        model["model"] = "zoo/target-qwen"
    pair = speclib.pair(model, model)
    configs = {"target": open_pair(pair).target.config}
    (use,) = preflight.estimate(pair, configs, pair.place, "float32", 0, 1, {})
    assert use.weights == 4 * PUBLISHED[like]


def test_the_cache_has_the_size_that_pearl_prints():
    """Appendix G: Llama 3.1 8B with 1024 tokens takes 2*2*32*8*1024*128 bytes."""
    uses = uses_of(speclib.load_pair("hub/llama3.1-8b-70b"))
    assert bytes_held(uses, "draft")[1] == 2 * 2 * 32 * 1 * 8 * 1024 * 128


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_each_architectures_estimate_equals_what_loading_allocates(tmp_path, name):
    whole = random_network(name)
    whole.save_pretrained(tmp_path)
    pair = speclib.pair(str(tmp_path), str(tmp_path))
    configs = {"target": open_pair(pair).target.config}
    text = list(range(5))
    (use,) = preflight.estimate(pair, configs, pair.place, "float32", len(text), 1, {})
    assert use.weights == sum(w.numel() * w.itemsize for w in whole.parameters())
    model = HFModel(whole, VOCAB)
    model.rows(text, 0, Sampler())
    layers = model.cache.layers
    assert use.cache == sum(layer.keys.nbytes + layer.values.nbytes for layer in layers)


@pytest.mark.parametrize(
    "spread", ["tensors", "stages", "layers", "replicas", "blocks"]
)
def test_each_rank_is_counted_with_its_part_of_the_model_or_all_of_it(tmp_path, spread):
    role = "target" if spread in ("tensors", "stages") else "draft"
    pair = pair_over_ranks(tmp_path, 2, spread, role)
    opened = open_pair(pair)
    configs = {role: opened.files(role).config}
    uses = preflight.estimate(pair, configs, pair.place, "float32", 8, 1, {})
    weights = 4 * network().num_parameters()
    parts = {"blocks": [1.0], "layers": [1.0] * 2, "replicas": [1.0] * 2}
    expected = [weights * part for part in parts.get(spread, [0.5] * 2)]
    assert [use.weights for use in uses] == pytest.approx(expected, abs=1)


def test_layers_of_one_process_are_spread_in_proportion_to_free_memory():
    place = {"draft": ["cpu"], "target": ["cuda:0", "cuda:1"]}
    model = "meta-llama/Llama-2-7b-hf"
    pair = speclib.pair(model, model, place=place)
    uses = uses_of(pair, free={"cuda:0": 30 * 10**9, "cuda:1": 10 * 10**9})
    on_gpus = [use.weights for use in uses if use.device == "target"]
    assert on_gpus[0] == pytest.approx(3 * on_gpus[1])
    assert sum(on_gpus) == pytest.approx(2 * PUBLISHED["llama-2-7b"], abs=1)


@pytest.mark.parametrize("spare, fits", [(0.5e9, False), (0.6e9, True)])
def test_a_pair_is_refused_if_memory_suffices_only_for_its_weights(
    monkeypatch, spare, fits
):
    """The GPU is simulated; two processes need 0.574 GB more than the weights."""
    target = {"model": "zoo/target", "like": "deepseek-coder-1.3b"}
    place = {"draft": ["cuda:0"], "target": ["cuda:0"]}
    opened = open_pair(speclib.pair(target, "zoo/draft-good", place=place))
    configs = {role: opened.files(role).config for role in ("draft", "target")}
    uses = preflight.estimate(
        opened.pair, configs, opened.place, "bfloat16", 0, 1, {"cuda:0": 80 * 10**9}
    )
    weights = sum(use.weights for use in uses)
    gpu = machine.Gpu("a GPU", total=80 * 10**9, free=int(weights + spare))
    monkeypatch.setattr(machine, "gpus", lambda: (gpu,))
    monkeypatch.setattr(gpus, "count", lambda: 1)
    if fits:
        preflight.check(opened, "bfloat16")
        return
    with pytest.raises(BadValue, match=r"cuda:0 would hold .* GB of weights and cac"):
        preflight.check(opened, "bfloat16")
    preflight.check(opened, "bfloat16", in_one_process=True)


# -- the hub ---------------------------------------------------------------------------
def test_offline_the_error_says_where_we_looked_and_what_helps(no_worker):
    assert constants.HF_HUB_OFFLINE
    pair = speclib.pair("someone/large", "someone/small")
    with pytest.raises(speclib.SpeclibError, match="not in the cache") as caught:
        speclib.Processes(pair)
    message = str(caught.value)
    assert f"not in the cache, {constants.HF_HUB_CACHE}" in message
    assert "unset HF_HUB_OFFLINE" in message
    assert "accept its licence there and log in with `hf auth login`" in message
