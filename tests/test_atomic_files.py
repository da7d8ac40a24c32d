"""Files are written whole or not at all, whatever breaks the writing off."""

from __future__ import annotations

import subprocess
import sys

import pytest
from helpers.processes import with_files_of_at_most

from speclib.atomic_files import whole_files, write_atomically
from speclib.errors import SpeclibError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits files")

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


def test_a_write_that_is_refused_names_the_file_and_leaves_the_old_one(tmp_path):
    path = tmp_path / "ledger.csv"
    path.write_text("old")
    writer = subprocess.run(
        [sys.executable, "-c", WRITE_300_KILOBYTES, path],
        capture_output=True,
        text=True,
        **with_files_of_at_most(100_000),
    )
    assert writer.returncode == 1
    assert writer.stderr.startswith(f"cannot write {path}: ")
    assert "run again" in writer.stderr
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_a_link_stays_one_and_an_earlier_file_keeps_its_permissions(tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    real.chmod(0o600)
    link.symlink_to("real.csv")
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert real.stat().st_mode & 0o777 == 0o600


def test_what_keeps_a_file_from_being_written_is_told_with_what_helps(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    for name, says in {
        "folder": "Is a directory; folder is unchanged. Free space, ",
        "file/a.csv": "a.csv was not written. Free space, ",
    }.items():
        with pytest.raises(SpeclibError, match=f"cannot write .*: .*{says}"):
            write_atomically(tmp_path / name, "new")


def test_the_files_of_a_library_are_moved_when_all_of_them_are_written(tmp_path):
    folder = tmp_path / "model"
    with whole_files(folder) as part:
        (part / "a").write_text("1")
        (part / "b").write_text("1")
        assert not (folder / "a").exists()
    with pytest.raises(KeyError), whole_files(folder) as part:
        (part / "a").write_text("2")
        raise KeyError
    refused = pytest.raises(SpeclibError, match="cannot write .*; model is unchanged")
    with refused, whole_files(folder) as part:
        (part / "a").write_text("2")
        (part / "none" / "b").write_text("2")
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "a": "1",
        "b": "1",
    }
