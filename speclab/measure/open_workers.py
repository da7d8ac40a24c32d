"""Keeps a measured pair's workers open, and what was measured when they started."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from typing import NamedTuple

from speclab.peers.external import External
from speclab.runs.rows import RowKey, key_of
from speclab.runs.spec import MeasuredSpec, WorkerPool
from speclab.traces.counts import Counts, counts_of
from speclib.core.sampling import Tokens
from speclib.decoding.auto_settings import draft_length
from speclib.worlds.processes import Processes

from . import fit
from .measured_prompt import decode_prompt
from .measurement import Measurement, Window
from .task_prompts import Prompt
from .windows import best_window

WARM_UP_TOKENS = 8
WARM_UP_GAMMA = 2


class OpenWorkers:
    """The workers of the last requested pool, kept open from step to step.

    Starting workers takes seconds, since they build models. Another pool's workers are
    stopped first, since not every machine has enough memory for two pairs. Use this
    object as a context manager.
    """

    def __init__(self) -> None:
        self._open: OpenPool | None = None

    def __enter__(self) -> OpenWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops the workers, if any are open."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def of(self, pool: WorkerPool, measurement: Measurement) -> OpenPool:
        """The workers of ``pool``, which are started unless they are open."""
        if self._open is None or not self.has_open(pool):
            self.close()
            measurement.say(f"starting {pool.pair}")
            self._open = OpenPool(pool)
        return self._open

    def has_open(self, pool: WorkerPool) -> bool:
        """Whether the workers of ``pool`` are open."""
        return self._open is not None and self._open.pool == pool


class Decoded(NamedTuple):
    """A run's new tokens, counts and times."""

    tokens: Tokens
    counts: Counts


class OpenPool:
    """An open world with a pair's workers, and what was measured when it was opened.

    c      the time of a target pass over the time of a draft pass
    draft  the draft's backend, and its size if it was fitted
    """

    def __init__(self, pool: WorkerPool):
        self.pool = pool
        self.world = Processes(
            fit.fitted_pair(pool.pair, pool.dtype),
            dtype=pool.dtype,
            servers=pool.servers,
            cancel=pool.cancel,
        )
        try:
            self.c = self.world.ratio
        except BaseException:
            self.world.close()
            raise
        runtime = self.world.opened.runtime("draft")
        fitted = fit.describe(pool.pair, pool.dtype)
        self.draft = f"{runtime}, {fitted}" if fitted else runtime
        self._peers: dict[str, External] = {}
        self._warm: set[object] = set()  # methods with their settings
        self._acceptance_rates: dict[RowKey, float] = {}

    def close(self) -> None:
        """Stops all processes."""
        with ExitStack() as closing:  # closes the others even if one fails
            closing.callback(self.world.close)
            for peer in self._peers.values():
                closing.callback(peer.close)

    def decode(self, prompt: Prompt, spec: MeasuredSpec, request: int) -> Decoded:
        """Decodes one prompt for ``spec``, whose window must be a number or None."""
        if not spec.is_peer:
            result = decode_prompt(self.world, prompt, spec, request)
            return Decoded(result.tokens, counts_of(result.trace))
        if spec.method not in self._peers:
            pair, dtype = self.world.opened.pair, self.pool.dtype
            self._peers[spec.method] = External(spec.method, pair, dtype=dtype)
        answer = self._peers[spec.method].decode(prompt, max_new_tokens=spec.tokens)
        return Decoded(answer.tokens, Counts(**asdict(answer.stats)))

    def warm_up(self, spec: MeasuredSpec, prompt: Prompt) -> None:
        """Once, decodes a few tokens with plain decoding and with the cell's method."""
        plain, own = spec.plain_decoding, spec.changed(with_tail=False)
        if own.gamma is not None:
            own = own.changed(gamma=WARM_UP_GAMMA)
        for each in (plain, own):
            name = each.method, each.settings
            if name not in self._warm:
                short = each.changed(tokens=WARM_UP_TOKENS)
                self.decode(prompt, short, request=0)
                self._warm.add(name)

    def choose_window(self, spec: MeasuredSpec, prompt: Prompt) -> Window:
        """The window that a cell requests; ``prompt``: the first prompt of its task."""
        if spec.gamma is None or isinstance(spec.gamma, int):
            return Window(spec.gamma)
        if spec.gamma == "best":
            return best_window(
                spec.method,
                spec.settings,
                self.c,
                self._acceptance_rate(spec.plain_decoding, prompt),
                self.pool.cancel,
            )
        gamma = draft_length(spec.gamma, self.world)
        return Window(gamma, f"{spec.gamma} at c {self.c:.3g}")

    def _acceptance_rate(self, plain: MeasuredSpec, prompt: Prompt) -> float:
        """The acceptance rate of speculative decoding on a prompt."""
        key = key_of(plain)
        if key not in self._acceptance_rates:
            gamma = max(1, round(self.c))
            speculative = plain.changed(method="speculative", gamma=gamma)
            result = decode_prompt(self.world, prompt, speculative, request=0)
            self._acceptance_rates[key] = result.stats.acceptance_rate
        return self._acceptance_rates[key]
