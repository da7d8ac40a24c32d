"""Texts of the data files as HTML: paragraphs, lists, emphasis and code.

They are written in Markdown, and stand as they are wherever only text is shown. Knows
no table and no page.
"""

from __future__ import annotations

from mistune import create_markdown

render_markdown = create_markdown(escape=True)


def prose_html(text: str) -> str:
    """HTML of a Markdown text; a tag inside the text is shown, and not obeyed."""
    return str(render_markdown(text))
