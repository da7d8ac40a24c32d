"""Fits a stand-in to this machine: sizes its draft until c matches the paper's.

For the same two shapes, c = t_target / t_draft differs from machine to machine.
Dilation preserves a model's function in any shape (``speclib.models.dilate``), so we
can change the draft's shape without changing any token. We change its number of layers,
and then the width of the layers' ffn to close the remaining gap. The target stays the
same, and so does plain decoding.

The search assumes that the cost of a draft pass is proportional to the number of
weights, plus a constant. It measures c, scales the cost by the measured c over the
wanted c, and repeats. The result is stored in `.cache/runs/fitted.json`, next to the
machine's rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from speclab import machine_facts
from speclib import paths
from speclib.atomic_files import write_atomically
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import load_latency
from speclib.data.pairs import Pair, load_pair
from speclib.decoding.auto_settings import gamma_at
from speclib.errors import BadValue
from speclib.models.checkpoint import Checkpoint
from speclib.models.loading import TORCH_NAMES
from speclib.models.open_pair import open_pair
from speclib.operations.propose import Propose
from speclib.operations.score import Score
from speclib.worlds.cost_ratio import CostRatio, Trial, read
from speclib.worlds.processes import Processes

WITHIN = 0.03  # relative error of c that is close enough
MOST_TRIES = 4
TEXT = (1,) * 16
WARM_UP = 3  # trials that don't count; the first one includes the prefill
TRIALS = 24
CHANNELS = 32  # the width of an ffn is a multiple of this

# What a pass and a layer cost in addition to reading their weights, counted in weights.
# Measured with six pairs on one core of a Xeon, in float32. If these values are wrong,
# the search only takes longer.
PASS = 5e6
LAYER = 1e6


class Shape(NamedTuple):
    """A model's layers, width, heads and ffn width, as in a pair file."""

    layers: int
    width: int
    heads: int
    ffn: int

    @property
    def cost(self) -> float:
        """The cost of a pass, counted in weights."""
        return PASS + self.layers * self._cost_of_layer(self.ffn)

    def _cost_of_layer(self, ffn: float) -> float:
        return LAYER + 4 * self.width**2 + 3 * self.width * ffn

    def at_cost(self, cost: float, least: Shape) -> Shape:
        """A shape with about this cost, whose layers resemble this shape's.

        It has at least as many layers, and as wide an ffn, as ``least``.
        """
        layers = round((cost - PASS) / self._cost_of_layer(self.ffn))
        layers = max(layers, least.layers)
        channels = ((cost - PASS) / layers - self._cost_of_layer(0)) / (3 * self.width)
        ffn = CHANNELS * round(channels / CHANNELS)
        return self._replace(layers=layers, ffn=max(ffn, least.ffn))


@dataclass(frozen=True)
class Fitted:
    """A pair's draft, fitted to this machine.

    file    the draft's shape in the pair's file
    shape   its fitted shape
    wanted  c according to the pair's latency file
    c       the median c measured with the fitted shape; ``low`` and ``high`` are the
            smallest and the largest
    date    when it was measured
    """

    file: Shape
    shape: Shape
    wanted: float
    c: float
    low: float
    high: float
    date: str

    def __str__(self) -> str:
        layers, width, _, ffn = self.shape
        return (
            f"draft {layers} x {width}, ffn {ffn}, c {self.c:.3g} of "
            f"{self.wanted:.3g} wanted"
        )


def trained_shape(pair: Pair) -> Shape:
    """The shape in which a pair's draft was trained; dilation cannot shrink it."""
    draft = open_pair(pair).draft
    assert isinstance(draft, Checkpoint)
    config = draft.text_config
    return Shape(
        config.num_hidden_layers,
        config.hidden_size,
        config.num_attention_heads,
        config.intermediate_size,
    )


def fit(name: str, dtype: str = "auto") -> Fitted:
    """Sizes the draft of the pair ``name`` for this machine, and stores its shape.

    If the pair's file refers to another pair's fit, that pair is fitted instead. Raises
    BadValue for a pair whose file does not request a fit.
    """
    pair = _reference(name)
    file, wanted = _requested(pair)
    least = trained_shape(pair)

    def measure(shape: Shape) -> CostRatio:
        return _measure_c(pair.with_draft_shape(shape), wanted, dtype)

    shape, ratio = search(file, least, wanted, measure)
    date = datetime.now().isoformat(timespec="seconds")
    fitted = Fitted(file, shape, wanted, ratio.value, ratio.low, ratio.high, date)
    pairs = _stored() | {_key(pair, dtype): asdict(fitted)}
    content = {"hardware": machine_facts.hardware(), "pairs": pairs}
    write_atomically(_path(), json.dumps(content, indent=1))
    return fitted


