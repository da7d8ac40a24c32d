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

from .checkpoint import Checkpoint, opened
from .load_errors import NEXT_STEP

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


def load_network(checkpoint: Checkpoint, **options: Any) -> PreTrainedModel:
    """Loads the network of a checkpoint, with all its weights.

    options: of transformers' ``from_pretrained``.

    Raises BadValue, with the weights' names, where the files lack some, have some of
    another shape, or have more than the network takes. Tied weights are stored once,
    and what the architecture itself is known to leave out may be there.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

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
    mismatched = [Mismatch(*facts) for facts in sorted(report["mismatched_keys"])]
    unused = [name for name in report["unexpected_keys"] if not is_computed(name)]
    differences = Differences(report["missing_keys"], unused, mismatched)
    refuse(f"model {checkpoint.model!r}", network, differences)
    return network


def is_computed(name: str, patterns: Iterable[str] = ()) -> bool:
    """Whether what a file has under ``name`` is computed and no weight.

    patterns: further ones that the network's architecture names.
    """
    return any(re.search(pattern, name) for pattern in (*COMPUTED, *patterns))


def refuse(
    owner: str, network: object, differences: Differences, advice: str = ""
) -> None:
    """Raises BadValue if there are ``differences``.

    owner: what has the weights. network: what its configuration makes of them.
    advice: a further sentence of what to do.
    """
    counted = {
        "missing": differences.missing,
        "of another shape": [str(mismatch) for mismatch in differences.mismatched],
        "not used": differences.unused,
    }
    problems = []
    for problem, names in counted.items():
        if names:
            first = ", ".join(sorted(names)[:NAMED])
            problems.append(f"{len(names)} {problem} ({first})")
    if problems:
        raise BadValue(
            f"the weights of {owner} are not those of the "
            f"{type(network).__name__} that its configuration describes: "
            f"{'; '.join(problems)}. {NEXT_STEP}{advice}"
        )
