"""The project's own files agree with each other."""

import csv
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from helpers.limits import LIMITS

ROOT = Path(__file__).resolve().parents[1]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    """name -> exact version, of every line of the lock files."""
    lines = [
        line.split(";")[0].strip()
        for name in ("requirements", "requirements-llamacpp", "requirements-cluster")
        for line in (ROOT / f"{name}.lock").read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    assert all(
        re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line) for line in lines
    ), lines
    return {
        canonical(name): version
        for name, version in (line.split("==") for line in lines)
    }


def requirements() -> list[tuple[str, str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    return [tuple(r.split(">=")) for group in groups for r in group]


@pytest.mark.parametrize("name, least", requirements())
def test_every_requirement_is_pinned_exactly_and_no_lower_than_declared(name, least):
    version = pins()[canonical(name)]
    numbers = [[int(n) for n in re.findall(r"\d+", v)] for v in (version, least)]
    assert numbers[0] >= numbers[1]


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
    lowest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "requires-python"
    ]
    assert f">={python}" == lowest
    assert re.findall(r"^      - (.+)$", text, re.M) == ["-r requirements.lock", "-e ."]
    assert "==" not in text  # one place for pins: the lock


def test_the_base_install_needs_no_torch():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert not [
        d
        for d in project["dependencies"]
        if re.match("torch|transformers|accelerate", d)
    ]


def tracked() -> list[Path]:
    try:
        names = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / n for n in names if n and (ROOT / n).is_file()]


def test_no_file_names_a_home_folder_or_a_package_mirror():
    words = re.compile(
        rb"/(?:root|home/\w+|Users/\w+)/|pypi\.org|files\.pythonhosted|"
        rb"download\.pytorch\.org|registry\.npmjs"
    )
    found = [
        p.relative_to(ROOT)
        for p in tracked()
        if p.suffix not in (".safetensors", ".png")
        and p != Path(__file__).resolve()
        and words.search(p.read_bytes())
    ]
    assert found == []


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
    """A lesson that was written anew has no outputs until ``speclib store`` runs it."""
    for path in (ROOT / "notebooks" / "learn").glob("*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        assert any(cell.get("outputs") for cell in cells), path.name


def test_the_readme_names_commands_and_files_that_exist():
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    commands = set(re.findall(r"(?:^|`|=1 )make ([a-z-]+)", readme, re.M))
    assert {"reproduce", "test", "lab"} <= commands
    assert commands <= set(re.findall(r"^([a-z-]+):", makefile, re.M))
    assert all(
        (ROOT / name).exists()
        for name in (
            "LICENSE",
            "CITATION.cff",
            "CONTRIBUTING.md",
            "LOG.md",
            "environment.yml",
        )
    )


def test_the_five_papers_are_cited():
    text = (ROOT / "CITATION.cff").read_text()
    assert len(re.findall(r"^    title:", text, re.M)) == 5


def test_the_readmes_results_are_those_of_the_ledger():
    path = ROOT / "reports" / "ledger.csv"
    if not path.exists():
        pytest.skip("no ledger yet: make reproduce")
    with path.open(newline="", encoding="utf-8") as file:
        rows = [r for r in csv.DictReader(file) if r["item"] == "table-1"]
    section = (ROOT / "README.md").read_text().split("<!-- results -->")[1]
    lines = [
        line.strip("| ").split(" | ")
        for line in section.splitlines()
        if re.match(r"\| .*\dB \|", line)
    ]
    names = [
        (method, kind)
        for method in ("Speculative Decoding", "PEARL (ours)")
        for kind in ("paper", "virtual", "measured")
    ]
    assert len(lines) == 6
    for pair, *values in lines:
        for (method, kind), shown in zip(names, values, strict=True):
            held = {
                f"{float(r['value']):.2f}"
                for r in rows
                if r["value"]
                and (r["row"], r["column"], r["kind"], r["metric"])
                == (method, pair, kind, "speedup")
            }
            assert shown in held, (pair, method, kind)
