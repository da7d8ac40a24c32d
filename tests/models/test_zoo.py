"""The embedded checkpoints are whole, load in transformers and are as good as their cards say."""

import hashlib
import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from speclib.data.training_tasks import corpus  # noqa: E402
from speclib.models import zoo  # noqa: E402
from speclib.training import cards, fit, measure, tokenizer  # noqa: E402
from speclib.training.folders import MODELS  # noqa: E402

NAMES = sorted(path.parent.name for path in MODELS.glob("*/model.safetensors"))
LADDER = ["draft-good", "draft-fair", "draft-plain", "draft-poor"]  # best first
DEEP = {"draft-deep": fit.DEEP, "draft-qwen": fit.QWEN}
TARGETS = {"target": fit.TARGET, "target-qwen": fit.QWEN_TARGET}
TARGET = {"draft-qwen": "target-qwen"}  # of the others: target, of target-qwen too
SHAPES = TARGETS | dict.fromkeys(LADDER, fit.DRAFT) | DEEP
# Largest shapes that the stand-ins of data/pairs embed the two in: layers, width, heads, ffn.
ROOM = dict.fromkeys(TARGETS, (12, 768, 12, 2048)) | dict.fromkeys(
    LADDER, (4, 320, 5, 864)
)
ROOM |= dict.fromkeys(DEEP, (10, 512, 8, 352))
DRAFTS = (*LADDER, *DEEP, "target-qwen")
TASKS = ("humaneval", "gsm8k", "mgsm_de", "stem", "rag")


def load(name):
    """The stored model, upcast to float32."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        MODELS / name, dtype=torch.float32
    )
    return model.eval()


@pytest.fixture(scope="module")
def target():
    return {name: load(name) for name in TARGETS}


@pytest.fixture(scope="module")
def writer():
    return tokenizer.Writer(
        transformers.AutoTokenizer.from_pretrained(MODELS / "target")
    )


def test_every_file_has_its_checksum_and_no_checksum_lacks_its_file():
    lines = (MODELS / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    files = {
        p.relative_to(MODELS).as_posix() for p in MODELS.glob("*/*") if p.is_file()
    }
    assert set(sums) == files
    for name in files:
        assert hashlib.sha256((MODELS / name).read_bytes()).hexdigest() == sums[name], (
            name
        )


def test_the_zoo_stays_small():
    assert set(NAMES) == set(SHAPES)
    assert sum(p.stat().st_size for p in MODELS.glob("*/*.safetensors")) < 40_000_000


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_is_stored_in_bfloat16_and_has_the_shape_of_its_card(name):
    half = transformers.AutoModelForCausalLM.from_pretrained(
        MODELS / name, dtype="auto"
    )
    assert {p.dtype for p in half.parameters()} == {torch.bfloat16}
    config, card = half.config, cards.run_of(name)
    assert card["shape"] == [
        config.num_hidden_layers,
        config.hidden_size,
        config.num_attention_heads,
        config.intermediate_size,
    ]
    assert config.model_type == card.get("architecture", "llama") == SHAPES[name].family
    count = sum(p.numel() for p in half.parameters())
    assert f"{count:,}" in (MODELS / name / "card.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SHAPES)
def test_the_models_fit_into_their_stand_ins(name):
    shape = SHAPES[name]
    own = (shape.layers, shape.width, shape.heads, shape.ffn)
    assert all(small <= big for small, big in zip(own, ROOM[name], strict=True))
    assert json.loads((MODELS / name / "config.json").read_text())["head_dim"] == 64


@pytest.mark.parametrize("name", NAMES)
def test_all_models_share_one_tokenizer(name):
    first = (MODELS / "target" / "tokenizer.json").read_bytes()
    assert (MODELS / name / "tokenizer.json").read_bytes() == first
    own = zoo.tokenizer(f"zoo/{name}")
    assert (own.bos_token, own.eos_token) == (tokenizer.BOS, tokenizer.EOS)
    chat = [{"role": "user", "content": "Hello"}]
    ids = own.apply_chat_template(chat, add_generation_prompt=True)["input_ids"]
    assert own.decode(ids) == "<|bos|><|user|>Hello<|assistant|>"
    assert own("def f")["input_ids"][0] == own.bos_token_id
    texts = [
        task.turns[0][0]
        for category in corpus.CATEGORIES
        for task in corpus.shipped(category, 2)
    ]
    assert own(texts)["input_ids"] == zoo.tokenizer("zoo/target")(texts)["input_ids"]
    assert len(own) == tokenizer.VOCABULARY


@pytest.fixture(scope="module")
def said(target, writer):
    """Target -> four prompts of five tasks and what it says to them: about 1,500 positions."""
    asked = {
        task: [writer.prompt(one) for one in corpus.shipped(task, 4)] for task in TASKS
    }
    return {
        name: [
            (prompts, measure.write(target[name], prompts, 96))
            for prompts in asked.values()
        ]
        for name in TARGETS
    }


@pytest.fixture(scope="module")
def agreed(said):
    """Draft -> (positions where it agrees with its target, positions)."""
    counts = {
        name: [
            measure.agreement(load(name), *one)
            for one in said[TARGET.get(name, "target")]
        ]
        for name in DRAFTS
    }
    return {
        name: [sum(column) for column in zip(*found, strict=True)]
        for name, found in counts.items()
    }


@pytest.mark.parametrize("name", DRAFTS)
def test_a_draft_agrees_with_the_target_as_its_card_says(agreed, name):
    """0.06 is more than four deviations for the best draft, three for the worst."""
    (same, total), stated = agreed[name], cards.run_of(name)["acceptance"]
    assert total > 1000
    assert same / total == pytest.approx(
        sum(stated[t] for t in TASKS) / len(TASKS), abs=0.06
    )


def test_the_drafts_are_a_ladder_of_acceptance(agreed):
    """Aims 0.95, 0.85 and 0.7 over all tasks, and one more between the first two."""
    assert sorted(LADDER, key=lambda name: agreed[name][0], reverse=True) == LADDER
    overall = [cards.run_of(name)["acceptance"]["overall"] for name in LADDER]
    assert overall == pytest.approx([0.97, 0.91, 0.85, 0.7], abs=0.02)


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_answers_shipped_prompts_in_the_right_form(name, target, writer):
    def said(category, count):
        prompts = [writer.prompt(task) for task in corpus.shipped(category, count)]
        return [
            writer.bpe.decode(ids) for ids in measure.write(target[name], prompts, 200)
        ]

    for text in said("humaneval", 4):
        compile("def f(values):\n" + text, "answer", "exec")
        assert "return" in text
    assert all("####" in text for text in said("gsm8k", 4))
    assert all("Die Antwort ist" in text for text in said("mgsm_de", 4))
    assert all(text.startswith("According to passage") for text in said("rag", 4))
