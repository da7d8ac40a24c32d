"""``plan`` measures every method that a pair can run, on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, nan

import pandas as pd

from speclab.measure.measure import Step, measure
from speclab.papers.statistics import number_of
from speclab.runs.rows import CellRuns, Rows, read_all
from speclab.runs.spec import MeasuredSpec
from speclab.runs.this_machine import name_of_this_machine
from speclib.arguments import Count, checked
from speclib.data import prompts as prompt_files
from speclib.data.pairs import Pair, load_pair
from speclib.errors import BadValue
from speclib.methods import METHODS, about, find, parameters, takes_gamma

PLAIN = "autoregressive"


@checked
def plan(
    pair: str = "embedded/llama-7b-70b",
    *,
    methods: Sequence[str] | None = None,
    task: str = "humaneval",
    prompts: Count = 4,
    max_new_tokens: Count = 64,
    servers: Count = 1,
    say: Callable[[str], object] = print,
) -> pd.DataFrame:
    """Measures which method is the fastest for a pair on this machine.

    The methods and plain decoding take turns on each prompt. A method with a window
    uses the best window on the virtual clock, and defaults for its other settings. Rows
    from earlier runs are used again; only the missing ones are measured.

    methods  the methods to compare; None: all that the pair can run
    servers  number of devices with the target model, for DSI
    say      called with each line of progress

    Returns a row per method, fastest first. Speeds are measured from the first commit.
    ``from`` and ``to`` are the 95 % interval of the speed-up over plain decoding, and
    ``n`` is the number of prompts. Raises SpeclibError for an unknown pair, task or
    method, and if no speed-up could be measured.
    """
    prompt_files.load(task, 1)
    described = load_pair(pair)
    specs = {}
    for method in (PLAIN, *(methods_for(described) if methods is None else methods)):
        find(method)
        has_servers = "servers" in parameters(method)
        specs[method] = MeasuredSpec(
            method=method,
            gamma="best" if takes_gamma(method) else None,
            settings=(("servers", servers),) if has_servers else (),
            pair=pair,
            task=task,
            tokens=max_new_tokens,
        )
    errors = measure([Step(tuple(specs.values()), prompts)], deadline=None, say=say)

    for name, spec in specs.items():
        if spec in errors:
            say(f"{name} failed: {errors[spec]}")

    rows = Rows(row for row in read_all() if row.prompt < prompts)
    shown = {}
    for name, spec in specs.items():
        runs = rows.of(spec, name_of_this_machine())
        if runs is not None and isfinite(number_of("speedup", runs).value):
            shown[name] = _row(runs)
    if not shown:
        reasons = "; ".join(dict.fromkeys(errors.values()))
        reasons = reasons or "every answer ended with its first commit"
        raise BadValue(f"no speed-up could be measured on {pair}: {reasons}")
    table = pd.DataFrame.from_dict(shown, orient="index").round(2)
    return table.sort_values("speed-up", ascending=False)


def _row(runs: CellRuns) -> dict[str, object]:
    """A method's row in the table."""
    speedup = number_of("speedup", runs)
    has_interval = speedup.n > 1 and not speedup.is_exact
    gamma = {} if runs.gamma is None else {"gamma": runs.gamma}
    settings = gamma | dict(runs.spec.settings)
    output = f"differs in {runs.differs}" if runs.differs else "exact"
    return {
        "settings": ", ".join(f"{name} {value}" for name, value in settings.items()),
        "tokens/s": number_of("decode_speed", runs).value,
        "speed-up": speedup.value,
        "from": speedup.interval.low if has_interval else nan,
        "to": speedup.interval.high if has_interval else nan,
        "n": speedup.n,
        "acceptance": number_of("acceptance_rate", runs).value,
        "output": f"{output}, busy" if runs.is_busy else output,
    }


def methods_for(pair: Pair) -> list[str]:
    """The methods for which the pair provides the required draft and texts."""
    draft, found = pair.draft, []
    for method in METHODS:
        page = about(method)
        if page.needs_head and not draft.head:
            continue
        if page.needs_datastore and pair.datastore is None:
            continue
        if "lp" in parameters(method) and draft.spread != "layers":
            continue  # the method runs several layers of the draft at once
        found.append(method)
    return found
