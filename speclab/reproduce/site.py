"""``make site``: everything that can be read or moved without Python, as one folder.

The folder opens from disk and from any host, and asks nothing of the network. It is
made of what is committed: lessons with their stored outputs, the manual, the tables and
verdicts of the reports, and the docstrings. Nothing is measured for it. Only the runs
that move on its pages are computed, on the virtual clock.

======================  ==============================================================
``index.html``          what this is, a race that moves, three ways to go on
``lessons/``            the lessons, and the page for lecturers
``reports/``            all claims, a page per paper, the audit, the ledger
``manual/``             README, the pages under docs
``api/``                a page per folder of both packages, where pdoc is installed
======================  ==============================================================
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from speclab.papers.ledger import SAME_DEVICES_SUFFIX, VerdictLine, read_claims
from speclab.papers.load_papers import load_paper
from speclab.views.pages.lessons_page import (
    Lesson,
    describe_lesson,
    lesson_page,
    text_page,
)
from speclab.views.pages.site import (
    Part,
    addresses_from,
    api_page,
    dressed,
    front_page,
    lessons_page,
    report_page,
    room_page,
    with_exercise_notes,
    with_images,
    with_long_cells,
)
from speclib import paths
from speclib.atomic_files import write_atomically
from speclib.errors import BadValue, SpeclibError

from .api_reference import read_api
from .publish import items_by_paper
from .races import FRONT, compute, races_of_lesson

MOST_BYTES = 25_000_000  # of the whole site
MARK = ".speclib-site"  # a file by which a folder is known to be a site of ours
TITLE = re.compile(r"^# (.+)$", re.M)
# What is copied as it is. The Markdown of the reports is, too.
DATA_FILES = ("ledger.csv", "claims.csv", "bench.csv", "timeline.png")


class Source(NamedTuple):
    """A file of the repository with its page: its path, and the page's in the site."""

    path: Path
    page: str

    @property
    def folder(self) -> str:
        """The folder in which it lies in the repository."""
        return self.path.parent.relative_to(_root_of(self.path)).as_posix()

    @property
    def name(self) -> str:
        """Its path in the repository."""
        return self.path.relative_to(_root_of(self.path)).as_posix()


@dataclass(frozen=True)
class BuiltSite:
    """What a call wrote: how many pages and bytes, and whether the API is among it."""

    folder: Path
    pages: int
    size: int
    has_api: bool


