"""Papers read from their folders: strictly, and with errors that say what to mend."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from speclab import papers
from speclab.papers.fill import fill, fill_all
from speclab.papers.load_papers import load_paper
from speclab.papers.paper_schema import Paper, Table
from speclab.papers.table_result import TableResult
from speclib import paths
from speclib.errors import SpeclibError


@pytest.fixture
def folder(tmp_path) -> Path:
    """A copy of PEARL's folder, to be damaged."""
    return shutil.copytree(paths.DATA / "papers" / "pearl", tmp_path / "pearl")


def load_damaged(folder: Path) -> str:
    """The error of loading a folder, which must be one line."""
    with pytest.raises(SpeclibError) as error:
        load_paper.__wrapped__("pearl", folder)
    message = str(error.value)
    assert "\n" not in message
    return message


# -- what is there ---------------------------------------------------------------------
def test_every_table_of_the_paper_is_there_in_order(pearl):
    numbers = []
    for item in pearl.tables:
        word, _, number = item.partition("-")
        if word == "table":
            numbers.append(int(number))
    assert numbers == list(range(1, 19))
    assert list(pearl.tables)[-4:] == ["blog-figure-1", "extra-1", "extra-2", "extra-3"]
    assert pearl.tables["table-5"].printed("3", "CodeLlama 7&34") == 46.06


def test_settings_merge_and_names_are_filled_in(pearl):
    of_sd = pearl.table("table-7").settings_of(
        "Speculative Decoding", "CodeLlama 7B&70B"
    )
    assert of_sd["gamma"] == 10
    of_math = pearl.table("table-8").settings_of("Llama 3.1 8b&70b", "Math")
    assert of_math["alpha"] == "llama31-mt-bench-math"


def test_public_names():
    """The package itself holds none: each is imported from the module that owns it."""
    assert not hasattr(papers, "__all__")
    owners = {
        "fill": [fill, fill_all],
        "load_papers": [load_paper],
        "paper_schema": [Paper, Table],
        "table_result": [TableResult],
    }
    for module, objects in owners.items():
        for named in objects:
            assert named.__module__ == f"speclab.papers.{module}", named


# -- what is wrong ---------------------------------------------------------------------
@pytest.mark.parametrize(
    "file, old, new, says",
    [
        ("table-5.toml", 'unit = "tok/s"', 'unit = "tok/s"\nunits = "s"', "units"),
        (
            "table-5.toml",
            "gamma = 2",
            "gama = 2",
            r'\[row\."2"\] has the unknown setting .gama.; of',
        ),
        ("table-5.toml", 'kind = "argmax"', 'kind = "best"', r"claims\.0\.kind"),
        ("table-5.toml", "33.25", '"fast"', r"cells\.0\.2"),
        ("table-5.toml", "33.25", "nan", r"cells\.0\.2.*finite"),
        ("table-5.toml", 'item = "table-5"', 'item = "table-50"', "table-50"),
        ("table-5.toml", 'item = "table-5"', "item = ", "not valid TOML"),
        (
            "calibration.toml",
            '[codellama-7-34]\nsolve = "mat"',
            '[codellama-7-34]\nsolve = "guess"',
            "codellama-7-34.*solve",
        ),
        ("paper.toml", "year = 2025", "", "year"),
    ],
)
def test_a_bad_file_is_named_with_its_key(folder, file, old, new, says):
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))
    with pytest.raises(SpeclibError, match=rf"(?s){file}.*{says}"):
        load_paper.__wrapped__("pearl", folder)


@pytest.mark.parametrize(
    "file, first_line, says",
    [
        ("table-5.toml", "[settings", "table-5.toml: not valid TOML"),
        ("table-9.toml", 'tittle = "x"', "table-9.toml: tittle: Extra inputs are not"),
        ("calibration.toml", "stray = 3", "calibration.toml, entry 'stray': Input"),
    ],
)
def test_a_damaged_file_gives_one_line_with_its_name(folder, file, first_line, says):
    text = (folder / file).read_text()
    (folder / file).write_text(f"{first_line}\n{text}")
    assert says in load_damaged(folder)


