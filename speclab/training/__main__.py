"""Retrains the embedded models: `python -m speclab.training`, optionally followed by
`target`, `draft` or `head`.

The same seeds and steps give the same run on the same kind of machine, up to the order
of floating-point sums. `--target-minutes`, `--draft-minutes` and `--head-minutes` end a
run early, and the learning rate falls accordingly. Nothing is downloaded.
"""

from __future__ import annotations

import random
import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import cache
from itertools import chain, islice
from typing import Any

import torch
from transformers import AutoTokenizer, PreTrainedModel

from speclib.atomic_files import write_atomically
from speclib.data.pairs import ModelSpec
from speclib.models import eagle_head
from speclib.models.checkpoint import find
from speclib.models.weights import load_network

from . import cards, distil, fit, measure_drafts
from . import tokenizer as bpe
from .configuration import (
    DRAFTS,
    SECOND_PASS_STEPS,
    TARGET,
    DraftRecipe,
    parse_options,
    plan_of,
)
from .tasks import code, corpus
from .tokenizer import documents

TOKENIZER_TASKS = 16_000
TOKENIZER_LIBRARY = 150_000  # characters of the standard library's source
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
FIRST = "On the training text"
SECOND = "On the target's output"
HEAD_SEED = 70  # added to the run's seed; the drafts use smaller multiples of ten


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains what `arguments` request (None: the command line); writes checksums."""
    options = parse_options(arguments, description=__doc__)
    words = sys.argv[1:] if arguments is None else arguments
    command = " ".join(["python -m speclab.training", *words])
    torch.set_num_threads(options.threads or torch.get_num_threads())

    if options.what in ("all", "target"):
        make_target(options, command)
    if options.what in ("all", "draft"):
        for name in [options.only] if options.only else DRAFTS:
            make_draft(options, command, name)
    if options.what in ("all", "head"):
        make_head(options, command)
    cards.write_checksums()


# -- the target ------------------------------------------------------------------------
def make_target(options: Namespace, command: str) -> None:
    """Trains the tokenizer and the target, and writes both with the target's card.

    The target is trained in two passes. The second contains more tasks that copy from
    the prompt.
    """
    folder = cards.MODELS / "target"
    tasks = bpe.texts(corpus.tasks(options.seed + 11), TOKENIZER_TASKS)
    library = code.library(random.Random(options.seed), TOKENIZER_LIBRARY)
    tokenizer = bpe.train(chain(tasks, library))
    bpe.save(tokenizer, folder)
    writer = bpe.Writer(tokenizer)
    model = fit.build(TARGET, options.seed)

    plan = plan_of(options, options.target_steps, options.target_minutes, rate=1.5e-3)
    stream = documents(writer, options.seed + 1)
    first = fit.fit(model, stream, plan)
    fit.save(model, folder)

    plan = plan_of(options, options.copying_steps, options.copying_minutes, rate=1e-3)
    stream = documents(writer, options.seed + 5, corpus.COPYING)
    second = fit.fit(model, stream, plan)
    fit.save(model, folder)

    runs = {"First pass": first, "Second pass, more copying": second}
    cards.write("target", _card(TARGET, command, runs))


# -- drafts ----------------------------------------------------------------------------
def make_draft(options: Namespace, command: str, name: str) -> None:
    """Distils a draft from its stored teacher, and writes its card.

    The draft learns from the training text, then from its teacher's output. Snapshots
    of the first pass are stored as worse drafts, each with its own card.
    """
    recipe = DRAFTS[name]
    seed = options.seed + 10 * list(DRAFTS).index(name)
    teacher = stored(recipe.teacher, options.device)
    loss = distil.likeness(teacher)
    if recipe.masks:
        loss = distil.likeness_at_once(teacher, recipe.masks, bpe.PAD)

    if options.text_steps:
        stream = documents(_writer(), seed + 2)
        draft = fit.build(recipe.architecture, seed)
        plan = plan_of(options, options.text_steps, options.text_minutes, rate=3e-3)
        first = fit.fit(draft, stream, plan, loss=loss, keep=snapshot_keeper(recipe))
        runs = {FIRST: first}
        for snapshot, step in recipe.snapshots.items():
            if step <= first["steps"]:
                snapshot_runs = {f"Snapshot at step {step} of: {FIRST}": first}
                _complete(snapshot, recipe, teacher, command, snapshot_runs)
    else:
        draft = stored(name, options.device).requires_grad_(True)
        card = cards.read(name)
        runs = card["runs"]
        command = f"{card['command']} && {command}"

    steps = options.draft_steps
    if steps is None:
        steps = SECOND_PASS_STEPS if recipe.learns_from_output else 0
    if steps:
        answers = _answers(
            recipe.teacher, options.device, options.answers, options.seed
        )
        stream = distil.repeat_shuffled(answers, seed + 4)
        plan = plan_of(options, steps, options.draft_minutes, rate=1e-3)
        runs[SECOND] = fit.fit(draft, stream, plan, loss=loss)
    fit.save(draft, cards.MODELS / name)
    _complete(name, recipe, teacher, command, runs)


def snapshot_keeper(recipe: DraftRecipe) -> fit.Keep[PreTrainedModel]:
    """A callback that saves each of a recipe's snapshots at its step."""

    def keep(step: int, model: PreTrainedModel) -> None:
        for snapshot, snapshot_step in recipe.snapshots.items():
            if step == snapshot_step:
                fit.save(model, cards.MODELS / snapshot)

    return keep


