"""The audit's pages show each item with all that its verdict rests on."""

from __future__ import annotations

import re

import pytest

from speclab.audit.item_schema import AuditItem, CodeRead, Publication
from speclab.audit.judge_items import Finding, JudgedItem, JudgedPublication
from speclab.audit.load_items import load_audit
from speclab.views.anchors import cell_anchor
from speclab.views.audit.audit_lines import lines_of
from speclab.views.audit.pages import (
    gravest_html,
    gravest_md,
    items_html,
    items_md,
    publication_html,
    publication_md,
    sources_html,
    sources_md,
    summary_html,
    summary_md,
)

COMMIT = "0123456789" * 4
CELL = ("table-1", "PEARL (ours)", "CodeLlama 7&34B")
LINES = CodeRead(
    sort="code",
    says="a draft is tested",
    code="theirs",
    file="src/c.py",
    lines="7-9",
    digest="0123456789ab",
    reads="It <waits>.",
    bears_out="no",
)
PUBLICATION = {
    "key": "pearl",
    "name": "PEARL",
    "paper": "pearl",
    "about": "About\nit.",
    "documents": {
        "paper": {"title": "PEARL", "version": "2025", "link": "https://x.org/1"},
        "page": {"title": "project page", "version": "2024", "link": "https://x.org/2"},
    },
    "code": {"theirs": {"repository": "github.com/a/b", "commit": COMMIT}},
}


def item(name: str, **fields) -> AuditItem:
    words = {
        "id": name,
        "title": f"The {name} is so",
        "reach": "detail",
        "about": "theory",
        "claimed": f"{name} & more.",
        "where": [{"cell": CELL}, {"at": "abstract", "document": "page"}],
        "found": "It is.",
        "changes": f"A change by {name}.",
        "answer": f"An answer to {name}.",
        "evidence": [LINES],
    }
    return AuditItem.model_validate(words | fields)


FAILS = Finding("arithmetic", ("paper",), "a sum", ("a = 1", "b = 2"), "a is b", "no")
BESIDE = Finding("clock", ("virtual",), "a run", ("c = 3",), "c < 4", "yes", False)
HOLDS = Finding("every outcome", ("virtual",), "a walk", ("e = 0",), "e < 1", "yes")
READ = Finding("code", (), LINES.says, ("It <waits>.",), LINES.says, "no", code=LINES)


@pytest.fixture
def judged() -> JudgedPublication:
    """Six items, one for each part of the page, and one more that has a rank."""
    items = (
        JudgedItem(item("detail"), (FAILS, BESIDE), "not supported", (), ("T: x",)),
        JudgedItem(item("grave", reach="conclusion", rank=2), (READ,), "not supported"),
        JudgedItem(item("worst", reach="number", rank=1), (FAILS,), "not supported"),
        JudgedItem(item("question"), (BESIDE,), "open"),
        JudgedItem(item("right", reach="conclusion"), (HOLDS,), "supported"),
        JudgedItem(item("asked", whose="ours"), (FAILS,), "not supported"),
        JudgedItem(item("slip", reach="typo"), (FAILS,), "not supported"),
    )
    all_items = tuple(each.item for each in items)
    publication = Publication.model_validate(PUBLICATION | {"items": all_items})
    return JudgedPublication(publication, items)


def test_the_first_table_has_the_ranked_findings_in_their_order(judged):
    html = gravest_html({"pearl": judged})
    rows = re.findall(r'<th scope=row[^>]*><a href="#(\w+)">', html)
    assert rows == ["worst", "grave"]
    assert "A change by worst." in html
    assert "An answer to grave." in html
    assert "code, as we read it" in html
    assert "arithmetic on the print" in html
    text = gravest_md({"pearl": judged})
    assert text.index("(#the-worst-is-so)") < text.index("(#the-grave-is-so)")


