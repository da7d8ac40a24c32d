"""Copies the small files of data/ into a wheel, which pyproject.toml cannot do.

A checkout has them in data/. A wheel gets copies in speclib/_data, which are made here
while it is built, so the repository contains each file only once. A wheel omits the
embedded models, except for their checksums: `python -m speclib fetch` downloads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
CHECKSUMS = ROOT / "data" / "models" / "SHA256SUMS"
CITATION = ROOT / "CITATION.cff"  # states the repository's address


class BuildWithData(build_py):
    """build_py plus the data, except in an editable install, which reads data/."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            self.copy_data()

    def copy_data(self) -> None:
        """Copies the small files of data/ into the folder that becomes the wheel."""
        within = Path(self.build_lib) / "speclib" / "_data"
        for source, target in files_of_wheel():
            self.mkpath(str((within / target).parent))
            self.copy_file(str(source), str(within / target))


def files_of_wheel() -> Iterator[tuple[Path, Path]]:
    """Yields each file to copy, and its path within speclib/_data."""
    yield CITATION, Path(CITATION.name)
    data = ROOT / "data"
    for path in sorted(data.rglob("*")):
        name = path.relative_to(data)
        is_model = name.parts[0] == "models" and path != CHECKSUMS
        is_hidden = any(part.startswith(".") for part in name.parts)
        if path.is_file() and not is_model and not is_hidden:
            yield path, name


setup(cmdclass={"build_py": BuildWithData})
