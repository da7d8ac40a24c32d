"""Papers read from their folders: strictly, and with errors that say what to mend."""

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
    """A copy of PEARL's folder, to be damaged."""
    return shutil.copytree(paths.DATA / "papers" / "pearl", tmp_path / "pearl")


def error_of(folder: Path) -> str:
    """The error of loading a folder, which must be one line."""
    with pytest.raises(SpeclibError) as error:
        load_paper.__wrapped__("pearl", folder)
    message = str(error.value)
    assert "\n" not in message
    return message


def damage(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


# -- what is there ---------------------------------------------------------------------
def test_every_table_of_the_paper_is_there_in_order(pearl):
    items = [item.partition("-") for item in pearl.tables]
    numbers = [int(number) for word, _, number in items if word == "table"]
    assert numbers == list(range(1, 19))
    assert list(pearl.tables)[-4:] == ["blog-figure-1", "extra-1", "extra-2", "extra-3"]
    assert pearl.tables["table-5"].printed("3", "CodeLlama 7&34") == 46.06


def test_settings_merge_and_names_are_filled_in(pearl):
    cell = "Speculative Decoding", "CodeLlama 7B&70B"
    assert pearl.table("table-7").settings_of(*cell)["gamma"] == 10
    of_math = pearl.table("table-8").settings_of("Llama 3.1 8b&70b", "Math")
    assert of_math["alpha"] == "llama31-mt-bench-math"


# -- what is wrong ---------------------------------------------------------------------
@pytest.mark.parametrize(
    "file, old, new, says",
    [
        ("table-5", 'unit = "tok/s"', 'unit = "tok/s"\nunits = "s"', "units"),
        (
            "table-5",
            "gamma = 2",
            "gama = 2",
            r'\[row\."2"\] has the unknown setting .g',
        ),
        ("table-5", 'kind = "argmax"', 'kind = "best"', r"claims\.0\.kind"),
        ("table-5", "33.25", '"fast"', r"cells\.0\.2"),
        ("table-5", "33.25", "nan", r"cells\.0\.2.*finite"),
        ("table-5", 'item = "table-5"', 'item = "table-50"', "table-50"),
        ("table-5", 'item = "table-5"', "item = ", "no TOML"),
        ("table-5", 'over = "row"', "", 'claim .*over is None; give "row" or "column"'),
        ("table-9", 'item = "t', 'tittle = "x"\nitem = "t', "tittle: Extra inputs are"),
        ("table-9", '"steps"', '"step"', r"\[settings\] has the unknown script 'step'"),
        ("table-9", '"steps"', '"step"', "known: steps, heatmaps.*mean 'steps'?"),
        ("calibration", "-34]\nsolve =", "-34]\nsolves =", "entry 'codellama-7-34': "),
        ("calibration", "\n[codel", "\nstray = 3\n[codel", "entry 'stray': Input"),
        ("paper", "year = 2025", "", "year"),
    ],
)
def test_a_bad_file_is_named_with_its_key_in_one_line(folder, file, old, new, says):
    damage(folder / f"{file}.toml", old, new)
    assert re.search(rf"{file}\.toml.*{says}", error_of(folder))


@pytest.mark.parametrize(
    "line, says",
    [
        ("", "look: Field required"),
        ('look = "Compare the rows. Then compare both."', "give one sentence"),
        ('look = "Which row is faster? Compare both."', "give one sentence"),
        ('look = "Compare the rows"', "give one sentence"),
        (
            f'look = "{"Compare this row with the next " * 5}one."',
            "31 words: give 30 at",
        ),
    ],
)
def test_what_to_look_at_must_be_one_short_sentence(folder, line, says):
    path = folder / "table-5.toml"
    write_look(path, line)
    message = error_of(folder)
    assert message.startswith(f"{path}: look: ")
    assert says in message


def test_a_label_with_a_dot_ends_no_sentence(folder):
    look = "In the column Speedup DSI vs. SI compare the rows."
    write_look(folder / "table-5.toml", f'look = "{look}"')
    paper = load_paper.__wrapped__("pearl", folder)
    assert paper.table("table-5").look == look


def write_look(path: Path, line: str) -> None:
    """Puts ``line`` in place of what a file says of what to look at."""
    old_look = re.search(r'(?ms)^look = """.*?"""\n', path.read_text())
    damage(path, old_look[0], f"{line}\n")


def test_a_file_in_another_encoding_is_named(folder):
    text = (folder / "table-5.toml").read_text()
    (folder / "table-5.toml").write_text(text, "utf-16")
    message = error_of(folder)
    assert "table-5.toml is not UTF-8" in message
    assert "save it as UTF-8" in message


@pytest.mark.parametrize(
    "fill, says",
    [
        ('[fill]\nguessed = ["table-1"]', "[fill] has the unknown kind 'guessed'"),
        ('[fill]\nvirtual = ["table-99"]', "[fill] virtual names 'table-99'"),
        ("[fill]\nvirtual = 3", "[fill] virtual is 3: give a list"),
        ("fill = 3", "fill is 3: give [fill]"),
    ],
)
def test_what_an_engine_fills_must_be_items_of_the_folder(folder, fill, says):
    facts = (folder / "paper.toml").read_text().partition("[fill]")[0]
    (folder / "paper.toml").write_text(f"{facts}\n{fill}\n")
    assert error_of(folder).startswith(f"{folder / 'paper.toml'}: {says}")


def test_a_folder_of_tables_without_the_paper_says_what_is_missing(folder):
    (folder / "paper.toml").unlink()
    assert re.search("has no paper.toml.*amusd", error_of(folder))


@pytest.mark.parametrize(
    "kind, field", [("order", 'order = ["2", "No"]'), ("argmax", 'expected = "No"')]
)
def test_a_claim_about_a_row_that_is_not_there_is_refused(folder, kind, field):
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
    with pytest.raises(SpeclibError, match="no entry 'gpt'; of 50 known the nearest"):
        pearl.alpha("gpt")
