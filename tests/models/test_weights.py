"""Networks filled with a rank's own part: the same weights, and never all of them."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors_torch = pytest.importorskip("safetensors.torch")

from helpers.checkpoints import PLAIN, TEXT, VOCAB, found, network  # noqa: E402

import speclib  # noqa: E402
from speclib.data.pairs import ModelSpec  # noqa: E402
from speclib.errors import BadValue  # noqa: E402
from speclib.models import checkpoint, hf  # noqa: E402
from speclib.models.checkpoint import find  # noqa: E402
from speclib.models.dilate import dilate  # noqa: E402
from speclib.models.parallel.pipeline import Pipeline  # noqa: E402
from speclib.models.parallel.tensor_parallel import Tensors  # noqa: E402
from speclib.models.weights import fill, open_weights  # noqa: E402
from speclib.worlds.worker_process import Worker  # noqa: E402

CPU = torch.device("cpu")
SHARD = "20KB"  # so that the small networks of tests have several shards
FAMILIES = {
    "Llama": {},
    "Llama with biases": {"attention_bias": True, "mlp_bias": True},
    "Llama, tied": {"tie_word_embeddings": True},
    "Qwen2": {},
    "Qwen2, tied": {"tie_word_embeddings": True},
    "Qwen3": {},
}


def whole_network(family: str, **changes):
    """A network of ``FAMILIES``, with all its weights."""
    architecture = family.split()[0].rstrip(",")
    return network(architecture, layers=3, **FAMILIES[family] | changes)


def saved(folder: Path, family: str, **changes) -> ModelSpec:
    """A sharded checkpoint of it."""
    whole_network(family, **changes).save_pretrained(folder, max_shard_size=SHARD)
    assert len(list(folder.glob("*.safetensors"))) > 3
    return ModelSpec(model=str(folder))


def parameters_of(network) -> dict[str, torch.Tensor]:
    return dict(network.named_parameters(remove_duplicate=False))


def assert_equal_networks(ours, expected) -> None:
    """All parameters and rotary rates are equal, to the last bit."""
    own, theirs = parameters_of(ours), parameters_of(expected)
    assert own.keys() == theirs.keys()
    for name, weight in theirs.items():
        assert torch.equal(own[name], weight), name
    for (name, buffer), (_, other) in zip(
        ours.named_buffers(), expected.named_buffers(), strict=True
    ):
        assert torch.equal(buffer, other), name


# -- the same weights ------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_network_filled_whole_is_the_one_that_transformers_loads(
    tmp_path, family, dtype
):
    spec = saved(tmp_path, family)
    weights = open_weights(find(spec), dtype, CPU)
    fill(weights.network, weights, CPU, {})
    expected = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, dtype=getattr(torch, dtype)
    )
    assert_equal_networks(weights.network, expected)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_rank_filled_with_its_slices_has_what_it_would_cut_from_the_whole(
    tmp_path, family, size
):
    spec = saved(tmp_path, family, num_key_value_heads=4)
    for number in range(size):
        weights = open_weights(find(spec), "float32", CPU)
        ours = Tensors(weights.network, VOCAB, number, size)
        fill(ours.network, weights, CPU, ours.shares)
        whole = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
        assert_equal_networks(ours.network, Tensors(whole, VOCAB, number, size).network)


@pytest.mark.parametrize("family", ["Llama", "Llama, tied"])
def test_a_stage_filled_with_its_layers_has_what_it_would_leave_of_the_whole(
    tmp_path, family
):
    spec = saved(tmp_path, family)
    for number in range(2):
        weights = open_weights(find(spec), "float32", CPU)
        ours = Pipeline(weights.network, VOCAB, number, 2)
        fill(ours.network, weights, CPU, {})
        whole = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
        expected = Pipeline(whole, VOCAB, number, 2)
        assert_equal_networks(ours.network, expected.network)


def test_tied_weights_stay_one(tmp_path):
    spec = saved(tmp_path, "Llama, tied")
    weights = open_weights(find(spec), "float32", CPU)
    fill(weights.network, weights, CPU, {})
    filled = weights.network
    embedding = filled.get_input_embeddings().weight
    assert embedding.data_ptr() == filled.get_output_embeddings().weight.data_ptr()


@pytest.mark.parametrize("number", [0, 1])
def test_a_rank_of_a_dilated_network_has_what_it_would_cut_from_the_whole(number):
    shape = (8, 512, 8, 1024)
    spec = ModelSpec(model="zoo/draft-good", shape=shape)
    weights = open_weights(find(spec), "float32", CPU)
    ours = Tensors(weights.network, VOCAB, number, 2)
    fill(ours.network, weights, CPU, ours.shares)
    small = hf.network(find(spec.undilated), "float32", (), packed=False)
    expected = Tensors(dilate(small, shape), VOCAB, number, 2)
    assert_equal_networks(ours.network, expected.network)


@pytest.mark.slow
def test_a_model_of_a_published_shape_but_for_its_layers_says_what_the_small_one_says():
    """DeepSeek-Coder 1.3B with 3 of its 24 layers: only the width is dilated."""
    spec = ModelSpec(model="zoo/draft-good", like="deepseek-coder-1.3b")
    layers, width, heads, ffn = spec.dilation.shape
    assert (layers, width, heads, ffn) == (24, 2048, 16, 5504)
    small = hf.network(find(spec.undilated), "float32", (), packed=False)
    thin = spec.dilation._replace(shape=(3, width, heads, ffn))
    large = dilate(small, **thin._asdict())
    assert large.config.vocab_size == 32256
    assert large.model.layers[0].mlp.up_proj.weight.shape == (5504, 2048)

    text = torch.tensor([[5, 99, 1000, 7, 3001]])
    with torch.inference_mode():
        expected = small(text).logits
        logits = large(text).logits[..., : small.config.vocab_size]
    assert (logits - expected).abs().max() / expected.abs().max() < 2e-5


# -- never all of them -----------------------------------------------------------------
# Shapes of the embedded target, dilated, and its parameters: 2 bytes each in bfloat16.
LARGE_SHAPES = {
    "half a gigabyte": (15, 1024, 16, 4096),
    "two gigabytes": (15, 2048, 32, 8192),
}
PARAMETERS = {"half a gigabyte": 260_000_000, "two gigabytes": 1_024_000_000}
SLACK = 1.1  # how much more than its share a rank may have in memory


def resident(kind: str) -> int:
    """Bytes of this process in memory: now (VmRSS) or at most (VmHWM)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(kind)


