"""Prompts of measured cells: of a dialogue, every turn is one."""

from __future__ import annotations

import pytest

import speclib
from speclab.experiment.cells.measured_prompt import (
    PLAIN,
    Conditions,
    decode_prompt,
    with_replies,
)
from speclab.experiment.cells.task_prompts import Turn, load_prompts
from speclab.experiment.engines.measured_cell import key_of
from speclab.experiment.spec import Spec
from speclib import paths
from speclib.data import prompts
from speclib.errors import BadValue


def test_both_turns_of_a_dialogue_follow_each_other():
    first, second = prompts.load("writing", 2)
    asked = load_prompts("writing", None, 4, None)
    assert asked == [first.messages, Turn(first, 1), second.messages, Turn(second, 1)]


def test_other_tasks_have_one_turn():
    asked = load_prompts("mgsm_de", None, 3, None)
    assert asked == [prompt.messages for prompt in prompts.load("mgsm_de", 3)]
    code = load_prompts("humaneval", None, 2, None)
    assert code == [prompt.text for prompt in prompts.load("humaneval", 2)]


def test_more_prompts_than_there_are_turns_are_refused():
    with pytest.raises(
        BadValue, match="asked for 193 prompts of writing.*choose 1 to 192"
    ):
        load_prompts("writing", None, 193, None)


def test_a_second_turn_follows_what_plain_decoding_answered_to_the_first():
    pytest.importorskip("transformers")
    conditions = Conditions("writing", None, 12, 0.0, 0, False)
    (dialogue,) = prompts.load("writing", 1)
    pair = speclib.load_pair("embedded/llama-7b-70b")
    with speclib.open_world("virtual", pair) as world:
        messages = with_replies(world, Turn(dialogue, 1), conditions, request=1)
        answer = decode_prompt(world, dialogue.messages, PLAIN, conditions, request=0)

    roles = [message["role"] for message in messages]
    assert roles == ["user", "assistant", "user"]
    contents = [message["content"] for message in messages]
    assert contents == [dialogue.turns[0], answer.text, dialogue.turns[1]]
    assert answer.text


@pytest.fixture
def official_folder(tmp_path, monkeypatch):
    """A folder that has one official file, of German questions."""
    (tmp_path / "mgsm").mkdir()
    (tmp_path / "mgsm" / "mgsm_de.tsv").write_text("Wie viel ist 1 + 1?\t2\n")
    monkeypatch.setattr(paths, "OFFICIAL_PROMPTS", str(tmp_path))
    return tmp_path


def test_official_prompts_are_measured_where_they_are_there(official_folder):
    (german,) = load_prompts("mgsm_de", None, 1, None)
    assert german == [{"role": "user", "content": "Wie viel ist 1 + 1?"}]
    assert prompts.folder_to_measure("mgsm_fr") is None
    ours = [prompt.messages for prompt in prompts.load("mgsm_fr", 2)]
    assert load_prompts("mgsm_fr", None, 2, None) == ours


def test_cells_of_official_prompts_are_cells_of_their_own(official_folder, monkeypatch):
    spec = Spec(
        kind="measured", method="autoregressive", pair="toy", task="mgsm_de", gamma=None
    )
    official = key_of(spec)
    monkeypatch.setattr(paths, "OFFICIAL_PROMPTS", None)
    assert key_of(spec) != official


def test_a_folder_of_official_prompts_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(paths, "OFFICIAL_PROMPTS", "/nowhere")
    with pytest.raises(BadValue, match="is '/nowhere', which is no folder"):
        load_prompts("mgsm_de", None, 1, None)


def test_a_folder_without_any_official_prompts_is_named(tmp_path, monkeypatch):
    """A wrong folder would else measure other prompts than one asked for."""
    monkeypatch.setattr(paths, "OFFICIAL_PROMPTS", str(tmp_path))
    with pytest.raises(BadValue, match=r"no official file.*HumanEval\.jsonl\.gz"):
        load_prompts("mgsm_de", None, 1, None)
