"""The options of `python -m speclab.training`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .fit import Plan
from .recipes import DRAFTS, steps_between_savings

SECOND_PASS_STEPS = 700  # of drafts that learn from their teacher's output


@dataclass(frozen=True)
class Options:
    """What is to be trained, and how long; the fields are explained by `--help`."""

    what: str
    device: str
    threads: int
    seed: int
    batch: int
    only: str | None
    no_compile: bool
    target_steps: int
    target_minutes: float
    copying_steps: int
    copying_minutes: float
    text_steps: int
    text_minutes: float
    answers: int
    draft_steps: int | None
    draft_minutes: float
    head_steps: int
    head_minutes: float

    def plan(self, steps: int, minutes: float, **changes: Any) -> Plan:
        """The plan of one pass; `changes`: other fields of it."""
        return Plan(
            steps=steps,
            minutes=minutes,
            seed=self.seed,
            device=self.device,
            compile=not self.no_compile,
            batch=self.batch,
            save_every=steps_between_savings(),
            **changes,
        )


def parse_options(arguments: Sequence[str] | None, description: str | None) -> Options:
    """Reads the options from `arguments`; None: from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m speclab.training", description=description
    )
    parser.add_argument(
        "what",
        nargs="?",
        default="all",
        choices=["all", "prompts", "target", "draft", "head", "checksums"],
    )
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (0: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--batch", type=int, default=8, help="rows of 512 tokens in a step"
    )
    parser.add_argument(
        "--only", choices=DRAFTS, help="of the drafts train this one alone"
    )
    parser.add_argument(
        "--no-compile", action="store_true", help="where there is no C++ compiler"
    )
    _add_target_options(parser)
    _add_draft_options(parser)
    _add_head_options(parser)
    return Options(**vars(parser.parse_args(arguments)))


def _add_target_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target-steps", type=int, default=2800)
    parser.add_argument("--target-minutes", type=float, default=42)
    parser.add_argument(
        "--copying-steps", type=int, default=1000, help="target, second pass"
    )
    parser.add_argument("--copying-minutes", type=float, default=13)


def _add_draft_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--text-steps",
        type=int,
        default=700,
        help="draft, on the training text (0: go on from the stored draft)",
    )
    parser.add_argument("--text-minutes", type=float, default=8)
    parser.add_argument(
        "--answers", type=int, default=3000, help="prompts the target answers"
    )
    second_pass = [name for name in DRAFTS if DRAFTS[name].learns_from_output]
    parser.add_argument(
        "--draft-steps",
        type=int,
        help="draft, on the target's output (0: leave this pass out; left out itself: "
        f"{SECOND_PASS_STEPS} for {', '.join(second_pass)})",
    )
    parser.add_argument("--draft-minutes", type=float, default=10)


def _add_head_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--head-steps", type=int, default=1500)
    parser.add_argument(
        "--head-minutes", type=float, default=20, help="the target's EAGLE head"
    )
