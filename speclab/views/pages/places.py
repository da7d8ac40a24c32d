"""Links from page to page that lead somewhere: they are made for anchors that exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

# The ids of the places on a page, by what other pages call them.
Anchors = Mapping[str, str]
# The address of a place on a paper's page, of the paper's key and what it is called;
# empty where it is not there.
Link = Callable[[str, str], str]


def find_anchors(html: str) -> Anchors:
    """The ids of a page's elements, which are called by their ids."""
    return {name: name for name in re.findall(r'<[a-z][^<>]* id="([^"]+)"', html)}


def links_to(anchors: Mapping[str, Anchors]) -> Link:
    """Links to these anchors in the pages of papers."""

    def link(paper: str, anchor: str) -> str:
        name = anchors.get(paper, {}).get(anchor)
        return f"{paper}.html#{name}" if name else ""

    return link
