"""What would keep a pair from being loaded, found before anything of it is.

A model of many gigabytes takes minutes to load. That a GPU is missing, that a file is,
or that there is no memory for it is known at once, and said here. What cannot be known
before, such as what activations take, is left to the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from speclib import machine
from speclib.core.settings import Role
from speclib.data.pairs import ModelSpec, Pair
from speclib.data.placement import Place
from speclib.errors import BadValue

from . import checkpoint, gpus
from .part import NOWHERE, Part

GB = 1e9  # bytes
LARGE = 200_000_000  # weights of a shape that are worth a count
ANY = 1 << 60  # bytes: of a GPU whose driver does not say how many are free

# Bytes that CUDA takes in each process on a GPU before there is any weight. It is the
# smallest number that we know of, so that nothing is refused that would run: torch's
# pull request 86509 has 287,047,680, with kernels loaded when they are first called;
# newer GPUs and versions take more.
CUDA_CONTEXT = 287_000_000


def check(
    pair: Pair,
    place: Place,
    dtype: str,
    targets: int = 1,
    in_one_process: bool = False,
    cached: int = 0,
) -> None:
    """Raises BadValue for a pair that cannot be loaded here, with the reason.

    place: where it is computed, without alternatives. targets: how many target devices
    there are. in_one_process: whether all of them are in one process, which uses each
    of its GPUs once; else each has its own, and each of its ranks. cached: of how many
    tokens each model keeps the keys and values, if they are worth a count.
    """
    check_gpus(pair, place, targets)
    check_cores(pair, place)
    for spec in {pair.target.model: pair.target, pair.draft.model: pair.draft}.values():
        if not spec.is_toy and not spec.in_llamacpp:
            checkpoint.check(spec.model)
    if cached or may_be_large(pair.target) or may_be_large(pair.draft):
        check_memory(pair, place, dtype, targets, in_one_process, cached)


def check_gpus(pair: Pair, place: Place, targets: int) -> None:
    """Raises BadValue where the pair names a GPU that torch cannot use."""
    wanted = gpus_of(place, targets)
    if not wanted or max(wanted) < gpus.count():
        return
    names = ", ".join(f"cuda:{number}" for number in sorted(wanted))
    raise BadValue(
        f"pair {pair.name!r} stands on {names}, but {gpus.available()}. Give other "
        "places, as in place={'draft': ['core:0'], 'target': ['core:1']}; "
        "`python -m speclab doctor` says what this machine can run"
    )


def check_cores(pair: Pair, place: Place) -> None:
    """Raises BadValue where the pair names a core that this machine does not have.

    A machine of one core has only that one for all of them. Places that are not named,
    as of further targets, begin again with the first core.
    """
    cores = machine.cores()
    for name in (*place.draft, *place.target, *chain(*place.servers)):
        is_core = name.startswith("core:")
        if is_core and int(name.removeprefix("core:")) >= cores > 1:
            raise BadValue(
                f"pair {pair.name!r} stands on {name}, but this process may use "
                f"{cores} cores, core:0 to core:{cores - 1}: give one of them, or cpu"
            )


def gpus_of(place: Place, targets: int) -> set[int]:
    """The numbers of the GPUs that a draft and so many targets stand on."""
    devices: list[tuple[Role, int]] = [("draft", 0)]
    devices += [("target", index) for index in range(targets)]
    numbers = set()
    for role, index in devices:
        for name in place.of(role, index):
            if name.startswith("cuda:"):
                numbers.add(int(name.removeprefix("cuda:")))
    return numbers


def check_memory(
    pair: Pair,
    place: Place,
    dtype: str,
    targets: int,
    in_one_process: bool = False,
    cached: int = 0,
) -> None:
    """Raises BadValue where a place has less memory free than weights and caches take.

    On a GPU each process takes some for CUDA, too. Arguments as of ``check``.
    """
    from speclib.models.footprint import parts

    free = free_memory()
    gpu_memory = {}
    for number in _numbers(free):
        gpu_memory[number] = max(0, free[f"cuda:{number}"] - CUDA_CONTEXT)
    held = parts(pair, place, dtype, cached, targets, gpu_memory or {0: ANY})
    needed = needed_by(held, in_one_process)

    things = f"weights and caches of {cached:,} tokens" if cached else "weights"
    problems = []
    for memory, size in needed.items():
        if memory == NOWHERE:
            problems.append(f"its GPUs lack memory for {size / GB:.1f} GB of {things}")
        elif size > free.get(memory, ANY):
            what = f"{things} and CUDA" if memory.startswith("cuda") else things
            problems.append(
                f"{memory} would hold {size / GB:.1f} GB of {what} and has "
                f"{free[memory] / GB:.1f} GB free"
            )
    if problems:
        ways = "more places, smaller models or dtype='bfloat16'"
        if cached:
            ways = f"fewer requests at a time, shorter texts, {ways}"
        raise BadValue(
            f"pair {pair.name!r} does not fit in {dtype}: {'; '.join(problems)}. Give "
            f"it {ways}"
        )


def needed_by(held: Iterable[Part], in_one_process: bool) -> dict[str, int]:
    """Bytes of ``held``, and of CUDA itself, by whose memory takes them."""
    sizes: dict[str, int] = {}
    processes: dict[str, int] = {}
    for part in held:  # each is what one process has there
        sizes[part.memory] = sizes.get(part.memory, 0) + part.total
        processes[part.memory] = processes.get(part.memory, 0) + 1

    needed = {}
    for memory, size in sizes.items():
        contexts = 0
        if memory.startswith("cuda"):
            contexts = 1 if in_one_process else processes[memory]
        needed[memory] = size + contexts * CUDA_CONTEXT
    return needed


def free_memory() -> dict[str, int]:
    """Bytes that are free here, by "cpu" and the GPUs' places.

    GPUs whose memory the driver does not state are left out.
    """
    free = {"cpu": machine.memory().available}
    for number, gpu in enumerate(machine.gpus()):
        if gpu.total > 0:
            free[f"cuda:{number}"] = gpu.free
    return free


def _numbers(places: Iterable[str]) -> list[int]:
    """The numbers of the GPUs among places."""
    return [
        int(place.removeprefix("cuda:"))
        for place in places
        if place.startswith("cuda:")
    ]


def may_be_large(spec: ModelSpec) -> bool:
    """Whether its memory is worth a count: the embedded models' own is not.

    Nor is that of the shapes in which they stand in for larger ones under
    ``data/pairs``, some hundred megabytes at most.
    """
    if spec.is_toy or spec.in_llamacpp:
        return False
    if (
        spec.shape is not None
        and not spec.head
        and weights_of_layers(spec.shape) > LARGE
    ):
        return True
    return spec.like is not None or not spec.model.startswith("zoo/")


def weights_of_layers(shape: Sequence[int]) -> int:
    """About how many weights the layers of a shape have; it says no heads of keys."""
    layers, width, _, ffn = shape
    return layers * (4 * width * width + 3 * width * ffn)
