"""Stored runs of real models, for lessons to show before readers start new runs.

``data/lessons/NAME.json`` contains runs of several methods on one prompt: their common
text, the text of each token, and a trace for each method.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from speclib.arguments import checked
from speclib.atomic_files import write_atomically
from speclib.decoding.decode import Result
from speclib.errors import unknown_name
from speclib.trace.events import Trace
from speclib.trace.metrics import stats
from speclib.worlds.cost_ratio import CostRatio

from .lesson_files import FOLDER


@checked
def stored_runs(name: str) -> dict[str, Result]:
    """The stored runs, by method. Raises SpeclibError for an unknown name."""
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        known = [path.stem for path in FOLDER.glob("*.json")]
        raise unknown_name(f"no stored runs {name!r}", name, known)
    stored = json.loads(path.read_text("utf-8"))
    pieces = {int(token): piece for token, piece in stored["pieces"].items()}
    results = {}
    for raw in stored["traces"]:
        trace = Trace.from_json(json.dumps(raw))
        result = _result(stored["text"], pieces, trace)
        results[str(trace.meta["method"])] = result
    return results


def _result(text: str, pieces: dict[int, str], trace: Trace) -> Result:
    """The result with this trace."""
    ratio = trace.meta.get("cost_ratio")
    return Result(
        text=text,
        tokens=sum((event.tokens for event in trace.commits), ()),
        stats=stats(trace),
        trace=trace,
        pieces=pieces,
        cost_ratio=CostRatio(**ratio) if ratio else None,
    )


def store_runs(path: Path, runs: Sequence[Result]) -> None:
    """Writes runs of several methods on one prompt, for ``stored_runs`` to read.

    ``runs``: for example the ``runs`` of a ``real_run`` button.
    """
    pieces: dict[int, str] = {}
    for run in runs:
        pieces |= run.pieces
    stored = {
        "text": runs[0].text,
        "pieces": pieces,
        "traces": [json.loads(run.trace.to_json()) for run in runs],
    }
    write_atomically(path, json.dumps(stored, ensure_ascii=False) + "\n")
