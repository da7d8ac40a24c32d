"""What is computed of a pair and a task's prompts: from the cache, or run.

The key has the prompts' file, the pair's, the weights, the code and this machine, so
that none of them changes unnoticed. Knows no paper and no network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from speclab.experiment import cache_keys
from speclab.experiment.cache import load_or_compute
from speclib import machine
from speclib.data import prompts
from speclib.models.zoo import CHECKSUMS
from speclib.paths import DATA

Value = TypeVar("Value")


def load_or_compute_of_prompts(
    what: str,
    pair: str,
    task: str,
    settings: tuple[Any, ...],
    code: tuple[str, ...],
    compute: Callable[[], list[Value]],
) -> list[Value]:
    """``compute()``, unless the cache has it.

    what      a word that tells it from all else that is cached
    settings  whatever else the value depends on
    code      the modules that compute it; all that they import enters the key, too
    """
    prompt_file, _ = prompts.locate(task, prompts.folder_to_measure(task))
    key = cache_keys.digest(
        what,
        pair,
        task,
        *settings,
        cache_keys.hash_of_code(code),
        cache_keys.hash_of_files(
            DATA / "pairs" / f"{pair}.toml", CHECKSUMS, prompt_file
        ),
        machine.environment(),
    )
    return load_or_compute(key, compute)
