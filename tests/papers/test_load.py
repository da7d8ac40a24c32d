"""Papers are read strictly from their folders, with errors that name the fix."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from speclab.papers.load_papers import load_paper
from speclib import paths
from speclib.errors import SpeclibError


@pytest.fixture
def folder(tmp_path) -> Path:
    """A copy of PEARL's folder for a test to damage."""
    return shutil.copytree(paths.DATA / "papers" / "pearl", tmp_path / "pearl")


def error_of(folder: Path) -> str:
    """The error that loading a folder raises, which must be one line."""
    with pytest.raises(SpeclibError) as error:
        load_paper.__wrapped__("pearl", folder)
    message = str(error.value)
    assert "\n" not in message
    return message


def damage(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


# -- valid papers ----------------------------------------------------------------------


def test_settings_merge_and_names_are_filled_in(pearl):
    cell = "Speculative Decoding", "CodeLlama 7B&70B"
    assert pearl.table("table-7").settings_of(*cell)["gamma"] == 10
    of_math = pearl.table("table-8").settings_of("Llama 3.1 8b&70b", "Math")
    assert of_math["alpha"] == "llama31-mt-bench-math"


# -- errors ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "file, old, new, says",
    [
        ("table-5", 'unit = "tok/s"', 'unit = "tok/s"\nunits = "s"', "units"),
        ("table-5", 'kind = "argmax"', 'kind = "best"', r"claims\.0\.kind"),
        ("table-5", "33.25", "nan", r"cells\.0\.2.*finite"),
        ("table-5", 'item = "table-5"', "item = ", "not TOML"),
        ("table-9", '"steps"', '"step"', "known: steps, heatmaps.*mean 'steps'?"),
        ("calibration", "-34]\nsolve =", "-34]\nsolves =", "entry 'codellama-7-34': "),
        ("paper", "year = 2025", "", "year"),
    ],
)
def test_a_bad_file_is_named_with_its_key_in_one_line(folder, file, old, new, says):
    damage(folder / f"{file}.toml", old, new)
    assert re.search(rf"{file}\.toml.*{says}", error_of(folder))


@pytest.mark.parametrize(
    "fill, says",
    [
        ('[fill]\nguessed = ["table-1"]', "[fill] has the unknown kind 'guessed'"),
        ('[fill]\nvirtual = ["table-99"]', "[fill] virtual names 'table-99'"),
    ],
)
def test_fill_may_name_only_items_of_the_folder(folder, fill, says):
    facts = (folder / "paper.toml").read_text().partition("[fill]")[0]
    (folder / "paper.toml").write_text(f"{facts}\n{fill}\n")
    assert error_of(folder).startswith(f"{folder / 'paper.toml'}: {says}")


def test_a_folder_without_paper_toml_is_named_with_the_missing_file(folder):
    (folder / "paper.toml").unlink()
    assert re.search("has no paper.toml.*amusd", error_of(folder))


@pytest.mark.parametrize(
    "kind, field", [("order", 'order = ["2", "No"]'), ("argmax", 'expected = "No"')]
)
def test_a_claim_about_a_missing_row_is_refused(folder, kind, field):
    claim = f'id = "misspelt"\nkind = "{kind}"\ntext = "no such row"\nsource = "ours"'
    with open(folder / "table-5.toml", "a") as file:
        file.write(f'\n[[claims]]\n{claim}\nover = "row"\ncolumn = "*"\n{field}\n')
    assert "claim 'misspelt' names 'No'" in error_of(folder)


def test_unknown_papers_items_and_calibrations_list_the_known(pearl):
    known = "amusd, .*pearl, ssd"
    with pytest.raises(SpeclibError, match=f"no paper 'perl'.*known: {known}"):
        load_paper("perl")
    with pytest.raises(SpeclibError, match="no 'table-99'; known: figure-2a"):
        pearl.table("table-99")
    with pytest.raises(SpeclibError, match="no entry 'gpt'; the nearest of 50 known"):
        pearl.alpha("gpt")
