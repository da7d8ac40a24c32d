"""The audit as HTML and as Markdown: the gravest findings first, then all items.

Every item is one line that unfolds. A confirmed item looks like any other: what holds
is told as what does not. Knows no run and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from speclab.audit.clones import CheckedReading
from speclab.audit.item_schema import Publication, Reach
from speclab.audit.judge_items import (
    VERDICTS,
    JudgedItem,
    JudgedPublication,
    Verdict,
    count_verdicts,
)
from speclab.views.anchors import as_markdown_anchor
from speclab.views.tables.html import STYLE
from speclab.views.tables.verdicts import Sign
from speclab.views.templates import load_templates

from .audit_lines import (
    Line,
    gravest,
    lines_of,
    named_bases,
    words_of,
)

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

AllJudged = Mapping[str, JudgedPublication]


# -- pages -----------------------------------------------------------------------------
def gravest_html(all_judged: AllJudged) -> str:
    """The ten gravest findings, one in a row."""
    return _render("gravest.html", _names_of_gravest(all_judged))


def gravest_md(all_judged: AllJudged) -> str:
    """The ten gravest findings as Markdown."""
    return _render("gravest.md", _names_of_gravest(all_judged))


def items_html(all_judged: AllJudged) -> str:
    """All items in parts: against, open, holds, ours, typos; with choices above."""
    return _render("items.html", _names_of_items(all_judged))


def items_md(all_judged: AllJudged) -> str:
    """All items in parts as Markdown."""
    return _render("items.md", _names_of_items(all_judged))


def publication_html(judged: JudgedPublication) -> str:
    """Every item of a publication, with its verdict, as lines that unfold."""
    return _render("publication.html", _names_of_publication(judged))


def publication_md(judged: JudgedPublication) -> str:
    """Every item of a publication as Markdown."""
    return _render("publication.md", _names_of_publication(judged))


def summary_html(all_judged: AllJudged) -> str:
    """How many items of each publication have which verdict."""
    return _render("counts.html", _counts(all_judged))


def summary_md(all_judged: AllJudged) -> str:
    """The counts of all publications as Markdown."""
    return _render("counts.md", _counts(all_judged))


def sources_html(publications: Iterable[Publication]) -> str:
    """What was read: texts and programs, each in its version."""
    return _render("sources.html", {"publications": list(publications)})


def sources_md(publications: Iterable[Publication]) -> str:
    """What was read, as Markdown."""
    return _render("sources.md", {"publications": list(publications)})


def readings_md(readings: Sequence[CheckedReading]) -> str:
    """Whether lines of published code are still what was read, as a table."""
    return _render("readings.md", {"readings": readings})


# -- what templates ask for ------------------------------------------------------------
class Part(NamedTuple):
    """Items that stand together, with a heading and a sentence about them.

    ``is_short``: in Markdown, where nothing folds, each is a line of a table.
    """

    title: str
    about: str
    lines: list[Line]
    is_short: bool = False


def _parts(lines: Iterable[Line]) -> list[Part]:
    """The items by what becomes of them; no part is empty."""
    against = Part(
        "What the evidence contradicts",
        "Those that reach to a conclusion come first, then numbers and details.",
        [],
    )
    open_ones = Part(
        "What stays open",
        "The evidence settles nothing, or the best answer would explain it.",
        [],
    )
    holding = Part(
        "What holds",
        "All evidence bears out what is claimed.",
        [],
        is_short=True,
    )
    ours = Part(
        "Questions of ours",
        "No author claims these. They count for and against nobody.",
        [],
    )
    typos = Part("Typos", "They change nothing that anybody uses.", [], is_short=True)

    part_of_verdict = {"not supported": against, "open": open_ones}
    for line in lines:
        if not line.judged.is_counted:
            part = ours
        elif line.judged.item.reach == "typo":
            part = typos
        else:
            part = part_of_verdict.get(line.judged.verdict, holding)
        part.lines.append(line)
    return [part for part in (against, open_ones, holding, ours, typos) if part.lines]


def _names_of_gravest(all_judged: AllJudged) -> dict[str, object]:
    return {"lines": gravest(lines_of(all_judged.values()))}


def _names_of_items(all_judged: AllJudged) -> dict[str, object]:
    lines = lines_of(all_judged.values())
    names = {key: judged.publication.name for key, judged in all_judged.items()}
    choices = {
        "paper": names,
        "reach": {reach: reach for reach in get_args(Reach)},
        "verdict": {verdict: verdict for verdict in VERDICTS},
        "basis": named_bases(lines),
    }
    return {"parts": _parts(lines), "choices": choices}


def _names_of_publication(judged: JudgedPublication) -> dict[str, object]:
    return {"publication": judged.publication, "lines": lines_of([judged])}


class Count(NamedTuple):
    """A line of the summary: whose items they are, and how many have each verdict."""

    name: str
    verdicts: dict[Verdict, int]

    @property
    def items(self) -> int:
        return sum(self.verdicts.values())


def _counts(all_judged: AllJudged) -> dict[str, object]:
    """Two tables: verdicts by publication, and by how far an item reaches.

    Neither counts questions of ours. The first leaves out typos, too.
    """
    by_publication = []
    every_item: list[JudgedItem] = []
    for judged in all_judged.values():
        items = [item for item in judged.items if item.item.reach != "typo"]
        by_publication.append(Count(judged.publication.name, count_verdicts(items)))
        every_item += judged.items
    no_typos = [judged for judged in every_item if judged.item.reach != "typo"]
    by_publication.append(Count("all", count_verdicts(no_typos)))

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
    words_of=words_of,
    as_markdown_anchor=as_markdown_anchor,
)


def _render(name: str, names: Mapping[str, object]) -> str:
    return TEMPLATES.get_template(name).render(names).rstrip("\n")
