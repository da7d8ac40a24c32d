"""Passes of the published models' shapes, and c of the pairs that the papers measured.

A shape is filled by dilating an embedded model, so no weights have to be there; a pass
costs what one of the published model costs. Each model is measured alone on one
device, so that a pair's two need not fit on it together.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from datetime import date
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple, TypeAlias

from speclab import machine_facts
from speclab.bench.bench_rows import BenchRow, join_notes, median_row
from speclib.atomic_files import write_atomically
from speclib.core.settings import Role
from speclib.data.latency import load_latency
from speclib.data.pairs import ModelSpec, Pair, load_pair
from speclib.errors import BadValue
from speclib.models import preflight
from speclib.models.open_pair import open_pair

from . import device_speed
from .setup import DRAFT_ROWS, FIXED_ROWS, PAIR, Setup
from .speed import DTYPE, seconds_of_passes

ROLES: tuple[Role, ...] = ("draft", "target")
LAUNCHED = "launched one by one"
RECORDED = "recorded"

# Milliseconds of a pass by the shape's name, and by how kernels are launched.
PassTimes: TypeAlias = Mapping[tuple[str, str], float]


class Shape(NamedTuple):
    """A model's shape, by the first pair that has it, in the role it has there."""

    pair: Pair
    role: Role

    @property
    def spec(self) -> ModelSpec:
        """The model, whole on one device."""
        return self.pair.model(self.role).model_copy(update={"spread": "blocks"})

    @property
    def name(self) -> str:
        """The published model's, or the shape's numbers."""
        return self.spec.like or "x".join(map(str, self.spec.shape or ()))

    @property
    def rows(self) -> int:
        """How many tokens every recorded pass is fed, most of them fillers."""
        return DRAFT_ROWS if self.role == "draft" else FIXED_ROWS


def passes_of_shapes(setup: Setup) -> Generator[BenchRow]:
    """Milliseconds of a pass over a new token in each shape, and c of each pair.

    c is t_target / t_draft. Beside it stands the c that the pair's paper prints. In
    recorded passes a target is fed 16 tokens and a draft 8, so that outputs are exact;
    of those each pair gets a latency file, for the virtual clock.
    """
    kinds = (LAUNCHED, RECORDED) if setup.on_gpu else (LAUNCHED,)
    milliseconds: dict[tuple[str, str], float] = {}
    for name in setup.shape_pairs:
        pair = load_pair(name)
        for role in ROLES:
            shape = Shape(pair, role)
            for kind in kinds:
                if (shape.name, kind) not in milliseconds:
                    row = pass_of(setup, shape, kind)
                    milliseconds[shape.name, kind] = row.value
                    yield row
        for kind in kinds:
            yield from cost_ratio(pair, kind, milliseconds)
        if setup.latency_folder is not None:
            write_latency(pair, milliseconds, setup.latency_folder)


def pass_of(setup: Setup, shape: Shape, kind: str) -> BenchRow:
    """A shape's row; without a number if the device lacks memory for it."""
    name = f"a pass, {shape.name}, {kind}"
    small = load_pair(PAIR).draft.model_copy(update={"shape": None})
    alone = shape.pair.model_copy(
        update={"target": shape.spec, "draft": small, "place": setup.place}
    )
    try:
        preflight.check(open_pair(alone), DTYPE, in_one_process=True)
    except BadValue as error:
        return BenchRow(name, nan, "ms", note=str(error))
    note = ""
    if kind == RECORDED:
        alone = alone.with_fixed_rows(shape.rows, recorded=True)
        note = f"{shape.rows} rows in each pass"
    model = open_pair(alone).build("target", DTYPE)
    seconds = seconds_of_passes(model, setup.passes)
    gibibytes = device_speed.bytes_read_per_pass(model.network) / device_speed.GIBIBYTE
    del model
    device_speed.release_memory()
    return median_row(
        name,
        [1000 * each for each in seconds],
        "ms",
        join_notes(DTYPE, f"{gibibytes:.3g} GiB of weights a pass", note),
    )


def cost_ratio(pair: Pair, kind: str, milliseconds: PassTimes) -> Iterator[BenchRow]:
    """The row of a pair's c, if both of its models fit on the device."""
    target = milliseconds[Shape(pair, "target").name, kind]
    draft = milliseconds[Shape(pair, "draft").name, kind]
    if isnan(target) or isnan(draft):
        return
    printed = ""
    if pair.latency is not None:
        printed = f"the paper's c: {load_latency(pair.latency).c:.3g}"
    yield BenchRow(
        f"c, {pair.stands_for}, {kind}",
        target / draft,
        "ratio",
        note=join_notes(f"{target:.3g} ms over {draft:.3g} ms", printed),
    )


def write_latency(pair: Pair, milliseconds: PassTimes, folder: Path) -> None:
    """Writes a pair's latency file, if recorded passes of both models were measured.

    A pass takes as long however few tokens it is fed, up to the rows that it has; one
    token more needs a second pass.
    """
    facts = dict(machine_facts.environment())
    where = f"{facts['gpus']}, torch {facts['torch']}, {DTYPE}"
    about = (
        f"The shapes of {pair.stands_for}, measured: passes that a GPU has recorded, "
        f"each model alone on one GPU. A target's has {FIXED_ROWS} rows, a draft's "
        f"{DRAFT_ROWS}, and takes as long when fewer of them are new. Nothing is said "
        "of prefill, so virtual runs with this file leave it out."
    )
    lines = [
        f"about = {json.dumps(about)}",
        'source = "make gpu-check ONLY=shapes: medians"',
        f"date = {json.dumps(date.today().isoformat())}",
        f"machine = {json.dumps(where)}",
    ]
    for role in ROLES:
        shape = Shape(pair, role)
        measured = milliseconds.get((shape.name, RECORDED), nan)
        if isnan(measured):
            return
        # Whole microseconds, so that the double of it is exact in the file.
        duration = round(measured / 1000, 6)
        lines += [
            "",
            f"[{role}]",
            f"model = {json.dumps(shape.name)}",
            f"forward = [[1, {duration:.6f}], [{shape.rows}, {duration:.6f}], "
            f"[{shape.rows + 1}, {2 * duration:.6f}]]",
            "prefill = 0.0",
        ]
    text = "\n".join(lines)
    write_atomically(folder / f"{Path(pair.name).name}.toml", f"{text}\n")
