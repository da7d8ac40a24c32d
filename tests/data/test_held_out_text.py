"""Our tasks in a tokenizer's own words, for REST to look up."""

import pytest

from speclib.data.retrieval import held_out_text
from speclib.errors import SpeclibError


class RaisingTemplate:
    """A tokenizer whose chat template raises, as one that allows no second turn."""

    name_or_path = "some/model"
    chat_template = "{{ raise_exception('one turn only') }}"

    def encode(self, text, add_special_tokens=True):
        return list(text.encode())

    def apply_chat_template(self, messages, **options):
        raise ValueError("one turn only")


def test_a_chat_template_that_raises_names_the_model_and_the_reason():
    with pytest.raises(SpeclibError, match="some/model.*one turn only.*plain text"):
        _ = held_out_text(RaisingTemplate()).tokens
