"""Where the project's files are. Knows no formats: only folders."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent

# SPECLIB_HOME is another copy of the project's files, as tests have it.
ROOT = Path(os.environ.get("SPECLIB_HOME", PACKAGE.parent))
DATA = ROOT / "data"
REPORTS = ROOT / "reports"
CACHE = ROOT / ".cache"

# Official benchmark files, which are measured in place of our own prompts.
OFFICIAL_PROMPTS = os.environ.get("SPECLIB_PROMPTS")
