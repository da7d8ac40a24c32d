"""``plan``: the method and settings that are fastest for a pair on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
import pandas as pd

from speclab.experiment import other_load
from speclab.experiment.cells.timed_passes import MachineTimes, time_passes
from speclab.papers.estimates import Estimate, Interval, divide
from speclab.papers.reach import Reach
from speclab.progress import Progress
from speclib.arguments import Count, checked
from speclib.data import prompts as prompt_files
from speclib.data.pairs import Pair, load_pair
from speclib.decoding.decode import open_world
from speclib.errors import BadValue
from speclib.methods import parameters
from speclib.worlds.cost_ratio import CostRatio

from .candidates import PLAIN, Candidate, candidates_at
from .measure_plans import Measured, measure
from .rank import Ranked, best_of_each_method, rank

PROBED = 2  # prompts on which passes are timed
WIDEST = 24  # branches of SSD's fork, about
BUSY = "the machine was busy with other programs: make the plan again"


@dataclass(frozen=True)
class Plan:
    """What to use, and how sure that is.

    cost_ratio   c with both models at work, as an earlier run has stored it or measured
    virtual      speed-up over plain decoding by candidate, the fastest first
    measured     plain decoding, and the best candidate of each of the first few methods
    limits       by candidate, at how many requests at a time plain decoding would be as
                 fast: worked out, from the rounds and passes of one request
    """

    pair: str
    task: str
    cost_ratio: CostRatio
    virtual: dict[Candidate, float]
    measured: Measured
    limits: dict[Candidate, float] = field(default_factory=dict)

    @property
    def first_choice(self) -> Candidate:
        """The fastest on the virtual clock."""
        return next(iter(self.virtual))

    @property
    def by_speed(self) -> list[Candidate]:
        """Those that were measured, the fastest first."""
        speeds = self.measured.speeds
        return sorted(speeds, key=lambda one: speeds[one].value, reverse=True)

    @property
    def choice(self) -> Candidate:
        """The fastest of those that were measured; it may be plain decoding."""
        return self.by_speed[0]

    @property
    def lead(self) -> Estimate:
        """How many times as fast the choice is as the next one.

        The choice was made on the same prompts, so this flatters it a little.
        """
        speeds = self.measured.speeds
        return divide(speeds[self.choice], speeds[self.by_speed[1]])

    @property
    def is_settled(self) -> bool:
        """Whether the 95 % interval of the lead says that it is one."""
        return self.lead.interval.low > 1

    def speedup(self, candidate: Candidate) -> Estimate:
        """Over plain decoding, after the first commit."""
        if candidate == PLAIN:
            return Estimate(1.0)
        speeds = self.measured.speeds
        return divide(speeds[candidate], speeds[PLAIN])

    def frame(self) -> pd.DataFrame:
        """A row per candidate: its speed-ups over plain decoding, by kind of number.

        ``from`` and ``to`` are the 95 % interval of the measured one, which begins
        after the first commit; ``end to end`` begins with the request.
        """
        rows = []
        end_to_end = self.measured.end_to_end
        for candidate, virtual in self.virtual.items():
            numbers: list[float | None] = [None] * 4
            if candidate in self.measured.speeds:
                speedup = self.speedup(candidate)
                with_prompt = end_to_end[candidate].value / end_to_end[PLAIN].value
                numbers = [speedup.value, *speedup.interval, with_prompt]
            rows.append((candidate.name, virtual, *numbers))
        columns = ["method", "virtual", "measured", "from", "to", "end to end"]
        return pd.DataFrame(rows, columns=columns).set_index("method")

    def summary(self) -> str:
        """What to use, and whether the prompts settle it."""
        parts = [self._advice(), self._sureness(), self._limit()]
        if other_load.is_disturbed(self.measured.others):
            parts.append(f"But {BUSY}.")
        return " ".join(part for part in parts if part)

    def _limit(self) -> str:
        """Up to which batch the choice would hold."""
        limit = self.limits.get(self.choice, inf)
        if self.choice == PLAIN or limit == inf:
            return ""
        return (
            "With several requests at a time its drafts would stop paying at about "
            f"{max(1, round(limit))} of them, by the times of its passes."
        )

    def _advice(self) -> str:
        count = self.measured.prompts
        prompts = "1 prompt" if count == 1 else f"{count} prompts"
        if self.choice == PLAIN:
            return (
                f"Use plain decoding: no method that was measured is faster "
                f"({prompts} of {self.task})."
            )
        speedup = self.speedup(self.choice)
        return (
            f"Use {self.choice.name}: {speedup.value:.2f} times as fast as plain "
            f"decoding after the first tokens ({_write_interval(speedup.interval)}; "
            f"{prompts} of {self.task}, measured)."
        )

    def _sureness(self) -> str:
        """Whether it is sure that the choice is faster than the next one."""
        if self.lead.is_measured_once:
            return "One prompt does not say how sure that is."
        next_one = self.by_speed[1].name
        lead = f"{self.lead.value:.2f} times as fast as {next_one}"
        interval = _write_interval(self.lead.interval)
        if self.is_settled:
            return f"It is {lead} ({interval})."
        needed = Reach(self.lead, 1.0).requests_needed
        enough = "more" if needed is None else f"about {needed}"
        return (
            f"It is {lead}, which is open ({interval}): {enough} prompts would settle "
            "it, if the difference stays."
        )

    def __str__(self) -> str:
        table = self.frame().to_string(float_format="{:.2f}".format, na_rep="")
        return f"{self.pair}: {self.cost_ratio}\n{table}\n\n{self.summary()}"

    def _repr_html_(self) -> str:
        table = self.frame().to_html(float_format="{:.2f}".format, na_rep="")
        return f"<p>{self.pair}: {self.cost_ratio}</p>{table}<p>{self.summary()}</p>"

    __repr__ = __str__


def _write_interval(interval: Interval) -> str:
    if not np.isfinite(interval.high):
        return "one prompt gives no interval"
    return f"95 %: {interval.low:.2f} .. {interval.high:.2f}"


@checked
def plan(
    pair: Pair | str = "embedded/llama-7b-70b",
    *,
    task: str = "humaneval",
    prompts: Count = 4,
    max_new_tokens: Count = 64,
    check: Count = 3,
    servers: Count = 1,
    batch: Count = 1,
) -> Plan:
    """Finds the fastest method for ``pair`` on this machine, and its settings.

    First the passes of both models are timed here. Then each candidate writes the
    answers to ``prompts`` of ``task``, with the models' own tokens, on a virtual clock
    that goes by these times. Of the first ``check`` methods the best setting is
    measured, in turns with plain decoding, on the same prompts.

    ``servers``: devices that have the target model, which DSI uses. REST is tried
    where the pair names a ``datastore``. ``batch``: so many requests are decoded at a
    time, in lock-step (see ``decode_batch``), and ``prompts`` is raised to as many; DSI
    is left out then.

    All of it takes some minutes on two cores. Raises SpeclibError for a pair or task
    that is not there, and for prompts whose answers are too short.
    """
    described = load_pair(pair) if isinstance(pair, str) else pair
    prompts = max(prompts, batch)
    asked = [prompt.input for prompt in prompt_files.load(task, prompts)]
    if not asked:
        raise BadValue(f"task {task!r} has no prompts")

    with open_world("processes", described, servers=servers) as world:
        with Progress("timing passes", total=1) as bar:
            cost_ratio = world.cost_ratio
            times = time_passes(world, asked[:PROBED], widest=WIDEST)
            bar.step(str(cost_ratio))
        if batch == 1:
            has_datastore = described.datastore is not None
            candidates = candidates_at(cost_ratio.value, servers, has_datastore)
            ranked = rank(
                described,
                candidates,
                asked,
                max_new_tokens,
                times,
                servers=servers,
                cancel=world.cancel_policy,
            )
            first = best_of_each_method(ranked.speedups)[:check]
            measured = measure(world, first, asked, max_new_tokens)
    if batch > 1:
        ranked, measured = _in_batch(
            described, times, asked, max_new_tokens, check, batch
        )
    return Plan(
        described.name, task, cost_ratio, ranked.speedups, measured, ranked.limits
    )


def _in_batch(
    pair: Pair,
    times: MachineTimes,
    asked: Sequence[Any],
    max_new_tokens: int,
    check: int,
    batch: int,
) -> tuple[Ranked, Measured]:
    """What both clocks say with several requests at a time."""
    from .in_batch import latency_of, measure_in_batch, rank_in_batch

    c = latency_of(times.together).c_of_batch(batch)
    candidates = [
        each
        for each in candidates_at(c, has_datastore=pair.datastore is not None)
        if "servers" not in parameters(each.method)
    ]
    ranked = rank_in_batch(pair, candidates, asked, max_new_tokens, times, batch)
    first = best_of_each_method(ranked.speedups)[:check]
    return ranked, measure_in_batch(pair, first, asked, max_new_tokens, batch)
