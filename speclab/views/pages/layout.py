"""What all pages share: their frame, style and templates."""

from __future__ import annotations

from pathlib import Path

from speclab.views.tables.html import STYLE
from speclab.views.templates import load_templates

HERE = Path(__file__).parent


def read_file(name: str) -> str:
    """A style or a script of this folder."""
    return (HERE / name).read_text("utf-8")


TEMPLATES = load_templates(
    HERE / "templates",
    page_style=read_file("page.css"),
    page_script=read_file("page.js"),
    table_style=STYLE,
)


def render(template: str, **names: object) -> str:
    """A page, or a part of one, from the template with this name."""
    return TEMPLATES.get_template(template).render(names)
