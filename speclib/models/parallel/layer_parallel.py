"""Layer-parallel drafting: a model whose passes are fuzzy while it drafts; how near they are.

Which passes are exact, and whose keys stay cached, is decided here; what a fuzzy pass is, in
``fuzzy``; on several ranks, who says so, in ``ranks``. Knows no tree and no method.

Source: EasySpec, section 3.2 (bonus calibration).
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import torch

from speclib.core.sampling import Sampler
from speclib.models.hf import HFModel, _layers, network
from speclib.operations.operation import Stopped

from .fuzzy_pass import able, check, fuzzy
from .ranks import ALONE, Leading, joined


class Layered(HFModel):
    """An HFModel that drafts with groups of its layers sharing an input (see ``group_layers``).

    Every pass is exact but within ``drafting``. ``exact``: how many of the cached tokens, from the
    first on, have exact keys and values.
    """

    def __init__(self, network, vocab: int, ranks=ALONE):
        check(network)
        self.ranks = ranks
        super().__init__(network, vocab)

    def reset(self) -> None:
        super().reset()
        self.exact, self.lp, self._fuzzy = 0, 1, None

    def cut(self, length: int) -> None:
        super().cut(length)
        self.exact = min(self.exact, length)

    @contextmanager
    def drafting(self, lp: int, calibrate: bool):
        """In here is one drafting operation, with up to ``lp`` layers in a group; 1: all exact.

        Calibrated, its first pass is exact and feeds all that has no exact keys; those after it are
        fuzzy, and what they cached is forgotten at the end, also of tokens that will be accepted.
        Not calibrated, all passes are fuzzy but one over a text of which nothing is cached, and
        what they cached stays, for the next such operation.
        """
        self.begin(lp, calibrate)
        try:
            yield
        finally:
            self.end(calibrate)

    def begin(self, lp: int, calibrate: bool) -> None:
        if calibrate or lp != self.lp:  # ranks have cached what one lp had them compute
            self.cut(self.exact)
        self.lp, self._fuzzy = lp, not calibrate

    def end(self, calibrate: bool) -> None:
        self._fuzzy = None
        if calibrate:
            self.cut(self.exact)

    def rows(self, text, last: int, sampler: Sampler) -> np.ndarray:
        self._settle()
        return super().rows(text, last, sampler)

    def tree(self, text, parents, sampler: Sampler) -> np.ndarray:
        self._settle()
        return super().tree(text, parents, sampler)

    def _settle(self) -> None:
        """Whoever is not drafting wants no fuzzy keys."""
        if self._fuzzy is None and len(self.prefix.fed) > self.exact:
            self.cut(self.exact)

    def _pass(
        self, text, last: int, sampler: Sampler, kept: int | None = None, **how
    ) -> np.ndarray:
        kept = self.prefix.keep(text, last) if kept is None else kept
        if self._fuzzy and kept and self.lp > 1:
            with fuzzy(self.network, self.lp, self.ranks):
                return super()._pass(text, last, sampler, kept, **how)
        rows = super()._pass(text, last, sampler, kept, **how)
        self.exact, self._fuzzy = len(text), None if self._fuzzy is None else True
        return rows


class LeadingDrafter(Leading):
    """A Layered model on several ranks (see Leading)."""

    @contextmanager
    def drafting(self, lp: int, calibrate: bool):
        self.everywhere("begin", lp, calibrate)
        try:
            yield
        except Stopped:
            self.everywhere("end", calibrate)
            raise
        self.everywhere("end", calibrate)


def load(
    spec,
    dtype: str,
    places: tuple[str, ...],
    vocab: int,
    packed: bool = True,
    rank=None,
):
    """Builds ``spec`` (a ModelSpec) as ``rank`` (a worker.Rank) of those on ``places`` has it;
    None: as the only one, on the first of them. With its ``spread`` left out: on all of them, and
    where its layers cannot share an input there, an HFModel."""
    if spec.spread == "blocks":
        built = network(spec, dtype, places, packed)
        alone = not hasattr(built, "hf_device_map")
        return (Layered if alone and able(built) else HFModel)(built, vocab)
    number = rank.number if rank else 0
    built = network(spec, dtype, places[number:][:1], packed)
    if number:
        built.set_output_embeddings(torch.nn.Identity())  # it draws no token
    return joined(Layered(built, vocab), rank, LeadingDrafter)


STATES = ("h", "q", "k", "v", "Attn output")


@torch.inference_mode()
def similarities(network, ids, lp: int) -> dict[str, list[float]]:
    """Cosine similarity of exact and fuzzy states in each layer, averaged over the positions of
    ``ids``, for each of STATES: what attention reads (before its norm), its queries, keys and
    values (per head, as projected: before a norm of their own, and the rotation, which changes no
    cosine), and its output. Both passes are over the whole text: the fuzzy one reads fuzzy keys.

    Source: EasySpec, Table 5, which says neither over which layers nor with which keys.
    """
    check(network)
    ids = torch.tensor([list(ids)], device=network.device)
    exact = _states(network, ids)
    with fuzzy(network, lp):
        stale = _states(network, ids)
    return {
        state: [
            float(torch.cosine_similarity(ours, theirs, dim=-1).mean())
            for ours, theirs in zip(exact[state], stale[state], strict=True)
        ]
        for state in STATES
    }


def _states(network, ids) -> dict[str, list[torch.Tensor]]:
    """Each of STATES, per layer, [T, heads or 1, channels], of one pass over ``ids``."""
    found, hooks = {state: [] for state in STATES}, []

    def keep(state, channels, reads):
        def see(module, args, value):
            seen = args[0] if reads else value
            found[state].append(seen[0].double().unflatten(-1, (-1, channels)))

        return see

    for layer in _layers(network):
        part, width = layer.self_attn, network.config.hidden_size
        hooks += [
            module.register_forward_hook(keep(state, channels, state == "h"))
            for state, module, channels in (
                ("h", layer.input_layernorm, width),
                ("q", part.q_proj, part.head_dim),
                ("k", part.k_proj, part.head_dim),
                ("v", part.v_proj, part.head_dim),
                ("Attn output", part.o_proj, width),
            )
        ]
    try:
        network(input_ids=ids, use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
    return found
