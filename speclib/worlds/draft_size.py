"""How large a draft must be here, for c = t_target / t_draft to be as it is wanted.

A stand-in costs what its shape costs, and what that is depends on the machine: the same
two shapes are a c of 2.5 on one processor and of 2.1 on another. Dilation leaves a
model's function as it is, whatever the shape (see ``models.dilate``). So the shape may
be chosen on each machine, and no token changes.

What is chosen is what a pass of the draft costs, and there are two dials for it. The
number of layers alone would be too coarse, as one of four layers is a quarter of c. The
ffn alone would not reach far enough, as it cannot be narrower than the trained one. So
of all shapes of a cost, the one is taken whose layers are most like those of the pair's
file: their number is the nearest that there is, and their ffn makes up for the rest::

    layers of the file's ffn      3           4           5
    cost                      ----|-----------|-----------|----
                                       ^
                                       3 layers, of a somewhat wider ffn

The target stays as it is, and with it plain decoding: the numbers of other pairs with
this target, on all cores or on shared ones, can be compared as before.

Each try measures c. The second one costs less or more in proportion to how far c was
from the wanted one. Costs are counted in weights that are read, and what else a pass
takes is guessed (see ``PASS`` and ``LAYER``). Where that was wrong, the ffn is changed
until c is right: 1 / c is a draft pass in target passes, and grows evenly with it.

The same two models, built and measured once more, have a c that differs by some
hundredths, which is in no interval of a measurement. So what comes near is measured
twice, and the mean counts.

Knows no process, no model and no file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple

from .cost_ratio import CostRatio

WITHIN = 0.03  # of the wanted c: what counts as reached
ENOUGH = 0.02  # of it: no further try is made
SURE = 0.05  # of c: a wider interval is that of a machine that was not left alone
MOST_TRIES = 4
CHANNELS = 32  # an ffn is a multiple of them
LARGEST = 3  # times the file's number of layers, and its ffn

# What a pass takes besides reading its layers' weights, and what each layer takes, as
# so many weights more: from six pairs on one core of a Xeon, in float32. Only the
# number of tries rests on it.
PASS = 5e6
LAYER = 1e6
UNSURE = 3.0  # by what factor the guess may be wrong; what is further off is noise


class Shape(NamedTuple):
    """Layers, width, heads and ffn, as a pair file states them."""

    layers: int
    width: int
    heads: int
    ffn: int

    @property
    def cost(self) -> float:
        """About what a pass takes, in weights."""
        return PASS + self.layers * self._cost_of_layer

    @property
    def _cost_of_layer(self) -> float:
        return self._attention + self.ffn * self._channel

    @property
    def _attention(self) -> float:
        """A layer without its ffn: queries, keys, values and outputs."""
        return LAYER + 4 * self.width * self.width

    @property
    def _channel(self) -> int:
        """A channel of a layer's ffn: gate, up and down."""
        return 3 * self.width

    @property
    def cost_of_channel(self) -> float:
        """A channel of every layer's ffn."""
        return self.layers * self._channel

    def of_cost(self, cost: float, least: Shape) -> Shape:
        """The shape of about this cost whose layers are most like these.

        ``least``: it has no fewer layers, and no smaller ffn.
        """
        layers = round((cost - PASS) / self._cost_of_layer)
        layers = min(max(layers, least.layers), LARGEST * self.layers)

        channels = ((cost - PASS) / layers - self._attention) / self._channel
        ffn = CHANNELS * round(channels / CHANNELS)
        ffn = min(max(ffn, least.ffn), LARGEST * self.ffn)
        return self._replace(layers=layers, ffn=ffn)


@dataclass(frozen=True)
class DraftSize:
    """The shape that was chosen for a draft.

    ``wanted``: c, as it should be. ``reached``: as it was measured with this shape.
    ``tries``: how many shapes were measured.
    """

    shape: Shape
    wanted: float
    reached: CostRatio
    tries: int

    @property
    def error(self) -> float:
        """How far c is from the wanted one, as a share of that."""
        return abs(self.reached.value / self.wanted - 1)

    @property
    def is_reached(self) -> bool:
        """Whether c is the wanted one, as nearly as can be asked for."""
        return self.error <= WITHIN

    def __str__(self) -> str:
        layers, ffn = self.shape.layers, self.shape.ffn
        text = f"draft of {layers} layers, ffn {ffn}, for c {self.wanted:.3g}"
        if not self.is_reached:
            text += f" (c {self.reached.value:.3g} is the nearest that was found)"
        return text


def find_draft_size(
    file: Shape,
    least: Shape,
    wanted: float,
    measure: Callable[[Shape], CostRatio],
    start: Shape | None = None,
) -> DraftSize | None:
    """Tries shapes until c is the wanted one; else the nearest of those tried.

    None where the machine was not left alone, so that nobody can tell c.

    ``file``: the shape of the pair's file. ``least``: the trained model's own, which is
    the smallest that it can be dilated to. ``measure``: c with such a draft, the models
    built anew. ``start``: what is tried first; None: the file's.
    """
    tried: list[DraftSize] = []
    shape = start or file
    while len(tried) < MOST_TRIES:
        ratios = [measure(shape)]
        if abs(ratios[0].value / wanted - 1) <= WITHIN:
            ratios.append(measure(shape))
        if max(ratio.width for ratio in ratios) > SURE:
            return None
        tried.append(DraftSize(shape, wanted, _mean(ratios), len(tried) + 1))
        if tried[-1].error <= ENOUGH:
            break

        shape = _next_shape(tried, file, least)
        if shape in [earlier.shape for earlier in tried]:
            break  # the next step of the dial would be too long, or there is none

    return replace(_nearest(tried), tries=len(tried))


def _mean(ratios: Sequence[CostRatio]) -> CostRatio:
    """Their mean, in an interval that has all of theirs."""
    return CostRatio(
        value=fmean(ratio.value for ratio in ratios),
        low=min(ratio.low for ratio in ratios),
        high=max(ratio.high for ratio in ratios),
        trials=sum(ratio.trials for ratio in ratios),
        target_seconds=fmean(ratio.target_seconds for ratio in ratios),
    )


def _nearest(tried: Sequence[DraftSize]) -> DraftSize:
    return min(tried, key=lambda candidate: candidate.error)


def _next_shape(tried: Sequence[DraftSize], file: Shape, least: Shape) -> Shape:
    """What to try after ``tried``: any shape at first, later another ffn alone."""
    nearest = _nearest(tried)
    shape, c, wanted = nearest.shape, nearest.reached.value, nearest.wanted
    by_cost = file.of_cost(shape.cost * c / wanted, least)
    if len(tried) == 1:
        return by_cost

    channels = (1 / wanted - 1 / c) / _growth(tried)
    ffn = CHANNELS * round((shape.ffn + channels) / CHANNELS)
    if least.ffn <= ffn <= LARGEST * file.ffn:
        return shape._replace(ffn=ffn)
    return by_cost


def _growth(tried: Sequence[DraftSize]) -> float:
    """By how much 1 / c grows with each channel of an ffn, at the nearest of ``tried``.

    As the last other try of so many layers shows it; else, and where that cannot be, as
    it is guessed.
    """
    nearest = _nearest(tried)
    shape, draft_pass = nearest.shape, 1 / nearest.reached.value
    guess = draft_pass * shape.cost_of_channel / shape.cost

    growth = guess
    for other in tried:
        channels = other.shape.ffn - shape.ffn
        if other.shape.layers == shape.layers and channels:
            growth = (1 / other.reached.value - draft_pass) / channels
    return min(max(growth, guess / UNSURE), guess * UNSURE)
