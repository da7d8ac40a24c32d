"""Layer-parallel drafting: a model whose passes are fuzzy while it drafts.

This module decides which passes are exact, and whose keys stay cached. What a fuzzy
pass is, is in ``fuzzy_pass``; how several ranks agree, in ``ranks``. The module knows
no tree and no method.

Source: EasySpec, section 3.2 (bonus calibration).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from speclib.core.sampling import Rows, Sampler
from speclib.models.hf import HFModel, TreeView, network, outline
from speclib.operations.model import Stopped

from .fuzzy_pass import can_share_inputs, check, fuzzy
from .ranks import ALONE, Alone, Following, Leading, Ranked, Ranks, joined, leave_head

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from speclib.models.checkpoint import Checkpoint
    from speclib.models.rank import Rank


class Layered(Ranked):
    """An HFModel that can draft with groups of its layers sharing an input.

    The groups are those of ``data.layer_groups.group_layers``. Every pass is exact
    but within ``drafting``.

    exact: how many of the cached tokens, from the first on, have exact keys and values.
    lp: how many layers share an input in fuzzy passes, at most.
    """

    def __init__(
        self, network: PreTrainedModel, vocab: int, ranks: Ranks | Alone = ALONE
    ):
        check(network)
        self.ranks = ranks
        super().__init__(network, vocab)

    def reset(self) -> None:
        """Empties the cache."""
        super().reset()
        self.exact = 0
        self.lp = 1
        self._is_drafting = False
        self._calibrates = False  # the next pass is exact, even while drafting

    def cut(self, length: int) -> None:
        """Keeps the first ``length`` tokens of the cache."""
        super().cut(length)
        self.exact = min(self.exact, length)

    @contextmanager
    def drafting(self, lp: int, calibrate: bool) -> Iterator[None]:
        """In here is one drafting operation, with up to ``lp`` layers in a group.

        Calibrated, its first pass is exact and feeds all that has no exact keys. The
        passes after it are fuzzy, and what they cached is forgotten at the end, also
        that of tokens which will be accepted.

        Not calibrated, all passes are fuzzy but one over a text of which nothing is
        cached, and what they cached stays for the next such operation.

        With ``lp`` = 1 all passes are exact. What is cached of the text ``t`` and the
        drafted tokens ``d`` (E exact, F fuzzy)::

                            at the start  first pass  later passes   at the end
            calibrated      E E t t t     E E E E E   E E E E E F F  E E E E E
            not calibrated  E E F F t     E E F F F   E E F F F F F  E E F F F F F
        """
        self.begin(lp, calibrate)
        try:
            yield
        finally:
            self.end(calibrate)

    def begin(self, lp: int, calibrate: bool) -> None:
        """Begins a drafting operation."""
        # Each rank has cached what one lp had it compute; another lp must not read it.
        if calibrate or lp != self.lp:
            self.cut(self.exact)
        self.lp = lp
        self._is_drafting = True
        self._calibrates = calibrate

    def end(self, calibrate: bool) -> None:
        """Ends a drafting operation."""
        self._is_drafting = False
        self._calibrates = False
        if calibrate:
            self.cut(self.exact)

    def rows(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """As of HFModel."""
        self._forget_fuzzy_keys()
        return super().rows(text, last, sampler)

    def tree(
        self, text: Sequence[int], parents: Sequence[int], sampler: Sampler
    ) -> Rows:
        """As of HFModel."""
        self._forget_fuzzy_keys()
        return super().tree(text, parents, sampler)

    def _forget_fuzzy_keys(self) -> None:
        """Whoever is not drafting reads exact keys alone."""
        if not self._is_drafting and len(self.prefix.fed) > self.exact:
            self.cut(self.exact)

    def _pass(
        self,
        text: Sequence[int],
        last: int,
        sampler: Sampler,
        kept: int | None = None,
        view: TreeView | None = None,
    ) -> Rows:
        if kept is None:
            kept = self.prefix.keep(text, last)
        may_be_fuzzy = self._is_drafting and not self._calibrates
        if may_be_fuzzy and kept > 0 and self.lp > 1:
            with fuzzy(self.network, self.lp, self.ranks):
                return super()._pass(text, last, sampler, kept, view)

        rows = super()._pass(text, last, sampler, kept, view)
        self.exact = len(text)
        self._calibrates = False
        return rows


class LeadingDrafter(Leading):
    """A Layered model on several ranks (see Leading)."""

    @contextmanager
    def drafting(self, lp: int, calibrate: bool) -> Iterator[None]:
        """As of Layered. After an error nothing is ended: the ranks are of no use."""
        self.everywhere("begin", lp, calibrate)
        try:
            yield
        except Stopped:
            self.everywhere("end", calibrate)
            raise
        self.everywhere("end", calibrate)


def load(
    checkpoint: Checkpoint,
    dtype: str,
    places: tuple[str, ...],
    vocab: int,
    packed: bool = True,
    rank: Rank | None = None,
) -> HFModel | Leading | Following:
    """Builds ``checkpoint`` as one rank has it.

    rank: this process among those of ``places``; None: the only one, on the first
        place.
    dtype, vocab, packed: as of ``hf.load``.

    With its ``spread`` left out, the model is on all ``places``; where its layers
    cannot share an input there, it is an HFModel. Else raises BadValue for such layers,
    before any weights are read.
    """
    if checkpoint.spec.spread == "blocks":
        built = network(checkpoint, dtype, places, packed)
        is_on_several_gpus = hasattr(built, "hf_device_map")
        model: HFModel
        if is_on_several_gpus or not can_share_inputs(built):
            model = HFModel(built, vocab)
        else:
            model = Layered(built, vocab)
        model.prepare()
        return model

    check(outline(checkpoint))
    number = rank.number if rank else 0
    own_place = places[number : number + 1]
    built = network(checkpoint, dtype, own_place, packed)
    leave_head(built, number)
    return joined(Layered(built, vocab), rank, LeadingDrafter)
