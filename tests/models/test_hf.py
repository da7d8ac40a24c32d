"""Transformers' models: a cached, rolled-back pass equals a fresh one."""

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helpers.checkpoints import save_tokenizer  # noqa: E402

import speclib  # noqa: E402
from speclib import SpeclibError  # noqa: E402
from speclib.core.sampling import Sampler  # noqa: E402
from speclib.methods import about, takes_gamma  # noqa: E402
from speclib.models import hf  # noqa: E402
from speclib.models import packed_linear as packed  # noqa: E402

VOCAB = 61


def network(seed: int = 0, **changes):
    torch.manual_seed(seed)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=VOCAB,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=128,
            **changes,
        )
    )


@torch.inference_mode()
def fresh(net, text, last):
    """Returns the rows of transformers' pass without a cache, softmax in float64."""
    logits = net(input_ids=torch.tensor([text])).logits[0, -last - 1 :].double()
    return torch.softmax(logits, -1).numpy()


def test_whatever_text_came_before_rows_equal_those_of_a_fresh_pass():
    net, dice = network(), random.Random(1)
    model, text = hf.HFModel(net, VOCAB), [1]
    for _ in range(120):
        text = text[: dice.randint(1, len(text))]  # a rejection, however deep
        text += [dice.randrange(VOCAB) for _ in range(dice.randint(0, 6))]
        text = text[:100]
        last = dice.randrange(min(len(text), 5))
        rows = model.rows(tuple(text), last, Sampler(temperature=1.0))
        np.testing.assert_allclose(rows, fresh(net, text, last), atol=2e-6)
        assert model.prefix.fed == text
        assert model.cache.get_seq_length() == len(text)


@pytest.mark.parametrize("is_faster", [True, False])
def test_both_ways_to_multiply_give_one_token_the_same_logits(is_faster, monkeypatch):
    monkeypatch.setattr(packed, "packed_is_faster_for_one", lambda layers: is_faster)
    plain, fast = network(3), packed.pack(network(3))
    for text in ([[7]], [list(range(1, 9))]):
        ids = torch.tensor(text)
        torch.testing.assert_close(
            fast(ids).logits, plain(ids).logits, atol=1e-5, rtol=1e-5
        )


def test_a_failed_pass_leaves_an_empty_cache_and_the_next_one_is_right():
    net = network()
    model = hf.HFModel(net, VOCAB)
    model.rows((1, 2, 3), 0, Sampler())
    with pytest.raises(IndexError):
        model.rows((1, 2, 3, VOCAB + 7), 0, Sampler())  # no such embedding
    assert model.prefix.fed == []
    rows = model.rows((1, 2, 4), 1, Sampler(temperature=1.0))
    np.testing.assert_allclose(rows, fresh(net, [1, 2, 4], 1), atol=2e-6)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(
    "value, said", [(float("nan"), "NaN"), (float("inf"), "infinity")]
)
def test_non_finite_logits_are_an_error_not_a_token(value, said, temperature):
    net = network()
    net.lm_head.weight.data[3] = value
    if said == "infinity":  # whatever sign the hidden state has
        net.lm_head.weight.data[4] = -value
        net.lm_head.weight.data[3:5, 1:] = 0
    with pytest.raises(SpeclibError, match=f"logits contain {said}"):
        hf.HFModel(net, VOCAB).rows((1, 2), 0, Sampler(temperature))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_gpu_returns_the_first_likeliest_token_or_an_error(dtype):
    """Among equal logits, numpy chooses the first."""
    torch.manual_seed(0)
    logits = torch.randn(50, 3_000).clamp(max=2.5).to(dtype)
    expected = logits.float().numpy().argmax(-1).tolist()
    assert hf.likeliest(logits) == expected
    ties = (logits == logits.amax(-1, keepdim=True)).sum(-1)
    assert (ties > 1).all()

    for value, said in ((float("inf"), "infinity"), (float("nan"), "NaN")):
        logits[7, 100] = value
        with pytest.raises(SpeclibError, match=f"contain {said}"):
            hf.likeliest(logits)


def save(folder, words: list[str], **changes):
    """Saves a checkpoint with random weights and a whole-word tokenizer."""
    network(**changes).save_pretrained(folder)
    save_tokenizer(folder, words)
    return str(folder)


def test_different_tokenizers_are_refused_with_the_first_difference(tmp_path):
    words = [f"w{i}" for i in range(VOCAB)]
    target = save(tmp_path / "target", words)
    draft = save(tmp_path / "draft", words[:5] + ["odd"] + words[6:])
    own = speclib.pair(target=target, draft=draft)
    with pytest.raises(
        SpeclibError, match="different tokenizers: id 5 is 'w5' and 'odd'"
    ):
        speclib.decode("w1 w2", pair=own, method="speculative", gamma=2)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Two checkpoints with random weights, in real processes."""
    words, folder = [f"w{i}" for i in range(VOCAB)], tmp_path_factory.mktemp("own")
    pair = speclib.pair(
        target=save(folder / "target", words),
        draft=save(folder / "draft", words, seed=9),
    )
    with speclib.Processes(pair, servers=2) as world:
        yield world


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [name for name in speclib.METHODS if not about(name).needs_head]
)
def test_a_users_checkpoints_decode_in_processes_as_transformers_does(own, method):
    settings = {"gamma": 3} if takes_gamma(method) else {}
    result = speclib.decode(
        "w5 w7 w11", world=own, method=method, max_new_tokens=24, **settings
    )
    net = transformers.AutoModelForCausalLM.from_pretrained(own.pair.target.model)
    wanted = net.generate(
        torch.tensor([[5, 7, 11]]),
        max_new_tokens=24,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )[0, 3:].tolist()
    assert list(result.tokens) == wanted
