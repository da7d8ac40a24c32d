"""Measures passes in published models' shapes, and c of the pairs in the papers.

We dilate an embedded model to a published shape. So no weights are needed, and a pass
costs as much as the published model's. Each model is measured alone on one device, so
the two models of a pair need not fit on it together.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
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

from .setup import DRAFT_ROWS, FIXED_ROWS, PAIR, Setup
from .speed import (
    DTYPE,
    GIBIBYTE,
    bytes_read_per_pass,
    release_memory,
    seconds_of_passes,
)

ROLES: tuple[Role, ...] = ("draft", "target")

# How long a pass takes, in ms, by the shape's name; nan if the device lacks memory.
PassTimes: TypeAlias = Mapping[str, float]


class Shape(NamedTuple):
    """A model's shape, given by a pair that contains the model, and its role there."""

    pair: Pair
    role: Role

    @property
    def spec(self) -> ModelSpec:
        """The model, whole on one device."""
        return self.pair.model(self.role).model_copy(update={"spread": "blocks"})

    @property
    def name(self) -> str:
        """The published model's name, or the shape's numbers."""
        return self.spec.like or "x".join(map(str, self.spec.shape or ()))

    @property
    def rows(self) -> int:
        """The number of rows in every recorded pass, most of them padding."""
        return DRAFT_ROWS if self.role == "draft" else FIXED_ROWS


def passes_of_shapes(setup: Setup) -> Generator[BenchRow]:
    """How long a pass over one token takes in each shape, in ms, and c of each pair.

    c is t_target / t_draft; the row's note states the c printed in the pair's paper. A
    recorded target pass has 16 rows and a draft pass 8, so outputs are exact. For each
    pair, the times are written to a latency file for the virtual clock.
    """
    milliseconds: dict[str, float] = {}
    for name in setup.shape_pairs:
        pair = load_pair(name)
        for role in ROLES:
            shape = Shape(pair, role)
            if shape.name not in milliseconds:
                row = pass_of(setup, shape)
                milliseconds[shape.name] = row.value
                yield row
        if not any(isnan(milliseconds[Shape(pair, role).name]) for role in ROLES):
            yield cost_ratio(pair, setup.kind_of_pass, milliseconds)
            if setup.on_gpu and setup.latency_folder is not None:
                write_latency(pair, milliseconds, setup.latency_folder)


def pass_of(setup: Setup, shape: Shape) -> BenchRow:
    """A shape's row, whose value is nan if the device lacks memory for the shape."""
    name = f"a pass, {shape.name}, {setup.kind_of_pass}"
    small = load_pair(PAIR).draft.model_copy(update={"shape": None})
    alone = shape.pair.model_copy(
        update={"target": shape.spec, "draft": small, "place": setup.place}
    )
    try:
        preflight.check(open_pair(alone), DTYPE, in_one_process=True)
    except BadValue as error:
        return BenchRow(name, nan, "ms", note=str(error))
    note = ""
    if setup.on_gpu:
        alone = alone.with_fixed_rows(shape.rows, recorded=True)
        note = f"{shape.rows} rows in each pass"
    model = open_pair(alone).build("target", DTYPE)
    seconds = seconds_of_passes(model, setup.passes)
    gibibytes = bytes_read_per_pass(model.network) / GIBIBYTE
    del model
    release_memory()
    return median_row(
        name,
        [1000 * each for each in seconds],
        "ms",
        join_notes(DTYPE, f"{gibibytes:.3g} GiB of weights a pass", note),
    )


def cost_ratio(pair: Pair, kind: str, milliseconds: PassTimes) -> BenchRow:
    """The row of a pair's c."""
    target = milliseconds[Shape(pair, "target").name]
    draft = milliseconds[Shape(pair, "draft").name]
    printed = ""
    if pair.latency is not None:
        printed = f"the paper's c: {load_latency(pair.latency).c:.3g}"
    return BenchRow(
        f"c, {pair.stands_for}, {kind}",
        target / draft,
        "ratio",
        note=join_notes(f"{target:.3g} ms over {draft:.3g} ms", printed),
    )


def write_latency(pair: Pair, milliseconds: PassTimes, folder: Path) -> None:
    """Writes a pair's latency file from recorded passes.

    A pass takes the same time for any number of tokens up to its number of rows; one
    more token requires a second pass.
    """
    facts = dict(machine_facts.environment())
    where = f"{facts['gpus']}, torch {facts['torch']}, {DTYPE}"
    about = (
        f"The shapes of {pair.stands_for}, measured: recorded passes, each model alone "
        f"on one GPU. A target pass has {FIXED_ROWS} rows and a draft pass "
        f"{DRAFT_ROWS}, and takes as long if fewer of them are new. Prefill was not "
        "measured, so virtual runs with this file leave it out."
    )
    lines = [
        f"about = {json.dumps(about)}",
        'source = "make gpu-check ONLY=shapes: medians"',
        f"date = {json.dumps(date.today().isoformat())}",
        f"machine = {json.dumps(where)}",
    ]
    for role in ROLES:
        shape = Shape(pair, role)
        # Whole microseconds, so that twice the duration is exact in the file.
        duration = round(milliseconds[shape.name] / 1000, 6)
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
