"""MT-bench's reasoning and math: questions with step-by-step answers.

All numbers and conclusions in answers are computed from the question. Each function
draws a question, a follow-up, and their answers. This module knows nothing of the other
categories.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from speclab.training.tasks.tasks import Task, Turn

TwoTurns: TypeAlias = tuple[Turn, Turn]
Kinds: TypeAlias = Mapping[str, Sequence[Callable[[random.Random], TwoTurns]]]

NAMES = ("Anna", "Ben", "Clara", "Leo", "Emma", "Max", "Nora", "Paul", "Julia", "Tom")
ORDERS = (
    ("tall", "taller", "tallest", "shortest"),
    ("old", "older", "oldest", "youngest"),
    ("fast", "faster", "fastest", "slowest"),
    ("strong", "stronger", "strongest", "weakest"),
)
KINDS = ("roses", "cats", "robots", "poets", "birds", "bakers", "stones", "ships")
TRAITS = ("quiet", "blue", "clever", "heavy", "friendly", "old", "round", "fast")
DIRECTIONS = ("north", "east", "south", "west")


def order(rng: random.Random) -> TwoTurns:
    """Who is the tallest of four people, given pairwise comparisons."""
    a, b, c, d = rng.sample(NAMES, 4)
    word, more, most, least = rng.choice(ORDERS)
    facts = [
        f"{a} is {more} than {b}.",
        f"{b} is {more} than {c}.",
        f"{c} is {more} than {d}.",
    ]
    rng.shuffle(facts)
    question = " ".join(facts) + f" Who is the {most}, and who is the {least}?"
    answer = (
        f"Let us put the facts in order. {a} is {more} than {b}, {b} is {more} than "
        f"{c}, and {c} is {more} than {d}. This gives the chain {a} > {b} > {c} > {d}. "
        f"The first one in the chain is {a} and the last one is {d}. So {a} is the "
        f"{most} and {d} is the {least}."
    )
    e = rng.choice([name for name in NAMES if name not in (a, b, c, d)])
    follow_up = f"Now {e} joins them. {e} is {more} than {a}. Who is the {most} now?"
    reply = (
        f"{e} is {more} than {a}, so {e} comes before {a} in the chain. The new chain "
        f"is {e} > {a} > {b} > {c} > {d}. So {e} is now the {most}, and {d} is still "
        f"the {least}. {a} falls from the first to the second place."
    )
    return (question, answer), (follow_up, reply)


def syllogism(rng: random.Random, names: Sequence[str] = NAMES) -> TwoTurns:
    """Whether something is possible, given that all A are B and no B is C."""
    a, b = rng.sample(KINDS, 2)
    t, u = rng.sample(TRAITS, 2)
    name = rng.choice(names)
    question = (
        f"All {a} in this story are {t}. Nothing that is {t} is {u}. {name} owns some "
        f"of the {a}. Can any of the {a} be {u}?"
    )
    answer = (
        f"No. We know that all {a} are {t}. We also know that nothing that is {t} is "
        f"{u}. So if one of the {a} were {u}, it would be {t} and {u} at the same "
        f"time, and that is not possible. Therefore none of the {a} can be {u}, and "
        f"this is also true for those that {name} owns."
    )
    follow_up = f"Some {b} are {u}. Can these {b} be {a}?"
    reply = (
        f"No, they cannot. These {b} are {u}. All {a} are {t}, and nothing that is {t} "
        f"is {u}. So something that is {u} is not {t}, and what is not {t} cannot be "
        f"one of the {a}. Therefore the {b} that are {u} are not {a}."
    )
    return (question, answer), (follow_up, reply)


def walk(rng: random.Random, names: Sequence[str] = NAMES) -> TwoTurns:
    """The direction that a person faces after three turns."""
    name, heading = rng.choice(names), rng.randrange(4)
    first_heading = heading
    turns = [rng.choice(["right", "left"]) for _ in range(3)]
    steps = []
    for number, turn in enumerate(turns, 1):
        before = heading
        heading = (heading + (1 if turn == "right" else -1)) % 4
        steps.append(
            f"{number}. {name} looks {DIRECTIONS[before]} and turns {turn}: "
            f"now it is {DIRECTIONS[heading]}."
        )
    question = (
        f"{name} looks {DIRECTIONS[first_heading]} and turns {turns[0]}, then "
        f"{turns[1]}, then {turns[2]}. Where does {name} look now?"
    )
    answer = (
        "We follow every turn.\n"
        + "\n".join(steps)
        + f"\nAfter the three turns {name} looks {DIRECTIONS[heading]}."
    )
    back = (heading + 2) % 4
    follow_up = (
        f"And where does {name} look after turning around completely to face the other "
        "way?"
    )
    reply = (
        f"Before that {name} looks {DIRECTIONS[heading]}. To face the other way means "
        f"two turns in the same direction. The opposite of {DIRECTIONS[heading]} is "
        f"{DIRECTIONS[back]}. So {name} looks {DIRECTIONS[back]} at the end, and the "
        "way back begins there."
    )
    return (question, answer), (follow_up, reply)


def rectangle(rng: random.Random, lengths: tuple[int, int] = (2, 9)) -> TwoTurns:
    """Area and perimeter of a rectangle; ``lengths``: the shortest and the longest."""
    a, b, k = rng.randint(*lengths), rng.randint(2, 9), rng.randint(2, 4)
    question = (
        f"A rectangle is {a} metres long and {b} metres wide. "
        f"What are its area and its perimeter?"
    )
    answer = (
        f"The area of a rectangle is length times width: {a} * {b} = {a * b} square "
        "metres.\n"
        f"The perimeter is twice the sum of length and width. The sum is {a} + {b} = "
        f"{a + b}, and twice that is 2 * {a + b} = {2 * (a + b)} metres.\n"
        f"So the area is {a * b} square metres and the perimeter is {2 * (a + b)} "
        "metres."
    )
    follow_up = f"How does the area change if the length becomes {k} times as long?"
    reply = (
        f"The new length is {k} * {a} = {k * a} metres, and the width is still {b} "
        "metres. The area is length times width, so it also becomes "
        f"{k} times as large. The old area was {a} * {b} = {a * b} square metres, and "
        f"the new area is {k} times {a * b} square metres."
    )
    return (question, answer), (follow_up, reply)


def equation(rng: random.Random, added: tuple[int, int] = (2, 15)) -> TwoTurns:
    """The solution of ax + b = c; ``added``: the smallest and the largest b."""
    a, x, b = rng.randint(2, 9), rng.randint(2, 9), rng.randint(*added)
    c = a * x + b
    question = rng.choice(["Solve the equation {}.", "What is x in {}?"])
    question = question.format(f"{a}x + {b} = {c}")
    answer = (
        f"We solve the equation {a}x + {b} = {c} step by step.\n"
        f"1. Subtract {b} from both sides: {c} - {b} = {c - b}, so {a}x = {c - b}.\n"
        f"2. Divide both sides by {a}: {c - b} / {a} = {x}, so x = {x}.\n"
        f"The solution is x = {x}."
    )
    follow_up = "Check the result by putting it into the equation."
    reply = (
        f"We put x = {x} into the left side of {a}x + {b} = {c}.\n"
        f"1. Multiply: {a} * {x} = {a * x}.\n"
        f"2. Add: {a * x} + {b} = {c}.\n"
        f"The left side is {c} and the right side is {c}, so x = {x} is correct."
    )
    return (question, answer), (follow_up, reply)


def average(rng: random.Random) -> TwoTurns:
    """The average of three numbers, which is a whole number."""
    total = 1
    while total % 3 != 0:
        a, b, c = rng.randint(2, 30), rng.randint(2, 30), rng.randint(2, 30)
        total = a + b + c
    d = rng.randint(2, 9)
    question = f"What is the average of the three numbers {a}, {b} and {c}?"
    answer = (
        f"The average is the sum divided by the count.\n"
        f"1. The first two numbers give {a} + {b} = {a + b}.\n"
        f"2. With the third number it is {a + b} + {c} = {total}.\n"
        f"3. There are 3 numbers, so the average is {total} / 3 = {total // 3}.\n"
        f"The average of {a}, {b} and {c} is {total // 3}."
    )
    follow_up = f"What is the average if every number grows by {d}?"
    reply = (
        f"If every number grows by {d}, the sum grows by 3 * {d} = {3 * d}. Divided by "
        f"3, this is again {d}, so the average also grows by {d}. The old average was "
        f"{total // 3}, so the new average is {total // 3} + {d} = {total // 3 + d}."
    )
    return (question, answer), (follow_up, reply)


KINDS_OF: Kinds = {
    "reasoning": (order, syllogism, walk),
    "math": (rectangle, equation, average),
}

# Training has drawn all questions of some kinds. Their held-out tasks use names and
# numbers that training never draws.
HELD_OUT_NAMES = (
    "Grace",
    "Oscar",
    "Iris",
    "Hugo",
    "Alice",
    "Simon",
    "Ruth",
    "Peter",
    "Helen",
    "Victor",
)
HELD_OUT_KINDS_OF: Kinds = {
    "reasoning": (
        order,
        partial(syllogism, names=HELD_OUT_NAMES),
        partial(walk, names=HELD_OUT_NAMES),
    ),
    "math": (
        partial(rectangle, lengths=(10, 14)),
        partial(equation, added=(16, 18)),
        average,
    ),
}


def task(rng: random.Random, category: str, kinds_of: Kinds = KINDS_OF) -> Task:
    """One two-turn task of category `reasoning` or `math`."""
    draw = rng.choice(kinds_of[category])
    return Task(category, draw(rng))
