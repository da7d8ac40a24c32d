"""Specs: each defines one cell, that is, a method on a latency file or a pair.

    VirtualSpec    toy models on the virtual clock
    EmulatedSpec   toy models in real processes, timed by a latency file
    MeasuredSpec   real models on this machine

This module depends on methods, but not on papers.
"""

from __future__ import annotations

from itertools import product
from math import ceil
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from speclab.peers.known_peers import EXTERNAL
from speclib.errors import unknown_name
from speclib.methods import METHODS, takes_gamma

FromC = Annotated[str, Field(pattern=r"^c[+-]\d{1,3}$")]
Window = int | Literal["auto", "best"] | FromC | None
Choice = tuple[int, ...]
Setting = bool | str | int | float

FIRST_PART = 0.4  # of a cell's requests


class WorkerPool(NamedTuple):
    """The workers that a measured cell needs; cells with the same needs share them.

    ``cancel``: how a worker handles a cancelled operation.
    """

    pair: str
    dtype: str
    servers: int
    cancel: str


class AnySpec(BaseModel):
    """The fields of every cell.

    method       the method's name; in a measured cell, it may be a peer's name instead
    gamma        its window: a number; "auto", which is round(c); "c-2", which is two
                 less; "best", which is searched for on the virtual clock; None for a
                 method without a window
    settings     the method's settings, as (name, value) pairs
    requests     number of requests, with ``tokens`` tokens each
    cancel       the world's policy for cancelled operations; None: its default
    temperature, seed
                 for sampling
    with_tail    whether the method drafts beyond the last token; some published code
                 counts these drafts (see ``traces.counts.with_tail``)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: str
    gamma: Window | Choice = None
    settings: tuple[tuple[str, Any], ...] = ()
    cancel: Literal["immediate", "after-op"] | None = None
    requests: int = 8
    tokens: int = 64
    temperature: float = 0.0
    seed: int = 0
    with_tail: bool = False

    @model_validator(mode="after")
    def _names_a_method_and_its_window(self) -> Self:
        if self.is_peer:
            if self.gamma or self.settings or self.temperature:
                raise ValueError(
                    f"{self.method!r} is measured greedily, without settings"
                )
            return self
        if self.method not in METHODS:
            raise unknown_name(f"unknown method {self.method!r}", self.method, METHODS)
        has_gamma = self.gamma is not None
        if has_gamma != takes_gamma(self.method):
            raise ValueError(f"gamma is {self.gamma!r} for method {self.method!r}")
        return self

    @property
    def is_peer(self) -> bool:
        """Whether the method is another library's decoding (see ``speclab.peers``)."""
        return False

    def changed(self, **changes: object) -> Self:
        """A copy of this cell with changed fields, validated."""
        return type(self)(**(self.model_dump() | changes))

    @property
    def plain_decoding(self) -> Self:
        """Plain decoding of the same requests on the same pair or latency file."""
        return self.changed(
            method="autoregressive",
            gamma=None,
            settings=(),
            cancel=None,
            with_tail=False,
        )

    def _called(self, **named: object) -> str:
        """The method's call, with the ``named`` settings that are set."""
        given: dict[str, object] = {}
        if self.gamma is not None:
            given["gamma"] = self.gamma
        given |= dict(self.settings)
        given |= {name: value for name, value in named.items() if value}
        arguments = ", ".join(f"{name}={value}" for name, value in given.items())
        return f"{self.method}({arguments})"


