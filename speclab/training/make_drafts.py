"""Makes the drafts: each is distilled from its saved teacher, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from transformers import AutoTokenizer, PreTrainedModel

from speclib.atomic_files import write_atomically
from speclib.data.pairs import ModelSpec
from speclib.errors import SpeclibError
from speclib.models.checkpoint import find
from speclib.models.complete import load_network

from . import cards, distil, fit, measure_drafts
from . import tokenizer as bpe
from .folders import MODELS
from .options import SECOND_PASS_STEPS, Options
from .recipes import DRAFTS, DraftRecipe
from .token_batches import batches, documents
from .tokenizer import Document

FIRST = "On the training text"
SECOND = "On the target's output"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


def make_drafts(options: Options, command: str) -> None:
    """Trains the drafts, or with `--only` one of them, and writes their cards.

    command: what the user typed, for the cards.
    """
    tokenizer: Any = AutoTokenizer.from_pretrained(MODELS / "target")
    writer = bpe.Writer(tokenizer)

    @cache  # several drafts may have the same teacher
    def teachers_output(teacher: str) -> list[Document]:
        return distil.answers(
            stored(teacher, options.device), writer, options.answers, options.seed + 3
        )

    names = [options.only] if options.only else list(DRAFTS)
    for name in names:
        recipe = DRAFTS[name]
        # Snapshots are made in the first pass; without it they stay as they are.
        made_names = [name]
        made_by = command
        if options.text_steps:
            made_names += recipe.snapshots
        else:
            made_by = f"{cards.read(name)['command']} && {command}"
        _copy_tokenizer(made_names)

        teacher = stored(recipe.teacher, options.device)
        runs = _make_draft(options, name, writer, teacher, teachers_output)
        for made_name in made_names:
            made = stored(made_name, options.device)
            card = cards.Card(
                name=made_name,
                architecture=recipe.architecture,
                command=made_by,
                runs=_runs_of(made_name, name, recipe, runs),
                acceptance=measure_drafts.by_task(teacher, made, writer),
                teacher=recipe.teacher,
                by_place=measure_drafts.by_place(
                    teacher, made, writer, 1 + recipe.masks
                ),
            )
            cards.write(card)


def _make_draft(
    options: Options,
    name: str,
    writer: bpe.Writer,
    teacher: PreTrainedModel,
    teachers_output: Callable[[str], list[Document]],
) -> dict[str, fit.Summary]:
    """Trains one draft: on the training text, then on what its teacher wrote.

    Its worse snapshots are saved in the first pass. Returns both fits' summaries.
    Raises SpeclibError if the first pass ends before a snapshot.
    """
    recipe = DRAFTS[name]
    seed = options.seed + 10 * list(DRAFTS).index(name)
    loss = distil.likeness(teacher)
    if recipe.masks:
        loss = distil.likeness_at_once(teacher, recipe.masks, measure_drafts.PAD)

    if options.text_steps:
        draft = fit.build(recipe.architecture, seed)
        plan = options.plan(options.text_steps, options.text_minutes, rate=3e-3)
        stream = batches(documents(writer, seed + 2), plan.batch, plan.length)
        summary = fit.fit(draft, stream, plan, loss=loss, keep=saving_snapshots(name))
        check_reached(name, summary["steps"])
        runs = {FIRST: summary}
    else:
        draft = stored(name, options.device).requires_grad_(True)
        runs = cards.read(name)["runs"]

    steps = _second_pass_steps(options, recipe)
    if steps:
        plan = options.plan(steps, options.draft_minutes, rate=1e-3)
        output = distil.repeat_shuffled(teachers_output(recipe.teacher), seed + 4)
        stream = batches(output, plan.batch, plan.length)

        def save(step: int, model: PreTrainedModel) -> None:
            fit.save(model, MODELS / name)

        runs[SECOND] = fit.fit(draft, stream, plan, loss=loss, keep=save)
    fit.save(draft, MODELS / name)
    return runs


def _second_pass_steps(options: Options, recipe: DraftRecipe) -> int:
    """The steps on the teacher's output; 0: this pass is left out."""
    if options.draft_steps is not None:
        return options.draft_steps
    return SECOND_PASS_STEPS if recipe.learns_from_output else 0


def saving_snapshots(name: str) -> Callable[[int, PreTrainedModel], None]:
    """What saves the draft as it is so far, and each worse one at its step."""
    snapshots = DRAFTS[name].snapshots

    def keep(step: int, model: PreTrainedModel) -> None:
        fit.save(model, MODELS / name)
        for snapshot, snapshot_step in snapshots.items():
            if step == snapshot_step:
                fit.save(model, MODELS / snapshot)

    return keep


def check_reached(name: str, steps: int) -> None:
    """Raises SpeclibError if the first pass ended before a snapshot.

    Otherwise an old snapshot would stay, with a new card.
    """
    snapshots = DRAFTS[name].snapshots
    missing = [snapshot for snapshot, step in snapshots.items() if step > steps]
    if missing:
        raise SpeclibError(
            f"the first pass ended at step {steps}, before {', '.join(missing)} "
            f"(steps {snapshots}): raise --text-steps or --text-minutes"
        )


def stored(name: str, device: str) -> PreTrainedModel:
    """A stored model in float32, to be asked only."""
    model: Any = load_network(
        find(ModelSpec(model=str(MODELS / name))), dtype=torch.float32
    )
    frozen: PreTrainedModel = model.to(device).eval().requires_grad_(False)
    return frozen


def _copy_tokenizer(names: list[str]) -> None:
    """Gives each draft the target's tokenizer."""
    for name in names:
        for file in TOKENIZER_FILES:
            content = (MODELS / "target" / file).read_bytes()
            write_atomically(MODELS / name / file, content)


def _runs_of(
    made_name: str, name: str, recipe: DraftRecipe, runs: dict[str, fit.Summary]
) -> dict[str, fit.Summary]:
    """The fits that a card tells of: all, or of a snapshot the first."""
    if made_name == name:
        return runs
    step = recipe.snapshots[made_name]
    return {f"Snapshot at step {step} of: {FIRST}": runs[FIRST]}
