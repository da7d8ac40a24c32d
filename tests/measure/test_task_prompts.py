"""The prompts of measured cells."""

from __future__ import annotations

import pytest
from helpers.specs import measured_spec

import speclib
from speclab.measure.measured_prompt import decode_prompt, with_replies
from speclab.measure.task_prompts import Turn, load_prompts
from speclab.runs import official_prompts
from speclab.traces.counts import counts_of
from speclib.data import prompts
from speclib.errors import BadValue


def test_a_dialogues_two_turns_follow_each_other():
    first, second = prompts.load("writing", 2)
    asked = load_prompts("writing", None, 4, None)
    assert asked == [first.input, Turn(first, 1), second.input, Turn(second, 1)]


def test_more_prompts_than_turns_are_refused():
    with pytest.raises(
        BadValue, match="asked for 193 prompts of writing.*choose 1 to 192"
    ):
        load_prompts("writing", None, 193, None)


@pytest.mark.slow
def test_a_second_turn_follows_plain_decodings_answer_to_the_first():
    pytest.importorskip("transformers")
    plain = measured_spec("autoregressive", None, task="writing")
    (dialogue,) = prompts.load("writing", 1)
    pair = speclib.load_pair("embedded/llama-7b-70b")
    with speclib.open_world("virtual", pair) as world:
        messages = with_replies(world, Turn(dialogue, 1), plain, request=1)
        answer = decode_prompt(world, dialogue.input, plain, request=0)

    roles = [message["role"] for message in messages]
    assert roles == ["user", "assistant", "user"]
    contents = [message["content"] for message in messages]
    assert contents == [dialogue.turns[0], answer.text, dialogue.turns[1]]
    assert answer.text


@pytest.fixture
def official_folder(tmp_path, monkeypatch):
    """A folder with one official file, of German questions."""
    (tmp_path / "mgsm").mkdir()
    (tmp_path / "mgsm" / "mgsm_de.tsv").write_text("Wie viel ist 1 + 1?\t2\n")
    monkeypatch.setattr(official_prompts, "OFFICIAL_PROMPTS", str(tmp_path))
    return tmp_path


def test_official_prompts_are_measured_if_available(official_folder):
    (german,) = load_prompts("mgsm_de", None, 1, None)
    assert german == [{"role": "user", "content": "Wie viel ist 1 + 1?"}]
    assert official_prompts.official_folder("mgsm_fr") is None
    ours = [prompt.input for prompt in prompts.load("mgsm_fr", 2)]
    assert load_prompts("mgsm_fr", None, 2, None) == ours


def test_a_folder_without_any_official_prompts_is_named(tmp_path, monkeypatch):
    """Otherwise a wrong folder would silently measure other prompts."""
    monkeypatch.setattr(official_prompts, "OFFICIAL_PROMPTS", str(tmp_path))
    with pytest.raises(BadValue, match=r"no official file.*HumanEval\.jsonl\.gz"):
        load_prompts("mgsm_de", None, 1, None)


# -- drafts beyond the last token ------------------------------------------------------
@pytest.mark.parametrize("method", ["pearl", "duodecoding"])
def test_a_measured_prompt_with_the_tail_gives_the_requested_tokens(method):
    """Only the published count is higher, by drafts beyond the last token."""
    tails = []
    with speclib.open_world("virtual", speclib.load_pair("toy")) as world:
        for tokens in range(16, 32):
            asked = measured_spec(method, 6, tokens=tokens, ignore_eos=True)
            plain = decode_prompt(world, "a prompt", asked.plain_decoding, 0)
            cut = decode_prompt(world, "a prompt", asked.changed(with_tail=True), 0)
            assert (cut.tokens, cut.text) == (plain.tokens, plain.text)
            assert cut.stats.tokens == counts_of(plain.trace).with_tail == tokens
            assert cut.trace.meta["limit"] == tokens
            tails.append(counts_of(cut.trace).with_tail - tokens)
            without = decode_prompt(world, "a prompt", asked, 0)
            assert counts_of(without.trace).with_tail == tokens
    assert 0 < max(tails) < 6
