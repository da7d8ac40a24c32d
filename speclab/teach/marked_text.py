"""Parts of hand-written pages that are generated: they stand between two marks.

<!-- exercises -->
(written by a command)
<!-- /exercises -->
"""

from __future__ import annotations

from speclib.errors import BadValue


def replace_marked(page: str, name: str, text: str) -> str:
    """The page with ``text`` between the marks called ``name``.

    Raises BadValue where the page does not have both marks, each once.
    """
    opening, closing = f"<!-- {name} -->", f"<!-- /{name} -->"
    if page.count(opening) != 1 or page.count(closing) != 1:
        raise BadValue(f"a page needs {opening} and {closing}, each once")
    before, rest = page.split(opening)
    _old, after = rest.split(closing)
    return f"{before}{opening}\n{text}\n{closing}{after}"