@cache  # several drafts may have the same teacher
def _answers(teacher: str, device: str, count: int, seed: int) -> list[bpe.Document]:
    """A teacher's output for ``count`` training prompts."""
    tasks = islice(corpus.tasks(seed + 3), count)
    writer = _writer()
    prompts = [writer.prompt(task) for task in tasks]
    return distil.answers(stored(teacher, device), prompts, seed + 3)


def _complete(
    name: str,
    recipe: DraftRecipe,
    teacher: PreTrainedModel,
    command: str,
    runs: dict[str, fit.Summary],
) -> None:
    """Adds the target's tokenizer, and a card with its acceptance, to a draft."""
    folder = cards.MODELS / name
    for file in TOKENIZER_FILES:
        write_atomically(folder / file, (cards.MODELS / "target" / file).read_bytes())
    draft = stored(name, str(teacher.device))
    card = _card(recipe.architecture, command, runs)
    card["acceptance"] = measure_drafts.by_task(teacher, draft, _writer())
    card["teacher"] = recipe.teacher
    if recipe.masks:
        places = 1 + recipe.masks
        card["by_place"] = measure_drafts.by_place(teacher, draft, _writer(), places)
    cards.write(name, card)


def _card(
    architecture: fit.ZooArchitecture, command: str, runs: dict[str, fit.Summary]
) -> cards.Card:
    """The entries that every model's card contains."""
    return {
        "shape": architecture.shape,
        "architecture": architecture.family,
        "command": command,
        "runs": runs,
    }


def stored(name: str, device: str) -> PreTrainedModel:
    """A stored model in float32, for inference only."""
    checkpoint = find(ModelSpec(model=str(cards.MODELS / name)))
    model: Any = load_network(checkpoint, dtype=torch.float32)
    frozen: PreTrainedModel = model.to(device).eval().requires_grad_(False)
    return frozen


def _writer() -> bpe.Writer:
    """A writer with the tokenizer that all embedded models share."""
    tokenizer: Any = AutoTokenizer.from_pretrained(cards.MODELS / "target")
    return bpe.Writer(tokenizer)


# -- the EAGLE head --------------------------------------------------------------------
def make_head(options: Namespace, command: str) -> None:
    """Trains the target's head on the training text, and writes its card."""
    folder = cards.MODELS / "target"
    target = stored("target", options.device)
    seed = options.seed + HEAD_SEED
    head = eagle_head.fresh(target, seed)

    plan = plan_of(options, options.head_steps, options.head_minutes, rate=2e-3)
    stream = documents(_writer(), seed + 2)
    summary = fit.fit(head, stream, plan, loss=distil.regression(target))
    distil.save_head(head, folder)

    stored_head = eagle_head.read(target, folder)
    model = distil.FirstDrafts(target, stored_head)
    card = {
        "target": "target",
        "parameters": sum(w.numel() for w in head.parameters() if w.requires_grad),
        "command": command,
        "runs": {FIRST: summary},
        "acceptance": measure_drafts.by_task(target, model, _writer()),
    }
    cards.write("target", card, cards.HEAD)


if __name__ == "__main__":
    main()
