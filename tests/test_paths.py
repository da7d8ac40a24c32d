"""What is read and what is written may lie in two folders: SPECLIB_HOME is one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SHOW = "from speclib import paths; print(paths.DATA, paths.REPORTS, paths.CACHE)"
CHECKOUT = Path(__file__).resolve().parents[1]


def python(*words: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Runs Python with this SPECLIB_HOME."""
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        env=os.environ | {"SPECLIB_HOME": str(home)},
    )


def folders(home: Path) -> list[Path]:
    """Where data, reports and caches are with this SPECLIB_HOME."""
    printed = python("-c", SHOW, home=home).stdout
    return [Path(word) for word in printed.split()]


def test_an_empty_home_is_written_to_and_the_checkout_is_read(tmp_path):
    data, reports, cache = folders(tmp_path)
    assert data == CHECKOUT / "data"
    assert reports == tmp_path / "reports"
    assert cache == tmp_path / ".cache"


def test_a_home_with_data_of_its_own_is_another_copy_of_the_project(tmp_path):
    (tmp_path / "data").mkdir()
    data, reports, cache = folders(tmp_path)
    assert data == tmp_path / "data"
    assert reports == tmp_path / "reports"
    assert cache == tmp_path / ".cache"


def test_where_nothing_can_be_written_reproduce_says_so_in_one_line(tmp_path):
    """No folder can be made below a file, whoever asks."""
    (tmp_path / "file").write_text("no folder")
    ended = python("-m", "speclab", "reproduce", "--quick", home=tmp_path / "file")
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"error: cannot write {tmp_path / 'file' / '.cache'}")
    assert "Set SPECLIB_HOME to a folder that you may write to" in line
