"""`make reproduce`: deterministic, idle when nothing changed, whole files, resumable.

Each run is a process of its own over a copy of the data in a temporary home, with two
of PEARL's tables to fill and no notebook.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import pytest
from helpers.patience import wait_until
from helpers.processes import killed_at_the_end
from helpers.reproduce_home import (
    FILES,
    REPRODUCE,
    command,
    enter,
    make_home,
    reports,
    run,
)

from speclab.papers.ledger import (
    DEVICE_SECONDS,
    OVER_SAME_DEVICES,
    SAME_DEVICES_SUFFIX,
    LedgerLine,
    read_claims,
    read_ledger,
    write_ledger,
)
from speclab.reproduce import freshness
from speclib.atomic_files import write_atomically

pytestmark = pytest.mark.slow

WITH_REAL_MODELS = ("reproduce", "--quick", "--minutes=60")


@pytest.fixture(scope="module")
def finished_home(tmp_path_factory):
    """A home in which everything has been made once."""
    home = make_home(tmp_path_factory.mktemp("first"), brief=True)
    run(home, *REPRODUCE)
    return home


@pytest.fixture
def home(finished_home, tmp_path):
    """A copy of it, to change."""
    return Path(shutil.copytree(finished_home, tmp_path / "home"))


def ledger_of(home: Path) -> list[LedgerLine]:
    return read_ledger(home / "reports" / "ledger.csv")


def markdown_of(home: Path) -> str:
    return (home / "reports" / "pearl.md").read_text()


def times_of_change(paths: Iterable[Path]) -> dict[Path, int]:
    """When each file was last written, in nanoseconds."""
    return {path: path.stat().st_mtime_ns for path in paths if path.is_file()}


def processor_seconds_of_children() -> float:
    """Of those that have ended: what they cost on a busy machine, too."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


# -- the same again --------------------------------------------------------------------
@pytest.mark.thorough
def test_two_runs_from_nothing_give_the_same_bytes(tmp_path):
    """With as many requests as a quick run has, whose order might matter."""
    homes = [make_home(tmp_path / name) for name in ("first", "second")]
    for home in homes:
        run(home, *REPRODUCE)
        assert {row.kind for row in ledger_of(home)} == {"paper", "virtual"}

    first_reports, second_reports = map(reports, homes)
    for name in ("ledger.csv", "claims.csv", "pearl.md"):
        assert first_reports[name] == second_reports[name], name


def test_without_real_models_numbers_are_virtual_and_emulated_and_both_are_cached(
    tmp_path,
):
    home = make_home(
        tmp_path / "home", virtual=["table-4"], emulated=["table-4"], brief=True
    )
    for path in (home / "data" / "latency").rglob("*.toml"):
        path.write_text(with_a_tenth_of_each_pass(path.read_text()))

    run(home, *REPRODUCE)
    rows = ledger_of(home)
    assert {row.kind for row in rows} == {"paper", "virtual", "emulated"}
    assert cells_of_kind(rows, "virtual") == cells_of_kind(rows, "emulated")
    first_report = markdown_of(home)
    assert "| emulated |" in first_report

    # The clock's speed-ups have a second number, and the claims on it a second verdict.
    second = [row for row in rows if row.metric == OVER_SAME_DEVICES]
    assert {row.kind for row in second} == {"virtual"}
    claims = read_claims(home / "reports" / "claims.csv")
    judged_twice = [row for row in claims if row.claim.endswith(SAME_DEVICES_SUFFIX)]
    assert judged_twice
    assert {row.kind for row in judged_twice} == {"virtual"}

    shutil.rmtree(home / "reports")
    run(home, *REPRODUCE)
    assert markdown_of(home) == first_report


def with_a_tenth_of_each_pass(latency: str) -> str:
    """A latency file's text with each forward pass ten times as fast."""

    def shorten(match: re.Match[str]) -> str:
        return f"[[1, {float(match[1]) / 10}]]"

    return re.sub(r"\[\[1, ([\d.]+)\]\]", shorten, latency)


def cells_of_kind(rows: list[LedgerLine], kind: str) -> set[tuple[str, ...]]:
    """Item, row, column, metric and unit of all first numbers of a kind."""
    second = (OVER_SAME_DEVICES, DEVICE_SECONDS)
    return {
        (row.item, row.row, row.column, row.metric, row.unit)
        for row in rows
        if row.kind == kind and row.metric not in second
    }


