"""Files are written whole or not at all: on a full disk, by a writer that is killed."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.processes import with_files_of_at_most

import speclib
from speclib.atomic_files import remove_leftovers, whole_files, write_atomically
from speclib.errors import SpeclibError

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
        "folder": "Is a directory; folder is as it was. Free space, ",
        "file/a.csv": "a.csv was not written. Free space, ",
        "a" * 300: "File name too long; ",
    }.items():
        with pytest.raises(SpeclibError, match=f"cannot write .*: .*{says}"):
            write_atomically(tmp_path / name, "new")
    longest = tmp_path / ("b" * 255)  # of Linux's file systems
    write_atomically(longest, "new")
    assert longest.read_text() == "new"


def test_the_files_of_a_library_are_moved_when_all_of_them_are_written(tmp_path):
    folder = tmp_path / "model"
    with whole_files(folder) as part:
        (part / "a").write_text("1")
        (part / "b").write_text("1")
        assert not (folder / "a").exists()
    with pytest.raises(KeyError), whole_files(folder) as part:
        (part / "a").write_text("2")
        raise KeyError
    refused = pytest.raises(SpeclibError, match="cannot write .*: .*; model is as it")
    with refused, whole_files(folder) as part:
        (part / "a").write_text("2")
        (part / "none" / "b").write_text("2")
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "a": "1",
        "b": "1",
    }


# -- nothing is written in another way -------------------------------------------------
ROOT = Path(speclib.__file__).parents[1]
WRITERS = {"write_text", "write_bytes", "savefig", "save_pretrained", "save_file"}
WRITERS |= {"to_csv", "to_parquet", "to_pickle", "write_image", "write_html", "tofile"}
WRITERS |= {"copy2", "copyfile", "copyfileobj", "copytree", "savez", "savetxt"}
OF_MODULES = {"json.dump", "pickle.dump", "shutil.copy", "shutil.move", "np.save"}
OF_MODULES |= {"numpy.save", "torch.save"}

# Where a file is written directly, and why that destroys none.
DIRECT = {
    ("speclib/models/fetch.py", "copyfileobj"): "into a temporary file, or whole_files",
    ("speclib/models/gguf_checkpoint.py", "save_file"): "into a folder that is renamed",
    ("speclib/models/gguf_checkpoint.py", "save_pretrained"): "the same",
    ("speclab/reproduce/site.py", "copyfile"): "into a new folder, renamed at the end",
    ("speclab/training/fit.py", "save_pretrained"): "into whole_files",
    ("speclab/training/tokenizer.py", "save_pretrained"): "into whole_files",
}


def direct_writes(path: Path) -> Iterator[str]:
    """What in a file of Python writes a file at once, by its name."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        name = called.rpartition(".")[2]
        is_method = isinstance(node.func, ast.Attribute)
        is_writer = called in OF_MODULES or (is_method and name in WRITERS)
        if (
            is_writer
            or name == "save_file"
            or (name == "open" and opens_to_write(node))
        ):
            yield name


def opens_to_write(call: ast.Call) -> bool:
    """Whether a call of ``open`` has a mode in which files are written."""
    arguments = [*call.args, *(word.value for word in call.keywords)]
    for argument in arguments:
        for node in ast.walk(argument):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and re.fullmatch(r"[rwaxbt+]*[wax+][bt+]*", text):
                return True
    return False


def test_every_file_that_is_written_over_is_written_whole():
    found = set()
    for package in ("speclib", "speclab"):
        for path in (ROOT / package).rglob("*.py"):
            if path.name in ("atomic_files.py", "append_line.py"):
                continue
            name = path.relative_to(ROOT).as_posix()
            found |= {(name, call) for call in direct_writes(path)}
    assert found == set(DIRECT), "write it by speclib.atomic_files"


@pytest.mark.parametrize(
    "line, is_found",
    [
        ("path.write_text(text)", True),
        ("open(path, 'w')", True),
        ("path.open(mode='ab')", True),
        ("path.open('ab' if goes_on else 'wb')", True),
        ("json.dump(value, file)", True),
        ("frame.to_csv(path)", True),
        ("path.read_text()", False),
        ("open(path)", False),
        ("path.open('rb')", False),
        ("json.dumps(value)", False),
        ("tree.copy()", False),
    ],
)
def test_the_test_above_knows_what_writes(tmp_path, line, is_found):
    (tmp_path / "a.py").write_text(line)
    assert bool(list(direct_writes(tmp_path / "a.py"))) == is_found
