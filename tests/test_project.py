"""The project's own files agree with each other."""

import csv
import importlib.metadata
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections import defaultdict
from itertools import product
from pathlib import Path

import pytest
from helpers.limits import LIMITS
from packaging.requirements import Requirement

import speclib

ROOT = Path(__file__).resolve().parents[1]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


LOCK_FILES = (
    "requirements.lock",
    "requirements-llamacpp.lock",
    "requirements-cluster.lock",
)
PIN = re.compile(r"([A-Za-z0-9._-]+)==([0-9][A-Za-z0-9.]*)")


def pins() -> dict[str, str]:
    """name -> exact version, of every line of the lock files."""
    versions = {}
    for file in LOCK_FILES:
        for line in (ROOT / file).read_text().splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            requirement, *_condition = line.split(";")
            pin = PIN.fullmatch(requirement.strip())
            assert pin, line
            versions[canonical(pin[1])] = pin[2]
    return versions


def requirements() -> list[tuple[str, str]]:
    """(name, least version) of all that pyproject.toml asks for."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = settings["project"]
    declared = list(project["dependencies"])
    for group in project["optional-dependencies"].values():
        declared += group
    for group in settings["dependency-groups"].values():
        declared += group
    others = [line for line in declared if not line.startswith("speclib[")]
    return [tuple(requirement.split(">=")) for requirement in others]


def numbers_of(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


@pytest.mark.parametrize("name, least", requirements())
def test_every_requirement_is_pinned_exactly_and_no_lower_than_declared(name, least):
    version = pins()[canonical(name)]
    assert numbers_of(version) >= numbers_of(least)


PYTHONS = ("3.11", "3.12", "3.13", "3.14")


@pytest.mark.parametrize("python", PYTHONS)
def test_whatever_a_pinned_library_needs_is_pinned_too(python):
    """As the libraries that are installed here state it of any Python."""
    settings = {"python_version": python, "python_full_version": f"{python}.9"}
    pinned = pins()
    for name in pinned:
        try:
            needed = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # of another system or Python, or an extra

        for line in needed:
            requirement = Requirement(line)
            marker = requirement.marker
            applies = marker is None or marker.evaluate({**settings, "extra": ""})
            if applies:
                assert canonical(requirement.name) in pinned, f"{name} needs {line}"


HANGING = """
import threading

def waits_elsewhere():
    threading.Event().wait()

def test_hangs():
    threading.Thread(target=waits_elsewhere, daemon=True).start()
    while True:
        pass

def test_passes():
    pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_a_test_that_hangs_fails_with_the_stacks_of_all_threads(tmp_path, workers):
    (tmp_path / "test_it.py").write_text(HANGING)
    command = [sys.executable, "-m", "pytest", "-n", str(workers), "--timeout", "0.5"]
    command += ["-c", ROOT / "pyproject.toml"]
    for plugin in ("cacheprovider", "nbval", "hypothesispytest", "anyio"):
        command += ["-p", f"no:{plugin}"]  # they take seconds to load
    ended = subprocess.run(
        [*command, tmp_path], capture_output=True, text=True, cwd=tmp_path
    )
    assert "Timeout (>0.5s)" in ended.stdout
    assert "in waits_elsewhere" in ended.stdout
    assert "1 failed, 1 passed" in ended.stdout


def test_every_test_has_a_time_limit():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    assert 0 < settings["ini_options"]["timeout"] < min(LIMITS.values())


def test_torch_is_the_pinned_release():
    assert pins()["torch"] == "2.13.0"


