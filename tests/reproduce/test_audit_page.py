"""`make reproduce` makes the audit's page, where there is an audit."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import late
from helpers.reproduce_home import REPRODUCE, make_home, reports, run

pytestmark = pytest.mark.slow

ITEM = """\
key = "baselines"
name = "Baselines"
about = "One of them."

[documents.paper]
title = "A paper"
version = "2023"
link = "https://example.org"

[[items]]
id = "speculative-lossless"
title = "Speculative decoding is lossless"
reach = "conclusion"
about = "method"
claimed = "It is."
where = [{at = "Section 1"}]
found = "It is."
changes = "Nothing."
answer = "Nothing."

[[items.evidence]]
sort = "run"
says = "every outcome"
run = "every outcome"
settings = {method = "speculative", gamma = 1}
compare = ["error", "at most", 0.0]
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A home with one table and one item of the audit, and what its run has left."""
    home = make_home(tmp_path_factory.mktemp("home"), virtual=["table-9"])
    write_audit(home)
    run(home, *REPRODUCE)
    return home


def write_audit(home: Path) -> None:
    """Puts one item into the home, and a notebook that shows it."""
    (home / "data" / "audit").mkdir()
    (home / "data" / "audit" / "baselines.toml").write_text(ITEM)
    parameters = late.nbformat.v4.new_code_cell(
        "requests: int = 2  # few", metadata={"tags": ["parameters"]}
    )
    show = late.nbformat.v4.new_code_cell(
        "import speclab\nspeclab.Audit(requests=requests).show('baselines')"
    )
    title = late.nbformat.v4.new_markdown_cell("# The audit")
    notebook = late.nbformat.v4.new_notebook(cells=[title, parameters, show])
    folder = home / "notebooks" / "reproduce"
    folder.mkdir(parents=True)
    late.nbformat.write(notebook, folder / "audit.ipynb")


def test_the_page_stands_beside_the_index_which_leads_to_it(home):
    reports = home / "reports"
    assert 'href="audit.html"' in (reports / "index.html").read_text()
    html = (reports / "audit.html").read_text()
    assert 'data-verdict="supported" id="speculative-lossless"' in html
    text = (reports / "audit.md").read_text()
    assert text.startswith("# The audit\n")
    assert "**Supported**" in text
    assert "import speclib" not in text


def test_an_audit_that_fails_leaves_the_papers_reports_and_is_named(home):
    path = home / "data" / "audit" / "baselines.toml"
    reports_before = reports(home)
    path.write_text(ITEM.replace('run = "every outcome"', 'run = "nothing"'))
    printed = run(home, *REPRODUCE, status=1)
    assert "audit.ipynb" in printed
    assert "the audit has no run 'nothing'" in printed
    for name in ("ledger.csv", "claims.csv", "pearl.md"):
        assert reports(home)[name] == reports_before[name]
