"""Converts the Markdown of tables' pages to HTML.

Colours are mixed with the page's text colour, so that they work on light and on dark
pages. A table that is wider than its column scrolls inside a box.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import mistune

if TYPE_CHECKING:
    pass

STYLE = f"<style>{Path(__file__).with_name('tables.css').read_text('utf-8')}</style>"
RENDER = mistune.create_markdown(escape=False, plugins=["table"])


def as_html(markdown: str) -> str:
    """HTML for a page's Markdown, including the style."""
    html = str(RENDER(markdown))
    html = html.replace("<table>", '<div class="scroll" tabindex=0><table>')
    html = html.replace("</table>", "</table></div>")
    html = html.replace("<p><sup>", '<p class="notes"><sup>')
    for mark, name in (("✓", "yes"), ("✗", "no"), ("◇", "open")):
        html = html.replace(mark, f'<span class="{name}">{mark}</span>')
    return f'{STYLE}<div class="speclib">{html}</div>'
