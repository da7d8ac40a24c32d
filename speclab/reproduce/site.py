"""``make site``: builds the manual, lessons, reports and API as pages without Python.

Sphinx builds them from the committed files, with ``docs/conf.py``. Nothing is measured;
only the animated races are computed, on the virtual clock. The pages open from disk and
work without a network.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path

from speclib import paths
from speclib.errors import BadValue, SpeclibError, how_to_install

from .race import OF_LESSONS, THREE_WAYS, race_html

MANUAL = [
    "install",
    "use",
    "engines",
    "slower",
    "sheet",
    "check",
    "pitfalls",
    "devices",
    "settings",
    "extend",
    "teach",
    "reproduce",
    "read-a-report",
    "numbers",
    "decisions",
]
OF_THE_PROJECT = ["CONTRIBUTING", "CHANGELOG", "CODE_OF_CONDUCT", "SECURITY"]
COPIED = (
    *(f"{name}.md" for name in OF_THE_PROJECT),
    "docs/*",
    "docs/_static/*",
    "notebooks/LECTURERS.md",
    "notebooks/learn/*.ipynb",
    "reports/*.md",
    "reports/*.csv",
    "reports/timeline.png",
)
FOLDER_LINK = re.compile(r"\]\(\.\./reports(/gpu)?\)")  # folders have no pages
MARK = ".buildinfo"  # a folder with this file was built by Sphinx
CONTENTS = """
```{{toctree}}
:hidden:
:caption: {caption}
:maxdepth: 1

{pages}
```
"""


def build_site(out: Path, *, api: bool = True) -> Path:
    """Writes the site into the folder ``out``, replacing an earlier site.

    Raises SpeclibError if ``out`` contains something else, or if Sphinx fails or warns.
    """
    try:
        from sphinx.cmd.build import build_main
    except ImportError as error:
        raise SpeclibError(
            f"Sphinx is not installed. {how_to_install('site')}"
        ) from error
    if out.exists() and any(out.iterdir()) and not (out / MARK).is_file():
        raise BadValue(
            f"{out} is not empty and is not a site: give another folder, or empty it"
        )
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder, "source"), Path(folder, "site")
        collect(source, api)
        words = ["-qW", "-j", "2", "-c", str(source / "docs"), str(source), str(built)]
        if build_main(words):
            raise SpeclibError("Sphinx failed; see its output above")
        shutil.rmtree(built / ".doctrees")
        shutil.rmtree(out, ignore_errors=True)
        shutil.move(built, out)
    return out


def collect(source: Path, api: bool) -> None:
    """Copies everything that becomes a page into the folder ``source``."""
    for pattern in COPIED:
        for path in sorted(paths.ROOT.glob(pattern)):
            if path.is_file():
                copy = source / path.relative_to(paths.ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
    for page in source.rglob("*.md"):
        text = page.read_text("utf-8")
        page.write_text(FOLDER_LINK.sub("](../reports/index.md)", text), "utf-8")
    _copy_pages_of_items(source / "reports")
    lessons = sorted(source.glob("notebooks/learn/*.ipynb"))
    for lesson in lessons:
        _prepare_lesson(lesson)
    _write_front_page(source, lessons, _write_api(source) if api else [])


def _copy_pages_of_items(reports: Path) -> None:
    """Copies the pages of each paper's items, and lists them on the paper's page."""
    for page in sorted(reports.glob("*.md")):
        items = sorted((paths.ROOT / "reports" / page.stem).glob("*.md"))
        if items:
            (reports / page.stem).mkdir()
        for item in items:
            shutil.copyfile(item, reports / page.stem / item.name)
        if items:
            names = "\n".join(f"{page.stem}/{item.stem}" for item in items)
            contents = CONTENTS.format(caption="Items", pages=names)
            page.write_text(page.read_text("utf-8") + contents, "utf-8")


def _prepare_lesson(lesson: Path) -> None:
    """Adds alternative texts to pictures, and replaces a race with an animated one."""
    notebook = json.loads(lesson.read_text("utf-8"))
    race = OF_LESSONS.get(lesson.stem)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if race and "speclab.explorer(" in "".join(cell["source"]):
                output["data"] = {"text/html": race_html(race)}
            elif "image/png" in data:
                words = "".join(data.get("text/plain", ""))
                cell["metadata"]["mystnb"] = {"image": {"alt": words}}
    lesson.write_text(json.dumps(notebook), "utf-8")


def _write_api(source: Path) -> list[str]:
    """Writes a page for each folder of speclib and for speclab's public names."""
    from sphinx.ext.apidoc import main

    folder = paths.ROOT / "speclib"
    words = ["-q", "--no-toc", "--module-first", "-o", str(source / "api")]
    main([*words, str(folder), str(folder / "__main__.py")])
    page = "speclab\n=======\n\n.. automodule:: speclab\n   :members:\n"
    (source / "api" / "speclab.rst").write_text(page, "utf-8")
    return ["api/speclib", "api/speclab"]


def _write_front_page(source: Path, lessons: list[Path], api: list[str]) -> None:
    """Writes the README as the front page, and adds a race and the contents."""
    parts = (paths.ROOT / "README.md").read_text("utf-8").split("\n\n")
    parts.insert(2, race_html(THREE_WAYS))
    reports = [path.stem for path in sorted(source.glob("reports/*.md"))]
    reports.sort(key=lambda name: name != "index")
    chapters = {
        "Lessons": [f"notebooks/learn/{path.stem}" for path in lessons]
        + ["notebooks/LECTURERS"],
        "Manual": [f"docs/{name}" for name in MANUAL] + OF_THE_PROJECT,
        "Reports": [f"reports/{name}" for name in reports],
        "API": api,
    }
    for caption, pages in chapters.items():
        if pages:
            parts.append(CONTENTS.format(caption=caption, pages="\n".join(pages)))
    (source / "index.md").write_text("\n\n".join(parts), "utf-8")
