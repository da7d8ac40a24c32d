"""The lines that we read are looked up in real clones, made here with git."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from speclab.audit.items import Audit
from speclab.audit.readings import check_readings, digest_of
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
    """Commits the engine with these lines, and returns the commit."""
    (clone / "engine.py").write_text("\n".join(lines) + "\n")
    git(clone, "add", ".")
    git(clone, "commit", "-q", "-m", "work")
    return git(clone, "rev-parse", "HEAD")


@pytest.fixture
def clone(tmp_path) -> Path:
    """A clone of github.com/a/b in a folder of clones."""
    folder = tmp_path / "clones" / "b"
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    return folder


def check(folder: Path, at: str, **changed: str) -> str:
    """The result of looking up one reading ``at`` a commit in the clones."""
    reading = {
        "code": "engine",
        "file": "engine.py",
        "lines": "3-5",
        "digest": DIGEST,
        "reads": "The draft is kept.",
        **changed,
    }
    audit = Audit(
        documents={},
        code={"engine": {"repository": "github.com/a/b", "commit": at}},
        slips=[{"id": "one", "documents": [], "says": "", "readings": [reading]}],
    )
    (checked,) = check_readings(audit, folder)
    return str(checked)


def test_a_digest_is_that_of_the_lines_without_white_space_at_their_ends():
    assert digest_of(ENGINE[2:]) == DIGEST


def test_lines_are_as_read_and_then_move_and_change(clone):
    at = commit(clone, ENGINE)
    told = check(clone.parent, at)
    assert told.endswith("engine.py:3-5: as read, the same at HEAD")
    assert told.startswith(f"one: github.com/a/b@{at[:7]} ")

    commit(clone, ["# the engine", *ENGINE])
    assert check(clone.parent, at).endswith("as read, moved to line 4 at HEAD")

    commit(clone, ["draft = write(5)", "test(draft)", "keep(draft)"])
    assert check(clone.parent, at).endswith("as read, changed at HEAD")


@pytest.mark.parametrize(
    "changed",
    [{"digest": "0" * 12}, {"lines": "2-4"}, {"lines": "90-92"}, {"file": "no.py"}],
)
def test_a_digest_that_does_not_fit_is_told(changed, clone):
    at = commit(clone, ENGINE)
    assert "not what was read" in check(clone.parent, at, **changed)


def test_a_commit_that_the_clone_lacks_is_told(clone):
    commit(clone, ENGINE)
    told = check(clone.parent, "f" * 40)
    assert told.endswith("no such commit, not checked at HEAD")


def test_a_folder_without_clones_is_refused_with_what_to_do(tmp_path):
    with pytest.raises(SpeclibError, match="git clone https://github.com/a/b"):
        check(tmp_path, "f" * 40)
