"""Small list functions in HumanEval's format, put together from parts, with examples and tests.

The docstring decides the function; examples and tests are computed by running the solution.
Also the interpreter's own standard library as plain code text. Knows nothing of dialogues.
"""

from __future__ import annotations

import random
import sysconfig
from pathlib import Path

from .tasks import Task, data

TYPING = ("List", "Optional", "Set", "Dict")
INDENT = "    "


def fill(template: str, slots: dict) -> str:
    """Replace `{name}` of every slot; other braces are code and stay."""
    for name, value in slots.items():
        template = template.replace("{" + name + "}", str(value))
    return template


def function(rng: random.Random) -> dict:
    """Draw one function: its entry point, signature, docstring sentence and body."""
    kind = data("code")[rng.choice(["numbers", "words"])]
    argument = rng.choice(kind["arguments"])
    keep, change, collect = (
        rng.choice(kind[part]) for part in ("keep", "change", "collect")
    )
    n = rng.randint(2, 9 if kind["type"] == "List[int]" else 4)
    c = rng.choice("abelmnostu")
    slots = {"x": kind["element"][argument], "n": n, "c": c, "all": argument}
    slots["y"] = change["step"].split(" =")[0] if "step" in change else slots["x"]
    slots["kept"] = fill(keep["words"], slots)
    slots["changed"] = fill(change["words"], slots)
    names = [collect["name"], "of", change["name"], keep["name"], argument]
    entry = "_".join(name for name in names if name)
    body = [
        f"# {collect['comment']}",
        fill(collect["start"], slots),
        f"for {slots['x']} in {argument}:",
        INDENT + f"# Skip everything but the {slots['kept']}.",
        INDENT + f"if {fill(keep['skip'], slots)}:",
        INDENT * 2 + "continue",
        INDENT + f"# {change['comment']}",
        *([INDENT + fill(change["step"], slots)] if "step" in change else []),
        INDENT + fill(collect["step"], slots),
        f"return {fill(collect['end'], slots)}",
    ]
    return {
        "entry_point": entry,
        "types": (kind["type"], collect["type"]),
        "argument": argument,
        "sentence": fill(collect["words"], slots),
        "solution": "".join(f"{INDENT}{line}\n" for line in body),
        "samples": kind["samples"],
        "slots": slots,
        "parts": (keep, change, collect),
    }


def inputs(rng: random.Random, samples: list, count: int) -> list[list]:
    """`count` argument lists: words from `samples`, or integers within its two bounds."""
    lists = []
    for _ in range(count):
        size = rng.randint(3, 5)
        if isinstance(samples[0], int):
            lists.append([rng.randint(*samples) for _ in range(size)])
        else:
            lists.append(rng.sample(samples, size))
    return lists


def run(made: dict, argument: list) -> object:
    """What the solution returns for `argument`."""
    space: dict = {}
    exec(f"def {made['entry_point']}({made['argument']}):\n{made['solution']}", space)
    return space[made["entry_point"]](argument)


def shown(value: object) -> str:
    """`repr`, with sets in sorted order so that the text is the same in every run."""
    if isinstance(value, set) and value:
        return "{" + ", ".join(repr(item) for item in sorted(value)) + "}"
    return repr(value)


def header(made: dict, calls: list[list]) -> str:
    """Import line, signature and docstring with one example per call."""
    needed = [
        name for name in TYPING if any(name + "[" in text for text in made["types"])
    ]
    lines = [f"from typing import {', '.join(needed)}", "", ""]
    argument = f"{made['argument']}: {made['types'][0]}"
    lines.append(f"def {made['entry_point']}({argument}) -> {made['types'][1]}:")
    lines.append(f'{INDENT}""" {made["sentence"]}')
    for call in calls:
        lines.append(f"{INDENT}>>> {made['entry_point']}({call!r})")
        lines.append(f"{INDENT}{shown(run(made, call))}")
    return "\n".join([*lines, f'{INDENT}"""', ""])


def task(rng: random.Random) -> Task:
    """One function to complete, with two examples in its docstring and four test calls."""
    made = function(rng)
    calls = inputs(rng, made["samples"], 6)
    tests = [
        f"    assert candidate({call!r}) == {shown(run(made, call))}"
        for call in calls[2:]
    ]
    facts = {
        "entry_point": made["entry_point"],
        "test": "\n\ndef check(candidate):\n" + "\n".join(tests) + "\n",
    }
    turn = (header(made, calls[:2]), made["solution"])
    return Task("humaneval", (turn,), facts, raw=True)


def dialogue(rng: random.Random) -> Task:
    """A request for a function, then for an explanation or an example (MT-bench, coding)."""
    made = function(rng)
    keep, change, _ = made["parts"]
    sentence = made["sentence"][0].lower() + made["sentence"][1:-1]
    ask = rng.choice(
        ["Write a Python function that will {s}.", "Implement this in Python: {s}."]
    )
    call = inputs(rng, made["samples"], 1)[0]
    head = f"def {made['entry_point']}({made['argument']}):"
    first = (
        f"Here is a function `{made['entry_point']}` that does this:\n"
        f"```python\n{head}\n{made['solution']}```\n"
    )
    explain = (
        f"1. {made['solution'].split('# ')[1].splitlines()[0]}\n"
        f"2. The loop goes through all {made['argument']}, one {made['slots']['x']} at a time.\n"
        f"3. It skips everything but the {made['slots']['kept']}.\n"
        f"4. {change['comment']}\n"
        f"5. At the end it returns `{made['solution'].split('return ')[-1].strip()}`."
    )
    shorter = (
        "Yes. A test calls the function with a small list and compares the result:\n"
        f"```python\ndef test_{made['entry_point']}():\n"
        f"    {made['argument']} = {call!r}\n"
        f"    result = {made['entry_point']}({made['argument']})\n"
        f"    assert result == {shown(run(made, call))}\n```\n"
        f"The list also holds {made['argument']} that the function must skip."
    )
    second = rng.choice(
        [
            (
                "Explain step by step how it works.",
                "It works in five steps:\n" + explain,
            ),
            (f"Can you write a test for it with the list {call!r}?", shorter),
        ]
    )
    return Task("coding", ((ask.format(s=sentence), first), second))


def library(rng: random.Random, characters: int) -> list[str]:
    """About `characters` of standard library source, cut into pieces at top-level definitions."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(root.glob("*.py")) + sorted((root / "json").glob("*.py"))
    rng.shuffle(files)
    pieces, size = [], 0
    for file in files:
        source = file.read_text(encoding="utf-8", errors="ignore")
        for piece in source.split("\n\n\n"):
            if 200 < len(piece) < 2000 and piece.isascii():
                pieces.append(piece + "\n")
                size += len(piece)
        if size > characters:
            break
    return pieces
