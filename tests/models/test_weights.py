"""Networks load exactly their checkpoint's weights; a rank loads only its part.

No rank ever has all weights in memory. A checkpoint with missing or additional weights
is refused, and the error names them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors_torch = pytest.importorskip("safetensors.torch")

from helpers.checkpoints import (  # noqa: E402
    VOCAB,
    found,
    network,
    numbered_words,
    save_tokenizer,
    to_load,
)
from helpers.snapshots import random_network  # noqa: E402

import speclib  # noqa: E402
from speclib.data.pairs import ModelSpec  # noqa: E402
from speclib.errors import BadValue  # noqa: E402
from speclib.models import hf  # noqa: E402
from speclib.models.checkpoint import find  # noqa: E402
from speclib.models.dilate import dilate  # noqa: E402
from speclib.models.parallel.pipeline import Pipeline  # noqa: E402
from speclib.models.parallel.tensor_parallel import Tensors  # noqa: E402
from speclib.models.weights import fill, open_weights  # noqa: E402
from speclib.worlds.worker import Worker  # noqa: E402

SHARD = "20KB"  # small networks get several shards
FAMILIES = {
    "Llama with biases": {"attention_bias": True, "mlp_bias": True},
    "Llama, tied": {"tie_word_embeddings": True},
    "Qwen2": {},
}
LAYERS = 4
LARGER = (6, 64, 8, 96)
UP = "model.layers.1.mlp.up_proj.weight"


def saved(folder: Path, family: str, **changes) -> ModelSpec:
    """Saves a sharded checkpoint of a network from ``FAMILIES``."""
    architecture = family.split()[0].rstrip(",")
    whole = network(architecture, layers=3, **FAMILIES[family] | changes)
    whole.save_pretrained(folder, max_shard_size=SHARD)
    assert len(list(folder.glob("*.safetensors"))) > 3
    return ModelSpec(model=str(folder))


def assert_equal_networks(ours, expected) -> None:
    """Asserts that all parameters and rotary rates are equal, bit for bit."""
    own = dict(ours.named_parameters(remove_duplicate=False))
    theirs = dict(expected.named_parameters(remove_duplicate=False))
    assert own.keys() == theirs.keys()
    for name, weight in theirs.items():
        assert torch.equal(own[name], weight), name
    for (name, buffer), (_, other) in zip(
        ours.named_buffers(), expected.named_buffers(), strict=True
    ):
        assert torch.equal(buffer, other), name


# -- the same weights ------------------------------------------------------------------
@pytest.mark.parametrize(
    "family, dtype",
    [(family, "float32") for family in FAMILIES] + [("Qwen2", "bfloat16")],
)
def test_a_network_loaded_whole_equals_the_one_that_transformers_loads(
    tmp_path, family, dtype
):
    spec = saved(tmp_path, family)
    weights = open_weights(to_load(find(spec), dtype))
    fill(weights)
    expected = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, dtype=getattr(torch, dtype)
    )
    assert_equal_networks(weights.network, expected)
    embedding = weights.network.get_input_embeddings().weight
    head = weights.network.get_output_embeddings().weight
    assert (embedding.data_ptr() == head.data_ptr()) == ("tied" in family)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_rank_loads_the_slices_that_it_would_cut_from_the_whole(
    tmp_path, family, size
):
    spec = saved(tmp_path, family, num_key_value_heads=4)
    for number in range(size):
        weights = open_weights(to_load(find(spec)))
        ours = Tensors(weights.network, VOCAB, number, size)
        fill(weights, ours.shares)
        whole = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
        assert_equal_networks(ours.network, Tensors(whole, VOCAB, number, size).network)


def test_a_stage_loads_the_layers_that_it_would_keep_of_the_whole(tmp_path):
    spec = saved(tmp_path, "Llama, tied")
    for number in range(2):
        weights = open_weights(to_load(find(spec)))
        ours = Pipeline(weights.network, VOCAB, number, 2)
        fill(weights)
        whole = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
        expected = Pipeline(whole, VOCAB, number, 2)
        assert_equal_networks(ours.network, expected.network)


@pytest.mark.parametrize("number", [0, 1])
def test_a_rank_of_a_dilated_network_loads_what_it_would_cut_from_the_whole(number):
    shape = (8, 512, 8, 1024)
    spec = ModelSpec(model="zoo/draft-good", shape=shape)
    weights = open_weights(to_load(find(spec)))
    ours = Tensors(weights.network, VOCAB, number, 2)
    fill(weights, ours.shares)
    small = hf.network(to_load(find(spec.undilated)))
    expected = Tensors(dilate(small, shape), VOCAB, number, 2)
    assert_equal_networks(ours.network, expected.network)


# -- memory while loading --------------------------------------------------------------
# A shape for the dilated target, and its parameter count: 2 bytes each in bfloat16.
LARGE_SHAPE = (15, 1024, 16, 4096)
PARAMETERS = 260_000_000
SLACK = 1.1  # a rank's peak memory, as a multiple of its share


def resident(kind: str) -> int:
    """Returns this process's memory in bytes: now (VmRSS) or its peak (VmHWM)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(kind)


