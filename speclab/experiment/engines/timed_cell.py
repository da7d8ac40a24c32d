"""A timed cell under way, emulated or measured: what is known of its requests so far.

What is known is on disk at once. A request may be run again where other programs kept
the machine busy beside it; its quietest run stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from speclab.experiment import cache, other_load
from speclab.experiment.limits import Limits
from speclab.experiment.spec import Spec, present
from speclib.trace.metrics import Stats


@dataclass(kw_only=True)
class TimedHeader:
    """What is stored of a cell besides its requests.

    ``seconds``: what they took. ``trace``: of the first one, as JSON.
    """

    spec: dict[str, Any]
    machine: str
    created: str
    seconds: float = 0.0
    trace: str = ""


@dataclass(frozen=True, kw_only=True)
class TimedRequest:
    """What one request gave.

    others   the share of the machine that other programs took meanwhile
    tries    how often it was run; of several, the one with the fewest others stays
    """

    stats: Stats
    others: float = 0.0
    tries: int = 1


Header = TypeVar("Header", bound=TimedHeader)
Request = TypeVar("Request", bound=TimedRequest)


class TimedCell(Generic[Header, Request]):
    """A cell with the key that it is stored under, as far as the cache has it.

    header     None until the cell is prepared
    requests   those that are done, in order
    """

    def __init__(
        self,
        spec: Spec,
        key: str,
        header_type: type[Header],
        request_type: type[Request],
    ):
        self.spec = spec
        self.key = key
        self.header: Header | None = None
        self.requests: list[Request] = []
        self._beyond: Sequence[Request] = ()  # what a larger cell has more
        stored = cache.load(key, header_type, request_type)
        if stored is not None:
            self.header = stored.header
            self.requests = stored.lines[: spec.requests]
            self._beyond = stored.lines[spec.requests :]

    def missing(self, limits: Limits) -> list[int]:
        """The numbers of the requests that are still to be done."""
        return list(range(len(self.requests), limits.requests_of(self.spec)))

    def disturbed(self, most_tries: int) -> list[int]:
        """The numbers of the requests beside which others kept the machine busy.

        Left out are those that were run ``most_tries`` times.
        """
        return [
            number
            for number, request in enumerate(self.requests)
            if other_load.is_disturbed(request.others) and request.tries < most_tries
        ]

    def keep(self, number: int, request: Request) -> bool:
        """Keeps a request that is done, for the first time or once more.

        Of two tries the one with fewer others beside it stays. Returns whether that is
        this one. Nothing is written yet: see ``save``.
        """
        if number == len(self.requests):
            self.requests.append(request)
            return True

        before = self.requests[number]
        quieter = min(before, request, key=lambda run: run.others)
        self.requests[number] = replace(quieter, tries=before.tries + 1)
        return quieter is request

    def save(self) -> None:
        """Stores what is known of the cell."""
        requests = [*self.requests, *self._beyond]
        cache.save(self.key, present(self.header), requests)
