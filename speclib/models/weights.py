"""The weights of a network: a checkpoint's whole weights, or one rank's part of them.

``load_network`` has transformers read a checkpoint. transformers fills missing weights
with random numbers, and ignores weights that the network does not have. Loading one
folder twice could then make two different models, or a model with half of its layers.
transformers only reports this; here it is an error.

One of several ranks keeps a slice of each weight, or some of the layers. So its network
is built on "meta", where weights have a shape but no values, and cut to the rank's
part. Then it is filled: the rank's slice of each weight is copied into it::

    empty network  ->  cut to a rank's part  ->  filled, weight by weight
     (open_weights)      (tensor_parallel,        (fill)
                          pipeline)

The values come from a checkpoint's files, where only the needed slices are read, or
from dilation, which makes one weight at a time. So a process never has more in memory
than its own part and one whole weight. This module does not depend on ``ranks``.
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

# Buffers in old checkpoints, which networks now compute themselves.
COMPUTED = (r"rotary_emb\.inv_freq$", r"(^|\.)position_ids$", r"\.masked_bias$")


# -- a whole network -------------------------------------------------------------------
def load_network(checkpoint: Checkpoint, **options: Any) -> PreTrainedModel:
    """Loads the network of a checkpoint, with all its weights.

    options: for transformers' ``from_pretrained``.

    Raises BadValue, naming the weights, if some are missing, have another shape, or are
    not in the network. One of two tied weights may be missing, and the files may have
    weights that the architecture is known to ignore.
    """
    for path in checkpoint.weight_files():
        with opened(path):
            pass  # raises an error for an incomplete file
    logging.set_verbosity_error()  # its report is checked here
    logging.disable_progress_bar()
    loaded: tuple[PreTrainedModel, dict[str, Any]] = checkpoint.read(
        AutoModelForCausalLM,
        "weights",
        use_safetensors=True,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # the report then lists them
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
    """Describes a weight whose stored shape differs from the network's."""
    return f"{name!r} is {list(stored)}, not {list(wanted)}"


