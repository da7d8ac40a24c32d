"""The training text is valid, repeatable and true to itself; a fit learns."""

import json
import random
import re
import shutil
from dataclasses import replace
from functools import partial
from itertools import islice

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from speclib.data import prompts  # noqa: E402
from speclib.data.training_tasks import (  # noqa: E402
    arithmetic,
    code,
    corpus,
    reasoning,
)
from speclib.errors import SpeclibError  # noqa: E402
from speclib.training import __main__ as drafts  # noqa: E402
from speclib.training import cards, distil, export, fit, measure, rows, tokenizer  # noqa: E402
from speclib.training.folders import PROMPTS  # noqa: E402

TINY = fit.Shape(layers=1, width=64, heads=1, ffn=96)
TINY_QWEN = replace(TINY, family="qwen2")


def some(category, count, seed=0):
    rng = random.Random(seed)
    return [
        (corpus.GENERATORS | corpus.SHIPPED_ONLY)[category](rng) for _ in range(count)
    ]


@pytest.fixture(scope="module")
def writer():
    return tokenizer.Writer(tokenizer.train(tokenizer.texts(corpus.tasks(0), 400)))


@pytest.mark.parametrize("category", corpus.CATEGORIES)
def test_the_same_seed_gives_the_same_tasks(category):
    assert some(category, 20) == some(category, 20)
    assert some(category, 20) != some(category, 20, seed=1)


@pytest.mark.parametrize("category", corpus.CATEGORIES)
def test_every_template_is_filled_and_every_answer_is_there(category):
    for task in some(category, 100):
        for question, answer in task.turns:
            assert question.strip() and answer.strip()
            if task.category not in ("humaneval", "coding", "extraction"):
                assert not re.search(
                    r"[{}<>\[\]]", (question + answer).replace(" > ", "")
                )


@pytest.mark.parametrize("language", arithmetic.LANGUAGES)
def test_every_equation_is_true_and_leads_to_the_stated_answer(language):
    rng = random.Random(language)
    for _ in range(300):
        task = arithmetic.task(rng, language)
        answer = task.turns[0][1]
        equations = arithmetic.EQUATION.findall(answer)
        assert len(equations) >= 3
        for left, sign, right, result in equations:
            assert eval(f"{left} {sign} {right}") == int(result), answer
        assert int(re.findall(r"\d+", answer)[-1]) == task.facts["answer"]
        assert int(equations[-1][-1]) == task.facts["answer"]
        numbers = {n for n in re.findall(r"\d+", task.turns[0][0])}
        assert {n for e in equations[:1] for n in (e[0], e[2])} <= numbers


@pytest.mark.parametrize("category", reasoning.KINDS_OF)
def test_equations_in_reasoning_and_math_are_true(category):
    for task in some(category, 200):
        for _, answer in task.turns:
            for left, sign, right, result in arithmetic.EQUATION.findall(answer):
                assert eval(f"{left} {sign} {right}") == int(result), answer


def test_russian_nouns_agree_with_their_numbers():
    story = arithmetic.Story(random.Random(0), "ru")
    story.forms = ["яблоко", "яблока", "яблок"]
    assert [story.counted(n) for n in (1, 2, 5, 11, 12, 21, 22, 25)] == [
        "1 яблоко", "2 яблока", "5 яблок", "11 яблок", "12 яблок", "21 яблоко", "22 яблока",
        "25 яблок"]  # fmt: skip


def test_code_tasks_pass_their_own_tests_and_show_true_examples():
    import doctest

    for task in some("humaneval", 100):
        prompt, solution = task.turns[0]
        space = {}
        exec(prompt + solution + task.facts["test"], space)
        function = space[task.facts["entry_point"]]
        space["check"](function)
        examples = doctest.DocTestParser().get_examples(function.__doc__)
        assert len(examples) == 2
        for example in examples:
            assert eval(example.source, space) == eval(example.want)


def test_library_code_comes_from_this_interpreter():
    pieces = code.library(random.Random(0), 50_000)
    assert len(pieces) > 20 and all(piece.isascii() for piece in pieces)


def test_shipped_prompts_are_what_the_generators_make():
    for name, text in export.files().items():
        assert (PROMPTS / name).read_text(encoding="utf-8") == text, (
            f"{name}: make models"
        )


