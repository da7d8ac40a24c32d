"""The audit as HTML and as Markdown: verdicts first, and under each what it rests on.

Every item is one line that unfolds. A confirmed item looks like any other: what holds
is told as what does not. Knows no run and no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, get_args

from speclib.audit.judge import (
    VERDICTS,
    JudgedItem,
    JudgedPublication,
    Verdict,
    count_verdicts,
)
from speclib.audit.schema import Reach, Subject
from speclib.views.tables.html import STYLE
from speclib.views.tables.verdicts import Sign
from speclib.views.templates import load_templates

HERE = Path(__file__).parent
AUDIT_STYLE = f"<style>{(HERE / 'audit.css').read_text('utf-8')}</style>"

VERDICT_SIGNS = {
    "supported": Sign("✓", "supported", "yes"),
    "not supported": Sign("✗", "not supported", "no"),
    "open": Sign("◇", "open", "open"),
}
ANSWER_SIGNS = {
    "yes": Sign("✓", "holds", "yes"),
    "no": Sign("✗", "does not hold", "no"),
    "open": Sign("◇", "not settled", "open"),
}


class Group(NamedTuple):
    """The items of a publication that are about the same."""

    subject: str
    items: list[JudgedItem]


def publication_html(judged: JudgedPublication) -> str:
    """Every item of a publication, with its verdict, as lines that unfold."""
    return _render("publication.html", {"judged": judged, "groups": _groups(judged)})


def publication_md(judged: JudgedPublication) -> str:
    """The same as Markdown."""
    return _render("publication.md", {"judged": judged, "groups": _groups(judged)})


def summary_html(all_judged: Mapping[str, JudgedPublication]) -> str:
    """How many items of each publication have which verdict."""
    return _render("summary.html", _counts(all_judged))


def summary_md(all_judged: Mapping[str, JudgedPublication]) -> str:
    """The same as Markdown."""
    return _render("summary.md", _counts(all_judged))


# -- what templates ask for ------------------------------------------------------------
def _groups(judged: JudgedPublication) -> list[Group]:
    """The items by what they are about; no group is empty."""
    groups = []
    for subject in get_args(Subject):
        items = [item for item in judged.items if item.item.about == subject]
        if items:
            groups.append(Group(subject, items))
    return groups


class Count(NamedTuple):
    """A line of the summary: of what the items are, and how many have each verdict."""

    name: str
    verdicts: dict[Verdict, int]

    @property
    def items(self) -> int:
        return sum(self.verdicts.values())


def _counts(all_judged: Mapping[str, JudgedPublication]) -> dict[str, object]:
    """Two tables: verdicts by publication, and by how far an item reaches."""
    by_publication = []
    every_item: list[JudgedItem] = []
    for judged in all_judged.values():
        name = judged.publication.name
        by_publication.append(Count(name, count_verdicts(judged.items)))
        every_item += judged.items
    by_publication.append(Count("all", count_verdicts(every_item)))

    by_reach = []
    for reach in get_args(Reach):
        items = [judged for judged in every_item if judged.item.reach == reach]
        by_reach.append(Count(reach, count_verdicts(items)))
    tables = {"publication": by_publication, "reaches to a": by_reach}
    return {"tables": tables, "verdicts": VERDICTS}


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


TEMPLATES = load_templates(
    HERE / "templates",
    style=STYLE,
    audit_style=AUDIT_STYLE,
    verdict_signs=VERDICT_SIGNS,
    answer_signs=ANSWER_SIGNS,
    on_one_line=_on_one_line,
)


def _render(name: str, names: Mapping[str, object]) -> str:
    return TEMPLATES.get_template(name).render(names).rstrip("\n")
