"""An EAGLE head: one layer that continues a text from its target's features.

A *feature* is the input of the target's LM head: the hidden state after the last norm.
An EAGLE head predicts the next feature from the last feature and the next token. The
target's own LM head turns the prediction into a distribution for the next token::

    token      t1          t2          t3            embedded by the target's embedding
    feature    0           f1          f2            of the token before
                fc          fc          fc           [2 * width] -> [width]
               one decoder layer, and a norm         with its own KV cache
                |           |           |
    predicts   f1'         f2'         f3'           the LM head: what follows t3

A text's features come from the target. A node of the drafted tree is fed with the
feature that the head itself predicted for the node's parent.

This module does not depend on any tree search or method.

Source: Li et al. 2024, "EAGLE: Speculative Sampling Requires Rethinking Feature
Uncertainty", sections 3.1 and 3.2.
Differences from the paper: the first token is fed with a feature of zeros; the
published code begins with the second token. fc has no bias; the published fc has one.
The layer is a complete layer of the target's architecture with a norm after it; the
published layer lacks the norm before its attention and the norm after the layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import AutoModelForCausalLM, PretrainedConfig, PreTrainedModel

from speclib.core.features import Features
from speclib.core.sampling import Rows, Sampler
from speclib.core.text import AnyText
from speclib.errors import BadValue

from . import hf
from .checkpoint import opened
from .dilate import Architecture, dilate
from .loading import Loading
from .packed_linear import pack

FILE = "eagle.safetensors"  # in the folder of the head's target
TARGET_WEIGHTS = ("model.embed_tokens.", "lm_head.")  # these are not stored


class EagleNetwork(nn.Module):
    """The head's layers.

    They are ``fc``, and a ``network`` of one layer with the target's embedding and LM
    head.
    """

    def __init__(self, network: PreTrainedModel):
        super().__init__()
        width = Architecture.of(network.config).width
        self.network = network
        self.fc = nn.Linear(2 * width, width, bias=False)

    def own_weights(self) -> dict[str, torch.Tensor]:
        """The head's own weights by name, without the target's."""
        return {
            name: weight
            for name, weight in self.state_dict().items()
            if not name.removeprefix("network.").startswith(TARGET_WEIGHTS)
        }

    def join(self, tokens: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """Joins tokens and features to the layer's input [..., width].

        tokens: [...]; features: [..., width], of the tokens before them.
        """
        embedded = self.network.get_input_embeddings()(tokens)
        both = torch.cat((embedded, features.to(embedded.dtype)), -1)
        joined: torch.Tensor = self.fc(both)
        return joined


def fresh(target: PreTrainedModel, seed: int) -> EagleNetwork:
    """Makes an untrained head for ``target``, with its dtype, embedding and LM head.

    Its norm starts as a copy of the target's. The embedding and LM head are frozen.
    """
    torch.manual_seed(seed)
    network = AutoModelForCausalLM.from_config(one_layer(target.config))
    head = EagleNetwork(network).to(target.dtype)
    embedding = target.get_input_embeddings().weight
    with torch.no_grad():
        network.get_input_embeddings().weight.copy_(embedding)
        network.get_output_embeddings().weight.copy_(
            target.get_output_embeddings().weight
        )
        network.model.norm.weight.copy_(target.model.norm.weight)
    for name, weight in network.named_parameters():
        if name.startswith(TARGET_WEIGHTS):
            weight.requires_grad_(False)
    return head.to(target.device)


def one_layer(config: PretrainedConfig) -> PretrainedConfig:
    """``config`` with a single layer."""
    changes: dict[str, Any] = {"num_hidden_layers": 1}
    kinds = getattr(config, "layer_types", None)
    if kinds:
        changes["layer_types"] = kinds[-1:]
    return type(config).from_dict(config.to_dict() | changes)


def read(target: PreTrainedModel, folder: Path) -> EagleNetwork:
    """Reads the stored head of ``target`` from ``folder``.

    Raises BadValue if the file is missing, or its weights have other names or shapes.
    """
    path = folder / FILE
    if not path.exists():
        raise BadValue(
            f"the EAGLE head {path} is missing: only a target that has one can draft "
            "for itself. `python -m speclab.training head` trains zoo/target's"
        )
    head = fresh(target, 0)
    with opened(path) as file:
        stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    differences = _shapes(stored) ^ _shapes(head.own_weights())
    if differences:
        raise BadValue(
            f"{path} is not the EAGLE head of this target: these weights differ: "
            f"{sorted(differences)}. Restore the file, or train it again with `python "
            "-m speclab.training head`"
        )
    head.load_state_dict(stored, strict=False)
    return head.requires_grad_(False).eval()


def _shapes(weights: Mapping[str, torch.Tensor]) -> set[tuple[str, tuple[int, ...]]]:
    """The names and shapes of ``weights``."""
    return {(name, tuple(weight.shape)) for name, weight in weights.items()}


def dilated(head: EagleNetwork, shape: Sequence[int]) -> EagleNetwork:
    """Puts ``head`` in a larger ``shape`` (see ``dilate``), for a target of that width.

    It predicts the same features in the first channels, and zeros in the others.
    """
    network = dilate(head.network, shape)
    large = EagleNetwork(network).to(network.dtype)
    small_width = head.fc.out_features
    large_width = large.fc.out_features
    own = slice(small_width)
    behind = slice(large_width, large_width + small_width)
    with torch.no_grad():
        large.fc.weight.zero_()
        large.fc.weight[own, own] = head.fc.weight[:, own]
        large.fc.weight[own, behind] = head.fc.weight[:, small_width:]
    return large.requires_grad_(False).eval()


# -- drafting --------------------------------------------------------------------------
class Head(hf.HFModel):
    """An EAGLE head as a draft, with its own KV cache.

    Within ``reading`` it drafts from its target's features. Otherwise each token is fed
    with a feature of zeros, which makes a valid but poor draft.

    exact: how many of the first cached tokens were fed with the target's own features.
    """

    def __init__(self, head: EagleNetwork, vocab: int):
        self.head = head
        self._incoming: torch.Tensor | None = None  # features that the pass reads
        self._predicted = torch.empty(0)  # features after the text and each node fed
        super().__init__(head.network, vocab)

    def reset(self) -> None:
        """Empties the cache."""
        super().reset()
        self.exact = 0

    def cut(self, length: int) -> None:
        """Keeps the first ``length`` tokens of the cache."""
        super().cut(length)
        self.exact = min(self.exact, length)

    @contextmanager
    def reading(self, text: AnyText, features: Features) -> Iterator[None]:
        """The context of one drafting operation after ``text``, from ``features``.

        At the end, the cache drops drafted tokens, which were fed with predicted
        features. Raises SpeclibError for features that are missing, or have another
        width.
        """
        self.cut(self.exact)
        kept = self.prefix.keep(text)
        given = features.before(kept, len(text))
        width = self.head.fc.out_features
        if given.shape[1] != width:
            raise BadValue(
                f"the target's features have {given.shape[1]} channels, but the head "
                f"reads {width}: give both the same width in the pair's shapes"
            )
        self._incoming = self._tensor(given)
        try:
            yield
        finally:
            self._incoming = None
            self.cut(len(text))

    def _tensor(self, features: np.ndarray) -> torch.Tensor:
        return torch.tensor(
            features, dtype=self.network.dtype, device=self.network.device
        )

    def level(
        self, text: Sequence[int], parents: Sequence[int], new: int, sampler: Sampler
    ) -> Rows:
        """As in HFModel; a node is fed with the feature predicted for its parent."""
        if self._incoming is None:
            return super().level(text, parents, new, sampler)
        indices = [parent + 1 for parent in parents[len(parents) - new :]]
        self._incoming = self._predicted[indices]
        before = self._predicted
        rows = super().level(text, parents, new, sampler)
        self._predicted = torch.cat((before, self._predicted))
        return rows

    def _forward(
        self, tokens: Sequence[int], wanted: int, view: hf.TreeView | None
    ) -> torch.Tensor:
        """As in HFModel.

        Keeps the features predicted after each of the last ``wanted`` tokens.
        """
        cached = self.cache.get_seq_length()
        ids = torch.tensor([self.fed(tokens)], device=self.network.device)
        incoming = self._incoming
        if incoming is None:
            incoming = self._tensor(np.zeros((len(tokens), self.head.fc.out_features)))

        joined = self.head.join(ids, incoming[None])
        logits = self._compute(wanted, view, inputs_embeds=joined)
        self._predicted = self.hidden[0, -wanted:]
        if self._incoming is not None:
            self.exact = cached + len(tokens)
        return self.of_pair(logits)


def load(loading: Loading) -> Head:
    """Builds a checkpoint's head on one place, dilated if the pair states a shape."""
    checkpoint = loading.checkpoint
    undilated = replace(
        loading, checkpoint=checkpoint.undilated, places=(), packed=False
    )
    head = read(hf.network(undilated), checkpoint.folder)
    if checkpoint.spec.shape is not None:
        head = dilated(head, checkpoint.spec.shape)
    head.to(loading.device)
    return Head(pack(head) if loading.packed else head, loading.vocab)
