"""Items of the audit as lines of a page, with links to every source that they name.

A printed cell leads to our report of its table, a section to the document, and code to
its lines at the commit that was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from speclab.audit.item_schema import CodeRead, Publication, Source
from speclab.audit.judge_items import Finding, JudgedItem, JudgedPublication
from speclab.audit.printed import name_cell
from speclab.audit.quantity import Basis
from speclab.papers.load_papers import load_paper
from speclab.views.anchors import as_markdown_anchor, cell_anchor
from speclab.views.tables.markdown import section_heading

# From the notebook to the reports. The page stands among the reports, and drops it.
TO_REPORTS = "../../reports/"

BASIS_WORDS: dict[Basis, str] = {
    "print": "print against print",
    "arithmetic": "arithmetic on the print",
    "every outcome": "every outcome walked",
    "clock": "our simulated clock",
    "code": "code, as we read it",
    "measured": "measured here",
}

REACHES = ("conclusion", "number", "detail", "typo")


class Link(NamedTuple):
    """Words that lead somewhere; ``address`` is empty where nothing can be opened."""

    words: str
    address: str
    in_markdown: str


class Line(NamedTuple):
    """An item with its publication, as a page shows it."""

    publication: Publication
    judged: JudgedItem

    @property
    def print_links(self) -> list[Link]:
        """Where what is claimed stands."""
        return [_link_to_print(self.publication, p) for p in self.judged.item.where]

    @property
    def code_links(self) -> list[Link]:
        """The lines of published code that the verdict rests on."""
        links = []
        for finding in self.judged.findings:
            if finding.code is not None:
                links.append(self.code_link(finding.code))
        return links

    @property
    def first_links(self) -> list[Link]:
        """The first links into the print, and one into published code."""
        return [*self.print_links[:2], *self.code_links[:1]]

    def code_link(self, piece: CodeRead) -> Link:
        """The lines at the commit that was read."""
        return _link_of_code(self.publication, piece)

    @property
    def based_on(self) -> str:
        """What the verdict rests on, in words."""
        return ", ".join(BASIS_WORDS[basis] for basis in self.judged.bases)


def lines_of(judged: Iterable[JudgedPublication]) -> list[Line]:
    """All items of some publications, those that reach furthest first."""
    lines = []
    for publication in judged:
        for item in publication.items:
            lines.append(Line(publication.publication, item))
    return sorted(lines, key=_gravity)


def _gravity(line: Line) -> tuple[int, int]:
    """How far up a line stands: by what its item reaches to, and by its rank."""
    item = line.judged.item
    return REACHES.index(item.reach), item.rank or len(REACHES) * 100


def gravest(lines: Iterable[Line]) -> list[Line]:
    """The items that have a rank, in its order."""
    ranked = [line for line in lines if line.judged.item.rank is not None]
    return sorted(ranked, key=lambda line: line.judged.item.rank or 0)


def words_of(finding: Finding) -> str:
    """What a piece of evidence is: its basis, and the kinds of its numbers."""
    if not finding.kinds:
        return BASIS_WORDS[finding.basis]
    return f"{BASIS_WORDS[finding.basis]} ({', '.join(finding.kinds)})"


def named_bases(lines: Iterable[Line]) -> Mapping[Basis, str]:
    """The sorts of evidence that some lines rest on, with their words."""
    found = {basis for line in lines for basis in line.judged.bases}
    return {basis: words for basis, words in BASIS_WORDS.items() if basis in found}


# -- links -----------------------------------------------------------------------------
def _link_to_print(publication: Publication, printed: Source) -> Link:
    if printed.cell is not None:
        return _link_of_cell(publication.paper, printed.cell)
    document = publication.documents[printed.document]
    words = printed.at
    if printed.document != "paper":
        words = f"{document.title}: {printed.at}"
    return Link(words, document.link, document.link)


def _link_of_cell(paper: str, cell: tuple[str, str, str]) -> Link:
    item, row, column = cell
    anchor = item
    if row and column:
        anchor = cell_anchor(item, row, column, "paper")
    title = load_paper(paper).table(item).title
    heading = section_heading(item, title)
    return Link(
        words=name_cell(cell),
        address=f"{TO_REPORTS}{paper}.html#{anchor}",
        in_markdown=f"{paper}.md#{as_markdown_anchor(heading)}",
    )


def _link_of_code(publication: Publication, piece: CodeRead) -> Link:
    repository = publication.code[piece.code]
    first, last = piece.first_and_last
    commit = f"https://{repository.repository}/blob/{repository.commit}"
    address = f"{commit}/{piece.file}#L{first}-L{last}"
    name = repository.repository.rpartition("/")[2]
    words = f"{name}, {piece.file}:{piece.lines}"
    return Link(words, address, address)