def refuse_differences(
    checkpoint: Checkpoint,
    network: PreTrainedModel,
    *,
    missing: Iterable[str],
    unused: Iterable[str],
    mismatched: Iterable[str],
) -> None:
    """Raises BadValue if the files' weights differ from the network's.

    missing: the network's weights that no file contains. unused: weights in the files
    that are not the network's. mismatched: descriptions of weights of another shape.
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
            f"the weights of model {checkpoint.model!r} do not match the "
            f"{type(network).__name__} that its configuration describes: "
            f"{'; '.join(problems)}. {NEXT_STEP}. If the pair spreads it, leave spread "
            "out: weights in an older layout are converted only in a whole model"
        )


def _is_computed(name: str) -> bool:
    """Whether ``name`` in a file is a computed buffer, not a weight."""
    return any(re.search(pattern, name) for pattern in COMPUTED)


# -- a part of a network ---------------------------------------------------------------
class Unfilled(NamedTuple):
    """A network whose weights have no values yet, and the source of these values.

    device: where the weights will be.
    read: yields each weight's name and the whole weight, as a tensor, or as an entry of
        a file that can be read in slices.
    """

    network: PreTrainedModel
    device: torch.device
    read: Callable[[], Iterator[tuple[str, Any]]]


class Share(NamedTuple):
    """A part of a weight: the entries ``start`` to ``stop`` of a ``dimension``.

    The weight that receives them may be longer; zeros fill the rest.
    """

    dimension: int
    start: int
    stop: int

    @property
    def region(self) -> tuple[slice, ...]:
        """The index of these entries in the whole weight."""
        before = (slice(None),) * self.dimension
        return (*before, slice(self.start, self.stop))


def empty_network(config: PretrainedConfig, dtype: torch.dtype) -> PreTrainedModel:
    """Makes a network whose weights have no values; computed buffers have theirs.

    Raises BadValue if transformers cannot make a language model from ``config``.
    """
    try:
        with _weights_on_meta():
            network: PreTrainedModel = AutoModelForCausalLM.from_config(
                config, dtype=dtype
            )
    except (ValueError, TypeError, AttributeError) as error:
        raise BadValue(
            f"transformers cannot make a language model from a {config.model_type}: "
            f"{error}"
        ) from error
    network.tie_weights()  # they were made separately
    network.requires_grad_(False)
    network.eval()
    return network


@contextmanager
def _weights_on_meta() -> Iterator[None]:
    """The context in which new modules get weights without values.

    Their buffers have values.

    Each weight is made as usual and then dropped, so at most one is in memory.
    accelerate can do this too, but not every machine has it.
    """
    register = nn.Module.register_parameter

    def register_empty(
        module: nn.Module, name: str, weight: nn.Parameter | None
    ) -> None:
        if weight is not None:
            weight = nn.Parameter(weight.to("meta"), weight.requires_grad)
            # transformers then skips drawing initial values.
            weight._is_hf_initialized = True  # type: ignore[attr-defined]
        register(module, name, weight)

    nn.Module.register_parameter = register_empty  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        nn.Module.register_parameter = register  # type: ignore[method-assign]


def open_weights(loading: Loading) -> Unfilled:
    """Makes a checkpoint's empty network, and finds the source of its weights.

    Raises BadValue for a checkpoint that cannot be dilated. Missing weights are only
    detected when the files are read.
    """
    if loading.checkpoint.spec.dilation is None:
        return _open_stored(loading)
    return _open_dilated(loading)


def fill(weights: Unfilled, shares: Mapping[str, Share] | None = None) -> None:
    """Fills the parameters of a network, which may have been cut, with their values.

    shares: weight name -> the part to keep; all other weights are kept whole.
    """
    shares = shares or {}
    wanted = dict(weights.network.named_parameters(remove_duplicate=False))
    filled: dict[str, torch.Tensor] = {}
    own: dict[int, torch.Tensor] = {}  # by identity, since tied weights are one object
    for name, whole in weights.read():
        empty = wanted.get(name)
        if empty is not None:
            if id(empty) not in own:
                share = shares.get(name)
                own[id(empty)] = _own_share(empty, whole, share, weights.device)
            filled[name] = own[id(empty)]
        del whole  # otherwise its file stays open while the next one is read
    weights.network.load_state_dict(filled, strict=False, assign=True)


def _own_share(
    empty: torch.Tensor, whole: Any, share: Share | None, device: torch.device
) -> torch.Tensor:
    """Makes a tensor like ``empty`` from a ``share`` of ``whole``; None: from all."""
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
            f"the weights of model {checkpoint.model!r} are quantised, and cannot be "
            "read in slices: leave spread out, or give the checkpoint that it was made "
            "from"
        )
    network = empty_network(checkpoint.config, loading.torch_dtype)
    for module in network.modules():  # buffers, such as rotary rates, are not stored
        for name, buffer in list(module.named_buffers(recurse=False)):
            setattr(module, name, buffer.to(device))
    wholes = dict(network.named_parameters(remove_duplicate=False))  # not yet cut
    return Unfilled(network, device, partial(_read, checkpoint, network, wholes))


def _read(
    checkpoint: Checkpoint,
    network: PreTrainedModel,
    wholes: Mapping[str, torch.Tensor],
) -> Iterator[tuple[str, Any]]:
    """See Unfilled. A file stays open only while its weights are read.

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
    """Maps each weight of the network to its name in the checkpoint.

    A checkpoint contains one of two tied weights, or both with equal values. Raises
    BadValue for any other weight that is missing, has another shape, or is not in the
    network.
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
    """Raises BadValue if tied weights differ, since transformers would not tie them."""
    with opened(files[tied].path) as file, opened(files[source].path) as other:
        if torch.equal(file.get_tensor(tied), other.get_tensor(source)):
            return
    raise BadValue(
        f"the configuration of model {checkpoint.model!r} ties {tied!r} to {source!r}, "
        "but its files have different values for the two: set tie_word_embeddings = "
        "false in its config.json"
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
        """See Unfilled. Each weight overwrites the previous one."""
        largest = max(whole.numel() for whole in wholes.values())
        buffer = torch.empty(largest, dtype=dtype, device=device)
        return dilated_weights(small, config, wholes, device, buffer=buffer)

    return Unfilled(network, device, read)
