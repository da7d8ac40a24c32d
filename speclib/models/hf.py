"""Transformers models whose KV cache keeps the common prefix of successive texts.

``rows`` keeps the cached tokens that a text begins with, cuts the others, and feeds
only what is missing: after a rejection, one or two tokens. So no method has to roll
back a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, Cache, PreTrainedModel

from speclib.core.candidate_tree import ancestry, depths, stem
from speclib.core.certain_rows import CertainRows
from speclib.core.kv_prefix import Prefix
from speclib.core.sampling import Row, Rows, Sampler
from speclib.errors import SpeclibError
from speclib.operations.model import Model, Stopped, shaped

from . import gpus
from .checkpoint import Checkpoint
from .configuration import attention_windows, longest_text, real_rows, refusal
from .dilate import dilate
from .kv_cache import WindowLayer, empty_cache, first_within_reach
from .loading import Loading
from .packed_linear import pack
from .vocabulary import known_tokens
from .weights import load_network

NO_TOKEN = -1  # marks a row with NaN, which has no likeliest token
FIRST_TOKEN = 0  # every vocabulary has it
FED_TO_WARM_UP = (16, 1, 5)  # tokens: a prompt, plain decoding, and drafts

# The arguments of every pass, by transformers' names: what its tokens see, the KV
# cache, their positions, and how many rows to return.
PASS_ARGUMENTS = ("attention_mask", "past_key_values", "position_ids", "logits_to_keep")


class TreeView(NamedTuple):
    """The attention masks of a pass, and its tokens' positions, for transformers.

    masks: kind of attention -> mask [1, 1, fed tokens, all tokens], 0 where the row's
        token sees the column's, else the most negative number. With a window, columns
        that no row can reach are left out.
    position_ids: [1, fed tokens], each token's position in its own path.
    first_position: the lowest of these positions.
    parents: the parents of the nodes, if a tree ends the pass; else None.
    """

    masks: dict[str, torch.Tensor]
    position_ids: torch.Tensor
    first_position: int
    parents: Sequence[int] | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The network's arguments, by transformers' names.

        Masks are passed by kind only if there are several kinds.
        """
        mask: Any = self.masks
        if len(self.masks) == 1:
            (mask,) = self.masks.values()
        return {"attention_mask": mask, "position_ids": self.position_ids}


