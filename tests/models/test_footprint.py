"""How much memory models take, from their descriptions: counts that others print."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helpers.checkpoints import (  # noqa: E402
    LAYERS,
    TEXT,
    VOCAB,
    network,
    numbered_words,
    pair_over_ranks,
    save_tokenizer,
)
from helpers.snapshots import ARCHITECTURES, random_network  # noqa: E402

import speclib  # noqa: E402
from speclib.core.sampling import Sampler  # noqa: E402
from speclib.data.pairs import ModelSpec  # noqa: E402
from speclib.data.shapes import load_shape, shape_of  # noqa: E402
from speclib.data.toml_files import names_under  # noqa: E402
from speclib.errors import SpeclibError  # noqa: E402
from speclib.models.footprint import config_of, parts  # noqa: E402
from speclib.models.hf import HFModel  # noqa: E402
from speclib.models.parallel.pipeline import Pipeline  # noqa: E402
from speclib.models.parallel.tensor_parallel import Tensors  # noqa: E402
from speclib.models.part import NOWHERE  # noqa: E402
from speclib.models.weights import empty_network  # noqa: E402
from speclib.paths import DATA  # noqa: E402

GPU = 80_000_000_000  # bytes
EIGHT_GPUS = dict.fromkeys(range(8), GPU)

# Parameters as the hub counts them in the models' safetensors (or in copies of them).
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
# Of these only rounded numbers are printed: the model's name, or the size of its files.
ROUNDED = {
    "deepseek-coder-33b": (33.34e9, 0.01e9),
    "llama-68m": (68e6, 1e6),
    "tiny-starcoder": (164e6, 1e6),
}


# How many parameters a configuration has, by its text: many tests ask for the same.
COUNTED: dict[str, int] = {}


def parameters_with(config) -> int:
    """Counted by transformers, in a network without weights."""
    text = config.to_json_string(use_diff=False)
    if text not in COUNTED:
        built = empty_network(config, torch.bfloat16)
        assert all(weight.is_meta for weight in built.parameters())
        COUNTED[text] = built.num_parameters()
    return COUNTED[text]


def parameters(name: str) -> int:
    """Those of a published shape."""
    model = next(iter(load_shape(name).models))
    return parameters_with(config_of(ModelSpec(model=model)))


def test_every_shape_has_a_published_count():
    assert {*PUBLISHED, *ROUNDED} == set(names_under(DATA / "shapes"))


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_shape_has_as_many_parameters_as_the_published_model(name):
    assert parameters(name) == PUBLISHED[name]


@pytest.mark.parametrize("name", ROUNDED)
def test_a_shape_has_about_as_many_parameters_as_is_printed(name):
    printed, last_digit = ROUNDED[name]
    assert abs(parameters(name) - printed) < last_digit


@pytest.mark.parametrize("name", names_under(DATA / "pairs" / "shape"))
def test_a_dilated_model_has_the_published_models_parameters(name):
    """Nothing is dilated: its configuration alone decides."""
    pair = speclib.load_pair(f"shape/{name}")
    for spec in (pair.target, pair.draft):
        expected = PUBLISHED.get(spec.like)
        if expected is None:
            expected = parameters(spec.like)
        assert parameters_with(config_of(spec)) == expected


# -- whole pairs -----------------------------------------------------------------------
def held_by(name: str, dtype="bfloat16", length=1024, gpu_memory=EIGHT_GPUS):
    pair = speclib.load_pair(name)
    return parts(
        pair, pair.place, dtype, length, 1 + len(pair.place.servers), gpu_memory
    )


def test_the_cache_is_as_large_as_pearl_prints():
    """Appendix G: Llama 3.1 8B with 1024 tokens takes 2*2*32*8*1024*128 bytes."""
    draft = next(p for p in held_by("hub/llama3.1-8b-70b") if p.device == "draft")
    assert draft.cache == 2 * 2 * 32 * 1 * 8 * 1024 * 128


# Their targets are in stages, for each of which a network is built.
TAKE_SECONDS = {"llama-7b-70b-shared", "llama3.1-8b-70b-shared"}


def pairs_of_the_hub():
    """All their names, those marked that take seconds."""
    names = []
    for name in names_under(DATA / "pairs" / "hub"):
        marks = [pytest.mark.slow] if name in TAKE_SECONDS else []
        names.append(pytest.param(name, marks=marks))
    return names


@pytest.mark.parametrize("name", pairs_of_the_hub())
def test_the_parts_of_a_model_are_all_of_it_and_each_fits_a_gpu_of_the_papers(name):
    pair = speclib.load_pair(f"hub/{name}")
    held = held_by(f"hub/{name}")
    on_gpu: dict[str, int] = {}
    for part in held:
        on_gpu[part.place] = on_gpu.get(part.place, 0) + part.total
    assert max(on_gpu.values()) < GPU
    assert NOWHERE not in on_gpu

    target = [part for part in held if part.device == "target"]
    count = parameters(shape_of(pair.target.model).name)
    weights = sum(part.weights for part in target)
    if pair.target.spread == "blocks":
        assert weights == 2 * count  # bytes in bfloat16
        assert sum(part.cache for part in target) == whole_cache(pair.target)
    else:  # norms and embeddings are on each rank
        assert 2 * count < weights < 2 * count * 1.25
    assert [part.place for part in target] == list(pair.place.target)


def whole_cache(spec: ModelSpec, length: int = 1024) -> int:
    config = config_of(spec)
    head_dim = config.hidden_size // config.num_attention_heads
    values = 2 * config.num_hidden_layers * config.num_key_value_heads * head_dim
    return 2 * values * length


def test_what_does_not_fit_on_its_gpus_is_said_to_be_nowhere():
    held = held_by("hub/llama-7b-70b", gpu_memory=dict.fromkeys(range(4), GPU // 2))
    left = [part for part in held if part.place == NOWHERE]
    assert left
    assert sum(part.weights for part in held if "target" in part.device) == (
        2 * PUBLISHED["llama-2-70b"]
    )


# -- what real ranks hold --------------------------------------------------------------
@pytest.mark.parametrize(
    "spread", ["tensors", "stages", "layers", "replicas", "blocks"]
)
def test_what_is_counted_is_what_is_there_once_it_is_loaded(tmp_path, spread):
    size = 2
    role = "target" if spread in ("tensors", "stages") else "draft"
    pair = pair_over_ranks(tmp_path, size, spread, role)
    held = parts(pair, pair.place, "float32", len(TEXT), 1, {0: GPU})
    counted = [part for part in held if part.device == role]

    models = [built(spread, number, size) for number in range(size)]
    if spread == "blocks":
        models = models[:1]
    for part, model in zip(counted, models, strict=True):
        loaded = sum(w.numel() * w.itemsize for w in model.network.parameters())
        assert part.weights == loaded
        model.rows(TEXT, 0, Sampler())
        cached = 0
        for layer in model.cache.layers:
            if layer.keys.shape[-1] > 1:  # of a layer elsewhere: a number per token
                cached += layer.keys.nbytes + layer.values.nbytes
        assert part.cache == cached


def bytes_of_model(model: HFModel) -> tuple[int, int]:
    """Those of its weights, and of what it caches of TEXT."""
    weights = sum(w.numel() * w.itemsize for w in model.network.parameters())
    model.rows(TEXT, 0, Sampler())
    cached = 0
    for layer in model.cache.layers:
        cached += layer.keys.nbytes + layer.values.nbytes
    return weights, cached


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture_is_counted_as_it_is_once_it_is_loaded(tmp_path, name):
    whole = random_network(name)
    whole.save_pretrained(tmp_path)
    pair = speclib.pair(str(tmp_path), str(tmp_path))
    for part in parts(pair, pair.place, "float32", len(TEXT), 1, {0: GPU}):
        assert (part.weights, part.cache) == bytes_of_model(HFModel(whole, VOCAB))


def test_keys_that_are_cached_compressed_are_counted_compressed(tmp_path):
    """DeepSeek caches what its keys and values are made of, not these themselves."""
    config = transformers.DeepseekV3Config(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=48,
        moe_intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        q_lora_rank=16,
        kv_lora_rank=16,
        qk_rope_head_dim=8,
        qk_nope_head_dim=8,
        v_head_dim=8,
        n_routed_experts=4,
        n_group=2,
        topk_group=1,
        num_experts_per_tok=2,
    )
    whole = transformers.AutoModelForCausalLM.from_config(config).eval()
    whole.save_pretrained(tmp_path)
    pair = speclib.pair(str(tmp_path), str(tmp_path))
    part = parts(pair, pair.place, "float32", len(TEXT), 1, {0: GPU})[0]
    assert (part.weights, part.cache) == bytes_of_model(HFModel(whole, VOCAB))


def test_a_bias_that_only_the_first_of_several_ranks_adds_is_counted_once(tmp_path):
    """Biases behind sums over the ranks: those of an attention's outputs, and MLPs'."""
    whole = network(attention_bias=True, mlp_bias=True)
    whole.save_pretrained(tmp_path)
    spread = {"model": str(tmp_path), "spread": "tensors"}
    place = {"target": ["cpu"] * 2, "draft": ["cpu"]}
    pair = speclib.pair(target=spread, draft=str(tmp_path), place=place)
    _draft, *held = parts(pair, pair.place, "float32", len(TEXT), 1, {0: GPU})
    for number, part in enumerate(held):
        model = Tensors(network(attention_bias=True, mlp_bias=True), VOCAB, number, 2)
        assert (part.weights, part.cache) == bytes_of_model(model)
    first, follower = held
    assert first.weights - follower.weights == 4 * LAYERS * (32 + 32)


def built(spread: str, number: int, size: int) -> HFModel:
    """The model that a rank has, made of a whole network."""
    if spread == "tensors":
        return Tensors(network(), VOCAB, number, size)
    if spread == "stages":
        return Pipeline(network(), VOCAB, number, size)
    whole = network()
    if spread == "layers" and number > 0:
        whole.set_output_embeddings(torch.nn.Identity())
    return HFModel(whole, VOCAB)  # without a head its rows mean nothing


def test_tied_embeddings_count_once(tmp_path):
    network(tie_word_embeddings=True).save_pretrained(tmp_path)
    save_tokenizer(tmp_path, numbered_words())
    pair = speclib.pair(str(tmp_path), str(tmp_path))
    target = parts(pair, pair.place, "float32", 8, 1, {0: GPU})[1]
    assert target.weights == 4 * network(tie_word_embeddings=True).num_parameters()


def test_a_model_of_which_nothing_is_known_is_named():
    pair = speclib.pair("nobody/has-this", "nobody/has-that")
    with pytest.raises(
        SpeclibError, match="nothing is known of model 'nobody/has-that'"
    ):
        parts(pair, pair.place, "float32", 8, 1, {0: GPU})
