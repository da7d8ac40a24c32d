"""The audit's pages show each item with all that its verdict rests on."""

from __future__ import annotations

import re

import pytest

from speclib.audit.judge import Finding, JudgedItem, JudgedPublication
from speclib.audit.load import load_audit
from speclib.audit.schema import AuditItem, Publication, Reading
from speclib.views.audit.pages import (
    publication_html,
    publication_md,
    summary_html,
    summary_md,
)


def item(name: str, about: str = "theory", **fields) -> AuditItem:
    words = {
        "title": f"The {name} is so",
        "reach": "number" if name == "second" else "detail",
        "claimed": f"{name} & more.",
        "where": "Table 1",
        "found": "It is.",
        "changes": "Nothing.",
        "answer": "Thanks.",
    }
    return AuditItem(id=name, about=about, **words, **fields)


@pytest.fixture
def judged() -> JudgedPublication:
    """Three items: one that holds, one that does not, one that was only read."""
    reading = Reading(repository="github.com/a/b", file="c.py", says="It <waits>.")
    finding = Finding(("paper",), "a sum", ("a = 1", "b = 2"), "a equals b", "no")
    beside = Finding(
        ("virtual", "paper"), "a run", ("c = 3",), "c at most 4", "yes", False
    )
    items = (
        JudgedItem(item("first"), (finding, beside), "not supported", ("Table 1: x",)),
        JudgedItem(item("second"), (beside,), "supported", ()),
        JudgedItem(
            item("third", "published code", readings=(reading,)), (), "open", ()
        ),
    )
    publication = Publication(
        key="pearl",
        name="PEARL",
        about="About\nit.",
        items=tuple(each.item for each in items),
    )
    return JudgedPublication(publication, items)


def test_each_item_is_a_line_with_its_verdict_that_unfolds(judged):
    html = publication_html(judged)
    found = re.findall(
        r'<details class="item" id="(\w+)" data-verdict="([\w ]+)">', html
    )
    assert found == [
        ("first", "not supported"),
        ("second", "supported"),
        ("third", "open"),
    ]
    assert html.count("<details") == html.count("</details>") == 3
    assert "✗ not supported" in html and "✓ supported" in html and "◇ open" in html
    assert "first &amp; more." in html and "It &lt;waits&gt;." in html
    assert "a = 1\nb = 2" in html and "a equals b" in html
    assert html.count("beside the verdict") == 2
    both = re.findall(r'data-kind="(\w+)">', html)
    assert both == ["paper", "virtual", "paper", "virtual", "paper"]
    assert "as we read the code" in html and "commit not noted" in html
    assert html.index("Theory") < html.index("Published code")


def test_markdown_says_the_same(judged):
    text = publication_md(judged)
    for words in ("first & more.", "a equals b", "c = 3", "It <waits>.", "Thanks."):
        assert words in text
    assert text.count("#### ") == 3
    assert "**Not supported** (`first`, detail)" in text
    assert "**Open**, as we read the code (`third`, detail)" in text
    assert "- `virtual`, `paper`, a run: holds (beside the verdict)" in text
    assert "  - a = 1\n  - b = 2\n" in text


def test_the_summary_counts_verdicts_by_publication_and_by_reach(judged):
    text = summary_md({"pearl": judged})
    assert text.splitlines() == [
        "| publication | items | supported | not supported | open |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| PEARL | 3 | 1 | 1 | 1 |",
        "| all | 3 | 1 | 1 | 1 |",
        "",
        "| reaches to a | items | supported | not supported | open |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| conclusion | 0 | 0 | 0 | 0 |",
        "| number | 1 | 1 | 0 | 0 |",
        "| detail | 2 | 0 | 1 | 1 |",
    ]
    html = summary_html({"pearl": judged})
    assert html.count("<tr>") == 3 + 4
    assert "<th scope=row>all</th><td>3</td><td>1</td><td>1</td><td>1</td>" in html


def test_anchors_of_all_publications_differ():
    names = [item.id for each in load_audit().values() for item in each.items]
    assert len(names) == len(set(names))
