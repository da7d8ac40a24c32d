"""How much memory a pair takes, place by place, from its description alone.

Networks are built without weights (``weights.empty_network``) and cut as a rank of them
would be, by the very code that cuts them when they are loaded. So what is
counted here is what will be there, to the last weight. Of the KV cache it is what a
text of a stated length takes. What a pass needs besides, its activations, is not
counted, nor is the packed copy that float32 weights have on a CPU (see
``packed_linear``).

A published model needs no file for this: its sizes are under ``data/shapes``. Knows
neither this machine nor what is free on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from logging import ERROR, getLogger
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import torch
from transformers import AutoConfig
from transformers.integrations.accelerate import (
    get_balanced_memory,
    infer_auto_device_map,
)
from transformers.utils import logging

from speclib.data.shapes import published_config
from speclib.errors import BadValue

from . import checkpoint
from .dilate import dilated_config
from .dtypes import TORCH_NAMES, check_dtype
from .hf import decoder_layers
from .parallel.pipeline import Elsewhere, Pipeline
from .parallel.tensor_parallel import Tensors
from .part import NOWHERE, Part
from .weights import empty_network
from .zoo import load_part

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from speclib.core.settings import Role
    from speclib.data.pairs import ModelSpec, Pair
    from speclib.data.placement import Place


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
            for held in sizes.spread(spec.spread)(places, gpu_memory):
                result.append(Part(name, *held))
    return result


class Held(NamedTuple):
    """What a place holds: bytes of weights, and of keys and values."""

    place: str
    weights: int
    cache: int


Spreading: TypeAlias = Callable[
    [tuple[str, ...], Mapping[int, int]], Iterator[Held]
]  # of places and the memory of GPUs


class Whole(NamedTuple):
    """A network in one piece: bytes of its weights, of all but its head; its layers."""

    weights: int
    headless: int
    layers: int


class Sizes:
    """The sizes of one model, however it is spread.

    Each method takes the places that hold it and the memory of GPUs, and gives what
    each place holds.
    """

    def __init__(self, spec: ModelSpec, dtype: str, length: int):
        self.dtype: torch.dtype = getattr(torch, TORCH_NAMES[dtype])
        self.config = config_of(spec)
        self.is_dilated = spec.dilation is not None
        self.length = length

    def network(self) -> PreTrainedModel:
        """The network without weights, to be cut by whoever asks."""
        return empty_network(self.config, self.dtype)

    def spread(self, how: str) -> Spreading:
        """What each place holds of a model that is spread so."""
        return {
            "blocks": self.by_blocks,
            "tensors": self.by_tensors,
            "stages": self.by_stages,
            "layers": self.by_layers,
            "replicas": self.by_replicas,
        }[how]

    @cached_property
    def whole(self) -> Whole:
        """The network in one piece."""
        network = self.network()
        layers = len(decoder_layers(network))
        weights = bytes_of(network)
        network.set_output_embeddings(torch.nn.Identity())
        return Whole(weights, bytes_of(network), layers)

    def cache(self, layers: int, heads: int | None = None) -> int:
        """Bytes of keys and values in ``layers`` with ``heads`` each; None: all."""
        text_config = self.config.get_text_config()
        if heads is None:
            heads = text_config.num_key_value_heads
        values = 2 * layers * heads * _head_dim(text_config) * self.length
        return values * self.dtype.itemsize

    def by_blocks(
        self, places: tuple[str, ...], gpu_memory: Mapping[int, int]
    ) -> Iterator[Held]:
        """Layers one GPU after the other, in one process; or all on the first place."""
        gpus = [place for place in places if place.startswith("cuda")]
        if len(gpus) > 1 and not self.is_dilated:
            yield from self._over_gpus(gpus, gpu_memory)
            return
        place = gpus[0] if gpus else places[0]
        yield Held(place, self.whole.weights, self.cache(self.whole.layers))

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

        layers: dict[str, int] = {}
        for name in _layer_names(network):
            layers[place_of(name)] = layers.get(place_of(name), 0) + 1
        for place, size in weights.items():
            yield Held(place, size, self.cache(layers.get(place, 0)))

    def by_tensors(
        self, places: tuple[str, ...], gpu_memory: Mapping[int, int]
    ) -> Iterator[Held]:
        """A share of every layer on each place. The first one's is the largest."""
        vocab, size = self.config.get_text_config().vocab_size, len(places)
        cut = Tensors(self.network(), vocab, 0, size).network
        heads = ceil(self.config.get_text_config().num_key_value_heads / size)
        cache = self.cache(len(decoder_layers(cut)), heads)
        for place in places:
            yield Held(place, bytes_of(cut), cache)

    def by_stages(
        self, places: tuple[str, ...], gpu_memory: Mapping[int, int]
    ) -> Iterator[Held]:
        """Some layers on each place."""
        vocab = self.config.get_text_config().vocab_size
        for number, place in enumerate(places):
            stage = Pipeline(self.network(), vocab, number, len(places)).network
            own_layers = [
                layer
                for layer in decoder_layers(stage)
                if not isinstance(layer, Elsewhere)
            ]
            yield Held(place, bytes_of(stage), self.cache(len(own_layers)))

    def by_layers(
        self, places: tuple[str, ...], gpu_memory: Mapping[int, int]
    ) -> Iterator[Held]:
        """All layers on each place; but for the first one, no head."""
        cache = self.cache(self.whole.layers)
        for number, place in enumerate(places):
            weights = self.whole.weights if number == 0 else self.whole.headless
            yield Held(place, weights, cache)

    def by_replicas(
        self, places: tuple[str, ...], gpu_memory: Mapping[int, int]
    ) -> Iterator[Held]:
        """All of it on each place."""
        for place in places:
            yield Held(place, self.whole.weights, self.cache(self.whole.layers))


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


def _head_dim(config: PretrainedConfig) -> int:
    """Channels of a key."""
    own: int | None = getattr(config, "head_dim", None)
    return own or config.hidden_size // config.num_attention_heads


def _places(
    network: PreTrainedModel, gpus: list[str], gpu_memory: Mapping[int, int]
) -> Callable[[str], str]:
    """The place of each module and parameter, by its name.

    What has no room on ``gpus`` is NOWHERE.
    """
    largest = max(gpu_memory.values())
    room: dict[int | str, int | str] = {}
    for gpu in gpus:
        number = int(gpu.removeprefix("cuda:"))
        room[number] = gpu_memory.get(number, largest)

    whole_modules = set(network._no_split_modules or ())
    with _without_warnings():
        balanced = get_balanced_memory(
            network, room, no_split_module_classes=whole_modules
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
