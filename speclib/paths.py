"""Where the project's files are. Knows no formats: only folders."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(os.environ.get("SPECLIB_HOME", Path(__file__).resolve().parents[1]))
DATA = ROOT / "data"
REPORTS = ROOT / "reports"
CACHE = ROOT / ".cache"
