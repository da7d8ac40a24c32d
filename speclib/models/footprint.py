"""How much memory a pair takes, place by place, from its description alone.

Networks are built without weights (``weights.empty_network``) and cut as a rank of them
would be, by the very code that cuts them when they are loaded. So what is
counted here is what will be there, to the last weight. Of the KV cache it is what a
text of a stated length takes, by what the network itself caches of a token. What a
pass needs besides, its activations, is not counted, nor is the packed copy that float32
weights have on a CPU (see ``packed_linear``).

A published model needs no file for this: its sizes are under ``data/shapes``. Knows
neither this machine nor what is free on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from logging import ERROR, getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from transformers import AutoConfig
from transformers.integrations.accelerate import (
    get_balanced_memory,
    infer_auto_device_map,
)
from transformers.utils import logging

from speclib.data.shapes import published_config
from speclib.errors import BadValue
from speclib.models import checkpoint
from speclib.models.dilate import dilated_config
from speclib.models.dtypes import TORCH_NAMES, check_dtype
from speclib.models.hf import decoder_layers
from speclib.models.kv_cache import empty_cache
from speclib.models.parallel.pipeline import Elsewhere, Pipeline
from speclib.models.parallel.ranks import leave_head
from speclib.models.parallel.tensor_parallel import Tensors
from speclib.models.part import NOWHERE, Part
from speclib.models.weights import empty_network, move_buffers
from speclib.models.zoo import load_part

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from speclib.core.settings import Role
    from speclib.data.pairs import ModelSpec, Pair
    from speclib.data.placement import Place

META = torch.device("meta")  # where tensors have shapes and no values


def parts(
    pair: Pair,
    place: Place,
    dtype: str,
    length: int,
    targets: int,
    gpu_memory: Mapping[int, int],
) -> list[Part]:
    """What each place holds of ``pair``.

    place: where it is computed, without alternatives.
    dtype: one of ``dtypes``. length: of the text that is cached, in tokens.
    targets: how many target devices there are.
    gpu_memory: bytes of each GPU by its number, by which layers are spread over
        several GPUs; those that are not in it have as many as the largest that is.

    Raises SpeclibError for a model of which nothing is known on this machine, and for
    one that cannot be spread as the pair says.
    """
    check_dtype(dtype)
    result = []
    counts: dict[Role, int] = {"draft": 1, "target": targets}
    for role, count in counts.items():
        spec = pair.model(role)
        if spec.is_toy:
            continue
        if spec.is_gguf:
            size = Path(spec.model).stat().st_size
            result.append(Part(role, "cpu", weights=size, cache=0))
            continue
        sizes = Sizes(spec, dtype, length)
        for index in range(count):
            name = role if index == 0 else f"{role}-{index + 1}"
            places = place.of(role, index)
            for held in sizes.spread_over(places, gpu_memory):
                result.append(Part(name, *held))
    return result


class Shard(NamedTuple):
    """What a rank holds: bytes of weights, and of keys and values."""

    weights: int
    cache: int


class Held(NamedTuple):
    """What a place holds, as of Shard."""

    place: str
    weights: int
    cache: int


class Sizes:
    """The sizes of one model, however it is spread."""

    def __init__(self, spec: ModelSpec, dtype: str, length: int):
        self.spec = spec
        self.dtype: torch.dtype = getattr(torch, TORCH_NAMES[dtype])
        self.config = config_of(spec)
        self.length = length
        self.counted: dict[tuple[int, int], Shard] = {}  # by rank, of so many

    def network(self) -> PreTrainedModel:
        """The whole network without weights, to be cut by whoever asks."""
        return empty_network(self.config, self.dtype)

    def spread_over(
        self, places: tuple[str, ...], gpu_memory: Mapping[int, int]
    ) -> Iterator[Held]:
        """What each of ``places`` holds.

        gpu_memory: as of ``parts``.
        """
        gpus = [place for place in places if place.startswith("cuda")]
        if self.spec.spread != "blocks":
            for number, place in enumerate(places):
                yield Held(place, *self.shard(number, len(places)))
        elif len(gpus) > 1 and self.spec.dilation is None:
            yield from self._over_gpus(gpus, gpu_memory)
        else:
            place = gpus[0] if gpus else places[0]
            yield Held(place, *self.shard(0, 1))

    def shard(self, number: int, size: int) -> Shard:
        """What rank ``number`` of ``size`` holds; equal ones are counted once."""
        if self.spec.spread == "replicas":
            number = 0  # all have the same
        elif self.spec.spread != "stages":
            number = min(number, 1)  # the first has more than the others

        key = (number, size)
        if key not in self.counted:
            network = self.cut(number, size)
            weights = bytes_of(network)
            cache = sum(self.cache_of_layers(network))
            self.counted[key] = Shard(weights, cache)
        return self.counted[key]

    def cut(self, number: int, size: int) -> PreTrainedModel:
        """The network of a rank, cut by the code that cuts it when it is loaded."""
        network = self.network()
        vocab = self.config.get_text_config().vocab_size
        match self.spec.spread:
            case "tensors":
                Tensors(network, vocab, number, size)
            case "stages":
                Pipeline(network, vocab, number, size)
            case "layers":
                leave_head(network, number)
        return network

    def cache_of_layers(self, network: PreTrainedModel) -> list[int]:
        """Bytes of keys and values in each layer, by a pass over one token on "meta".

        A layer that is elsewhere counts nothing. ``network`` is of no use afterwards.
        """
        layers = decoder_layers(network)
        if self.length == 0:
            return [0] * len(layers)

        move_buffers(network, META)
        network.bfloat16()  # in which every kernel is known on "meta"
        cache = empty_cache(network.config.get_text_config(decoder=True))
        token = torch.zeros(1, 1, dtype=torch.long, device=META)
        with torch.inference_mode():
            network(input_ids=token, past_key_values=cache, use_cache=True)

        sizes = []
        cached_layers: list[Any] = cache.layers
        for layer, cached in zip(layers, cached_layers, strict=True):
            values = 0
            if not isinstance(layer, Elsewhere):
                values = cached.keys.numel() + cached.values.numel()
            sizes.append(values * self.length * self.dtype.itemsize)
        return sizes

    def _over_gpus(
        self, gpus: list[str], gpu_memory: Mapping[int, int]
    ) -> Iterator[Held]:
        """As transformers spreads it when it is loaded, by the same functions."""
        network = self.network()
        place_of = _places(network, gpus, gpu_memory)
        weights: dict[str, int] = {}
        for name, weight in network.named_parameters():
            place = place_of(name)
            weights[place] = weights.get(place, 0) + weight.numel() * weight.itemsize

        cache: dict[str, int] = {}
        cache_of_layers = self.cache_of_layers(network)
        for name, size in zip(_layer_names(network), cache_of_layers, strict=True):
            place = place_of(name)
            cache[place] = cache.get(place, 0) + size
        for place, size in weights.items():
            yield Held(place, size, cache.get(place, 0))


def bytes_of(network: torch.nn.Module) -> int:
    """Bytes of a network's parameters; tied ones count once."""
    return sum(weight.numel() * weight.itemsize for weight in network.parameters())


