"""The generated parts of ``notebooks/LECTURERS.md``: its tables of all exercises, and
of the pictures for the board.

The page itself, with its schedules, is written by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from speclib.atomic_files import write_atomically

from .board_pictures import PICTURES
from .catalogue import DIFFICULTIES, Exercise, all_exercises
from .lessons import NOTEBOOKS
from .marked_text import replace_marked

PAGE = NOTEBOOKS / "LECTURERS.md"
EXERCISE_HEAD = (
    "| lesson | exercise | minutes | what is compared | mistakes that have a name |",
    "| --- | --- | ---: | --- | --- |",
)
PICTURE_HEAD = ("| picture | lesson | what it shows |", "| --- | --- | --- |")


def write_lecturers_page(path: Path = PAGE) -> Path:
    """Brings the generated tables of the page up to date."""
    page = path.read_text("utf-8")
    page = replace_marked(page, "exercises", exercise_tables(all_exercises()))
    page = replace_marked(page, "pictures", picture_table())
    write_atomically(path, page)
    return path


def exercise_tables(exercises: Sequence[Exercise]) -> str:
    """Markdown: for each difficulty a heading with the minutes of all, and a table."""
    parts = []
    for difficulty in DIFFICULTIES:
        chosen = [each for each in exercises if each.difficulty == difficulty]
        minutes = sum(exercise.minutes for exercise in chosen)
        heading = f"### {difficulty.capitalize()}: {len(chosen)} exercises"
        rows = [exercise_row(exercise) for exercise in chosen]
        table = "\n".join([*EXERCISE_HEAD, *rows])
        parts.append(f"{heading}, {minutes} minutes\n\n{table}")
    return "\n\n".join(parts)


def exercise_row(exercise: Exercise) -> str:
    """A row of the table."""
    title = f"{exercise.number}: {exercise.title}"
    mistakes = "; ".join(exercise.judge.mistakes) or "–"
    cells = (
        exercise.lesson,
        title,
        str(exercise.minutes),
        exercise.judge.compares,
        mistakes,
    )
    return f"| {' | '.join(cells)} |"


def picture_table() -> str:
    """Markdown: a row for each picture."""
    rows = []
    for name, picture in PICTURES.items():
        rows.append(f"| `{name}` | {picture.lesson} | {picture.shows} |")
    return "\n".join([*PICTURE_HEAD, *rows])
