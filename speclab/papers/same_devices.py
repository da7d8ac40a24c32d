"""A speed-up over the best plain decoding on the same devices.

A method that reserves several devices is usually compared with plain decoding on one of
them. This module makes the second comparison: with the fastest plain decoding on all
devices that the method reserves, even if that leaves some of them idle. For a virtual
number, the cost model in ``theory.plain_decoding`` gives this baseline; for a measured
one it is run, as separate cells::

    speed-up                   method's speed / plain decoding's on the target's devices
    over the same devices      method's speed / best plain speed on the method's devices

If a cell is compared with a method other than plain decoding, each of the two methods
is first divided by the best plain decoding on its own devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from speclab.runs.rows import CellRuns, key_of
from speclab.runs.spec import MeasuredSpec, VirtualSpec
from speclab.theory.plain_decoding import Bound
from speclib.data.latency import load_latency
from speclib.data.pairs import Pair, load_pair
from speclib.data.toml_files import names_under
from speclib.methods import about
from speclib.paths import DATA

from .devices import hardware_of, places_of, reserved_devices
from .numbers import Number, divide
from .statistics import number_of

# Statistics that are speed-ups, and the speed that each of them divides.
SPEED_OF = {"speedup": "decode_speed", "speedup_e2e": "speed_with_prefill"}

# Statistics of virtual cells: the second number, by what bounds a forward pass.
IF_BOUND: dict[str, Bound] = {
    "speedup_if_bandwidth_bound": "bandwidth",
    "speedup_if_compute_bound": "compute",
}

ALL_CORES = "all-cores"  # folder of pairs whose target has all cores of another pair


class SecondNumber(NamedTuple):
    """A speed-up over the same devices, with a note on its baseline.

    ``devices`` is the number that the method reserves.
    """

    number: Number
    devices: int
    note: str


def is_speedup(stat: str) -> bool:
    """Whether a statistic has a second number."""
    return stat in SPEED_OF


# -- plain decoding on all cores, measured ---------------------------------------------
def plain_specs(spec: MeasuredSpec) -> tuple[MeasuredSpec, ...]:
    """Measured cells of plain decoding on all cores of a cell's pair.

    Empty if no pair under ``data/pairs/all-cores`` has exactly these devices, for
    example if a pair has a GPU and a core.
    """
    pair = load_pair(spec.pair)
    specs = []
    for name in names_under(DATA / "pairs" / ALL_CORES):
        plain_pair = load_pair(f"{ALL_CORES}/{name}")
        if _has_all_places_of(plain_pair, pair):
            specs.append(spec.plain_decoding.changed(pair=plain_pair.name))
    return tuple(specs)


def _has_all_places_of(plain_pair: Pair, pair: Pair) -> bool:
    """Whether the same target runs on exactly the places that all of ``pair`` uses."""
    one, other = plain_pair.target, pair.target
    if (one.model, one.shape) != (other.model, other.shape):
        return False
    return places_of(plain_pair, drafts=False) == places_of(pair, drafts=True)


def measured_second_number(
    stat: str, own: CellRuns, plain: Sequence[CellRuns]
) -> SecondNumber | None:
    """A measured speed-up over the fastest plain decoding on the same cores.

    ``plain``: the available runs of ``plain_specs``. Returns None if they are needed
    and missing, or if the method reserves more cores than they have. They were not
    decoded in the same minutes as the method; nothing corrects for that.
    """
    devices = reserved_devices(own.spec, own.settings)
    if devices == 1:
        note = "reserves one device, as plain decoding does"
        return SecondNumber(number_of(stat, own), devices, note)
    comparable = [
        runs for runs in plain if reserved_devices(runs.spec, runs.settings) == devices
    ]
    if not comparable:
        return None
    speed = SPEED_OF[stat]
    baseline = replace(own, stats=own.baseline)
    best, where = number_of(speed, baseline), "the target's own devices"
    for runs in comparable:
        number = number_of(speed, runs)
        if number.value > best.value:
            best, where = number, key_of(runs.spec).on
    note = (
        f"{devices} devices decode plainly at best on {where}, {best.value:.4g} tok/s"
    )
    return SecondNumber(divide(number_of(speed, own), best), devices, note)


# -- plain decoding on all devices, by its cost ----------------------------------------
def virtual_second_number(
    spec: VirtualSpec, speedup: Number, chosen: Mapping[str, Any]
) -> SecondNumber | None:
    """A virtual speed-up over plain decoding on the same devices.

    We assume that forward passes are bound by bandwidth, as they are on GPUs; the note
    gives the number for passes bound by compute. Returns None if the latency file's
    devices are not described.
    """
    if hardware_of(spec).layers == 0:
        return None
    devices = reserved_devices(spec, chosen)
    gain = plain_gain(spec, chosen, "bandwidth")
    by_compute = speedup.value / plain_gain(spec, chosen, "compute")
    note = (
        f"plain decoding on {_write_devices(devices)} is {gain:.3f} times as fast as "
        "on those of the baseline, passes bound by bandwidth; bound by compute it "
        f"would be {by_compute:.3g}"
    )
    return SecondNumber(speedup.times(1 / gain), devices, note)


def _write_devices(devices: int) -> str:
    return "one device" if devices == 1 else f"{devices} devices"


def plain_gain(spec: VirtualSpec, chosen: Mapping[str, Any], bound: Bound) -> float:
    """How much faster plain decoding gets with the devices of a virtual run.

    If the run is compared with another method, that method's devices count too: the
    result is the quotient of both gains. ``chosen``: the settings that a search picked.
    """
    hardware = hardware_of(spec)
    own = load_latency(spec.latency).target(1)
    alone = load_latency(hardware.alone or spec.latency).target(1)
    plain = hardware.plain_pass(alone, bound)
    best = plain.best_seconds(reserved_devices(spec, chosen))
    if spec.over is None:
        return own / best
    drafts = about(spec.baseline.method).uses_draft
    return plain.best_seconds(hardware.devices(drafts)) / best
