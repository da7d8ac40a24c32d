"""Which models we train, how, and for how long."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field

from .fit import Plan, ZooArchitecture

TARGET = ZooArchitecture(layers=6, width=256, heads=4, ffn=688)
DRAFT = ZooArchitecture(layers=3, width=192, heads=3, ffn=512)
# Deep enough for groups of 2 to 5 layers that share an input.
DEEP = ZooArchitecture(layers=10, width=128, heads=2, ffn=352)
# Small, because it writes all tokens of a window in one pass.
ONCE = ZooArchitecture(layers=3, width=128, heads=2, ffn=256)
QWEN_TARGET = ZooArchitecture(layers=6, width=128, heads=2, ffn=352, family="qwen2")
QWEN = ZooArchitecture(layers=10, width=96, heads=2, ffn=176, family="qwen2")


@dataclass(frozen=True)
class DraftRecipe:
    """How one draft is trained.

    teacher: the checkpoint that the draft learns to agree with.
    learns_from_output: whether it has a second pass, on its teacher's output. The
        drafts for EasySpec do not: a second pass would make them better than the
        paper's.
    snapshots: worse drafts, each with the step of the first pass at which it is saved.
    masks: the largest number of masks in one pass (see
        ``speclib.operations.propose``). 0: the draft writes one token after another.
    """

    architecture: ZooArchitecture
    teacher: str = "target"
    learns_from_output: bool = False
    snapshots: dict[str, int] = field(default_factory=dict)
    masks: int = 0


# In training order: target-qwen, the teacher of draft-qwen, is itself a draft of
# zoo/target. A draft's index in this order is part of its seed.
DRAFTS = {
    "draft-good": DraftRecipe(
        DRAFT,
        learns_from_output=True,
        snapshots={"draft-fair": 500, "draft-poor": 200},
    ),
    "draft-deep": DraftRecipe(DEEP),
    "target-qwen": DraftRecipe(QWEN_TARGET),
    "draft-qwen": DraftRecipe(QWEN, teacher="target-qwen"),
    "draft-once": DraftRecipe(ONCE, learns_from_output=True, masks=7),
}
SECOND_PASS_STEPS = 700  # for drafts that learn from their teacher's output
WHAT = ("all", "target", "draft", "head", "checksums")


def parse_options(
    arguments: Sequence[str] | None, description: str | None = None
) -> argparse.Namespace:
    """Parses what to train, and for how long; `arguments` None: the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m speclab.training", description=description
    )
    add = parser.add_argument
    add("what", nargs="?", default="all", choices=WHAT)
    add("--device", default="cpu", help="cpu or cuda")
    add("--threads", type=int, default=0, help="CPU threads (0: all)")
    add("--seed", type=int, default=0)
    add("--batch", type=int, default=8, help="rows of 512 tokens per step")
    add("--only", choices=DRAFTS, help="train only this draft")
    add("--no-compile", action="store_true", help="needed without a C++ compiler")

    add("--target-steps", type=int, default=2800)
    add("--target-minutes", type=float, default=42)
    add("--copying-steps", type=int, default=1000, help="target, second pass")
    add("--copying-minutes", type=float, default=13)

    text_help = "draft, on the training text (0: continue from the stored draft)"
    add("--text-steps", type=int, default=700, help=text_help)
    add("--text-minutes", type=float, default=8)
    add("--answers", type=int, default=3000, help="prompts that the target answers")
    output_help = (
        "draft, on the target's output (0: skip this pass; default: "
        f"{SECOND_PASS_STEPS} for drafts that learn from it)"
    )
    add("--draft-steps", type=int, help=output_help)
    add("--draft-minutes", type=float, default=10)

    add("--head-steps", type=int, default=1500, help="the target's EAGLE head")
    add("--head-minutes", type=float, default=20)
    return parser.parse_args(arguments)


def plan_of(
    options: argparse.Namespace, steps: int, minutes: float, rate: float
) -> Plan:
    """The plan of one pass: at most ``steps`` and ``minutes``, at learning ``rate``."""
    return Plan(
        steps=steps,
        minutes=minutes,
        rate=rate,
        seed=options.seed,
        device=options.device,
        compile=not options.no_compile,
        batch=options.batch,
    )
