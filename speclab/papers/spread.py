"""How much something differs from one to the next, told by few of many groups.

Two numbers hardly tell their variance. Where there are many such groups, all of them
together tell it: their variances are averaged, weighted by degrees of freedom.

How far such an average may be trusted, two things say. It is itself estimated; the more
the groups' variances differ, the less it is worth (Satterthwaite). And a group may have
a variance of its own, other than the average, so that means which are far off come more
often than the average has them. A t distribution has such tails: its freedom is chosen
so that its fourth moment is that of means whose variances differ so. Both are put into
one number of degrees of freedom, 1 / (1 / first + 1 / second).

Groups may have numbers of the very same things, as settings of a method have that were
run on the same prompts. What one prompt does to its numbers, all of them show: in our
runs about half of a correction's variance is such. So they are put together first, and
count as one group (``of_the_same``).

Tried on groups of two or four numbers with a standard deviation that varies by half its
size from group to group, and with noise as skewed as an exponential's: from six groups
on, intervals of 95 % hold the mean in 94 to 98 % of trials. Of two or three groups of
two it is 90 to 95 %. (Before, with the pooled variance's plain freedom: 90 to 95 %.)

Source: Satterthwaite, An Approximate Distribution of Estimates of Variance Components,
Biometrics Bulletin 2, 1946.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np


class Spread(NamedTuple):
    """A variance, and the degrees of freedom that it was taken from."""

    variance: float
    freedom: float


def of_the_same(groups: Sequence[Spread]) -> Spread:
    """The spread of groups that each have a number of the very same things.

    What one thing does to its numbers, all groups show again. So their variances are
    averaged, and together they have no more degrees of freedom than one of them has.
    """
    freedom = sum(group.freedom for group in groups)
    if not freedom:
        return Spread(0.0, 0)
    variance = sum(group.variance * group.freedom for group in groups) / freedom
    return Spread(variance, max(group.freedom for group in groups))


def pooled_spread(groups: Sequence[Spread]) -> Spread | None:
    """The variance of all groups together; None where none has two numbers to compare.

    ``groups``: each with the variance of its own numbers, and its degrees of freedom.
    """
    counting = [group for group in groups if group.freedom > 0]
    if not counting:
        return None
    variances = np.array([group.variance for group in counting])
    freedoms = np.array([group.freedom for group in counting])
    freedom = float(freedoms.sum())
    mean = float(variances @ freedoms) / freedom
    if len(counting) == 1 or mean == 0:
        return Spread(mean, freedom)

    # The squares of how far each variance is from their mean, in units of the mean.
    off = np.square(variances / mean - 1) * len(counting) / (len(counting) - 1)
    of_the_mean = float(off @ np.square(freedoms / freedom))
    first = min(freedom, 2 / of_the_mean if of_the_mean else inf)

    by_chance = float(np.mean(2 / freedoms))
    of_the_groups = max(0.0, (float(off.mean()) - by_chance) / (1 + by_chance))
    second = 4 + 2 / of_the_groups if of_the_groups else inf
    return Spread(mean, 1 / (1 / first + 1 / second))
