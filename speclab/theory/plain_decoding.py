"""Plain decoding on several equal devices: the seconds of a pass by tensor parallelism.

The devices share each layer. A part of the pass is divided by their number, the rest
stays as it is, and the layers' parts must be joined::

    one device     | rest |         divided         |
    two devices    | rest |   divided/2  | joining |
    four devices   | rest | div/4 | joining |

What is divided depends on what binds a pass that is fed one token:

- ``bandwidth``: every weight is read once from memory. Each device brings a memory of
  its own, so the reading is divided. Launching kernels is not. So it is on GPUs: an
  A100 reads 1.7 TB/s, and does 312 tera-operations in the same second, of which a pass
  over one token needs two per weight.
- ``compute``: arithmetic is all there is, and all of it is divided. It is the most
  that more devices can do, as cores that only wait for themselves.
- ``shared memory``: the devices read the weights over one bus that one of them fills
  already, as cores of a processor may. Nothing is divided.

Source: ours. That a pass is bound by reading weights, and that tensor parallelism
divides it, is the roofline of Pope et al. 2023 (Efficiently Scaling Transformer
Inference, section 3). Differences from it: the joining has a fixed time per layer,
since the messages of one token are short; and what is not divided is no model, but what
is left of a printed time.

Knows no hardware: bandwidths and seconds are arguments.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from speclib.errors import BadValue

Bound = Literal["bandwidth", "compute", "shared memory"]
BOUNDS: tuple[Bound, ...] = get_args(Bound)


class PlainPass(NamedTuple):
    """A pass of plain decoding that several equal devices may share.

    ``alone`` is its seconds on one device, ``divided`` those of them that are divided
    by the number of devices. ``joining`` is the seconds that putting the layers' parts
    together adds where there are several.
    """

    alone: float
    divided: float
    joining: float

    def seconds(self, devices: int) -> float:
        """Seconds of the pass if exactly so many devices share it.

        Raises BadValue for a number of devices below 1.
        """
        if devices < 1:
            raise BadValue(f"devices is {devices}: give at least 1")
        if devices == 1:
            return self.alone
        rest = self.alone - self.divided
        return rest + self.divided / devices + self.joining

    def fewest_of_the_best(self, devices: int) -> int:
        """How many of up to so many devices make the pass shortest."""
        numbers = range(1, devices + 1)
        return min(numbers, key=self.seconds)

    def best_seconds(self, devices: int) -> float:
        """Seconds of the pass by as many of so many devices as make it shortest."""
        return self.seconds(self.fewest_of_the_best(devices))

    def gain(self, devices: int) -> float:
        """How many times as fast as one device so many are, if they need not all help.

        At least 1: a device that only costs time is left idle.
        """
        return self.alone / self.best_seconds(devices)


def plain_pass(
    bound: Bound, alone: float, reading: float, layers: int, join: float
) -> PlainPass:
    """The pass of a model that takes ``alone`` seconds on one device.

    ``reading`` is the seconds in which one device reads all weights, ``join`` those
    in which the parts of one of the ``layers`` are put together. Raises BadValue for
    another ``bound``, and for times that are not possible.
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