def build_site(out: Path, *, api: bool | None = None) -> BuiltSite:
    """Writes the site into the folder ``out``, in place of one that is there.

    ``api``: with the API's pages; None: if pdoc, which reads the docstrings, is
    installed.

    Raises SpeclibError where ``out`` holds something else, and where the site is larger
    than ``MOST_BYTES``. An older site then stays as it was.
    """
    if not _may_be_replaced(out):
        raise BadValue(
            f"{out} is there and is no site of speclib: give another folder, or empty "
            "this one"
        )
    part = out.with_name(f"{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        site = _write_site(part, _has_pdoc() if api is None else api)
        if site.size > MOST_BYTES:
            raise SpeclibError(
                f"the site has {site.size / 1e6:.1f} MB, and {MOST_BYTES / 1e6:.0f} MB "
                "is the most that it may have: see what is large under "
                f"{', '.join(_largest(part))}"
            )
        shutil.rmtree(out, ignore_errors=True)
        part.rename(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return BuiltSite(out, site.pages, site.size, site.has_api)


def _may_be_replaced(out: Path) -> bool:
    """Whether there is nothing, an empty folder, or an older site of ours."""
    if not out.exists():
        return True
    return out.is_dir() and ((out / MARK).is_file() or not any(out.iterdir()))


def _has_pdoc() -> bool:
    return find_spec("pdoc") is not None


def _write_site(folder: Path, has_api: bool) -> BuiltSite:
    parts = [
        Part("Lessons", "lessons/index.html"),
        Part("Report", "reports/index.html"),
        Part("Audit", "reports/audit.html"),
        Part("Manual", "manual/index.html"),
    ]
    if has_api:
        parts.append(Part("API", "api/index.html"))

    pages = 0
    for page, html in _pages(has_api):
        write_atomically(folder / page, dressed(html, page, parts))
        pages += 1
    _copy_data(folder / "reports")
    write_atomically(folder / MARK, "")
    return BuiltSite(folder, pages, size_of(folder), has_api)


def size_of(folder: Path) -> int:
    """The bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _largest(folder: Path) -> list[str]:
    """The names of the three largest files of a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    files.sort(key=lambda path: path.stat().st_size, reverse=True)
    return [path.relative_to(folder).as_posix() for path in files[:3]]


def _pages(has_api: bool) -> Iterator[tuple[str, str]]:
    """Each page's path in the site with its HTML, before it gets its frame."""
    sources = list_sources()
    targets = _link_targets(sources)
    lessons = []
    for source in sources:
        addresses = addresses_from(source.page, targets)
        text = source.path.read_text("utf-8")
        if source.path.suffix == ".ipynb":
            lesson = describe_lesson(text, Path(source.page).name)
            lessons.append(lesson)
            yield source.page, _page_of_lesson(source, text, lesson, addresses)
        else:
            yield source.page, _page_of_text(source, text, addresses)

    claims = _claims()
    papers = {line.paper: load_paper(line.paper) for line in claims}
    yield "lessons/index.html", lessons_page(lessons)
    yield "reports/index.html", report_page(claims, papers)
    yield "index.html", front_page(compute(FRONT), len(lessons), count_claims(claims))
    if has_api:
        rooms, left_out = read_api()
        for room in rooms:
            yield f"api/{room.page}", room_page(room)
        yield "api/index.html", api_page(rooms, left_out)


def _page_of_lesson(
    source: Source, notebook: str, lesson: Lesson, addresses: dict[str, str]
) -> str:
    races = races_of_lesson(source.path.stem)
    html = lesson_page(notebook, lesson.title, source.folder, addresses, races)
    return with_exercise_notes(html, source.path.name)


def _page_of_text(source: Source, text: str, addresses: dict[str, str]) -> str:
    title = TITLE.search(text)
    heading = title[1] if title else source.path.stem
    html = text_page(text, heading, source.folder, addresses)
    return with_long_cells(with_images(html, source.folder, addresses))


# -- what it is made of ----------------------------------------------------------------
def list_sources() -> list[Source]:
    """Every lesson, text and report that gets a page."""
    root = paths.ROOT
    sources = [
        Source(root / "README.md", "manual/index.html"),
        Source(root / "CONTRIBUTING.md", "manual/contributing.html"),
        Source(root / "notebooks" / "LECTURERS.md", "lessons/lecturers.html"),
    ]
    for path in sorted((root / "docs").glob("*.md")):
        sources.append(Source(path, f"manual/{path.stem}.html"))
    for path in sorted((root / "notebooks" / "learn").glob("*.ipynb")):
        sources.append(Source(path, f"lessons/{path.stem}.html"))
    for path in sorted(_reports().glob("*.md")):
        sources.append(Source(path, f"reports/{path.stem}.html"))
    return sources


def _reports() -> Path:
    """The folder of the reports: those of this home, else the committed ones."""
    if (paths.REPORTS / "claims.csv").is_file():
        return paths.REPORTS
    return paths.ROOT / "reports"


def _root_of(path: Path) -> Path:
    """The folder of which a file's path in the repository is told."""
    return paths.ROOT if path.is_relative_to(paths.ROOT) else paths.HOME


def _claims() -> list[VerdictLine]:
    """The verdicts that stand beside the reports, but for papers that are no more."""
    papers = items_by_paper()
    lines = read_claims(_reports() / "claims.csv")
    return [line for line in lines if line.paper in papers]


def count_claims(lines: Iterable[VerdictLine]) -> int:
    """How many different claims have verdicts among these lines."""
    claims = set()
    for line in lines:
        claim = line.claim.removesuffix(SAME_DEVICES_SUFFIX)
        claims.add((line.paper, line.item, claim))
    return len(claims)


def _link_targets(sources: list[Source]) -> dict[str, str]:
    """Where the pages of files are in the site, by what other files call them.

    That is their path in the repository; lessons are also called by their name.
    """
    targets = {
        "reports": "reports/index.html",
        "reports/index.html": "reports/index.html",
        "docs": "manual/index.html",
    }
    for source in sources:
        targets[source.name] = source.page
        if source.path.suffix == ".ipynb":
            targets[source.path.name] = source.page
            targets[source.path.stem] = source.page
        if source.page.startswith("reports/"):
            targets[f"notebooks/reproduce/{source.path.stem}.ipynb"] = source.page
            targets[f"reports/{source.path.stem}.html"] = source.page
    for name in DATA_FILES:
        if (_reports() / name).is_file():
            targets[f"reports/{name}"] = f"reports/{name}"
    return targets


def _copy_data(folder: Path) -> None:
    """Puts the ledger and other data beside the pages of the reports."""
    names = [name for name in DATA_FILES if (_reports() / name).is_file()]
    for path in [_reports() / name for name in names] + [*_reports().glob("*.md")]:
        shutil.copyfile(path, folder / path.name)
