"""Dilation keeps the function: the small model itself is the expected value."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from speclib.errors import SpeclibError  # noqa: E402
from speclib.models.dilate import Architecture, dilate  # noqa: E402

FAMILIES = ("Llama", "Qwen2", "Qwen3")
VOCAB = 97
# The small model's changes; the large one's layers, width, heads, ffn; its options.
CASES = {
    "deeper": ({}, (7, 32, 4, 48), {}),
    "wider by 3, sqrt is inexact": ({}, (3, 96, 12, 50), {}),
    "head dim by 2": ({}, (5, 64, 4, 96), {}),
    "head dim by 3, width not": ({}, (4, 64, 8, 96), {"head_dim": 24}),
    "more queries to a key": ({}, (4, 128, 16, 96), {"kv_heads": 2}),
    "own key each, from grouped queries": ({}, (4, 64, 8, 96), {"kv_heads": 8}),
    "uneven groups": ({"num_attention_heads": 8}, (4, 96, 12, 96), {"kv_heads": 4}),
    "grouped, from own key each": (
        {"num_key_value_heads": 4},
        (4, 128, 16, 96),
        {"kv_heads": 4},
    ),
    "more words, tied": ({"tie_word_embeddings": True}, (5, 64, 8, 96), {"vocab": 130}),
    "every bias": ({"attention_bias": True, "mlp_bias": True}, (4, 96, 6, 64), {}),
}
IDS = torch.randint(0, VOCAB, (2, 24), generator=torch.Generator().manual_seed(0))
GREEDY = {
    "attention_mask": torch.ones_like(IDS),
    "max_new_tokens": 24,
    "do_sample": False,
}


def tiny(family, dtype=torch.float32, **changes):
    """A random model, so large in its weights that every norm, bias and eps matters."""
    settings = {
        "vocab_size": VOCAB,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "rms_norm_eps": 1e-2,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": 0,
    }
    config = getattr(transformers, f"{family}Config")(**settings | changes)
    torch.manual_seed(1)
    model = getattr(transformers, f"{family}ForCausalLM")(config).to(dtype).eval()
    for name, weight in model.requires_grad_(False).named_parameters():
        if "norm" in name:
            weight.uniform_(0.5, 1.5)
        else:
            weight.normal_(0, 0.3)
    return model


def logits(model, ids=IDS, **options):
    with torch.inference_mode():
        return model(ids, **options).logits


def largest_error(model, small):
    """The largest difference in logits, as a fraction of the largest logit."""
    expected = logits(small)
    actual = logits(model)[..., : small.config.vocab_size]
    error = (actual - expected).abs().max() / expected.abs().max()
    return error.item()


@pytest.fixture
def exact_norms(monkeypatch):
    """RMSNorm in its input's dtype; transformers computes it in float32 at best."""

    def forward(self, x):
        return torch.nn.functional.rms_norm(
            x, x.shape[-1:], self.weight, self.variance_epsilon
        )

    for family in FAMILIES:
        monkeypatch.setattr(type(tiny(family).model.norm), "forward", forward)


# -- the same function -----------------------------------------------------------------
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_logits_stay(family, case, request):
    changes, shape, options = CASES[case]
    small = tiny(family, **changes)
    error = largest_error(dilate(small, shape, **options), small)
    assert error < 2e-5  # float32's own rounding is 4e-6

    request.getfixturevalue("exact_norms")
    small = small.double()
    error = largest_error(dilate(small, shape, **options), small)
    assert error < 1e-13  # so the algebra is exact


def test_bfloat16_on_request_differs_by_its_own_rounding():
    small = tiny("Llama")
    model = dilate(small, (4, 96, 6, 64), dtype=torch.bfloat16)
    assert model.dtype == torch.bfloat16
    assert model.model.rotary_emb.inv_freq.dtype == torch.float32
    assert 0 < largest_error(model, small) < 0.1


@pytest.mark.parametrize("family", FAMILIES)
def test_a_cache_fed_in_pieces_gives_the_same_logits(family):
    small = tiny(family)
    model = dilate(small, (5, 64, 4, 96), kv_heads=4, vocab=100)
    cache = transformers.DynamicCache(config=model.config)
    pieces = []
    for ids in IDS.split([16, 1, 7], 1):
        pieces.append(logits(model, ids, past_key_values=cache))
    actual, expected = torch.cat(pieces, 1)[..., :VOCAB], logits(small)
    assert (actual - expected).abs().max() < 2e-5 * expected.abs().max()


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_generate_writes_the_same_tokens(family):
    small = tiny(family)
    # So that the text depends on its last words.
    small.model.embed_tokens.weight.mul_(5.0)
    expected = small.generate(IDS, **GREEDY)
    for text in expected.tolist():
        assert len(set(text[24:])) > 3
    large = dilate(small, (5, 64, 4, 96), vocab=130)
    assert torch.equal(large.generate(IDS, **GREEDY), expected)


