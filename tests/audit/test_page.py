"""The audit's page has its files' contents, with a link to every line of code."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from speclab.audit.items import load_audit
from speclab.audit.page import audit_page
from speclab.cli import app
from speclib import paths
from speclib.errors import SpeclibError

AUDIT = load_audit()


@pytest.fixture(scope="module")
def page() -> str:
    return audit_page()


def test_the_committed_page_matches_its_files(page):
    assert (paths.ROOT / "reports" / "audit.md").read_text("utf-8") == page
    assert len(page.encode()) <= 40_000


def test_the_page_has_each_item_with_its_answer_and_its_lines(page):
    flat = " ".join(page.split())
    for item in AUDIT.items:
        assert item.answer in flat or " ".join(item.answer.split()) in flat
        for reading in item.readings:
            code = AUDIT.code[reading.code]
            first, last = reading.first_and_last
            lines = f"L{first}-L{last}" if last > first else f"L{first}"
            address = f"{code.commit[:7]}/{reading.file}#{lines})"
            assert f"https://{code.repository}/blob/{address}" in page


def test_the_command_lists_the_findings_with_their_verdicts():
    lines = CliRunner().invoke(app, ["audit"]).output.splitlines()
    assert len(lines) == len(AUDIT.findings) + 1
    for finding, line in zip(AUDIT.findings, lines, strict=False):
        assert line == f"{finding.paper}: {finding.title}: {finding.verdict}"


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('code = "pearl"', 'code = "perl"', "sources.toml has no code perl"),
        ('id = "lossless-dsi"', 'id = "lossless-pearl"', "two items are called"),
        ('method = "DSI"', 'methode = "DSI"', "methode"),
    ],
)
def test_a_mistake_in_a_file_is_named(old, new, message, tmp_path):
    for path in (paths.DATA / "audit").glob("*.toml"):
        text = path.read_text("utf-8")
        if path.name == "lossless.toml":
            assert old in text
            text = text.replace(old, new)
        (tmp_path / path.name).write_text(text, "utf-8")
    with pytest.raises(SpeclibError, match=message):
        load_audit(tmp_path)
