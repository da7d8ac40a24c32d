"""Appended rows are read back; damaged ones are named with file and line."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.specs import measured_spec

from speclab.runs.rows import COLUMNS, Row, Rows, append, key_of, read, read_all, write
from speclab.traces.counts import Counts
from speclib import paths
from speclib.errors import BadValue

PEARL = measured_spec("pearl", "best")


def row(spec=PEARL, prompt: int = 0, seconds: float = 2.0, **changes) -> Row:
    """Returns the row of a run of 12 tokens."""
    defaults = {
        "machine": "m",
        "key": key_of(spec),
        "group": f"2025-11-28T01:00:00.000 toy {prompt}",
        "prompt": prompt,
        "turn": 1,
        "gamma": 3,
        "how": "fastest of 1..9, at c 3.5",
        "c": 3.5,
        "draft": "toy",
        "stats": Counts(requests=1, tokens=12, seconds=seconds, drafted=9, accepted=7),
        "others": 0.01,
        "differs": None,
        "date": "2025-11-28T01:00:00",
        "commit": "abc1234 with changes",
    }
    return Row(**(defaults | changes))


def plain(prompt: int = 0, seconds: float = 6.0, **changes) -> Row:
    own = {"turn": 0, "gamma": None, "how": ""}
    return row(PEARL.plain_decoding, prompt, seconds, **(own | changes))


@pytest.fixture
def file(own_cache):
    """A machine's file with two rows."""
    append(plain())
    append(row(differs=0))
    return paths.CACHE / "runs" / "m.csv"


def test_appended_rows_are_read_back(file):
    assert read(file) == [plain(), row(differs=0)]
    assert file.read_text() == write([plain(), row(differs=0)])
    assert file.read_text().splitlines()[0] == ",".join(COLUMNS)


def test_rows_both_published_and_cached_count_once(file, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    (tmp_path / "data" / "runs").mkdir(parents=True)
    published = [plain(), row(machine="other")]
    (tmp_path / "data" / "runs" / "published.csv").write_text(write(published))
    (file.parent / "m-values.csv").write_text("no rows\n")
    assert read_all() == [plain(), row(machine="other"), row(differs=0)]


def test_an_incomplete_line_from_a_killed_run_is_ignored(file):
    with file.open("a") as killed:
        killed.write("m,measured,to")
    assert read(file) == [plain(), row(differs=0)]
    append(row(prompt=1))
    assert read(file) == [plain(), row(differs=0), row(prompt=1)]


@pytest.mark.parametrize("left", ["", "machine,kind,on"])
def test_a_file_without_a_complete_line_has_no_rows_and_is_rewritten(left, file):
    file.write_text(left)
    assert read(file) == []
    append(plain())
    assert read(file) == [plain()]


@pytest.mark.parametrize(
    "old, new, says",
    [
        (",6,", ",six,", "seconds is 'six': it must be a number"),
        (",6,", ",-6,", "seconds is '-6': it must be a number, at least 0"),
        (",6,", ",nan,", "seconds is 'nan'"),
        (",6,", ",0,", "12 tokens in 0 s"),
        ("measured", "dreamt", "kind is 'dreamt'"),
        ("2025-11-28T01:00:00,", "2999-11-28T01:00:00,", "which is in the future"),
        ("2025-11-28T01:00:00,", "yesterday,", "yesterday"),
        (",6,", ",", "values, expected"),
    ],
)
def test_a_damaged_row_is_named_with_its_file_and_line(file, old, new, says):
    file.write_text(file.read_text().replace(old, new, 1))
    with pytest.raises(BadValue, match=rf"m\.csv, line 2: .*{says}"):
        read(file)


def test_a_repeated_run_is_named(file):
    append(row(differs=0))
    with pytest.raises(BadValue, match=r"line 4: it repeats the run of line 3"):
        read(file)


# -- a cell's runs ---------------------------------------------------------------------
def test_a_run_is_compared_with_plain_decoding_in_its_own_group():
    cell = Rows([plain(), row(), row(prompt=1), plain(2, 5.0), row(prompt=2)])
    runs = cell.of(PEARL, "m")
    assert [stats.seconds for stats in runs.baseline] == [6, 5]
    assert runs.labels == ["toy/0", "toy/2"]  # prompt 1 lacks plain decoding
    assert (runs.gamma, runs.c, runs.draft) == (3, 3.5, "toy")
    assert cell.of(PEARL, "another") is None


def test_if_a_prompt_was_run_twice_the_newest_group_counts():
    again = {"group": "later", "date": "2025-11-28T02:00:00"}
    newer = [plain(seconds=3.0, **again), row(seconds=1.5, **again)]
    runs = Rows([*newer, plain(), row()]).of(PEARL, "m")
    assert [stats.seconds for stats in runs.stats] == [1.5]


def test_busy_runs_count_only_if_fewer_than_two_are_quiet():
    def of(busy: set[int]):
        pairs = []
        for prompt in range(3):
            others = 0.5 if prompt in busy else 0.0
            pairs += [plain(prompt), replace(row(prompt=prompt), others=others)]
        return Rows(pairs).of(PEARL, "m")

    assert (len(of({0}).stats), of({0}).is_busy) == (2, False)
    assert (len(of({0, 1}).stats), of({0, 1}).is_busy) == (3, True)
