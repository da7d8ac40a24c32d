"""Measured cells from the cache, or run: one set of workers per pair, methods interleaved.

For each prompt plain decoding and every method run, in an order that rotates with the prompt: a
machine that slows down slows all of them, and none is always the first to see a prompt. Cells that
come to the same method and window share its run. What a prompt gave is stored when all methods have
done it, so an interrupted measurement goes on at its next prompt, and every speed-up compares runs
of the same minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from speclib.data import prompts
from speclib.data.pairs import load_pair
from speclib.decoding.decode import draft_length
from speclib.errors import SpeclibError
from speclib.experiment import cache, cache_keys, machine
from speclib.experiment.cells import measured as measured_cells
from speclib.experiment.cells.measured import Setting
from speclib.experiment.spec import CellResult, Spec
from speclib.methods import METHODS
from speclib.models import factory
from speclib.models.zoo import ZOO
from speclib.paths import DATA
from speclib.progress import Progress
from speclib.trace.metrics import Stats, astuple, total
from speclib.trace.rounds import sequence_choices
from speclib.worlds.processes import Processes

CODE = (
    "speclib.experiment.cells.measured",
    "speclib.worlds.processes",
    "speclib.models.hf",
    "speclib.models.toy",
)
LLAMACPP = ("speclib.models.llamacpp.model", "speclib.models.llamacpp.gguf")
PLAIN = Setting("autoregressive", None)
SHARED = ("task", "length", "tokens", "temperature", "seed", "ignore_eos")
WINDOWS = (0.6, 1.0, 1.5, 2.0, 2.6)  # of c: the windows a search tries


class Cell:
    """A measured spec and what is known of it so far: a header and a row per finished prompt."""

    def __init__(self, spec: Spec, bar: Progress):
        self.spec, self.key, self.bar = spec, key_of(spec), bar
        self.header, self.rows = cache.load(self.key) or ({}, [])
        self.cached = self.whole
        bar.step(spec.name, len(self.rows))

    @property
    def whole(self) -> bool:
        return len(self.rows) >= self.spec.requests

    @property
    def setting(self) -> Setting:
        return Setting(self.spec.method, self.header["gamma"], self.spec.settings)

    def add(self, result, plain, more: dict) -> None:
        """The next prompt's outcome, beside plain decoding's; stored at once. ``more`` is what
        else is known of the output; of the first, where draft and target ``agree``."""
        if not self.rows:
            self.header |= {
                "trace": result.trace.to_json(),
                "agree": more["agree"],
                "pieces": {str(k): v for k, v in result.pieces.items()},
            }
        self.rows.append(
            {
                "stats": astuple(result.stats),
                "baseline": astuple(plain.stats),
                "branches": sequence_choices(result.trace),
                "differs": more["differs"],
                "gap": more["gap"],
            }
        )
        self.header["seconds"] = round(
            sum(r["stats"][3] + r["baseline"][3] for r in self.rows), 3
        )
        cache.save(self.key, self.header, self.rows)
        self.bar.step(self.spec.name)

    def run(self) -> CellResult:
        head = self.header
        found = {name: [row[name] for row in self.rows] for name in ("differs", "gap")}
        return CellResult(
            self.spec,
            [Stats(*row["stats"]) for row in self.rows],
            [Stats(*row["baseline"]) for row in self.rows],
            head["gamma"],
            head["c"],
            head["machine"],
            head["seconds"],
            head["created"],
            head["facts"] | found | {"agree": head["agree"]},
            head["trace"],
            {int(k): v for k, v in head["pieces"].items()},
            [row["branches"] for row in self.rows],
            self.cached,
        )


def results(
    specs: list[Spec], bar: Progress
) -> Iterator[tuple[Spec, CellResult | Exception]]:
    """(spec, its run or the error it ended with), pair by pair; a step of ``bar`` is a prompt."""
    bar.grow(sum(s.requests for s in specs))
    for place in dict.fromkeys(s.workers for s in specs):
        cells, failed = [], {}
        for spec in (s for s in specs if s.workers == place):
            try:
                cells.append(Cell(spec, bar))
            except Exception as error:
                failed[spec] = error
        try:
            failed |= _measure(*place, [c for c in cells if not c.whole])
        except Exception as error:
            failed |= {c.spec: _explained(error) for c in cells if not c.whole}
        yield from failed.items()
        yield from ((c.spec, c.run()) for c in cells if c.spec not in failed)


def _explained(error: Exception) -> Exception:
    if not isinstance(error, ImportError):
        return error
    return SpeclibError(
        f"{error}: measured cells need the libraries of real models; install them "
        "with `pip install 'speclib[models]'`"
    )


def _measure(
    pair: str, dtype: str, servers: int, cancel: str, cells: list[Cell]
) -> dict[Spec, Exception]:
    """Completes cells of one pair in one set of workers; returns those that failed."""
    failed: dict[Spec, Exception] = {}
    if not cells:
        return failed
    cells[0].bar.step(f"starting {pair}", 0)
    with Processes(
        load_pair(pair), dtype=dtype, servers=servers, cancel=cancel
    ) as world:
        facts = {
            "contention": measured_cells.contention(world),
            "load": round(machine.load(), 2),
            "draft": factory.runtime(world.pair, "draft"),
        }
        warm: set[Setting] = set()
        for conditions in dict.fromkeys(_conditions(c.spec) for c in cells):
            group = [c for c in cells if _conditions(c.spec) == conditions]
            most = max(c.spec.requests for c in group)
            texts = measured_cells.texts(
                *conditions[:2], most, factory.tokenizer(world.pair)
            )
            common = dict(zip(SHARED[2:], conditions[2:], strict=True))
            for cell in group:
                try:
                    _warm_up(cell, world, texts[0], common, warm)
                    _prepare(cell, world, texts, facts, common)
                except Exception as error:
                    failed[cell.spec] = error
            for i, text in enumerate(texts):
                _prompt(
                    world,
                    text,
                    i,
                    [c for c in group if c.spec not in failed],
                    common,
                    failed,
                )
    return failed


def _conditions(spec: Spec) -> tuple:
    """What cells must share to be compared prompt by prompt."""
    return tuple(getattr(spec, name) for name in SHARED)


def _warm_up(cell: Cell, world, text, common: dict, warm: set[Setting]) -> None:
    """A few tokens by plain decoding and the cell's method, once in a world."""
    gamma = None if cell.spec.gamma is None else 2
    for setting in {PLAIN, Setting(cell.spec.method, gamma, cell.spec.settings)} - warm:
        measured_cells.one(world, text, setting, request=0, **common | {"tokens": 8})
        warm.add(setting)


