"""The page for lecturers: schedules that add up, and every exercise of the lessons.

What the lessons hold is read here from the notebooks' own text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from helpers.markdown import marked, rows_of_tables

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "notebooks" / "LECTURERS.md").read_text("utf-8")
SESSIONS = ("session 90", "session 1", "session 2", "session 3", "session 4")
HOMEWORK = ("homework 1", "homework 2", "homework 3", "homework 4")
EXERCISE = re.compile(r"### Exercise(?: (\d))?: (.+) \((\w+), (\d+) minutes\)")
SECTION = re.compile(r"^## (\d+)\. ", re.M)


class Heading(NamedTuple):
    """An exercise as its heading has it, and the section in which it stands."""

    lesson: str
    number: int
    title: str
    difficulty: str
    minutes: int
    section: int


class Cell(NamedTuple):
    """A cell of a lesson, and the section in which it begins."""

    lesson: str
    section: int
    is_code: bool
    source: str


def read_cells() -> list[Cell]:
    """The cells of all lessons, in their order."""
    cells = []
    for path in sorted((ROOT / "notebooks" / "learn").glob("*.ipynb")):
        section = 0
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            source = "".join(cell["source"])
            is_code = cell["cell_type"] == "code"
            if not is_code:
                section = max([section, *map(int, SECTION.findall(source))])
            cells.append(Cell(path.stem[:2], section, is_code, source))
    return cells


CELLS = read_cells()


def headings() -> list[Heading]:
    found = []
    for cell in CELLS:
        for number, title, difficulty, minutes in EXERCISE.findall(cell.source):
            heading = Heading(
                cell.lesson,
                int(number or 1),
                title,
                difficulty,
                int(minutes),
                cell.section,
            )
            found.append(heading)
    return found


HEADINGS = {(heading.lesson, heading.number): heading for heading in headings()}


def numbers(cell: str) -> list[int]:
    """The numbers in a cell such as "1, 2"."""
    return [int(number) for number in re.findall(r"\d+", cell)]


def exercises_of(row: dict[str, str]) -> list[Heading]:
    """The exercises that a row of a schedule names."""
    return [HEADINGS[row["lesson"], number] for number in numbers(row["exercises"])]


def schedule(name: str) -> list[dict[str, str]]:
    rows = rows_of_tables(marked(PAGE, name))
    assert rows
    return rows


# -- schedules -------------------------------------------------------------------------
@pytest.mark.parametrize("name", SESSIONS)
def test_the_minutes_of_a_session_add_up_to_90(name):
    minute = 0
    for row in schedule(name):
        assert int(row["at"]) == minute
        minute += int(row["minutes"])
    assert minute == 90
    assert "One session of 90 minutes" in PAGE
    assert "Four sessions of 90 minutes" in PAGE


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_names_sections_and_exercises_that_its_lessons_have(name):
    sections_of = {}
    for cell in CELLS:
        of_cell = map(int, SECTION.findall(cell.source))
        sections_of.setdefault(cell.lesson, set()).update(of_cell)
    for row in schedule(name):
        sections = numbers(row["sections"])
        assert sections
        assert set(sections) <= sections_of[row["lesson"]], row
        for exercise in exercises_of(row):
            assert exercise.section in sections, (row, exercise)
        needed = sum(exercise.minutes for exercise in exercises_of(row))
        assert needed <= int(row["minutes"]), row


@pytest.mark.parametrize("name", HOMEWORK)
def test_homework_leaves_time_for_its_exercises(name):
    for row in schedule(name):
        needed = sum(exercise.minutes for exercise in exercises_of(row))
        assert needed <= int(row["minutes"]), row


def test_in_two_weeks_every_exercise_has_its_place_once():
    placed = Counter()
    for name in (*SESSIONS[1:], *HOMEWORK):
        for row in schedule(name):
            placed.update(exercises_of(row))
    assert placed == Counter(HEADINGS.values())


# -- exercises -------------------------------------------------------------------------
def test_the_tables_of_exercises_are_those_of_the_lessons():
    shown = set()
    part = marked(PAGE, "exercises")
    for heading in re.findall(r"^### .*", part, re.M):
        difficulty = heading.split()[1].rstrip(":").lower()
        table = part.split(heading)[1].split("### ")[0]
        rows = rows_of_tables(table)
        for row in rows:
            number, title = re.fullmatch(r"(\d+): (.+)", row["exercise"]).groups()
            entry = (row["lesson"], int(number), title, difficulty, row["minutes"])
            shown.add(entry)
        count, minutes = numbers(heading)
        assert count == len(rows)
        assert minutes == sum(int(row["minutes"]) for row in rows)

    wanted = set()
    for heading in HEADINGS.values():
        minutes = str(heading.minutes)
        wanted.add((*heading[:4], minutes))
    assert shown == wanted


def test_every_cell_that_runs_real_models_is_listed():
    listed = Counter()
    for row in schedule("real models"):
        call = re.match(r"`([\w.]+)`", row["cell"])[1]
        listed[row["lesson"], int(row["section"]), call] += 1

    found = Counter()
    for cell in CELLS:
        if cell.is_code:
            calls = (
                r"\b(teach\.(?:real|plan|placements|cluster)_run|speclib\.Processes)\("
            )
            for call in re.findall(calls, cell.source):
                found[cell.lesson, cell.section, call] += 1
    assert listed == found
