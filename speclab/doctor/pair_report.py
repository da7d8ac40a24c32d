"""Reports the memory that each of the papers' pairs needs, and what this machine lacks.

The pairs are in ``data/pairs/hub``: the papers' own models, by their ids on the hub. If
a model is not on this machine, its size comes from ``data/shapes``. A missing GPU is
assumed to have 80 GB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from speclib.core.settings import Role
from speclib.data.pairs import Pair, load_pair
from speclib.data.shapes import shape_of
from speclib.data.toml_files import names_under
from speclib.errors import SpeclibError
from speclib.models import checkpoint, gpus, preflight
from speclib.models.preflight import GB, MemoryUse, published
from speclib.paths import DATA


@dataclass(frozen=True)
class PairReport:
    """What one pair needs, and whether it can run here.

    name             its file under data/pairs
    stands_for       the paper's names for its models
    paper            the paper that uses the pair
    parts            the memory used at each place
    gpus             number of GPUs
    missing          what this machine lacks to run it; empty if nothing
    without_weights  the pair with the same shapes but no weights; empty if none
    """

    name: str
    stands_for: str
    paper: str
    parts: tuple[MemoryUse, ...]
    gpus: int
    missing: tuple[str, ...]
    without_weights: str


def report_pairs(dtype: str, length: int, hub_is_silent: str) -> list[PairReport]:
    """Reports every pair under ``data/pairs/hub``.

    dtype: see ``models.loading``. length: the number of tokens in the KV cache.
    hub_is_silent: why nothing can be downloaded; empty if the hub answers.
    """
    shape_pairs = names_under(DATA / "pairs" / "shape")
    reports = []
    for name in names_under(DATA / "pairs" / "hub"):
        pair = load_pair(f"hub/{name}")
        free = preflight.free_memory()
        try:
            held = _estimate(pair, dtype, length, free)
            missing = [*_lacking_memory(held, free), *_lacking_weights(pair)]
        except SpeclibError as error:
            held, missing = [], [str(error)]
        if hub_is_silent and missing:
            missing.append(f"access to the hub ({hub_is_silent})")
        places = {use.place for use in held}
        report = PairReport(
            name=pair.name,
            stands_for=pair.stands_for,
            paper=(pair.latency or "").split("/")[0],
            parts=tuple(held),
            gpus=len([place for place in places if place.startswith("cuda")]),
            missing=tuple(missing),
            without_weights=f"shape/{name}" if name in shape_pairs else "",
        )
        reports.append(report)
    return reports


def _estimate(
    pair: Pair, dtype: str, length: int, free: Mapping[str, int]
) -> list[MemoryUse]:
    """The memory used at each place, including missing GPUs."""
    roles: tuple[Role, ...] = ("draft", "target")
    configs = {role: published(pair.model(role).model) for role in roles}
    place = pair.place.on_machine_with(gpus.count())
    targets = 1 + len(place.servers)
    return preflight.estimate(pair, configs, place, dtype, length, targets, free)


def _lacking_memory(held: list[MemoryUse], free: Mapping[str, int]) -> Iterator[str]:
    """The missing GPUs and the missing memory, in words."""
    needed = preflight.needed_memory(held)
    wanted = [memory for memory in needed if memory.startswith("cuda")]
    here = [memory for memory in wanted if memory in free]
    if len(here) < len(wanted):
        yield f"{len(wanted)} GPUs, but only {len(here)} are here"
    for memory, size in needed.items():
        room = free.get(memory, preflight.ASSUMED_GPU)
        if size > room:
            yield f"{size / GB:.1f} GB on {memory}, which has {room / GB:.1f}"


def _lacking_weights(pair: Pair) -> Iterator[str]:
    """The missing weights, in words."""
    for model in dict.fromkeys((pair.target.model, pair.draft.model)):
        if not _is_here(model):
            shape = shape_of(model)
            is_gated = shape is not None and shape.models[model].gated
            yield f"weights of {model}{', which is gated' if is_gated else ''}"


def _is_here(model: str) -> bool:
    """Whether the hub's cache has all weights of a model."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(model, local_files_only=True))
    except LocalEntryNotFoundError:
        return False
    return not checkpoint.missing_weights(folder)