class HFModel(Model):
    """A causal language model from transformers, with its KV cache.

    network: the transformers model.
    vocab: the length of its distributions: the size of the target's vocabulary.
        Further logits are cut off before the softmax. If the network has fewer, only
        the first ``own_rows`` tokens have a probability above 0.
    stand_in: the token that a draft is fed in place of any token that it has no row
        for; None if it has a row for every token. See ``vocabulary.stand_in``.
    copies_tokens_only: whether greedy passes copy only tokens from the device.
    warms_up: whether ``prepare`` runs forward passes; true on a GPU.

    Each layer first calls ``stopped()``; if it returns true, the pass raises Stopped.
    Each pass calls ``when_launched()`` after launching all its kernels, and before
    reading its results.
    """

    stand_in: int | None = None

    def __init__(self, network: PreTrainedModel, vocab: int):
        self.network = network.eval()
        self.vocab = vocab
        self.copies_tokens_only = network.device.type != "cpu"
        self.warms_up = network.device.type == "cuda"
        if network.device.type == "cuda":
            gpus.disable_cudnn_attention()
        self.config = network.config.get_text_config(decoder=True)
        self.own_rows = min(vocab, real_rows(self.config))
        self.context = longest_text(self.config)
        self.windows = attention_windows(self.config)
        self.when_launched: Callable[[], object] = bool  # bool() does nothing
        for layer in decoder_layers(network):
            layer.register_forward_pre_hook(self._stop_if_asked)
        network.get_decoder().register_forward_hook(self._keep_hidden)
        self.reset()

    def _stop_if_asked(self, *_: object) -> None:
        if self.stopped():
            raise Stopped

    def _keep_hidden(self, module: Any, args: Any, output: Any) -> None:
        """Keeps the LM head's input in the current pass."""
        self.hidden: torch.Tensor = output[0]

    def reset(self) -> None:
        """Empties the cache."""
        self.prefix = Prefix()
        self.cache: Cache = empty_cache(self.config)

    def prepare(self) -> None:
        """Warms up a GPU with a few forward passes, so that no request pays for it.

        CUDA loads a kernel on its first call, and torch allocates cuBLAS's workspace at
        the first product. The choice of kernels depends on how many tokens a pass
        feeds, so there is one pass of each kind. The cache is empty afterwards.
        """
        if not self.warms_up:
            return
        text: list[int] = []
        for fed in FED_TO_WARM_UP:
            if len(text) + fed > self.context:
                break
            text += [FIRST_TOKEN] * fed
            self.rows(text, fed - 1, Sampler())
        self.reset()
        self.wait_for_device()

    def cut(self, length: int) -> None:
        """Keeps the first ``length`` tokens of the cache, in every layer.

        After a stopped pass, layers may differ in length.
        """
        layers: list[Any] = self.cache.layers
        for layer in layers:
            surplus = layer.get_seq_length() - length
            if surplus > 0:
                layer.crop(-surplus)  # negative: the number of tokens to remove
        self.prefix.cut(length)

    def wait_for_device(self) -> None:
        """Returns when the device has finished all launched work."""
        if self.network.device.type == "cuda":
            torch.cuda.synchronize(self.network.device)

    def rows(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """Distributions [last + 1, vocab] (float32) after text[:-last] ... text."""
        return self._pass(text, last, sampler)

    def tree(
        self, text: Sequence[int], parents: Sequence[int], sampler: Sampler
    ) -> Rows:
        """Scores a tree in one pass: rows [len(parents) + 1, vocab].

        text: the text, then the tokens of the tree's nodes.
        parents: for each node, the number of the node that it follows; -1: the text.

        A node attends to the text and to the nodes on its path. The cache keeps the
        text and the tree's stem.
        """
        nodes = len(parents)
        kept = self.prefix.keep(text, nodes)
        rows = self._pass(
            text, nodes, sampler, kept, self._tree_view(text, parents, kept)
        )
        self.cut(len(text) - nodes + stem(parents))
        return rows

    def level(
        self, text: Sequence[int], parents: Sequence[int], new: int, sampler: Sampler
    ) -> Rows:
        """Computes the rows [new, vocab] after the last ``new`` nodes of a draft tree.

        The pass feeds only those nodes: earlier passes have fed the text and the other
        nodes. With a greedy sampler, the rows have temperature 1. ``prefix`` keeps the
        text and the tree's stem; the other nodes stay in the cache after them, for the
        next level.
        """
        if sampler.greedy:
            sampler = replace(sampler, temperature=1.0)
        kept = len(text) - new
        rows = self._pass(
            text, new - 1, sampler, kept, self._tree_view(text, parents, kept)
        )
        self.prefix.hold(text, len(text) - len(parents) + stem(parents))
        return rows

    def _tree_view(
        self, text: Sequence[int], parents: Sequence[int], kept: int
    ) -> TreeView:
        """The masks and positions of the tokens after the first ``kept``.

        For the text t0 t1, nodes a b c with parents (-1, 0, -1), and nothing kept; on
        the right, the same for layers with a window of two tokens::

            t0 -- t1 -+- a -- b       t0 t1  a  b  c   position    t0 t1  a  b  c
                      |          t0    x                  0         x
                      +- c       t1    x  x               1         x  x
                                 a     x  x  x            2            x  x
                                 b     x  x  x  x         3               x  x
                                 c     x  x        x      2            x        x

        A token of the text sees itself and the tokens before it. A node sees the whole
        text and its own path, as if the rest of the tree did not exist: c does not see
        a and b, and has the position of a. A window is counted in positions, so c sees
        t1, although a and b lie between the two in the cache. With ``kept`` = 3 the
        rows of t0, t1 and a are left out.
        """
        start = len(text) - len(parents)  # the first node
        positions = np.arange(len(text))
        positions[start:] = start + np.array(depths(parents), int)

        # A causal mask first; then nodes see only their paths in the tree.
        sees = np.tri(len(text) - kept, len(text), kept, dtype=bool)
        first_node_row = max(0, start - kept)
        first_node_fed = max(0, kept - start)
        sees[first_node_row:, start:] = ancestry(parents)[first_node_fed:]

        masks = {}
        for kind, window in self.windows.items():
            masks[kind] = self._mask(within_window(sees, positions, window))
        fed_positions = torch.tensor(positions[None, kept:])
        return TreeView(
            masks=masks,
            position_ids=fed_positions.to(self.network.device),
            first_position=int(positions[kept:].min()),
            parents=parents,
        )

    def _mask(self, sees: np.ndarray) -> torch.Tensor:
        """Converts ``sees`` [fed tokens, all tokens] to a mask for transformers."""
        mask = torch.zeros(1, 1, *sees.shape, dtype=self.network.dtype)
        mask.masked_fill_(torch.tensor(~sees), torch.finfo(mask.dtype).min)
        return mask.to(self.network.device)

    @torch.inference_mode()
    def _pass(
        self,
        text: Sequence[int],
        last: int,
        sampler: Sampler,
        kept: int | None = None,
        view: TreeView | None = None,
    ) -> Rows:
        """Feeds the tokens of ``text`` that are not cached.

        kept: how many cached tokens to reuse; None: all that the text begins with.
        view: what the tokens attend to; None: everything before them.

        Returns the last rows, [last + 1, vocab].
        """
        if kept is None:
            kept = self.prefix.keep(text, last)
        try:
            self.cut(kept)
            self._feed_from(kept if view is None else view.first_position)
            logits = self._forward(text[kept:], last + 1, view)
            self.when_launched()
        except Stopped:
            self.cut(kept)
            raise
        except BaseException:
            self.reset()  # layers may differ in length now
            raise
        self.prefix.move(text, kept)

        self._logits = logits
        if sampler.greedy and self.copies_tokens_only and not sampler.penalties:
            tokens_alone: Any = CertainRows(likeliest(logits), self.vocab)
            rows: Rows = tokens_alone  # usable like an array
            return rows
        row_logits = self.logits
        check_numbers(row_logits.max(-1))
        parents = None if view is None else view.parents
        return shaped(row_logits, sampler, text, parents)

    @property
    def logits(self) -> Rows:
        """The logits [rows, vocab] of the last pass, in float32 or float64.

        Copied from the device on each access.
        """
        return as_rows(self._logits)

    def _feed_from(self, position: int) -> None:
        """Tells layers with a window the position of the first token to be fed."""
        for layer in self.cache.layers:
            if isinstance(layer, WindowLayer):
                layer.first_position = position

    def _forward(
        self, tokens: Sequence[int], wanted: int, view: TreeView | None
    ) -> torch.Tensor:
        """Feeds ``tokens`` after the cache; returns the last logits [wanted, vocab]."""
        ids = torch.tensor([self.fed(tokens)], device=self.network.device)
        return self.of_pair(self._compute(wanted, view, input_ids=ids))

    def _compute(
        self, wanted: int, view: TreeView | None, **inputs: torch.Tensor
    ) -> torch.Tensor:
        """Computes the network's logits [wanted, its rows] for the last inputs."""
        options = {} if view is None else view.options
        output = self.network(
            **inputs,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=wanted,
            **options,
        )
        logits: torch.Tensor = output.logits[0]
        return logits

    def fed(self, tokens: Sequence[int]) -> list[int]:
        """``tokens`` as the network receives them."""
        if self.stand_in is None:
            return list(tokens)
        return known_tokens(tokens, self.own_rows, self.stand_in)

    def of_pair(self, logits: torch.Tensor) -> torch.Tensor:
        """Extends or cuts the network's ``logits`` [n, its rows] to [n, vocab].

        A token that it has no row for has probability 0 with any sampler.
        """
        own_logits = logits[:, : self.own_rows]
        missing_rows = self.vocab - self.own_rows
        if not missing_rows:
            return own_logits
        return torch.nn.functional.pad(
            own_logits, (0, missing_rows), value=float("-inf")
        )

    def chances(self) -> Row:
        """The probabilities [vocab] after the last text, at temperature 1."""
        chances: Row = Sampler(1.0)(as_rows(self._logits[-1:]))[0]
        return chances

    def features_fed(self) -> np.ndarray:
        """The LM head's input [fed, width] for the tokens that the last pass fed."""
        features: np.ndarray = self.hidden[0].float().cpu().numpy()
        return features


def within_window(
    sees: np.ndarray, positions: np.ndarray, window: int | None
) -> np.ndarray:
    """Limits ``sees`` to tokens less than ``window`` positions back; None: no limit.

    sees: [fed tokens, all tokens], whether the row's token sees the column's.
    positions: [all tokens], each token's position in its own path.

    Returns [fed tokens, shown tokens], without those that a ``WindowLayer`` leaves out.
    """
    if window is None:
        return sees
    own_positions = positions[len(positions) - len(sees) :]
    distances = own_positions[:, None] - positions[None, :]
    shown_from = first_within_reach(int(own_positions.min()), window)
    sees_within: np.ndarray = sees & (distances < window)
    return sees_within[:, shown_from:]


def as_rows(logits: torch.Tensor) -> Rows:
    """Copies ``logits`` to the CPU, in float32 or float64."""
    if logits.dtype != torch.float64:
        logits = logits.float()
    if logits.is_cuda:  # copies into pinned memory are faster
        pinned = torch.empty(logits.shape, dtype=logits.dtype, pin_memory=True)
        logits = pinned.copy_(logits)
    rows: Rows = logits.cpu().numpy()
    return rows


def likeliest(logits: torch.Tensor) -> list[int]:
    """The likeliest token in each row of ``logits`` [rows, vocab]; in a tie, the first.

    Only the tokens leave the device, in one copy. Raises SpeclibError as
    ``check_numbers`` does.
    """
    largest, tokens = logits.max(-1)
    found: list[int] = tokens.masked_fill(~largest.isfinite(), NO_TOKEN).tolist()
    if NO_TOKEN in found:
        check_numbers(largest.float().cpu().numpy())
    return found


def check_numbers(largest: Row) -> None:
    """Raises SpeclibError unless the ``largest`` logit of every row is finite."""
    if not np.isfinite(largest).all():
        what = "NaN" if np.isnan(largest).any() else "infinity"
        raise SpeclibError(
            f"the model's logits contain {what}: its weights are damaged, or too large "
            "for its dtype; try dtype='float32'"
        )


def decoder_layers(network: PreTrainedModel) -> Any:
    """The decoder's layers, whatever the architecture calls them; may be empty.

    The network's own ModuleList: assigning to an entry replaces a layer. In a
    multimodal network, only the part that writes text is searched.
    """
    count = network.config.get_text_config(decoder=True).num_hidden_layers
    for module in network.get_decoder().modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == count:
            return module
    return torch.nn.ModuleList()


def load(loading: Loading) -> HFModel:
    """Builds a model; raises the same errors as ``network``."""
    model = HFModel(network(loading), loading.vocab)
    model.prepare()
    return model


def network(loading: Loading) -> PreTrainedModel:
    """Builds a network on one place, or spreads its layers over several GPUs.

    A dilated network uses only the first GPU.

    Raises SpeclibError for an unknown dtype, and for a checkpoint that cannot be loaded
    or dilated, that no method can run, or whose weights do not match (see ``weights``).
    """
    checkpoint, dtype = loading.checkpoint, loading.torch_dtype
    _check_passes(checkpoint)
    dilation = checkpoint.spec.dilation
    if dilation is not None:
        small = load_network(checkpoint, dtype=dtype)
        built = dilate(small, **dilation._asdict(), dtype=dtype, device=loading.device)
    elif len(loading.gpus) > 1:
        memory = _memory_of(loading.gpus)
        built = load_network(
            checkpoint, dtype=dtype, device_map="balanced", max_memory=memory
        )
    elif loading.gpus and find_spec("accelerate"):  # no copy in the CPU's memory
        built = load_network(checkpoint, dtype=dtype, device_map={"": loading.gpus[0]})
    else:
        loaded: Any = load_network(checkpoint, dtype=dtype)
        built = loaded.to(loading.device)
    return pack(built) if loading.packed else built


def _check_passes(checkpoint: Checkpoint) -> None:
    """Raises BadValue if the network's forward method lacks an argument we need."""
    config = checkpoint.config
    architecture: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    known = signature(architecture.forward).parameters
    unknown = [name for name in PASS_ARGUMENTS if name not in known]
    if unknown:
        raise refusal(
            checkpoint.model, config, f"its forward method lacks {', '.join(unknown)}"
        )


def named(network: PreTrainedModel) -> str:
    """The network's architecture, and the name of its model if known."""
    family = type(network).__name__
    model = network.name_or_path
    return f"model {model!r} ({family})" if model else f"this {family}"


def _memory_of(own_gpus: list[str]) -> dict[int, int]:
    """accelerate's memory map: the free bytes of ``own_gpus``, and 0 for all others."""
    chosen = {int(gpu.removeprefix("cuda:")) for gpu in own_gpus}
    memory = dict.fromkeys(range(torch.cuda.device_count()), 0)
    for number in chosen & memory.keys():
        free, _total = torch.cuda.mem_get_info(number)
        memory[number] = free
    return memory
