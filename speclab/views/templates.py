"""Jinja2 templates of a folder, with the same settings for all folders.

    templates = load_templates(Path(__file__).parent / "templates")
    text = templates.get_template("section.html").render(section=section)

What is put into a template whose name ends in ``.html`` is escaped, unless the template
says ``|safe``; in Markdown nothing is. A name that the template uses and nobody gave is
an error.
"""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape


def load_templates(folder: Path, **names: object) -> Environment:
    """The templates in ``folder``; all of them may use ``names``."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        keep_trailing_newline=True,  # {% include %} gives a file's lines as they are
        trim_blocks=True,  # a line that is only a {% ... %} leaves no line behind
        lstrip_blocks=True,
    )
    environment.globals.update(names)
    return environment