class ToySpec(AnySpec):
    """A cell of toy models; a latency file specifies how long their passes take.

    A tuple for ``gamma`` or for a setting is a choice: the fastest value is used.

    latency      a file under data/latency
    alpha        probability that draft and target agree
    over         (method, gamma) of the baseline; None: plain decoding
    per_token    how much each token after the first lengthens a pass, as a share of a
                 pass over one token
    doubt        how well a draft predicts where it is wrong (see ``Toy``)
    batch        number of requests decoded at a time; ``doubt`` and ``batch`` are only
                 for the virtual clock
    """

    kind: Literal["virtual", "emulated"]
    settings: tuple[tuple[str, Setting | tuple[Setting, ...]], ...] = ()
    latency: str
    alpha: float
    over: tuple[str, Window | Choice] | None = None
    per_token: float = 0.0
    doubt: float = 0.0
    batch: int = Field(default=1, ge=1)

    @property
    def baseline(self) -> Self:
        """The cell's baseline: ``over`` if set, otherwise plain decoding.

        It runs the same requests on the same latency file.
        """
        if self.over is None:
            return self.plain_decoding
        method, gamma = self.over
        return self.changed(
            method=method, gamma=gamma, settings=(), over=None, cancel=None
        )

    @property
    def plain_decoding(self) -> Self:
        """Plain decoding, shared by cells of every alpha: it never uses the draft."""
        return super().plain_decoding.changed(alpha=1.0, over=None, doubt=0.0)

    @property
    def is_choice(self) -> bool:
        """Whether the window or a setting is a choice, given as a tuple."""
        values = self.gamma, *(value for _, value in self.settings)
        return any(isinstance(value, tuple) for value in values)

    @property
    def choices(self) -> list[Self]:
        """A cell for every combination of one value per tuple."""
        names = [name for name, _ in self.settings]
        setting_options = [_options(value) for _, value in self.settings]

        choices = []
        for gamma, *values in product(_options(self.gamma), *setting_options):
            settings = tuple(zip(names, values, strict=True))
            choices.append(
                self.model_copy(update={"gamma": gamma, "settings": settings})
            )
        return choices

    @property
    def first_part(self) -> int:
        """The number of requests in a search for a window or a setting."""
        return ceil(FIRST_PART * self.requests)

    @property
    def name(self) -> str:
        """The cell's name in errors and progress lines."""
        called = self._called(
            cancel=self.cancel,
            per_token=self.per_token,
            doubt=self.doubt,
            with_tail=self.with_tail,
            batch=self.batch if self.batch > 1 else None,
        )
        over = f" over {self.over[0]}" if self.over else ""
        return f"{self.kind} {called}{over} on {self.latency}, alpha={self.alpha:g}"


class VirtualSpec(ToySpec):
    """A cell on the virtual clock."""

    kind: Literal["virtual"] = "virtual"


class EmulatedSpec(ToySpec):
    """A cell in real processes, one request at a time."""

    kind: Literal["emulated"] = "emulated"

    @model_validator(mode="after")
    def _has_nothing_of_the_virtual_clock(self) -> Self:
        if self.doubt or self.batch > 1:
            raise ValueError("only a virtual cell has doubt or batch")
        return self


class MeasuredSpec(AnySpec):
    """A cell that runs real models.

    pair         a file under data/pairs
    task         a set of prompts
    dtype        the models' dtype
    ignore_eos   whether decoding continues after the end token
    length       prompts are joined and cut to this many tokens; None: unchanged
    """

    kind: Literal["measured"] = "measured"
    gamma: Window = None
    settings: tuple[tuple[str, Setting], ...] = ()
    pair: str
    task: str
    dtype: str = "auto"
    ignore_eos: bool = False
    length: int | None = None

    @property
    def is_peer(self) -> bool:
        return self.method in EXTERNAL

    @property
    def baseline(self) -> MeasuredSpec:
        """Plain decoding of the same prompts."""
        return self.plain_decoding

    @property
    def worker_pool(self) -> WorkerPool:
        """The workers that the cell requires."""
        settings = dict(self.settings)
        servers = int(settings.get("servers", 1))
        return WorkerPool(self.pair, self.dtype, servers, self.cancel or "after-op")

    @property
    def name(self) -> str:
        """The cell's name in errors and progress lines."""
        called = self._called(
            cancel=self.cancel,
            ignore_eos=self.ignore_eos,
            length=self.length,
            with_tail=self.with_tail,
        )
        return f"measured {called} on {self.pair}, {self.task}"


Spec: TypeAlias = VirtualSpec | EmulatedSpec | MeasuredSpec


def _options(value: object) -> tuple[object, ...]:
    """The values of a choice; a single value is its only option."""
    return value if isinstance(value, tuple) else (value,)
