"""Fits a stand-in to this machine: its draft is sized until c is the paper's.

c = t_target / t_draft of the same two shapes differs from machine to machine. Dilation
keeps a model's function whatever its shape (``speclib.models.dilate``), so a draft can
be given another shape, and no token changes. We change its number of layers, and make
up the rest with their ffn. The target stays as it is, and with it plain decoding.

The search assumes that a draft pass costs what its weights cost, plus a constant. It
measures c, scales the cost by measured over wanted c, and repeats. The result is kept
in `.cache/runs/fitted.json`, beside the machine's rows.
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

WITHIN = 0.03  # of the wanted c: near enough
MOST_TRIES = 4
TEXT = (1,) * 16
WARM_UP = 3  # trials that do not count; the first one prefills
TRIALS = 24
CHANNELS = 32  # an ffn is a multiple of this

# The cost of a pass and of a layer beyond reading weights, in weights: from six pairs
# on one core of a Xeon, in float32. Where they are wrong, the search takes longer.
PASS = 5e6
LAYER = 1e6


class Shape(NamedTuple):
    """A model's layers, width, heads and ffn, as in a pair file."""

    layers: int
    width: int
    heads: int
    ffn: int

    @property
    def cost(self) -> float:
        """The cost of a pass, in weights."""
        return PASS + self.layers * self._cost_of_layer(self.ffn)

    def _cost_of_layer(self, ffn: float) -> float:
        return LAYER + 4 * self.width**2 + 3 * self.width * ffn

    def at_cost(self, cost: float, least: Shape) -> Shape:
        """The shape of about this cost whose layers are most like these.

        It has at least the layers and the ffn of ``least``.
        """
        layers = round((cost - PASS) / self._cost_of_layer(self.ffn))
        layers = max(layers, least.layers)
        channels = ((cost - PASS) / layers - self._cost_of_layer(0)) / (3 * self.width)
        ffn = CHANNELS * round(channels / CHANNELS)
        return self._replace(layers=layers, ffn=max(ffn, least.ffn))


@dataclass(frozen=True)
class Fitted:
    """The draft that a pair has on this machine.

    shape   of the draft; ``file``: in the pair's file
    wanted  c of the pair's latency file
    c       as measured with this shape: a median, which lies between ``low`` and
            ``high``, the smallest and the largest ratio that was seen
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
    """The shape in which a pair's draft was trained: none smaller can be dilated to."""
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
    """Sizes the draft of the pair called ``name`` for this machine, and stores that.

    A pair that is fitted as another one has that one's draft, so the other one is
    fitted. Raises BadValue for a pair whose file does not ask for it.
    """
    pair = _reference(name)
    file, wanted = _asked(pair)
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
    """The pair with the draft fitted here; as its file has it if there is none."""
    pair, fitted = load_pair(name), _fitted(name, dtype)
    return pair if fitted is None else pair.with_draft_shape(fitted.shape)


def needs_fit(name: str, dtype: str = "auto") -> bool:
    """Whether a pair asks to be fitted and has not been, on this machine."""
    return bool(load_pair(name).fitted) and _fitted(name, dtype) is None


def describe(name: str, dtype: str = "auto") -> str:
    """The fitted draft in words; "" if there is none."""
    fitted = _fitted(name, dtype)
    return "" if fitted is None else str(fitted)


def search(
    file: Shape, least: Shape, wanted: float, measure: Callable[[Shape], CostRatio]
) -> tuple[Shape, CostRatio]:
    """The shape whose measured c is nearest to ``wanted``, after at most four tries.

    ``file`` is tried first. ``least``: the trained model's shape, below which no draft
    can be. ``measure``: c with a draft of this shape.
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
    """c of trials: a target pass beside draft passes that take about as long."""
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
    """The pair whose c decides: this one, or the one that it is fitted as."""
    pair = load_pair(name)
    return load_pair(pair.fitted) if isinstance(pair.fitted, str) else pair


def _asked(pair: Pair) -> tuple[Shape, float]:
    """The shape of a fitted pair's draft in its file, and the c that is wanted."""
    if pair.fitted is not True or pair.latency is None or pair.draft.shape is None:
        raise BadValue(
            f"pair {pair.name!r} is not to be fitted: give its file `fitted = true`, a "
            "latency, which says what c is wanted, and a draft with a shape"
        )
    return Shape(*pair.draft.shape), load_latency(pair.latency).c


# -- what is stored --------------------------------------------------------------------
def _fitted(name: str, dtype: str) -> Fitted | None:
    """What was fitted here, unless the pair's file or its latency has changed since."""
    pair = _reference(name)
    stored = _stored().get(_key(pair, dtype))
    if stored is None or not pair.fitted:
        return None
    file, shape = Shape(*stored["file"]), Shape(*stored["shape"])
    fitted = Fitted(**(stored | {"file": file, "shape": shape}))
    return fitted if (fitted.file, fitted.wanted) == _asked(pair) else None


def _stored() -> dict[str, dict[str, Any]]:
    """All that was fitted on this machine, by pair and dtype."""
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
