"""Retrain the embedded models: `python -m speclib.models.training [prompts|target|draft|all]`.

Seeded; the same seeds and steps give the same run on one kind of machine, up to the order of
floating-point sums. `--target-minutes` and `--draft-minutes` end a run early, and the learning
rate falls accordingly. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
from itertools import chain, product
from math import gcd

import torch
from transformers import AutoTokenizer, LlamaForCausalLM

from ...errors import SpeclibError
from . import cards, code, corpus, distil, export, fit, measure, rows
from . import tokenizer as bpe
from .folders import MODELS

TOKENIZER_TASKS, TOKENIZER_LIBRARY = 16_000, 150_000
ANSWERS = 3000  # prompts the target answers for the draft
FIRST = "On the training text"
SNAPSHOTS = {"draft-fair": 500, "draft-plain": 400, "draft-poor": 200}  # steps of the first pass
DRAFTS = ("draft-good", *SNAPSHOTS)


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m speclib.models.training", description=__doc__)
    parser.add_argument("what", nargs="?", default="all",
                        choices=["all", "prompts", "target", "draft", "checksums"])
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (0: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-compile", action="store_true", help="where there is no C++ compiler")
    parser.add_argument("--target-steps", type=int, default=2800)
    parser.add_argument("--target-minutes", type=float, default=42)
    parser.add_argument("--copying-steps", type=int, default=1000, help="target, second pass")
    parser.add_argument("--copying-minutes", type=float, default=13)
    parser.add_argument("--text-steps", type=int, default=700, help="draft, on the training text")
    parser.add_argument("--text-minutes", type=float, default=8)
    parser.add_argument("--draft-steps", type=int, default=700, help="draft, on target output")
    parser.add_argument("--draft-minutes", type=float, default=10)
    return parser.parse_args(arguments)


def plan(given: argparse.Namespace, steps: int, minutes: float, **more: float) -> fit.Plan:
    return fit.Plan(steps=steps, minutes=minutes, seed=given.seed, device=given.device,
                    compile=not given.no_compile, **more)


def keep_in(name: str):
    return lambda step, model: fit.save(model, MODELS / name)


def make_target(given: argparse.Namespace, command: str) -> None:
    """Tokenizer and target, from nothing."""
    texts = chain(bpe.texts(corpus.tasks(given.seed + 11), TOKENIZER_TASKS),
                  code.library(random.Random(given.seed), TOKENIZER_LIBRARY))
    tokenizer = bpe.train(texts)
    tokenizer.save_pretrained(MODELS / "target")
    todo = plan(given, given.target_steps, given.target_minutes)
    stream = rows.documents(bpe.Writer(tokenizer), given.seed + 1)
    model = fit.build(fit.TARGET, given.seed)
    runs = {"First pass": fit.fit(model, rows.batches(stream, todo.batch, todo.length), todo,
                                  keep=keep_in("target"))}
    again = plan(given, given.copying_steps, given.copying_minutes, rate=1e-3)
    stream = rows.documents(bpe.Writer(tokenizer), given.seed + 5, corpus.COPYING)
    runs["Second pass, more copying"] = fit.fit(
        model, rows.batches(stream, again.batch, again.length), again, keep=keep_in("target"))
    fit.save(model, MODELS / "target")
    cards.write("target", "zoo/target", fit.TARGET, bpe.VOCABULARY, runs, command)


def keep_drafts(step: int, model) -> None:
    """Saves the good draft as it is so far, and each worse one at its step."""
    for name in DRAFTS:
        if SNAPSHOTS.get(name, step) == step:
            fit.save(model, MODELS / name)


def check_reached(steps: int) -> None:
    """Raises SpeclibError if the first pass ended before a snapshot: an old one would stay."""
    missing = [name for name, step in SNAPSHOTS.items() if step > steps]
    if missing:
        raise SpeclibError(f"the first pass ended at step {steps}, before {', '.join(missing)} "
                           f"(steps {SNAPSHOTS}): raise --text-steps or --text-minutes")


def make_draft(given: argparse.Namespace, command: str) -> None:
    """The drafts: distilled from the saved target on the training text, then on its output; the
    worse ones are snapshots of the first pass. Raises SpeclibError if that ends before them."""
    tokenizer = AutoTokenizer.from_pretrained(MODELS / "target")
    for draft, name in product(DRAFTS, ("tokenizer.json", "tokenizer_config.json",
                                        "chat_template.jinja")):
        (MODELS / draft).mkdir(exist_ok=True)
        shutil.copy(MODELS / "target" / name, MODELS / draft / name)
    writer = bpe.Writer(tokenizer)
    target = LlamaForCausalLM.from_pretrained(MODELS / "target", dtype=torch.float32)
    target = target.to(given.device).eval().requires_grad_(False)
    draft, loss = fit.build(fit.DRAFT, given.seed), distil.likeness(target)
    first = plan(given, given.text_steps, given.text_minutes, rate=3e-3,
                 save_every=gcd(*SNAPSHOTS.values()))
    stream = rows.documents(writer, given.seed + 2)
    runs = {FIRST: fit.fit(
        draft, rows.batches(stream, first.batch, first.length), first, loss=loss,
        keep=keep_drafts)}
    check_reached(runs[FIRST]["steps"])
    said = distil.answers(target, writer, ANSWERS, given.seed + 3)
    second = plan(given, given.draft_steps, given.draft_minutes, rate=1e-3)
    stream = distil.again(said, given.seed + 4)
    runs["On the target's output"] = fit.fit(
        draft, rows.batches(stream, second.batch, second.length), second, loss=loss,
        keep=keep_in("draft-good"))
    fit.save(draft, MODELS / "draft-good")
    for name in DRAFTS:
        stored = LlamaForCausalLM.from_pretrained(MODELS / name, dtype=torch.float32)
        acceptance = measure.by_task(target.cpu(), stored.eval(), writer)
        passes = {f"Snapshot at step {SNAPSHOTS[name]} of: {FIRST}": runs[FIRST]} \
            if name in SNAPSHOTS else runs
        cards.write(name, f"zoo/{name}", fit.DRAFT, bpe.VOCABULARY, passes, command, acceptance)


def main(arguments: list[str] | None = None) -> None:
    given = options(arguments)
    words = sys.argv[1:] if arguments is None else arguments
    command = " ".join(["python -m speclib.models.training", *words])
    torch.set_num_threads(given.threads or torch.get_num_threads())
    if given.what in ("all", "prompts"):
        export.write()
    if given.what in ("all", "target"):
        make_target(given, command)
    if given.what in ("all", "draft"):
        make_draft(given, command)
    cards.checksums()


if __name__ == "__main__":
    main()
