"""The static site's own pages, and the frame that all of its pages get.

Most pages are those of the reports: lessons, texts, the index of claims. Here they get
a bar with the site's parts on top, links that lead from folder to folder, and a note at
each exercise. The front page, the list of lessons and the pages of the API are the
site's own. Knows no file, clock or library of the API: it is told what there is.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mistune import create_markdown

from speclab.papers.ledger import VerdictLine
from speclab.papers.paper_schema import Paper
from speclab.views.anchors import as_markdown_anchor, claim_anchor
from speclab.views.tables.markdown import section_heading

from .entry import PaperEntry, claim_entries, judged_in_file
from .index import index_page
from .layout import read_file, render
from .lessons_page import Addresses, Lesson, is_of_repository
from .places import Anchors
from .race import Race, race_figure

# The frame of the reports has a link of its own to their index.
HOME_OF_REPORTS = re.compile(r'<a class="home" href="[^"]*">All reports</a>')
IMAGE = re.compile(r'(<img\b[^>]*\bsrc=")([^"]*)(")')
CELL = re.compile(r"<td(?P<settings>[^>]*)>(?P<content>.*?)</td>", re.S)
LONG_CELL = 60  # letters
# A cell of a lesson that judges a student's function.
CHECK = re.compile(r'<div class="code"><pre>[^<]*\bteach\.check_[^<]*</pre></div>')
# Words that stand in columns, as where a docstring explains arguments.
IN_COLUMNS = re.compile(r"\S {2,}\S")

RENDER_MARKDOWN = create_markdown(escape=True)


class Part(NamedTuple):
    """A part of the site: its name in the bar, and its first page."""

    name: str
    page: str


# -- every page ------------------------------------------------------------------------
def relative(page: str, to: str) -> str:
    """The address of a file of the site, seen from ``page``."""
    return posixpath.relpath(to, posixpath.dirname(page) or ".")


def addresses_from(page: str, targets: Mapping[str, str]) -> dict[str, str]:
    """Where ``targets`` are, seen from ``page``, by what a text calls them."""
    return {name: relative(page, target) for name, target in targets.items()}


def dressed(html: str, page: str, parts: Sequence[Part]) -> str:
    """A page of the site with its frame: style, bar of parts, and a way to skip it."""
    bar = render(
        "site_bar.html",
        front=relative(page, "index.html"),
        parts=[part._replace(page=relative(page, part.page)) for part in parts],
        own=_part_of(page, parts),
    )
    style = f"<style>{read_file('site.css')}</style></head>"
    html = HOME_OF_REPORTS.sub("", html)
    html = html.replace("</head>", style, 1)
    html = html.replace("<body>", f"<body>{bar}", 1)
    return html.replace("<main", '<main id="content"', 1)


def _part_of(page: str, parts: Sequence[Part]) -> str:
    """The name of the part to which a page belongs; "" for none.

    That is the part that begins with this page, else the first one of its folder.
    """
    for part in parts:
        if part.page == page:
            return part.name
    folder = page.partition("/")[0]
    for part in parts:
        if posixpath.dirname(part.page) == folder:
            return part.name
    return ""


def with_images(html: str, folder: str, addresses: Addresses) -> str:
    """The page, with the pictures of the repository where the site has them.

    ``folder``: where the source of the page lies in the repository.
    """

    def placed(found: re.Match[str]) -> str:
        before, address, after = found.groups()
        path = posixpath.normpath(f"{folder}/{address}")
        if not is_of_repository(address) or path not in addresses:
            return found[0]
        return f"{before}{addresses[path]}{after}"

    return IMAGE.sub(placed, html)


def with_long_cells(html: str) -> str:
    """The page, with table cells of much text marked, so that they get enough width."""

    def marked(found: re.Match[str]) -> str:
        words = re.sub(r"<[^>]+>", "", found["content"])
        if len(words) <= LONG_CELL:
            return found[0]
        return f'<td class="long"{found["settings"]}>{found["content"]}</td>'

    return CELL.sub(marked, html)


def with_exercise_notes(html: str, notebook: str) -> str:
    """A lesson's page that says at each exercise how it is run.

    ``notebook``: the name of the lesson's file.
    """
    note = render("site_exercise.html", notebook=notebook)
    return CHECK.sub(lambda found: found[0] + note, html)


# -- pages of its own ------------------------------------------------------------------
def front_page(race: Race, lessons: int, claims: int) -> str:
    """The first page: what this is, a race that moves, and three ways to go on.

    ``lessons`` and ``claims``: how many there are.
    """
    return render(
        "site_front.html",
        title="speclib: parallel speculative decoding",
        index_style=read_file("index.css"),
        race=race_figure(race),
        lessons=lessons,
        claims=claims,
    )


def lessons_page(lessons: Sequence[Lesson]) -> str:
    """The list of lessons, and how their exercises are run."""
    return render(
        "site_lessons.html",
        title="Lessons",
        index_style=read_file("index.css"),
        lessons=lessons,
    )


def report_page(lines: Iterable[VerdictLine], papers: Mapping[str, Paper]) -> str:
    """The index of all claims, with the verdicts of ``lines``."""
    lines = list(lines)
    entries = []
    for key, paper in papers.items():
        judged = judged_in_file(line for line in lines if line.paper == key)
        entries.append(PaperEntry(paper, claim_entries(paper, judged)))
    anchors = {key: _text_anchors(paper) for key, paper in papers.items()}
    made = {"made": "from the verdicts in reports/claims.csv"}
    return index_page(entries, made, anchors, has_audit=True)


def _text_anchors(paper: Paper) -> Anchors:
    """The anchors of a paper's page that is made of its Markdown text.

    A claim's is the heading of its table or figure.
    """
    anchors = {}
    for table in paper.tables.values():
        heading = section_heading(table.item, table.title)
        for claim in table.claims:
            anchors[claim_anchor(table.item, claim.id)] = as_markdown_anchor(heading)
    return anchors


# -- the API ---------------------------------------------------------------------------
class ApiMember(NamedTuple):
    """A function, class, method or value, as its page shows it.

    ``head`` is its first line of code, ``text`` its docstring.
    """

    anchor: str
    name: str
    head: str
    text: str
    members: tuple[ApiMember, ...] = ()


class ApiModule(NamedTuple):
    """A module of a room: its name, docstring and public members."""

    name: str
    text: str
    members: tuple[ApiMember, ...]

    @property
    def anchor(self) -> str:
        """Its anchor, which no member has: a function may be called as its module."""
        return f"module-{self.name}"

    @property
    def about(self) -> str:
        """The first sentence of its docstring, without marks."""
        first = " ".join(self.text.partition("\n\n")[0].split()).replace("`", "")
        return first.partition(". ")[0].rstrip(".:")


class ApiRoom(NamedTuple):
    """A page of the API: a folder of a package with all modules in it."""

    name: str
    page: str
    modules: tuple[ApiModule, ...]


def room_page(room: ApiRoom) -> str:
    """The page of a room, with a table of contents."""
    return render(
        "site_api_room.html", title=room.name, room=room, docstring=docstring_html
    )


def api_page(rooms: Sequence[ApiRoom], left_out: Sequence[str]) -> str:
    """The list of all rooms and modules.

    ``left_out``: modules that could not be read, each with the reason.
    """
    return render("site_api.html", title="The API", rooms=rooms, left_out=left_out)


def docstring_html(text: str) -> str:
    """A docstring as HTML: Markdown, but for what stands in columns or is drawn.

    A paragraph keeps its lines as they are if one of them is indented or has columns,
    unless it is a list.
    """
    parts: list[str] = []
    prose: list[str] = []  # paragraphs that wait to be rendered

    def render_prose() -> None:
        if prose:
            parts.append(str(RENDER_MARKDOWN("\n\n".join(prose))))
        prose.clear()

    for paragraph in text.split("\n\n"):
        if _is_drawn(paragraph):
            render_prose()
            parts.append(render("site_drawn.html", drawn=paragraph.strip("\n")))
        else:
            prose.append(re.sub(r"::$", ":", paragraph))
    render_prose()
    return "".join(parts)


def _is_drawn(paragraph: str) -> bool:
    if paragraph.startswith("- "):
        return False
    lines = paragraph.split("\n")
    return any(line.startswith(" ") or IN_COLUMNS.search(line) for line in lines)