def config_of(spec: ModelSpec) -> PretrainedConfig:
    """transformers' configuration of the network that ``spec`` describes.

    It is read from the checkpoint where this machine has it, else from the published
    sizes. Raises BadValue where there is neither.
    """
    config = _own_config(spec.model)
    dilation = spec.dilation
    if dilation is None:
        return config
    return dilated_config(config, **dilation._asdict())


def _own_config(model: str) -> PretrainedConfig:
    published = published_config(model)
    if checkpoint.copy_of(model) is not None:
        own: PretrainedConfig = load_part(model, AutoConfig, "configuration")
        return own
    if published is None:
        raise BadValue(
            f"nothing is known of model {model!r}: it is not on this machine, and no "
            "file under data/shapes describes it. Download it, or give a folder"
        )
    model_type, values = published
    logging.set_verbosity_error()  # about tokens, which nobody counts here
    return AutoConfig.for_model(model_type, **values)


def _places(
    network: PreTrainedModel, gpus: list[str], gpu_memory: Mapping[int, int]
) -> Callable[[str], str]:
    """The place of each module and parameter, by its name.

    What does not fit on ``gpus`` is NOWHERE.
    """
    largest = max(gpu_memory.values())
    memory: dict[int | str, int | str] = {}
    for gpu in gpus:
        number = int(gpu.removeprefix("cuda:"))
        memory[number] = gpu_memory.get(number, largest)

    whole_modules = set(network._no_split_modules or ())
    with _without_warnings():
        balanced = get_balanced_memory(
            network, memory, no_split_module_classes=whole_modules
        )
        device_map = infer_auto_device_map(
            network, balanced, no_split_module_classes=whole_modules
        )

    def place_of(name: str) -> str:
        for owner, device in device_map.items():
            is_within = owner == "" or f"{name}.".startswith(f"{owner}.")
            if is_within and isinstance(device, int):
                return f"cuda:{device}"
        return NOWHERE

    return place_of


@contextmanager
def _without_warnings() -> Iterator[None]:
    """In here accelerate does not say that the GPUs are not on this machine."""
    logger = getLogger("accelerate.utils.modeling")
    level = logger.level
    logger.setLevel(ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _layer_names(network: PreTrainedModel) -> Iterator[str]:
    """The names of the decoder's layers."""
    layers = set(decoder_layers(network))
    for name, module in network.named_modules():
        if module in layers:
            yield name
