"""Arithmetic stories with step-by-step answers, in eleven languages (GSM8K, MGSM).

Every equation in an answer is true, and the last one yields the stated result. Numbers
stay below 100, so that a small model can learn the arithmetic. This module knows
nothing of the other categories.
"""

from __future__ import annotations

import random
import re
from typing import Any

from speclab.training.tasks.tasks import Task, data

LANGUAGES = ("bn", "de", "en", "es", "fr", "ja", "ru", "sw", "te", "th", "zh")
WITHOUT_SPACES = ("zh", "ja")  # between sentences
COUNTED = re.compile(r"\[(\w+)\]")  # "[b]": the number b with its noun
EQUATION = re.compile(r"(\d+) ([-+*/]) (\d+) = \D*?(\d+)")
LIMIT = 99


class Story:
    """A story in one language that draws its numbers and collects its sentences."""

    def __init__(self, rng: random.Random, language: str):
        self.rng = rng
        self.words = data("arithmetic")[language]
        item = rng.choice(self.words["items"])
        self.forms = item.split("|")  # of the noun: 1 apple, 2 apples
        self.slots = {"name": rng.choice(self.words["names"]), "item": self.forms[-1]}
        self.question: list[str] = []
        self.answer: list[str] = []
        self.total = rng.randint(3, 40)
        self.separator = "" if language in WITHOUT_SPACES else " "
        self.tell("start", "a_start", a=self.total)

    # -- words ---------------------------------------------------------------------
    def counted(self, n: int) -> str:
        """The number ``n`` with its noun, for example "3 apples"."""
        item = self.forms[self._form_for(n)]
        sentence: str = self.words["count"].format(n=n, item=item)
        return sentence

    def _form_for(self, n: int) -> int:
        """The index of the noun's form after ``n``; Russian has three forms."""
        if len(self.forms) != 3:
            return 0
        if n % 10 == 1 and n % 100 != 11:
            return 0
        if n % 10 in (2, 3, 4) and n % 100 not in (12, 13, 14):
            return 1
        return 2

    def text(self, key: str, slots: dict[str, int]) -> str:
        """The sentence for ``key``; if there are several, one at random."""
        template = self.words[key]
        if not isinstance(template, str):
            template = self.rng.choice(template)

        def count(match: re.Match[str]) -> str:
            return self.counted(slots[match[1]])

        template = COUNTED.sub(count, template)
        sentence: str = template.format_map({**self.slots, **slots})
        return sentence

    def tell(self, question: str, answer: str, **slots: int) -> None:
        """Adds a sentence to the question, and one to the answer."""
        self.question.append(self.text(question, slots))
        self.answer.append(self.text(answer, slots))

    # -- what happens --------------------------------------------------------------
    def buy(self) -> bool:
        """Adds a purchase of b boxes with c items each, if it fits (see ``move``)."""
        b, c = self.rng.randint(2, 6), self.rng.randint(2, 9)
        return self.move("buy", self.total + b * c, b=b, c=c, bc=b * c)

    def get(self) -> bool:
        """Adds a gift of d items, if it fits."""
        d = self.rng.randint(2, 20)
        return self.move("get", self.total + d, d=d)

    def give(self) -> bool:
        """Gives e items away, if it fits."""
        e = self.rng.randint(2, 20)
        return self.move("give", self.total - e, e=e)

    def move(self, key: str, total: int, **slots: int) -> bool:
        """Adds a change if the new total is in 2 .. LIMIT; returns whether it did."""
        if not 2 <= total <= LIMIT:
            return False
        self.tell(key, f"a_{key}", x=self.total, y=total, **slots)
        self.total = total
        return True

    def end(self) -> int:
        """Asks for the total, or a share or multiple of it; returns the answer."""
        total, result = self.total, self.total
        factors = range(2, self.words.get("k_max", 6) + 1)
        shares = [k for k in factors if total % k == 0 and total > k]
        multiples = [k for k in factors if total * k <= LIMIT]

        questions = ["now"]
        if shares:
            questions += ["share", "share"]  # twice as often
        if multiples:
            questions.append("times")
        question = self.rng.choice(questions)

        slots = {}
        if question == "share":
            slots["k"] = self.rng.choice(shares)
            result = total // slots["k"]
        elif question == "times":
            slots["k"] = self.rng.choice(multiples)
            result = total * slots["k"]
        self.tell(f"ask_{question}", f"a_{question}", x=total, y=result, **slots)
        self.answer.append(self.text("final", {"y": result}))
        return result


def task(rng: random.Random, language: str) -> Task:
    """A story with two or three changes, one of which is a purchase of boxes."""
    story = _draw_story(rng, language)
    while story is None:  # a total was out of range
        story = _draw_story(rng, language)
    result = story.end()

    category = "gsm8k" if language == "en" else f"mgsm_{language}"
    question, answer = story.separator.join(story.question), "\n".join(story.answer)
    facts: dict[str, Any] = {"answer": result}
    return Task(category, ((question, answer),), facts)


def _draw_story(rng: random.Random, language: str) -> Story | None:
    """A story without its final question; None if a total was out of range."""
    story = Story(rng, language)
    moves = ["buy", "get", "give"]
    if rng.random() < 0.5:
        del moves[rng.choice([1, 2])]
    rng.shuffle(moves)
    for move in moves:
        is_possible = getattr(story, move)()
        if not is_possible:
            return None
    return story
