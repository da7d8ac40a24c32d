"""A task: what a user asks and what a good answer looks like. The unit of all training text.

Knows nothing of tokens or models.
"""

from __future__ import annotations

import random
import re
import tomllib
from dataclasses import dataclass, field
from functools import cache

from speclib.paths import DATA

CORPUS = DATA / "corpus"
CHOICE = re.compile(r"<([^<>]*\|[^<>]*)>")


@dataclass(frozen=True)
class Task:
    """One task of `category`; `turns` are (user, assistant) texts.

    A code task has one turn, (prompt, solution), and is written as raw text; all others are
    dialogues. `facts` holds what the official format of the category also stores (test, answer).
    """

    category: str
    turns: tuple[tuple[str, str], ...]
    facts: dict = field(default_factory=dict, compare=False)
    raw: bool = False

    @property
    def key(self) -> str:
        """What makes two tasks the same question: the category and the first user text."""
        return f"{self.category}\n{self.turns[0][0]}"


@cache
def data(name: str) -> dict:
    """The parsed `data/corpus/<name>.toml`."""
    with open(CORPUS / f"{name}.toml", "rb") as file:
        return tomllib.load(file)


def say(rng: random.Random, template: str, slots: dict) -> str:
    """Fill `{slots}` and draw one of every `<a|b>` in `template`."""
    while CHOICE.search(template):
        template = CHOICE.sub(lambda m: rng.choice(m[1].split("|")), template)
    return template.format_map(slots)
