"""Plain decoding on several equal devices: how long a tensor-parallel pass takes.

The devices divide each layer. Part of the pass's time is divided by the number of
devices, the rest does not change, and the layers' parts must be joined::

    one device     | rest |         divided         |
    two devices    | rest |   divided/2  | joining |
    four devices   | rest | div/4 | joining |

The divided part depends on what limits a pass over one token:

- ``bandwidth``: every weight is read once from memory. Each device has its own memory,
  so the reading is divided, but launching kernels is not. This is the case on GPUs: in
  one second, an A100 can read 1.7 TB and compute 312 tera-operations, while a pass over
  one token needs only two operations per weight.
- ``compute``: the pass is all arithmetic, and all of it is divided. This is an upper
  bound on the gain from more devices, for example cores that share no bottleneck.
- ``shared memory``: the devices read the weights over one bus, which a single device
  already saturates. An example is the cores of a processor. Nothing is divided.

Source: ours. Pope et al. 2023 (Efficiently Scaling Transformer Inference, section 3)
describe the roofline: a pass is bound by reading weights, and tensor parallelism
divides the reading. Our model differs from theirs in two ways. Joining takes a fixed
time per layer, since the messages for one token are short. The undivided part is not
modelled: it is the remainder of a printed time.

This module does not depend on any hardware: bandwidths and times are arguments.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from speclib.errors import BadValue

Bound = Literal["bandwidth", "compute", "shared memory"]
BOUNDS: tuple[Bound, ...] = get_args(Bound)


class PlainPass(NamedTuple):
    """A pass of plain decoding that several equal devices may share.

    ``alone`` is its time on one device, in seconds, and ``divided`` the part of that
    time that is divided by the number of devices. With several devices, joining the
    layers' parts adds ``joining`` seconds.
    """

    alone: float
    divided: float
    joining: float

    def seconds(self, devices: int) -> float:
        """How long the pass takes on exactly ``devices`` devices, in seconds.

        Raises BadValue for a number below 1.
        """
        if devices < 1:
            raise BadValue(f"devices is {devices}: give at least 1")
        if devices == 1:
            return self.alone
        rest = self.alone - self.divided
        return rest + self.divided / devices + self.joining

    def fewest_of_the_best(self, devices: int) -> int:
        """The smallest number, up to ``devices``, that makes the pass shortest."""
        numbers = range(1, devices + 1)
        return min(numbers, key=self.seconds)

    def best_seconds(self, devices: int) -> float:
        """How long the pass takes on ``fewest_of_the_best(devices)``, in seconds."""
        return self.seconds(self.fewest_of_the_best(devices))

    def gain(self, devices: int) -> float:
        """The speed-up over one device if up to ``devices`` devices are used.

        It is at least 1, because devices that would only cost time stay idle.
        """
        return self.alone / self.best_seconds(devices)


def plain_pass(
    bound: Bound, alone: float, reading: float, layers: int, join: float
) -> PlainPass:
    """The pass of a model that takes ``alone`` seconds on one device.

    ``reading``: how long one device takes to read all weights, in seconds. ``join``:
    how long it takes to join the parts of one of the ``layers``, in seconds. Raises
    BadValue for an unknown ``bound``, and for impossible times.
    """
    if bound not in BOUNDS:
        known = ", ".join(BOUNDS)
        raise BadValue(f"bound is {bound!r}: give one of {known}")
    if alone <= 0 or reading < 0 or join < 0:
        raise BadValue(
            f"seconds are {alone} alone, {reading} reading, {join} joining a layer: "
            "give a pass above 0 and parts of at least 0"
        )
    divided = {
        "bandwidth": min(reading, alone),
        "compute": alone,
        "shared memory": 0.0,
    }
    return PlainPass(alone, divided[bound], layers * join)
