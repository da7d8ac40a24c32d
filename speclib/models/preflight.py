"""Checks before loading: the files, GPUs and memory that a pair needs.

A model of many gigabytes takes minutes to load. A missing file, a missing GPU or too
little memory can be reported beforehand. The estimate counts weights, KV caches and
CUDA's own memory, but neither activations nor models in llama.cpp.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from speclib import machine
from speclib.core.settings import ROLES, Role
from speclib.data.pairs import ModelSpec, Pair
from speclib.data.placement import Place
from speclib.data.shapes import published_config
from speclib.errors import BadValue

from . import gpus
from .checkpoint import Checkpoint
from .loading import torch_dtype
from .open_pair import OpenPair

if TYPE_CHECKING:
    from transformers import PretrainedConfig

GB = 1e9  # bytes
ASSUMED_GPU = 80_000_000_000  # an A100's bytes, used if the driver reports none

# The least memory, in bytes, that CUDA takes in each process on a GPU: torch's pull
# request 86509 states 287,047,680, with kernels loaded on first use.
CUDA_CONTEXT = 287_000_000


@dataclass(frozen=True)
class MemoryUse:
    """The memory that one device's model takes on one place, in bytes.

    device   draft, target, target-2, ...
    place    core:N, cpu or cuda:N
    weights  its parameters
    cache    keys and values for a text of a given length
    """

    device: str
    place: str
    weights: int
    cache: int

    @property
    def memory(self) -> str:
        """The memory that the place uses: all cores share the CPU's."""
        return "cpu" if self.place.startswith("core") else self.place


def check(
    opened: OpenPair,
    dtype: str,
    targets: int = 1,
    in_one_process: bool = False,
    cached: int = 0,
    roles: Sequence[Role] = ROLES,
) -> None:
    """Raises BadValue, with the reason, for a pair that cannot be loaded here.

    targets: the number of target devices. in_one_process: whether they share one
    process. cached: the tokens that each model caches; with 0, memory is checked only
    if a model may be large. roles: the models to load.
    """
    check_gpus(opened, targets, roles)
    if opened.is_toy:
        return
    configs: dict[Role, PretrainedConfig] = {}
    for role in roles:
        files = opened.files(role)
        if isinstance(files, Checkpoint):
            files.check_weights()
            if not files.spec.in_llamacpp:
                configs[role] = files.config
    if not cached and not any(
        _may_be_large(opened.pair.model(role)) for role in configs
    ):
        return

    free = free_memory()
    held = estimate(opened.pair, configs, opened.place, dtype, cached, targets, free)
    for memory, size in needed_memory(held, in_one_process).items():
        if memory in free and size > free[memory]:
            raise BadValue(
                f"pair {opened.pair.name!r} does not fit in {dtype}: {memory} would "
                f"hold {size / GB:.1f} GB of weights and caches of {cached:,} tokens "
                f"but has {free[memory] / GB:.1f} GB free. Give it more places, "
                "smaller models, fewer or shorter requests, or dtype='bfloat16'"
            )


def check_gpus(opened: OpenPair, targets: int, roles: Sequence[Role] = ROLES) -> None:
    """Raises BadValue if one of ``roles`` runs on a GPU that torch cannot use."""
    names: set[str] = set()
    for role in roles:
        for index in range(targets if role == "target" else 1):
            names.update(opened.place.of(role, index))
    for name in sorted(names):
        if name.startswith("cuda:") and int(name.split(":")[1]) >= gpus.count():
            raise BadValue(
                f"pair {opened.pair.name!r} is on {name}, but {gpus.available()}. Give "
                "other places, such as {'draft': ['core:0'], 'target': ['core:1']};"
                " `python -m speclab doctor` shows what this machine can run"
            )


# -- memory ----------------------------------------------------------------------------
def free_memory() -> dict[str, int]:
    """Free bytes on this machine, by place, such as "cpu" or "cuda:0".

    Omits GPUs whose memory the driver does not report.
    """
    free = {"cpu": machine.memory().available}
    for number, gpu in enumerate(machine.gpus()):
        if gpu.total > 0:
            free[f"cuda:{number}"] = gpu.free
    return free


def _may_be_large(spec: ModelSpec) -> bool:
    """Whether a model may need a lot of memory; the embedded models do not."""
    return spec.like is not None or not spec.model.startswith("zoo/")


def published(model: str) -> PretrainedConfig:
    """Makes a hub model's configuration from its sizes under data/shapes."""
    from transformers import AutoConfig
    from transformers.utils import logging

    known = published_config(model)
    if known is None:
        raise BadValue(f"no file under data/shapes describes {model!r}: write one")
    model_type, values = known
    logging.set_verbosity_error()  # no warnings about special tokens, unused here
    config: PretrainedConfig = AutoConfig.for_model(model_type, **values)
    return config


def estimate(
    pair: Pair,
    configs: Mapping[Role, PretrainedConfig],
    place: Place,
    dtype: str,
    length: int,
    targets: int,
    free: Mapping[str, int],
) -> list[MemoryUse]:
    """Estimates the memory that each model in ``configs`` takes on each of its places.

    place: where they run, without alternatives. length: the length of the cached text,
    in tokens. free: see ``free_memory``. A model in one process is spread over its GPUs
    in proportion to their free memory.
    """
    held = []
    for role, config in configs.items():
        spec = pair.model(role)
        weights, cache = _sizes(spec, config, dtype, length)
        for index in range(targets if role == "target" else 1):
            device = role if index == 0 else f"{role}-{index + 1}"
            for name, share in _shares(spec, place.of(role, index), free):
                held.append(
                    MemoryUse(device, name, int(weights * share), int(cache * share))
                )
    return held


def _shares(
    spec: ModelSpec, places: Sequence[str], free: Mapping[str, int]
) -> list[tuple[str, float]]:
    """The share of a model that each of its places holds."""
    if spec.spread in ("replicas", "layers"):
        return [(name, 1.0) for name in places]
    if spec.spread in ("tensors", "stages"):
        return [(name, 1 / len(places)) for name in places]
    own_gpus = [name for name in places if name.startswith("cuda")]
    if not own_gpus or spec.dilation is not None:
        return [((own_gpus or places)[0], 1.0)]
    rooms = [free.get(name, ASSUMED_GPU) for name in own_gpus]
    return [
        (name, room / sum(rooms)) for name, room in zip(own_gpus, rooms, strict=True)
    ]


def _sizes(
    spec: ModelSpec, config: PretrainedConfig, dtype: str, length: int
) -> tuple[int, int]:
    """The bytes of a model's weights, and of its KV cache for ``length`` tokens."""
    from .dilate import dilated_config
    from .weights import empty_network

    if spec.dilation is not None and not spec.head:
        config = dilated_config(config, **spec.dilation._asdict())
    number = torch_dtype(dtype)
    weights = empty_network(config, number).num_parameters()

    text = config.get_text_config(decoder=True)
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    width = getattr(text, "head_dim", None)
    width = width or text.hidden_size // text.num_attention_heads
    cached = 2 * text.num_hidden_layers * heads * width * length
    return weights * number.itemsize, cached * number.itemsize


def needed_memory(
    held: Iterable[MemoryUse], in_one_process: bool = False
) -> dict[str, int]:
    """Maps each memory to the bytes that it must hold, including CUDA's own."""
    needed: dict[str, int] = {}
    for use in held:  # each is one process's share
        size = use.weights + use.cache
        is_own_process = use.memory not in needed or not in_one_process
        if use.place.startswith("cuda") and is_own_process:
            size += CUDA_CONTEXT
        needed[use.memory] = needed.get(use.memory, 0) + size
    return needed