def test_every_place_is_a_link(judged):
    html = items_html({"pearl": judged})
    cell = f"../../reports/pearl.html#{cell_anchor(*CELL, 'paper')}"
    assert f'<a href="{cell}">Table 1, PEARL (ours), CodeLlama 7&amp;34B</a>' in html
    assert '<a href="https://x.org/2">project page: abstract</a>' in html
    lines = f"https://github.com/a/b/blob/{COMMIT}/src/c.py#L7-L9"
    assert f'<a href="{lines}">b, src/c.py:7-9</a>' in html

    text = items_md({"pearl": judged})
    heading = "#table-1-speed-up-on-humaneval-six-methods-six-model-pairs"
    assert f"[Table 1, PEARL (ours), CodeLlama 7&34B](pearl.md{heading})" in text
    assert f"[b, src/c.py:7-9]({lines})" in text


def test_items_stand_in_parts_and_what_reaches_furthest_comes_first(judged):
    html = items_html({"pearl": judged})
    parts = html.split('<section class="part">')[1:]
    in_parts = [re.findall(r'class="item" id="(\w+)"', part) for part in parts]
    assert in_parts == [
        ["grave", "worst", "detail"],
        ["question"],
        ["right"],
        ["asked"],
        ["slip"],
    ]
    assert html.count("<details") == html.count("</details>") == 7
    headings = re.findall(r"^### (.*)$", items_md({"pearl": judged}), flags=re.M)
    assert headings[0] == "What the evidence contradicts"
    assert headings[-2:] == ["Questions of ours", "Typos"]


def test_a_reader_can_choose_by_publication_reach_verdict_and_evidence(judged):
    html = items_html({"pearl": judged})
    choices = dict(re.findall(r'data-choice="(\w+)">(.*?)</select>', html, re.S))
    assert set(choices) == {"paper", "reach", "verdict", "basis"}
    for value in ("arithmetic", "code", "every outcome", "clock"):
        assert f'<option value="{value}">' in choices["basis"]
        assert f'option[value="{value}"]:checked' in html  # a rule of the style
    assert "measured" not in choices["basis"]  # no item rests on it


def test_an_item_unfolds_to_all_that_its_verdict_rests_on(judged):
    html = publication_html(judged)
    assert "detail &amp; more." in html
    assert "It &lt;waits&gt;." in html
    assert "a = 1\nb = 2" in html
    assert "a is b" in html
    assert html.count("beside the verdict") == 2
    assert "arithmetic on the print (paper)" in html
    assert "T: x" in html
    assert LINES.digest in html

    text = publication_md(judged)
    for words in ("detail & more.", "a is b", "c = 3", "It <waits>."):
        assert words in text
    assert "An answer to detail." in text
    assert text.count("#### ") == 7
    assert "**Not supported**, code, as we read it (`grave`, PEARL, conclusion)" in text
    assert "  - a = 1\n  - b = 2\n" in text


def test_the_summary_counts_no_question_of_ours_and_typos_apart(judged):
    text = summary_md({"pearl": judged})
    assert text.splitlines() == [
        "| publication | items | supported | not supported | open |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| PEARL | 5 | 1 | 3 | 1 |",
        "| all | 5 | 1 | 3 | 1 |",
        "",
        "| reaches to a | items | supported | not supported | open |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| conclusion | 2 | 1 | 1 | 0 |",
        "| number | 1 | 0 | 1 | 0 |",
        "| detail | 2 | 0 | 1 | 1 |",
        "| typo | 1 | 0 | 1 | 0 |",
    ]
    html = summary_html({"pearl": judged})
    assert "<th scope=row>all</th><td>5</td><td>1</td><td>3</td><td>1</td>" in html


def test_the_sources_name_versions_and_commits(judged):
    for page in (sources_html, sources_md):
        text = page([judged.publication])
        assert "https://x.org/1" in text
        assert "2025" in text
        assert f"https://github.com/a/b/tree/{COMMIT}" in text


def test_anchors_of_all_publications_differ():
    names = [item.id for each in load_audit().values() for item in each.items]
    assert len(names) == len(set(names))


def test_lines_know_all_bases_of_an_item(judged):
    by_name = {line.judged.item.id: line for line in lines_of([judged])}
    assert by_name["detail"].based_on == "arithmetic on the print"
    assert by_name["question"].based_on == "our simulated clock"
