"""The weights of a network: all that its checkpoint has, or a rank's part of them.

``load_network`` has transformers read a checkpoint. It fills what the files lack with
random numbers, and leaves out what the network does not have. Two openings of one
folder would then be two models, or a model with half of its layers. transformers says
so in a report; here that is an error.

A rank of several keeps a slice of each weight, or some layers. So its network is made
on "meta", where weights have a shape and no values. It is then cut to what the rank
keeps. At last it is filled: of each weight its own slice is copied to where it
belongs::

    empty network  ->  cut to a rank's part  ->  filled, weight by weight
     (open_weights)      (tensor_parallel,        (fill)
                          pipeline)

The values come from the files of a checkpoint, of which no more is read than is wanted,
or from dilation, which makes one weight after the other. So no process ever has more in
memory than its own part and one whole weight. This module knows no ranks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn
from transformers import AutoModelForCausalLM
from transformers.utils import logging

from speclib.errors import BadValue

from .checkpoint import NEXT_STEP, Checkpoint, StoredWeight, opened
from .dilate import check_family, dilated_config, dilated_weights, empty_like
from .loading import Loading

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

NAMED = 3  # weights of each kind that an error names

# What old checkpoints have beside their weights; networks compute it anew.
COMPUTED = (r"rotary_emb\.inv_freq$", r"(^|\.)position_ids$", r"\.masked_bias$")


# -- a whole network -------------------------------------------------------------------
def load_network(checkpoint: Checkpoint, **options: Any) -> PreTrainedModel:
    """Loads the network of a checkpoint, with all its weights.

    options: of transformers' ``from_pretrained``.

    Raises BadValue, with the weights' names, where the files lack some, have some of
    another shape, or have more than the network takes. Tied weights are stored once,
    and what the architecture itself is known to leave out may be there.
    """
    for path in checkpoint.weight_files():
        with opened(path):
            pass  # it is whole
    logging.set_verbosity_error()  # its report is read here
    logging.disable_progress_bar()
    loaded: tuple[PreTrainedModel, dict[str, Any]] = checkpoint.read(
        AutoModelForCausalLM,
        "weights",
        use_safetensors=True,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # they are in the report then
        **options,
    )
    network, report = loaded
    refuse_differences(
        checkpoint,
        network,
        missing=report["missing_keys"],
        unused=report["unexpected_keys"],
        mismatched=[mismatch(*facts) for facts in report["mismatched_keys"]],
    )
    return network


def mismatch(name: str, stored: Iterable[int], wanted: Iterable[int]) -> str:
    """How the stored shape of a weight differs from the network's, in words."""
    return f"{name!r} is {list(stored)}, not {list(wanted)}"


def refuse_differences(
    checkpoint: Checkpoint,
    network: PreTrainedModel,
    *,
    missing: Iterable[str],
    unused: Iterable[str],
    mismatched: Iterable[str],
) -> None:
    """Raises BadValue if the files have other weights than the network.

    missing: weights of the network that no file has. unused: weights in the files that
    the network does not have. mismatched: weights of another shape, in words.
    """
    unused = [name for name in unused if not _is_computed(name)]
    problems = []
    for problem, names in (
        ("missing", sorted(missing)),
        ("of another shape", sorted(mismatched)),
        ("not used", sorted(unused)),
    ):
        if names:
            problems.append(f"{len(names)} {problem} ({', '.join(names[:NAMED])})")
    if problems:
        raise BadValue(
            f"the weights of model {checkpoint.model!r} are not those of the "
            f"{type(network).__name__} that its configuration describes: "
            f"{'; '.join(problems)}. {NEXT_STEP}. If the pair spreads it, leave spread "
            "out: weights in an older layout are converted only in a whole model"
        )


def _is_computed(name: str) -> bool:
    """Whether what a file has under ``name`` is computed and no weight."""
    return any(re.search(pattern, name) for pattern in COMPUTED)


# -- a part of a network ---------------------------------------------------------------
class Unfilled(NamedTuple):
    """A network without the values of its weights, and where these come from.

    device: where the weights will be.
    read: gives the name of every weight, and the whole of it, one after the other. A
        whole weight is a tensor, or one in a file of which a slice can be read.
    """

    network: PreTrainedModel
    device: torch.device
    read: Callable[[], Iterator[tuple[str, Any]]]


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


def open_weights(loading: Loading) -> Unfilled:
    """The empty network of a checkpoint, and its weights.

    Raises BadValue for a checkpoint that cannot be dilated. What its files lack is
    noticed when they are read.
    """
    if loading.checkpoint.spec.dilation is None:
        return _open_stored(loading)
    return _open_dilated(loading)


def fill(weights: Unfilled, shares: Mapping[str, Share] | None = None) -> None:
    """Gives the parameters of a network, which may have been cut, their values.

    shares: which part of a weight is wanted, for those that are not wanted whole.
    """
    shares = shares or {}
    wanted = dict(weights.network.named_parameters(remove_duplicate=False))
    filled: dict[str, torch.Tensor] = {}
    own: dict[int, torch.Tensor] = {}  # tied weights are one and the same
    for name, whole in weights.read():
        empty = wanted.get(name)
        if empty is not None:
            if id(empty) not in own:
                share = shares.get(name)
                own[id(empty)] = _own_share(empty, whole, share, weights.device)
            filled[name] = own[id(empty)]
        del whole  # or its file would stay open beside the next one
    weights.network.load_state_dict(filled, strict=False, assign=True)


