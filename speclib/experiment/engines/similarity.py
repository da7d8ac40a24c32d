"""How near a draft's fuzzy states are to its exact ones, text by text; what was found is kept.

Knows no paper and no network.
"""

from __future__ import annotations

from speclib.data import prompts
from speclib.data.pairs import Pair, load_pair
from speclib.experiment import cache_keys, machine
from speclib.experiment.cache import load_or_compute
from speclib.experiment.cells.measured import texts
from speclib.experiment.cells.similarity import similarities
from speclib.models import factory
from speclib.models.zoo import ZOO
from speclib.paths import DATA

CODE = ("speclib.experiment.cells.similarity",)


def similar(
    pair: str, task: str, length: int, n: int, lp: int
) -> list[dict[str, list[float]]]:
    """Of ``n`` texts of about ``length`` tokens: state -> its similarity in each layer of the
    pair's draft as it was trained, with groups of up to ``lp`` layers (see similarities)."""
    files = [
        DATA / "pairs" / f"{pair}.toml",
        ZOO / "SHA256SUMS",
        prompts.locate(task, None)[0],
    ]
    key = cache_keys.digest(
        "similar",
        pair,
        task,
        length,
        n,
        lp,
        cache_keys.hash_of_code(CODE),
        cache_keys.hash_of_files(*files),
        machine.environment(),
    )
    return load_or_compute(key, lambda: each(load_pair(pair), task, length, n, lp))


def each(
    pair: Pair, task: str, length: int, n: int, lp: int
) -> list[dict[str, list[float]]]:
    """The same, computed."""
    return [
        similarities(pair, text, lp)
        for text in texts(task, length, n, factory.tokenizer(pair))
    ]
