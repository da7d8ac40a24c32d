"""What if: any method at any cost ratio and acceptance rate, in milliseconds.

For lectures and sliders. The target writes a fixed text. At each of its words the draft
agrees with probability alpha, independently, and says another word otherwise. The
method's own code runs on the virtual clock, so every number is of the kind "virtual".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import inf
from typing import Annotated, Any, NamedTuple

from speclib.arguments import (
    Number,
    Ratio,
    Seconds,
    Seed,
    Share,
    ShareOrShares,
    Whole,
    checked,
)
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency, load_latency
from speclib.errors import BadValue, unknown_name
from speclib.methods import METHODS, about, parameters
from speclib.models.toy import BOS, Toy
from speclib.operations.operation import Done
from speclib.trace.metrics import stats
from speclib.worlds.batch_world import Seat
from speclib.worlds.devices import DeviceLost, Future, device_names
from speclib.worlds.virtual import Virtual
from speclib.worlds.virtual_batch import VirtualBatch
from speclib.worlds.world import World

from .auto_settings import request_settings
from .batch import Batch, in_lockstep, of_first, refuse_servers
from .decode import Result

TEXT = (
    "A small model runs ahead and guesses the next few words while the large one reads "
    "them all in a single pass . It keeps every word it would have written itself and "
    "corrects the first one that it would not , so the text never changes and only the "
    "waiting does . When both work at once nobody waits , and the time of a step is "
    "that of the slower of the two ."
)
MOST_STAGES = 64
MOST_REQUESTS = 10_000
OF_A_DRAFT = ("alpha", "doubt", "fuzzy", "one_pass")  # arguments that describe one
CONTEXT = 1 << 14  # tokens of a text of the toys, the prompt's one among them


class Script(NamedTuple):
    """A text as the toys write it: its different words, and the text as their ids.

    Id 0 is the prompt, which is no word.
    """

    words: tuple[str, ...]
    ids: tuple[int, ...]


@cache
def script_of(text: str) -> Script:
    """The script of ``text``, whose words are separated by spaces."""
    id_of_word = {"": BOS}
    for word in text.split():
        id_of_word.setdefault(word, len(id_of_word))
    ids = tuple(id_of_word[word] for word in text.split())
    return Script(tuple(id_of_word), ids)


@checked
def simulate(
    method: str = "pearl",
    *,
    gamma: Any = "auto",
    c: Ratio = 5.0,
    alpha: ShareOrShares | None = None,
    tokens: Annotated[int, Whole(least=1, most=CONTEXT - 1)] = 32,
    target: Seconds = 0.1,
    seed: Seed = 0,
    text: str = TEXT,
    cancel: str = "immediate",
    lost: dict[str, Annotated[float, Number(least=0)]] | None = None,
    doubt: Annotated[float, Number(least=0)] = 0.0,
    fuzzy: Share = 1.0,
    latency: str | None = None,
    stages: Annotated[int, Whole(least=2, most=MOST_STAGES)] | None = None,
    network: Annotated[float, Number(least=0)] = 0.0,
    per_token: Annotated[float, Number(least=0)] = 0.0,
    one_pass: bool = False,
    batch: Batch | None = None,
    requests: Annotated[int, Whole(least=1, most=MOST_REQUESTS)] | None = None,
    **settings: Any,
) -> Result:
    """Lets ``method`` write ``tokens`` words of ``text`` on the virtual clock.

    target    seconds of one target pass
    c         how many times as fast a draft pass is
    latency   a path under data/latency; passes then last as that file says, instead
              of ``c`` and ``target``
    stages    the draft stands on devices of the target, which is computed in so many
              stages (see ``Shared``); None: as the latency file says, or on a device
              of its own
    network   seconds that a message takes one way between the controller and a target;
              the draft is on the controller's machine
    alpha     the probability with which the draft agrees at a word; or a list of them,
              for the first word that it writes after somebody else's, for the second
              in a row, and so on (see ``trace.acceptance``); None: 0.9
    doubt     how unevenly sure the draft is of its words, see Toy; 0: as sure of each
    fuzzy     the share of their agreement that layers on one input keep, see Toy;
              1: all
    seed      draws the agreements: the same ones for every method and setting
    per_token by which share of itself each token beyond the first lengthens a pass
    one_pass  the draft writes all tokens of a window in one pass, as PARD's does (see
              ``operations.propose``). A list of ``alpha`` then counts from where the
              pass begins
    batch     how many requests are decoded at a time, in lock-step over the same
              devices (see ``worlds.batch_world``). The result is that of the first one,
              in whose ``batch`` are all of them. None: one request
    requests  how many there are: a seat whose request ends takes the next one, and
              stays empty where there is none. None: as many as seats. Request i is
              the one of ``seed`` + i
    cancel    when work ends that nobody wants any more, see World
    lost      device name -> the second at which it dies
    settings  the method's own; ``gamma``, ``lookahead`` and ``servers`` (as many
              targets) are "auto" where they are left out

    Raises SpeclibError for an unknown method, setting, latency file or device in
    ``lost``, for a value that is not of its kind, and for what is said of the draft
    where a method has none (but plain decoding, with which all others are compared).
    """
    requested = request_settings(method, gamma, settings, simulate)
    if not about(method).uses_draft and method != "autoregressive":
        idle = {
            "alpha": alpha is not None,
            "doubt": doubt != 0,
            "fuzzy": fuzzy != 1,
            "one_pass": one_pass,
        }
        refuse_idle(method, [name for name, is_given in idle.items() if is_given])
    if alpha is None:
        alpha = 0.9
    passes = Latency.ratio(c, target)
    if latency is not None:
        passes = load_latency(latency)
    if stages is not None:
        passes = passes.sharing(stages)
    if network:
        passes = passes.over_network(draft=0.0, target=network)
    passes = passes.lengthened(per_token)
    mask = BOS if one_pass else None  # no toy ever writes it
    script = _check_script(script_of(text))

    by_place = tuple(alpha) if isinstance(alpha, Sequence) else ()
    rate = alpha[0] if isinstance(alpha, Sequence) else alpha
    if by_place and doubt:
        raise BadValue(
            f"doubt is {doubt:g} with an alpha for each place: leave out one of the two"
        )

    def toys(seed: int) -> dict[str, Toy]:
        models = {}
        for name in device_names(requested.servers_at(passes.c)):
            if name == "draft":
                models[name] = Toy(
                    rate,
                    len(script.words),
                    seed,
                    script.ids,
                    CONTEXT,
                    doubt=doubt,
                    fuzzy=fuzzy,
                    by_place=by_place,
                    by_masks=one_pass,
                )
            else:
                models[name] = Toy(None, len(script.words), seed, script.ids, CONTEXT)
        return models

    def decode_in(world: World, seed: int) -> Result:
        resolved = requested.resolve(world)
        world.begin((BOS,), sampler=Sampler(), coins=Coins(seed), limit=tokens)
        METHODS[method](world, **resolved)
        trace = world.end(
            method=method,
            c=passes.c,
            alpha=list(by_place) or alpha,
            doubt=doubt,
            fuzzy=fuzzy,
            prompt=[BOS],
            **resolved,
        )
        written = tuple(world.text[1:])
        return Result(
            text=" ".join(script.words[token] for token in written),
            tokens=written,
            stats=stats(trace),
            trace=trace,
            pieces={token: f" {word}" for token, word in enumerate(script.words)},
        )

    if batch is None and requests is None:
        world = MortalWorld(toys(seed), passes, cancel, lost or {})
        world.mask = mask
        return decode_in(world, seed)

    if lost:
        raise BadValue(
            "a device dies beside one request alone: leave out lost or batch"
        )
    refuse_servers(requested)
    seats = batch or 1
    count = requests or seats
    steps = VirtualBatch(min(seats, count), passes)

    def decode_one(seat: Seat, number: int) -> Result:
        steps.give_models(seat, toys(seed + number))
        seat.mask = mask
        return decode_in(seat, seed + number)

    return of_first(in_lockstep(steps, count, decode_one))


def refuse_idle(method: str, idle: Sequence[str]) -> None:
    """Raises BadValue for what is said of a draft model where none writes anything."""
    if idle:
        raise BadValue(
            f"method {method!r} has no draft model, so that {' and '.join(idle)} would "
            f"have no effect: leave {'it' if len(idle) == 1 else 'them'} out"
        )


def _check_script(script: Script) -> Script:
    """Returns ``script``. Raises BadValue where a draft could not say a wrong word."""
    if len(script.words) < 3:
        raise BadValue("the text has fewer than two different words: give a longer one")
    return script


class MortalWorld(Virtual):
    """A virtual world in which devices die: ``lost`` maps their names to seconds."""

    def __init__(
        self,
        models: dict[str, Toy],
        latency: Latency,
        cancel: str,
        lost: dict[str, float],
    ):
        super().__init__(models, latency, cancel=cancel)
        for name in lost:
            if name not in models:
                raise unknown_name(f"no device {name!r} to lose", name, models)
        self._lost = lost

    def _schedule(
        self,
        time: float,
        future: Future[Any],
        happens: Callable[[Future[Any]], None],
    ) -> None:
        """What would end after its device has died fails at that moment instead.

        A message that is under way by then still arrives.
        """
        dies = self._lost.get(future.device, inf)
        if time > dies and happens == self._end_step:
            time = max(dies, self.now)
            progress = self._progress[future]
            progress.done = Done(None, 0, 0)
            progress.error = DeviceLost(
                f"{future.device} died at {dies:g} s, as this what-if has it"
            )
        super()._schedule(time, future, happens)


@checked
def compare(
    method: str = "pearl",
    *,
    gamma: Any = "auto",
    without: Any = None,
    lookahead: Any = "auto",
    servers: Any = "auto",
    k: Any = None,
    first: Any = None,
    lp: Any = None,
    width: Any = None,
    calibrate: Any = None,
    seed: Seed = 0,
    **what: Any,
) -> list[Result]:
    """Plain decoding, speculative decoding and ``method`` on the same what-if.

    They come in this order, for sliders; if ``method`` is one of the first two, it is
    not repeated. Each setting goes to the methods that have it: ``gamma`` to
    speculative decoding (PEARL, DuoDecoding), ``without`` to PEARL, ``lookahead`` and
    ``servers`` to DSI, ``k`` and ``first`` to DuoDecoding, ``lp``, ``width`` and
    ``calibrate`` to EasySpec (``width`` to tree speculative decoding, too). None leaves
    a setting to the method. Other settings of ``method`` are taken as they are;
    ``seed`` and further keywords are ``simulate``'s.
    """
    what["seed"] = seed
    settings = {
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
    known = parameters(method) if method in METHODS else []
    of_this_method = {name: what.pop(name) for name in known if name in what}
    for name, value in settings.items():
        if name in known and value is not None:
            of_this_method[name] = value

    # It comes first, so that what is wrong is said of the method that was asked for.
    has_draft = method not in METHODS or about(method).uses_draft
    own = {name: what[name] for name in what if has_draft or name not in OF_A_DRAFT}
    results = {method: simulate(method, **of_this_method, **own)}
    if "autoregressive" not in results:
        results["autoregressive"] = simulate("autoregressive", **what)
    if "speculative" not in results:
        results["speculative"] = simulate("speculative", gamma=gamma, **what)
    in_order = dict.fromkeys(("autoregressive", "speculative", method))
    return [results[name] for name in in_order]
