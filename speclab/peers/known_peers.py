"""Lists the peers. This module starts no process, so it also works in a browser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Peer(NamedTuple):
    """Another library's decoding.

    ``drafts``: whether it runs the pair's draft. ``settings``: its parameters with
    their defaults, by their names in transformers' GenerationConfig.
    """

    about: str
    drafts: bool = False
    settings: Mapping[str, Any] = {}


EXTERNAL = {
    "transformers-plain": Peer("transformers' generate, one token per pass"),
    "transformers-assisted": Peer(
        "transformers' assisted generation (Gante 2023)",
        True,
        {
            "num_assistant_tokens": 20,
            "num_assistant_tokens_schedule": "constant",
            "assistant_confidence_threshold": 0.4,
        },
    ),
    "transformers-prompt-lookup": Peer(
        "transformers' prompt lookup (Saxena 2023)",
        False,
        {"prompt_lookup_num_tokens": 10, "max_matching_ngram_size": 2},
    ),
}