def measure_loading(pair, folder, rank):
    """Loads a rank, and notes its share and its peak above what was there before."""
    from speclib.models.parallel import pipeline, tensor_parallel

    load = {"tensors": tensor_parallel.load, "stages": pipeline.load}
    spec = pair.target
    load_small_ones()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    model = load[spec.spread](
        find(spec), "bfloat16", ("cpu",) * rank.size, VOCAB, False, rank
    )
    peak = resident("VmHWM") - before
    network = model.model.network
    share = sum(weight.numel() * weight.itemsize for weight in network.parameters())
    measured = {"peak": peak, "share": share}
    Path(folder, f"rank-{rank.number}.json").write_text(json.dumps(measured))
    return model if rank.number else partial(say_done)


def load_small_ones() -> None:
    """Brings what is loaded of libraries into memory: it is no part of a model."""
    for shape in (None, (7, 256, 4, 688)):
        weights = open_weights(found("zoo/target", shape=shape), "bfloat16", CPU)
        fill(weights.network, weights, CPU, {})


def say_done(message, pipe):
    return "done"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["stored", "dilated"])
@pytest.mark.parametrize("spread", ["tensors", "stages"])
def test_a_rank_never_has_much_more_in_memory_than_its_share_of_half_a_gigabyte(
    tmp_path, large_checkpoint, spread, kind
):
    load_and_compare(tmp_path, large_checkpoint, spread, kind, "half a gigabyte")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["stored", "dilated"])
@pytest.mark.parametrize("spread", ["tensors", "stages"])
def test_a_rank_never_has_much_more_in_memory_than_its_share_of_two_gigabytes(
    tmp_path, large_checkpoint, spread, kind
):
    load_and_compare(tmp_path, large_checkpoint, spread, kind, "two gigabytes")


