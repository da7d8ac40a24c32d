"""Pages of the lessons: their stored outputs, and links that lead from page to page.

A lesson names other files of the repository, such as `20_pearl.ipynb`, or links to
them. On its page these become links to the pages that were made of them. Nothing is run
for it. Knows no folder and no clock.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from typing import NamedTuple

from speclib.errors import BadValue

from .notebook import markdown_page, notebook_page
from .race import Race

NOTE = (
    "Quizzes answer here, and pictures with a Play button move; the rest are stored "
    "outputs. In JupyterLab (make lab) every slider moves, and exercises answer."
)
TITLE = re.compile(r"^# (.+)$", re.M)
LEARN = re.compile(r"^\*\*You learn\*\* (.+?\.)(?:\s|$)", re.M | re.S)
TIME = re.compile(r"^\*\*Time\*\* (\d+) minutes", re.M)
# A link of a page, or a name written as code that is in no link.
LINK_OR_CODE = re.compile(
    r'<a\b[^>]*href="(?P<address>[^"]*)"[^>]*>(?P<text>.*?)</a>'
    r"|<code>(?P<code>[^<]+)</code>",
    re.S,
)
# Addresses of the pages that were made, by the path of the file in the repository.
Addresses = Mapping[str, str]


class Lesson(NamedTuple):
    """What the index says of a lesson; ``page`` is where its page is."""

    number: str  # as other lessons call it
    title: str
    minutes: int
    learn: str  # what goes on after "You learn", up to the end of the sentence
    page: str


def describe_lesson(notebook: str, page: str) -> Lesson:
    """What the head of a lesson (a notebook's JSON text) says.

    ``page``: the address of its page, whose name begins with the lesson's number.

    Raises BadValue where the head lacks the title, the minutes or what one learns.
    """
    first_cell = json.loads(notebook)["cells"][0]
    head = "".join(first_cell["source"])
    title, learn, time = TITLE.search(head), LEARN.search(head), TIME.search(head)
    if title is None or learn is None or time is None:
        raise BadValue(
            f"the head of the lesson for {page} lacks a title, '**You learn**' or "
            "'**Time** 5 minutes'"
        )
    number = posixpath.basename(page).partition("_")[0]
    words = re.sub("[*`]", "", learn[1]).split()
    return Lesson(number, title[1], int(time[1]), " ".join(words), page)


def lesson_page(
    notebook: str,
    title: str,
    folder: str,
    addresses: Addresses,
    races: Mapping[str, Race] | None = None,
) -> str:
    """The page of a lesson, a notebook's JSON text that lies in ``folder``.

    ``races``: those that stand in it, by a piece of their cell's source.
    """
    page = notebook_page(notebook, title, up="../", note=NOTE, races=races)
    return with_links(page, folder, addresses)


def text_page(markdown: str, title: str, folder: str, addresses: Addresses) -> str:
    """The page of a Markdown text that lies in ``folder`` of the repository."""
    page = markdown_page(markdown, title, up="../")
    return with_links(page, folder, addresses)


def with_links(page: str, folder: str, addresses: Addresses) -> str:
    """The page, with links to the pages of all files that it names or links to.

    ``folder``: where the source of the page lies in the repository, by which its own
    links are read. A link to a file without a page becomes plain text.
    """

    def linked(found: re.Match[str]) -> str:
        if found["code"] is not None:
            address = addresses.get(found["code"], "")
            return f'<a href="{address}">{found[0]}</a>' if address else found[0]
        if not is_of_repository(found["address"]):
            return found[0]
        path, hash_sign, anchor = found["address"].partition("#")
        address = addresses.get(posixpath.normpath(f"{folder}/{path}"), "")
        if not address:
            return found["text"]
        return f'<a href="{address}{hash_sign}{anchor}">{found["text"]}</a>'

    before, main_tag, main = page.partition("<main>")
    return before + main_tag + LINK_OR_CODE.sub(linked, main)


def is_of_repository(address: str) -> bool:
    """Whether a link leads to another file beside the source of its page."""
    return ":" not in address and not address.startswith("#")
