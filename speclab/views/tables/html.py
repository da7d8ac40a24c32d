"""The pages of tables as HTML: their Markdown, with a plotly figure for the plot.

Colours are mixed from the reader's own text colour, so that light and dark pages both
work. A table that is wider than its column scrolls inside its own box.
"""

from __future__ import annotations

import re
from pathlib import Path

import mistune

from .answers import item_key

STYLE = f"<style>{Path(__file__).with_name('tables.css').read_text('utf-8')}</style>"
QUESTION = re.compile(r"<h1>(?=[^<]+?, ([^<,:]+):)")  # "<h1>PEARL, Table 1: ..."
RENDER = mistune.create_markdown(escape=False, plugins=["table"])


def as_html(markdown: str) -> str:
    """HTML of a page's Markdown, with the pages' style."""
    html = str(RENDER(markdown))
    html = QUESTION.sub(lambda found: f'<h1 id="{item_key(found[1])}">', html)
    html = html.replace("<table>", '<div class="scroll" tabindex=0><table>')
    html = html.replace("</table>", "</table></div>")
    html = html.replace("<p><sup>", '<p class="notes"><sup>')
    for mark, name in (("✓", "yes"), ("✗", "no"), ("◇", "open")):
        html = html.replace(mark, f'<span class="{name}">{mark}</span>')
    return f'{STYLE}<div class="speclib">{html}</div>'