def test_a_second_run_does_nothing_and_says_so(home):
    before = times_of_change(home.rglob("*"))
    seconds_before = processor_seconds_of_children()
    assert "nothing changed" in run(home, *REPRODUCE)
    assert processor_seconds_of_children() - seconds_before < 5
    assert times_of_change(home.rglob("*")) == before


@pytest.mark.parametrize(
    "lost",
    [FILES, *(pytest.param((name,), marks=pytest.mark.thorough) for name in FILES)],
    ids=["all", *FILES],
)
def test_a_lost_report_is_made_again(home, lost):
    before = reports(home)
    for name in lost:
        (home / "reports" / name).unlink()
    run(home, *REPRODUCE)
    after = reports(home)
    assert after["pearl.md"] == before["pearl.md"]
    assert after["ledger.csv"] == before["ledger.csv"]


@pytest.mark.parametrize("name", FILES)
def test_a_lost_or_edited_report_is_to_be_made_again(home, name, monkeypatch):
    """A run makes again what is not current: see the test before."""
    report = home / "reports" / name
    content = report.read_bytes()
    assert is_current(home, monkeypatch)
    report.unlink()
    assert not is_current(home, monkeypatch)
    report.write_bytes(content + b"edited")
    assert not is_current(home, monkeypatch)
    report.write_bytes(content)
    assert is_current(home, monkeypatch)


def is_current(home: Path, monkeypatch, *, measured: bool = False) -> bool:
    """What a quick run of ``speclab reproduce`` in this home asks before all else."""
    enter(home, monkeypatch)
    inputs = freshness.hash_of_inputs("pearl", quick=True, measured=measured)
    return freshness.is_current("pearl", inputs)


def test_a_changed_cell_changes_the_reports_and_no_run_is_repeated(home):
    rows = home / ".cache" / "rows"
    before = times_of_change(rows.iterdir())
    table = home / "data" / "papers" / "pearl" / "table-5.toml"
    table.write_text(table.read_text().replace("40.72]", "40.73]"))
    run(home, *REPRODUCE)
    assert "40.73" in markdown_of(home)
    assert times_of_change(rows.iterdir()) == before


# -- interruptions ---------------------------------------------------------------------
def test_a_killed_run_leaves_whole_files_only_and_its_cells_are_stored(tmp_path):
    home = make_home(tmp_path / "home")
    rows = home / ".cache" / "rows"
    process = command(home, *REPRODUCE)
    until = time.monotonic() + 120
    while len(list(rows.glob("*.jsonl"))) < 3:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()

    stored = {}
    for path in rows.glob("*.jsonl"):
        head, *body = path.read_text().splitlines()
        assert json.loads(head)["key"] == path.stem
        stored[path] = [json.loads(line) for line in body]
        assert all(stored[path])
    assert not (home / "reports" / "ledger.csv").exists()

    run(home, *REPRODUCE)
    for path, kept in stored.items():  # a cell may get more requests, and keeps these
        _, *body = path.read_text().splitlines()
        assert [json.loads(line) for line in body[: len(kept)]] == kept
    assert ledger_of(home)


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "ledger.csv"
    write_atomically(path, "old")

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_says_how_to_go_on(tmp_path):
    many_tables = ["table-1", "table-5", "table-6", "table-14"]
    home = make_home(tmp_path / "home", virtual=many_tables)
    process = command(home, *REPRODUCE)
    while process.poll() is None and not (home / ".cache" / "rows").is_dir():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert "finished cells are stored" in err, out + err


# -- mistakes --------------------------------------------------------------------------
def test_a_mistake_is_one_line_that_names_what_is_known(home):
    out = run(home, "reproduce", "--paper", "pearls", status=2)
    assert out.startswith("error: no paper 'pearls'")
    assert "known: pearl" in out
    assert len(out.splitlines()) == 1


