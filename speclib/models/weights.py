"""Networks that are built without weights, and then filled with a part of them.

A rank of several keeps a slice of each weight, or some layers. So a network is made on
"meta", where weights have a shape and no values. It is then cut to what the rank keeps.
At last it is filled: of each weight its own slice is copied to where it belongs::

    empty network  ->  cut to a rank's part  ->  filled, weight by weight
      (Stored or Dilated)    (tensor_parallel,     (fill)
                              pipeline)

The values come from the files of a checkpoint, of which no more is read than is wanted,
or from dilation, which makes one weight after the other. So no process ever has more in
memory than its own part and one whole weight. This module knows no ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import nn
from transformers import AutoModelForCausalLM

from speclib.errors import BadValue

from .checkpoint import Checkpoint, opened
from .complete import Differences, Mismatch, is_computed, load_network, refuse
from .dilate import (
    check_family,
    dilated_config,
    dilated_weights,
    empty_like,
    set_weight,
)
from .dtypes import TORCH_NAMES, check_dtype

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel


# Some checkpoints have their weights in an older layout, which transformers converts.
SPREAD_ADVICE = ". If transformers converts them as it loads them, leave spread out"


class Sliceable(Protocol):
    """A whole weight, of which a slice can be read: a tensor, or one in a file."""

    def __getitem__(self, index: Any) -> torch.Tensor: ...


class Weights(Protocol):
    """A network without weights, and where its weights come from."""

    network: PreTrainedModel

    def read(self) -> Iterator[tuple[str, Sliceable]]:
        """The name of every weight, and the whole of it, one after the other."""


class Share(NamedTuple):
    """A part of a weight: the entries ``start`` to ``stop`` of a ``dimension``.

    The weight that they are put into may be longer. The rest of it is zeros.
    """

    dimension: int
    start: int
    stop: int

    @property
    def region(self) -> tuple[slice, ...]:
        """What picks these entries out of the whole weight."""
        before = (slice(None),) * self.dimension
        return (*before, slice(self.start, self.stop))


def empty_network(config: PretrainedConfig, dtype: torch.dtype) -> PreTrainedModel:
    """A network whose weights have no values. What is not stored but computed is there.

    Raises BadValue for a configuration of which transformers makes no language model.
    """
    try:
        with _weights_on_meta():
            network: PreTrainedModel = AutoModelForCausalLM.from_config(
                config, dtype=dtype
            )
    except (ValueError, TypeError, AttributeError) as error:
        raise BadValue(
            f"transformers makes no language model of a {config.model_type}: {error}"
        ) from error
    network.tie_weights()  # each was made for itself
    network.requires_grad_(False)
    network.eval()
    return network


@contextmanager
def _weights_on_meta() -> Iterator[None]:
    """In here a new module's weights have a shape and no values; its buffers have them.

    Each is made as it always is and then dropped, so that there is memory for one of
    them at most. accelerate can do this, too, but not every machine has it.
    """
    register = nn.Module.register_parameter

    def register_empty(
        module: nn.Module, name: str, weight: nn.Parameter | None
    ) -> None:
        if weight is not None:
            weight = nn.Parameter(weight.to("meta"), weight.requires_grad)
            # transformers draws no first values for a weight that says so.
            weight._is_hf_initialized = True  # type: ignore[attr-defined]
        register(module, name, weight)

    nn.Module.register_parameter = register_empty  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        nn.Module.register_parameter = register  # type: ignore[method-assign]


def open_weights(checkpoint: Checkpoint, dtype: str, device: torch.device) -> Weights:
    """The empty network of ``checkpoint``, and its weights.

    dtype: one of ``dtypes``. device: where the weights will be.

    Raises BadValue for a checkpoint that cannot be loaded or dilated.
    """
    check_dtype(dtype)
    torch_dtype = getattr(torch, TORCH_NAMES[dtype])
    if checkpoint.spec.dilation is None:
        return Stored(checkpoint, torch_dtype, device)
    return Dilated(checkpoint, torch_dtype, device)


def fill(
    network: PreTrainedModel,
    weights: Weights,
    device: torch.device,
    shares: Mapping[str, Share],
) -> None:
    """Gives the parameters of ``network`` their values, on ``device``.

    network: ``weights.network``, cut to what is wanted.
    shares: which part of a weight is wanted, for those that are not wanted whole.
    """
    wanted = dict(network.named_parameters(remove_duplicate=False))
    filled: dict[int, torch.Tensor] = {}  # tied weights are one and the same
    for name, whole in weights.read():
        empty = wanted.get(name)
        if empty is not None:
            if id(empty) not in filled:
                filled[id(empty)] = _own_share(empty, whole, shares.get(name), device)
            set_weight(network, name, filled[id(empty)])
        del whole  # or its file would stay open beside the next one


def _own_share(
    empty: torch.Tensor, whole: Sliceable, share: Share | None, device: torch.device
) -> torch.Tensor:
    """A tensor like ``empty`` with its share of ``whole``; None: with all of it."""
    own = torch.zeros(empty.shape, dtype=empty.dtype, device=device)
    if share is None:
        own.copy_(whole[:])
        return own
    count = share.stop - share.start
    own.narrow(share.dimension, 0, count).copy_(whole[share.region])
    return own


class Stored:
    """The weights of a checkpoint, in its files."""

    def __init__(
        self, checkpoint: Checkpoint, dtype: torch.dtype, device: torch.device
    ):
        config, model = checkpoint.config, checkpoint.model
        if getattr(config, "quantization_config", None) is not None:
            raise BadValue(
                f"the weights of model {model!r} are quantised, and slices of such are "
                "not read: leave spread out, or give the checkpoint that it was made of"
            )
        self.files = checkpoint.stored_weights()
        self.network = empty_network(config, dtype)
        move_buffers(self.network, device)
        self.stored_names = self._find_stored_names(model)

    def _find_stored_names(self, model: str) -> dict[str, str]:
        """Each weight of the network -> the name that the checkpoint has it under.

        Of tied weights a checkpoint has one. Raises BadValue if it lacks any other, has
        one of another shape, or one that the network does not take.
        """
        twins = dict(self.network.all_tied_weights_keys)
        twins |= {source: tied for tied, source in twins.items()}
        stored_names, missing, mismatched = {}, [], []
        for name, weight in self.network.named_parameters(remove_duplicate=False):
            twin = twins.get(name, name)
            stored_name = name if name in self.files else twin
            if stored_name not in self.files:
                missing.append(name)
                continue
            stored_names[name] = stored_name
            shape = self.files[stored_name].shape
            if shape != tuple(weight.shape):
                mismatched.append(Mismatch(name, shape, tuple(weight.shape)))

        left_out = self.network._keys_to_ignore_on_load_unexpected or ()
        unused = []
        for name in self.files.keys() - set(stored_names.values()):
            if not is_computed(name, left_out):
                unused.append(name)
        differences = Differences(missing, unused, mismatched)
        refuse(f"model {model!r}", self.network, differences, advice=SPREAD_ADVICE)
        self._check_ties(model, twins)
        return stored_names

    def _check_ties(self, model: str, twins: Mapping[str, str]) -> None:
        """Raises BadValue where tied weights are stored twice, and differ.

        transformers does not tie them then.
        """
        for name, twin in twins.items():
            if name in self.files and twin in self.files:
                own, other = self._whole(name), self._whole(twin)
                if not torch.equal(own, other):
                    raise BadValue(
                        f"the configuration of model {model!r} ties {name!r} to "
                        f"{twin!r}, but its files have different values for the two: "
                        "give it tie_word_embeddings = false in its config.json"
                    )

    def _whole(self, stored_name: str) -> torch.Tensor:
        """A weight as its file has it."""
        with opened(self.files[stored_name].path) as file:
            weight: torch.Tensor = file.get_tensor(stored_name)
        return weight

    def read(self) -> Iterator[tuple[str, Sliceable]]:
        """As of Weights. A file is open no longer than one of its weights is wanted."""
        for name, stored_name in self.stored_names.items():
            with opened(self.files[stored_name].path) as file:
                yield name, file.get_slice(stored_name)


class Dilated:
    """The weights of an embedded network that is dilated, made one after the other."""

    def __init__(
        self, checkpoint: Checkpoint, dtype: torch.dtype, device: torch.device
    ):
        dilation = checkpoint.spec.dilation
        assert dilation is not None
        self.device = device
        self.small = load_network(checkpoint, dtype=dtype)
        check_family(self.small)
        self.config = dilated_config(self.small.config, **dilation._asdict())
        self.network = empty_like(self.small, self.config, dtype, device)
        self.wholes = dict(self.network.named_parameters())  # the network will be cut

    def read(self) -> Iterator[tuple[str, Sliceable]]:
        """As of Weights. Each is made where the one before was."""
        largest = max(whole.numel() for whole in self.wholes.values())
        buffer = torch.empty(largest, dtype=self.network.dtype, device=self.device)
        return dilated_weights(
            self.small, self.config, self.wholes, self.device, buffer=buffer
        )


def move_buffers(network: nn.Module, device: torch.device) -> None:
    """Moves what a network has beside its parameters, such as rotary rates."""
    for module in network.modules():
        for name, buffer in list(module.named_buffers(recurse=False)):
            if not buffer.is_meta:
                setattr(module, name, buffer.to(device))


def torch_device(place: str) -> torch.device:
    """torch's device of a place: a GPU, or the CPU for core:N and cpu."""
    return torch.device(place if place.startswith("cuda") else "cpu")
