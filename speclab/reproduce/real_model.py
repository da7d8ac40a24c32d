"""Measures SmolLM2 with every method on chats, and writes ``reports/smollm2.md``.

Measuring adds rows from this machine, and the page is made from rows. Most methods run
with their default settings; some run with their best window or with narrow settings.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from math import isfinite

from speclab.measure.measure import Step, measure
from speclab.papers.statistics import number_of
from speclab.peers.known_peers import EXTERNAL
from speclab.runs.rows import CellRuns, Row, Rows, key_of, read_all
from speclab.runs.spec import MeasuredSpec, Spec
from speclab.virtual.toy_requests import ToyCell, run_requests
from speclib import paths
from speclib.atomic_files import write_atomically
from speclib.data.latency import Latency
from speclib.methods import METHODS, about
from speclib.trace.metrics import total

from .measuring import print_at_once

PAIR = "smollm2"
TASK = "mt_bench"  # chats of eight kinds, in turn; Spec-Bench's chats if available
VIRTUAL_REQUESTS = 8

# Outputs are compared on these tasks, too, for a few tokens after each prompt.
EXACT_TASKS = (
    *("humaneval", "mgsm_de", "mgsm_zh", "translation", "mgsm_ru"),
    *("summarization", "mgsm_th", "gsm8k", "mgsm_te"),
)
EXACT_PROMPTS, EXACT_TOKENS = 2, 16  # prompts per task, tokens per prompt

# Method, window and other settings. Methods whose passes read many tokens also run with
# narrow settings, because some are slower than plain decoding by default (see
# ``About.narrow``).
SETTINGS: tuple[tuple[str, str | None, dict[str, int]], ...] = (
    ("speculative", "auto", {}),
    ("speculative", "best", {}),
    ("pearl", "auto", {}),
    ("pearl", "best", {}),
    ("dsi", None, {}),
    ("duodecoding", "auto", {}),
    ("assisted", None, {}),
    ("ouroboros", "auto", {"window": 0}),
    ("tree", "auto", {"width": 1}),
    ("tree", "auto", {}),
    ("easyspec", "auto", {"lp": 1, "width": 2}),
    ("ssd", "auto", {"fan": 1}),
    ("prompt_lookup", None, {}),
    ("lookahead", None, {"window": 2, "ngram": 3, "guesses": 2}),
    ("lookahead", None, {}),
    ("rest", None, {"nodes": 8}),
    ("rest", None, {}),
    ("transformers-plain", None, {}),
    ("transformers-prompt-lookup", None, {}),
)

ABOUT = """# SmolLM2 with every method

SmolLM2-135M-Instruct, a real language model, answers chats. Its draft is the same model
quantised to four bits, in llama.cpp (quantised self-drafting). This page does not
reproduce a paper. Because both are the same model, the draft is nearly always right,
and these numbers do not tell what a small draft model would achieve.

`speed-up` is over plain decoding, which took turns with the method on the same prompts:
a geometric mean, with its 95 % interval. `virtual` is the speed-up of our code on a
simulated clock, with the measured c and acceptance rate. There, a pass over many tokens
takes no longer than a pass over one. On a CPU it does take longer, which explains the
difference between the two columns. Outputs are exact unless the last column says
otherwise. `python -m speclab real` measures all of this on your machine.

transformers' own decoding runs on the same weights. Its assisted generation is missing:
it needs a draft in torch with the same tokens, and we use this model in one size only.
"""
HEAD = (
    "| method | settings | speed-up | 95 % | chats | `virtual` | tokens/s | accepted "
    "| output |"
)
RULE = "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"


EXACT = """## Exactness

The table counts greedy outputs in float32, and how many of them are the same as plain
decoding's. transformers' own `generate` is compared with plain decoding in the same
way. The prompts are the chats above, and code, arithmetic, summaries and translation,
some in German, Chinese, Russian, Thai and Telugu. `python -m speclab real --exact`
compares outputs on your machine. `pytest -m thorough tests/models/test_smollm2.py`
compares them in bfloat16, where all of the target's passes must have the same shape.