def _own_share(
    empty: torch.Tensor, whole: Any, share: Share | None, device: torch.device
) -> torch.Tensor:
    """A tensor like ``empty`` with its share of ``whole``; None: with all of it."""
    own = torch.zeros(empty.shape, dtype=empty.dtype, device=device)
    if share is None:
        own.copy_(whole[:])
        return own
    count = share.stop - share.start
    own.narrow(share.dimension, 0, count).copy_(whole[share.region])
    return own


# -- the weights of a checkpoint -------------------------------------------------------
def _open_stored(loading: Loading) -> Unfilled:
    checkpoint, device = loading.checkpoint, loading.device
    if getattr(checkpoint.config, "quantization_config", None) is not None:
        raise BadValue(
            f"the weights of model {checkpoint.model!r} are quantised, and slices of "
            "such are not read: leave spread out, or give the checkpoint that it was "
            "made of"
        )
    network = empty_network(checkpoint.config, loading.torch_dtype)
    for module in network.modules():  # computed and not stored, such as rotary rates
        for name, buffer in list(module.named_buffers(recurse=False)):
            setattr(module, name, buffer.to(device))
    wholes = dict(network.named_parameters(remove_duplicate=False))  # it will be cut
    return Unfilled(network, device, partial(_read, checkpoint, network, wholes))


def _read(
    checkpoint: Checkpoint,
    network: PreTrainedModel,
    wholes: Mapping[str, torch.Tensor],
) -> Iterator[tuple[str, Any]]:
    """As of Unfilled. A file is open no longer than one of its weights is wanted.

    wholes: the network's weights as they were before it was cut.
    """
    files = checkpoint.stored_weights()
    stored_names = _find_stored_names(checkpoint, network, wholes, files)
    for name, stored_name in stored_names.items():
        with opened(files[stored_name].path) as file:
            yield name, file.get_slice(stored_name)


def _find_stored_names(
    checkpoint: Checkpoint,
    network: PreTrainedModel,
    wholes: Mapping[str, torch.Tensor],
    files: Mapping[str, StoredWeight],
) -> dict[str, str]:
    """Each weight of the network -> the name that the checkpoint has it under.

    Of tied weights a checkpoint has one, or twice the same. Raises BadValue if it lacks
    any other, has one of another shape, or one that the network does not take.
    """
    twins = dict(network.all_tied_weights_keys)
    for tied, source in twins.items():
        if tied in files and source in files:
            _refuse_other_values(checkpoint, files, tied, source)
    twins |= {source: tied for tied, source in twins.items()}

    stored_names, missing, mismatched = {}, [], []
    for name, weight in wholes.items():
        stored_name = name if name in files else twins.get(name, name)
        if stored_name not in files:
            missing.append(name)
            continue
        stored_names[name] = stored_name
        shape = files[stored_name].shape
        if shape != tuple(weight.shape):
            mismatched.append(mismatch(name, shape, weight.shape))

    left_out = network._keys_to_ignore_on_load_unexpected or ()
    unused = []
    for name in files.keys() - set(stored_names.values()):
        if not any(re.search(pattern, name) for pattern in left_out):
            unused.append(name)
    refuse_differences(
        checkpoint, network, missing=missing, unused=unused, mismatched=mismatched
    )
    return stored_names


def _refuse_other_values(
    checkpoint: Checkpoint, files: Mapping[str, StoredWeight], tied: str, source: str
) -> None:
    """Raises BadValue for tied weights that differ: transformers does not tie them."""
    with opened(files[tied].path) as file, opened(files[source].path) as other:
        if torch.equal(file.get_tensor(tied), other.get_tensor(source)):
            return
    raise BadValue(
        f"the configuration of model {checkpoint.model!r} ties {tied!r} to {source!r}, "
        "but its files have different values for the two: give it tie_word_embeddings "
        "= false in its config.json"
    )


# -- the weights of a dilated network --------------------------------------------------
def _open_dilated(loading: Loading) -> Unfilled:
    dilation = loading.checkpoint.spec.dilation
    assert dilation is not None
    dtype, device = loading.torch_dtype, loading.device
    small = load_network(loading.checkpoint, dtype=dtype)
    check_family(small)
    config = dilated_config(small.config, **dilation._asdict())
    network = empty_like(small, config, dtype, device)
    wholes = dict(network.named_parameters())  # the network will be cut

    def read() -> Iterator[tuple[str, torch.Tensor]]:
        """As of Unfilled. Each is made where the one before was."""
        largest = max(whole.numel() for whole in wholes.values())
        buffer = torch.empty(largest, dtype=dtype, device=device)
        return dilated_weights(small, config, wholes, device, buffer=buffer)

    return Unfilled(network, device, read)
