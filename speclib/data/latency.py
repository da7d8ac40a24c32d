"""Latency files: how long a model's forward pass takes, by the number of tokens fed.

A file under ``data/latency`` has the sections ``draft`` and ``target``. Each contains
``forward = [[tokens, seconds], ...]``, linear between entries and constant beyond them,
and optionally ``prefill``: how long the pass that starts a text takes, regardless of
its length. If a paper gives only one speed per model, ``forward`` is constant and
``prefill`` is 0.

Three more keys describe costs that matter when requests are batched: ``per_token``, the
seconds for each token that a pass is fed; ``per_kept``, the seconds for each cached
token that it reads; and ``once``, the seconds that an operation takes in addition to
its passes. They are added to ``forward``.

The optional section ``fuzzy`` describes draft passes in which several layers share an
input: groups of up to ``lp_size`` of the draft's ``layers``.

The optional section ``shared`` means that the draft runs on the target's devices.
``stages`` is the number of these devices; each runs one part of the target, in turn.
``move`` lists [tokens, seconds] for moving the draft's KV cache from one device to
another.

The optional section ``message`` is for devices on several machines joined by a slow
network. It gives the seconds that a message takes, one way, between the controller and
the ``draft``, and between the controller and a ``target``. Only the virtual clock uses
it. Emulated processes send real messages, which take real time.

This module uses no clock and no model.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from math import ceil, inf
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

from speclib.arguments import Number, Ratio, Seconds, Whole, checked, shown
from speclib.data.layer_groups import group_layers
from speclib.errors import BadValue
from speclib.operations.operation import Operation, Pass
from speclib.paths import DATA

from .toml_files import read_toml, toml_path

Wait: TypeAlias = Annotated[float, Number(least=0)]  # seconds; may be 0

MANY = 1 << 20  # tokens; no pass is fed more


@dataclass(frozen=True)
class Curve:
    """How long a pass takes, by how many tokens it is fed and how many are cached.

    All times are in seconds. ``forward``: (tokens, seconds), tokens rising.
    ``prefill``: the time of a text's first pass; None: the same as any other pass. Each
    token fed adds ``per_token``, and each cached token ``per_kept``. An operation takes
    ``once`` in addition to its passes.
    """

    forward: tuple[tuple[int, float], ...]
    prefill: float | None = None
    per_token: float = 0.0
    per_kept: float = 0.0
    once: float = 0.0

    def __call__(self, fed: float, kept: float = 1) -> float:
        """The time of a pass that is fed ``fed`` tokens after ``kept`` cached ones."""
        if kept == 0 and self.prefill is not None:
            return self.prefill
        return self._forward(fed) + self.per_token * fed + self.per_kept * kept

    def of_passes(self, passes: Pass) -> float:
        """The time of passes that follow each other."""
        growth = passes.fed * passes.times * (passes.times - 1) / 2
        alike = passes.times * self(passes.fed, passes.kept)
        return alike + self.per_kept * growth

    def of_tokens(self, tokens: int) -> float:
        """The time of an operation with one pass, which is fed ``tokens`` tokens."""
        return self(tokens) + self.once

    def _forward(self, fed: float) -> float:
        """The time in ``forward``, interpolated linearly between its points."""
        points = self.forward
        if len(points) == 1 or fed <= points[0][0]:
            return points[0][1]
        if fed >= points[-1][0]:
            return points[-1][1]
        right = bisect_left(points, (fed,))
        (x0, y0), (x1, y1) = points[right - 1], points[right]
        return y0 + (y1 - y0) * (fed - x0) / (x1 - x0)

    def lengthened(self, share: float) -> Curve:
        """The same curve, but each token after the first makes a pass longer.

        Each adds ``share`` times the time of a 1-token pass.
        """
        seconds_of = {**dict(self.forward), MANY: self(MANY)}
        points = []
        for tokens, seconds in seconds_of.items():
            longer = seconds + share * self(1) * (tokens - 1)
            points.append((tokens, longer))
        return replace(self, forward=tuple(points))


@dataclass(frozen=True)
class Fuzzy:
    """The layer-parallel passes of a draft, measured at one group size.

    ``curve`` is for groups of up to ``lp_size`` of the draft's ``layers``. Only this
    size was measured. For other sizes we assume that each layer that joins a group
    saves the same time.

    Source: EasySpec, equation 5, with T_add included in a layer's saving.
    """

    curve: Curve
    layers: int
    lp_size: int

    def seconds(self, exact: Curve, lp: int, fed: float) -> float:
        """How long a pass takes if its layers run in groups of up to ``lp``.

        ``exact``: the curve without groups.
        """
        share = self._joined(lp) / self._joined(self.lp_size)
        return exact(fed) - share * (exact(fed) - self.curve(fed))

    def _joined(self, lp: int) -> int:
        """How many layers share the input of an earlier layer."""
        return self.layers - len(group_layers(self.layers, lp))


class Step(NamedTuple):
    """A part of an operation that takes ``seconds`` and uses at most one device.

    ``stage``: the target's stage on that device. The step waits while another operation
    uses the device. None: the operation has its own device, or no device computes.
    """

    seconds: float
    stage: int | None = None


@dataclass(frozen=True)
class Shared:
    """A draft on the devices of a target that is computed stage by stage.

    A target pass spends an equal share of its time in each of the ``stages``. The draft
    has a replica on the last device and one on the first. The first half of the passes
    that draft a block, rounded up, runs on the last device, while the target starts on
    the first. Then the KV cache is moved, and the other passes run on the first device,
    while the target ends on the last. At the end the cache is moved back.

    ``move``: the seconds it takes to move the cache, by its number of tokens.

    Source: PEARL, Appendix G.
    Differences from the paper: it does not say how the last device gets the cache of
    the tokens that were fed on the first. Here the cache is moved back.
    """

    stages: int
    move: Curve

    def target_steps(self, passes: Sequence[float]) -> list[Step]:
        """The steps of target passes; ``passes``: the seconds of each pass."""
        steps = []
        for seconds in passes:
            for stage in range(self.stages):
                steps.append(Step(seconds / self.stages, stage))
        return steps

    def draft_steps(self, passes: Sequence[float], tokens: int) -> list[Step]:
        """The steps of draft passes, after which ``tokens`` tokens are cached.

        ``passes``: the seconds of each pass.
        """
        on_the_last = ceil(len(passes) / 2)
        steps = [Step(seconds, self.stages - 1) for seconds in passes[:on_the_last]]
        on_the_first = [Step(seconds, 0) for seconds in passes[on_the_last:]]
        if not on_the_first:
            return steps

        moved = Step(self.move(tokens))
        return [*steps, moved, *on_the_first, moved]


@dataclass(frozen=True)
class Message:
    """How long a message to or from a draft or target device takes, in seconds."""

    draft: float = 0.0
    target: float = 0.0


NO_TIME = Message()


@dataclass(frozen=True)
class Latency:
    """How long the operations of a pair take.

    >>> latency = speclib.Latency.ratio(c=5, target=0.1)
    >>> latency.over_network(draft=0, target=0.02).message.target
    0.02

    ``fuzzy``: draft passes in which layers share an input; None: they take as long as
    exact ones. ``shared``: how draft and target share devices; None: each has its own.
    ``message``: the network's delay. ``name``: the file's name.
    """

    draft: Curve
    target: Curve
    name: str = ""
    fuzzy: Fuzzy | None = None
    shared: Shared | None = None
    message: Message = NO_TIME

    @classmethod
    @checked
    def ratio(cls, c: Ratio, target: Seconds = 1.0) -> Latency:
        """Constant pass times, prefill included, with t_target / t_draft = ``c``."""
        draft_seconds = target / c
        return cls(
            draft=Curve(((1, draft_seconds),)),
            target=Curve(((1, target),)),
            name=f"c={c:g}",
        )

    @checked
    def sharing(self, stages: Annotated[int, Whole(least=2, most=64)]) -> Latency:
        """The same latency, with the draft on the devices of the target's ``stages``.

        Moving the KV cache takes as long as before, or no time if devices were not
        shared.
        """
        move = self.shared.move if self.shared else Curve(((1, 0.0),))
        return replace(self, shared=Shared(stages, move))

    @checked
    def over_network(self, draft: Wait, target: Wait) -> Latency:
        """The same latency, with these message times to the draft and to the target.

        They are in seconds, one way.
        """
        return replace(self, message=Message(draft, target))

    @checked
    def lengthened(self, share: Wait) -> Latency:
        """The same latency, with every curve ``lengthened``; see Curve."""
        if not share:
            return self
        fuzzy = self.fuzzy
        if fuzzy is not None:
            fuzzy = replace(fuzzy, curve=fuzzy.curve.lengthened(share))
        return replace(
            self,
            draft=self.draft.lengthened(share),
            target=self.target.lengthened(share),
            fuzzy=fuzzy,
        )

    @property
    def c(self) -> float:
        """t_target / t_draft for passes that are fed one token."""
        return self.c_of_batch(1)

    def c_of_batch(self, batch: int) -> float:
        """t_target / t_draft for passes that are fed one token per request."""
        return self.target.of_tokens(batch) / self.draft.of_tokens(batch)

    def drafts_per_target_pass(self, batch: int = 1) -> float:
        """How many draft passes fit into a target pass, messages included.

        ``batch``: the number of requests; a pass is fed one token of each.
        """
        longer = 2 * (self.message.target - self.message.draft)
        return self.c_of_batch(batch) + longer / self.draft.of_tokens(batch)

    def message_to(self, device: str) -> float:
        """How long a message to or from ``device`` takes, one way, in seconds."""
        is_draft = device.startswith("draft")
        return self.message.draft if is_draft else self.message.target

    def seconds(self, device: str, op: Operation, kept: int, fed: int) -> float:
        """How long an operation takes, in seconds.

        It reuses ``kept`` cached tokens and is fed ``fed`` more. If devices are shared,
        it may also have to wait for other operations; that time is not included.
        """
        if self.shared:
            return sum(step.seconds for step in self.steps(device, op, kept, fed))
        exact = self._curve_of(device)
        total = exact.once
        for forward in op.passes(kept, fed):
            total += self._seconds_of(exact, forward)
        return total

    def seconds_together(
        self, device: str, operations: Sequence[Sequence[Pass]]
    ) -> float:
        """How long a device takes to run several requests' operations together.

        All first passes are merged into one pass, with all their fed and all their
        cached tokens; so are all second passes, and so on. An operation with fewer
        passes takes no part in the later ones. If a merged pass includes the first pass
        of a text, it takes at least ``prefill``.

        operations: the passes of each request's operation.

        Raises BadValue if draft and target share devices.
        """
        if self.shared:
            raise BadValue(
                "draft and target share devices in this latency, which is not modelled "
                "for several requests at a time: decode them one at a time"
            )
        exact = self._curve_of(device)
        queues = [chain.from_iterable(p.each() for p in own) for own in operations]
        total = exact.once
        for passes in zip_longest(*queues):
            total += self._seconds_of_merged(
                exact, [p for p in passes if p is not None]
            )
        return total

    def _seconds_of_merged(self, exact: Curve, passes: Sequence[Pass]) -> float:
        """The time of one pass that merges these ``passes``, in seconds."""
        later = [each for each in passes if each.kept]
        seconds = 0.0
        if later:
            fed, kept = sum(p.fed for p in passes), sum(p.kept for p in passes)
            seconds = self._seconds_of(exact, Pass(fed, kept, lp=later[0].lp))
        if len(later) < len(passes):
            starting = Pass(sum(p.fed for p in passes if not p.kept), kept=0)
            seconds = max(seconds, self._seconds_of(exact, starting))
        return seconds

    def _curve_of(self, device: str) -> Curve:
        return self.draft if device.startswith("draft") else self.target

    def steps(self, device: str, op: Operation, kept: int, fed: int) -> list[Step]:
        """The operation's steps, at least one; together they take ``seconds``."""
        if self.shared is None:
            return [Step(self.seconds(device, op, kept, fed))]

        exact = self._curve_of(device)
        passes: list[float] = []
        for forward in op.passes(kept, fed):
            passes += [self._seconds_of(exact, one) for one in forward.each()]
        if not passes:
            return [Step(0.0)]  # it failed before its first pass
        passes[0] += exact.once
        if device.startswith("draft"):
            return self.shared.draft_steps(passes, kept + fed)
        return self.shared.target_steps(passes)

    def _seconds_of(self, exact: Curve, forward: Pass) -> float:
        """The time of a model's passes; ``exact``: the curve of its exact passes."""
        if self.fuzzy and forward.lp:
            each = self.fuzzy.seconds(exact, forward.lp, forward.fed)
            return forward.times * each
        return exact.of_passes(forward)


