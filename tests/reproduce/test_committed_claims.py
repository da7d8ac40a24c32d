"""What the index takes from the repository's last commit: its verdicts, or nothing."""

from __future__ import annotations

import subprocess

from helpers.reproduce_home import enter, make_home

from speclab.papers.ledger import VerdictLine, write_claims
from speclab.reproduce.publish import committed_claims, write_index_page

LINE = VerdictLine("pearl", "table-1", "up-to-4.43-over-ar", "measured", "no", "3", "4")


def git(home, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", "-C", home, *identity, *words], check=True)


def test_verdicts_are_those_of_the_last_commit_and_not_of_the_working_tree(
    tmp_path, monkeypatch
):
    home = make_home(tmp_path / "home")
    enter(home, monkeypatch)
    reports = home / "reports"
    reports.mkdir(exist_ok=True)
    of_no_paper = LINE._replace(paper="nobody")
    write_claims(reports / "claims.csv", [LINE, of_no_paper])
    assert committed_claims() == []  # there is no git yet
    write_index_page()
    assert not (reports / "index.html").exists()

    git(home, "init", "--quiet")
    git(home, "add", "reports")
    git(home, "commit", "--quiet", "-m", "claims")
    write_claims(reports / "claims.csv", [])
    assert committed_claims() == [LINE]
    write_index_page()
    index = (reports / "index.html").read_text("utf-8")
    assert "from the committed ledger" in index
    assert "Not run in this checkout" in index


def test_a_committed_file_with_other_columns_is_left_alone(tmp_path, monkeypatch):
    home = make_home(tmp_path / "home")
    enter(home, monkeypatch)
    reports = home / "reports"
    reports.mkdir(exist_ok=True)
    (reports / "claims.csv").write_text("paper,verdict\npearl,yes\n")
    git(home, "init", "--quiet")
    git(home, "add", "reports")
    git(home, "commit", "--quiet", "-m", "claims")
    assert committed_claims() == []
