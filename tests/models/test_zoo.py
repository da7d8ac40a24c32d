"""The embedded checkpoints are intact, load, and are as good as their cards say."""

import hashlib
import json
import shutil
from itertools import islice

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helpers.checkpoints import found  # noqa: E402

from speclab.training import (  # noqa: E402
    cards,
    configuration,
    distil,
    measure_drafts,
    tokenizer,
)
from speclab.training.cards import MODELS  # noqa: E402
from speclab.training.tasks import corpus  # noqa: E402
from speclib.errors import SpeclibError  # noqa: E402
from speclib.models import eagle_head, zoo  # noqa: E402

NAMES = sorted(path.parent.name for path in MODELS.glob("*/model.safetensors"))
LADDER = ["draft-good", "draft-fair", "draft-poor"]  # best first
TARGETS = {"target": configuration.TARGET, "target-qwen": configuration.QWEN_TARGET}
DEEP = {"draft-deep": configuration.DEEP, "draft-qwen": configuration.QWEN}
ONCE = "draft-once"
ARCHITECTURES = TARGETS | dict.fromkeys(LADDER, configuration.DRAFT) | DEEP
ARCHITECTURES[ONCE] = configuration.ONCE
DRAFTS = (*LADDER, *DEEP, "target-qwen", ONCE)
TEACHERS = dict.fromkeys(DRAFTS, "target") | {"draft-qwen": "target-qwen"}
TASKS = ("humaneval", "gsm8k", "mgsm_de", "stem", "rag")


