"""What if: any method at any cost ratio and acceptance rate, on the virtual clock, in milliseconds.

For lectures and sliders. The target writes a fixed text; the draft agrees with each of its words
independently with probability alpha, and says another of them otherwise. Kind: virtual.
"""

from __future__ import annotations

from functools import cache
from math import inf

from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency, load_latency
from speclib.errors import SpeclibError
from speclib.methods import METHODS, find, parameters
from speclib.models.toy import BOS, Toy
from speclib.operations.operation import Done
from speclib.trace.metrics import stats
from speclib.worlds.devices import DeviceLost, Future, device_names
from speclib.worlds.virtual import Virtual

from .auto_settings import MOST, checked, needed, settled
from .decode import Result

TEXT = (
    "A small model runs ahead and guesses the next few words while the large one reads "
    "them all in a single pass . It keeps every word it would have written itself and "
    "corrects the first one that it would not , so the text never changes and only the "
    "waiting does . When both work at once nobody waits , and the time of a step is that "
    "of the slower of the two ."
)


@cache
def _words(text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The vocabulary (id 0 is the prompt) and the text as ids."""
    said = text.split()
    vocab = ("", *dict.fromkeys(said))
    return vocab, tuple(vocab.index(w) for w in said)


def simulate(
    method: str = "pearl",
    *,
    gamma: int | str = "auto",
    c: float = 5.0,
    alpha: float = 0.9,
    tokens: int = 32,
    target: float = 0.1,
    seed: int = 0,
    text: str = TEXT,
    cancel: str = "immediate",
    lost: dict[str, float] | None = None,
    doubt: float = 0.0,
    fuzzy: float = 1.0,
    latency: str | None = None,
    **settings,
) -> Result:
    """``method`` writing ``tokens`` words of ``text`` where one target pass takes ``target``
    seconds, the draft is ``c`` times faster, and it agrees with probability ``alpha``. With
    ``latency`` (a path under data/latency) passes take what that file says, in place of these two.

    ``doubt``: how unevenly sure the draft is of its words, see Toy; 0: as sure of each. ``fuzzy``:
    the share of agreement that layers on one input keep, see Toy; 1: all. ``cancel``:
    when work that nobody wants any more ends, see World. ``lost``: device name -> the second at
    which it dies. ``settings`` are the method's own; ``gamma``, ``lookahead`` and ``servers`` (as
    many targets) are "auto" where left out. The same ``seed`` draws the same agreements for every
    method and setting. Raises SpeclibError for an unknown method or setting, a count below 1, alpha
    outside 0 .. 1, doubt below 0, c not above 0, a device in ``lost`` that is not there.
    """
    run, known = find(method, settings), parameters(method)
    given = {"gamma": gamma} | settings
    vocab, ids = _words(text)
    clock = load_latency(latency) if latency else Latency.ratio(c, target)
    servers, each = (
        checked(name, given.get(name, "auto")) for name in ("servers", "lookahead")
    )
    if servers == "auto":
        each = 1 if each == "auto" else each
        servers = min(MOST, needed(clock.c, each)) if "servers" in known else 1
    if not doubt >= 0:
        raise SpeclibError(f"doubt is {doubt}: give 0 (none) or more")
    models = {
        name: Toy(alpha, len(vocab), seed, ids, doubt=doubt, fuzzy=fuzzy)
        if name == "draft"
        else Toy(None, len(vocab), seed, ids)
        for name in device_names(servers)
    }
    world = Mortal(models, clock, cancel, lost or {})
    world.begin((BOS,), sampler=Sampler(), coins=Coins(seed), limit=tokens)
    settings = settled(method, known, given, world)
    run(world, **settings)
    trace = world.end(
        method=method,
        c=clock.c,
        alpha=alpha,
        doubt=doubt,
        fuzzy=fuzzy,
        prompt=[BOS],
        **settings,
    )
    said = world.text[1:]
    return Result(
        " ".join(vocab[t] for t in said),
        said,
        stats(trace),
        trace,
        {i: f" {w}" for i, w in enumerate(vocab)},
    )


def compare(
    method: str = "pearl",
    *,
    gamma: int | str = "auto",
    without: str | None = None,
    lookahead: int | str = "auto",
    servers: int | str = "auto",
    k: int | None = None,
    first: int | None = None,
    lp: int | None = None,
    width: int | None = None,
    calibrate: bool | None = None,
    **what,
) -> list[Result]:
    """Plain decoding, SD and ``method`` on the same what-if, in this order: for sliders.

    ``method`` may be one of the two, which is then not repeated. Each setting goes to the methods
    that have it: ``gamma`` to SD (PEARL, DuoDecoding), ``without`` to PEARL, ``lookahead`` and
    ``servers`` to DSI, ``k`` and ``first`` to DuoDecoding, ``lp``, ``width`` and ``calibrate`` to
    EasySpec (``width`` to tree SD, too). Further keywords are ``simulate``'s.
    """
    shown = [
        simulate("autoregressive", **what),
        simulate("speculative", gamma=gamma, **what),
    ]
    if method not in ("autoregressive", "speculative"):
        ours = {
            "gamma": gamma,
            "without": without,
            "lookahead": lookahead,
            "servers": servers,
            "k": k,
            "first": first,
            "lp": lp,
            "width": width,
            "calibrate": calibrate,
        }
        known = parameters(method) if method in METHODS else ()
        ours = {k: v for k, v in ours.items() if k in known and v is not None}
        shown.append(simulate(method, **ours, **what))
    return shown


class Mortal(Virtual):
    """A virtual world in which devices die: ``lost`` maps their names to seconds."""

    def __init__(
        self, models: dict, latency: Latency, cancel: str, lost: dict[str, float]
    ):
        super().__init__(models, latency, cancel=cancel)
        for name in lost:
            if name not in models:
                raise SpeclibError(
                    f"no device {name!r} to lose; there are: {', '.join(models)}"
                )
        self._lost = lost

    def _schedule(
        self, time: float, future: Future, done: Done, error: Exception | None = None
    ) -> None:
        """What would end after its device has died fails at that moment instead."""
        dies = self._lost.get(future.device, inf)
        if time > dies:
            time = max(dies, self.now)
            done = Done(None, 0, 0)
            error = DeviceLost(
                f"{future.device} died at {dies:g} s, as this what-if has it"
            )
        super()._schedule(time, future, done, error)
