"""Experiments of the audit by name, each with the sort of evidence that it gives.

An experiment is a function of the number of simulated requests and of its settings, and
gives quantities by name. None takes longer than some seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from speclab.audit.quantity import Basis, Quantities
from speclib.errors import BadValue, unknown_name

from . import (
    all_devices,
    counted_tokens,
    dsi_algorithm_1,
    dsi_charges,
    dsi_formulas,
    dsi_on_the_clock,
    engine_runs,
    number_formats,
    pearl_counts,
    pearl_formulas,
    simulated_clock,
    walks,
)


class Experiment(NamedTuple):
    """What is run, and what its answer rests on."""

    function: Callable[..., Quantities]
    basis: Basis


RUNS = {
    "planted mistake": Experiment(walks.planted_mistake, "every outcome"),
    "every outcome": Experiment(walks.every_outcome, "every outcome"),
    "mistake of an engine": Experiment(engine_runs.engine_mistake, "every outcome"),
    "unverified tokens": Experiment(simulated_clock.unverified_tokens, "clock"),
    "two counts": Experiment(simulated_clock.two_counts, "clock"),
    "worth of a mistake": Experiment(simulated_clock.worth_of_a_mistake, "clock"),
    "lookahead of DSI": Experiment(simulated_clock.lookahead_of_dsi, "clock"),
    "ties of DSI": Experiment(simulated_clock.ties_of_dsi, "clock"),
    "passes of lookahead decoding": Experiment(
        simulated_clock.passes_of_lookahead_decoding, "clock"
    ),
    "ids in bfloat16": Experiment(number_formats.ids_in_bfloat16, "arithmetic"),
    "random draft": Experiment(engine_runs.random_draft, "arithmetic"),
    "block of sure drafts": Experiment(engine_runs.block_of_sure_drafts, "arithmetic"),
    "length by counts": Experiment(pearl_counts.length_by_counts, "arithmetic"),
    "tokens per pass": Experiment(pearl_counts.tokens_per_pass, "arithmetic"),
    "whole cost ratios": Experiment(pearl_formulas.whole_cost_ratios, "arithmetic"),
    "rounded cost ratio": Experiment(pearl_formulas.rounded_cost_ratio, "arithmetic"),
    "tokens of a run": Experiment(pearl_formulas.tokens_of_a_run, "arithmetic"),
    "unfinished runs": Experiment(pearl_formulas.unfinished_runs, "arithmetic"),
    "printed steps": Experiment(pearl_formulas.printed_steps, "every outcome"),
    "counted tokens": Experiment(counted_tokens.counted_tokens, "every outcome"),
    "speculative decoding at its best": Experiment(
        counted_tokens.speculative_at_its_best, "arithmetic"
    ),
    "DSI over SI by rules": Experiment(dsi_charges.dsi_over_si_by_rules, "arithmetic"),
    "worth of a rule": Experiment(dsi_charges.worth_of_a_rule, "arithmetic"),
    "DSI over SI by lookahead": Experiment(
        dsi_formulas.dsi_over_si_by_lookahead, "arithmetic"
    ),
    "DSI over the grid of Figure 1": Experiment(
        dsi_formulas.dsi_over_the_grid, "arithmetic"
    ),
    "DSI beside Proposition 1": Experiment(
        dsi_on_the_clock.dsi_beside_proposition_1, "clock"
    ),
    "Algorithm 1 of DSI": Experiment(
        dsi_algorithm_1.every_text_of_algorithm_1, "every outcome"
    ),
    "PEARL on its devices": Experiment(all_devices.pearl_on_its_devices, "arithmetic"),
    "DSI on its devices": Experiment(all_devices.dsi_on_its_devices, "arithmetic"),
}


def experiment(name: str) -> Experiment:
    """An experiment. Raises UnknownName listing all, if there is none of that name."""
    if name not in RUNS:
        raise unknown_name(f"the audit has no run {name!r}", name, RUNS)
    return RUNS[name]


def run_experiment(name: str, requests: int, settings: Mapping[str, Any]) -> Quantities:
    """The quantities of the experiment ``name``.

    Raises SpeclibError listing what is known, for an unknown name or setting.
    """
    function = experiment(name).function
    try:
        return function(requests, **settings)
    except TypeError as error:
        raise BadValue(f"run {name!r} with {dict(settings)}: {error}") from error
