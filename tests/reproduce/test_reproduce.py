"""`make reproduce`: deterministic, idle when nothing changed, whole files only,
resumable.

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
import time
from pathlib import Path

import pytest
from helpers.reproduce_home import (
    FILES,
    REPRODUCE,
    command,
    make_home,
    reports,
    run,
)

from speclib.experiment.atomic_files import write_atomically
from speclib.papers.ledger import LedgerRow, read_ledger, write_ledger


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A home in which everything has been made once."""
    home = make_home(tmp_path_factory.mktemp("first"))
    run(home, *REPRODUCE)
    return home


@pytest.fixture
def home(done, tmp_path):
    """A copy of it, to change."""
    return Path(shutil.copytree(done, tmp_path / "home"))


@pytest.mark.slow
def test_two_runs_from_nothing_give_the_same_bytes(done, tmp_path):
    other = make_home(tmp_path / "second")
    run(other, *REPRODUCE)
    one, two = reports(done), reports(other)
    for name in ("ledger.csv", "claims.csv", "pearl.md"):
        assert one[name] == two[name], name
    kinds = {row.kind for row in read_ledger(done / "reports" / "ledger.csv")}
    assert kinds == {"paper", "virtual"}


def test_without_real_models_numbers_are_virtual_and_emulated_and_both_are_cached(
    tmp_path,
):
    home = make_home(tmp_path / "home", virtual=["table-4"], emulated=["table-4"])
    for path in (home / "data" / "latency").rglob(
        "*.toml"
    ):  # a tenth of each forward pass
        path.write_text(
            re.sub(
                r"\[\[1, ([\d.]+)\]\]",
                lambda m: f"[[1, {float(m[1]) / 10}]]",
                path.read_text(),
            )
        )
    run(home, *REPRODUCE)
    rows = read_ledger(home / "reports" / "ledger.csv")
    assert {row.kind for row in rows} == {"paper", "virtual", "emulated"}
    ours = {k: {r[1:6] for r in rows if r.kind == k} for k in ("virtual", "emulated")}
    assert ours["virtual"] == ours["emulated"]
    first = (home / "reports" / "pearl.md").read_bytes()
    assert b"| emulated |" in first
    shutil.rmtree(home / "reports")
    run(home, *REPRODUCE)
    assert (home / "reports" / "pearl.md").read_bytes() == first


def processor_seconds_of_children() -> float:
    """Of those that have ended: what they cost on a busy machine, too."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_a_second_run_does_nothing_and_says_so(home):
    before = {p: p.stat().st_mtime_ns for p in home.rglob("*") if p.is_file()}
    spent = processor_seconds_of_children()
    assert "nothing changed" in run(home, *REPRODUCE)
    assert processor_seconds_of_children() - spent < 5
    assert {p: p.stat().st_mtime_ns for p in home.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("name", FILES)
def test_a_lost_or_edited_report_is_made_again(home, name):
    before = reports(home)
    (home / "reports" / name).unlink()
    run(home, *REPRODUCE)
    after = reports(home)
    assert (
        after["pearl.md"] == before["pearl.md"]
        and after["ledger.csv"] == before["ledger.csv"]
    )


def test_a_changed_cell_changes_the_reports_and_no_run_is_repeated(home):
    rows = {p: p.stat().st_mtime_ns for p in (home / ".cache" / "rows").iterdir()}
    table = home / "data" / "papers" / "pearl" / "table-5.toml"
    table.write_text(table.read_text().replace("40.72]", "40.73]"))
    run(home, *REPRODUCE)
    assert "40.73" in (home / "reports" / "pearl.md").read_text()
    assert {
        p: p.stat().st_mtime_ns for p in (home / ".cache" / "rows").iterdir()
    } == rows


def test_a_killed_run_leaves_whole_files_only_and_its_cells_are_kept(tmp_path):
    home = make_home(tmp_path / "home")
    process = command(home, *REPRODUCE)
    rows = home / ".cache" / "rows"
    until = time.monotonic() + 120
    while not (rows.is_dir() and len(list(rows.glob("*.jsonl"))) >= 3):
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = {p: p.stat().st_mtime_ns for p in rows.glob("*.jsonl")}
    for path in kept:
        head, *body = path.read_text().splitlines()
        assert json.loads(head)["key"] == path.stem and all(map(json.loads, body))
    assert not (home / "reports" / "ledger.csv").exists()
    run(home, *REPRODUCE)
    assert {p: p.stat().st_mtime_ns for p in kept} == kept
    assert read_ledger(home / "reports" / "ledger.csv")


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "ledger.csv"
    write_atomically(path, "old")

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_an_interrupt_says_how_to_go_on(tmp_path):
    home = make_home(
        tmp_path / "home", virtual=["table-1", "table-5", "table-6", "table-14"]
    )
    process = command(home, *REPRODUCE)
    while process.poll() is None and not (home / ".cache" / "rows").is_dir():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "finished cells are kept" in err, out + err


def test_a_mistake_is_one_line_that_names_what_is_known(home):
    out = run(home, "reproduce", "--paper", "pearls", status=2)
    assert out.startswith("error: no paper 'pearls'") and "known: pearl" in out
    assert len(out.splitlines()) == 1


@pytest.fixture
def elsewhere(home):
    """Another machine's ledger: one measured speed, beside rows that we have."""
    row = LedgerRow(
        "pearl",
        "table-5",
        "3",
        "CodeLlama 7&34",
        "decode_speed",
        "tok/s",
        "measured",
        "hub/codellama-7b-34b@epyc-64c-4gpu-0a1b2c/bfloat16/1",
        51.5,
        50.0,
        53.0,
        8,
    )
    path = home / "other.csv"
    write_ledger(path, [*read_ledger(home / "reports" / "ledger.csv"), row])
    return path


def test_another_machines_numbers_stand_beside_ours_and_survive_the_next_run(
    home, elsewhere
):
    assert "1 new rows" in run(home, "merge", str(elsewhere))
    for extra in ((), ("--paper", "pearl")):
        run(home, *REPRODUCE, *extra)
        assert (
            "| measured @ epyc-64c-4gpu-0a1b2c |"
            in (home / "reports" / "pearl.md").read_text()
        )
        assert any(
            row.value == 51.5 for row in read_ledger(home / "reports" / "ledger.csv")
        )
    assert "nothing changed" in run(home, *REPRODUCE)


def test_merging_a_file_that_is_no_ledger_names_it(home):
    (home / "bad.csv").write_text("a,b\n1,2\n")
    before = reports(home)
    assert "bad.csv is no ledger" in run(home, "merge", "bad.csv", status=2)
    assert reports(home) == before


def test_cells_that_fail_are_named_and_all_others_are_written(tmp_path):
    pytest.importorskip("torch")
    home = make_home(tmp_path / "home", virtual=["table-7"], measured=["table-7"])
    out = run(home, "reproduce", "--quick", status=1)
    assert "failed; all others are kept" in out and "codellama-7b-34b" in out
    rows = read_ledger(home / "reports" / "ledger.csv")
    assert sum(r.kind == "virtual" and r.value is not None for r in rows) >= 8
    assert all(
        r.value is None and r.note.startswith("failed")
        for r in rows
        if r.kind == "measured"
    )
    assert "failed" in (home / "reports" / "index.html").read_text()
    assert "nothing changed" not in run(home, "reproduce", "--quick", status=1)
