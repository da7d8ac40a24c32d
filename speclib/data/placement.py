"""The places where a pair's models run: cores and GPUs, by role.

This module uses no model and no pair.
"""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict

from speclib.arguments import Count
from speclib.errors import BadValue


def _check_places(places: tuple[str, ...]) -> tuple[str, ...]:
    """Returns ``places``; raises ValueError for a malformed one."""
    alternatives = "|".join(places).split("|")
    for place in alternatives:
        if not re.fullmatch(r"cpu|core:\d+|cuda:\d+", place):
            raise ValueError(
                "give core:N, cpu or cuda:N, or alternatives, such as cuda:0|core:1"
            )
    return places


Places: TypeAlias = Annotated[tuple[str, ...], AfterValidator(_check_places)]


class Place(BaseModel):
    """The places of each role's devices, and the number of CPU threads per device.

    A place is ``core:N`` (a process pinned to that core), ``cpu`` or ``cuda:N``. It may
    also list alternatives, such as ``cuda:0|core:1``: the first available one is used.
    ``servers`` are the places of target-2, target-3, ...; by default these devices take
    the cores after the target's, and start over with the first core when none is left.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    draft: Places = ("cpu",)
    target: Places = ("cpu",)
    servers: tuple[Places, ...] = ()
    threads: Count = 1

    @property
    def has_alternatives(self) -> bool:
        """Whether any place depends on the number of GPUs."""
        for places in (self.draft, self.target, *self.servers):
            if any("|" in place for place in places):
                return True
        return False

    def on_machine_with(self, gpus: int) -> Place:
        """The same places, chosen from the alternatives for ``gpus`` GPUs."""
        return Place(
            draft=_first_available(self.draft, gpus),
            target=_first_available(self.target, gpus),
            servers=tuple(_first_available(places, gpus) for places in self.servers),
            threads=self.threads,
        )

    def of(self, role: str, index: int = 0) -> tuple[str, ...]:
        """The places of the ``index``-th device of ``role``, alternatives included."""
        if role == "draft":
            return self.draft
        if index == 0:
            return self.target
        if index <= len(self.servers):
            return self.servers[index - 1]
        return self._after_the_targets(index)

    def _after_the_targets(self, index: int) -> tuple[str, ...]:
        """The places of the ``index``-th target if ``servers`` does not name them."""
        if any(place.startswith("cuda") for place in self.target):
            raise BadValue(
                f"target-{index + 1} has no place: place.servers names "
                f"{len(self.servers)} besides the target's {self.target}; give "
                'each additional target its own GPUs, [["cuda:2"], ...]'
            )
        cores = [place for place in self.target if place.startswith("core:")]
        if not cores:
            return self.target
        numbers = [int(core.removeprefix("core:")) for core in cores]
        return tuple(f"core:{number + index * len(cores)}" for number in numbers)


def _first_available(places: tuple[str, ...], gpus: int) -> tuple[str, ...]:
    """The first alternative of each place on a machine with ``gpus`` GPUs."""
    return tuple(_choose(place.split("|"), gpus) for place in places)


def _choose(alternatives: list[str], gpus: int) -> str:
    """The first alternative that is not a GPU, or is one that exists; else the last."""
    *others, last = alternatives
    for place in others:
        if not place.startswith("cuda") or int(place.removeprefix("cuda:")) < gpus:
            return place
    return last
