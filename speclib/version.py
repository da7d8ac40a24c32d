"""The version of both packages, stated here and nowhere else.

pyproject.toml reads it from this file. No experiment imports it, so results that were
computed before stay valid under a new version.
"""

VERSION = "0.1.0"
