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
html_show_search_summary = False  # it would fetch pages, which none from a disk may

nb_execution_mode = "off"  # lessons are shown with the outputs that are stored
myst_heading_anchors = 4
# Docstrings are prose for readers of code, and not written for Sphinx.
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
# "minutes  0 measures nothing", or a line with one that is indented below it.
LISTED = re.compile(r"^(?!\d\.|[-*] ).*\S(  +\S|\n +\S)")


def keep_lists(_app, _what, _name, _obj, _options, lines):
    """Names with what they mean, side by side in a docstring, stay side by side."""
    if lines[:1] and lines[0].startswith("Alias for field number"):
        lines.clear()  # of a NamedTuple's field, which has no words of its own
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
