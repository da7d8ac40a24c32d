"""From what to run to what came out: frozen specs, runs cached by hash of spec, code and data.

    runs = run_all([Spec(kind="virtual", method="pearl", gamma="best", latency=..., alpha=0.96)])

A finished cell is on disk at once, so an interrupted run resumes; a cell that fails leaves the
others standing and is reported at the end. Knows methods, worlds and prompts; no paper.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from speclib.methods import METHODS, takes_gamma
from speclib.trace.metrics import Stats

Kind = Literal["virtual", "emulated", "measured"]
FromC = Annotated[str, Field(pattern=r"^c[+-]\d{1,3}$")]
Gamma = int | Literal["auto", "best"] | FromC | tuple[int, ...] | None
Value = bool | str | int | float


@dataclass(frozen=True)
class Profile:
    """How much to run. ``virtual_tokens`` per cell in all; ``prompts`` x ``tokens`` per measured
    cell; ``sweep_prompts`` per window of a measured search; ``emulated_requests`` x
    ``emulated_tokens`` per emulated cell."""

    name: str
    virtual_tokens: int
    prompts: int
    tokens: int
    sweep_prompts: int
    emulated_requests: int
    emulated_tokens: int


FULL = Profile("full", 20_480, 8, 64, 2, 8, 64)
QUICK = Profile("quick", 4_096, 2, 32, 1, 1, 32)


class Spec(BaseModel):
    """One cell. Virtual, emulated: ``latency`` (a file under data/latency) and ``alpha``; measured:
    ``pair`` and ``task`` (a prompt set). ``gamma``: a number, "auto" = round(c), "c-2" = two less,
    "best" = searched, or None for a method without one. ``requests`` of ``tokens`` tokens each;
    ``settings`` go to the method. A tuple in ``gamma`` or a setting is a choice: the fastest is
    taken. ``over``: (method, gamma) of what a virtual or emulated run is compared with; None: plain
    decoding. ``cancel``: the world's policy, None its default. ``per_token``: by which share of a
    virtual or emulated pass each token fed beyond the first lengthens it. ``doubt``: a virtual
    draft's (see ``Toy``). Measured, ``ignore_eos`` and prompts joined and cut to ``length`` tokens.
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
    latency: str | None = None
    alpha: float | None = None
    pair: str | None = None
    task: str | None = None
    requests: int = 8
    tokens: int = 64
    sweep: int = 2
    temperature: float = 0.0
    dtype: str = "auto"
    ignore_eos: bool = False
    length: int | None = None
    seed: int = 0

    @model_validator(mode="after")
    def _whole(self):
        needs = ("pair", "task") if self.kind == "measured" else ("latency", "alpha")
        missing = [name for name in needs if getattr(self, name) is None]
        if missing:
            raise ValueError(f"a {self.kind} cell needs {' and '.join(missing)}")
        if self.method not in METHODS:
            raise ValueError(
                f"unknown method {self.method!r}; known: {', '.join(METHODS)}"
            )
        if (self.gamma is None) == takes_gamma(self.method):
            raise ValueError(f"gamma is {self.gamma!r} for method {self.method!r}")
        if self.kind == "measured" and (
            self.over or self.per_token or self.choices != [self]
        ):
            raise ValueError(
                "a measured cell has no over, per_token or choice of settings"
            )
        if (
            self.doubt
            and self.kind != "virtual"
            or self.kind != "measured"
            and (self.ignore_eos or self.length)
        ):
            raise ValueError(
                "doubt is a virtual cell's, ignore_eos and length a measured one's"
            )
        return self

    def but(self, **changes) -> Spec:
        """This cell with other values, checked."""
        return Spec(**(self.model_dump() | changes))

    @property
    def baseline(self) -> Spec:
        """What it is compared with, on the same requests in the same place; else plain decoding."""
        if self.over:
            method, gamma = self.over
            return self.but(
                method=method, gamma=gamma, settings=(), over=None, cancel=None
            )
        alpha = (
            {} if self.kind == "measured" else {"alpha": 1.0}
        )  # it never asks the draft
        return self.but(
            method="autoregressive",
            gamma=None,
            settings=(),
            sweep=2,
            cancel=None,
            doubt=0,
            **alpha,
        )

    @property
    def workers(self) -> tuple[str | None, str, int, str]:
        """What a measured cell runs on: pair, dtype, target servers, what a cancelled one does."""
        return self.pair, self.dtype, self.servers, self.cancel or "after-op"

    @property
    def servers(self) -> int:
        """Target devices; of a choice, of its first."""
        return dict(self.choices[0].settings).get("servers", 1)

    @property
    def choices(self) -> list[Spec]:
        """Every combination of one value per tuple; where there is no tuple, the cell alone."""

        def each(value) -> tuple:
            return value if isinstance(value, tuple) else (value,)

        names = [name for name, _ in self.settings]
        every = product(each(self.gamma), *(each(value) for _, value in self.settings))
        return [
            self.model_copy(
                update={
                    "gamma": gamma,
                    "settings": tuple(zip(names, values, strict=True)),
                }
            )
            for gamma, *values in every
        ]

    @property
    def name(self) -> str:
        """For people: what an error or a progress line calls the cell."""
        extras = [f"{k}={v}" for k, v in self.settings]
        gamma = [] if self.gamma is None else [f"gamma={self.gamma}"]
        where = (
            f"{self.pair}, {self.task}"
            if self.kind == "measured"
            else f"{self.latency}, alpha={self.alpha:g}"
        )
        more = ("cancel", "per_token", "doubt", "ignore_eos", "length")
        extras += [
            f"{name}={getattr(self, name)}" for name in more if getattr(self, name)
        ]
        over = f" over {self.over[0]}" if self.over else ""
        return (
            f"{self.kind} {self.method}({', '.join(gamma + extras)}){over} on {where}"
        )


@dataclass
class CellResult:
    """What came of a spec. ``stats[i]``, ``baseline[i]`` (plain decoding of the same run) and
    ``sequence_choices[i]`` (see rounds) are of request i. ``gamma``: the window used; ``c``: target over
    draft time, as this world has it. ``facts``: more to know of it (windows searched, settings
    chosen, contention, load, overruns). ``trace``: the first request's, as JSON, but of virtual
    runs; measured, with the ``pieces`` of text its tokens stand for."""

    spec: Spec
    stats: list[Stats]
    baseline: list[Stats]
    gamma: int | None
    c: float
    machine: str = ""
    seconds: float = 0.0
    created: str = ""
    facts: dict = field(default_factory=dict)
    trace: str | None = None
    pieces: dict[int, str] = field(default_factory=dict)
    sequence_choices: list[list] = field(default_factory=list)
    cached: bool = False