def test_no_shipped_prompt_is_in_the_training_text():
    held = corpus.held_out()
    assert len(held) == len(corpus.CATEGORIES) * corpus.SHIPPED
    keys = {task.key for task in islice(corpus.tasks(1), 20_000)}
    assert not keys & held
    asked = {key.split("\n", 1)[1] for key in keys}
    for task in prompts.tasks():
        assert not asked & {
            prompt.text or prompt.turns[0] for prompt in prompts.load(task)
        }


def test_training_text_covers_every_category():
    seen = {task.category for task in islice(corpus.tasks(5), 2000)}
    assert seen == {*corpus.GENERATORS}


def test_the_tokenizer_gives_back_every_text_and_single_digits(writer):
    for category in corpus.CATEGORIES:
        for task in some(category, 5):
            for text in task.turns[0]:
                ids = writer.ids(text)
                assert writer.bpe.decode(ids, skip_special_tokens=False) == text
                for i in ids:
                    piece = writer.bpe.decode([i])
                    assert not re.search(r"\d", piece) or len(piece) == 1


def test_a_document_weighs_the_answer_fully_and_begins_as_its_prompt(writer):
    for category in ("humaneval", "writing"):
        task = some(category, 1)[0]
        ids, weights = writer.document(task)
        prompt = writer.prompt(task)
        assert ids[: len(prompt)] == prompt and len(ids) == len(weights)
        assert set(weights[: len(prompt)]) == {tokenizer.PROMPT_WEIGHT}
        assert weights[len(prompt)] == 1.0 and ids[-1] == writer.eos


def test_the_chat_template_writes_what_the_models_were_trained_on():
    made = tokenizer.train(tokenizer.texts(corpus.tasks(0), 50))
    task = some("writing", 1)[0]
    chat = [
        {"role": "user", "content": task.turns[0][0]},
        {"role": "assistant", "content": task.turns[0][1]},
        {"role": "user", "content": task.turns[1][0]},
    ]
    ids = made.apply_chat_template(chat, add_generation_prompt=True)["input_ids"]
    full, _ = tokenizer.Writer(made).document(task)
    assert ids == full[: len(ids)]
    with pytest.raises(Exception, match="only the roles user and assistant"):
        made.apply_chat_template([{"role": "system", "content": "x"}])


def test_every_row_starts_with_a_document(writer):
    ids, weights = next(rows.batches(rows.documents(writer, 3), 4, 64))
    assert ids.shape == weights.shape == (4, 64)
    assert (ids[:, 0] == writer.bos).all()


def test_a_few_steps_reduce_the_loss_and_the_same_seed_repeats_them(writer):
    plan = fit.Plan(steps=30, batch=4, length=64, warmup=5, compile=False, rate=5e-3)
    losses = []

    def run():
        model = fit.build(TINY, 0)
        stream = rows.batches(rows.documents(writer, 3), plan.batch, plan.length)
        with torch.no_grad():
            before = fit.likelihood(model, *next(stream)).item()
        info = fit.fit(model, stream, plan, say=lambda *a, **k: None)
        losses.append(fit.likelihood(model, *next(stream)).item())
        return before, info

    before, info = run()
    assert info["steps"] == 30 and info["tokens"] == 30 * 4 * 64
    assert losses[0] < before - 1
    run()
    assert losses[1] == pytest.approx(losses[0], abs=0.05)


@pytest.mark.parametrize("shape", (TINY, TINY_QWEN))
def test_distillation_brings_the_draft_nearer_to_its_target(writer, shape):
    target, draft = fit.build(TINY, 0).eval(), fit.build(shape, 1)
    plan = fit.Plan(steps=40, batch=4, length=64, warmup=5, compile=False, rate=5e-3)
    said = distil.answers(target, writer, 8, seed=1, new=20)
    loss = distil.likeness(target)
    stream = rows.batches(distil.again(said, 0), plan.batch, plan.length)
    held = next(stream)
    before = loss(draft, *held).item()
    fit.fit(draft, stream, plan, loss=loss, say=lambda *a, **k: None)
    assert loss(draft, *held).item() < before


