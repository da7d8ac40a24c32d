"""docs/pitfalls.md names existing tests; programs on pages print what is shown."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "pitfalls.md").read_text()
OURS = sorted(Path(__file__).parent.glob("test_*.py"))


@cache
def names_of_tests(path: Path) -> set[str]:
    """Returns the names of a file's tests."""
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


@pytest.mark.parametrize("page", ["pitfalls", "slower"])
def test_a_program_on_a_page_prints_the_output_shown_below_it(page, capsys):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    ((program, printed),) = re.findall(
        r"```python\n(.*?)```\n```text\n(.*?)```", text, re.S
    )
    exec(program, {})
    assert capsys.readouterr().out == printed
