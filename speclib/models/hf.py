"""Transformers models with a prefix-matched KV cache.

``rows`` keeps the cached tokens a text shares with the last one, cuts the rest, and feeds only what
is missing: after a rejection that is one or two tokens, and no method ever handles it.
"""

from __future__ import annotations

import numpy as np
import torch
from transformers import AutoModelForCausalLM, DynamicCache
from transformers.utils import logging

from speclib.core.candidate_tree import ancestry, stem
from speclib.core.kv_prefix import Prefix
from speclib.core.sampling import Sampler
from speclib.errors import SpeclibError
from speclib.operations.operation import Stopped

from .packed_linear import pack
from .zoo import load_part

DTYPES = {
    "auto": torch.float32,
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


class HFModel:
    """``network``: a causal language model of transformers; ``vocab``: rows that may be sampled.

    ``stopped()`` is asked before each of its layers; where it says yes, ``rows`` raises Stopped.
    """

    def __init__(self, network, vocab: int):
        self.network, self.vocab = network.eval(), vocab
        self.context = network.config.max_position_embeddings
        self.stopped = bool  # False
        for layer in _layers(network):
            layer.register_forward_pre_hook(self._look_up)
        self.reset()

    def _look_up(self, *_) -> None:
        if self.stopped():
            raise Stopped

    def reset(self) -> None:
        self.prefix, self.cache = Prefix(), DynamicCache(config=self.network.config)

    def cut(self, length: int) -> None:
        """Keeps the first ``length`` tokens of the cache, in every layer: a stopped pass leaves
        layers of different length."""
        for layer in self.cache.layers:
            more = layer.get_seq_length() - length
            if more > 0:
                layer.crop(-more)  # negative: so many tokens are removed
        self.prefix.cut(length)

    def rows(self, text, last: int, sampler: Sampler) -> np.ndarray:
        """Distributions [last + 1, V] (float32) after text[:-last] ... text."""
        return self._pass(text, last, sampler)

    def tree(self, text, parents, sampler: Sampler) -> np.ndarray:
        """The rows [len(parents) + 1, V] of a Tree in one pass: a node attends to the text and to
        the nodes on its path. Cached stay the text and the tree's stem."""
        kept = self.prefix.keep(text, len(parents))
        rows = self._pass(
            text, len(parents), sampler, **self._sight(text, parents, kept)
        )
        self.cut(len(text) - len(parents) + stem(parents))
        return rows

    def level(self, text, parents, new: int, sampler: Sampler) -> np.ndarray:
        """The rows [new, V] after the last ``new`` nodes of a tree in one pass that feeds those
        alone: the text and the others were fed by the passes before. Greedy: at temperature 1.
        Cached stay the text and the tree's stem; the next level finds the others behind them."""
        kept = len(text) - new
        rows = self._pass(
            text,
            new - 1,
            Sampler(1.0) if sampler.greedy else sampler,
            kept=kept,
            **self._sight(text, parents, kept),
        )
        self.prefix.fed[:] = text[: len(text) - len(parents) + stem(parents)]
        return rows

    def _sight(self, text, parents, kept: int) -> dict:
        """What the tokens after the first ``kept`` attend to, and where they stand."""
        start, device = len(text) - len(parents), self.network.device
        sees = np.tri(len(text) - kept, len(text), kept, dtype=bool)
        sees[max(0, start - kept) :, start:] = ancestry(parents)[max(0, kept - start) :]
        mask = torch.zeros(1, 1, *sees.shape, dtype=self.network.dtype)
        mask.masked_fill_(torch.tensor(~sees), torch.finfo(mask.dtype).min)
        return {
            "attention_mask": mask.to(device),
            "position_ids": torch.tensor(sees.sum(1)[None] - 1, device=device),
        }

    @torch.inference_mode()
    def _pass(
        self, text, last: int, sampler: Sampler, kept: int | None = None, **how
    ) -> np.ndarray:
        kept = self.prefix.keep(text, last) if kept is None else kept
        try:
            self.cut(kept)
            fed = torch.tensor([text[kept:]], device=self.network.device)
            logits = self.network(
                input_ids=fed,
                past_key_values=self.cache,
                use_cache=True,
                logits_to_keep=last + 1,
                **how,
            ).logits[0, :, : self.vocab]
        except Stopped:
            self.cut(kept)
            raise
        except BaseException:
            self.reset()  # layers may differ in length now
            raise
        self.prefix.move(text, kept)
        exact = logits if logits.dtype == torch.float64 else logits.float()
        self.logits = self._finite(exact.cpu().numpy())
        return sampler(self.logits)

    def chances(self) -> np.ndarray:
        """The probabilities [V] of what follows the last text, at temperature 1."""
        return Sampler(1.0)(self.logits[-1:])[0]

    @staticmethod
    def _finite(logits: np.ndarray) -> np.ndarray:
        if np.isnan(logits).any():
            raise SpeclibError(
                "the model's logits contain NaN: its weights or dtype are unsound; "
                "try dtype='float32'"
            )
        return logits


def _layers(network):
    """The decoder's layers, whatever an architecture calls them."""
    count = network.config.get_text_config().num_hidden_layers
    return next(
        (
            m
            for m in network.modules()
            if isinstance(m, torch.nn.ModuleList) and len(m) == count
        ),
        (),
    )


def load(
    spec, dtype: str, devices: tuple[str, ...], vocab: int, packed: bool = True
) -> HFModel:
    """Builds ``spec`` (a ModelSpec) on ``devices``: see ``network``."""
    return HFModel(network(spec, dtype, devices, packed), vocab)


def network(spec, dtype: str, devices: tuple[str, ...], packed: bool = True):
    """The network of ``spec`` on ``devices``: one place, or several GPUs by layers.
    ``packed``: linear layers as in ``packed``, not as transformers leaves them."""
    if dtype not in DTYPES:
        raise SpeclibError(f"unknown dtype {dtype!r}; known: {', '.join(DTYPES)}")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    gpus = [d for d in devices if d.startswith("cuda")]
    if len(gpus) > 1 and spec.shape is None:
        spread = {"device_map": "balanced", "max_memory": _only(gpus)}
    else:
        spread = {}
    built = load_part(
        spec.model,
        AutoModelForCausalLM,
        "weights",
        dtype=DTYPES[dtype],
        use_safetensors=True,
        **spread,
    )
    if spec.shape is not None:
        from .dilate import dilate

        built = dilate(
            built,
            tuple(spec.shape),
            dtype=DTYPES[dtype],
            device=gpus[0] if gpus else "cpu",
        )
    elif gpus and not spread:
        built = built.to(gpus[0])
    return pack(built) if packed else built


def _only(gpus: list[str]) -> dict:
    """accelerate's memory map that leaves every other GPU alone."""
    chosen = {int(g.removeprefix("cuda:")) for g in gpus}
    return {
        i: (torch.cuda.mem_get_info(i)[0] if i in chosen else 0)
        for i in range(torch.cuda.device_count())
    }
