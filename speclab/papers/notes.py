"""What the ledger says of a run beside its number: its setup and its note."""

from __future__ import annotations

from math import isfinite

from speclab.experiment.spec import CellResult, Spec, present
from speclib import machine
from speclib.data import prompts
from speclib.data.pairs import Pair, load_pair
from speclib.methods import about
from speclib.models.open_pair import open_pair
from speclib.trace.events import Trace
from speclib.worlds.cost_ratio import CostRatio

from .estimates import Estimate
from .table_cells import TableCell
from .table_result import LOOKS_UP_OURS, quiet_requests

LEAST_QUIET = 2  # requests of a method that tell how much its corrections differ

DTYPES = {"auto": "float32"}  # what a setting stands for


# -- setups ----------------------------------------------------------------------------
def setup_of(spec: Spec, result: CellResult | None) -> str:
    """The ``setup`` of a cell's line in the ledger; of no result, on this machine."""
    if spec.kind == "virtual":
        return str(spec.latency)
    machine_name = result.machine if result else machine.name()
    if spec.kind == "emulated":
        return f"{spec.latency}@{machine_name}"

    pair = load_pair(str(spec.pair))
    dtype = DTYPES.get(spec.dtype, spec.dtype)
    draft = result.facts["draft"] if result else open_pair(pair).runtime("draft")
    runtime = f" draft {draft}" if draft.startswith("llama.cpp") else ""
    return f"{spec.pair}@{machine_name}/{dtype}{runtime}/{pair.place.threads}"


# -- notes -----------------------------------------------------------------------------
def note_of(cell: TableCell, result: CellResult) -> str:
    """What a reader must know of a cell's number: its settings and circumstances."""
    parts = [cell.calibrates] if cell.calibrates else []
    if cell.kind != "measured" and cell.spec.method != "autoregressive":
        parts.append(f"alpha {cell.spec.alpha:g}")
    parts += describe_settings(cell.spec, result)
    if result.gamma is not None:
        parts.append(_describe_gamma(cell, result))

    if cell.scaled_tokens and cell.stat.endswith("_runs"):
        parts.append(f"scaled to {cell.scaled_tokens} tokens")
    if cell.stat == "mat":
        parts.append("accepted drafts per target pass, no bonus")
    if cell.stat in ("run_length", "run_tokens"):
        parts.append("per run between rejections, over several passes")

    if cell.kind == "emulated":
        parts.append(f"virtual clock x{result.facts['over_virtual']:.3f}")
        parts.append(f"overruns {result.facts['overruns']:.1%}")
    if cell.kind == "measured":
        parts += _describe_measurement(cell.spec, result)
    return "; ".join(parts)


def describe_correction(estimate: Estimate, result: CellResult) -> str:
    """On how many of a cell's requests a number rests that were timed and replayed.

    Empty where none were replayed, and where a number does not rest on replays.
    """
    kind, correction = result.spec.kind, estimate.correction
    if correction is None:
        has_interval = result.replays is not None and estimate.resamples is not None
        if has_interval and len(quiet_requests(result)) < LEAST_QUIET:
            return "; replays are not used: too few requests were quiet"
        return ""
    by = f"x{correction.by:.3f}" if correction.is_factor else f"{correction.by:+.3g}"
    resamples = present(estimate.resamples)
    replayed = f"{resamples.requests}"
    if isfinite(resamples.population):
        replayed += f" of {resamples.population:.0f}"
    return f"; {correction.measured} {kind}, {replayed} replayed, correction {by}"


def describe_settings(spec: Spec, result: CellResult) -> list[str]:
    """A run's settings as chosen, what its world was told, its comparison."""
    chosen = result.facts.get("chosen", dict(spec.settings))
    described = []
    for name, value in chosen.items():
        described.append(_describe_setting(name, value, result))
    settings = ", ".join(described)
    if "of" in result.facts:
        settings += f", best of {result.facts['of']}"

    parts = [settings] if settings else []
    if spec.cancel:
        parts.append(f"cancel {spec.cancel}")
    if spec.per_token:
        parts.append(f"each further token fed: +{spec.per_token:.1%} of a pass")
    if spec.doubt:
        parts.append(f"assumed: doubt {spec.doubt:g}")
    if spec.ignore_eos:
        parts.append("end tokens ignored")
    if spec.length:
        parts.append(f"prompts of {spec.length} tokens")
    if "over" in result.facts:
        method, gamma = result.facts["over"]
        parts.append(f"over {method}, gamma {gamma}")
    return parts


def _describe_setting(name: str, value: object, result: CellResult) -> str:
    """A setting; of one that was "auto", also what it came to in the first request."""
    if value != "auto" or result.trace is None:
        return f"{name} {value}"
    return f"{name} auto: {Trace.from_json(result.trace).meta[name]}"


def _describe_gamma(cell: TableCell, result: CellResult) -> str:
    tried = result.facts.get("searched")
    if not tried:
        return f"gamma {result.gamma}"
    windows = [int(window) for window in tried]
    text = f"gamma {result.gamma}, best of {min(windows)}..{max(windows)}"
    if cell.kind != "virtual":
        text += " on the virtual clock"
    return text


def _describe_measurement(spec: Spec, result: CellResult) -> list[str]:
    pair = load_pair(str(spec.pair))
    parts = []
    if pair.target.shape:
        parts.append("dilated")
    if about(spec.method).needs_datastore and _looks_up_ours(pair):
        parts.append(LOOKS_UP_OURS)
    if "draft_size" in result.facts:
        parts.append(result.facts["draft_size"])
    if spec.task != "toy" and prompts.folder_to_measure(str(spec.task)):
        parts.append("official prompts")
    parts.append(f"draft in {result.facts['draft']}")
    parts.append(_describe_cost_ratio(result))
    parts.append(describe_departures(result))

    slowdowns = []
    for device, factor in sorted(result.facts["contention"].items()):
        slowdowns.append(f"{device} x{factor:.2f}")
    parts.append(f"both busy over alone: {', '.join(slowdowns)}")
    parts.append(f"load {result.facts['load']:g}")
    if "node" in result.facts:
        parts.append(f"on node {result.facts['node']}")
    return parts


def _looks_up_ours(pair: Pair) -> bool:
    """Whether a method finds tasks of ours; toys find their own text."""
    return pair.datastore is None and not pair.target.is_toy


def _describe_cost_ratio(result: CellResult) -> str:
    """c, with its interval where the cell's workers were measured with one."""
    measured = result.facts.get("cost_ratio")
    if measured is None:
        return f"c {result.c:.2f}"
    return str(CostRatio(**measured))


def describe_departures(result: CellResult) -> str:
    """For how many requests a measured output is plain decoding's.

    Of the others it says where each leaves plain decoding's first, and how close the
    target's choice was there. Sampled outputs are not compared.
    """
    if result.spec.temperature:
        return f"sampled at temperature {result.spec.temperature:g}"

    divergences = []
    for position, gap in zip(result.facts["differs"], result.facts["gap"], strict=True):
        if position is not None:
            divergences.append(
                f"first divergence after {position} tokens, top-2 logit gap {gap:.2g}"
            )
    n = len(result.stats)
    equal = f"output of plain decoding: {n - len(divergences)} of {n}"
    return "; ".join([equal, *divergences])
