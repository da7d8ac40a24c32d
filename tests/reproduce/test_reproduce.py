"""`make reproduce`: deterministic, whole files, resumable.

Each run is a process of its own over a copy of the data in a temporary home, with three
of PEARL's tables to fill and no notebook.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from helpers.patience import wait_until
from helpers.processes import OWN_SESSION, killed_at_the_end
from helpers.reproduce_home import (
    REPRODUCE,
    ROOT,
    command,
    make_home,
    reports,
    run,
)
from helpers.tables import read_ledger

from speclab.papers.ledger import (
    DEVICE_SECONDS,
    OVER_SAME_DEVICES,
    SAME_DEVICES_SUFFIX,
    LedgerLine,
    read_claims,
)
from speclab.runs.rows import read

pytestmark = pytest.mark.slow

MEASURE = ("reproduce", "--minutes=60")
TABLES = ("table-4", "table-5", "table-9")
PRINTS = ("ledger.csv", "claims.csv", "pearl.md")


@pytest.fixture(scope="module")
def finished_home(tmp_path_factory):
    """A home in which everything has been made once."""
    home = make_home(tmp_path_factory.mktemp("first"), TABLES, brief=True)
    run(home, *REPRODUCE)
    return home


@pytest.fixture
def home(finished_home, tmp_path):
    """A copy of it, to change."""
    return Path(shutil.copytree(finished_home, tmp_path / "home"))


def ledger_of(home: Path) -> list[LedgerLine]:
    return read_ledger(home / "reports" / "ledger.csv")


def markdown_of(home: Path) -> str:
    """All pages of the paper's items."""
    pages = sorted((home / "reports" / "pearl").glob("*.md"))
    return "\n".join(page.read_text() for page in pages)


def quick_latencies(home: Path) -> None:
    """Each forward pass is a hundred times as fast."""

    def shorten(match: re.Match[str]) -> str:
        return f"[[1, {float(match[1]) / 100}]]"

    for path in (home / "data" / "latency").rglob("*.toml"):
        text = path.read_text()
        path.write_text(re.sub(r"\[\[1, ([\d.]+)\]\]", shorten, text))


# -- the same again --------------------------------------------------------------------
def test_again_and_from_nothing_it_gives_the_same_bytes(finished_home, home, tmp_path):
    other = make_home(tmp_path / "other", TABLES, brief=True)
    run(other, *REPRODUCE)
    run(home, *REPRODUCE)
    for name in PRINTS:
        first = reports(finished_home)[name]
        assert reports(other)[name] == first
        assert reports(home)[name] == first
    virtual = "data/virtual.csv"
    assert (other / virtual).read_bytes() == (home / virtual).read_bytes()
    assert {line.kind for line in ledger_of(home)} == {"paper", "virtual"}


def test_speedups_have_a_second_number_and_their_claims_a_second_verdict(finished_home):
    lines = ledger_of(finished_home)
    metrics = {line.metric for line in lines if line.kind == "virtual"}
    assert metrics >= {"speedup", OVER_SAME_DEVICES, DEVICE_SECONDS}
    claims = read_claims(finished_home / "reports" / "claims.csv")
    assert any(line.claim.endswith(SAME_DEVICES_SUFFIX) for line in claims)


def test_a_changed_print_changes_the_reports_and_computes_nothing(home):
    before = (home / "data" / "virtual.csv").stat().st_mtime_ns
    table = home / "data" / "papers" / "pearl" / "table-5.toml"
    table.write_text(table.read_text().replace("40.72]", "40.73]"))
    run(home, *REPRODUCE)
    assert "40.73" in markdown_of(home)
    assert (home / "data" / "virtual.csv").stat().st_mtime_ns == before


# -- measuring, and what stops it ------------------------------------------------------
class Stopped(NamedTuple):
    """The results of a stopped run: its exit code, its output, and all rows so far."""

    code: int
    printed: str
    rows: dict


@pytest.fixture(scope="module")
def stopped_runs(tmp_path_factory):
    """A home whose first run was killed, and whose second was interrupted."""
    folder = tmp_path_factory.mktemp("emulating")
    home = make_home(folder / "home", virtual=(), emulated=["table-15"], brief=True)
    quick_latencies(home)
    return home, [stopped(home, by) for by in (signal.SIGKILL, signal.SIGINT)]


@pytest.fixture(scope="module")
def emulated_home(stopped_runs):
    """The same home after a run to the end."""
    home, _ = stopped_runs
    (home / "data" / "papers" / "pearl" / "table-15.toml").touch()
    run(home, *MEASURE)
    return home


