"""Writes the audit's page into the reports, as Markdown and as HTML."""

from __future__ import annotations

import json

from speclib import paths
from speclib.atomic_files import write_atomically


def make_audit_page() -> None:
    """Writes reports/audit.md and audit.html, if ``data`` contains an audit."""
    from speclab.audit.page import audit_page

    from .pages import notebook_page

    if not (paths.DATA / "audit").is_dir():
        return
    markdown = audit_page()
    write_atomically(paths.REPORTS / "audit.md", markdown)
    cell = {"id": "audit", "cell_type": "markdown", "metadata": {}, "source": markdown}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    html = notebook_page(json.dumps(notebook), "speclib: the audit")
    write_atomically(paths.REPORTS / "audit.html", html)
