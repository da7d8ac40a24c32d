"""Files are written whole or not at all: on a full disk, by a writer that is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.processes import with_files_of_at_most

from speclib.atomic_files import remove_leftovers, write_atomically

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="limits files, mounts a disk"
)

WRITE_300_KILOBYTES = """
import sys
from pathlib import Path
from speclib.errors import SpeclibError
from speclib.atomic_files import write_atomically
try:
    write_atomically(Path(sys.argv[1]), "new" * 100_000)
except SpeclibError as error:
    sys.exit(str(error))
"""


def test_a_write_is_whole_or_not_there(tmp_path):
    path = tmp_path / "deep" / "file.csv"
    write_atomically(path, "old\n")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "new \ud800\n")
    assert path.read_text() == "old\n"
    assert [file.name for file in path.parent.iterdir()] == ["file.csv"]


def assert_a_write_is_refused(path: Path, **options: Any) -> None:
    """A write of 300 kB, by a process with these options, fails and changes nothing."""
    path.write_text("old")
    writer = subprocess.run(
        [sys.executable, "-c", WRITE_300_KILOBYTES, path],
        capture_output=True,
        text=True,
        **options,
    )
    assert writer.returncode == 1
    assert writer.stderr.startswith(f"cannot write {path}: ")
    assert "run again" in writer.stderr
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_a_write_that_is_refused_names_the_file_and_leaves_the_old_one(tmp_path):
    assert_a_write_is_refused(tmp_path / "ledger.csv", **with_files_of_at_most(100_000))


def test_a_full_disk_does_the_same(tmp_path):
    mount = ["mount", "-t", "tmpfs", "-o", "size=100k", "none", tmp_path]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small disk can be mounted by root only")
    try:
        assert_a_write_is_refused(tmp_path / "ledger.csv")
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_what_a_killed_writer_left_is_swept_and_what_others_write_is_not(tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    leftover = tmp_path / f".ledger.csv.{ended.pid}.abc"
    kept = [
        tmp_path / f".ledger.csv.{os.getpid()}.abc",
        tmp_path / ".a.hidden.file",
        tmp_path / "ledger.csv",
    ]
    for path in (leftover, *kept):
        path.write_text("x")
    remove_leftovers(tmp_path, tmp_path / "missing")
    assert sorted(tmp_path.iterdir()) == sorted(kept)
