"""The audit opened for reading: its items judged once, shown in the forms they have.

    audit = Audit()
    audit.gravest()             # the ten findings that change most
    audit.summary()             # how many items have which verdict
    audit.items()               # all of them, with their evidence
    audit.show("pearl")         # those of one publication

The notebook ``notebooks/reproduce/audit.ipynb`` calls this. Evidence is produced when
it is asked for; what rests on other tables is read from ``reports/claims.csv``.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated

from speclab.audit.judge_items import (
    REQUESTS,
    JudgedPublication,
    judge_publication,
)
from speclab.audit.load_items import load_audit, publication
from speclib.arguments import Whole, checked

from .book import Page


class Audit:
    """The audit of all publications.

    ``requests``: so many simulated ones for each number that chance has a part in.
    """

    @checked
    def __init__(self, *, requests: Annotated[int, Whole(least=2)] = REQUESTS):
        self.requests = requests
        self._judged: dict[str, JudgedPublication] = {}

    @checked
    def publication(self, key: str) -> JudgedPublication:
        """A publication with its items judged. Raises SpeclibError if there is none."""
        if key not in self._judged:
            self._judged[key] = judge_publication(publication(key), self.requests)
        return self._judged[key]

    @cached_property
    def judged(self) -> dict[str, JudgedPublication]:
        """All publications with their items judged, by key."""
        return {key: self.publication(key) for key in load_audit()}

    def gravest(self) -> Page:
        """The ten findings that change most, each with its evidence and best answer."""
        from speclab.views.audit.pages import gravest_html, gravest_md

        return Page(gravest_html(self.judged), gravest_md(self.judged))

    def summary(self) -> Page:
        """How many items of each publication have which verdict."""
        from speclab.views.audit.pages import summary_html, summary_md

        return Page(summary_html(self.judged), summary_md(self.judged))

    def items(self) -> Page:
        """All items: what is contradicted, stays open and holds, ours, and typos."""
        from speclab.views.audit.pages import items_html, items_md

        return Page(items_html(self.judged), items_md(self.judged))

    def show(self, key: str) -> Page:
        """Every item of a publication: its verdict, and unfolded what it rests on."""
        from speclab.views.audit.pages import publication_html, publication_md

        judged = self.publication(key)
        return Page(publication_html(judged), publication_md(judged))

    def sources(self) -> Page:
        """Which texts and which programs were read, each in its version."""
        from speclab.views.audit.pages import sources_html, sources_md

        publications = load_audit().values()
        return Page(sources_html(publications), sources_md(publications))