def test_cells_that_fail_are_named_and_all_others_are_written(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    home = make_home(
        tmp_path / "home", virtual=["table-7"], measured=["table-7"], brief=True
    )
    out = run(home, *WITH_REAL_MODELS, status=1)
    assert "failed; all others are stored" in out
    assert "codellama-7b-34b" in out

    virtual_values = []
    for row in ledger_of(home):
        if row.kind == "measured":
            assert row.value is None
            assert row.note.startswith("failed")
        if row.kind == "virtual" and row.value is not None:
            virtual_values.append(row.value)
    assert len(virtual_values) >= 8
    assert "failed" in (home / "reports" / "index.html").read_text()
    assert not is_current(home, monkeypatch, measured=True)


@pytest.mark.thorough
def test_a_run_with_cells_that_fail_is_not_taken_for_finished(tmp_path):
    pytest.importorskip("torch")
    home = make_home(
        tmp_path / "home", virtual=["table-7"], measured=["table-7"], brief=True
    )
    run(home, *WITH_REAL_MODELS, status=1)
    assert "nothing changed" not in run(home, *WITH_REAL_MODELS, status=1)


# -- other machines --------------------------------------------------------------------
@pytest.fixture
def ledger_of_another_machine(home):
    """A measured speed of its own, beside rows that are ours already."""
    row = LedgerLine(
        paper="pearl",
        item="table-5",
        row="3",
        column="CodeLlama 7&34",
        metric="decode_speed",
        unit="tok/s",
        kind="measured",
        setup="hub/codellama-7b-34b@epyc-64c-4gpu-0a1b2c/bfloat16/1",
        value=51.5,
        low=50.0,
        high=53.0,
        n=8,
    )
    path = home / "other.csv"
    write_ledger(path, [*ledger_of(home), row])
    return path


def test_another_machines_numbers_stand_beside_ours_and_survive_the_next_run(
    home, ledger_of_another_machine
):
    assert "1 new lines" in run(home, "merge", str(ledger_of_another_machine))
    for options in ((), ("--paper", "pearl")):
        run(home, *REPRODUCE, *options)
        assert "| measured @ epyc-64c-4gpu-0a1b2c |" in markdown_of(home)
        assert 51.5 in [row.value for row in ledger_of(home)]
    assert "nothing changed" in run(home, *REPRODUCE)


def test_merging_a_file_that_is_no_ledger_names_it(home):
    (home / "bad.csv").write_text("a,b\n1,2\n")
    before = reports(home)
    assert "bad.csv is no ledger" in run(home, "merge", "bad.csv", status=2)
    assert reports(home) == before


# -- two at once, and budgets ----------------------------------------------------------
def test_a_second_run_in_the_same_checkout_waits_and_says_so(tmp_path):
    """The first one is stopped until the second has said so, however fast it is."""
    home = make_home(tmp_path / "home", brief=True)
    with ExitStack() as processes:
        first = command(home, *REPRODUCE)
        processes.enter_context(killed_at_the_end(first))
        assert wait_until((home / ".cache" / "rows").is_dir)

        first.send_signal(signal.SIGSTOP)
        try:
            second = command(home, *REPRODUCE, stderr=subprocess.STDOUT)
            processes.enter_context(killed_at_the_end(second))
            assert second.stdout is not None
            assert "another run is under way" in second.stdout.readline()
        finally:
            first.send_signal(signal.SIGCONT)

        out, err = first.communicate(timeout=300)
        assert first.returncode == 0, out + err
        out, _ = second.communicate(timeout=300)
        assert second.returncode == 0, out
        assert "nothing changed" in out


def test_what_seemed_too_long_is_run_once_it_is_known_to_be_short(tmp_path):
    home = make_home(tmp_path / "home", virtual=["table-5", "theorem-2"], brief=True)
    # As if a token had taken 1.9 s here: an hour is enough for the first part of
    # the seven cells of Theorem 2, and not for that of the fifteen of Table 5.
    (home / ".cache").mkdir()
    (home / ".cache" / "pace.json").write_text(json.dumps({"virtual pearl": 1.9}))
    out = run(home, *REPRODUCE)
    assert "the budget is 60 min" in out
    assert "are not done" not in out
    virtual_items = {row.item for row in ledger_of(home) if row.kind == "virtual"}
    assert virtual_items == {"table-5", "theorem-2"}


@pytest.mark.parametrize(
    "minutes", [pytest.param("0", marks=pytest.mark.thorough), "-3", "0.0001"]
)
def test_a_budget_in_which_nothing_fits_says_what_the_least_is(tmp_path, minutes):
    home = make_home(tmp_path / "home")
    out = run(home, *REPRODUCE, f"--minutes={minutes}", status=2)
    assert out.splitlines()[-1].startswith("error: minutes is ")
    assert "give" in out
    assert not (home / "reports").exists()