def test_a_table_that_does_not_say_what_to_look_at_is_named(folder):
    path = folder / "table-5.toml"
    write_look(path, "")
    assert load_damaged(folder) == f"{path}: look: Field required"


@pytest.mark.parametrize(
    "look, says",
    [
        ("Compare the rows. Then compare the columns.", "give one sentence"),
        ("Which row is faster? Compare both.", "give one sentence"),
        ("Compare the rows", "give one sentence"),
        ("Compare this row with the next " * 5 + "one.", "31 words: give 30 at most"),
    ],
)
def test_what_to_look_at_must_be_one_short_sentence(folder, look, says):
    path = folder / "table-5.toml"
    write_look(path, f'look = "{look}"\n')
    message = load_damaged(folder)
    assert message.startswith(f"{path}: look: ")
    assert look in message
    assert says in message


def test_a_label_with_a_dot_ends_no_sentence(folder):
    look = "In the column Speedup DSI vs. SI compare the rows."
    write_look(folder / "table-5.toml", f'look = "{look}"\n')
    paper = load_paper.__wrapped__("pearl", folder)
    assert paper.table("table-5").look == look


def write_look(path: Path, line: str) -> None:
    """Puts ``line`` in place of what a file says of what to look at."""
    text = path.read_text()
    old_look = re.search(r'(?ms)^look = """.*?"""\n', text)
    assert old_look
    path.write_text(text.replace(old_look[0], line))


def test_a_file_in_another_encoding_is_named(folder):
    text = (folder / "table-5.toml").read_text()
    (folder / "table-5.toml").write_text(text, "utf-16")
    message = load_damaged(folder)
    assert "table-5.toml: not UTF-8" in message
    assert "save it as UTF-8" in message


def test_a_script_that_nobody_knows_lists_the_known_ones(folder):
    text = (folder / "table-9.toml").read_text()
    (folder / "table-9.toml").write_text(text.replace('"steps"', '"step"', 1))
    message = load_damaged(folder)
    assert "table-9.toml: [settings] has the unknown script 'step'" in message
    assert "known: steps, heatmaps" in message
    assert "Did you mean 'steps'?" in message


def test_a_claim_whose_fields_do_not_fit_its_kind_is_named_with_its_file(folder):
    text = (folder / "table-5.toml").read_text()
    (folder / "table-5.toml").write_text(text.replace('over = "row"', "", 1))
    message = load_damaged(folder)
    assert "table-5.toml: claim " in message
    assert 'over is None; give "row" or "column"' in message


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
    message = load_damaged(folder)
    assert message.startswith(f"{folder / 'paper.toml'}: {says}")


def test_a_folder_of_tables_without_the_paper_says_what_is_missing(folder):
    (folder / "paper.toml").unlink()
    with pytest.raises(SpeclibError, match="has no paper.toml.*amusd"):
        load_paper(folder.name, folder)


@pytest.mark.parametrize("kind, field", [("order", "order"), ("argmax", "expected")])
def test_a_claim_about_a_row_that_is_not_there_is_refused(folder, kind, field):
    path = next(path for path in folder.glob("*.toml") if '"order"' in path.read_text())
    text = path.read_text()
    wrong = '["PEARL (ours)", "Nobody"]' if kind == "order" else '"Nobody"'
    claim = f"""
[[claims]]
id = "misspelt"
kind = "{kind}"
text = "no such row"
source = "ours"
over = "row"
column = "*"
{field} = {wrong}
"""
    path.write_text(text + claim)
    message = load_damaged(folder)
    assert "claim 'misspelt' names" in message


def test_unknown_papers_items_and_calibrations_list_the_known(pearl):
    folders = (paths.DATA / "papers").glob("*/paper.toml")
    known = ", ".join(sorted(path.parent.name for path in folders))
    assert "pearl, ssd" in known
    with pytest.raises(SpeclibError, match=f"no paper 'perl'.*known: {known}"):
        load_paper("perl")
    with pytest.raises(SpeclibError, match="no 'table-99'; known: figure-2a"):
        pearl.table("table-99")
    with pytest.raises(
        SpeclibError, match="no entry 'gpt'; of 50 known the nearest are"
    ):
        pearl.alpha("gpt")
