"""A speed-up over the best that the same devices can do with plain decoding.

A method that reserves several devices is usually compared with plain decoding on one of
them. Here is the second comparison: with plain decoding on all devices that the method
reserves, as they do it best, if need be with some of them idle. Of a virtual number
that is what the stated cost of ``theory.plain_decoding`` says; of a measured one it is
run, as cells of their own::

    speed-up                   method's speed / plain decoding's on the target's devices
    over the same devices      method's speed / best plain speed on the method's devices

Where a cell is compared with another method than plain decoding, each of the two is
taken over the best of its own devices.
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

# Statistics that are a speed-up, and the speed that each is a quotient of.
SPEED_OF = {"speedup": "decode_speed", "speedup_e2e": "speed_with_prefill"}

# Statistics of virtual cells: the second number, passes bound by one thing or another.
IF_BOUND: dict[str, Bound] = {
    "speedup_if_bandwidth_bound": "bandwidth",
    "speedup_if_compute_bound": "compute",
}

ALL_CORES = "all-cores"  # the folder of pairs whose target has every core of a pair


class SecondNumber(NamedTuple):
    """A speed-up over the same devices, and what it was compared with.

    ``devices`` are those that the method reserves.
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

    None for a pair whose devices no pair under ``data/pairs/all-cores`` has, as for one
    with a GPU beside a core.
    """
    pair = load_pair(spec.pair)
    specs = []
    for name in names_under(DATA / "pairs" / ALL_CORES):
        plain_pair = load_pair(f"{ALL_CORES}/{name}")
        if _has_all_places_of(plain_pair, pair):
            specs.append(spec.plain_decoding.changed(pair=plain_pair.name))
    return tuple(specs)


def _has_all_places_of(plain_pair: Pair, pair: Pair) -> bool:
    """Whether the same target stands on just the places that all of ``pair`` has."""
    one, other = plain_pair.target, pair.target
    if (one.model, one.shape) != (other.model, other.shape):
        return False
    return places_of(plain_pair, drafts=False) == places_of(pair, drafts=True)


def measured_second_number(
    stat: str, own: CellRuns, plain: Sequence[CellRuns]
) -> SecondNumber | None:
    """A measured speed-up over the fastest plain decoding on the same cores.

    ``plain``: runs of ``plain_specs``, as far as there are any. None where they are
    needed and there are none, or where the method reserves more cores than they have.
    That they were not decoded in the same minutes as the method is not accounted for.
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
    beside = replace(own, stats=own.baseline)
    best, where = number_of(speed, beside), "the target's own devices"
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

    Passes are taken to be bound by bandwidth, as they are on GPUs; the note says what
    the number is if they were bound by arithmetic. None where nobody says what the
    devices of the latency file are.
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
    """How much faster plain decoding gets if it has the devices of a virtual run.

    Where the run is compared with another method, that one's devices count too: it is
    the quotient of both gains. ``chosen``: the settings of a choice among several.
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
