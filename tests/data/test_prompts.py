"""Prompts: ours and the official files are read alike; a bad line says where it is."""

import os

import pytest

from speclib.data import prompts
from speclib.errors import SpeclibError

OFFICIAL = os.environ.get("SPECLIB_DATA_DIR")
official = pytest.mark.skipif(
    not OFFICIAL, reason="SPECLIB_DATA_DIR names no official files"
)


@pytest.mark.parametrize("task", prompts.tasks())
def test_every_task_has_at_least_96_prompts_of_ours(task):
    ours = prompts.load(task)
    ids = {prompt.id for prompt in ours}
    texts = {prompt.text or prompt.turns for prompt in ours}

    assert len(ours) >= 96
    assert len(ids) == len(ours)
    assert len(texts) == len(ours)


def test_mt_bench_has_all_of_its_categories():
    tasks_of_mt_bench = {prompt.task for prompt in prompts.load("mt_bench")}
    assert tasks_of_mt_bench == set(prompts.MT_BENCH)


def test_code_is_raw_text_and_all_else_is_a_chat():
    for task in prompts.tasks():
        prompt = prompts.load(task, n=1)[0]
        if task == "humaneval":
            assert isinstance(prompt.input, str)
            assert prompt.input.startswith("from typing")
        else:
            assert prompt.input == [{"role": "user", "content": prompt.turns[0]}]


def test_mt_bench_has_two_turns_and_the_second_follows_the_reply():
    prompt = prompts.load("writing", n=1)[0]
    assert len(prompt.turns) == 2

    chat = prompt.after("my reply")

    assert [message["role"] for message in chat] == ["user", "assistant", "user"]
    assert chat[1]["content"] == "my reply"
    assert chat[2]["content"] == prompt.turns[1]


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
        with pytest.raises(SpeclibError, match=f"n={n} .* has 96"):
            prompts.load("qa", n=n)


def test_an_unknown_task_lists_the_known():
    with pytest.raises(SpeclibError, match="unknown task 'humanevil'.*humaneval.*rag"):
        prompts.load("humanevil")


def test_a_missing_file_names_the_next_step(tmp_path):
    with pytest.raises(SpeclibError, match="download an official file"):
        prompts.load("gsm8k", folder=tmp_path)


@pytest.mark.parametrize(
    "task, name, line, says",
    [
        ("gsm8k", "gsm8k_test.jsonl", b"{oops", "line 2.*JSONDecodeError"),
        ("gsm8k", "gsm8k_test.jsonl", b"[1]", "line 2"),
        ("gsm8k", "gsm8k_test.jsonl", b'{"question": "q"}', "line 2.*answer"),
        ("gsm8k", "gsm8k_test.jsonl", b'{"question": "\xff"}', "UTF-8"),
        ("mgsm_de", "mgsm/mgsm_de.tsv", b"What is 1 + 1?", "line 2.*not enough"),
        ("mgsm_de", "mgsm/mgsm_de.tsv", b"What?\ttwo", "line 2.*'two'"),
        ("humaneval", "HumanEval.jsonl.gz", b"plain", "gzipped"),
    ],
)
def test_a_damaged_file_is_named_with_the_line(task, name, line, says, tmp_path):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"\n" + line + b"\n")
    with pytest.raises(SpeclibError, match=f"{path}.*{says}"):
        prompts.load(task, folder=tmp_path)


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
