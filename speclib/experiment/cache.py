"""Finished cells on disk: what enters a cell's key, and files that are whole or not there.

A cell is one JSONL file under ``paths.CACHE/rows``: a header line, then one line per request. Its
name is a hash of what was asked, the code that computes it, the data it reads and, if measured,
the machine. Code enters through the modules a cell imports, directly or not, less comments and
docstrings; so an edit elsewhere, or of prose, keeps the cell. A file that fails its checksum counts
as missing. Knows no method and no statistic.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import inspect
import json
import os
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from speclib import paths
from speclib.errors import SpeclibError

PACKAGE = Path(__file__).resolve().parents[1]
REGISTRY = "speclib.methods"  # not followed: a cell depends on its own method only


# -- code ----------------------------------------------------------------------------------------
def closure(roots: Iterable[str], package: Path = PACKAGE) -> dict[str, Path]:
    """Module name -> file, of ``roots`` and every speclib module they import, at any depth,
    imports inside functions too. The registry of methods is left out."""
    found: dict[str, Path] = {}
    open_ = list(roots)
    while open_:
        name = open_.pop()
        path = _file(name, package)
        if name in found or name == REGISTRY or path is None:
            continue
        found[name] = path
        open_.extend(_imports(name, path, package))
    return found


def _file(name: str, package: Path) -> Path | None:
    """The file of a speclib module; None for a name that is no module (a function, a class)."""
    if name != "speclib" and not name.startswith("speclib."):
        return None
    path = package.joinpath(*name.split(".")[1:])
    return next(
        (p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()),
        None,
    )


def _imports(name: str, path: Path, package: Path) -> list[str]:
    """Names a module imports, made absolute; those that aren't modules fall out later."""
    parts = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    names = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = parts[: len(parts) - node.level + 1] if node.level else []
            origin = ".".join(filter(None, [*base, node.module]))
            names += [origin, *(f"{origin}.{alias.name}" for alias in node.names)]
    return [n for n in names if n != "speclib"]


@cache
def code(roots: tuple[str, ...], package: Path = PACKAGE) -> str:
    """A hash of what the closure of ``roots`` does: its sources without comments, docstrings."""
    return digest(
        *(
            item
            for name, path in sorted(closure(roots, package).items())
            for item in (name, _meaning(path))
        )
    )


def code_of(method, *roots: str) -> str:
    """A hash of the code of a cell: ``method``, and the modules ``roots`` that run it. A method
    defined elsewhere (a notebook) counts with its own source alone."""
    if foreign(method):
        return digest(inspect.getsource(method), code(roots))
    return code((method.__module__, *roots))


def foreign(method) -> bool:
    """Whether a method lives outside the package: other processes cannot import it."""
    return method.__module__.split(".")[0] != "speclib"


@cache
def _meaning(path: Path) -> str:
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node) is not None
        ):
            del node.body[0]
    return ast.dump(tree)


# -- keys ----------------------------------------------------------------------------------------
def digest(*parts) -> str:
    """A hash of texts, bytes, and whatever has a faithful ``repr``."""
    whole = hashlib.blake2b(digest_size=16)
    for part in parts:
        raw = part if isinstance(part, bytes) else str(part).encode()
        whole.update(len(raw).to_bytes(8, "little") + raw)
    return whole.hexdigest()


def data(*files: Path) -> str:
    """A hash of files' contents; a missing file counts as such."""
    return digest(
        *(
            part
            for f in files
            for part in (f.name, f.read_bytes() if f.is_file() else "missing")
        )
    )


# -- files ---------------------------------------------------------------------------------------
def write_atomically(path: Path, text: str) -> None:
    """Writes the whole file or nothing, whatever interrupts it. Raises SpeclibError naming the
    file if it cannot be written: a full disk, for instance."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, text)
    except OSError as error:
        raise SpeclibError(
            f"cannot write {path}: {error.strerror}; the file is as it was. Make "
            "room or give permission, then run again: what is finished is kept"
        ) from error


def _replace(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name}.{os.getpid()}."
    )
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def sweep(*folders: Path) -> None:
    """Removes what a process left in ``folders`` that was killed while it wrote."""
    for path in (p for f in folders for p in f.glob(".*.*.*")):
        with contextlib.suppress(
            ValueError, PermissionError
        ):  # not ours, or still at work
            try:
                os.kill(int(path.name.split(".")[-2]), 0)
            except ProcessLookupError:
                path.unlink(missing_ok=True)


def folder() -> Path:
    return paths.CACHE / "rows"


def exists(key: str) -> bool:
    """Whether a file is there; whether it is whole, ``load`` says."""
    return (folder() / f"{key}.jsonl").exists()


def save(key: str, header: dict, rows: list[dict]) -> None:
    """Stores a cell, whole or in part: ``rows`` are those of the requests finished so far."""
    body = [json.dumps(row) for row in rows]
    head = json.dumps({"key": key, "check": _check(header, body), **header})
    write_atomically(folder() / f"{key}.jsonl", "\n".join([head, *body]) + "\n")


def load(key: str) -> tuple[dict, list[dict]] | None:
    """(header, rows), or None if the cell is missing or its file is not what was written."""
    try:
        head, *body = (folder() / f"{key}.jsonl").read_text("utf-8").splitlines()
        header = json.loads(head)
        check = header.pop("check")
        if header.pop("key") != key or check != _check(header, body):
            return None
        return header, [json.loads(line) for line in body]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _check(header: dict, body: list[str]) -> str:
    return digest(json.dumps(header, sort_keys=True), *body)