def load(name, dtype=torch.float32):
    """The stored model, upcast to float32."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        MODELS / name, dtype=dtype
    )
    return model.eval()


@pytest.fixture(scope="module")
def targets():
    return {name: load(name) for name in TARGETS}


@pytest.fixture(scope="module")
def writer():
    return tokenizer.Writer(
        transformers.AutoTokenizer.from_pretrained(MODELS / "target")
    )


# -- files -----------------------------------------------------------------------------
def test_every_file_has_its_checksum_and_no_checksum_lacks_its_file():
    checksums = {}
    for line in (MODELS / "SHA256SUMS").read_text().splitlines():
        checksum, name = line.split("  ")
        checksums[name] = checksum

    paths = [path for path in MODELS.glob("*/*") if path.is_file()]
    assert set(checksums) == {path.relative_to(MODELS).as_posix() for path in paths}
    for name, checksum in checksums.items():
        content = (MODELS / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == checksum, name


@pytest.fixture
def own_zoo(tmp_path, monkeypatch):
    """A zoo with one intact checkpoint, which a test may damage."""
    monkeypatch.setattr(zoo, "ZOO", tmp_path)
    monkeypatch.setattr(zoo, "CHECKSUMS", tmp_path / "SHA256SUMS")
    shutil.copytree(MODELS / "draft-qwen", tmp_path / "draft-qwen")
    shutil.copy(MODELS / "SHA256SUMS", tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_single_changed_byte_in_any_file_of_a_checkpoint_is_found(own_zoo, name):
    path = own_zoo / "draft-qwen" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(SpeclibError, match=f"{name} does not match.*SHA256SUMS"):
        found("zoo/draft-qwen")


def test_weights_without_a_checksum_are_refused(own_zoo):
    shutil.copytree(own_zoo / "draft-qwen", own_zoo / "another")
    with pytest.raises(SpeclibError, match="model.safetensors does not match .*SUMS"):
        zoo.locate("zoo/another")


# -- architectures ---------------------------------------------------------------------
@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_is_stored_in_bfloat16_with_the_shape_on_its_card(name):
    model = load(name, dtype="auto")
    assert {weight.dtype for weight in model.parameters()} == {torch.bfloat16}
    config, card = model.config, cards.read(name)
    assert card["shape"] == [
        config.num_hidden_layers,
        config.hidden_size,
        config.num_attention_heads,
        config.intermediate_size,
    ]
    assert config.model_type == card["architecture"] == ARCHITECTURES[name].family


@pytest.mark.parametrize("name", NAMES)
def test_all_models_share_one_tokenizer(name):
    first = (MODELS / "target" / "tokenizer.json").read_bytes()
    assert (MODELS / name / "tokenizer.json").read_bytes() == first
    own = found(f"zoo/{name}").tokenizer
    assert len(own) == tokenizer.VOCABULARY
    assert (own.bos_token, own.eos_token) == ("<|bos|>", "<|eos|>")
    assert own("def f")["input_ids"][0] == own.bos_token_id

    chat = [{"role": "user", "content": "Hello"}]
    ids = own.apply_chat_template(chat, add_generation_prompt=True)["input_ids"]
    assert own.decode(ids) == "<|bos|><|user|>Hello<|assistant|>"

    texts = []
    for category in corpus.CATEGORIES:
        for task in corpus.shipped(category, 2):
            question, _answer = task.turns[0]
            texts.append(question)
    targets = found("zoo/target").tokenizer
    assert own(texts)["input_ids"] == targets(texts)["input_ids"]


# -- quality ---------------------------------------------------------------------------
@pytest.fixture(scope="module")
def outputs(targets, writer):
    """Target -> task -> (four prompts, their outputs); a batch takes half as long."""
    prompts_of, all_prompts = {}, []
    for task in TASKS:
        prompts = [writer.prompt(question) for question in corpus.shipped(task, 4)]
        prompts_of[task] = prompts
        all_prompts += prompts

    result = {}
    for name, target in targets.items():
        written = iter(measure_drafts.write(target, all_prompts, 200))
        result[name] = {}
        for task, prompts in prompts_of.items():
            result[name][task] = prompts, list(islice(written, len(prompts)))
    return result


@pytest.fixture(scope="module")
def agreements(outputs):
    """Draft -> its rate of agreement with its teacher over all tasks.

    The first 96 tokens of each output are compared, about 1,500 positions in all.
    """
    result = {}
    for name in DRAFTS:
        draft = load(name)
        same = total = 0
        for prompts, written in outputs[TEACHERS[name]].values():
            beginnings = [ids[:96] for ids in written]
            counts = measure_drafts.agreement(draft, prompts, beginnings)
            same += counts.same
            total += counts.total
        result[name] = measure_drafts.Agreement(same, total)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAFTS)
def test_a_draft_agrees_with_the_target_as_its_card_says(agreements, name):
    """0.06 exceeds four standard deviations for the best draft, three for the worst."""
    counts, stated = agreements[name], cards.read(name)["acceptance"]
    assert counts.total > 1000
    mean = sum(stated[task] for task in TASKS) / len(TASKS)
    assert counts.same / counts.total == pytest.approx(mean, abs=0.06)


@pytest.mark.slow
def test_the_head_agrees_with_the_target_as_its_card_says(targets, outputs):
    """0.06 exceeds three standard deviations. The head reads the target's features."""
    target = targets["target"]
    head = eagle_head.read(target, MODELS / "target")
    model = distil.FirstDrafts(target, head)
    same = total = 0
    for prompts, written in outputs["target"].values():
        beginnings = [ids[:96] for ids in written]
        counts = measure_drafts.agreement(model, prompts, beginnings)
        same += counts.same
        total += counts.total
    stated = json.loads((MODELS / "target" / "eagle.json").read_text())["acceptance"]
    mean = sum(stated[task] for task in TASKS) / len(TASKS)
    assert total > 1000
    assert same / total == pytest.approx(mean, abs=0.06)


@pytest.mark.slow
def test_the_drafts_are_a_ladder_of_acceptance(agreements):
    """The aims are 0.95, 0.85 and 0.7 over all tasks, and one between the first two."""
    by_agreement = sorted(LADDER, key=lambda name: agreements[name].same, reverse=True)
    assert by_agreement == LADDER
    overall = [cards.read(name)["acceptance"]["overall"] for name in LADDER]
    assert overall == pytest.approx([0.97, 0.91, 0.7], abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_target_answers_shipped_prompts_in_the_right_form(name, outputs, writer):
    def answers(category):
        _prompts, written = outputs[name][category]
        return [writer.bpe.decode(ids) for ids in written]

    for text in answers("humaneval"):
        compile("def f(values):\n" + text, "answer", "exec")
        assert "return" in text
    assert all("####" in text for text in answers("gsm8k"))
    assert all("Die Antwort ist" in text for text in answers("mgsm_de"))
    assert all(text.startswith("According to passage") for text in answers("rag"))
