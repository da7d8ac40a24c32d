"""Prompts become tokens, or errors if they are invalid."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import speclib
from speclib.decoding.text_request import encode
from speclib.errors import BadValue
from speclib.models.open_pair import OpenPair

TOYS = OpenPair(speclib.load_pair("toy"))
CHAT = [{"role": "user", "content": "hi"}]


def use_template(monkeypatch, apply_chat_template) -> None:
    """Gives every pair a tokenizer with this chat template."""
    tokenizer = SimpleNamespace(
        chat_template="a template",
        eos_token_id=7,
        encode=list,
        apply_chat_template=apply_chat_template,
    )
    monkeypatch.setattr(OpenPair, "tokenizer", tokenizer)


def test_the_template_formats_a_chat_and_opens_the_assistants_turn(monkeypatch):
    heard = {}

    def apply(messages, **options):
        heard.update(options, messages=messages)
        return [1, 2, 3]

    use_template(monkeypatch, apply)
    assert encode(CHAT, TOYS, 5) == (1, 2, 3)
    assert heard["messages"] == CHAT
    assert heard["add_generation_prompt"]


@pytest.mark.parametrize(
    "error", [ValueError("roles must alternate"), TypeError("x"), KeyError("content")]
)
def test_the_error_for_a_failing_template_names_the_pair_in_one_line(
    monkeypatch, error
):
    def refuse(messages, **options):
        raise error

    use_template(monkeypatch, refuse)
    with pytest.raises(BadValue, match="chat template of pair 'toy'") as caught:
        encode(CHAT, TOYS, 5)
    assert type(error).__name__ in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_empty_chat_is_refused_like_an_empty_text(monkeypatch):
    use_template(monkeypatch, lambda messages, **options: [1])
    for prompt in ([], "", ()):
        with pytest.raises(BadValue, match="is empty: give at least one token"):
            encode(prompt, TOYS, 5)


def test_a_prompt_must_leave_context_for_the_new_tokens():
    context = TOYS.context
    assert encode("x", TOYS, context - 1) == (0,)
    with pytest.raises(BadValue, match=f"exceeds the {context} tokens that pair 'toy'"):
        encode("x", TOYS, context)
