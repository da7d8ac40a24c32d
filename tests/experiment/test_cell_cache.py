"""Finished cells on disk: what their keys depend on; no damaged one is trusted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from helpers.specs import LATENCY, measured_spec, virtual_spec

from speclab.experiment import cache, cache_keys
from speclab.experiment.engines import measured_cell, virtual_cell
from speclab.experiment.run_cells import run_all
from speclib import machine, paths
from speclib.methods import METHODS


# -- code in keys ---------------------------------------------------------------------
def copy_of(folder: Path, into: Path) -> Path:
    """A folder with copies of both packages."""
    ignored = shutil.ignore_patterns("__pycache__")
    for package in cache_keys.PACKAGES:
        shutil.copytree(folder / package, into / package, ignore=ignored)
    return into


@pytest.fixture(scope="module")
def unedited(tmp_path_factory) -> Path:
    """A copy of the code that nobody edits."""
    return copy_of(cache_keys.FOLDER, tmp_path_factory.mktemp("unedited"))


@pytest.fixture
def code(unedited, tmp_path) -> Path:
    """Another copy, to edit before it is hashed."""
    return copy_of(unedited, tmp_path / "code")


ROOTS = ("speclib.methods.pearl", "speclab.experiment.cells.toy_requests")


def hash_of(code: Path) -> str:
    """The hash of a PEARL cell's code.

    Hashes are remembered by path: edit the code before it is hashed.
    """
    return cache_keys.hash_of_code(ROOTS, code)


@pytest.fixture(scope="module")
def hash_before(unedited) -> str:
    return hash_of(unedited)


def append(path: Path, text: str = "\nEDITED = 1\n") -> None:
    path.write_text(path.read_text() + text)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    "file",
    [
        "speclib/methods/pearl.py",
        "speclab/experiment/cells/toy_requests.py",
        "speclib/worlds/virtual.py",
        "speclib/core/sampling.py",
        "speclib/core/verification.py",
        "speclib/models/toy.py",
        "speclib/trace/events.py",
        "speclib/data/latency.py",
    ],
)
def test_code_that_a_cell_runs_enters_its_key(code, hash_before, file):
    append(code / file)
    assert hash_of(code) != hash_before


NOT_RUN = (
    "speclib/methods/speculative.py",
    "speclib/methods/__init__.py",
    "speclab/papers/__init__.py",
    "speclib/worlds/processes.py",
    "speclib/models/hf.py",
    "speclib/drawing/timeline/widget.py",
    "speclab/experiment/__init__.py",
    "speclab/experiment/cache.py",
    "speclab/experiment/engines/virtual.py",
    "speclib/__init__.py",
)


def test_code_that_a_cell_does_not_run_keeps_it(code, hash_before):
    """All of these files are edited at once, and no edit counts."""
    edited = {code / file for file in NOT_RUN}
    for path in edited:
        append(path)
    modules = cache_keys.imported_modules(ROOTS, code)
    assert edited & set(modules.values()) == set()
    assert hash_of(code) == hash_before


def test_prose_keeps_a_cell(code, hash_before):
    pearl = code / "speclib" / "methods" / "pearl.py"
    append(pearl, "# a comment\n")
    replace(pearl, '"""PEARL', '"""Pearls: PEARL')
    assert hash_of(code) == hash_before


def test_an_import_inside_a_function_counts(code, hash_before, tmp_path):
    (code / "speclib" / "extra.py").write_text("X = 1\n")
    late_import = "\ndef late():\n    from ..extra import X\n"
    append(code / "speclib" / "methods" / "pearl.py", late_import)
    other = copy_of(code, tmp_path / "other")
    replace(other / "speclib" / "extra.py", "1", "2")

    with_import = hash_of(code)
    assert with_import != hash_before
    assert hash_of(other) != with_import


def test_a_method_of_a_notebook_counts_with_its_own_source(monkeypatch):
    def mine(world, gamma):
        METHODS["speculative"](world, gamma)

    mine.__module__ = "__main__"
    assert cache_keys.is_foreign(mine)
    assert not cache_keys.is_foreign(METHODS["pearl"])

    monkeypatch.setitem(METHODS, "mine", mine)
    spec, other = virtual_spec("mine", 4), virtual_spec("speculative", 4)
    results = run_all([spec, other])
    assert results[spec].stats == results[other].stats
    assert virtual_cell.key_of(spec) != virtual_cell.key_of(other)


# -- data and machine in keys ---------------------------------------------------------
def test_a_measured_cell_depends_on_models_machine_and_prompts(monkeypatch):
    roots = ("speclib.methods.pearl", *measured_cell.CODE)
    modules = set(cache_keys.imported_modules(roots))
    assert {
        "speclib.models.hf",
        "speclib.models.dilate",
        "speclib.worlds.worker",
    } <= modules
    assert not {"speclib.methods.speculative", "speclab.experiment"} & modules

    before = measured_cell.key_of(measured_spec())
    monkeypatch.setattr(machine, "environment", lambda: (("cpu", "another"),))
    assert measured_cell.key_of(measured_spec()) != before


def test_a_latency_file_enters_the_key(tmp_path, monkeypatch):
    file = tmp_path / "data" / "latency" / f"{LATENCY}.toml"
    file.parent.mkdir(parents=True)
    shutil.copy(paths.DATA / "latency" / f"{LATENCY}.toml", file)
    monkeypatch.setattr(virtual_cell, "DATA", tmp_path / "data")

    before = virtual_cell.key_of(virtual_spec())
    append(file, "# another\n")
    assert virtual_cell.key_of(virtual_spec()) != before


# -- files ----------------------------------------------------------------------------
def cut_in_half(text: str) -> str:
    return text[: len(text) // 2]


def emptied(_text: str) -> str:
    return ""


def with_another_digit(text: str) -> str:
    return text.replace("3", "4", 1)


def without_its_last_line(text: str) -> str:
    return "\n".join(text.splitlines()[:-1]) + "\n"


def with_a_line_before(text: str) -> str:
    return "[1, 2]\n" + text


@pytest.mark.parametrize(
    "damage",
    [
        cut_in_half,
        emptied,
        with_another_digit,
        without_its_last_line,
        with_a_line_before,
    ],
)
def test_a_corrupt_cell_is_computed_again_not_trusted(cells_folder, computed, damage):
    spec = virtual_spec()
    truth = run_all([spec])[spec].stats
    key = virtual_cell.key_of(spec)
    file = cells_folder / f"{key}.jsonl"
    file.write_text(damage(file.read_text()))

    before = len(computed)
    assert run_all([spec])[spec].stats == truth
    assert len(computed) == before + 1
    assert cache.read(key) is not None


def test_a_cell_that_holds_something_else_is_computed_again(computed):
    """As code wrote it that stored other things under the same key."""
    spec = virtual_spec()
    truth = run_all([spec])[spec].stats
    before = len(computed)
    cache.write(virtual_cell.key_of(spec), {"of": "old"}, [{"stats": [1, 2]}] * 3)
    assert run_all([spec])[spec].stats == truth
    assert len(computed) == before + 1


def test_a_file_of_another_key_is_not_taken_for_this_one(cells_folder):
    run_all([virtual_spec()])
    ours = virtual_cell.key_of(virtual_spec())
    other = virtual_cell.key_of(virtual_spec(gamma=4))
    shutil.copy(cells_folder / f"{ours}.jsonl", cells_folder / f"{other}.jsonl")
    assert cache.read(ours) is not None
    assert cache.read(other) is None


def test_what_is_computed_for_a_key_is_computed_once():
    calls = []

    def compute():
        calls.append("computed")
        return [[1.5, 2], {"h": [0.25]}]

    first = cache.load_or_compute("a-key", compute)
    assert first == cache.load_or_compute("a-key", compute) == [[1.5, 2], {"h": [0.25]}]
    assert calls == ["computed"]


def test_where_one_part_of_a_key_ends_and_the_next_begins_counts():
    assert cache_keys.digest("ab", "c") != cache_keys.digest("a", "bc")
    assert cache_keys.digest("ab", "c") == cache_keys.digest(b"ab", "c")
    assert cache_keys.digest("", "a") != cache_keys.digest("a", "")
