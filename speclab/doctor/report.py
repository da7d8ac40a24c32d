"""The doctor's report: ``examine_machine`` collects it, and ``as_json`` prints it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from speclab import machine_facts
from speclib.arguments import Count, checked
from speclib.errors import is_installed
from speclib.models.loading import check_dtype

from .machine_checks import (
    MODEL_PACKAGES,
    Check,
    check_machine,
    why_default_cannot_run,
    why_hub_is_out_of_reach,
)
from .pair_report import PairReport, report_pairs


@dataclass(frozen=True)
class Report:
    """What this machine can run.

    machine       its short name
    checks        what it has
    pairs         what the papers' pairs need, and what this machine lacks for them
    dtype         number format assumed for the pairs' weights and KV caches
    length        number of tokens in these KV caches
    pairs_reason  why the pairs were not examined; empty if they were
    runs_default  whether the embedded default can run
    """

    machine: str
    checks: list[Check]
    pairs: list[PairReport]
    dtype: str
    length: int
    pairs_reason: str
    runs_default: bool


@checked
def examine_machine(dtype: str = "bfloat16", length: Count = 4096) -> Report:
    """Examines this machine and every pair of the papers."""
    check_dtype(dtype)
    hub_is_silent = why_hub_is_out_of_reach()
    default_reason = why_default_cannot_run()
    lacking = [package for package in MODEL_PACKAGES if not is_installed(package)]
    return Report(
        machine=machine_facts.name(),
        checks=check_machine(hub_is_silent, default_reason),
        pairs=[] if lacking else report_pairs(dtype, length, hub_is_silent),
        dtype=dtype,
        length=length,
        pairs_reason=f"{lacking[0]} is not installed" if lacking else "",
        runs_default=not default_reason,
    )


def as_json(report: Report) -> str:
    """The report as JSON for other programs, with sizes in bytes."""
    return json.dumps(asdict(report), indent=2)
