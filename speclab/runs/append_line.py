"""Appends a line to a file, completely or not at all."""

from __future__ import annotations

from pathlib import Path

from speclib.atomic_files import naming


def append_line(path: Path, line: str, header: str) -> None:
    """Appends a whole line to a text file; a new file begins with ``header``.

    Before that, removes an incomplete last line, which a killed process may have left.
    If the file cannot be written, raises SpeclibError naming it and leaves it
    unchanged.
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
