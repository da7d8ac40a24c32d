"""All exercises of the lessons: what each asks for, and which mistakes it knows.

The lessons' sources say which exercises there are, how hard they are and how long they
take, in headings like

    ### Exercise 2: the residual (easy, 3 minutes)

The cell below says how it is judged: ``teach.check_residual(residual)``. What is behind
such a check is told here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from nbformat import NotebookNode

from speclab.check import candidate_mistakes, line_mistakes
from speclab.check.mistakes import Mistake
from speclab.views.notebook_files import read_notebook
from speclib.errors import BadValue, unknown_name

from . import bugs, formulas
from .block_exercise import BLOCK_MISTAKES
from .formulas.formula import Formula
from .lesson_files import find_quiz
from .lessons import CHECK, NOTEBOOKS
from .methods_to_write import EXERCISES as METHOD_EXERCISES

DIFFICULTIES = ("easy", "medium", "hard")
HEADING = re.compile(
    r"^### Exercise(?: (?P<number>\d+))?: (?P<title>.+) "
    r"\((?P<difficulty>\w+), (?P<minutes>\d+) minutes\)$",
    re.M,
)
QUIZ = re.compile(r'teach\.quiz\("([\w-]+)"\)')
FIND_BUG = re.compile(r"teach\.find_bugs\(")
FORMULAS = (
    formulas.ACCEPTANCE,
    formulas.RESIDUAL,
    formulas.SAMPLES,
    formulas.EXPECTED_TOKENS,
    formulas.SPEED,
    formulas.ROUND,
    formulas.SERVERS,
    formulas.DSI_SECONDS,
    formulas.SSD_ROUND,
    formulas.BATCH_ROUND,
    formulas.BATCH_LIMIT,
    formulas.NEXT_GUESS,
    formulas.DUO_ROUND,
    formulas.SEQUENCES,
    formulas.FUZZY_PASS,
    formulas.EASY_ROUND,
    formulas.SECONDS,
    formulas.BREAK_EVEN,
    formulas.BEST_GAMMA,
    formulas.VERDICT,
    formulas.INTERVAL,
    formulas.TWO_COUNTS,
    formulas.NETWORK_ROUND,
    formulas.NETWORK_GAMMA,
    formulas.CLOCK,
)


class Judge(NamedTuple):
    """How an exercise is judged: what is compared, and the mistakes that have names."""

    compares: str
    mistakes: tuple[str, ...] = ()


class Exercise(NamedTuple):
    """An exercise as its lesson presents it.

    lesson   the number of the lesson, as "10"
    number   of the exercise in its lesson, from 1
    check    the name of its check, as in ``teach.check_residual``; "" without one
    """

    lesson: str
    number: int
    title: str
    difficulty: str
    minutes: int
    check: str
    judge: Judge


def all_exercises(folder: Path = NOTEBOOKS / "source") -> list[Exercise]:
    """The exercises of all lessons, in the order of the lessons.

    Raises BadValue for a heading that is none, and for an exercise that nothing judges.
    """
    exercises: list[Exercise] = []
    for path in sorted(folder.glob("*.ipynb")):
        lesson = path.stem.partition("_")[0]
        cells = read_notebook(path).cells
        exercises += exercises_in(cells, lesson)
    return exercises


def exercises_in(cells: Iterable[NotebookNode], lesson: str) -> list[Exercise]:
    """The exercises among the cells of one lesson; see ``all_exercises``."""
    exercises: list[Exercise] = []
    heading: re.Match[str] | None = None
    for cell in cells:
        if cell.cell_type == "markdown" and "### Exercise" in cell.source:
            if heading is not None:
                raise BadValue(f"lesson {lesson}: nothing judges {heading[0]!r}")
            heading = _read_heading(cell.source, lesson)
        elif cell.cell_type == "code" and heading is not None:
            check, judge = _judge_in(cell.source)
            if judge is not None:
                exercises.append(_exercise(lesson, heading, check, judge))
                heading = None
    if heading is not None:
        raise BadValue(f"lesson {lesson}: nothing judges {heading[0]!r}")
    return exercises


def _read_heading(source: str, lesson: str) -> re.Match[str]:
    heading = HEADING.search(source)
    if heading is None or heading["difficulty"] not in DIFFICULTIES:
        raise BadValue(
            f"lesson {lesson} has an exercise without difficulty or minutes: write "
            "'### Exercise 1: its title (easy, 3 minutes)'"
        )
    return heading


def _judge_in(source: str) -> tuple[str, Judge | None]:
    """The check that a cell runs, and how it judges; ("", None) for another cell."""
    check = CHECK.fullmatch(source.strip())
    if check is not None:
        name = "speculative" if check[1] == "method" else check[1]
        return check[1], judge_of(name)
    if FIND_BUG.match(source):
        return "", Judge(f"the name of a bug, among {len(bugs.HIDDEN)}")
    quiz = QUIZ.fullmatch(source.strip())
    if quiz is not None:
        count = len(find_quiz(quiz[1]).choices)
        return "", Judge(f"one of {count} choices, each of which explains itself")
    return "", None


def _exercise(
    lesson: str, heading: re.Match[str], check: str, judge: Judge
) -> Exercise:
    return Exercise(
        lesson=lesson,
        number=int(heading["number"] or 1),  # the only one of a lesson has none
        title=heading["title"],
        difficulty=heading["difficulty"],
        minutes=int(heading["minutes"]),
        check=check,
        judge=judge,
    )


# -- how exercises are judged ----------------------------------------------------------
def judge_of(name: str) -> Judge:
    """How the exercise of this name is judged.

    Raises SpeclibError for one that there is not.
    """
    judges = {formula.name: _judge_of_formula(formula) for formula in FORMULAS}
    judges["verify"] = Judge(
        "the distribution of every token, and how many tokens a round commits, over "
        "all outcomes of the coins",
        names_of(line_mistakes.MISTAKES),
    )
    judges["block"] = Judge(
        "the distribution of every token, and whether a round commits as many tokens "
        "as any rule can, over all outcomes of the coins",
        names_of((*BLOCK_MISTAKES, *line_mistakes.MISTAKES)),
    )
    judges["pick"] = Judge(
        "the distribution of the token, and how often it is a candidate, over all "
        "outcomes of the coins",
        names_of(candidate_mistakes.MISTAKES),
    )
    for exercise in METHOD_EXERCISES.values():
        judges[exercise.name] = Judge(
            "the probability of every text, over all outcomes of the coins; then the "
            "time on the virtual clock",
            names_of(exercise.mistakes),
        )
    if name not in judges:
        raise unknown_name(f"no exercise {name!r}", name, judges)
    return judges[name]


def _judge_of_formula(formula: Formula) -> Judge:
    compares = f"{formula.asked_for}, in {len(formula.cases)} cases"
    return Judge(compares, names_of(formula.mistakes))


def names_of(mistakes: Iterable[Mistake]) -> tuple[str, ...]:
    """The names of mistakes, each once."""
    return tuple(dict.fromkeys(mistake.name for mistake in mistakes))
