"""What each pair of the papers would take on this machine, and what is missing for it.

The pairs are those under ``data/pairs/hub``: the papers' own models, by their ids on
the hub. Their sizes come from ``data/shapes`` where the models are not on this machine.
Where the machine lacks a pair's GPUs, layers are laid out for GPUs of ``ASSUMED_GPU``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from speclib.data.pairs import Pair, load_pair
from speclib.data.shapes import shape_of
from speclib.data.toml_files import names_under
from speclib.errors import SpeclibError
from speclib.models import checkpoint, gpus, preflight
from speclib.models.part import NOWHERE, Part
from speclib.paths import DATA

GB = 1e9  # bytes
ASSUMED_GPU = 80e9  # bytes: the A100 and A800 of all papers


@dataclass(frozen=True)
class PairReport:
    """What one pair takes, and whether it could run here.

    name             under data/pairs
    stands_for       its models, as the paper calls them
    paper            whose pair it is
    parts            what each place holds
    missing          what keeps it from running here; empty if nothing does
    without_weights  the pair of the same shapes that needs no weights; empty: none
    """

    name: str
    stands_for: str
    paper: str
    parts: tuple[Part, ...]
    missing: tuple[str, ...]
    without_weights: str

    @property
    def gpus(self) -> int:
        """How many GPUs it stands on."""
        return len([memory for memory in self.needed if memory.startswith("cuda")])

    @property
    def needed(self) -> dict[str, int]:
        """Bytes of weights and cache by whose memory takes them."""
        return _needed(self.parts)


def report_pairs(dtype: str, length: int, hub_is_silent: str) -> list[PairReport]:
    """A report of every pair under ``data/pairs/hub``.

    dtype: one of ``models.dtypes``. length: of the text whose KV cache is counted, in
    tokens. hub_is_silent: why nothing can be downloaded; empty if the hub answers.
    """
    free = preflight.free_memory()
    shape_pairs = names_under(DATA / "pairs" / "shape")
    reports = []
    for name in names_under(DATA / "pairs" / "hub"):
        pair = load_pair(f"hub/{name}")
        try:
            held = _parts(pair, dtype, length, free)
            missing = _lacking_memory(held, free) + _lacking_weights(
                pair, hub_is_silent
            )
        except SpeclibError as error:
            held, missing = [], [str(error)]

        report = PairReport(
            name=pair.name,
            stands_for=pair.stands_for,
            paper=(pair.latency or "").split("/")[0],
            parts=tuple(held),
            missing=tuple(missing),
            without_weights=f"shape/{name}" if name in shape_pairs else "",
        )
        reports.append(report)
    return reports


def _parts(pair: Pair, dtype: str, length: int, free: Mapping[str, int]) -> list[Part]:
    """What each place holds; GPUs that are not here are assumed."""
    from speclib.models.footprint import parts  # it needs torch

    place = pair.place.on_machine_with(gpus.count())
    targets = 1 + len(place.servers)
    gpu_memory = {}
    for number in preflight.gpus_of(place, targets):
        gpu_memory[number] = int(free.get(f"cuda:{number}", ASSUMED_GPU))
    return parts(pair, place, dtype, length, targets, gpu_memory)


def _needed(held: Iterable[Part]) -> dict[str, int]:
    """Bytes by whose memory takes them."""
    needed: dict[str, int] = {}
    for part in held:
        needed[part.memory] = needed.get(part.memory, 0) + part.total
    return needed


def _lacking_memory(held: Iterable[Part], free: Mapping[str, int]) -> list[str]:
    """Which GPUs and how much memory this machine lacks, in words."""
    problems = []
    needed = _needed(held)
    wanted = [memory for memory in needed if memory.startswith("cuda")]
    lacking = [memory for memory in wanted if memory not in free]
    if lacking:
        here = len(wanted) - len(lacking)
        plural = "" if len(wanted) == 1 else "s"
        problems.append(f"{len(wanted)} GPU{plural}, of which {here} are here")

    for memory, size in needed.items():
        if memory == NOWHERE:
            problems.append(f"{size / GB:.1f} GB more on its GPUs")
        elif memory in free and size > free[memory]:
            problems.append(
                f"{size / GB:.1f} GB on {memory}, which has {free[memory] / GB:.1f}"
            )
    return problems


def _lacking_weights(pair: Pair, hub_is_silent: str) -> list[str]:
    """Which weights are not on this machine, in words."""
    problems = []
    for model in dict.fromkeys((pair.target.model, pair.draft.model)):
        copy = checkpoint.copy_of(model)
        if copy is not None and not copy.missing:
            continue
        problem = f"weights of {model}"
        if copy is not None and copy.missing != (checkpoint.WEIGHTS,):
            problem = f"{len(copy.missing)} files of the {problem}"
        if _is_gated(model):
            problem += ", which is gated"
        problems.append(problem)
    if problems and hub_is_silent:
        problems.append("a way to the hub")
    return problems


def _is_gated(model: str) -> bool:
    shape = shape_of(model)
    return shape is not None and shape.models[model].gated
