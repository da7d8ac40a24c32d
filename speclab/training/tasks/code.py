"""Small list functions in HumanEval's format, with examples and tests.

A function is a combination of three parts: which elements to keep, how to change each,
and how to collect them. The docstring determines the function; the examples and tests
are computed by running the solution. In addition, ``library`` returns part of the
interpreter's standard library as text.
"""

from __future__ import annotations

import random
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from speclab.training.tasks.tasks import Task, Turn, data

Part: TypeAlias = Mapping[str, str]  # part of a function, from data/corpus/code.toml

TYPING = ("List", "Optional", "Set", "Dict")
INDENT = "    "
EXAMPLES, TESTS = 2, 4  # calls shown in a docstring, and calls to test a solution


# -- one function ----------------------------------------------------------------------
@dataclass(frozen=True)
class Function:
    """A function drawn at random; ``solution`` is its body.

    ``sentence`` describes it. ``samples`` contains the words for its list, or the
    lowest and the highest number.
    """

    name: str
    argument: str
    argument_type: str
    return_type: str
    sentence: str
    solution: str
    samples: list[Any]
    element: str  # the loop variable
    kept: str  # which elements are kept, in words
    change: Part

    def __call__(self, argument: list[Any]) -> object:
        """The solution's result for ``argument``."""
        space: dict[str, Any] = {}
        exec(f"def {self.name}({self.argument}):\n{self.solution}", space)
        return space[self.name](argument)


def function(rng: random.Random) -> Function:
    """Draws one function."""
    kind = data("code")[rng.choice(["numbers", "words"])]
    argument = rng.choice(kind["arguments"])
    keep: Part = rng.choice(kind["keep"])
    change: Part = rng.choice(kind["change"])
    collect: Part = rng.choice(kind["collect"])

    element = kind["element"][argument]
    slots = {
        "x": element,
        "n": rng.randint(2, 9 if kind["type"] == "List[int]" else 4),
        "c": rng.choice("abelmnostu"),
        "all": argument,
        "y": element,  # the changed element
    }
    if "step" in change:
        slots["y"] = change["step"].split(" =")[0]
    slots["kept"] = fill(keep["words"], slots)
    slots["changed"] = fill(change["words"], slots)

    name_parts = [collect["name"], "of", change["name"], keep["name"], argument]
    return Function(
        name="_".join(part for part in name_parts if part),
        argument=argument,
        argument_type=kind["type"],
        return_type=collect["type"],
        sentence=fill(collect["words"], slots),
        solution=_solution(slots, keep, change, collect),
        samples=kind["samples"],
        element=element,
        kept=slots["kept"],
        change=change,
    )


def _solution(slots: Mapping[str, Any], keep: Part, change: Part, collect: Part) -> str:
    """The function's body: a loop that keeps, changes and collects elements."""
    lines = [
        f"# {collect['comment']}",
        fill(collect["start"], slots),
        f"for {slots['x']} in {slots['all']}:",
        INDENT + f"# Skip everything but the {slots['kept']}.",
        INDENT + f"if {fill(keep['skip'], slots)}:",
        INDENT * 2 + "continue",
        INDENT + f"# {change['comment']}",
    ]
    if "step" in change:
        lines.append(INDENT + fill(change["step"], slots))
    lines.append(INDENT + fill(collect["step"], slots))
    lines.append(f"return {fill(collect['end'], slots)}")
    return "".join(f"{INDENT}{line}\n" for line in lines)


def fill(template: str, slots: Mapping[str, Any]) -> str:
    """Replaces ``{name}`` for every slot. Other braces are code and stay."""
    for name, value in slots.items():
        template = template.replace("{" + name + "}", str(value))
    return template


def arguments(rng: random.Random, samples: list[Any], count: int) -> list[list[Any]]:
    """``count`` lists of words from ``samples``, or of integers within its bounds."""
    lists = []
    for _ in range(count):
        size = rng.randint(3, 5)
        if isinstance(samples[0], int):
            lists.append([rng.randint(*samples) for _ in range(size)])
        else:
            lists.append(rng.sample(samples, size))
    return lists


