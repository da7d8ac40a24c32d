"""With SmolLM2, a real language model, methods write what transformers generates.

These tests need the model that `python -m speclib fetch smollm2` downloads into the
checkout or into the folder SPECLIB_HOME.
"""

import warnings
from functools import cache

import pytest

import speclib
from speclab.reproduce.real_model import EXACT_TASKS
from speclib.data import prompts
from speclib.methods import METHODS
from speclib.models.open_pair import open_pair
from speclib.paths import FETCHED

FOLDER = FETCHED / "smollm2"
if not FOLDER.is_dir():
    pytest.skip("SmolLM2 is not here: `make real` fetches it", allow_module_level=True)
llama_cpp = pytest.importorskip("llama_cpp")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.slow
TOKENS = 16
LIMERICK = "There once was a man from Peru, who dreamt he was eating his shoe. "
PROMPTS = {
    "chat": [{"role": "user", "content": "Why is the sky blue?"}],
    "three turns": [
        {"role": "user", "content": "What is the capital of France?"},
        {"role": "assistant", "content": "Paris."},
        {"role": "user", "content": "And of Italy?"},
        {"role": "assistant", "content": "Rome."},
        {"role": "user", "content": "Which of the two is older?"},
    ],
    "code": "def fibonacci(n):\n    ",
    "German": "Die Hauptstadt von Österreich ist",
    "Chinese": "北京是中国的首都。上海是",
    "emoji": "🎉🎂 Happy birthday, 👩‍👩‍👧 dear Zoë! 🎈🎁🥳",
    "long": LIMERICK * 25 + "He",
}
# Each method's fastest settings on such a pair, or small ones.
SETTINGS = {
    "tree": {"width": 2, "gamma": 3},
    "easyspec": {"lp": 1, "width": 2, "gamma": 3},
    "ssd": {"fan": 1, "gamma": 3},
    "ouroboros": {"window": 0},
    "lookahead": {"window": 2, "ngram": 3, "guesses": 2},
    "rest": {"nodes": 8},
}
RUN_HERE = [name for name in METHODS if name != "eagle"]  # eagle needs a head
IN_A_LINE = ("speculative", "pearl", "dsi", "duodecoding", "assisted", "prompt_lookup")
EXACT = [
    ("speculative", {"test": "exact"}),
    ("pearl", {"test": "exact"}),
    ("dsi", {}),
    ("duodecoding", {}),
    ("lookahead", SETTINGS["lookahead"]),
    ("rest", SETTINGS["rest"]),
]


@pytest.fixture(scope="module")
def world():
    with speclib.open_world("processes", speclib.load_pair("smollm2")) as opened:
        yield opened


@pytest.fixture(scope="module")
def generated():
    """Returns transformers' greedy output for a prompt, in float32."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER)
    network = transformers.AutoModelForCausalLM.from_pretrained(FOLDER)

    @cache
    def generate(name: str) -> tuple[int, ...]:
        prompt = PROMPTS[name]
        if isinstance(prompt, str):
            asked = tokenizer(prompt, return_tensors="pt")
        else:
            asked = tokenizer.apply_chat_template(
                prompt,
                add_generation_prompt=True,
                return_tensors="pt",
                return_dict=True,
            )
        with torch.inference_mode():
            ids = network.generate(**asked, do_sample=False, max_new_tokens=TOKENS)
        return tuple(ids[0, asked["input_ids"].shape[1] :].tolist())

    return generate


def decoded(world, prompt, method, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the pair is slow here
        return speclib.decode(
            prompt, world=world, method=method, max_new_tokens=TOKENS, **settings
        )


@pytest.mark.parametrize("prompt", PROMPTS)
def test_pearl_writes_what_transformers_generates_on_every_prompt(
    world, generated, prompt
):
    streamed: list[int] = []
    result = decoded(world, PROMPTS[prompt], "pearl", on_commit=streamed.extend)
    assert result.tokens == tuple(streamed) == generated(prompt)
    replaced = "\N{REPLACEMENT CHARACTER}"  # a character cut off
    assert result._repr_html_().count(replaced) == result.text.count(replaced)


@pytest.mark.parametrize("number, method", list(enumerate(RUN_HERE)))
def test_every_method_writes_what_transformers_generates(
    world, generated, number, method
):
    """Each method runs on two prompts; together they cover every prompt."""
    names = list(PROMPTS)
    for prompt in (names[number % len(names)], names[(number + 3) % len(names)]):
        result = decoded(world, PROMPTS[prompt], method, **SETTINGS.get(method, {}))
        assert result.tokens == generated(prompt), prompt


@pytest.mark.parametrize("method, settings", EXACT, ids=[name for name, _ in EXACT])
def test_sampling_with_the_same_coins_writes_plain_decodings_text(
    world, method, settings
):
    how = {"temperature": 0.9, "top_k": 40, "seed": 7}
    plain = decoded(world, PROMPTS["chat"], "autoregressive", **how)
    assert decoded(world, PROMPTS["chat"], method, **how, **settings).tokens == (
        plain.tokens
    )


@pytest.mark.thorough
@pytest.mark.timeout(1200)
def test_in_bfloat16_with_fixed_rows_methods_write_plain_decodings_text():
    pair = speclib.load_pair("smollm2").with_fixed_rows(16)
    with speclib.open_world("processes", pair, dtype="bfloat16") as world:
        for task in EXACT_TASKS:
            asked = prompts.load(task)[0].input
            plain = decoded(world, asked, "autoregressive")
            for method in IN_A_LINE:
                result = decoded(world, asked, method)
                assert result.tokens == plain.tokens, (task, method)


def test_llamacpp_gives_it_the_same_token_ids():
    model = llama_cpp.Llama(str(FOLDER / "model.gguf"), vocab_only=True, verbose=False)
    tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER)
    for prompt in (
        *filter(lambda each: isinstance(each, str), PROMPTS.values()),
        "  \n",
    ):
        ids = tokenizer.encode(prompt)
        assert ids == model.tokenize(prompt.encode(), add_bos=False)
        assert tokenizer.decode(ids) == prompt
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert open_pair(speclib.load_pair("smollm2")).end_tokens == {end}
