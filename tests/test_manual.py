"""README, CONTRIBUTING and the pages under docs name things that exist."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from speclib.methods import METHODS

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md")))


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_the_manual_names_commands_and_files_that_exist():
    commands = set()
    for page in PAGES:
        commands |= set(
            re.findall(r"(?:^|`|=1 )make ([a-z-]+)", page.read_text(), re.M)
        )
    assert {"reproduce", "test", "lab"} <= commands

    makefile = (ROOT / "Makefile").read_text()
    assert commands <= set(re.findall(r"^([a-z-]+):", makefile, re.M))

    files = ("LICENSE", "CITATION.cff", "CONTRIBUTING.md", "docs", "environment.yml")
    for name in files:
        assert (ROOT / name).exists()


# -- links -----------------------------------------------------------------------------
def links_of(page: Path) -> list[str]:
    """Returns the targets of a page's links, except those to other sites."""
    targets = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    return [target for target in targets if not target.startswith("https://")]


def anchors_of(page: Path) -> set[str]:
    """Returns what may follow # in a link: GitHub's anchors of all headings."""
    anchors = set()
    for heading in re.findall(r"^#+ (.+)$", page.read_text(), re.M):
        plain = re.sub(r"[^\w\- ]", "", heading.lower())
        anchors.add(plain.replace(" ", "-"))
    return anchors


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_an_existing_file_and_heading(page):
    for link in links_of(page):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors_of(target), link


def test_the_readme_links_to_every_page_of_the_manual():
    linked = {(ROOT / link).resolve() for link in links_of(ROOT / "README.md")}
    assert set(PAGES) - {ROOT / "README.md"} <= linked


def test_every_method_is_in_the_manuals_table_of_methods():
    table = (ROOT / "docs" / "use.md").read_text().split("## The methods")[1]
    rows = table.split("\n\n")[0].splitlines()
    for name in METHODS:
        assert any(f"`{name}`" in row.split("|")[1] for row in rows[3:]), name


# -- code ------------------------------------------------------------------------------
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_code_on_a_page_is_valid(page):
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
        if not block.startswith("!"):  # a notebook's shell command
            ast.parse(block)


# -- the drawing of the house ----------------------------------------------------------
def floors_drawn() -> dict[str, list[str]]:
    """Returns each package in the drawing, with its floors from top to bottom."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    (drawing,) = re.findall(r"```\n(speclab/.*?)```", page, re.S)
    floors: dict[str, list[str]] = {}
    package = ""
    for line in drawing.splitlines():
        if opening := re.match(r"(\w+)/ ", line):
            package = opening[1]
            floors[package] = []
        elif floor := re.match(r"  ([a-z_]+(?: \| [a-z_]+)*)(?:  |$)", line):
            floors[package].append(floor[1])
    return floors


def test_the_drawing_of_the_house_agrees_with_the_import_contracts():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    floors = {}
    for contract in settings["importlinter"]["contracts"]:
        if contract["type"] == "layers":
            (package,) = contract["containers"]
            floors[package] = contract["layers"]
    assert floors_drawn() == floors
