"""What a draft is fed where the text has a token that it has no row for.

Why that is lossless is said in ``vocabulary``. The module knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence


def known_tokens(tokens: Sequence[int], rows: int, stand_in: int) -> list[int]:
    """``tokens``, with ``stand_in`` instead of those that ``rows`` rows lack."""
    return [token if token < rows else stand_in for token in tokens]
