"""The version of both packages. It is stated here and nowhere else.

pyproject.toml reads it from this file. No cell of an experiment imports it, so a new
version leaves valid what was computed before.
"""

VERSION = "0.1.0"
