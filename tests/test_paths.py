"""Files may be read from one folder and written to another, SPECLIB_HOME."""

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
    """Returns the folders of data, reports and caches with this SPECLIB_HOME."""
    printed = python("-c", SHOW, home=home).stdout
    return [Path(word) for word in printed.split()]


def test_with_an_empty_home_the_checkout_is_read_and_the_home_written(tmp_path):
    data, reports, cache = folders(tmp_path)
    assert data == CHECKOUT / "data"
    assert reports == tmp_path / "reports"
    assert cache == tmp_path / ".cache"


def test_a_home_with_its_own_data_is_used_for_everything(tmp_path):
    (tmp_path / "data").mkdir()
    data, reports, cache = folders(tmp_path)
    assert data == tmp_path / "data"
    assert reports == tmp_path / "reports"
    assert cache == tmp_path / ".cache"


def test_reproduces_error_for_an_unwritable_home_is_one_line(tmp_path):
    """No user can create a folder below a file."""
    (tmp_path / "file").write_text("no folder")
    ended = python("-m", "speclab", "reproduce", "--quick", home=tmp_path / "file")
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"error: cannot write {tmp_path / 'file' / '.cache'}")
    assert "Set SPECLIB_HOME to a folder that you may write to" in line
