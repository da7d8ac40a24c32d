"""Retrain the embedded models: `python -m speclab.training`, then nothing or one of
`prompts`, `target`, `draft`, `head`.

Seeded: the same seeds and steps give the same run on one kind of machine, up to the
order of floating-point sums. `--target-minutes`, `--draft-minutes` and `--head-minutes`
end a run early, and the learning rate falls accordingly. Nothing is downloaded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch

from . import cards, prompt_files
from .make_drafts import make_drafts
from .make_head import make_head
from .make_target import make_target
from .options import parse_options


def main(arguments: Sequence[str] | None = None) -> None:
    """Makes what `arguments` (None: the command line) ask for, then the checksums."""
    options = parse_options(arguments, description=__doc__)
    words = sys.argv[1:] if arguments is None else arguments
    command = " ".join(["python -m speclab.training", *words])
    torch.set_num_threads(options.threads or torch.get_num_threads())

    if options.what in ("all", "prompts"):
        prompt_files.write()
    if options.what in ("all", "target"):
        make_target(options, command)
    if options.what in ("all", "draft"):
        make_drafts(options, command)
    if options.what in ("all", "head"):
        make_head(options, command)
    cards.write_checksums()


if __name__ == "__main__":
    main()
