"""Links from page to page that lead somewhere: they are made for anchors that exist."""

from __future__ import annotations

import re
from dataclasses import dataclass

Anchors = frozenset[str]


def find_anchors(html: str) -> Anchors:
    """The ids of a page's elements."""
    return frozenset(re.findall(r'<[a-z][^<>]* id="([^"]+)"', html))


@dataclass(frozen=True)
class PageAnchors:
    """What the pages of one paper hold; a page that was not made holds nothing."""

    key: str
    on_page: Anchors = frozenset()
    on_traces: Anchors = frozenset()

    def table_link(self, anchor: str) -> str:
        """The address of an anchor on the paper's page; empty if it is not there."""
        return f"{self.key}.html#{anchor}" if anchor in self.on_page else ""

    def trace_link(self, anchor: str) -> str:
        """The address of an anchor on the page of its timelines, in the same way."""
        return f"{traces_file(self.key)}#{anchor}" if anchor in self.on_traces else ""


def traces_file(key: str) -> str:
    """The name of the page of a paper's timelines."""
    return f"{key}-traces.html"