def shown(value: object) -> str:
    """``repr``, but with sets sorted, so that it is the same in every run."""
    if isinstance(value, set) and value:
        return "{" + ", ".join(repr(item) for item in sorted(value)) + "}"
    return repr(value)


# -- tasks -----------------------------------------------------------------------------
def task(rng: random.Random) -> Task:
    """A function to complete, with examples in its docstring, and tests."""
    made = function(rng)
    calls = arguments(rng, made.samples, EXAMPLES + TESTS)
    prompt = _header(made, calls[:EXAMPLES])
    facts = {"entry_point": made.name, "test": _tests(made, calls[EXAMPLES:])}
    return Task("humaneval", ((prompt, made.solution),), facts, raw=True)


def _header(made: Function, calls: list[list[Any]]) -> str:
    """The import line, signature and docstring, with one example per call."""
    types = (made.argument_type, made.return_type)
    imported = []
    for name in TYPING:
        if any(f"{name}[" in text for text in types):
            imported.append(name)

    signature = f"{made.argument}: {made.argument_type}"
    lines = [
        f"from typing import {', '.join(imported)}",
        "",
        "",
        f"def {made.name}({signature}) -> {made.return_type}:",
        f'{INDENT}""" {made.sentence}',
    ]
    for call in calls:
        lines.append(f"{INDENT}>>> {made.name}({call!r})")
        lines.append(f"{INDENT}{shown(made(call))}")
    lines += [f'{INDENT}"""', ""]
    return "\n".join(lines)


def _tests(made: Function, calls: list[list[Any]]) -> str:
    """HumanEval's ``check``, with one assertion per call."""
    lines = []
    for call in calls:
        lines.append(f"    assert candidate({call!r}) == {shown(made(call))}")
    return "\n\ndef check(candidate):\n" + "\n".join(lines) + "\n"


def dialogue(rng: random.Random) -> Task:
    """A request for a function, then one for its explanation or test (MT-bench)."""
    made = function(rng)
    request = rng.choice(
        ["Write a Python function that will {s}.", "Implement this in Python: {s}."]
    )
    call = arguments(rng, made.samples, 1)[0]
    wish = made.sentence[0].lower() + made.sentence[1:-1]  # no full stop
    first = (request.format(s=wish), _code_answer(made))
    second = rng.choice([_explanation(made), _test_request(made, call)])
    return Task("coding", (first, second))


def _code_answer(made: Function) -> str:
    return (
        f"Here is a function `{made.name}` that does this:\n"
        f"```python\ndef {made.name}({made.argument}):\n{made.solution}```\n"
    )


def _explanation(made: Function) -> Turn:
    """A second turn that explains the function."""
    first_comment = made.solution.split("# ")[1].splitlines()[0]
    returned = made.solution.split("return ")[-1].strip()
    answer = (
        "It works in five steps:\n"
        f"1. {first_comment}\n"
        f"2. The loop goes through all {made.argument}, one {made.element} at a time.\n"
        f"3. It skips everything but the {made.kept}.\n"
        f"4. {made.change['comment']}\n"
        f"5. At the end it returns `{returned}`."
    )
    return "Explain step by step how it works.", answer


def _test_request(made: Function, call: list[Any]) -> Turn:
    """A second turn that tests the function."""
    answer = (
        "Yes. A test calls the function with a small list and compares the result:\n"
        f"```python\ndef test_{made.name}():\n"
        f"    {made.argument} = {call!r}\n"
        f"    result = {made.name}({made.argument})\n"
        f"    assert result == {shown(made(call))}\n```\n"
        f"The list also holds {made.argument} that the function must skip."
    )
    return f"Can you write a test for it with the list {call!r}?", answer


# -- real code -------------------------------------------------------------------------
def library(rng: random.Random, characters: int) -> list[str]:
    """Pieces of the standard library, about ``characters`` characters in all.

    They are cut at top-level definitions.
    """
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
