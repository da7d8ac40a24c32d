"""Appends a line to a file, either completely or not at all."""

from __future__ import annotations

from pathlib import Path

from speclib.atomic_files import naming


def append_line(path: Path, line: str, header: str) -> None:
    """Appends a whole line to a text file; a new file begins with ``header``.

    First, removes an incomplete last line that a killed process may have left. If the
    line cannot be written, leaves the file without it, and raises SpeclibError with the
    file's name.
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