def test_conda_installs_the_same_pins():
    text = (ROOT / "environment.yml").read_text()
    python = re.search(r"- python=(\d+\.\d+)", text)[1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={python}"
    assert re.findall(r"^      - (.+)$", text, re.M) == ["-r requirements.lock", "-e ."]
    assert "==" not in text  # one place for pins: the lock


def test_the_base_install_needs_three_libraries():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [requirement.split(">=")[0] for requirement in project["dependencies"]]
    assert names == ["numpy", "psutil", "pydantic"]


def test_the_version_is_stated_once():
    """pyproject.toml reads it from the file that Python reads."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["dynamic"] == ["version"]
    where = settings["tool"]["setuptools"]["dynamic"]["version"]["attr"]
    module, _, name = where.rpartition(".")
    source = (ROOT / f"{module.replace('.', '/')}.py").read_text()
    (version,) = re.findall(rf'^{name} = "(\d+\.\d+\.\d+)"$', source, re.M)

    assert version == speclib.__version__
    assert not re.search(r"^version:", (ROOT / "CITATION.cff").read_text(), re.M)
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert headings[0] == "Unreleased"
    assert headings[1:] == sorted(headings[1:], key=numbers_of, reverse=True)


def test_pip_is_told_the_name_that_pyproject_states():
    """Where the name for pip changes, this lists what else says it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = list(project["optional-dependencies"]["lab"])
    for page in (ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/*.md")):
        lines += re.findall(r"pip install '?(speclib\b[^'`]*)", page.read_text())

    others = []
    for line in lines:
        named = re.match(r"(speclib[\w-]*)(\[|$)", line)
        if named and named[1] != project["name"]:
            others.append(line)
    assert others == []


def tracked() -> list[Path]:
    """The files that git knows; skips the test where there is no git."""
    try:
        listed = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listed.stdout.splitlines()]
    return [path for path in paths if path.is_file()]


def test_no_file_names_a_home_folder_or_a_package_mirror():
    words = re.compile(
        rb"/(?:root|home/\w+|Users/\w+)/|pypi\.org|files\.pythonhosted|"
        rb"download\.pytorch\.org|registry\.npmjs"
    )
    this_file = Path(__file__).resolve()
    for path in tracked():
        if path.suffix in (".safetensors", ".png") or path == this_file:
            continue
        assert not words.search(path.read_bytes()), path.relative_to(ROOT)


def hook_arguments(folder: str) -> list[str]:
    """What nbstripout is called with at a commit of this folder's notebooks."""
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    (entry,) = re.findall(rf"name: nbstripout \({folder}\)\n +entry: (.+)", hooks)
    program, *arguments = shlex.split(entry)
    assert program == ".venv/bin/nbstripout"
    return arguments


@pytest.mark.parametrize("folder", ["learn", "reproduce"])
def test_a_commit_leaves_notebooks_the_cell_ids_that_they_are_stored_with(folder):
    """By itself nbstripout numbers them anew, and the next storing names them back."""
    assert "--keep-id" in hook_arguments(folder)
    for path in (ROOT / "notebooks" / folder).glob("*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        assert not [cell["id"] for cell in cells if cell["id"].isdigit()], path.name


def test_lessons_show_their_pictures_before_they_are_run():
    """A lesson that was written anew has no outputs until ``speclab store`` runs it."""
    for path in (ROOT / "notebooks" / "learn").glob("*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        advice = f"run `make lectures`, and commit notebooks/learn/{path.name}"
        assert any(cell.get("outputs") for cell in cells), advice


def test_make_lab_asks_nobody_whether_he_wants_news():
    """A question that covers the first picture until it is answered."""
    makefile = (ROOT / "Makefile").read_text()
    folder = re.search(r"JUPYTER_CONFIG_PATH=\$\(CURDIR\)/(\S+)", makefile)[1]
    settings = json.loads((ROOT / folder / "labconfig/page_config.json").read_text())
    name = "@jupyterlab/apputils-extension:announcements"
    assert settings["disabledExtensions"] == {name: True}


def test_the_six_papers_are_cited():
    text = (ROOT / "CITATION.cff").read_text()
    assert len(re.findall(r"^    title:", text, re.M)) == 6


SHOWN_METHODS = ("Speculative Decoding", "PEARL (ours)")
SHOWN_KINDS = ("paper", "virtual", "measured")


def results_in_the_readme() -> list[list[str]]:
    """Its table's rows: a pair, then a speed-up for each method and kind."""
    readme = (ROOT / "README.md").read_text()
    section = readme.split("<!-- results -->")[1]
    rows = []
    for line in section.splitlines():
        if re.match(r"\| .*\dB \|", line):
            rows.append(line.strip("| ").split(" | "))
    return rows


def test_the_readmes_results_are_those_of_the_ledger():
    path = ROOT / "reports" / "ledger.csv"
    if not path.exists():
        pytest.skip("no ledger yet: make reproduce")

    speedups = defaultdict(set)  # as the README writes them
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            is_speedup = row["item"] == "table-1" and row["metric"] == "speedup"
            if is_speedup and row["value"]:
                value = f"{float(row['value']):.2f}"
                speedups[row["row"], row["column"], row["kind"]].add(value)

    readme_rows = results_in_the_readme()
    assert len(readme_rows) == 6
    for pair, *values in readme_rows:
        columns = product(SHOWN_METHODS, SHOWN_KINDS)
        for (method, kind), value in zip(columns, values, strict=True):
            assert value in speedups[method, pair, kind], (pair, method, kind)
