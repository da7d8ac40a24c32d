"""What it would take for an interval to leave out a limit: more requests, or replays.

Taken is that neither the number nor how much requests differ would change. A number
that rests on replays has two parts (see ``two_phase``), and so there are two answers:

    measured requests   narrow what is open about the correction
    replays             narrow what is open about the task, up to MOST_REPLAYS of them

A count that replays have exactly has no correction. Then measured requests are only
witnesses: the more of them agree, the fewer of the replayed counts are in doubt.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ceil, log, log1p, sqrt

import numpy as np

from speclab.experiment.spec import MOST_REPLAYS, present

from .bootstrap import Correction, Resamples, share_left_open
from .estimates import Estimate, t_factor, t_quantile

MOST_REQUESTS = 100_000  # more than so many are not worth counting
MAY_DIFFER = 0.05  # the chance that more counts are replayed wrongly than it is taken


@dataclass(frozen=True)
class Reach:
    """A number, and the limit that its interval is to leave out."""

    estimate: Estimate
    limit: float

    @property
    def requests_needed(self) -> int | None:
        """The fewest requests whose interval would not reach the limit.

        None where MOST_REQUESTS are too few, as for a number that is the limit itself.
        Of a number that rests on replays, it is the fewest that would have to be
        measured; None where the replays that there are leave it open.
        """
        if not self._rests_on_replays:
            return self._requests_without_replays()
        if self._is_replayed_to_the_end:
            return self.requests_at_last
        return self._measured_beside(self.estimate.half_width_of_requests)

    @property
    def requests_at_last(self) -> int | None:
        """The same, once as many are replayed as there can be."""
        if not self._rests_on_replays:
            return self._requests_without_replays()
        if self._half_width_at_last >= self._distance:
            return self._witnesses_needed()
        return self._measured_beside(self._half_width_at_last)

    @property
    def lacks_replays(self) -> bool:
        """Whether more replays would help.

        They would where too few replays alone take half of what uncertainty (as a
        variance) there may be; more measured requests are then of little use.
        """
        low, high = self.estimate.interval
        is_open = low <= self.limit <= high
        if not is_open or not self._rests_on_replays or self._is_replayed_to_the_end:
            return False
        return 2 * self.estimate.half_width_of_requests**2 > self._distance**2

    @property
    def is_impossible(self) -> bool:
        """Whether as many replays as there can be would still reach the limit,
        however many requests were measured.
        """
        if not self._rests_on_replays or self.estimate.is_measured_once:
            return False
        is_near = self._half_width_at_last >= self._distance
        return is_near and self._witnesses_needed() is None

    # -- without replays ---------------------------------------------------------------
    def _requests_without_replays(self) -> int | None:
        of_one_request = 0.0
        if not self.estimate.is_exact:
            of_one_request = self.estimate.standard_error * sqrt(
                self._resamples.requests
            )
        enough = np.flatnonzero(_half_widths() * of_one_request < self._distance)
        return int(enough[0]) + 2 if len(enough) else None

    # -- replayed to the end -----------------------------------------------------------
    @property
    def _is_replayed_to_the_end(self) -> bool:
        return self.estimate.is_exact or self._resamples.requests >= self._most_replays

    @property
    def _most_replays(self) -> float:
        return min(MOST_REPLAYS, self._resamples.population)

    @property
    def _half_width_at_last(self) -> float:
        """What the requests leave open, replayed to the end."""
        error = self.estimate.standard_error
        if error == 0:
            return 0.0
        replayed = max(self._resamples.requests, self._most_replays)
        error *= sqrt(self._share_that_stays)
        return error * float(t_factor(int(replayed)))

    @property
    def _share_that_stays(self) -> float:
        """The part of the requests' variance that would stay, replayed to the end."""
        if self._is_replayed_to_the_end:
            return 1.0
        replayed, most = self._resamples.requests, self._most_replays
        return replayed / most * self._left_open(most) / self._left_open(replayed)

    def _left_open(self, replayed: float) -> float:
        """The part of their variance that so many replayed requests leave open."""
        left_open = share_left_open(replayed, self._resamples.population)
        return max(self._resamples.share_in_doubt, left_open)

    def _witnesses_needed(self) -> int | None:
        """How many measured requests put few enough counts in doubt.

        None where that does not help. After M requests that agree 1 - 0.05 ** (1 / M)
        of the counts are in doubt (see ``two_phase``).
        """
        in_doubt = self._resamples.share_in_doubt
        if not 0 < in_doubt < 1:
            return None
        most = self._most_replays
        whole_variance = self._half_width_at_last**2 / self._left_open(most)
        bearable = self._distance**2 / whole_variance
        if bearable <= share_left_open(most, self._resamples.population):
            return None
        agreeing = log(MAY_DIFFER) / log1p(-in_doubt)
        further = ceil(log(MAY_DIFFER) / log1p(-bearable) - agreeing)
        count = self._correction.measured + further
        return count if count <= MOST_REQUESTS else None

    # -- measured requests -------------------------------------------------------------
    def _measured_beside(self, half_width_of_requests: float) -> int | None:
        """How many measured requests leave out the limit, beside what replays leave
        open; None where these alone leave too much.
        """
        left = self._distance**2 - half_width_of_requests**2
        if left <= 0 or self._half_width_of_measured(MOST_REQUESTS) ** 2 > left:
            return None
        fewest, most = self._correction.measured, MOST_REQUESTS
        while fewest < most:
            middle = (fewest + most) // 2
            if self._half_width_of_measured(middle) ** 2 > left:
                fewest = middle + 1
            else:
                most = middle
        return fewest

    def _half_width_of_measured(self, requests: int) -> float:
        """What the correction would leave open if so many requests were measured.

        Taken is that the cells by which it is judged grow alike.
        """
        measured, freedom = self._correction.measured, self._correction.freedom
        if self._correction.error == 0:
            return 0.0
        if measured > 1:
            freedom *= (requests - 1) / (measured - 1)
        error = self._correction.error * sqrt(measured / requests)
        return error * float(t_quantile(freedom))

    # -- the number --------------------------------------------------------------------
    @property
    def _distance(self) -> float:
        return self.estimate.distance_to(self.limit)

    @property
    def _rests_on_replays(self) -> bool:
        return self.estimate.correction is not None

    @property
    def _resamples(self) -> Resamples:
        return present(self.estimate.resamples)

    @property
    def _correction(self) -> Correction:
        return present(self.estimate.correction)


@cache
def _half_widths() -> np.ndarray:
    """Half the interval of 2, 3, ... MOST_REQUESTS requests with a deviation of 1."""
    n = np.arange(2, MOST_REQUESTS + 1)
    half_widths: np.ndarray = t_factor(n) / np.sqrt(n)
    return half_widths
