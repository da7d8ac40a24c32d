"""The version of both packages, stated here and nowhere else.

pyproject.toml reads it from this file. No experiment imports it, so a new version does
not invalidate earlier results.
"""

VERSION = "0.1.0"