def load_and_compare(folder, large_checkpoint, spread, kind, size):
    """Loads a model of such a size on two ranks; none may need more than its share."""
    model = {"model": "zoo/target", "shape": LARGE_SHAPES[size], "spread": spread}
    if kind == "stored":
        model = {"model": large_checkpoint(size), "spread": spread}
    pair = speclib.pair(model, "zoo/draft-good")

    worker = Worker(
        "ranks", pair, measure_loading, str(folder), ranks=2, patience=120.0
    )
    try:
        assert worker.receive(300) is None
    finally:
        worker.stop()

    whole = 2 * PARAMETERS[size]
    for number in range(2):
        measured = json.loads((folder / f"rank-{number}.json").read_text())
        print(spread, kind, number, measured)
        assert 0.4 * whole < measured["share"] < 0.6 * whole
        assert measured["peak"] <= SLACK * measured["share"]


@pytest.fixture(scope="module")
def large_checkpoint(tmp_path_factory):
    """Where a sharded checkpoint of such a size is: the embedded target, dilated."""
    folders = {}

    def folder_of(size: str) -> str:
        if size not in folders:
            folder = tmp_path_factory.mktemp("large")
            folders[size] = folder
            save_large(folder, size)
        return str(folders[size])

    yield folder_of
    for folder in folders.values():
        shutil.rmtree(folder)


def save_large(folder: Path, size: str) -> None:
    spec = ModelSpec(model="zoo/target", shape=LARGE_SHAPES[size])
    large = hf.network(find(spec), "bfloat16", (), packed=False)
    shard = 2 * PARAMETERS[size] // 5  # bytes
    large.save_pretrained(folder, max_shard_size=shard)
    assert len(list(folder.glob("*.safetensors"))) > 4


# -- errors ----------------------------------------------------------------------------
def test_a_missing_shard_is_named_before_anything_is_read(tmp_path):
    spec = saved(tmp_path, "Llama")
    shards = sorted(tmp_path.glob("*.safetensors"))
    shards[1].unlink()
    with pytest.raises(BadValue, match=f"lacks 1 of its files.*{shards[1].name}"):
        open_weights(find(spec), "float32", CPU)


def test_a_folder_without_weights_says_which_are_wanted(tmp_path):
    network().config.save_pretrained(tmp_path)
    with pytest.raises(
        BadValue, match="lacks 1 of its files of weights in .*: model.safetensors"
    ):
        open_weights(found(tmp_path), "float32", CPU)


def test_an_index_that_is_none_is_named(tmp_path):
    spec = saved(tmp_path, "Llama")
    (tmp_path / checkpoint.INDEX).write_text("{}")
    with pytest.raises(BadValue, match="is no index of a checkpoint.*weight_map"):
        open_weights(find(spec), "float32", CPU)


def test_a_weight_that_no_file_has_is_named(tmp_path):
    spec = saved(tmp_path, "Llama")
    index = json.loads((tmp_path / checkpoint.INDEX).read_text())
    shard = tmp_path / index["weight_map"]["model.norm.weight"]
    weights = safetensors_torch.load_file(shard)
    del weights["model.norm.weight"]
    safetensors_torch.save_file(weights, shard)
    with pytest.raises(BadValue, match=r"1 missing \(model.norm.weight\)"):
        open_weights(find(spec), "float32", CPU)


def test_a_shard_that_is_not_whole_is_named(tmp_path):
    spec = saved(tmp_path, "Llama")
    shard = sorted(tmp_path.glob("*.safetensors"))[1]
    shard.write_bytes(shard.read_bytes()[:-100])
    with pytest.raises(BadValue, match=f"{shard.name}, of .* bytes, is cut off"):
        open_weights(find(spec), "float32", CPU)


def test_quantised_weights_are_refused(tmp_path):
    spec = saved(tmp_path, "Llama")
    config = json.loads((tmp_path / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "fp8"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadValue, match="quantised.*leave spread out"):
        open_weights(find(spec), "float32", CPU)


def test_rows_of_a_filled_network_are_those_of_the_whole(tmp_path):
    spec = saved(tmp_path, "Llama")
    weights = open_weights(find(spec), "float32", CPU)
    fill(weights.network, weights, CPU, {})
    rows = hf.HFModel(weights.network, VOCAB).rows(TEXT, 2, PLAIN)
    expected = hf.HFModel(whole_network("Llama"), VOCAB).rows(TEXT, 2, PLAIN)
    np.testing.assert_array_equal(rows, expected)