def test_generate_bans_the_added_words_even_where_their_zero_is_the_largest_logit():
    small = tiny("Llama")
    # So that the head can push every logit below zero.
    small.model.embed_tokens.weight[:, 0] = 40.0
    small.lm_head.weight[:, 0] = -10.0
    model = dilate(small, (5, 64, 8, 96), vocab=130)
    assert model.config.real_vocab == VOCAB
    assert not logits(model)[..., VOCAB:].any()
    assert logits(model).argmax(-1).min() == VOCAB
    assert torch.equal(model.generate(IDS, **GREEDY), small.generate(IDS, **GREEDY))


def test_tied_embeddings_are_copied_and_untied():
    small = tiny("Qwen2", tie_word_embeddings=True)
    model = dilate(small, (4, 64, 8, 96), vocab=128)
    assert Architecture.of(model.config) == Architecture(
        4, 64, 8, 96, kv_heads=4, head_dim=8, vocab=128
    )
    assert not model.config.tie_word_embeddings  # or loading would tie them again
    assert model.lm_head.weight is not model.model.embed_tokens.weight


def test_a_sliding_window_stays_with_its_layer():
    small = tiny(
        "Qwen2", use_sliding_window=True, sliding_window=5, max_window_layers=2
    )
    model = dilate(small, (7, 64, 4, 96))
    full, sliding = "full_attention", "sliding_attention"
    # Layers 1, 3 and 6 are the real ones.
    assert model.config.layer_types == [full] * 4 + [sliding] * 3
    assert largest_error(model, small) < 2e-5


def test_llama3_rope_survives_a_larger_head():
    rope = {
        "rope_type": "llama3",
        "rope_theta": 1e4,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    }
    small = tiny("Llama", rope_parameters=rope)
    assert largest_error(dilate(small, (4, 64, 4, 96)), small) < 2e-5


@pytest.mark.parametrize("family", FAMILIES)
def test_it_survives_save_and_load_and_a_second_dilation(family, tmp_path, exact_norms):
    small = tiny(family, torch.float64)
    once = dilate(small, (5, 64, 8, 96), vocab=110)
    once.save_pretrained(tmp_path)
    loaded = type(small).from_pretrained(tmp_path)
    twice = dilate(loaded, (6, 96, 8, 100), head_dim=16, vocab=120)
    assert largest_error(loaded, small) < 1e-13
    assert largest_error(twice, small) < 1e-13
    assert twice.config.dilated_from == [3, 32, 4, 48]
    assert twice.config.real_vocab == VOCAB
    assert not logits(twice)[..., VOCAB:].any()


# -- the cost of the large shape -------------------------------------------------------
def test_added_layers_compute_and_write_exactly_nothing():
    model = dilate(tiny("Llama"), (7, 64, 8, 96))
    layers = model.model.layers
    writes, busy_shares = [], []

    def note_whether_it_writes(layer, args, output):
        writes.append(not output.equal(args[0]))

    def note_how_busy_it_is(linear, args):
        busy_shares.append(args[0].ne(0).float().mean())

    for layer in layers:
        layer.register_forward_hook(note_whether_it_writes)
    for part in (layers[0].self_attn.o_proj, layers[0].mlp.down_proj):
        part.register_forward_pre_hook(note_how_busy_it_is)
    logits(model)

    writers = [number for number, written in enumerate(writes) if written]
    assert writers == [1, 3, 6]  # spread; the last stays last
    assert len(writes) == 7
    assert min(busy_shares) > 0.99


def test_the_same_seed_gives_the_same_model_and_leaves_the_small_one_alone():
    small = tiny("Llama")
    before = {name: weight.clone() for name, weight in small.state_dict().items()}
    first = dilate(small, (4, 64, 8, 96), seed=3).state_dict()
    second = dilate(small, (4, 64, 8, 96), seed=3).state_dict()
    other = dilate(small, (4, 64, 8, 96), seed=4).state_dict()
    for name, weight in first.items():
        assert torch.equal(weight, second[name])
    assert not torch.equal(other["lm_head.weight"], first["lm_head.weight"])
    for name, weight in small.state_dict().items():
        assert torch.equal(weight, before[name])


# -- errors ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "shape, options, words",
    [
        ((2, 64, 8, 96), {}, "layers is 2; the model needs at least 3"),
        ((3, 96, 8, 96), {}, "head_dim is 12, not a multiple of the model's 8"),
        (
            (3, 40, 5, 48),
            {},
            r"5 heads don't divide .* pass a divisor of 5 as kv_heads",
        ),
        (
            (3, 64, 8, 96),
            {"kv_heads": 1},
            "kv_heads is 1; with 8 heads the model needs at least 2",
        ),
    ],
)
def test_what_does_not_fit_is_named(shape, options, words):
    with pytest.raises(SpeclibError, match=words):
        dilate(tiny("Llama"), shape, **options)


def test_other_models_and_rotary_scalings_are_refused():
    with pytest.raises(SpeclibError, match="Linear; dilate one of"):
        dilate(torch.nn.Linear(1, 1), (1, 1, 1, 1))

    rope = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}
    yarn = tiny("Llama", rope_parameters=rope)
    assert largest_error(dilate(yarn, (4, 64, 8, 96)), yarn) < 2e-5
    with pytest.raises(
        SpeclibError, match="'yarn' depend on head_dim; keep head_dim at 8"
    ):
        dilate(yarn, (4, 64, 4, 96))
