"""Compares the states in a fuzzy and an exact forward pass, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from transformers import PreTrainedModel

from speclib.models.hf import decoder_layers
from speclib.models.parallel.layer_parallel import check, fuzzy

STATES = ("h", "q", "k", "v", "Attn output")


@torch.inference_mode()
def compare_states(
    network: PreTrainedModel, ids: Sequence[int], lp: int
) -> dict[str, list[float]]:
    """Cosine similarity of exact and fuzzy states in each layer.

    The result contains a list for each of STATES, with one number per layer, averaged
    over the positions of ``ids``. The states are the input of attention (before its
    norm), its queries, keys and values (per head, as projected: before their own norm,
    and before the rotation, which changes no cosine), and its output. Both passes cover
    the whole text, and the fuzzy pass reads fuzzy keys.

    Source: EasySpec, Table 5, which does not state which layers and which keys it uses.
    """
    check(network)
    batch = torch.tensor([list(ids)], device=network.device)
    exact_states = _states(network, batch)
    with fuzzy(network, lp):
        fuzzy_states = _states(network, batch)

    result = {}
    for state in STATES:
        pairs = zip(exact_states[state], fuzzy_states[state], strict=True)
        cosines = [torch.cosine_similarity(*pair, dim=-1) for pair in pairs]
        result[state] = [float(cosine.mean()) for cosine in cosines]
    return result


def _states(
    network: PreTrainedModel, ids: torch.Tensor
) -> dict[str, list[torch.Tensor]]:
    """Runs a pass over ``ids``, and returns each of STATES for every layer.

    A layer's state is [T, heads or 1, channels].
    """
    states: dict[str, list[torch.Tensor]] = {state: [] for state in STATES}

    def keep(state: str, channels: int, module: Any, args: Any, output: Any) -> None:
        tensor = args[0] if state == "h" else output
        states[state].append(tensor[0].double().unflatten(-1, (-1, channels)))

    width = network.config.hidden_size
    hooks = []
    for layer in decoder_layers(network):
        attention = layer.self_attn
        watched = {
            "h": (layer.input_layernorm, width),
            "q": (attention.q_proj, attention.head_dim),
            "k": (attention.k_proj, attention.head_dim),
            "v": (attention.v_proj, attention.head_dim),
            "Attn output": (attention.o_proj, width),
        }
        for state, (module, channels) in watched.items():
            hook = partial(keep, state, channels)
            hooks.append(module.register_forward_hook(hook))
    try:
        network(input_ids=ids, use_cache=False)
    finally:
        for handle in hooks:
            handle.remove()
    return states
