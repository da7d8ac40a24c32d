"""``plan``: every method that a pair can run, measured on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from math import isfinite, nan
from typing import Any

import pandas as pd

from speclab.measure.measure import Step, measure
from speclab.papers.numbers import Number, divide
from speclab.papers.statistics import number_of
from speclab.runs.rows import CellRuns, Rows, read_all
from speclab.runs.spec import Spec
from speclab.runs.this_machine import name_of_this_machine
from speclib.arguments import Count, checked
from speclib.data import prompts as prompt_files
from speclib.data.pairs import Pair, load_pair
from speclib.errors import BadValue
from speclib.methods import METHODS, about, find, parameters, takes_gamma

PLAIN = "autoregressive"
SHOWN = {"float_format": "{:.2f}".format, "na_rep": ""}


@dataclass(frozen=True)
class Plan:
    """What methods did on a pair; printed, it is a table and what to use.

    runs    by method, plain decoding included, each with plain decoding's on the same
            prompts
    failed  why methods failed
    """

    pair: str
    task: str
    runs: dict[str, CellRuns]
    failed: dict[str, str]

    @cached_property
    def speedups(self) -> dict[str, Number]:
        """The speed-up over plain decoding by method, the fastest first."""
        numbers = {name: number_of("speedup", runs) for name, runs in self.runs.items()}
        known = {name: each for name, each in numbers.items() if isfinite(each.value)}
        fastest_first = sorted(known, key=lambda name: known[name].value, reverse=True)
        return {name: known[name] for name in fastest_first}

    @property
    def choice(self) -> str:
        """The fastest method, which may be plain decoding."""
        return next(iter(self.speedups))

    def settings(self, method: str) -> dict[str, Any]:
        """The settings of a method's runs, except its defaults."""
        runs = self.runs[method]
        window = {} if runs.gamma is None else {"gamma": runs.gamma}
        return window | dict(runs.spec.settings)

    def frame(self) -> pd.DataFrame:
        """A row per method, the fastest first.

        Speeds begin after the first commit. ``from`` and ``to`` are the 95 % interval
        of the speed-up over plain decoding, and ``n`` is the number of prompts.
        """
        rows = {method: self._row(method) for method in self.speedups}
        return pd.DataFrame.from_dict(rows, orient="index")

    def _row(self, method: str) -> dict[str, object]:
        runs, speedup = self.runs[method], self.speedups[method]
        settings = self.settings(method).items()
        has_interval = speedup.n > 1 and not speedup.is_exact
        output = f"differs in {runs.differs}" if runs.differs else "exact"
        return {
            "settings": ", ".join(f"{name} {value}" for name, value in settings),
            "tokens/s": number_of("decode_speed", runs).value,
            "speed-up": speedup.value,
            "from": speedup.interval.low if has_interval else nan,
            "to": speedup.interval.high if has_interval else nan,
            "n": speedup.n,
            "acceptance": number_of("acceptance_rate", runs).value,
            "output": f"{output}, busy" if runs.is_busy else output,
        }

    def notes(self) -> list[str]:
        """How windows were chosen, what "busy" means, and why methods failed."""
        methods_by_way: dict[str, list[str]] = {}
        for method in self.speedups:
            methods_by_way.setdefault(self.runs[method].how, []).append(method)
        notes = []
        for way, methods in methods_by_way.items():
            if way:
                notes.append(f"gamma of {', '.join(methods)}: {way}")
        if any(runs.is_busy for runs in self.runs.values()):
            notes.append("busy: other programs ran at the same time")
        for method, why in self.failed.items():
            notes.append(f"{method} failed: {why}")
        return notes

    def summary(self) -> str:
        """Which method to use and how, and which others may be as fast."""
        first, *others = self.speedups
        arguments = {"pair": self.pair, "method": first} | self.settings(first)
        written = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        use = f"speclib.decode(prompt, {written})"
        if first == PLAIN:
            return f"No method is faster than plain decoding: {use}"
        speedup = self.speedups[first]
        leads = {each: divide(speedup, self.speedups[each]) for each in others}
        rivals = [each for each, lead in leads.items() if lead.interval.low <= 1]
        doubt = f" ({', '.join(rivals)} may be as fast)" if rivals else ""
        return (
            f"{first} is {speedup.value:.2f} times as fast as plain decoding, and the "
            f"fastest{doubt}: {use}"
        )

    def __repr__(self) -> str:
        lines = [f"{self.pair}, {self.task}", self.frame().to_string(**SHOWN)]
        return "\n".join([*lines, *self.notes(), self.summary()])

    def _repr_html_(self) -> str:
        lines = [*self.notes(), self.summary()]
        words = "".join(f"<p>{escape(line)}</p>" for line in lines)
        return f"{self.frame().to_html(**SHOWN)}{words}"


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
) -> Plan:
    """Measures which method is the fastest for a pair on this machine.

    On each prompt the methods and plain decoding take turns. A method with a window
    uses the best one on the virtual clock; its other settings are the defaults. Rows of
    earlier runs count, and only what they lack is run.

    methods  to compare; None: all that the pair can run
    servers  devices that have the target model, for DSI
    say      is told what begins, in a line

    Raises SpeclibError for an unknown pair, task or method, and if no speed-up could be
    measured.
    """
    prompt_files.load(task, 1)
    described = load_pair(pair)
    specs = {}
    for method in (PLAIN, *(methods_for(described) if methods is None else methods)):
        find(method)
        has_servers = "servers" in parameters(method)
        specs[method] = Spec(
            kind="measured",
            method=method,
            gamma="best" if takes_gamma(method) else None,
            settings=(("servers", servers),) if has_servers else (),
            pair=pair,
            task=task,
            tokens=max_new_tokens,
        )
    errors = measure([Step(tuple(specs.values()), prompts)], deadline=None, say=say)

    rows = Rows(row for row in read_all() if row.prompt < prompts)
    found = {
        name: rows.of(spec, name_of_this_machine()) for name, spec in specs.items()
    }
    made = Plan(
        pair,
        task,
        runs={name: runs for name, runs in found.items() if runs is not None},
        failed={name: errors[spec] for name, spec in specs.items() if spec in errors},
    )
    if not made.speedups:
        reasons = "; ".join(dict.fromkeys(made.failed.values()))
        reasons = reasons or "every answer ended with its first commit"
        raise BadValue(f"no speed-up on {pair} could be measured: {reasons}")
    return made


def methods_for(pair: Pair) -> list[str]:
    """The methods that a pair can run: those whose kind of draft or texts it has."""
    draft, found = pair.draft, []
    for method in METHODS:
        page = about(method)
        if page.needs_head and not draft.head:
            continue
        if page.needs_datastore and pair.datastore is None:
            continue
        if "lp" in parameters(method) and draft.spread != "layers":
            continue  # it runs several layers of the draft at once
        found.append(method)
    return found
