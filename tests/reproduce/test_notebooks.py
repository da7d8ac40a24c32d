"""Every notebook keeps the project's conventions; the runner is strict and leaves no half file."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from helpers import late

from speclib.errors import SpeclibError
from speclib.reproduce import notebooks

ROOT = Path(__file__).resolve().parents[2]
PATHS = sorted(
    p
    for p in (ROOT / "notebooks").rglob("*.ipynb")
    if ".ipynb_checkpoints" not in p.parts
)
LEARN = [p for p in PATHS if p.parent.name == "learn"]
REPRODUCE = [p for p in PATHS if p.parent.name == "reproduce"]
name = pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)


def read(path):
    return late.nbformat.read(path, as_version=4)


def code(path):
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def test_there_are_notebooks_of_both_kinds():
    assert LEARN and REPRODUCE


@name
def test_it_is_valid_small_and_for_the_standard_kernel(path):
    late.nbformat.validate(read(path))
    assert read(path).metadata.kernelspec.name == "python3"
    assert path.stat().st_size < 1_000_000


@name
def test_one_parameters_cell_typed_and_commented(path):
    cells = [c for c in code(path) if "parameters" in c.metadata.get("tags", [])]
    assert len(cells) == 1
    lines = [line for line in cells[0].source.splitlines() if line.strip()]
    for line in lines:
        assert re.fullmatch(r"\w+: [\w| \[\],]+ = .+  # .+", line), line
    values = {
        n.target.id: ast.literal_eval(n.value) for n in ast.parse(cells[0].source).body
    }
    kinds = {
        n.target.id: ast.unparse(n.annotation) for n in ast.parse(cells[0].source).body
    }
    wrong = {n: v for n, v in values.items() if type(v).__name__ not in kinds[n]}
    assert not wrong, "a default is not of the type it declares"


@name
def test_cells_declare_and_display_no_functions_at_most_8_lines(path):
    for cell in code(path):
        assert len(cell.source.splitlines()) <= 8, cell.source
        found = [
            type(n).__name__
            for n in ast.walk(ast.parse(cell.source))
            if isinstance(
                n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
            )
        ]
        assert not found, cell.source


@name
def test_the_head_says_what_you_learn_paper_and_time_the_tail_what_is_next(path):
    cells = [c for c in read(path).cells if c.cell_type == "markdown"]
    head, tail = cells[0].source, cells[-1].source
    assert head.startswith("# ")
    assert all(f"**{word}**" in head for word in ("You learn", "Paper", "Time"))
    assert "reports/index.html" in tail and re.search(r"\bnext\b", tail, re.I)
    places = re.findall(r"`(notebooks/[\w/]+\.ipynb)`", tail)
    assert places and all((ROOT / place).is_file() for place in places)


@name
def test_it_uses_public_names_of_speclib_only(path):
    for cell in code(path):
        for node in ast.walk(ast.parse(cell.source)):
            names = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import | ast.ImportFrom)
                else [node.attr]
                if isinstance(node, ast.Attribute)
                else []
            )
            assert not [n for n in names if n.startswith("_")], cell.source


@pytest.mark.parametrize("path", REPRODUCE, ids=lambda p: p.stem)
def test_reproduce_notebooks_are_stored_without_outputs(path):
    assert all(not c.outputs and c.execution_count is None for c in code(path))
    assert set(read(path).metadata) <= {"kernelspec", "language_info"}


@pytest.mark.parametrize("path", LEARN, ids=lambda p: p.stem)
def test_learn_notebooks_keep_no_widget_state(path):
    assert "widgets" not in read(path).metadata
    kinds = {kind for c in code(path) for o in c.outputs for kind in o.get("data", {})}
    assert not {k for k in kinds if "widget" in k}, (
        "the picture beside the widget is what is kept"
    )


def test_the_pearl_notebook_has_a_section_for_every_table():
    from speclib.papers.load import load_paper

    sources = [c.source for c in code(ROOT / "notebooks" / "reproduce" / "pearl.ipynb")]
    shown = [
        m[1] for s in sources for m in [re.match(r'pearl\.show\("([\w-]+)"\)$', s)] if m
    ]
    assert sorted(shown) == sorted(load_paper("pearl").tables)


# -- the runner ----------------------------------------------------------------------------------
@pytest.fixture
def notebook(tmp_path):
    """A small notebook: out = word * times, then a cell that fails when times is negative."""
    cells = [
        late.nbformat.v4.new_code_cell(
            'word: str = "a"  # to repeat\ntimes: int = 2  # how often',
            metadata={"tags": ["parameters"]},
        ),
        late.nbformat.v4.new_code_cell("word * times"),
        late.nbformat.v4.new_code_cell('assert times >= 0, "times is negative"'),
    ]
    path = tmp_path / "small.ipynb"
    late.nbformat.write(late.nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_an_unknown_parameter_is_an_error_that_lists_the_known(notebook, tmp_path):
    with pytest.raises(SpeclibError, match="no parameter 'time'; known: word, times"):
        notebooks.run(notebook, tmp_path / "out.ipynb", {"time": 3})
    assert not (tmp_path / "out.ipynb").exists()


def test_a_missing_notebook_and_one_without_parameters_are_named(tmp_path):
    with pytest.raises(SpeclibError, match="no notebook .*nothing.ipynb"):
        notebooks.run(tmp_path / "nothing.ipynb", tmp_path / "out.ipynb")
    late.nbformat.write(late.nbformat.v4.new_notebook(), tmp_path / "bare.ipynb")
    with pytest.raises(SpeclibError, match="bare.ipynb has 0 parameters cells"):
        notebooks.run(tmp_path / "bare.ipynb", tmp_path / "out.ipynb")


@pytest.mark.slow
def test_a_run_that_fails_keeps_the_last_result_and_says_which_cell(notebook, tmp_path):
    out = notebooks.run(notebook, tmp_path / "out.ipynb", {"times": 3})
    assert "'aaa'" in out.read_text() and not (tmp_path / "out.ipynb.part").exists()
    before = out.read_bytes()
    with pytest.raises(
        SpeclibError, match="small.ipynb failed in cell .*times is negative"
    ):
        notebooks.run(notebook, out, {"times": -1})
    assert out.read_bytes() == before
    assert "times is negative" in (tmp_path / "out.ipynb.part").read_text()
