"""MT-bench's reasoning and math: questions whose answers are worked out step by step.

Every number and every conclusion is computed here from what the question says. Knows nothing of
the other categories.
"""

from __future__ import annotations

import random

from .tasks import Task

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


def order(rng: random.Random) -> tuple:
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
        f"Let us put the facts in order. {a} is {more} than {b}, {b} is {more} than {c}, and "
        f"{c} is {more} than {d}. This gives the chain {a} > {b} > {c} > {d}. The first one in "
        f"the chain is {a} and the last one is {d}. So {a} is the {most} and {d} is the {least}."
    )
    e = rng.choice([name for name in NAMES if name not in (a, b, c, d)])
    second = f"Now {e} joins them. {e} is {more} than {a}. Who is the {most} now?"
    reply = (
        f"{e} is {more} than {a}, so {e} comes before {a} in the chain. The new chain is "
        f"{e} > {a} > {b} > {c} > {d}. So {e} is now the {most}, and {d} is still the {least}. "
        f"{a} falls from the first to the second place."
    )
    return (question, answer), (second, reply)


def syllogism(rng: random.Random) -> tuple:
    (a, b), (t, u), name = (
        rng.sample(KINDS, 2),
        rng.sample(TRAITS, 2),
        rng.choice(NAMES),
    )
    question = (
        f"All {a} in this story are {t}. Nothing that is {t} is {u}. {name} owns some of the {a}. "
        f"Can any of the {a} be {u}?"
    )
    answer = (
        f"No. We know that all {a} are {t}. We also know that nothing that is {t} is {u}. So if "
        f"one of the {a} were {u}, it would be {t} and {u} at the same time, and that is not "
        f"possible. Therefore none of the {a} can be {u}, and this is also true for those that "
        f"{name} owns."
    )
    second = f"Some {b} are {u}. Can these {b} be {a}?"
    reply = (
        f"No, they cannot. These {b} are {u}. All {a} are {t}, and nothing that is {t} is {u}. "
        f"So something that is {u} is not {t}, and what is not {t} cannot be one of the {a}. "
        f"Therefore the {b} that are {u} are not {a}."
    )
    return (question, answer), (second, reply)


def walk(rng: random.Random) -> tuple:
    name, heading = rng.choice(NAMES), rng.randrange(4)
    turns = [rng.choice(["right", "left"]) for _ in range(3)]
    steps, start = [], heading
    for way in turns:
        before, heading = heading, (heading + (1 if way == "right" else -1)) % 4
        steps.append(
            f"{name} looks {DIRECTIONS[before]} and turns {way}: "
            f"now it is {DIRECTIONS[heading]}."
        )
    question = (
        f"{name} looks {DIRECTIONS[start]} and turns {turns[0]}, then {turns[1]}, then {turns[2]}. "
        f"Where does {name} look now?"
    )
    answer = (
        "We follow every turn.\n"
        + "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
        + f"\nAfter the three turns {name} looks {DIRECTIONS[heading]}."
    )
    back = (heading + 2) % 4
    second = f"And where does {name} look after turning around completely to face the other way?"
    reply = (
        f"Before that {name} looks {DIRECTIONS[heading]}. To face the other way means two turns in "
        f"the same direction. The opposite of {DIRECTIONS[heading]} is {DIRECTIONS[back]}. So "
        f"{name} looks {DIRECTIONS[back]} at the end, and the way back begins there."
    )
    return (question, answer), (second, reply)


def rectangle(rng: random.Random) -> tuple:
    a, b, k = rng.randint(2, 9), rng.randint(2, 9), rng.randint(2, 4)
    question = (
        f"A rectangle is {a} metres long and {b} metres wide. "
        f"What are its area and its perimeter?"
    )
    answer = (
        f"The area of a rectangle is length times width: {a} * {b} = {a * b} square metres.\n"
        f"The perimeter is twice the sum of length and width. The sum is {a} + {b} = {a + b}, and "
        f"twice that is 2 * {a + b} = {2 * (a + b)} metres.\n"
        f"So the area is {a * b} square metres and the perimeter is {2 * (a + b)} metres."
    )
    second = f"How does the area change if the length becomes {k} times as long?"
    reply = (
        f"The new length is {k} * {a} = {k * a} metres, and the width is still {b} metres. The "
        f"area is length times width, so it also becomes {k} times as large. The old area was "
        f"{a} * {b} = {a * b} square metres, and the new area is {k} times {a * b} square metres."
    )
    return (question, answer), (second, reply)


def equation(rng: random.Random) -> tuple:
    a, x, b = rng.randint(2, 9), rng.randint(2, 9), rng.randint(2, 15)
    c = a * x + b
    question = rng.choice(["Solve the equation {}.", "What is x in {}?"])
    question = question.format(f"{a}x + {b} = {c}")
    answer = (
        f"We solve the equation {a}x + {b} = {c} step by step.\n"
        f"1. Subtract {b} from both sides: {c} - {b} = {c - b}, so {a}x = {c - b}.\n"
        f"2. Divide both sides by {a}: {c - b} / {a} = {x}, so x = {x}.\n"
        f"The solution is x = {x}."
    )
    second = "Check the result by putting it into the equation."
    reply = (
        f"We put x = {x} into the left side of {a}x + {b} = {c}.\n"
        f"1. Multiply: {a} * {x} = {a * x}.\n"
        f"2. Add: {a * x} + {b} = {c}.\n"
        f"The left side is {c} and the right side is {c}, so x = {x} is correct."
    )
    return (question, answer), (second, reply)


def average(rng: random.Random) -> tuple:
    while True:
        a, b, c = (rng.randint(2, 30) for _ in range(3))
        if (a + b + c) % 3 == 0:
            break
    total, d = a + b + c, rng.randint(2, 9)
    question = f"What is the average of the three numbers {a}, {b} and {c}?"
    answer = (
        f"The average is the sum divided by the count.\n"
        f"1. The first two numbers give {a} + {b} = {a + b}.\n"
        f"2. With the third number it is {a + b} + {c} = {total}.\n"
        f"3. There are 3 numbers, so the average is {total} / 3 = {total // 3}.\n"
        f"The average of {a}, {b} and {c} is {total // 3}."
    )
    second = f"What is the average if every number grows by {d}?"
    reply = (
        f"If every number grows by {d}, the sum grows by 3 * {d} = {3 * d}. Divided by 3, this is "
        f"again {d}, so the average also grows by {d}. The old average was {total // 3}, so the "
        f"new average is {total // 3} + {d} = {total // 3 + d}."
    )
    return (question, answer), (second, reply)


KINDS_OF = {
    "reasoning": (order, syllogism, walk),
    "math": (rectangle, equation, average),
}


def task(rng: random.Random, category: str) -> Task:
    """One two-turn task of category `reasoning` or `math`."""
    return Task(category, rng.choice(KINDS_OF[category])(rng))
