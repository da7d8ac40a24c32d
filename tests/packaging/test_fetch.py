"""The embedded models are fetched completely, with right checksums, or not at all."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from speclib import __version__
from speclib.errors import SpeclibError
from speclib.models import fetch as fetching
from speclib.models import zoo
from speclib.models.fetch import fetch

FILES = {
    "draft/config.json": b"{}",
    "draft/model.safetensors": b"weights of a draft " * 50_000,
    "draft/tokenizer.json": b"words",
    "target/config.json": b"{ }",
    "target/model.safetensors": b"weights of a target " * 1_000,
}
ARCHIVE = f"speclib-models-{__version__}.zip"


def quietly(_line: str) -> None:
    pass


@pytest.fixture
def models(tmp_path, monkeypatch) -> Path:
    """The folder for the models, which does not exist yet, as after pip."""
    sums = tmp_path / "SHA256SUMS"
    lines = [f"{sha256(stored).hexdigest()}  {name}" for name, stored in FILES.items()]
    sums.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(zoo, "CHECKSUMS", sums)
    monkeypatch.setattr(zoo, "ZOO", tmp_path / "home" / "models")
    return zoo.ZOO


def pack(path: Path, **changes: bytes | None) -> Path:
    """Writes an archive of all files; ``changes`` replaces contents by file name."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, stored in (FILES | changes).items():
            if stored is not None:
                archive.writestr(name, stored)
    return path


@pytest.fixture
def archive(tmp_path) -> Path:
    (tmp_path / "release").mkdir()
    return pack(tmp_path / "release" / ARCHIVE)


def there(models: Path) -> dict[str, bytes]:
    """Returns every file below the folder, even hidden ones."""
    paths = [path for path in models.rglob("*") if path.is_file()]
    return {path.relative_to(models).as_posix(): path.read_bytes() for path in paths}


# -- fetched files ---------------------------------------------------------------------
@pytest.mark.parametrize("form", ["path", "file://"])
def test_all_files_are_unpacked_and_nothing_else_is_left(models, archive, form):
    source = str(archive) if form == "path" else archive.as_uri()
    assert sorted(fetch(source, quietly)) == sorted(FILES)
    assert there(models) == FILES
    assert archive.is_file()
    assert zoo.locate("zoo/draft") == models / "draft"


def test_existing_files_with_the_right_checksum_are_left_alone(models, archive):
    fetch(str(archive), quietly)
    assert fetch("no-such-archive.zip", quietly) == []

    before = (models / "target" / "config.json").stat().st_mtime_ns
    (models / "draft" / "config.json").write_bytes(b"{]")
    (models / "draft" / "tokenizer.json").unlink()
    brought = fetch(str(archive), quietly)
    assert brought == ["draft/config.json", "draft/tokenizer.json"]
    assert there(models) == FILES
    assert (models / "target" / "config.json").stat().st_mtime_ns == before


def test_a_models_weights_are_unpacked_last_to_mark_it_complete(models, archive):
    brought = fetch(str(archive), quietly)
    assert all(name.endswith("model.safetensors") for name in brought[-2:])


def test_a_file_without_a_checksum_is_not_unpacked(models, tmp_path):
    changes = {"../escaped": b"x", "draft/code.py": b"x"}
    fetch(str(pack(tmp_path / "own.zip", **changes)), quietly)
    assert there(models) == FILES
    assert not list(tmp_path.rglob("escaped"))


# -- refusals --------------------------------------------------------------------------
@pytest.mark.parametrize("form", ["path", "file://"])
def test_a_wrong_file_is_refused_and_never_gets_its_final_name(models, tmp_path, form):
    changes = {"draft/model.safetensors": b"other weights"}
    path = pack(tmp_path / "own.zip", **changes)
    source = str(path) if form == "path" else path.as_uri()
    with pytest.raises(SpeclibError, match="draft/model.safetensors .* does not match"):
        fetch(source, quietly)
    found = there(models)
    assert "draft/model.safetensors" not in found
    assert found.items() <= FILES.items()


def test_a_file_missing_in_an_archive_is_named(models, tmp_path):
    path = pack(tmp_path / "own.zip", **{"draft/tokenizer.json": None})
    with pytest.raises(SpeclibError, match="no item named 'draft/tokenizer.json'"):
        fetch(str(path), quietly)


@pytest.mark.parametrize("damage", ["half", "no archive", "one byte"])
def test_a_damaged_archive_leaves_no_incomplete_files(models, archive, damage):
    content = bytearray(archive.read_bytes())
    if damage == "half":
        content = content[: len(content) // 2]
    elif damage == "no archive":
        content = bytearray(b"<html>not found</html>")
    else:
        content[len(content) // 4] ^= 1
    archive.write_bytes(content)
    with pytest.raises(SpeclibError, match="cannot be unpacked|does not match"):
        fetch(archive.as_uri(), quietly)
    assert there(models).items() <= FILES.items()


@pytest.mark.parametrize(
    "source, message",
    [
        ("no-such.zip", "cannot download no-such.zip .unknown url type"),
        ("file:///no/such.zip", "cannot download"),
    ],
)
def test_the_error_for_an_unavailable_source_is_one_line(models, source, message):
    with pytest.raises(SpeclibError, match=message) as raised:
        fetch(source, quietly)
    assert "\n" not in str(raised.value)
    assert there(models) == {}


def test_an_unwritable_folder_is_reported(models, archive):
    models.parent.write_text("a file where the folder should be")
    with pytest.raises(SpeclibError, match="cannot write .*SPECLIB_HOME"):
        fetch(str(archive), quietly)


# -- the archive's address -------------------------------------------------------------
def test_the_archive_is_downloaded_from_this_versions_files(monkeypatch, tmp_path):
    citation = tmp_path / "CITATION.cff"
    monkeypatch.setattr(fetching, "CITATION", citation)
    for text in ("title: x\n", None):
        if text is not None:
            citation.write_text(text)
        else:
            citation.unlink()
        with pytest.raises(SpeclibError, match=f"states no public address.*{ARCHIVE}"):
            fetching._address_of_release()

    citation.write_text("repository-code: https://github.com/somebody/some-name.git\n")
    assert fetching._address_of_release() == (
        "https://github.com/somebody/some-name/releases/download/"
        f"v{__version__}/{ARCHIVE}"
    )


def test_the_commands_error_is_one_line_and_a_checkout_has_everything():
    command = [sys.executable, "-m", "speclib"]
    ended = subprocess.run([*command, "fetch"], capture_output=True, text=True)
    if (zoo.ZOO / "target" / zoo.WEIGHTS).exists():
        assert ended.stdout == f"all embedded models are in {zoo.ZOO}\n"
    ended = subprocess.run([*command, "--version"], capture_output=True, text=True)
    assert ended.stdout == f"speclib {__version__}\n"
