"""How long a pass takes with our KV cache and with transformers' own."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import torch
from transformers import Cache, DynamicCache, LlamaConfig, LlamaForCausalLM

from speclib.models.kv_cache import empty_cache

WARM_UP = 3  # passes before those that count

# A shape as of models with 1 billion parameters, with half of their layers.
LAYERS, WIDTH, HEADS, KV_HEADS = 8, 2_048, 32, 8
SHAPE = LlamaConfig(
    vocab_size=1_000,
    hidden_size=WIDTH,
    intermediate_size=4 * WIDTH,
    num_hidden_layers=LAYERS,
    num_attention_heads=HEADS,
    num_key_value_heads=KV_HEADS,
    max_position_embeddings=32_768,
)


class PassSeconds(NamedTuple):
    """Seconds of one pass with each of the two caches."""

    ours: float
    theirs: float


class TwoCaches:
    """A network of random weights, to be run with either cache."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self._network = LlamaForCausalLM(SHAPE).eval()

    def seconds(self, length: int, fed: int, passes: int) -> list[PassSeconds]:
        """Seconds of passes that feed ``fed`` tokens behind ``length`` cached ones.

        Which of the two comes first alternates. After each pass its tokens are taken
        back, as after a rejection.
        """
        ours = _filled(empty_cache(SHAPE), length)
        theirs = _filled(DynamicCache(), length)
        measured = []
        for number in range(WARM_UP + passes):
            if number % 2:
                own_seconds = self._seconds_of_pass(ours, fed)
                their_seconds = self._seconds_of_pass(theirs, fed)
            else:
                their_seconds = self._seconds_of_pass(theirs, fed)
                own_seconds = self._seconds_of_pass(ours, fed)
            measured.append(PassSeconds(own_seconds, their_seconds))
        return measured[WARM_UP:]

    @torch.inference_mode()
    def _seconds_of_pass(self, cache: Cache, fed: int) -> float:
        """One pass, whose tokens are then taken back."""
        tokens = torch.arange(fed)[None]
        start = time.perf_counter()
        self._network(input_ids=tokens, past_key_values=cache, use_cache=True)
        seconds = time.perf_counter() - start
        layers: list[Any] = cache.layers
        for layer in layers:
            layer.crop(-fed)
        return seconds


@torch.inference_mode()
def _filled(cache: Cache, length: int) -> Cache:
    """``cache`` with ``length`` tokens that nobody said."""
    shape = (1, KV_HEADS, length, WIDTH // HEADS)
    for layer in range(LAYERS):
        cache.update(torch.randn(shape), torch.randn(shape), layer)
    return cache
