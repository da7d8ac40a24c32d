"""Material for a class: a copy without solutions, and the page for lecturers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted((ROOT / "notebooks" / "learn").glob("*.ipynb"))
FOR_LECTURERS = (ROOT / "notebooks" / "LECTURERS.md").read_text("utf-8")
EXERCISE = re.compile(r"^### Exercise ?(\d?): (.+) \((\w+), (\d+) minutes\)$", re.M)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only git knows what to copy")
def test_a_copy_for_students_has_all_lessons_but_no_solutions(tmp_path):
    copy = tmp_path / "course.zip"
    subprocess.run(["make", "course", f"OUT={copy}"], cwd=ROOT, check=True)
    with ZipFile(copy) as files:
        names = files.namelist()
        for lesson in LESSONS:
            stored = files.read(f"speclib/notebooks/learn/{lesson.name}").decode()
            assert "BEGIN SOLUTION" not in stored
    assert {"speclib/Makefile", "speclib/requirements.lock"} <= set(names)
    assert not [name for name in names if "solutions" in name or "/tests/" in name]


def sources_of(lesson: Path, kind: str) -> list[str]:
    """Returns the source of each cell of a kind."""
    cells = json.loads(lesson.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]


def test_the_page_for_lecturers_lists_every_exercise():
    exercises = []
    for lesson in LESSONS:
        text = "\n".join(sources_of(lesson, "markdown"))
        for number, name, level, minutes in EXERCISE.findall(text):
            exercises.append((lesson.name[:2], number or "1", name, level, minutes))
    assert len(exercises) > 20

    table = FOR_LECTURERS.split("## All exercises")[1]
    rows = re.findall(r"^\| (\d\d) \| (\d) \| (.+) \| (\w+) \| (\d+) \|$", table, re.M)
    assert rows == exercises


WITHOUT_TORCH = """
import sys
for name in ("torch", "transformers", "_multiprocessing", "fcntl"):
    sys.modules[name] = None  # so that importing it is an error
"""


@pytest.mark.slow
def test_the_first_lessons_need_neither_torch_nor_processes():
    """The real run in lesson 20 does, but it waits for a click."""
    code = WITHOUT_TORCH
    for lesson in LESSONS:
        if lesson.name[:2] in ("00", "10", "20"):
            code += "\n".join(sources_of(lesson, "code")) + "\n"
    ran = subprocess.run([sys.executable], input=code, text=True, capture_output=True)
    assert ran.returncode == 0, ran.stderr
