"""Without a checkout, a wheel provides everything it promises, and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("setuptools")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("speclib", "speclab", "data", "docs", "tests", "reports", "notebooks")
BUILD = """
import sys
import setuptools.build_meta as backend
print(backend.build_{}(sys.argv[1]))
"""
MOST_BYTES = 4_000_000  # the wheel's limit


def build(kind: str, source: Path, to: Path) -> Path:
    """Builds a distribution of a source folder; kind is "sdist" or "wheel"."""
    ended = subprocess.run(
        [sys.executable, "-c", BUILD.format(kind), to],
        cwd=source,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return to / ended.stdout.splitlines()[-1]


@pytest.fixture(scope="session")
def sdist(tmp_path_factory) -> Path:
    """The sdist, built in a copy because building leaves folders behind."""
    folder = tmp_path_factory.mktemp("sources")
    for name in NEEDED:
        ignored = shutil.ignore_patterns("__pycache__", "*.safetensors")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy(path, folder)
    return build("sdist", folder, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def wheel(sdist, tmp_path_factory) -> Path:
    """The wheel, built from only the sdist."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (sources,) = folder.iterdir()
    return build("wheel", sources, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def site(wheel, tmp_path_factory) -> Path:
    """A folder with the wheel's files, as pip installs them."""
    folder = tmp_path_factory.mktemp("site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def python(site: Path, *words: str, home: Path, **more: str):
    """Runs Python in another folder, where only the wheel provides our packages."""
    clean = {name: os.environ[name] for name in os.environ if "SPECLIB" not in name}
    clean |= {"PYTHONPATH": str(site), "HOME": str(home), **more}
    return subprocess.run(
        [sys.executable, *words], cwd=home, env=clean, capture_output=True, text=True
    )


def names_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def tracked_data() -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "data"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return {name.removeprefix("data/") for name in listed.stdout.splitlines()}


def test_the_wheel_has_all_data_except_the_models_once(wheel):
    expected = set()
    for name in tracked_data():
        if not name.startswith("models/") or name == "models/SHA256SUMS":
            expected.add(f"speclib/_data/{name}")
    expected.add("speclib/_data/CITATION.cff")
    packed = [name for name in names_in(wheel) if name.startswith("speclib/_data/")]
    assert sorted(packed) == sorted(expected)
    assert wheel.stat().st_size < MOST_BYTES


def test_the_wheel_has_every_module_script_and_type_and_only_two_packages(wheel):
    names = set(names_in(wheel))
    for package in ("speclib", "speclab"):
        assert f"{package}/py.typed" in names
        for pattern in ("*.py", "*.js", "*.css", "*.html"):
            for path in (ROOT / package).rglob(pattern):
                assert path.relative_to(ROOT).as_posix() in names
    tops = {name.split("/")[0] for name in names}
    (info,) = {top for top in tops if top.endswith(".dist-info")}
    assert tops == {"speclib", "speclab", info}


def test_the_sdist_has_tests_and_docs_but_no_weights(sdist):
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    for name in ("tests/conftest.py", "docs/install.md", "CHANGELOG.md", "Makefile"):
        assert name in names
    assert not [name for name in names if name.endswith(".safetensors")]
    assert "data/models/SHA256SUMS" in names


HERE = Path(__file__).parent


def test_simulations_latencies_pairs_and_printed_tables_need_no_checkout(
    site, tmp_path
):
    ended = python(site, str(HERE / "use_wheel.py"), home=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == [str(tmp_path / ".speclib")]
    assert not (tmp_path / ".speclib").exists()  # nothing was written


def test_a_timeline_can_be_drawn_with_the_wheels_scripts_and_styles(site, tmp_path):
    pytest.importorskip("anywidget")
    ended = python(site, str(HERE / "draw_with_wheel.py"), "run.svg", home=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "run.svg").is_file()


FIND = "from speclib.models import zoo; print(zoo.locate('zoo/draft-qwen'))"


def test_the_error_for_a_missing_model_names_the_command_which_works(site, tmp_path):
    ended = python(site, "-c", FIND, home=tmp_path)
    assert re.search(
        "'zoo/draft-qwen' is missing in .*: run `python -m speclib fetch`",
        ended.stderr.splitlines()[-1],
    )

    models = ROOT / "data" / "models"
    if not (models / "target" / "model.safetensors").exists():
        pytest.skip("the embedded models are not here")
    archive = tmp_path / "models.zip"
    subprocess.run([ROOT / ".github" / "pack-models", archive], check=True)
    command = ("-m", "speclib", "fetch", "--from", archive.as_uri())
    ended = python(site, *command, home=tmp_path)
    assert ended.returncode == 0, ended.stderr
    ended = python(site, "-c", FIND, home=tmp_path)
    found = Path(ended.stdout.strip())
    assert found == tmp_path / ".speclib" / "models" / "draft-qwen"


def test_a_missing_extra_is_named_as_pip_knows_it(site, tmp_path):
    code = """
import sys
sys.modules["ray"] = None
import speclib
speclib.Cluster
"""
    ended = python(site, "-c", code, home=tmp_path)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    says = f"`pip install '{project['name']}[cluster]'` installs it"
    assert says in ended.stderr.splitlines()[-1]
