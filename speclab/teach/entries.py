"""Ways to the lessons without installing anything: links to Binder and Colab.

Both open a repository by its public address. It is stated once, as ``repository-code``
in ``CITATION.cff``; from there it comes into docs/install.md.

Binder builds the environment of ``.binder/environment.yml``. Colab has none: there a
first cell fetches the repository and installs both packages.
"""

from __future__ import annotations

import re
from pathlib import Path

from speclib.atomic_files import write_atomically
from speclib.errors import BadValue
from speclib.paths import ROOT, stated_address

from .marked_text import replace_marked

PAGE, CITATION = ROOT / "docs" / "install.md", ROOT / "CITATION.cff"
FIRST_LESSON = "notebooks/learn/00_start_here.ipynb"
BRANCH = "main"  # Colab opens files of a branch
ON_GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")
COLAB_CELL = """\
!git clone --quiet --depth 1 {address} speclib
%pip install --quiet -e "speclib[lab,models]"
import sys
sys.path.insert(0, "/content/speclib")  # this kernel began before the package was there
"""
WITHOUT_ADDRESS = """\
Binder and Colab open a repository by its public address, and `CITATION.cff` does not
state one yet. Write it there as `repository-code`, and run `python -m speclab lessons`:
it puts the links here."""
WITH_ADDRESS = """\
- **Binder** builds the environment and opens the first lesson:
  [![Binder](https://mybinder.org/badge_logo.svg)]({binder})
- **Colab** opens [the first lesson]({colab}); others are opened in the same way. Put
  this cell above all others, and run it first:

```python
{cell}```"""


def write_entries(page: Path = PAGE, citation: Path = CITATION) -> Path:
    """Brings the links of the page on installing up to date."""
    address = stated_address(citation.read_text("utf-8"))
    text = replace_marked(page.read_text("utf-8"), "entries", entries(address))
    write_atomically(page, text)
    return page


def entries(address: str) -> str:
    """Markdown: the links for a repository at ``address``.

    Raises BadValue for an address that is not on GitHub, where Colab looks.
    """
    if not address:
        return WITHOUT_ADDRESS
    found = ON_GITHUB.fullmatch(address)
    if found is None:
        raise BadValue(
            f"repository-code is {address!r}: give https://github.com/<owner>/<name>"
        )
    repository = found[1]
    return WITH_ADDRESS.format(
        binder=f"https://mybinder.org/v2/gh/{repository}/HEAD?urlpath=lab/tree/{FIRST_LESSON}",
        colab="https://colab.research.google.com/github/"
        f"{repository}/blob/{BRANCH}/{FIRST_LESSON}",
        cell=COLAB_CELL.format(address=address),
    )