def test_worse_drafts_are_snapshots_and_the_best_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(drafts, "MODELS", tmp_path)
    model, saved = fit.build(TINY, 0), {}
    for step in range(100, 701, 100):
        drafts.keep_draft("draft-good")(step, model)
        for folder in tmp_path.iterdir():
            saved.setdefault(folder.name, []).append(step)
            shutil.rmtree(folder)
    assert saved == {
        "draft-poor": [200],
        "draft-plain": [400],
        "draft-fair": [500],
        "draft-good": [100, 200, 300, 400, 500, 600, 700],
    }
    drafts.check_reached("draft-good", 500)
    with pytest.raises(
        SpeclibError, match="step 450, before draft-fair.*--text-minutes"
    ):
        drafts.check_reached("draft-good", 450)
    drafts.check_reached("draft-deep", 1)  # has no worse ones


def test_a_draft_asked_for_alone_is_made_with_its_card_and_checksum(
    tmp_path, monkeypatch
):
    for module in (drafts, cards):
        monkeypatch.setattr(module, "MODELS", tmp_path)
    monkeypatch.setattr(corpus, "CATEGORIES", ("qa",))
    monkeypatch.setitem(drafts.DRAFTS, "draft-qwen", TINY_QWEN)
    tokenizer.train(tokenizer.texts(corpus.tasks(0), 50)).save_pretrained(
        tmp_path / "target"
    )
    fit.save(fit.build(TINY_QWEN, 0), tmp_path / drafts.TEACHER["draft-qwen"])
    how = "draft --only draft-qwen --no-compile --batch 1 --text-steps"
    drafts.main(f"{how} 3 --draft-steps 0".split())
    other = fit.build(TINY_QWEN, 9)
    fit.save(other, tmp_path / "draft-qwen")
    drafts.main(
        f"{how} 0 --draft-steps 2 --answers 2".split()
    )  # goes on from what is there
    made = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "draft-qwen")
    assert type(made).__name__ == "Qwen2ForCausalLM"
    torch.testing.assert_close(
        made.lm_head.weight.float(), other.lm_head.weight.data, atol=1e-3, rtol=1e-2
    )
    card = json.loads((tmp_path / "draft-qwen" / "card.json").read_text())
    assert (
        card["architecture"] == "qwen2"
        and card["command"].count("--only draft-qwen") == 2
    )
    tokens = {run["steps"]: run["tokens"] for run in card["runs"].values()}
    assert tokens == {3: 3 * 512, 2: 2 * 512}
    assert set(card["acceptance"]) == {"qa", "overall"}
    assert "draft-qwen/model.safetensors" in (tmp_path / "SHA256SUMS").read_text()
    assert card["teacher"] == "target-qwen"
    assert {path.name for path in tmp_path.iterdir()} == {
        "target",
        "target-qwen",
        "draft-qwen",
        "SHA256SUMS",
    }


def test_agreement_of_a_model_with_its_own_greedy_output_is_total(writer):
    model = fit.build(TINY, 0).eval()
    asked = [writer.prompt(task) for task in some("qa", 3)]
    said = measure.write(model, asked, 12)
    same, total = measure.agreement(model, asked, said)
    assert same == total == sum(map(len, said))
    wrong = [[token + 1 for token in row] for row in said]
    assert measure.agreement(model, asked, wrong)[0] < total


@pytest.mark.parametrize("shape", (TINY, TINY_QWEN))
def test_parameters_on_a_card_are_those_of_the_model(shape):
    model = fit.build(shape, 0)
    count = partial(sum, (p.numel() for p in model.parameters()))
    assert cards.parameters(shape, tokenizer.VOCABULARY) == count()


@pytest.mark.parametrize(
    ("shape", "name", "biased"),
    (
        (TINY, "LlamaForCausalLM", set()),
        (TINY_QWEN, "Qwen2ForCausalLM", {"q", "k", "v"}),
    ),
)
def test_a_model_has_the_architecture_of_its_shape_also_when_it_comes_back(
    tmp_path, shape, name, biased
):
    built = fit.build(shape, 0)
    fit.save(built, tmp_path)
    back = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, dtype=torch.float32
    )
    for model in (built, back):
        assert type(model).__name__ == name
        found = {
            key.split(".")[-2] for key in model.state_dict() if key.endswith(".bias")
        }
        assert found == {f"{part}_proj" for part in biased}
    half = {key: value.bfloat16().float() for key, value in built.state_dict().items()}
    assert all(
        torch.equal(value, half[key]) for key, value in back.state_dict().items()
    )
