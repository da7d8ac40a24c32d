"""The audit's page: made after the papers' reports, since it reads their verdicts."""

from __future__ import annotations

from speclib import paths
from speclib.atomic_files import write_atomically

AUDIT = "audit"


def make_audit_page() -> dict[str, str]:
    """Runs the notebook and writes audit.html and audit.md; returns why it failed.

    Does nothing where there is no audit: its items and its notebook.
    """
    from speclab.views.audit.audit_lines import TO_REPORTS

    from .notebooks import in_words, notebook_of, run_notebook
    from .pages import notebook_markdown, notebook_page

    notebook = notebook_of(AUDIT)
    if not notebook.is_file() or not (paths.DATA / "audit").is_dir():
        return {}
    out = paths.REPORTS / f"{AUDIT}.ipynb"
    try:
        run_notebook(notebook, out, bar=False)
        executed = out.read_text("utf-8")
        html = notebook_page(executed, "speclib: the audit")
        html = html.replace(f'href="{TO_REPORTS}', 'href="')  # it stands among them
        write_atomically(paths.REPORTS / f"{AUDIT}.html", html)
        markdown = notebook_markdown(executed)
        write_atomically(paths.REPORTS / f"{AUDIT}.md", markdown)
    except Exception as error:  # all other pages are written
        return {notebook.name: in_words(error)}
    return {}