def measure_loading(pair, folder, rank):
    """Loads a rank; records its share and the peak of additional memory."""
    from speclib.models.parallel import pipeline, tensor_parallel

    load = {"tensors": tensor_parallel.load, "stages": pipeline.load}
    spec = pair.target
    loading = to_load(find(spec), "bfloat16", places=("cpu",) * rank.size, rank=rank)
    load_small_ones()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    model = load[spec.spread](loading)
    peak = resident("VmHWM") - before
    network = model.model.network
    share = sum(weight.numel() * weight.itemsize for weight in network.parameters())
    measured = {"peak": peak, "share": share}
    Path(folder, f"rank-{rank.number}.json").write_text(json.dumps(measured))
    return model if rank.number else partial(say_done)


def load_small_ones() -> None:
    """Loads small models, so that libraries' own memory is not counted later."""
    for shape in (None, (7, 256, 4, 688)):
        fill(open_weights(to_load(found("zoo/target", shape=shape), "bfloat16")))


def say_done(message, pipe):
    return "done"


@pytest.fixture(scope="module")
def large_checkpoint(tmp_path_factory):
    """The folder of a sharded checkpoint with that shape."""
    folder = tmp_path_factory.mktemp("large")
    spec = ModelSpec(model="zoo/target", shape=LARGE_SHAPE)
    large = hf.network(to_load(find(spec), "bfloat16"))
    large.save_pretrained(folder, max_shard_size=2 * PARAMETERS // 5)  # bytes
    assert len(list(folder.glob("*.safetensors"))) > 4
    yield str(folder)
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.parametrize("spread, kind", [("tensors", "stored"), ("stages", "dilated")])
def test_a_rank_never_uses_much_more_memory_than_its_share(
    tmp_path, large_checkpoint, spread, kind
):
    """The checkpoint has half a gigabyte, on two ranks."""
    model = {"model": "zoo/target", "shape": LARGE_SHAPE, "spread": spread}
    if kind == "stored":
        model = {"model": large_checkpoint, "spread": spread}
    pair = speclib.pair(model, "zoo/draft-good")

    worker = Worker(
        "ranks", pair, measure_loading, str(tmp_path), ranks=2, patience=120.0
    )
    try:
        assert worker.receive(300) is None
    finally:
        worker.stop()

    whole = 2 * PARAMETERS
    for number in range(2):
        measured = json.loads((tmp_path / f"rank-{number}.json").read_text())
        print(spread, kind, number, measured)
        assert 0.4 * whole < measured["share"] < 0.6 * whole
        assert measured["peak"] <= SLACK * measured["share"]


# -- missing and additional weights ----------------------------------------------------
@pytest.fixture
def folder(tmp_path) -> Path:
    """An undamaged checkpoint."""
    network("Qwen3", layers=LAYERS).save_pretrained(tmp_path)
    save_tokenizer(tmp_path, numbered_words())
    return tmp_path


def change_weights(folder: Path, change: Callable[[dict], object]) -> None:
    """Applies ``change`` to the weights in ``folder``, a dictionary by name."""
    path = folder / "model.safetensors"
    weights = safetensors_torch.load_file(path)
    change(weights)
    safetensors_torch.save_file(weights, path, metadata={"format": "pt"})


def change_json(folder: Path, name: str, **changes) -> None:
    """Changes keys of a JSON file in ``folder``."""
    path = folder / name
    keys = json.loads(path.read_text())
    path.write_text(json.dumps(keys | changes))


def lose_a_weight(folder: Path) -> None:
    change_weights(folder, lambda weights: weights.pop(UP))


def lose_the_head(folder: Path) -> None:
    change_weights(folder, lambda weights: weights.pop("lm_head.weight"))


def gain_a_weight(folder: Path) -> None:
    odd = {"model.layers.1.mlp.odd.weight": torch.zeros(3)}
    change_weights(folder, lambda weights: weights.update(odd))


def get_another_shape(folder: Path) -> None:
    change_weights(folder, lambda weights: weights.update({UP: torch.zeros(5, 32)}))


def say_two_of_four_layers(folder: Path) -> None:
    change_json(
        folder,
        "config.json",
        num_hidden_layers=2,
        layer_types=["full_attention"] * 2,
    )


DAMAGES = [
    (lose_a_weight, rf"not match the Qwen3ForCausalLM that .* 1 missing \({UP}\)"),
    (
        lose_the_head,
        r"not match the Qwen3ForCausalLM that .* 1 missing \(lm_head.weight\)",
    ),
    (gain_a_weight, r"1 not used \(model.layers.1.mlp.odd.weight\)"),
    (get_another_shape, rf"1 of another shape \('{UP}' is \[5, 32\], not \[48, 32"),
    (
        say_two_of_four_layers,
        r"22 not used \(model.layers.2.inp",
    ),
]


def fill_a_rank(spec: ModelSpec) -> None:
    """Fills the network as a rank's, although nothing was cut."""
    fill(open_weights(to_load(find(spec))))


def larger(spec: ModelSpec) -> ModelSpec:
    return spec.model_copy(update={"shape": LARGER})


WAYS = {
    "whole": lambda spec: hf.network(to_load(find(spec))),
    "a rank's": fill_a_rank,
    "dilated": lambda spec: hf.network(to_load(find(larger(spec)))),
}


EACH_DAMAGE = [("whole", *damage) for damage in DAMAGES]
EACH_DAMAGE += [(way, *DAMAGES[0]) for way in ("a rank's", "dilated")]


@pytest.mark.parametrize("way, damage, says", EACH_DAMAGE)
def test_weights_that_do_not_match_the_configuration_are_refused_by_name(
    folder, way, damage, says
):
    spec = ModelSpec(model=str(folder))
    WAYS[way](spec)  # the undamaged checkpoint loads
    damage(folder)
    with pytest.raises(BadValue, match=says) as caught:
        WAYS[way](spec)
    message = str(caught.value)
    assert "\n" not in message
    assert f"model {str(folder)!r}" in message
    assert "Copy or download the checkpoint again, or give another" in message


def test_a_missing_expert_is_refused(tmp_path):
    """transformers merges all experts' weights, so no parameter has this name."""
    random_network("MixtralConfig").save_pretrained(tmp_path)
    names = []
    with safetensors_torch.safe_open(tmp_path / "model.safetensors", "pt") as file:
        names = [name for name in file.keys() if "experts" in name]  # noqa: SIM118
    assert len(names) > LAYERS
    change_weights(tmp_path, lambda weights: weights.pop(names[0]))
    with pytest.raises(BadValue, match="weights of model") as caught:
        hf.network(to_load(found(tmp_path)))
    assert "\n" not in str(caught.value)


def test_buffers_in_old_checkpoints_do_not_count_as_weights(folder):
    buffers = {
        "model.rotary_emb.inv_freq": torch.ones(4),
        "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4),
        "model.layers.0.self_attn.masked_bias": torch.ones(1),
    }
    change_weights(folder, lambda weights: weights.update(buffers))
    for load in WAYS.values():
        load(ModelSpec(model=str(folder)))


@pytest.mark.parametrize("stored_twice", [False, True])
def test_tied_weights_may_be_stored_once_or_twice(tmp_path, stored_twice):
    network(tie_word_embeddings=True).save_pretrained(tmp_path)
    if stored_twice:

        def store_twice(weights):
            weights["lm_head.weight"] = weights["model.embed_tokens.weight"].clone()

        change_weights(tmp_path, store_twice)
    for load in (WAYS["whole"], WAYS["a rank's"]):
        load(ModelSpec(model=str(tmp_path)))


def test_ranks_refuse_tied_weights_that_differ(tmp_path):
    """transformers leaves them untied, as does our undivided model."""
    network(tie_word_embeddings=True).save_pretrained(tmp_path)

    def differ(weights):
        weights["lm_head.weight"] = 2 * weights["model.embed_tokens.weight"]

    change_weights(tmp_path, differ)
    spec = ModelSpec(model=str(tmp_path))
    with pytest.raises(BadValue, match="ties 'lm_head.weight' to .*different values"):
        WAYS["a rank's"](spec)
    whole = WAYS["whole"](spec)
    assert whole.lm_head.weight is not whole.model.embed_tokens.weight
