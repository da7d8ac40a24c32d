"""Arithmetic stories with their step-by-step answers, in eleven languages (GSM8K, MGSM).

Every equation in an answer is true, and the last one gives the stated result; numbers stay
below 100 so that a small model can learn to compute them. Knows nothing of other categories.
"""

from __future__ import annotations

import random
import re

from .tasks import Task, data

LANGUAGES = ("bn", "de", "en", "es", "fr", "ja", "ru", "sw", "te", "th", "zh")
COUNTED = re.compile(r"\[(\w+)\]")
EQUATION = re.compile(r"(\d+) ([-+*/]) (\d+) = \D*?(\d+)")
LIMIT = 99


class Story:
    """One story in one language: draws its numbers, collects question and answer sentences."""

    def __init__(self, rng: random.Random, language: str):
        self.rng, self.words = rng, data("arithmetic")[language]
        item = rng.choice(self.words["items"])
        self.forms = item.split("|")
        self.slots = {"name": rng.choice(self.words["names"]), "item": self.forms[-1]}
        self.question, self.answer, self.total = [], [], rng.randint(3, 40)
        self.spaced = language not in ("zh", "ja")
        self.tell("start", "a_start", a=self.total)

    def counted(self, n: int) -> str:
        """The number `n` with its noun, e.g. '3 apples'; Russian picks one of three forms."""
        if len(self.forms) == 3:
            few = n % 10 in (2, 3, 4) and n % 100 not in (12, 13, 14)
            form = 0 if n % 10 == 1 and n % 100 != 11 else 1 if few else 2
        else:
            form = 0
        return self.words["count"].format(n=n, item=self.forms[form])

    def text(self, key: str, slots: dict) -> str:
        template = self.words[key]
        template = template if isinstance(template, str) else self.rng.choice(template)
        template = COUNTED.sub(lambda m: self.counted(slots[m[1]]), template)
        return template.format_map(self.slots | slots)

    def tell(self, question: str, answer: str, **slots: int) -> None:
        self.question.append(self.text(question, slots))
        self.answer.append(self.text(answer, slots))

    def buy(self) -> bool:
        b, c = self.rng.randint(2, 6), self.rng.randint(2, 9)
        return self.move("buy", self.total + b * c, b=b, c=c, bc=b * c)

    def get(self) -> bool:
        d = self.rng.randint(2, 20)
        return self.move("get", self.total + d, d=d)

    def give(self) -> bool:
        e = self.rng.randint(2, 20)
        return self.move("give", self.total - e, e=e)

    def move(self, key: str, total: int, **slots: int) -> bool:
        """Tell one change if the new total stays between 2 and LIMIT; say whether it did."""
        if not 2 <= total <= LIMIT:
            return False
        self.tell(key, f"a_{key}", x=self.total, y=total, **slots)
        self.total = total
        return True

    def end(self) -> int:
        """Ask for the total, its share or its multiple; return the final number."""
        top = self.words.get("k_max", 6)
        shares = [
            k for k in range(2, top + 1) if self.total % k == 0 and self.total > k
        ]
        times = [k for k in range(2, top + 1) if self.total * k <= LIMIT]
        ways = ["now"] + ["share"] * 2 * bool(shares) + ["times"] * bool(times)
        way, x, y = self.rng.choice(ways), self.total, self.total
        slots = {}
        if way != "now":
            slots["k"] = self.rng.choice(shares if way == "share" else times)
            y = x // slots["k"] if way == "share" else x * slots["k"]
        self.tell(f"ask_{way}", f"a_{way}", x=x, y=y, **slots)
        self.answer.append(self.text("final", {"y": y}))
        return y

    def join(self, sentences: list[str]) -> str:
        return (" " if self.spaced else "").join(sentences)


def task(rng: random.Random, language: str) -> Task:
    """One story with two or three changes, at least one of them a purchase of boxes."""
    while True:
        story = Story(rng, language)
        moves = ["buy", "get", "give"]
        if rng.random() < 0.5:
            del moves[rng.choice([1, 2])]
        rng.shuffle(moves)
        if all(
            getattr(story, move)() for move in moves
        ):  # else a total left the range: redraw
            break
    result = story.end()
    turns = ((story.join(story.question), "\n".join(story.answer)),)
    return Task(
        "gsm8k" if language == "en" else f"mgsm_{language}", turns, {"answer": result}
    )
