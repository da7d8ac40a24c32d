"""docs/pitfalls.md names tests that exist, and its example is right."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "pitfalls.md").read_text()
OURS = sorted(Path(__file__).parent.glob("test_*.py"))


@cache
def names_of_tests(path: Path) -> set[str]:
    """The names of a file's tests."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            names.add(node.name)
    return names


def test_every_test_on_the_page_exists():
    named = re.findall(r"`(?:(tests/[\w/]+\.py)(?:::)?)?(test_\w+)?`", PAGE)
    named = [(file, name) for file, name in named if file or name]
    assert len(named) > 40
    for file, name in named:
        tests = (
            names_of_tests(ROOT / file)
            if file
            else set().union(*map(names_of_tests, OURS))
        )
        assert not name or name in tests, (file, name)


def test_the_example_gives_what_stands_beside_it():
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    *lines, printed = block.strip().splitlines()
    names: dict = {}
    exec("\n".join(lines), names)
    answer = names["check"](names["raw_q"])
    assert answer.is_lossless is False
    assert f"off by {answer.largest_error:.2f}" in printed
