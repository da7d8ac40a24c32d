"""Networks that have all weights of their checkpoint, and none but those.

transformers fills what a checkpoint lacks with random numbers, and leaves out what the
network does not have. Two openings of one folder would then be two models, or a
model with half of its layers. transformers says so in a report of its loading; here
that is an error.

Importing this module imports neither torch nor transformers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from speclib.errors import BadValue

from . import checkpoint
from .load_errors import WHOLE_MODEL, quantisation_in
from .zoo import load_part

if TYPE_CHECKING:
    from transformers import PreTrainedModel

NAMED = 3  # weights of each kind that an error names

# What old checkpoints have beside their weights; networks compute it anew.
COMPUTED = (r"rotary_emb\.inv_freq$", r"(^|\.)position_ids$", r"\.masked_bias$")


class Mismatch(NamedTuple):
    """A weight whose shape in the files is not the network's."""

    name: str
    stored: Sequence[int]
    wanted: Sequence[int]

    def __str__(self) -> str:
        return f"{self.name!r} is {list(self.stored)}, not {list(self.wanted)}"


class Differences(NamedTuple):
    """What tells the weights of a checkpoint from those of its network.

    missing: weights of the network that no file has. unused: weights in the files that
    the network does not have.
    """

    missing: Sequence[str]
    unused: Sequence[str]
    mismatched: Sequence[Mismatch]


def load_network(model: str, **options: Any) -> PreTrainedModel:
    """Loads the network of a checkpoint, with all its weights.

    options: of transformers' ``from_pretrained``.

    Raises BadValue, with the weights' names, where the files lack some, have some of
    another shape, or have more than the network takes. Tied weights are stored once,
    and what the architecture itself is known to leave out may be there.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    checkpoint.check(model)
    logging.set_verbosity_error()  # its report is read here
    logging.disable_progress_bar()
    loaded: tuple[PreTrainedModel, dict[str, Any]] = load_part(
        model,
        AutoModelForCausalLM,
        "weights",
        use_safetensors=True,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # they are in the report then
        **options,
    )
    network, report = loaded
    mismatched = [Mismatch(*facts) for facts in sorted(report["mismatched_keys"])]
    unused = [name for name in report["unexpected_keys"] if not is_computed(name)]
    differences = Differences(report["missing_keys"], unused, mismatched)
    refuse(model, type(network).__name__, differences)
    return network


def is_computed(name: str, patterns: Iterable[str] = ()) -> bool:
    """Whether what a file has under ``name`` is computed and no weight.

    patterns: further ones that the network's architecture names.
    """
    return any(re.search(pattern, name) for pattern in (*COMPUTED, *patterns))


def refuse(model: str, family: str, differences: Differences, advice: str = "") -> None:
    """Raises BadValue if there are ``differences``.

    family: what the configuration makes of the weights, as "LlamaForCausalLM".
    advice: a further sentence of what to do.
    """
    problems = problems_of(differences, family)
    if not problems:
        return
    copy = checkpoint.copy_of(model)
    is_named = copy is not None and str(copy.folder) == model
    where = "" if copy is None or is_named else f" in {copy.folder}"
    quantisation = None if copy is None else quantisation_in(copy.folder)
    remedy = "Copy or download the checkpoint again, or mend its config.json"
    if quantisation is not None:
        remedy = f"They are quantised by {quantisation}. {WHOLE_MODEL}"
    raise BadValue(
        f"the weights of model {model!r}{where} are not those of its configuration: "
        f"{problems}. {remedy}{advice and '. '}{advice}"
    )


def problems_of(differences: Differences, family: str) -> str:
    """What is wrong with weights, as a part of a sentence; empty if nothing is."""
    missing, unused, mismatched = differences
    problems = []
    if missing:
        problems.append(
            f"they lack {len(missing)} of the weights of a {family}: {_first(missing)}"
        )
    if mismatched:
        shapes = "; ".join(str(mismatch) for mismatch in mismatched[:NAMED])
        problems.append(f"they have {len(mismatched)} in another shape: {shapes}")
    if unused:
        problems.append(
            f"they have {len(unused)} that such a {family} does not use: "
            f"{_first(unused)}"
        )
    return ", and ".join(problems)


def _first(names: Iterable[str]) -> str:
    """Some of ``names``, in the order of the layers that they are of."""

    def key(name: str) -> list[tuple[int, str]]:
        """Numbers by their size, words by the alphabet."""
        parts = name.split(".")
        return [(int(p), "") if p.isdigit() else (-1, p) for p in parts]

    ordered = sorted(names, key=key)
    listed = ", ".join(repr(name) for name in ordered[:NAMED])
    return listed + (", ..." if ordered[NAMED:] else "")
