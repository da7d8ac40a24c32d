"""The audit's page: made after the papers' reports, since it reads their verdicts.

Like a paper's page it comes from a notebook, and is left alone while nothing that it
depends on has changed.
"""

from __future__ import annotations

import time

from speclib import paths
from speclib.atomic_files import write_atomically

from . import freshness
from .pace import Pace

KIND = "audit-page"  # by which its pace is known


def is_wanted() -> bool:
    """Whether there is an audit to make a page of: its items and its notebook."""
    has_items = (paths.DATA / "audit").is_dir()
    return has_items and freshness.notebook_of(freshness.AUDIT).is_file()


def is_stale() -> bool:
    """Whether the page is wanted and not up to date."""
    if not is_wanted():
        return False
    inputs = freshness.hash_of_audit_inputs()
    return not freshness.is_current(freshness.AUDIT, inputs)


def expected_seconds() -> float:
    """How long making the page takes, most likely."""
    return Pace.read().expect(KIND) if is_wanted() else 0.0


def make_page() -> None:
    """Runs the notebook, and writes audit.html and audit.md.

    Raises SpeclibError naming the cell of the notebook that failed.
    """
    from speclab.views.audit.audit_lines import TO_REPORTS
    from speclab.views.pages.notebook import notebook_markdown, notebook_page

    from .notebooks import run_notebook

    started = time.monotonic()
    inputs = freshness.hash_of_audit_inputs()
    out = paths.REPORTS / f"{freshness.AUDIT}.ipynb"
    freshness.forget(freshness.AUDIT)
    run_notebook(freshness.notebook_of(freshness.AUDIT), out, bar=False)

    executed = out.read_text("utf-8")
    html = notebook_page(executed, "speclib: the audit")
    html = html.replace(f'href="{TO_REPORTS}', 'href="')  # it stands among them
    write_atomically(paths.REPORTS / f"{freshness.AUDIT}.html", html)
    markdown = notebook_markdown(executed)
    write_atomically(paths.REPORTS / f"{freshness.AUDIT}.md", markdown)
    freshness.remember(freshness.AUDIT, inputs)
    Pace.read().note(KIND, seconds=time.monotonic() - started)
