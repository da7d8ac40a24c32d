"""The project's own files agree with each other."""

import csv
import importlib.metadata
import json
import re
import subprocess
import tomllib
from collections import defaultdict
from itertools import product
from pathlib import Path

import pytest
from helpers.limits import LIMITS
from packaging.requirements import Requirement

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
    """Returns name -> exact version for every line of the lock files."""
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
    """Returns (name, least version) for all requirements in pyproject.toml."""
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
def test_every_requirement_is_pinned_exactly_and_not_below_its_minimum(name, least):
    version = pins()[canonical(name)]
    assert numbers_of(version) >= numbers_of(least)


PYTHONS = ("3.11", "3.12", "3.13", "3.14")


@pytest.mark.parametrize("python", PYTHONS)
def test_the_requirements_of_pinned_libraries_are_pinned_too(python):
    """Their requirements are those stated by the libraries installed here."""
    settings = {"python_version": python, "python_full_version": f"{python}.9"}
    pinned = pins()
    for name in pinned:
        try:
            needed = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system or Python, or an extra

        for line in needed:
            requirement = Requirement(line)
            marker = requirement.marker
            applies = marker is None or marker.evaluate({**settings, "extra": ""})
            if applies:
                assert canonical(requirement.name) in pinned, f"{name} needs {line}"


def test_every_test_has_a_time_limit():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    assert 0 < settings["ini_options"]["timeout"] < min(LIMITS.values())


def tracked() -> list[Path]:
    """Returns the files tracked by git; skips the test without git."""
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


def test_lessons_show_their_pictures_before_they_run():
    """A regenerated lesson has no outputs until ``speclab store`` runs it."""
    for path in (ROOT / "notebooks" / "learn").glob("*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        advice = f"run `make lectures`, and commit notebooks/learn/{path.name}"
        assert any(cell.get("outputs") for cell in cells), advice


SHOWN_METHODS = ("Speculative Decoding", "PEARL (ours)")
SHOWN_KINDS = ("paper", "virtual", "measured")


def results_in_the_readme() -> list[list[str]]:
    """Returns its table's rows: a pair, then a speed-up for each method and kind."""
    readme = (ROOT / "README.md").read_text()
    section = readme.split("<!-- results -->")[1]
    rows = []
    for line in section.splitlines():
        if re.match(r"\| .*\dB \|", line):
            rows.append(line.strip("| ").split(" | "))
    return rows


def test_the_readmes_results_equal_the_ledgers():
    path = ROOT / "reports" / "ledger.csv"
    if not path.exists():
        pytest.skip("no ledger yet: make reproduce")

    speedups = defaultdict(set)  # in the README's format
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
