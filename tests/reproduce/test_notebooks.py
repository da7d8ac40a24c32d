"""Notebooks follow the project's conventions, and their runner is strict."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from shutil import copytree

import pytest
from helpers import late

from speclab.papers.load_papers import load_paper
from speclab.reproduce.notebooks import run_notebook
from speclab.teach.lessons import TO_DO, write_lessons
from speclib.errors import SpeclibError

ROOT = Path(__file__).resolve().parents[2]


def stored_notebooks(folder: str) -> list[Path]:
    """The notebooks of a folder, without JupyterLab's checkpoints."""
    paths = sorted((ROOT / "notebooks" / folder).rglob("*.ipynb"))
    return [path for path in paths if ".ipynb_checkpoints" not in path.parts]


def stem(path: Path) -> str:
    return path.stem


LEARN = stored_notebooks("learn")
REPRODUCE = stored_notebooks("reproduce")
SOLUTIONS = stored_notebooks("solutions")
EXERCISE = "exercise"  # the tag of a function that a student writes
OWN = "own"  # the tag of a function that represents the reader's own
every_notebook = pytest.mark.parametrize("path", stored_notebooks("."), ids=stem)
learn_notebook = pytest.mark.parametrize("path", LEARN, ids=stem)


def read(path: Path):
    return late.nbformat.read(path, as_version=4)


def cells_of_type(path: Path, cell_type: str) -> list:
    return [cell for cell in read(path).cells if cell.cell_type == cell_type]


def code_cells(path: Path) -> list:
    return cells_of_type(path, "code")


# -- conventions -----------------------------------------------------------------------
@every_notebook
def test_it_is_valid_small_and_for_the_standard_kernel(path):
    notebook = read(path)
    late.nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert path.stat().st_size < 1_000_000


@every_notebook
def test_one_parameters_cell_typed_and_commented(path):
    cells = []
    for cell in code_cells(path):
        if "parameters" in cell.metadata.get("tags", []):
            cells.append(cell)
    assert len(cells) == 1

    for line in cells[0].source.splitlines():
        if line.strip():
            assert re.fullmatch(r"\w+: [\w| \[\],]+ = .+  # .+", line), line
    for statement in ast.parse(cells[0].source).body:
        default = ast.literal_eval(statement.value)
        declared_type = ast.unparse(statement.annotation)
        assert type(default).__name__ in declared_type, (
            f"the default of {statement.target.id} is not of the type it declares"
        )


@every_notebook
def test_cells_declare_and_display_no_functions_at_most_8_lines(path):
    """A notebook defines only functions of a student or the reader, and such a function
    may take more lines if it is a whole round of a method.
    """
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    for cell in code_cells(path):
        is_own_function = {EXERCISE, OWN} & set(cell.metadata.get("tags", []))
        most_lines = 13 if is_own_function else 8
        assert len(cell.source.splitlines()) <= most_lines, cell.source
        if is_own_function:
            continue
        for node in ast.walk(ast.parse(cell.source)):
            assert not isinstance(node, definitions), cell.source


@pytest.mark.parametrize("path", REPRODUCE + SOLUTIONS, ids=stem)
def test_notebooks_other_than_lectures_are_stored_without_outputs(path):
    for cell in code_cells(path):
        assert not cell.outputs
        assert cell.execution_count is None
    assert set(read(path).metadata) <= {"kernelspec", "language_info"}


# -- lessons with exercises ------------------------------------------------------------
def test_the_lessons_are_made_from_the_solutions(tmp_path):
    """An unchanged cell keeps its outputs, so all files are the same."""
    for folder in ("learn", "solutions"):
        copytree(ROOT / "notebooks" / folder, tmp_path / folder)
    written = write_lessons(tmp_path)
    assert len(written) == len(LEARN)
    for path in LEARN:
        made = tmp_path / "learn" / path.name
        assert made.read_bytes() == path.read_bytes(), "python -m speclab lessons"


def test_a_lesson_contains_no_solution():
    for path in LEARN:
        for cell in code_cells(path):
            assert "SOLUTION" not in cell.source
            if EXERCISE in cell.metadata.get("tags", []):
                assert cell.source.endswith(TO_DO)


@pytest.mark.parametrize("path", SOLUTIONS, ids=stem)
def test_every_solution_is_judged_right(path):
    """What the notebook imports, the solutions and their checks are run.

    A method that a lesson writes itself is no solution: its card may call it slow.
    """
    names: dict = {}
    cards = []
    for cell in code_cells(path):
        is_check = cell.source.startswith("teach.check_")
        is_solution = EXERCISE in cell.metadata.get("tags", [])
        if is_check and cell.source != "teach.check_method(adaptive)":
            cards.append(eval(cell.source, names))
        elif not is_check:
            exec(cell.source if is_solution else imports_of(cell.source), names)
    for card in cards:
        assert card.is_right, card


def imports_of(source: str) -> str:
    """The imports of a cell, without its other code."""
    imports = []
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            imports.append(ast.unparse(statement))
    return "\n".join(imports)


# -- what lectures store ---------------------------------------------------------------
@learn_notebook
def test_learn_notebooks_keep_no_widget_state(path):
    assert "widgets" not in read(path).metadata
    for cell in code_cells(path):
        for output in cell.outputs:
            for media_type in output.get("data", {}):
                assert "widget" not in media_type, (
                    "the picture beside the widget is what is kept"
                )


def test_the_pearl_notebook_has_a_section_for_every_table():
    shown = []
    for cell in code_cells(ROOT / "notebooks" / "reproduce" / "pearl.ipynb"):
        call = re.match(r'pearl\.show\("([\w-]+)"\)$', cell.source)
        if call:
            shown.append(call[1])
    assert sorted(shown) == sorted(load_paper("pearl").tables)


# -- the runner ------------------------------------------------------------------------
@pytest.fixture
def notebook(tmp_path):
    """A small notebook: it repeats a word, then fails if ``times`` is negative."""
    parameters = late.nbformat.v4.new_code_cell(
        'word: str = "a"  # to repeat\ntimes: int = 2  # how often',
        metadata={"tags": ["parameters"]},
    )
    repeat = late.nbformat.v4.new_code_cell("word * times")
    check = late.nbformat.v4.new_code_cell('assert times >= 0, "times is negative"')
    path = tmp_path / "small.ipynb"
    late.nbformat.write(
        late.nbformat.v4.new_notebook(cells=[parameters, repeat, check]), path
    )
    return path


def test_an_unknown_parameter_is_an_error_that_lists_the_known(notebook, tmp_path):
    out = tmp_path / "out.ipynb"
    with pytest.raises(SpeclibError, match="no parameter 'time'; known: word, times"):
        run_notebook(notebook, out, {"time": 3})
    assert not out.exists()


@pytest.mark.thorough
def test_a_run_that_fails_keeps_the_last_result_and_says_which_cell(notebook, tmp_path):
    out = tmp_path / "out.ipynb"
    part = tmp_path / "out.ipynb.part"
    run_notebook(notebook, out, {"times": 3})
    assert "'aaa'" in out.read_text()
    assert not part.exists()

    before = out.read_bytes()
    message = "small.ipynb failed in cell .*times is negative"
    with pytest.raises(SpeclibError, match=message):
        run_notebook(notebook, out, {"times": -1})
    assert out.read_bytes() == before
    assert "times is negative" in part.read_text()
