"""Appends lines to tables: a whole line, or nothing."""

from __future__ import annotations

from pathlib import Path

from speclib.atomic_files import naming


def append_line(path: Path, line: str, header: str) -> None:
    """Append a whole line to a text file; a new file begins with ``header``.

    First removes an incomplete last line, which a killed process may have left. Raises
    SpeclibError naming the file if it cannot be written; the file is then unchanged.
    """
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a+b") as file:
            file.seek(0)
            content = file.read()
            whole = content.rfind(b"\n") + 1
            file.truncate(whole)
            try:
                file.write(((header if not whole else "") + line).encode("utf-8"))
                file.flush()
            except OSError:
                file.truncate(whole)
                raise
