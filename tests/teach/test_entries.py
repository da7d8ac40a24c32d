"""Links to Binder and Colab: none before the repository has an address, then right
ones.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from helpers.markdown import marked

from speclab.teach.entries import entries, write_entries
from speclib import SpeclibError
from speclib.paths import stated_address

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "https://github.com/somebody/some-name"


def links(text: str) -> list[str]:
    return re.findall(r"\]\((https://[^)]+)\)", text)


def test_the_page_on_installing_has_the_links_of_the_stated_address():
    address = stated_address((ROOT / "CITATION.cff").read_text("utf-8"))
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    assert marked(page, "entries").strip() == entries(address)
    if not address:
        assert links(marked(page, "entries")) == []


@pytest.mark.parametrize("quote", ['"', "'", ""])
def test_the_address_is_read_from_the_citation_file(quote, tmp_path):
    citation, page = tmp_path / "CITATION.cff", tmp_path / "install.md"
    citation.write_text(f"title: x\nrepository-code: {quote}{ADDRESS}{quote}\n")
    page.write_text("before\n<!-- entries -->\nold\n<!-- /entries -->\nafter\n")
    write_entries(page, citation)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert ADDRESS in text


@pytest.mark.parametrize("ending", ["", "/", ".git"])
def test_the_links_lead_to_a_lesson_that_there_is(ending):
    _badge, binder, colab = links(entries(ADDRESS + ending))
    binder, colab = urlsplit(binder), urlsplit(colab)
    assert binder.path == "/v2/gh/somebody/some-name/HEAD"
    ((opened,),) = parse_qs(binder.query).values()
    place, _, lesson = opened.partition("lab/tree/")
    assert place == ""
    assert (ROOT / lesson).is_file()

    repository, _, file = colab.path.partition("/blob/main/")
    assert repository == "/github/somebody/some-name"
    assert (ROOT / file).is_file()


def test_the_first_cell_of_colab_is_python_but_for_its_two_commands():
    (cell,) = re.findall(r"```python\n(.*?)```", entries(ADDRESS), re.S)
    commands = [line for line in cell.splitlines() if line.startswith(("!", "%"))]
    assert commands == [
        f"!git clone --quiet --depth 1 {ADDRESS} speclib",
        '%pip install --quiet -e "speclib[lab,models]"',
    ]
    rest = [line for line in cell.splitlines() if line not in commands]
    assert ast.parse("\n".join(rest)).body


def test_an_address_that_colab_cannot_open_is_an_error():
    with pytest.raises(SpeclibError, match="github.com/<owner>/<name>"):
        entries("https://example.org/somebody/some-name")


def test_binder_installs_the_same_pins_and_a_torch_of_the_same_version():
    text = (ROOT / ".binder" / "environment.yml").read_text()
    pip = re.findall(r"^      - (.+)$", text, re.M)
    assert pip == ["-r ../requirements.lock", "-e .."]
    lock = (ROOT / "requirements.lock").read_text()
    torch = re.search(r"^torch==(.+)$", lock, re.M)[1]
    assert f"  - pytorch-cpu={torch}\n" in text
    python = r"^  - python=.+$"
    root = (ROOT / "environment.yml").read_text()
    assert re.findall(python, text, re.M) == re.findall(python, root, re.M)
