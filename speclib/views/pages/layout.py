"""What all pages share: their frame, style and templates."""

from __future__ import annotations

from pathlib import Path

from speclib.views.tables.html import STYLE
from speclib.views.templates import load_templates

HERE = Path(__file__).parent
TEMPLATES = load_templates(
    HERE / "templates",
    page_style=(HERE / "page.css").read_text("utf-8"),
    page_script=(HERE / "page.js").read_text("utf-8"),
    table_style=STYLE,
)


def render(template: str, **names: object) -> str:
    """A whole page, from the template with this name."""
    return TEMPLATES.get_template(template).render(names)
