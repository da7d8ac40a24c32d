"""A task: a user's question and a good answer.

It is the unit of all training text. Knows nothing about tokens or models.
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
CHOICE = re.compile(r"<([^<>]*\|[^<>]*)>")  # "<a|b>": one of the two

Turn: TypeAlias = tuple[str, str]  # what the user says, what the assistant answers


@dataclass(frozen=True)
class Task:
    """One task of ``category``.

    A code task has one turn, (prompt, solution), and is ``raw`` text; all others are
    dialogues. ``facts`` holds the other fields of the category's official format (test,
    answer).
    """

    category: str
    turns: tuple[Turn, ...]
    facts: dict[str, Any] = field(default_factory=dict, compare=False)
    raw: bool = False

    @property
    def key(self) -> str:
        """Identifies the question: category and first user text."""
        return f"{self.category}\n{self.turns[0][0]}"


@cache
def data(name: str) -> dict[str, Any]:
    """The contents of ``data/corpus/<name>.toml``."""
    with open(CORPUS / f"{name}.toml", "rb") as file:
        return tomllib.load(file)


def fill_template(rng: random.Random, template: str, slots: Mapping[str, Any]) -> str:
    """Fills ``{slots}`` and draws one choice of every ``<a|b>`` in ``template``."""

    def draw(choice: re.Match[str]) -> str:
        options: list[str] = choice[1].split("|")
        return rng.choice(options)

    while CHOICE.search(template):
        template = CHOICE.sub(draw, template)
    return template.format_map(slots)