| method | settings | prompts | outputs | the same |
| --- | --- | ---: | ---: | ---: |"""


def specs(tokens: int, task: str = TASK) -> tuple[MeasuredSpec, ...]:
    """The cells, in the order of ``SETTINGS``."""
    cells = []
    for method, gamma, settings in SETTINGS:
        cell = MeasuredSpec(
            method=method,
            gamma=gamma,
            settings=tuple(settings.items()),
            pair=PAIR,
            task=task,
            tokens=tokens,
        )
        cells.append(cell)
    return tuple(cells)


def exact_specs(task: str) -> tuple[MeasuredSpec, ...]:
    """The cells whose outputs are compared: each method with its default window."""
    cells = specs(EXACT_TOKENS, task)
    return tuple(cell for cell in cells if cell.gamma != "best")


def measure_real_model(
    prompts: int,
    tokens: int,
    minutes: float,
    say: Callable[[str], object] = print_at_once,
) -> dict[str, str]:
    """Measures ``prompts`` prompts with all methods; returns why some methods failed.

    A second call continues where the first one ended.
    """
    cells = specs(tokens)
    steps = [Step(cells, number) for number in range(1, prompts + 1)]
    return _measure(steps, minutes, say)


def compare_outputs(
    minutes: float, say: Callable[[str], object] = print_at_once
) -> dict[str, str]:
    """Compares outputs on prompts from ``EXACT_TASKS``; returns why methods failed.

    A second call continues where the first one ended.
    """
    steps = []
    for prompts in range(1, EXACT_PROMPTS + 1):
        steps += [Step(exact_specs(task), prompts) for task in EXACT_TASKS]
    return _measure(steps, minutes, say)


def _measure(
    steps: Sequence[Step], minutes: float, say: Callable[[str], object]
) -> dict[str, str]:
    deadline = time.monotonic() + 60 * minutes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the page itself marks slow settings
        errors = measure(steps, deadline, say)
    return {
        cell.name: errors[cell] for cell in errors if isinstance(cell, MeasuredSpec)
    }


# -- the page --------------------------------------------------------------------------
def write_real_model() -> None:
    """Writes ``reports/smollm2.md``, if any machine has measured SmolLM2."""
    known = [row for row in read_all() if row.key.on == PAIR]
    timed = [row for row in known if row.key.limit != EXACT_TOKENS]
    if not timed:
        return
    rows, lines = Rows(timed), [ABOUT]
    for machine in rows.machines:
        for tokens in sorted(
            {row.key.limit for row in timed if row.machine == machine}
        ):
            lines += _section(rows, machine, tokens)
    lines += _exactness(known)
    write_atomically(paths.REPORTS / "smollm2.md", "\n".join(lines))


def _section(rows: Rows, machine: str, tokens: int) -> Iterator[str]:
    """A machine's table, with the fastest method first."""
    found = [rows.of(spec, machine) for spec in specs(tokens)]
    known = [runs for runs in found if runs is not None]
    known = [runs for runs in known if isfinite(number_of("speedup", runs).value)]
    if not known:
        return
    prompts = max(len(runs.stats) for runs in known)
    yield f"## {machine}: {tokens} tokens after each of {prompts} chats\n"
    ratio = f"{known[0].c:.2f}"
    yield f"c, the time of a target pass over the time of a draft pass, is {ratio}."
    if any(runs.is_busy for runs in known):
        yield "Other programs ran at the same time, so the numbers are rough."
    yield f"\n{HEAD}\n{RULE}"
    by_speed = sorted(known, key=lambda runs: -number_of("speedup", runs).value)
    for runs in by_speed:
        yield _line(runs)
    yield ""


def _exactness(rows: Sequence[Row]) -> Iterator[str]:
    """The table of compared outputs."""
    yield EXACT
    for cell in exact_specs(TASK):
        key = key_of(cell)
        how = key.method, key.settings
        own = [row for row in rows if (row.key.method, row.key.settings) == how]
        prompts = len({(row.key.task, row.prompt) for row in own})
        same = sum(row.differs is None for row in own)
        counts = f"{prompts} | {len(own)} | {same}"
        if own:
            yield f"| {_name(cell)} | {key.settings} | {counts} |"
    yield ""


def _name(spec: Spec) -> str:
    """The name of a cell's method on the page."""
    if spec.is_peer:
        return EXTERNAL[spec.method].about
    return about(spec.method).name


def _line(runs: CellRuns) -> str:
    """A method's row in the table."""
    speedup = number_of("speedup", runs)
    low, high = speedup.interval
    sure = f"{low:.2f} .. {high:.2f}" if speedup.n > 1 else ""
    window = {} if runs.gamma is None else {f"{runs.spec.gamma} γ": runs.gamma}
    settings = window | dict(runs.spec.settings)
    counted = total(runs.stats)
    accepted = f"{counted.acceptance_rate:.2f}" if counted.drafted else ""
    slower = ", slower" if speedup.value < 1 else ""
    cells = (
        _name(runs.spec),
        ", ".join(f"{name} {value}" for name, value in settings.items()),
        f"{speedup.value:.2f}{slower}",
        sure,
        str(speedup.n),
        _virtual(runs, counted.acceptance_rate),
        f"{number_of('decode_speed', runs).value:.1f}",
        accepted,
        f"differs in {runs.differs}" if runs.differs else "exact",
    )
    return f"| {' | '.join(cells)} |"


def _virtual(runs: CellRuns, alpha: float) -> str:
    """The virtual speed-up; "" for a method without a draft model."""
    spec = runs.spec
    if spec.is_peer or not about(spec.method).uses_draft or not isfinite(alpha):
        return ""
    latency = Latency.ratio(runs.c)
    settings = dict(spec.settings)
    if runs.gamma is not None:
        settings["gamma"] = runs.gamma
    if spec.method == "dsi":
        settings = {"lookahead": 1, "servers": 1}
    speeds = []
    for method, given in ((spec.method, settings), ("autoregressive", {})):
        cell = ToyCell(METHODS[method], latency, alpha, spec.tokens, given)
        speeds.append(total(run_requests(cell, VIRTUAL_REQUESTS)).decode_speed)
    ratio = speeds[0] / speeds[1]
    return f"{ratio:.2f}" if isfinite(ratio) else ""
