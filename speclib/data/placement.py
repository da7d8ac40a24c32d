"""Where the models of a pair are computed: cores and GPUs, by role. Knows no model and no pair."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from speclib.errors import SpeclibError


class Place(BaseModel):
    """Places per role: ``core:N`` (pinned), ``cpu``, ``cuda:N``, or alternatives, of which the
    first that there is counts: ``cuda:0|core:1``; CPU threads per device.
    ``servers``: those of target-2, target-3, ...; left out, they take the cores after the target's,
    and begin again with the first when there are no more."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    draft: tuple[str, ...] = ("cpu",)
    target: tuple[str, ...] = ("cpu",)
    servers: tuple[tuple[str, ...], ...] = ()
    threads: int = 1

    def of(self, role: str, index: int = 0) -> tuple[str, ...]:
        """The places of the ``index``-th device of ``role``."""
        if role == "draft" or index == 0:
            return tuple(map(_there, getattr(self, role)))
        if index <= len(self.servers):
            return tuple(map(_there, self.servers[index - 1]))
        first = self.of("target")
        if any(p.startswith("cuda") for p in first):
            raise SpeclibError(
                f"target-{index + 1} has no place: place.servers names "
                f"{len(self.servers)} besides the target's {first}; give "
                'each further target GPUs of its own, [["cuda:2"], ...]'
            )
        cores = [int(p.removeprefix("core:")) for p in first if p.startswith("core:")]
        return tuple(f"core:{c + index * len(cores)}" for c in cores) or first


def _there(place: str) -> str:
    """The first alternative of ``place`` that this machine has; nobody asks for the last."""
    *others, last = place.split("|")
    return next((p for p in others if not p.startswith("cuda") or _has(p)), last)


def _has(gpu: str) -> bool:
    from speclib.models.gpus import count

    return int(gpu.removeprefix("cuda:")) < count()
