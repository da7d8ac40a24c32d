"""What should be run: a ``Spec`` is one cell, a method on one latency file or pair.

    spec = Spec(kind="virtual", method="pearl", gamma="best", latency=..., alpha=0.96)

Knows methods; no paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import ceil
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from speclab.peers.known_peers import EXTERNAL
from speclib.errors import unknown_name
from speclib.methods import METHODS, takes_gamma

Kind = Literal["virtual", "emulated", "measured"]
FromC = Annotated[str, Field(pattern=r"^c[+-]\d{1,3}$")]
Gamma = int | Literal["auto", "best"] | FromC | tuple[int, ...] | None
Value = bool | str | int | float
Present = TypeVar("Present")


def present(value: Present | None) -> Present:
    """A value that is there: a ``Spec`` of its kind always has it, for instance."""
    assert value is not None
    return value


@dataclass(frozen=True)
class Profile:
    """How much to run.

    virtual_tokens     per virtual cell, all its requests together
    prompts, tokens    prompts per measured cell, and tokens per prompt
    emulated_requests, emulated_tokens
                       requests per emulated cell, and tokens per request
    """

    virtual_tokens: int
    prompts: int
    tokens: int
    emulated_requests: int
    emulated_tokens: int


FULL = Profile(
    virtual_tokens=20_480,
    prompts=32,
    tokens=32,
    emulated_requests=8,
    emulated_tokens=64,
)


# A search for a window or a setting goes by such a part of a virtual cell's requests.
FIRST_PART = 0.4


class WorkerPool(NamedTuple):
    """The workers that a measured cell needs; cells that need the same share them.

    ``cancel``: what a worker does with a cancelled operation.
    """

    pair: str
    dtype: str
    servers: int
    cancel: str


class Spec(BaseModel):
    """One cell that should be run.

    Every kind:

    method       name of the method; of a measured cell also that of a peer
    gamma        its window: a number; "auto", which is round(c); "c-2", which is two
                 less; "best", which is searched on the virtual clock; None for a
                 method without a window
    settings     of the method, as (name, value) pairs
    requests     how many, of ``tokens`` tokens each
    cancel       the world's policy for cancelled operations; None: its default
    temperature, seed
                 of the sampling
    with_tail    whether the method drafts beyond the last token, as published code does
                 that counts these drafts (see ``traces.counts.with_tail``)

    A tuple as ``gamma`` or as a setting's value is a choice: the fastest is taken.

    Virtual and emulated cells, which run toys:

    latency      a file under data/latency
    alpha        probability that draft and target agree
    over         (method, gamma) of what the cell is compared with; None: plain decoding
    per_token    by which share of a pass each token fed beyond the first lengthens it
    doubt        how much a virtual draft knows of where it is wrong (see ``Toy``)
    batch        how many requests are decoded at a time; virtual cells only

    Measured cells, which run real models:

    pair         a file under data/pairs
    task         a set of prompts
    dtype        of the models
    ignore_eos   whether decoding goes on after the end token
    length       prompts are joined and cut to so many tokens; None: taken as they are
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Kind
    method: str
    gamma: Gamma = None
    settings: tuple[tuple[str, Value | tuple[Value, ...]], ...] = ()
    over: tuple[str, Gamma] | None = None
    cancel: Literal["immediate", "after-op"] | None = None
    per_token: float = 0.0
    doubt: float = 0.0
    batch: int = Field(default=1, ge=1)
    latency: str | None = None
    alpha: float | None = None
    pair: str | None = None
    task: str | None = None
    requests: int = 8
    tokens: int = 64
    temperature: float = 0.0
    dtype: str = "auto"
    ignore_eos: bool = False
    length: int | None = None
    seed: int = 0
    with_tail: bool = False

    @model_validator(mode="after")
    def _says_where_it_runs(self) -> Spec:
        needed = ("latency", "alpha")
        if self.kind == "measured":
            needed = ("pair", "task")
        missing = [name for name in needed if getattr(self, name) is None]
        if missing:
            raise ValueError(f"a {self.kind} cell needs {' and '.join(missing)}")
        return self

    @model_validator(mode="after")
    def _names_a_method_and_its_window(self) -> Spec:
        if self.is_peer:
            if self.gamma or self.settings or self.temperature:
                raise ValueError(f"{self.method!r} is measured greedily, as it is")
            return self
        if self.method not in METHODS:
            raise unknown_name(f"unknown method {self.method!r}", self.method, METHODS)
        has_gamma = self.gamma is not None
        if has_gamma != takes_gamma(self.method):
            raise ValueError(f"gamma is {self.gamma!r} for method {self.method!r}")
        return self

    @model_validator(mode="after")
    def _has_nothing_of_another_kind(self) -> Spec:
        is_measured = self.kind == "measured"
        if is_measured and (self.over or self.per_token or self.is_choice):
            raise ValueError(
                "a measured cell has no over, per_token or choice of settings"
            )
        is_batch = self.batch > 1
        has_foreign_doubt = (self.doubt or is_batch) and self.kind != "virtual"
        has_foreign_prompts = not is_measured and (self.ignore_eos or self.length)
        if has_foreign_doubt or has_foreign_prompts:
            raise ValueError(
                "doubt and batch are a virtual cell's, ignore_eos and length a "
                "measured one's"
            )
        return self

    @property
    def is_peer(self) -> bool:
        """Whether it is somebody else's decoding (see ``speclab.peers``)."""
        return self.kind == "measured" and self.method in EXTERNAL

    def changed(self, **changes: object) -> Spec:
        """This cell with other values, checked."""
        return Spec(**(self.model_dump() | changes))

    @property
    def baseline(self) -> Spec:
        """What the cell is compared with: ``over``, or else plain decoding.

        It runs the same requests in the same place.
        """
        if self.over is None:
            return self.plain_decoding
        method, gamma = self.over
        return self.changed(
            method=method, gamma=gamma, settings=(), over=None, cancel=None
        )

    @property
    def plain_decoding(self) -> Spec:
        """Plain decoding of the same requests in the same place."""
        changes: dict[str, object] = {
            "method": "autoregressive",
            "gamma": None,
            "settings": (),
            "over": None,
            "cancel": None,
            "doubt": 0,
            "with_tail": False,
        }
        if self.kind != "measured":
            # It never asks the draft, so cells of every alpha share one baseline.
            changes["alpha"] = 1.0
        return self.changed(**changes)

    @property
    def worker_pool(self) -> WorkerPool:
        """The workers that a measured cell needs."""
        return WorkerPool(
            present(self.pair), self.dtype, self.servers, self.cancel or "after-op"
        )

    @property
    def servers(self) -> int:
        """Number of target devices; of a choice, that of its first combination."""
        settings: dict[str, Any] = dict(self.choices[0].settings)
        servers: int = settings.get("servers", 1)
        return servers

    @property
    def is_choice(self) -> bool:
        """Whether window or a setting is a tuple, of which the fastest is taken."""
        if isinstance(self.gamma, tuple):
            return True
        return any(isinstance(value, tuple) for _, value in self.settings)

    @property
    def choices(self) -> list[Spec]:
        """Every combination of one value per tuple; without tuples, the cell alone."""
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
    def name(self) -> str:
        """For people: what an error or a progress line calls the cell."""
        arguments = []
        if self.gamma is not None:
            arguments.append(f"gamma={self.gamma}")
        for setting, value in self.settings:
            arguments.append(f"{setting}={value}")
        named = ("cancel", "per_token", "doubt", "ignore_eos", "length", "with_tail")
        for field_name in named:
            value = getattr(self, field_name)
            if value:
                arguments.append(f"{field_name}={value}")
        if self.batch > 1:
            arguments.append(f"batch={self.batch}")

        over = f" over {self.over[0]}" if self.over else ""
        if self.kind == "measured":
            work = f"{self.pair}, {self.task}"
        else:
            work = f"{self.latency}, alpha={self.alpha:g}"
        return f"{self.kind} {self.method}({', '.join(arguments)}){over} on {work}"


def _options(value: object) -> tuple[object, ...]:
    """The values that a choice leaves open; of a single value, that one."""
    return value if isinstance(value, tuple) else (value,)


def first_part(spec: Spec) -> int:
    """How many requests of a virtual cell a search goes by."""
    return ceil(FIRST_PART * spec.requests)
