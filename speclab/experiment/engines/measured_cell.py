"""A measured cell under way: its prompts, each beside plain decoding of the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from speclab.experiment import cache_keys
from speclab.experiment.cells.measured_prompt import Conditions, Setting
from speclab.experiment.cells.outputs import OutputFacts
from speclab.experiment.environments import Environment
from speclab.experiment.spec import CellFacts, CellResult, Spec, present
from speclib import machine
from speclib.decoding.decode import Result
from speclib.methods import METHODS
from speclib.models.open_pair import open_pair
from speclib.trace.metrics import Stats
from speclib.trace.rounds import sequence_choices

from .inputs import input_files
from .measured_pair import pair_to_measure
from .replayed_cell import conditions_of
from .timed_cell import TimedCell, TimedHeader, TimedRequest

# Modules that enter the key, with all that they import: the cell's own, and what works
# in another process or is imported only when a model is loaded.
CODE = (
    "speclab.experiment.cells.measured_prompt",
    "speclab.experiment.cells.outputs",
    "speclab.experiment.cells.task_prompts",
    "speclib.worlds.processes",
    "speclib.models.hf",
    "speclib.models.toy",
)
LLAMACPP = ("speclib.models.llamacpp.quantised_model", "speclib.models.llamacpp.gguf")


@dataclass(kw_only=True)
class MeasuredHeader(TimedHeader):
    """What is stored of a measured cell besides its prompts.

    gamma    the window used, found before the first prompt
    c        seconds of a target pass over those of a draft pass
    facts    as in ``CellResult``, of the workers and of the search
    pieces, agree
             of the first prompt, as in ``CellResult``

    Its ``seconds`` are those of all requests and their baselines.
    """

    gamma: int | None
    c: float
    facts: dict[str, Any]
    pieces: dict[int, str] = field(default_factory=dict)
    agree: list[bool] | None = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class PromptOutcome(TimedRequest):
    """What one prompt gave, beside plain decoding of the same prompt.

    differs, gap  where the output leaves plain decoding's (see ``Departure``)
    """

    baseline: Stats
    sequence_choices: list[tuple[int, int | None]]
    differs: int | None
    gap: float | None


class MeasuredCell(TimedCell[MeasuredHeader, PromptOutcome]):
    """A measured spec, and what is known of its prompts so far.

    ``environment``: of the machine that measured it; None: this one's.
    """

    def __init__(self, spec: Spec, environment: Environment | None = None):
        super().__init__(spec, key_of(spec, environment), MeasuredHeader, PromptOutcome)

    @property
    def setting(self) -> Setting:
        """The method with the window that was found for it."""
        gamma = present(self.header).gamma
        return Setting(self.spec.method, gamma, self.spec.settings)

    @property
    def conditions(self) -> Conditions:
        """What other cells must share to be compared with this one prompt by prompt."""
        return conditions_of(self.spec)

    def add(
        self,
        number: int,
        result: Result,
        plain: Result,
        facts: OutputFacts,
        others: float,
    ) -> None:
        """Adds a prompt's outcome beside plain decoding's, and stores the cell."""
        outcome = PromptOutcome(
            stats=result.stats,
            baseline=plain.stats,
            sequence_choices=sequence_choices(result.trace),
            differs=facts.departure.position,
            gap=facts.departure.gap,
            others=others,
        )
        is_quietest = self.keep(number, outcome)

        header = present(self.header)
        if number == 0 and is_quietest:
            header.trace = result.trace.to_json()
            header.pieces = result.pieces
            header.agree = facts.agreements
        seconds = sum(o.stats.seconds + o.baseline.seconds for o in self.requests)
        header.seconds = round(seconds, 3)
        self.save()

    def result(self) -> CellResult | None:
        """What came of the spec so far; None without a prompt that is done."""
        if self.header is None or not self.requests:
            return None
        header = self.header
        facts: CellFacts = {
            **cast(CellFacts, header.facts),
            "differs": [outcome.differs for outcome in self.requests],
            "gap": [outcome.gap for outcome in self.requests],
            "others": [outcome.others for outcome in self.requests],
            "tries": [outcome.tries for outcome in self.requests],
            "agree": header.agree,
        }
        return CellResult(
            spec=self.spec,
            stats=[outcome.stats for outcome in self.requests],
            baseline=[outcome.baseline for outcome in self.requests],
            gamma=header.gamma,
            c=header.c,
            machine=header.machine,
            seconds=header.seconds,
            created=header.created,
            facts=facts,
            trace=header.trace,
            pieces=header.pieces,
            sequence_choices=[outcome.sequence_choices for outcome in self.requests],
        )


def key_of(spec: Spec, environment: Environment | None = None) -> str:
    """The cell's name: a hash of the spec, its code, its data and the machine.

    ``environment``: as of ``machine.environment``; None: this machine's.
    """
    pair_name = present(spec.pair)
    pair = pair_to_measure(pair_name, spec.dtype, environment)
    draft_runtime = open_pair(pair).runtime("draft")
    modules: tuple[str, ...] = CODE
    if draft_runtime.startswith("llama.cpp"):
        modules = CODE + LLAMACPP

    return cache_keys.digest(
        spec.model_dump_json(exclude={"requests"}),
        cache_keys.hash_of_method(METHODS[spec.method], *modules),
        cache_keys.hash_of_files(
            *input_files(pair_name, present(spec.task), spec.method)
        ),
        pair.draft.shape,
        draft_runtime,
        machine.environment() if environment is None else environment,
    )
