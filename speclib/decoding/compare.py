"""``compare``: runs several methods on one task, simulated or with real models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from speclib.arguments import Count, Seed, checked
from speclib.data.pairs import Pair, pair_of
from speclib.errors import BadValue
from speclib.methods import METHODS, find, parameters, settings_of_methods

from .decode import Result, decode
from .open_world import open_world
from .simulate import OF_A_DRAFT, lacks_a_draft, simulate

PLAIN = "autoregressive"
WARM_UP = 4  # tokens that every method writes before it is timed


@checked
def compare(
    *methods: str,
    method: str = "pearl",
    prompt: Any = None,
    pair: Pair | str | None = None,
    seed: Seed = 0,
    **what: Any,
) -> list[Result]:
    """Runs plain decoding, speculative decoding and ``methods`` on the same task.

    >>> results = speclib.compare("dsi", c=5, alpha=0.8, gamma=5, lookahead=2)
    >>> [result.trace.meta["method"] for result in results]
    ['autoregressive', 'speculative', 'dsi']
    >>> f"{results[2].speedup:.2f}"
    '2.67'

    The results are in this order, without repetitions. If no ``methods`` are given,
    ``method`` is used instead, which a slider can set. Each setting is passed to the
    methods that have it; None leaves the method's default. Settings of the draft are
    passed to the methods that have a draft.

    Without a ``prompt`` the task is simulated, and the other keywords are those of
    ``simulate``. With a prompt and a ``pair``, the pair's models decode (see
    ``decode_in_turns``), and the other keywords are those of ``decode``.
    """
    asked = methods or (method,)
    names = list(dict.fromkeys((PLAIN, "speculative", *asked)))
    if prompt is not None:
        return decode_in_turns(prompt, pair, names, seed=seed, **what)
    if pair is not None:
        raise BadValue("a pair without a prompt: give the prompt that it should decode")
    # The requested methods come first, so that an error names one of them.
    results = {}
    for name in dict.fromkeys((*asked, *names)):
        results[name] = simulate(name, seed=seed, **_taken(name, what))
    plain = results[PLAIN]
    for name in names[1:]:
        results[name].baseline = plain
    return [results[name] for name in names]


def decode_in_turns(
    prompt: Any,
    pair: Pair | str | None,
    methods: list[str],
    *,
    max_new_tokens: Count = 64,
    world: str = "processes",
    dtype: str = "auto",
    servers: Count = 1,
    **settings: Any,
) -> list[Result]:
    """Decodes ``prompt`` with every method in one world, each after plain decoding.

    So if the machine slows down, it slows down both. All methods are warmed up first.
    The first result is from plain decoding itself; the ``baseline`` of each other
    result is the plain run right before it.
    """
    for method in methods:
        find(method)  # so that an unknown method fails before the world is opened
    described = pair_of(pair)
    results: list[Result] = []
    with open_world(world, described, dtype=dtype, servers=servers) as devices:

        def run(method: str, count: int) -> Result:
            own = _taken(method, {**settings, "servers": servers})
            return decode(
                prompt, world=devices, method=method, max_new_tokens=count, **own
            )

        for method in methods:
            run(method, min(WARM_UP, max_new_tokens))
        for method in methods:
            plain = run(PLAIN, max_new_tokens)
            if method != PLAIN:
                plain = replace(run(method, max_new_tokens), baseline=plain)
            results.append(plain)
    return results


def _taken(method: str, what: dict[str, Any]) -> dict[str, Any]:
    """The keywords in ``what`` that have an effect on ``method``."""
    if method not in METHODS:
        return what
    idle = settings_of_methods().difference(parameters(method))
    if lacks_a_draft(method):
        idle.update(OF_A_DRAFT)
    return {k: v for k, v in what.items() if k not in idle and v is not None}
