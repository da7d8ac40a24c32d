"""Prompts: ours and the official files are read alike; a bad line says where it is."""

import json
import os
import subprocess
import sys

import pytest

from speclib.data import prompts
from speclib.errors import SpeclibError

OFFICIAL = os.environ.get("SPECLIB_DATA_DIR")
official = pytest.mark.skipif(
    not OFFICIAL, reason="SPECLIB_DATA_DIR names no official files"
)
HUMANEVAL = {
    "task_id": "t/0",
    "prompt": "def f():\n",
    "entry_point": "f",
    "canonical_solution": "    return 1\n",
    "test": "def check(candidate): pass\n",
}


@pytest.mark.parametrize("task", prompts.tasks())
def test_every_task_has_at_least_96_prompts_of_ours(task):
    ours = prompts.load(task)
    ids = {prompt.id for prompt in ours}
    texts = {prompt.text or prompt.turns for prompt in ours}

    assert len(ours) >= 96
    assert len(ids) == len(ours)
    assert len(texts) == len(ours)


def test_all_contracted_categories_are_there():
    names = set(prompts.tasks())
    assert {"humaneval", "gsm8k", "translation", "summarization", "qa", "rag"} <= names

    languages = [name for name in names if name.startswith("mgsm_")]
    assert len(languages) == 11

    tasks_of_mt_bench = {prompt.task for prompt in prompts.load("mt_bench")}
    assert tasks_of_mt_bench == set(prompts.MT_BENCH)


def test_code_is_raw_text_and_all_else_is_a_chat():
    for task in prompts.tasks():
        prompt = prompts.load(task, n=1)[0]
        if task == "humaneval":
            assert isinstance(prompt.input, str)
            assert prompt.input.startswith("from typing")
            assert prompt.messages == []
        else:
            assert prompt.input == [{"role": "user", "content": prompt.turns[0]}]


def test_mt_bench_has_two_turns_and_the_second_follows_the_reply():
    prompt = prompts.load("writing", n=1)[0]
    assert len(prompt.turns) == 2

    chat = prompt.after("my reply")

    assert [message["role"] for message in chat] == ["user", "assistant", "user"]
    assert chat[1]["content"] == "my reply"
    assert chat[2]["content"] == prompt.turns[1]
    with pytest.raises(SpeclibError, match=r"2 turn\(s\)"):
        prompt.after("one", "two")


def test_humaneval_solutions_of_ours_pass_their_own_tests():
    for prompt in prompts.load("humaneval"):
        program = prompt.text + prompt.reference + prompt.facts["test"]
        names = {}
        exec(program, names)

        function = names[prompt.facts["entry_point"]]
        names["check"](function)


def test_n_takes_the_first_prompts_and_refuses_more_than_there_are():
    assert prompts.load("qa", n=3) == prompts.load("qa")[:3]
    for n in (0, -1, 97):
        with pytest.raises(SpeclibError, match=f"n={n} .* holds 96"):
            prompts.load("qa", n=n)


def test_an_unknown_task_lists_the_known():
    with pytest.raises(SpeclibError, match="unknown task 'humanevil'.*humaneval.*rag"):
        prompts.load("humanevil")


def test_a_missing_file_names_the_next_step(tmp_path):
    with pytest.raises(SpeclibError, match="download an official file"):
        prompts.load("gsm8k", folder=tmp_path)
    with pytest.raises(SpeclibError, match="no prompt file .*nothing.jsonl"):
        prompts.load(tmp_path / "nothing.jsonl")


BAD = {
    "not json": ("a.jsonl", "{oops", "not a JSON object"),
    "a list": ("a.jsonl", "[1]", "found \\[1\\]"),
    "unknown keys": ("a.jsonl", '{"x": 1}', "expected the keys of HumanEval"),
    "no test": (
        "a.jsonl",
        json.dumps(HUMANEVAL | {"test": None}),
        "test is None: give a text",
    ),
    "no answer": (
        "a.jsonl",
        '{"question": "q"}',
        "the key 'answer' is missing",
    ),
    "no result": ("a.jsonl", '{"question": "q", "answer": "5"}', "####"),
    "turns": (
        "a.jsonl",
        '{"question_id": 1, "category": "qa", "turns": "q"}',
        "turns is 'q'",
    ),
    "no id": ("a.jsonl", '{"category": "qa", "turns": ["q"]}', "question_id"),
    "no tab": ("a.tsv", "What is 1 + 1?", "question<tab>number"),
    "no number": ("a.tsv", "What?\ttwo", "found .*two"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_malformed_line_names_its_file_its_number_and_what_was_expected(
    case, tmp_path
):
    name, line, expected = BAD[case]
    path = tmp_path / name
    good = "Is it?\t2" if path.suffix == ".tsv" else json.dumps(HUMANEVAL)
    path.write_text(f"{good}\n\n{line}\n", encoding="utf-8")

    with pytest.raises(SpeclibError, match=expected) as error:
        prompts.load(path)

    message = str(error.value)
    assert str(path) in message
    assert "line 3" in message


def test_files_that_are_no_text_or_empty_are_refused(tmp_path):
    not_utf_8 = tmp_path / "a.jsonl"
    not_utf_8.write_bytes(b'{"question": "\xff"}\n')
    with pytest.raises(SpeclibError, match="UTF-8"):
        prompts.load(not_utf_8)

    not_gzipped = tmp_path / "b.jsonl.gz"
    not_gzipped.write_text("plain")
    with pytest.raises(SpeclibError, match="gzipped"):
        prompts.load(not_gzipped)

    empty = tmp_path / "c.jsonl"
    empty.write_text("\n")
    with pytest.raises(SpeclibError, match="no prompts"):
        prompts.load(empty)


def test_reading_prompts_needs_no_torch():
    code = (
        "import sys, speclib.data.prompts as p; p.load('qa'); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@official
@pytest.mark.parametrize(
    "task, count",
    [
        ("humaneval", 164),
        ("gsm8k", 1319),
        ("mt_bench", 80),
        ("writing", 10),
        ("translation", 10),
        ("summarization", 10),
        ("qa", 10),
        ("rag", 10),
        ("math_reasoning", 10),
        *((f"mgsm_{language}", 250) for language in prompts.LANGUAGES),
    ],
)
def test_official_files_are_read_whole(task, count):
    theirs = prompts.load(task, folder=OFFICIAL)
    assert len(theirs) == count
    for prompt in theirs:
        assert prompt.input, prompt.id


@official
def test_no_prompt_of_ours_is_an_official_one():
    def first_texts(prompts_of_task):
        return {prompt.text or prompt.turns[0] for prompt in prompts_of_task}

    for task in prompts.tasks():
        theirs = first_texts(prompts.load(task, folder=OFFICIAL))
        ours = first_texts(prompts.load(task))
        assert not theirs & ours, task
