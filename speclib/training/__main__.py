"""Retrain the embedded models: `python -m speclib.training [prompts|target|draft|all]`.

Seeded; the same seeds and steps give the same run on one kind of machine, up to the order of
floating-point sums. `--target-minutes` and `--draft-minutes` end a run early, and the learning
rate falls accordingly. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
from collections.abc import Callable
from functools import cache, partial
from itertools import chain, product
from math import gcd

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from speclib.data.training_tasks import code, corpus
from speclib.errors import SpeclibError

from . import cards, distil, export, fit, measure, rows
from . import tokenizer as bpe
from .folders import MODELS

TOKENIZER_TASKS, TOKENIZER_LIBRARY = 16_000, 150_000
FIRST = "On the training text"
DRAFTS = {
    "draft-good": fit.DRAFT,
    "draft-deep": fit.DEEP,  # in this order; target-qwen is a
    "target-qwen": fit.QWEN_TARGET,
    "draft-qwen": fit.QWEN,
}  # draft of zoo/target too
TEACHER = {"draft-qwen": "target-qwen"}  # the others learn from zoo/target
TWICE = {
    "draft-good"
}  # on the target's output, too; EasySpec's would then beat the paper's drafts
WORSE = {
    "draft-good": {"draft-fair": 500, "draft-plain": 400, "draft-poor": 200}
}  # at which step
OFTEN = gcd(
    *chain(*(worse.values() for worse in WORSE.values()))
)  # steps between two savings


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m speclib.training", description=__doc__
    )
    parser.add_argument(
        "what",
        nargs="?",
        default="all",
        choices=["all", "prompts", "target", "draft", "checksums"],
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
    parser.add_argument("--target-steps", type=int, default=2800)
    parser.add_argument("--target-minutes", type=float, default=42)
    parser.add_argument(
        "--copying-steps", type=int, default=1000, help="target, second pass"
    )
    parser.add_argument("--copying-minutes", type=float, default=13)
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
    parser.add_argument(
        "--draft-steps",
        type=int,
        help="draft, on the target's output (0: leave this pass out; left out "
        f"itself: 700 for {', '.join(TWICE)})",
    )
    parser.add_argument("--draft-minutes", type=float, default=10)
    return parser.parse_args(arguments)


def plan(
    given: argparse.Namespace, steps: int, minutes: float, **more: float
) -> fit.Plan:
    return fit.Plan(
        steps=steps,
        minutes=minutes,
        seed=given.seed,
        device=given.device,
        compile=not given.no_compile,
        batch=given.batch,
        save_every=OFTEN,
        **more,
    )


def keep_in(name: str):
    return lambda step, model: fit.save(model, MODELS / name)


def make_target(given: argparse.Namespace, command: str) -> None:
    """Tokenizer and target, from nothing."""
    texts = chain(
        bpe.texts(corpus.tasks(given.seed + 11), TOKENIZER_TASKS),
        code.library(random.Random(given.seed), TOKENIZER_LIBRARY),
    )
    tokenizer = bpe.train(texts)
    tokenizer.save_pretrained(MODELS / "target")
    todo = plan(given, given.target_steps, given.target_minutes)
    stream = rows.documents(bpe.Writer(tokenizer), given.seed + 1)
    model = fit.build(fit.TARGET, given.seed)
    runs = {
        "First pass": fit.fit(
            model,
            rows.batches(stream, todo.batch, todo.length),
            todo,
            keep=keep_in("target"),
        )
    }
    again = plan(given, given.copying_steps, given.copying_minutes, rate=1e-3)
    stream = rows.documents(bpe.Writer(tokenizer), given.seed + 5, corpus.COPYING)
    runs["Second pass, more copying"] = fit.fit(
        model,
        rows.batches(stream, again.batch, again.length),
        again,
        keep=keep_in("target"),
    )
    fit.save(model, MODELS / "target")
    cards.write("target", "zoo/target", fit.TARGET, bpe.VOCABULARY, runs, command)


def keep_draft(name: str) -> Callable:
    """Saves the draft as it is so far, and each worse one at its step."""

    def keep(step: int, model: PreTrainedModel) -> None:
        for kept, wanted in {name: step, **WORSE.get(name, {})}.items():
            if wanted == step:
                fit.save(model, MODELS / kept)

    return keep


def check_reached(name: str, steps: int) -> None:
    """Raises SpeclibError if the first pass ended before a snapshot: an old one would stay."""
    worse = WORSE.get(name, {})
    if missing := [kept for kept, step in worse.items() if step > steps]:
        raise SpeclibError(
            f"the first pass ended at step {steps}, before {', '.join(missing)} "
            f"(steps {worse}): raise --text-steps or --text-minutes"
        )


def stored(name: str, device: str) -> PreTrainedModel:
    """The stored model in float32, to be asked only."""
    model = AutoModelForCausalLM.from_pretrained(MODELS / name, dtype=torch.float32)
    return model.to(device).eval().requires_grad_(False)


def make_drafts(given: argparse.Namespace, command: str) -> None:
    """The drafts, distilled one after the other from their saved target; `--only`: one of them."""
    writer = bpe.Writer(AutoTokenizer.from_pretrained(MODELS / "target"))
    said = cache(
        lambda teacher: distil.answers(
            stored(teacher, given.device), writer, given.answers, given.seed + 3
        )
    )
    for name in [given.only] if given.only else DRAFTS:
        teacher = TEACHER.get(name, "target")
        target = stored(teacher, given.device)
        made = (
            command
            if given.text_steps
            else f"{cards.run_of(name)['command']} && {command}"
        )
        names = (name, *WORSE.get(name, {})) if given.text_steps else (name,)
        for kept, file in product(
            names, ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
        ):
            (MODELS / kept).mkdir(exist_ok=True)
            shutil.copy(MODELS / "target" / file, MODELS / kept / file)
        runs = make_draft(
            given, name, writer, distil.likeness(target), partial(said, teacher)
        )
        for kept in names:
            acceptance = measure.by_task(target, stored(kept, given.device), writer)
            passes = (
                runs
                if kept == name
                else {f"Snapshot at step {WORSE[name][kept]} of: {FIRST}": runs[FIRST]}
            )
            cards.write(
                kept,
                f"zoo/{kept}",
                DRAFTS[name],
                bpe.VOCABULARY,
                passes,
                made,
                acceptance,
                teacher,
            )


def make_draft(
    given: argparse.Namespace,
    name: str,
    writer: bpe.Writer,
    loss: Callable,
    said: Callable,
) -> dict[str, dict]:
    """Train one draft: on the training text, then on what the target `said`; the worse ones are
    snapshots of the first pass. Returns both fits' summaries; raises SpeclibError if the first
    ends before them."""
    seed = given.seed + 10 * list(DRAFTS).index(name)
    if given.text_steps:
        draft = fit.build(DRAFTS[name], seed)
        first = plan(given, given.text_steps, given.text_minutes, rate=3e-3)
        stream = rows.documents(writer, seed + 2)
        runs = {
            FIRST: fit.fit(
                draft,
                rows.batches(stream, first.batch, first.length),
                first,
                loss=loss,
                keep=keep_draft(name),
            )
        }
        check_reached(name, runs[FIRST]["steps"])
    else:
        draft, runs = (
            stored(name, given.device).requires_grad_(True),
            cards.run_of(name)["runs"],
        )
    steps = 700 * (name in TWICE) if given.draft_steps is None else given.draft_steps
    if steps:
        second = plan(given, steps, given.draft_minutes, rate=1e-3)
        stream = distil.again(said(), seed + 4)
        runs["On the target's output"] = fit.fit(
            draft,
            rows.batches(stream, second.batch, second.length),
            second,
            loss=loss,
            keep=keep_in(name),
        )
    fit.save(draft, MODELS / name)
    return runs


def main(arguments: list[str] | None = None) -> None:
    given = options(arguments)
    words = sys.argv[1:] if arguments is None else arguments
    command = " ".join(["python -m speclib.training", *words])
    torch.set_num_threads(given.threads or torch.get_num_threads())
    if given.what in ("all", "prompts"):
        export.write()
    if given.what in ("all", "target"):
        make_target(given, command)
    if given.what in ("all", "draft"):
        make_drafts(given, command)
    cards.checksums()


if __name__ == "__main__":
    main()
