"""The files that a cell of real models depends on, which enter its key."""

from __future__ import annotations

from pathlib import Path

from speclib.data import prompts
from speclib.data.pairs import load_pair
from speclib.data.retrieval import text_files
from speclib.methods import about
from speclib.models.zoo import CHECKSUMS
from speclib.paths import DATA


def input_files(pair_name: str, task: str, method: str) -> list[Path]:
    """A pair's description, our models' digests, the prompts, and what is looked up."""
    files = [DATA / "pairs" / f"{pair_name}.toml", CHECKSUMS]
    if about(method).needs_datastore:
        datastore = load_pair(pair_name).datastore
        if datastore is None:
            files += sorted((DATA / "corpus").glob("*.toml"))  # ours is made of these
        else:
            files += text_files(datastore)
    if task != "toy":
        folder = prompts.folder_to_measure(task)
        files.append(prompts.locate(task, folder).path)
    return files
