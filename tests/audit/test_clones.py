"""Code that was read is looked up in real clones, made here by git."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from helpers.audit_files import COMMIT, PUBLICATION, item_of_code

from speclab.audit.clones import check_readings, digest_of
from speclab.audit.load_items import load_audit
from speclib.errors import SpeclibError

ENGINE = ["import model", "", "draft = write(5)", "test(draft[1:])  ", "keep(draft)"]
READ = hashlib.sha256(b"draft = write(5)\ntest(draft[1:])\nkeep(draft)")
DIGEST = READ.hexdigest()[:12]


def git(folder: Path, *command: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *command],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def commit(clone: Path, lines: list[str]) -> str:
    """Commits the engine with these lines; gives the commit."""
    (clone / "engine.py").write_text("\n".join(lines) + "\n")
    git(clone, "add", ".")
    git(clone, "commit", "-q", "-m", "work")
    return git(clone, "rev-parse", "HEAD")


@pytest.fixture
def clone(tmp_path) -> Path:
    """A clone of github.com/a/b with one commit, in a folder of clones."""
    folder = tmp_path / "clones" / "some-name"
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "remote", "add", "origin", "git@github.com:A/b.git")
    commit(folder, ENGINE)
    return folder


def readings(tmp_path: Path, at: str, folder: Path, **piece: str):
    """What the clones say of an audit with one item, which read ``at`` a commit."""
    audit = tmp_path / "audit"
    audit.mkdir(exist_ok=True)
    item = item_of_code(**{"digest": DIGEST, **piece})
    publication = PUBLICATION.replace(COMMIT, at)
    (audit / "pearl.toml").write_text(publication + item)
    load_audit.cache_clear()
    return check_readings(load_audit(audit), folder)


def test_a_digest_is_that_of_the_lines_without_white_space_at_their_ends():
    assert digest_of(ENGINE[2:]) == DIGEST


def test_lines_are_as_read_and_still_the_same(clone, tmp_path):
    at = git(clone, "rev-parse", "HEAD")
    (reading,) = readings(tmp_path, at, clone.parent)
    assert (reading.item, reading.at_commit, reading.today) == (
        "one",
        "as read",
        "the same",
    )


def test_a_clone_itself_is_a_folder_of_clones(clone, tmp_path):
    at = git(clone, "rev-parse", "HEAD")
    (reading,) = readings(tmp_path, at, clone)
    assert reading.at_commit == "as read"


def test_lines_that_moved_or_changed_since_are_told(clone, tmp_path):
    at = git(clone, "rev-parse", "HEAD")
    commit(clone, ["# the engine", *ENGINE])
    (reading,) = readings(tmp_path, at, clone.parent)
    assert (reading.at_commit, reading.today) == ("as read", "moved")
    assert reading.lines_today == "4-6"

    commit(clone, ["draft = write(5)", "test(draft)", "keep(draft)"])
    (reading,) = readings(tmp_path, at, clone.parent)
    assert (reading.at_commit, reading.today) == ("as read", "changed")


@pytest.mark.parametrize(
    "piece",
    [{"digest": "0" * 12}, {"lines": "2-4"}, {"lines": "90-92"}, {"file": "no.py"}],
)
def test_a_digest_that_does_not_fit_is_told(piece, clone, tmp_path):
    at = git(clone, "rev-parse", "HEAD")
    (reading,) = readings(tmp_path, at, clone.parent, **piece)
    assert reading.at_commit == "not what was read"


def test_a_commit_that_the_clone_lacks_is_told(clone, tmp_path):
    (reading,) = readings(tmp_path, "f" * 40, clone.parent)
    assert (reading.at_commit, reading.today) == ("no such commit", "not checked")


def test_a_folder_without_clones_is_refused_with_what_to_do(tmp_path):
    with pytest.raises(SpeclibError, match="git clone https://github.com/a/b"):
        readings(tmp_path, "f" * 40, tmp_path)
    with pytest.raises(SpeclibError, match="is no folder"):
        readings(tmp_path, "f" * 40, tmp_path / "nowhere")
