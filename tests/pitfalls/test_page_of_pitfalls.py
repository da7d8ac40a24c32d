"""docs/pitfalls.md names threads and tests that exist, and what it shows is so."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "pitfalls.md").read_text()
THREAD = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+")
OURS = sorted(Path(__file__).parent.glob("test_*.py"))


@cache
def functions_of(path: Path) -> dict[str, str]:
    """The tests of a file, with their docstrings."""
    functions = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            functions[node.name] = ast.get_docstring(node) or ""
    return functions


def our_tests() -> dict[str, str]:
    """The tests beside this one."""
    found = {}
    for path in OURS:
        if path != Path(__file__):
            found |= functions_of(path)
    return found


def test_every_test_on_the_page_exists():
    named = re.findall(r"`(?:(tests/[\w/]+\.py)(?:::)?)?(test_\w+)?`", PAGE)
    named = [(file, name) for file, name in named if file or name]
    assert len(named) > 40
    for file, name in named:
        tests = functions_of(ROOT / file) if file else our_tests()
        assert not name or name in tests, (file, name)


def test_every_test_here_is_on_the_page_with_each_thread_that_it_names():
    on_the_page = set(THREAD.findall(PAGE))
    for name, docstring in our_tests().items():
        threads = set(THREAD.findall(docstring))
        assert threads, f"{name} names no thread"
        assert f"`{name}`" in PAGE, name
        assert threads <= on_the_page, (name, threads - on_the_page)


def test_the_state_of_every_thread_is_told_and_none_is_listed_twice():
    links = re.findall(r"\[[^\]]+\]\((https://github\.com/[^)]+)\)", PAGE)
    assert len(links) == len(set(links)) > 60
    assert all(THREAD.fullmatch(link) for link in links)
    for item in re.split(r"\n(?=- \*\*|## )", PAGE):
        if THREAD.search(item):
            assert re.search(r"\((open|closed|merged)", item), item


def test_the_example_gives_what_stands_beside_it():
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    *lines, printed = block.strip().splitlines()
    names: dict = {}
    exec("\n".join(lines), names)
    answer = names["check"](names["raw_q"])
    assert answer.is_lossless is False
    assert f"off by {answer.largest_error:.2f}" in printed
