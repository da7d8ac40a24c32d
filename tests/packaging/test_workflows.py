"""Workflows run the Makefile's commands with pinned actions."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def read(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text())


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in WORKFLOWS:
        for name, job in read(path)["jobs"].items():
            yield f"{path.stem}/{name}", job


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, job in jobs():
        for step in job.get("steps", []):
            yield name, step


def test_every_action_is_pinned_by_commit_and_names_its_release():
    for path in WORKFLOWS:
        for used in re.findall(r"uses: (.+)", path.read_text()):
            assert used.startswith("./.github/") or PINNED.fullmatch(used), used


def test_no_checkout_keeps_its_credentials_and_every_job_has_a_limit():
    for name, step in steps():
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False, name
    for name, job in jobs():
        assert "uses" in job or 0 < job["timeout-minutes"] <= 360, name


def test_no_expression_is_pasted_into_a_shell():
    for name, step in steps():
        assert "${{" not in step.get("run", ""), name


def test_every_make_command_is_in_the_makefile():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    asked = set()
    for _name, step in steps():
        asked |= set(re.findall(r"make ([a-z-]+)", step.get("run", "")))
    assert {"lint", "test-code", "test-notebooks", "reproduce"} <= asked
    assert asked <= targets


# -- release scripts -------------------------------------------------------------------
def run(script: str, word: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([GITHUB / script, word], capture_output=True, text=True)


def test_a_tag_that_differs_from_the_version_is_refused():
    ended = run("check-tag", "v99.0.0")
    assert ended.returncode == 1
    assert "the tag is v99.0.0" in ended.stdout


def test_a_versions_changes_are_those_under_its_heading():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    for version in re.findall(r"^## \[(.+?)\]", changelog, re.M):
        changes = run("changes-of", version).stdout
        assert changes.strip() in changelog
        assert "## [" not in changes
    assert run("changes-of", "99.0.0").stdout == ""