def fitted_pair(name: str, dtype: str = "auto") -> Pair:
    """The pair, with the draft fitted on this machine if there is a fit."""
    pair, fitted = load_pair(name), _fitted(name, dtype)
    return pair if fitted is None else pair.with_draft_shape(fitted.shape)


def needs_fit(name: str, dtype: str = "auto") -> bool:
    """Whether a pair requires a fit that this machine does not have yet."""
    return bool(load_pair(name).fitted) and _fitted(name, dtype) is None


def describe(name: str, dtype: str = "auto") -> str:
    """The fitted draft in words; "" if there is no fit."""
    fitted = _fitted(name, dtype)
    return "" if fitted is None else str(fitted)


def search(
    file: Shape, least: Shape, wanted: float, measure: Callable[[Shape], CostRatio]
) -> tuple[Shape, CostRatio]:
    """The shape whose measured c is closest to ``wanted``, after at most four tries.

    ``file`` is tried first. ``least``: the trained model's shape, a lower bound.
    ``measure(shape)`` returns c with a draft of that shape.
    """
    tried: dict[Shape, CostRatio] = {}

    def error(shape: Shape) -> float:
        return abs(tried[shape].value / wanted - 1)

    shape = file
    while shape not in tried and len(tried) < MOST_TRIES:
        tried[shape] = measure(shape)
        if error(shape) <= WITHIN:
            break
        nearest = min(tried, key=error)
        cost = nearest.cost * tried[nearest].value / wanted
        shape = file.at_cost(cost, least)
    nearest = min(tried, key=error)
    return nearest, tried[nearest]


def _measure_c(pair: Pair, wanted: float, dtype: str) -> CostRatio:
    """Measures c in trials: a target pass in parallel with about c draft passes."""
    drafted = gamma_at("auto", wanted)
    operations = {"draft": Propose(TEXT, drafted), "target": Score(TEXT)}
    with Processes(pair, dtype=dtype) as world:
        world.begin(TEXT, sampler=Sampler(), coins=Coins(), limit=1)
        for _ in range(WARM_UP + TRIALS):
            world.all(*(world.submit(name, op) for name, op in operations.items()))
        events = world.end().operations
    drafts = [event.dur / drafted for event in events if event.device == "draft"]
    targets = [event.dur for event in events if event.device == "target"]
    trials = [Trial(*seconds) for seconds in zip(targets, drafts, strict=True)]
    return read(trials[WARM_UP:])


def _reference(name: str) -> Pair:
    """The pair to fit: the pair itself, or another whose fit its file refers to."""
    pair = load_pair(name)
    return load_pair(pair.fitted) if isinstance(pair.fitted, str) else pair


def _requested(pair: Pair) -> tuple[Shape, float]:
    """The draft's shape in a fitted pair's file, and the wanted c."""
    if pair.fitted is not True or pair.latency is None or pair.draft.shape is None:
        raise BadValue(
            f"pair {pair.name!r} does not request a fit: its file needs "
            "`fitted = true`, a latency, which determines the wanted c, and a draft "
            "with a shape"
        )
    return Shape(*pair.draft.shape), load_latency(pair.latency).c


# -- what is stored --------------------------------------------------------------------
def _fitted(name: str, dtype: str) -> Fitted | None:
    """This machine's fit, unless the pair's file or latency has changed since."""
    pair = _reference(name)
    stored = _stored().get(_key(pair, dtype))
    if stored is None or not pair.fitted:
        return None
    file, shape = Shape(*stored["file"]), Shape(*stored["shape"])
    fitted = Fitted(**(stored | {"file": file, "shape": shape}))
    return fitted if (fitted.file, fitted.wanted) == _requested(pair) else None


def _stored() -> dict[str, dict[str, Any]]:
    """All fits on this machine, by pair and dtype."""
    try:
        content = json.loads(_path().read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    is_this_one = content["hardware"] == [
        list(fact) for fact in machine_facts.hardware()
    ]
    return dict(content["pairs"]) if is_this_one else {}


def _key(pair: Pair, dtype: str) -> str:
    return f"{pair.name} {TORCH_NAMES[dtype]}"


def _path() -> Path:
    return paths.CACHE / "runs" / "fitted.json"
