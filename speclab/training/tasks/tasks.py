"""A task: a user's question and a good answer.

All training text consists of tasks. This module knows nothing about tokens or models.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from speclib.paths import DATA

CORPUS = DATA / "corpus"
CHOICE = re.compile(r"<([^<>]*\|[^<>]*)>")  # "<a|b>": either a or b

Turn: TypeAlias = tuple[str, str]  # the user's message, the assistant's answer


@dataclass(frozen=True)
class Task:
    """A task of ``category``.

    A code task has one turn, (prompt, solution), and is ``raw`` text; all others are
    dialogues. ``facts`` contains the other fields of the category's official format
    (test, answer).
    """

    category: str
    turns: tuple[Turn, ...]
    facts: dict[str, Any] = field(default_factory=dict, compare=False)
    raw: bool = False

    @property
    def key(self) -> str:
        """Identifies the question by category and first user message."""
        return f"{self.category}\n{self.turns[0][0]}"


@cache
def data(name: str) -> dict[str, Any]:
    """The contents of ``data/corpus/<name>.toml``."""
    with open(CORPUS / f"{name}.toml", "rb") as file:
        return tomllib.load(file)


def fill_template(rng: random.Random, template: str, slots: Mapping[str, Any]) -> str:
    """Fills ``{slots}`` in ``template``, and chooses at random in every ``<a|b>``."""

    def draw(choice: re.Match[str]) -> str:
        options: list[str] = choice[1].split("|")
        return rng.choice(options)

    while CHOICE.search(template):
        template = CHOICE.sub(draw, template)
    return template.format_map(slots)