def _prepare(cell: Cell, world, texts, facts: dict, common: dict) -> None:
    """Settles the window and starts the header, unless an earlier run did."""
    if cell.header:
        return
    searched = {}
    if cell.spec.gamma == "best":
        windows = sorted({max(1, round(world.ratio * share)) for share in WINDOWS})
        searched = {g: _speed(cell, g, world, texts, common) for g in windows}
        gamma = max(searched, key=searched.get)
    else:
        gamma = (
            None if cell.spec.gamma is None else draft_length(cell.spec.gamma, world)
        )
    facts = facts | (
        {"searched": {str(g): v for g, v in searched.items()}} if searched else {}
    )
    cell.header = {
        "spec": cell.spec.model_dump(mode="json"),
        "gamma": gamma,
        "c": round(world.ratio, 4),
        "machine": machine.name(),
        "facts": facts,
        "created": f"{datetime.now():%Y-%m-%d %H:%M}",
    }


def _speed(cell: Cell, gamma: int, world, texts, common: dict) -> float:
    """Tokens per second at a window, on the first prompts."""
    spec = cell.spec
    cell.bar.step(f"trying gamma {gamma} of {spec.name}", 0)
    setting = Setting(spec.method, gamma, spec.settings)
    return total(
        measured_cells.one(world, text, setting, request=i, **common).stats
        for i, text in enumerate(texts[: spec.sweep])
    ).decode_speed


def _prompt(world, text, i: int, cells: list[Cell], common: dict, failed: dict) -> None:
    """Prompt i by every cell that lacks it."""
    cells = [c for c in cells if len(c.rows) == i < c.spec.requests]
    if not cells:
        return
    settings = list(dict.fromkeys([PLAIN, *(c.setting for c in cells)]))
    turn, results = i % len(settings), {}
    for setting in [*settings[turn:], *settings[:turn]]:
        try:
            results[setting] = measured_cells.one(
                world, text, setting, request=i, **common
            )
        except Exception as error:
            failed.update(
                (c.spec, error) for c in cells if setting in (PLAIN, c.setting)
            )
            if setting == PLAIN:
                return
    plain = results[PLAIN]
    more = measured_cells.outputs(
        world, {r.tokens for r in results.values()}, plain, i == 0
    )
    for cell in cells:
        if cell.setting in results:
            result = results[cell.setting]
            cell.add(result, plain, more[result.tokens])


def key_of(spec: Spec) -> str:
    """The cell's name: a hash of the spec, its code, its data and this machine."""
    path = [] if spec.task == "toy" else [prompts.locate(spec.task, None)[0]]
    files = [DATA / "pairs" / f"{spec.pair}.toml", ZOO / "SHA256SUMS", *path]
    draft = factory.runtime(load_pair(spec.pair), "draft")
    code = (*CODE, *LLAMACPP) if draft.startswith("llama.cpp") else CODE
    return cache_keys.digest(
        spec.model_dump_json(),
        cache_keys.hash_of_method(METHODS[spec.method], *code),
        cache_keys.hash_of_files(*files),
        draft,
        machine.environment(),
    )
