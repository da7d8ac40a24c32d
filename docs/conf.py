"""How Sphinx builds the site; ``speclab.reproduce.site`` collects its pages."""

import re

from speclib.version import VERSION

project = "speclib"
release = VERSION
extensions = ["myst_nb", "sphinx.ext.autodoc"]
root_doc = "index"

html_theme = "furo"
html_title = "speclib"
html_copy_source = False
html_show_copyright = False
html_css_files = ["site.css"]
html_static_path = ["_static"]
html_show_search_summary = False  # a page opened from disk cannot fetch others

nb_execution_mode = "off"  # lessons are shown with their stored outputs
myst_heading_anchors = 4
# Docstrings are written for readers of the code, not for Sphinx.
suppress_warnings = [
    "docutils",
    "myst.header",
    "ref.python",
    "mystnb.unknown_mime_type",
]

autodoc_member_order = "bysource"
autodoc_mock_imports = ["gguf", "llama_cpp", "ray"]
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
# Matches "minutes  0 measures nothing", or a line followed by an indented one.
LISTED = re.compile(r"^(?!\d\.|[-*] ).*\S(  +\S|\n +\S)")


def keep_lists(_app, _what, _name, _obj, _options, lines):
    """Keeps names and their meanings side by side, as in the docstring."""
    if lines[:1] and lines[0].startswith("Alias for field number"):
        lines.clear()  # a NamedTuple's field without a docstring
    text = []
    for paragraph in "\n".join(lines).split("\n\n"):
        if LISTED.match(paragraph) and "===" not in paragraph:
            paragraph = ".. code-block:: text\n\n    " + paragraph.replace(
                "\n", "\n    "
            )
        text.append(paragraph)
    lines[:] = "\n\n".join(text).split("\n")


def setup(app):
    app.connect("autodoc-process-docstring", keep_lists)
