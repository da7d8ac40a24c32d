"""`make reproduce`: every table filled, the ledger written, notebooks run, pages made.

What is up to date is left alone: first by one hash over everything a paper's reports depend on,
then cell by cell through the cache. Files are replaced whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from speclib import paths
from speclib.errors import SpeclibError, unknown_name
from speclib.experiment import cache, cache_keys, machine
from speclib.experiment.atomic_files import remove_leftovers, write_atomically

SOURCES = ("*.py", "*.js", "*.css", "templates/*")  # of the package
TOOLS = ("plotly", "nbconvert", "papermill", "pandas", "scipy")
RUNNERS = ("papermill", "nbconvert", "ipykernel")
SAY = partial(print, flush=True)
SHARED = ("index.html", "ledger.csv", "claims.csv", "plotly.min.js")


@dataclass
class Outcome:
    """What a call did: papers regenerated, papers left alone, cells that failed by name."""

    done: list[str] = field(default_factory=list)
    current: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def known() -> list[str]:
    """Papers that have a folder of tables, in alphabetical order."""
    return sorted(p.parent.name for p in (paths.DATA / "papers").glob("*/paper.toml"))


def reproduce(
    only: Iterable[str] = (),
    *,
    quick: bool = False,
    measured: bool = True,
    say: Callable[[str], None] = SAY,
) -> Outcome:
    """Regenerates ``reports/`` for all papers, or ``only`` some. Raises SpeclibError for an
    unknown paper; cells that fail are in the outcome, and everything else is written."""
    chosen, outcome = list(only) or known(), Outcome()
    remove_leftovers(paths.REPORTS, paths.CACHE / "reports", cache.rows_folder())
    for key in chosen:
        if key not in known():
            problem = f"no paper {key!r} under {paths.DATA / 'papers'}"
            raise unknown_name(problem, key, known())
        asked = fingerprint(key, quick, measured)
        if is_current(key, asked):
            outcome.current.append(key)
            continue
        failed = _paper(key, quick, measured, say)
        outcome.failed |= failed
        outcome.done.append(key)
        if failed:
            _stamp_file(key).unlink(missing_ok=True)
        else:
            _stamp(key, asked)
    if outcome.done:
        for key in known():  # the index is shared: its change outdates no paper
            _restamp(key)
    return outcome


def _paper(
    key: str, quick: bool, measured: bool, say: Callable[[str], None]
) -> dict[str, str]:
    """One paper, from cells to pages. Returns the cells that failed."""
    from . import publish
    from .book import Book

    book = Book(key, quick=quick, measured=measured)
    if measured and "measured" not in book.kinds:
        say(
            "torch is not installed: no measured numbers. `pip install -e '.[models]'` adds it"
        )
    say(f"{key}: filling {len(book.paper.tables)} tables ({book.profile.name} profile)")
    failed = {name: why for f in book.filled.values() for name, why in f.errors.items()}
    publish.tables(book)
    if not failed:
        publish.front(book)
    failed |= _page(book, say)
    publish.index(book)
    return failed


def _page(book, say: Callable[[str], None]) -> dict[str, str]:
    """Runs the paper's notebook and makes its page. Returns why there is none, if it failed."""
    from . import notebooks, publish

    key, source = book.paper.key, notebook(book.paper.key)
    missing = [tool for tool in RUNNERS if find_spec(tool) is None]
    if missing:
        say(
            f"{', '.join(missing)} not installed: no {key}.html. `pip install -e '.[notebooks]'`"
        )
    if missing or not source.is_file():
        return {}
    say(f"{key}: running {source.relative_to(paths.ROOT)}")
    given = {
        "paper": key,
        "quick": book.profile.name == "quick",
        "measured": "measured" in book.kinds,
    }
    try:
        publish.page(book, notebooks.run(source, paths.REPORTS / f"{key}.ipynb", given))
    except SpeclibError as error:
        return {source.name: str(error)}
    return {}


def notebook(key: str) -> Path:
    return paths.ROOT / "notebooks" / "reproduce" / f"{key}.ipynb"


# -- what is up to date --------------------------------------------------------------------------
def fingerprint(key: str, quick: bool, measured: bool) -> str:
    """A hash of all that the reports of a paper depend on, this machine included."""
    data, package = paths.DATA, cache_keys.PACKAGE
    files = [f for pattern in SOURCES for f in sorted(package.rglob(pattern))]
    files += [
        f
        for folder in (f"papers/{key}", "latency", "pairs", "prompts")
        for f in sorted((data / folder).rglob("*"))
        if f.is_file()
    ]
    files += [data / "models" / "SHA256SUMS", notebook(key)]
    return cache_keys.digest(
        key,
        quick,
        measured,
        machine.environment(),
        [_version(t) for t in TOOLS],
        *(f.name for f in files),
        cache_keys.hash_of_files(*files),
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def outputs(key: str) -> list[Path]:
    """The files that a paper's reports consist of."""
    own = [
        f"{key}.md",
        *([f"{key}.html", f"{key}.ipynb"] if notebook(key).is_file() else []),
    ]
    return [paths.REPORTS / name for name in (*own, *SHARED)]


def _stamp_file(key: str) -> Path:
    return paths.CACHE / "reports" / f"{key}.json"


def _read_stamp(key: str) -> dict:
    try:
        return json.loads(_stamp_file(key).read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def is_current(key: str, asked: str) -> bool:
    """Whether nothing changed since the reports were made, and they are as they were made."""
    stamp = _read_stamp(key)
    return stamp.get("inputs") == asked and stamp.get("outputs") == _digests(
        outputs(key)
    )


def _digests(files: Iterable[Path]) -> dict[str, str]:
    return {
        f.name: cache_keys.hash_of_files(f) if f.is_file() else "missing" for f in files
    }


def _stamp(key: str, asked: str) -> None:
    text = json.dumps({"inputs": asked, "outputs": _digests(outputs(key))})
    write_atomically(_stamp_file(key), text)


def _restamp(key: str) -> None:
    """Accepts the shared files as they are now; the paper's own must still be those stamped."""
    stamp = _read_stamp(key)
    if stamp:
        stamp["outputs"] |= _digests(paths.REPORTS / name for name in SHARED)
        write_atomically(_stamp_file(key), json.dumps(stamp))
