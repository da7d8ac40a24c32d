"""Settings in a target's generation_config.json are obeyed, or refused by name.

The expected tokens come from transformers' ``generate``, which reads that file.
"""

import json
import shutil

import pytest

torch = pytest.importorskip("torch")

import speclab  # noqa: E402
import speclib  # noqa: E402
from speclib.errors import BadValue  # noqa: E402
from speclib.models import zoo  # noqa: E402

if not (zoo.ZOO / "target" / "model.safetensors").exists():
    pytest.skip("the embedded models are not trained", allow_module_level=True)

PROMPT = "def fib(n):\n"
TOKENS = 32


@pytest.fixture
def pair_with_settings(tmp_path):
    """Makes a pair whose target's file has more settings; also returns its folder."""

    def make(**settings):
        folder = tmp_path / "target"
        shutil.copytree(zoo.ZOO / "target", folder)
        file = folder / "generation_config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | settings))
        draft = str(zoo.ZOO / "draft-good")
        return speclib.pair(folder, draft, latency="pearl/codellama-7-70"), folder

    return make


def transformers_own(folder, **asked) -> list[int]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = AutoTokenizer.from_pretrained(folder)(PROMPT, return_tensors="pt").input_ids
    text = network.generate(ids, max_new_tokens=TOKENS, do_sample=False, **asked)
    return text[0, ids.shape[1] :].tolist()


def decode(pair, **asked):
    how = {"method": "autoregressive", "world": "virtual", "max_new_tokens": TOKENS}
    return speclib.decode(PROMPT, pair=pair, **{**how, **asked})


@pytest.mark.parametrize(
    "settings",
    [
        {"repetition_penalty": 1.3, "min_new_tokens": 20},
        {"repetition_penalty": 0.7, "min_length": 30, "suppress_tokens": [3, 5, 70000]},
        {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.8},
    ],
    ids=str,
)
def test_greedy_text_equals_that_of_generate(pair_with_settings, settings):
    pair, folder = pair_with_settings(**settings)
    expected = transformers_own(folder)
    with speclib.open_world("virtual", pair) as world:
        for method in ("autoregressive", "pearl", "tree"):
            result = speclib.decode(
                PROMPT, world=world, method=method, max_new_tokens=TOKENS
            )
            assert list(result.tokens) == expected, method


def test_without_the_file_the_settings_are_read_from_config_json(pair_with_settings):
    pair, folder = pair_with_settings()
    (folder / "generation_config.json").unlink()
    file = folder / "config.json"
    further = {"repetition_penalty": 1.5, "suppress_tokens": [315]}
    file.write_text(json.dumps(json.loads(file.read_text()) | further))
    expected = transformers_own(folder)
    assert list(decode(pair, method="pearl").tokens) == expected
    file.write_text(json.dumps(json.loads(file.read_text()) | {"stop_strings": ["x"]}))
    with pytest.raises(BadValue, match="stop_strings"):
        decode(pair)


@pytest.mark.parametrize(
    "settings, asked",
    [
        ({"min_length": 30}, {"min_new_tokens": 3}),
        ({"min_length": 30}, {"min_new_tokens": 20}),
        ({"min_length": 30}, {}),
    ],
    ids=str,
)
def test_min_new_tokens_overrides_min_length(pair_with_settings, settings, asked):
    """Without either, the text ends after 17 tokens, or 25 with the prompt."""
    pair, folder = pair_with_settings(**settings, eos_token_id=[2, 23])
    expected = transformers_own(folder, **asked)
    assert list(decode(pair, **asked).tokens) == expected


@pytest.mark.slow
def test_transformers_decoding_obeys_the_file_too(pair_with_settings):
    pair, folder = pair_with_settings(repetition_penalty=1.3, suppress_tokens=[3, 5])
    with speclab.External("transformers-plain", pair) as peer:
        answer = peer.decode(PROMPT, max_new_tokens=TOKENS)
    assert list(answer.tokens) == transformers_own(folder)


def test_an_argument_overrides_the_file(pair_with_settings):
    pair, _ = pair_with_settings(repetition_penalty=1.3, min_new_tokens=9)
    plain = speclib.pair("zoo/target", "zoo/draft-good", latency="pearl/codellama-7-70")
    asked = decode(pair, repetition_penalty=1.0, min_new_tokens=0)
    assert asked.tokens == decode(plain).tokens != decode(pair).tokens


def test_top_k_in_the_file_applies_if_a_temperature_is_given(pair_with_settings):
    """With top_k = 1, the text is greedy at any temperature."""
    pair, _ = pair_with_settings(top_k=1)
    greedy = decode(pair).tokens
    assert decode(pair, temperature=5.0).tokens == greedy
    assert decode(pair, temperature=5.0, top_k=0).tokens != greedy


@pytest.mark.parametrize(
    "settings, says",
    [
        ({"no_repeat_ngram_size": 3}, "no_repeat_ngram_size=3"),
        ({"num_beams": 4, "guidance_scale": 1.5}, "guidance_scale=1.5, num_beams=4"),
    ],
    ids=str,
)
def test_an_unsupported_setting_that_would_change_the_text_is_named(
    pair_with_settings, settings, says
):
    pair, _ = pair_with_settings(**settings)
    with pytest.raises(BadValue, match=f"generation_config.json of .*sets.*{says}"):
        decode(pair)
    with pytest.raises(BadValue, match=says):
        speclab.External("transformers-plain", pair)
    with pytest.raises(BadValue, match=says):
        speclib.decode_batch([PROMPT], pair=pair, world="virtual")


def test_settings_only_for_sampling_are_refused_only_in_sampling(pair_with_settings):
    pair, _ = pair_with_settings(min_p=0.1, typical_p=0.9)
    assert decode(pair).tokens
    with pytest.raises(BadValue, match=r"sets min_p=0.1, typical_p=0.9"):
        decode(pair, temperature=0.8)


@pytest.mark.parametrize(
    "settings",
    [
        {"repetition_penalty": -1},
        {"suppress_tokens": 5},
    ],
    ids=str,
)
def test_an_invalid_value_is_attributed_to_that_file(pair_with_settings, settings):
    pair, _ = pair_with_settings(**settings)
    with pytest.raises(BadValue, match="generation.config"):
        decode(pair)


@pytest.mark.parametrize(
    "asked, says",
    [
        ({"repetition_penalty": 0}, "repetition_penalty is 0"),
        ({"min_new_tokens": 9}, "min_new_tokens is 9, more than max_new_tokens=8"),
    ],
    ids=str,
)
def test_a_wrong_argument_is_named(asked, says):
    with pytest.raises(speclib.SpeclibError, match=says):
        speclib.decode("x", pair="toy", world="virtual", max_new_tokens=8, **asked)
    with pytest.raises(speclib.SpeclibError, match=says):
        speclib.decode_batch(
            ["x"], pair="toy", world="virtual", max_new_tokens=8, **asked
        )
