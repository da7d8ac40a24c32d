"""A measured cell under way: what is known of its prompts so far, on disk at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from speclab.experiment import cache, cache_keys, other_load
from speclab.experiment.cells.measured import Conditions, Setting
from speclab.experiment.cells.outputs import OutputFacts
from speclab.experiment.environments import Environment
from speclab.experiment.limits import Limits
from speclab.experiment.spec import CellResult, Spec, present
from speclib import machine
from speclib.data import prompts
from speclib.data.pairs import load_pair
from speclib.decoding.decode import Result
from speclib.methods import METHODS
from speclib.models import factory
from speclib.models.zoo import ZOO
from speclib.paths import DATA
from speclib.trace.metrics import Stats
from speclib.trace.rounds import sequence_choices

# Modules that enter the key, with all that they import: the cell's own, and what works
# in another process or is imported only when a model is loaded.
CODE = (
    "speclab.experiment.cells.measured",
    "speclab.experiment.cells.outputs",
    "speclab.experiment.cells.task_prompts",
    "speclib.worlds.processes",
    "speclib.models.hf",
    "speclib.models.toy",
)
LLAMACPP = ("speclib.models.llamacpp.model", "speclib.models.llamacpp.gguf")


@dataclass
class MeasuredHeader:
    """What is stored of a cell besides its prompts.

    gamma    the window used, found before the first prompt
    c        seconds of a target pass over those of a draft pass
    facts    as in ``CellResult``, of the workers and of the search
    seconds  of all its requests and their baselines
    trace, pieces, agree
             of the first prompt, as in ``CellResult``
    """

    spec: dict[str, Any]
    gamma: int | None
    c: float
    machine: str
    created: str
    facts: dict[str, Any]
    seconds: float = 0.0
    trace: str = ""
    pieces: dict[int, str] = field(default_factory=dict)
    agree: list[bool] | None = field(default_factory=list)


@dataclass(frozen=True)
class PromptOutcome:
    """What one prompt gave, beside plain decoding of the same prompt.

    differs, gap  where the output leaves plain decoding's (see ``Departure``)
    others        the share of the machine that other programs took meanwhile
    tries         how often it was run; of several, the one with the fewest others is
                  kept
    """

    stats: Stats
    baseline: Stats
    sequence_choices: list[tuple[int, int | None]]
    differs: int | None
    gap: float | None
    others: float = 0.0
    tries: int = 1


class MeasuredCell:
    """A measured spec, and what is known of it so far.

    ``environment``: of the machine that measured it; None: this one's.
    """

    def __init__(self, spec: Spec, environment: Environment | None = None):
        self.spec = spec
        self.key = key_of(spec, environment)
        self.header: MeasuredHeader | None = None  # None until the cell is prepared
        self.outcomes: list[PromptOutcome] = []
        self._beyond: list[PromptOutcome] = []  # what a larger cell has more
        stored = cache.load(self.key, MeasuredHeader, PromptOutcome)
        if stored is not None:
            self.header = stored.header
            self.outcomes = stored.rows[: spec.requests]
            self._beyond = stored.rows[spec.requests :]

    def missing(self, limits: Limits) -> list[int]:
        """The numbers of the prompts that are still to be done."""
        return list(range(len(self.outcomes), limits.requests_of(self.spec)))

    def disturbed(self) -> list[int]:
        """The numbers of the prompts during which others kept the machine busy."""
        return [
            number
            for number, outcome in enumerate(self.outcomes)
            if other_load.is_disturbed(outcome.others)
        ]

    @property
    def setting(self) -> Setting:
        """The method with the window that was found for it."""
        gamma = present(self.header).gamma
        return Setting(self.spec.method, gamma, self.spec.settings)

    @property
    def conditions(self) -> Conditions:
        """What other cells must share to be compared with this one prompt by prompt."""
        spec = self.spec
        return Conditions(
            task=present(spec.task),
            length=spec.length,
            tokens=spec.tokens,
            temperature=spec.temperature,
            seed=spec.seed,
            ignore_eos=spec.ignore_eos,
        )

    def add(
        self,
        number: int,
        result: Result,
        plain: Result,
        facts: OutputFacts,
        others: float,
    ) -> None:
        """Add a prompt's outcome beside plain decoding's, and store the cell.

        A prompt that was done before is kept as it was if fewer others were beside it
        then.
        """
        outcome = PromptOutcome(
            stats=result.stats,
            baseline=plain.stats,
            sequence_choices=sequence_choices(result.trace),
            differs=facts.departure.position,
            gap=facts.departure.gap,
            others=others,
        )
        is_kept = True
        if number == len(self.outcomes):
            self.outcomes.append(outcome)
        else:
            is_kept = self._keep_the_quieter(number, outcome)

        header = present(self.header)
        if number == 0 and is_kept:
            header.trace = result.trace.to_json()
            header.pieces = result.pieces
            header.agree = facts.agreements
        seconds = sum(o.stats.seconds + o.baseline.seconds for o in self.outcomes)
        header.seconds = round(seconds, 3)
        self.save()

    def save(self) -> None:
        """Store what is known of the cell."""
        cache.save(self.key, present(self.header), self.outcomes + self._beyond)

    def _keep_the_quieter(self, number: int, again: PromptOutcome) -> bool:
        """Of two tries of a prompt keep the one with fewer others; was it the new?"""
        before = self.outcomes[number]
        quieter = min(before, again, key=lambda outcome: outcome.others)
        self.outcomes[number] = replace(quieter, tries=before.tries + 1)
        return quieter is again

    def result(self) -> CellResult | None:
        """What came of the spec so far; None without a prompt that is done."""
        if self.header is None or not self.outcomes:
            return None
        header = self.header
        facts = header.facts | {
            "differs": [outcome.differs for outcome in self.outcomes],
            "gap": [outcome.gap for outcome in self.outcomes],
            "others": [outcome.others for outcome in self.outcomes],
            "tries": [outcome.tries for outcome in self.outcomes],
            "agree": header.agree,
        }
        return CellResult(
            spec=self.spec,
            stats=[outcome.stats for outcome in self.outcomes],
            baseline=[outcome.baseline for outcome in self.outcomes],
            gamma=header.gamma,
            c=header.c,
            machine=header.machine,
            seconds=header.seconds,
            created=header.created,
            facts=facts,
            trace=header.trace,
            pieces=header.pieces,
            sequence_choices=[outcome.sequence_choices for outcome in self.outcomes],
        )


def key_of(spec: Spec, environment: Environment | None = None) -> str:
    """The cell's name: a hash of the spec, its code, its data and the machine.

    ``environment``: as of ``machine.environment``; None: this machine's.
    """
    draft_runtime = factory.runtime(load_pair(present(spec.pair)), "draft")
    modules: tuple[str, ...] = CODE
    if draft_runtime.startswith("llama.cpp"):
        modules = CODE + LLAMACPP

    files = [DATA / "pairs" / f"{spec.pair}.toml", ZOO / "SHA256SUMS"]
    if spec.task != "toy":
        task = present(spec.task)
        prompt_file, _ = prompts.locate(task, prompts.folder_to_measure(task))
        files.append(prompt_file)

    return cache_keys.digest(
        spec.model_dump_json(exclude={"requests"}),
        cache_keys.hash_of_method(METHODS[spec.method], *modules),
        cache_keys.hash_of_files(*files),
        draft_runtime,
        machine.environment() if environment is None else environment,
    )
