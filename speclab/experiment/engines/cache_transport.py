"""How long a draft's KV cache takes between replicas: from the cache, or measured.

Knows no paper and no network.
"""

from __future__ import annotations

from speclab.experiment import cache_keys
from speclab.experiment.cache import load_or_compute
from speclib import machine
from speclib.data.pairs import load_pair
from speclib.models.zoo import CHECKSUMS
from speclib.paths import DATA

# Modules that enter the key, with all that they import.
CODE = (
    "speclab.experiment.cells.moved_cache",
    "speclib.models.parallel.replicas",
)


def transport_seconds(
    pair: str, lengths: tuple[int, ...], repeats: int
) -> dict[int, list[float]]:
    """Seconds of each of ``repeats`` moves, by the tokens in the cache.

    ``pair``: its draft has replicas (see ``measure_transport``).
    """
    from speclab.experiment.cells.moved_cache import measure_transport  # has processes

    key = cache_keys.digest(
        "transport",
        pair,
        lengths,
        repeats,
        cache_keys.hash_of_code(CODE),
        cache_keys.hash_of_files(DATA / "pairs" / f"{pair}.toml", CHECKSUMS),
        machine.environment(),
    )
    stored = load_or_compute(
        key, lambda: list(measure_transport(load_pair(pair), lengths, repeats).items())
    )
    return {int(length): seconds for length, seconds in stored}