# -- files -----------------------------------------------------------------------------
FORMAT = (
    "[draft] and [target] need forward = [[tokens, seconds], ...], tokens rising, "
    "seconds above 0, and may have prefill, per_token, per_kept and once; [fuzzy] "
    "needs forward, layers and an lp_size that joins some layers; [shared] needs "
    "stages, 2 or more, and move = [[tokens, seconds], ...]; [message] needs draft and "
    "target, both in seconds"
)


@checked
def load_latency(name: str) -> Latency:
    """Reads ``data/latency/<name>.toml``, or your own file at the path ``name``.

    >>> round(speclib.load_latency("pearl/llama2-7-70").c, 2)
    5.42

    The path must end with .toml; `make gpu-check` writes such files.
    """
    folder = DATA / "latency"
    own = Path(name)
    if own.suffix == ".toml" and own.is_file():
        folder, name = own.parent.resolve(), own.stem
    parts = read_toml(folder, name, f"no latency file {shown(name)}")
    try:
        return Latency(
            draft=_read_curve(**parts["draft"]),
            target=_read_curve(**parts["target"]),
            name=name,
            fuzzy=_read_fuzzy(**parts["fuzzy"]) if "fuzzy" in parts else None,
            shared=_read_shared(**parts["shared"]) if "shared" in parts else None,
            message=_read_message(**parts.get("message", {"draft": 0, "target": 0})),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadValue(f"{toml_path(folder, name)}: {FORMAT}: {error!r}") from error


def _read_fuzzy(layers: int, lp_size: int, **curve: Any) -> Fuzzy:
    """The section [fuzzy] of a latency file."""
    if len(group_layers(layers, lp_size)) == layers:
        raise ValueError(f"lp_size {lp_size} joins none of the {layers} layers")
    return Fuzzy(_read_curve(**curve), layers, lp_size)


def _read_shared(stages: int, move: list[list[float]]) -> Shared:
    """The section [shared] of a latency file."""
    if not Whole(least=2).allows(stages):
        raise ValueError(f"stages {stages!r}")
    return Shared(stages, _read_curve(move))


def _read_message(draft: float, target: float) -> Message:
    """The section [message] of a latency file."""
    if not (0 <= draft < inf and 0 <= target < inf):
        raise ValueError(f"message {draft}, {target}")
    return Message(float(draft), float(target))


def _read_curve(
    forward: list[list[float]], model: str = "", printed: Any = None, **costs: float
) -> Curve:
    """A section of a latency file, checked; ``model`` and ``printed`` are unused."""
    points = tuple((int(tokens), float(seconds)) for tokens, seconds in forward)
    counts = [tokens for tokens, _ in points]
    if not points or counts != sorted(set(counts)):
        raise ValueError(f"forward {points}")
    if not all(0 < seconds < inf for _, seconds in points):  # NaN is neither
        raise ValueError(f"seconds in {points}")
    if not all(0 <= seconds < inf for seconds in costs.values()):
        raise ValueError(f"seconds {costs}")
    return Curve(points, **costs)
