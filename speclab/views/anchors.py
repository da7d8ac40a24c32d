"""The anchors in the pages of a report, to which other pages lead.

=============================  ======================================
an item                        ``table-5``
a claim of it                  ``table-5.pearl-is-fastest``
a number of one of its cells   ``table-5.3.codellama-7-34.measured``
=============================  ======================================

An anchor depends on nothing but labels and kinds, so that a link from outside stays
good when the reports are made again.
"""

from __future__ import annotations

import re

# Signs in which the labels of one table may differ, and how a name spells them.
SPELLED_SIGNS = {"+": "plus", "=": "is", ">": "over", "<": "under", "*": "all"}


def slug(label: str) -> str:
    """A label in small letters, digits and hyphens: "7&70B, T=0" is "7-70b-t-is-0"."""
    text = label.casefold()
    for sign, word in SPELLED_SIGNS.items():
        text = text.replace(sign, f" {word} ")
    return re.sub(r"[^a-z0-9]+", "-", text).strip("-")


def claim_anchor(item: str, claim: str) -> str:
    """Where a claim stands; ``claim`` is its id, which is unique in its item."""
    return f"{item}.{slug(claim)}"


def cell_anchor(item: str, row: str, column: str, source: str) -> str:
    """Where a number stands.

    ``source`` is its kind, with the machine where that was another one: "measured @
    epyc-64c".
    """
    return ".".join([item, slug(row), slug(column), slug(source)])


def as_markdown_anchor(heading: str) -> str:
    """What a heading of a Markdown file is called in an address, as GitHub has it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