def stopped(home: Path, by: signal.Signals) -> Stopped:
    """Measures in a home until there are a few more rows, then stops."""
    before = len(rows_of(home))
    process = command(home, *MEASURE, **OWN_SESSION)
    with killed_at_the_end(process):
        assert wait_until(lambda: len(rows_of(home)) > before + 3)
        process.send_signal(by)
        out, err = process.communicate(timeout=120)
    return Stopped(process.returncode, out + err, rows_of(home))


def rows_of(home: Path) -> dict:
    rows = [row for path in row_files(home) for row in read(path)]
    return {(row.key, row.group): row for row in rows}


def row_files(home: Path) -> list[Path]:
    return sorted((home / ".cache" / "runs").glob("*.csv"))


def test_an_interrupted_run_says_how_to_continue(stopped_runs):
    _, (_, interrupted) = stopped_runs
    assert interrupted.code == 130, interrupted.printed
    assert "run again to continue" in interrupted.printed


def test_rows_of_stopped_runs_stay_and_the_next_run_continues(
    stopped_runs, emulated_home
):
    _, (killed, interrupted) = stopped_runs
    assert killed.rows
    assert killed.rows.items() <= interrupted.rows.items()
    assert interrupted.rows.items() <= rows_of(emulated_home).items()
    assert {line.kind for line in ledger_of(emulated_home)} == {"paper", "emulated"}


def test_another_machines_rows_are_shown_with_ours(emulated_home, tmp_path):
    home = Path(shutil.copytree(emulated_home, tmp_path / "home"))
    (own,) = row_files(home)
    other = home / "other.csv"
    other.write_text(own.read_text().replace(own.stem, "epyc-64c-0a1b2c-20GBs"))
    out = run(home, "merge", "other.csv")
    assert f"{len(rows_of(home))} new rows" in out
    run(home, *REPRODUCE)
    assert "`emulated` @ epyc-64c-0a1b2c-20GBs" in markdown_of(home)


def test_cells_that_fail_are_named_and_all_others_are_written(tmp_path):
    pytest.importorskip("torch")
    home = make_home(
        tmp_path / "home", virtual=["table-7"], measured=["table-7"], brief=True
    )
    out = run(home, *MEASURE, status=1)
    assert "failed; the others are stored" in out
    assert "codellama-7b-34b" in out
    virtual = [line.value for line in ledger_of(home) if line.kind == "virtual"]
    assert len(virtual) >= 8


# -- in a checkout ---------------------------------------------------------------------
def test_in_a_checkout_no_tracked_file_is_written(tmp_path):
    checkout = make_home(tmp_path / "checkout", virtual=())
    for folder in ("speclib", "speclab", "reports"):
        shutil.copytree(ROOT / folder, checkout / folder)
    shutil.copy(ROOT / ".gitignore", checkout)

    def git(*words: str) -> str:
        author = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        called = ("git", *author, *words)
        ended = subprocess.run(called, cwd=checkout, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    git("init")
    git("add", ".")
    git("commit", "-m", "all")
    assert "reports/local/index.html" in run(checkout, *REPRODUCE)
    assert (checkout / "reports" / "local" / "pearl.md").is_file()
    assert git("status", "--porcelain") == ""

    publishing = {"SPECLIB_REPORTS": "reports"}
    assert command(checkout, *REPRODUCE, environment=publishing).wait(120) == 0
    assert "reports/pearl.md" in git("status", "--porcelain")


# -- mistakes --------------------------------------------------------------------------
def test_a_mistake_is_one_line_that_names_what_is_known(home):
    out = run(home, "reproduce", "--paper", "pearls", status=2)
    assert out.startswith("error: no paper 'pearls'")
    assert "known: pearl" in out
    assert len(out.splitlines()) == 1
    out = run(home, "reproduce", "--minutes=-3", status=2)
    assert out.startswith("error: minutes is -3: give")


def test_merging_a_file_without_rows_names_it(home):
    (home / "bad.csv").write_text("a,b\n1,2\n")
    assert "bad.csv has other columns" in run(home, "merge", "bad.csv", status=2)
    assert not (home / "data" / "runs").exists()


# -- two at once -----------------------------------------------------------------------
def test_a_second_run_in_the_same_checkout_waits_and_says_so(tmp_path):
    """The first run is paused until the second has said so, however fast it is."""
    home = make_home(tmp_path / "home")
    with ExitStack() as processes:
        first = command(home, *REPRODUCE)
        processes.enter_context(killed_at_the_end(first))
        assert wait_until((home / ".cache" / "reproduce.lock").exists)

        first.send_signal(signal.SIGSTOP)
        try:
            second = command(home, *REPRODUCE, stderr=subprocess.STDOUT)
            processes.enter_context(killed_at_the_end(second))
            assert second.stdout is not None
            assert "another run is under way" in second.stdout.readline()
        finally:
            first.send_signal(signal.SIGCONT)
