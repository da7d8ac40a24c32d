"""Is this acceptance rule lossless? An answer by walking every outcome.

A rule says which drafted tokens are kept, and what is drawn in place of the others. It
is lossless where what it writes has the target's own distribution. This is decided here
without sampling: models of a few tokens are known completely, and the rule's random
numbers are held as intervals that every comparison cuts in two. Where that cannot be
done, the rule is run many times, and the answer says how large an error it would find.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import wraps
from inspect import Parameter, signature
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from speclib.arguments import shown as as_shown
from speclib.core.settings import require_counts
from speclib.errors import BadCall, BadValue, unknown_name
from speclib.methods import METHODS
from speclib.worlds.enumerator import NotRepeatable, total_variation
from speclib.worlds.world import World

from . import candidate_mistakes, line_mistakes, pages
from .calls import Failed, is_caused_by, time_limit
from .candidates import POSITIONS
from .case import Array, Case, DrawnWhenAsked, Rule
from .coin import NotWalkable
from .line import CASES, GREEDY_CASES, LineCase, random_line
from .mistakes import Mistake, is_same, likely_mistake
from .report import Checked, Rate
from .sampled import LEAST_RUNS, RUNS, Sampled, sample
from .tree import TREES

SHAPES = ("line", "tree", "candidates", "method")
ARGUMENTS = {"line": 4, "tree": 5, "candidates": 4}  # the last of them is the coin
MOST_OUTCOMES = 20_000  # of a case of the caller's own that are walked
LENGTHS = ("gamma", "lookahead")  # what methods call the length of a draft
TIMES = 3  # a rule is walked, to find out whether it draws its own random numbers
OWN_RANDOMNESS = (
    "It draws random numbers of its own, so not every outcome can be walked. Let "
    "chance come from `coin()` alone, and the answer is exact."
)
COIN_TOO_FREE = (
    "It does more with a coin than compare it, so not every outcome can be walked."
)


def check(
    rule: Rule | str,
    shape: str | None = None,
    *,
    array: Array = np.array,
    gamma: int | None = None,
    vocab: int | None = None,
    put_back: bool = False,
    servers: int = 1,
    seconds: float = 30.0,
    runs: int = RUNS,
) -> Checked:
    """Whether an acceptance rule, or a whole method, loses nothing of the target.

    ``rule`` is a function. By its ``shape`` it is called as

        line         rule(drafted, q, p, coin)           -> the committed tokens
        tree         rule(tokens, parents, q, p, coin)   -> the committed tokens
        candidates   rule(candidates, q, p, coin)        -> one token
        method       method(world, gamma)                as a page of speclib.methods

    which ``speclib.checking`` explains in ``line``, ``tree``, ``candidates`` and
    ``pages``. Without ``shape`` it is found by the function's arguments. A registered
    method may be given by its name. The committed tokens are the accepted drafts and
    one token more. ``coin()`` gives a random number in [0, 1), which is used by
    comparing it, or by ``draw(row, coin())`` of ``speclib.checking.coin``. A rule that
    draws its own random numbers takes no coin; then the answer is by sampling.

    ``array``: what the distributions are given as: ``torch.tensor``, ``list``, or any
    function of a numpy array. ``gamma``, ``vocab``: of a line, the draft length and the
    number of tokens to be tried, in place of the usual cases. Where these have too many
    outcomes, the answer is by sampling, too. ``put_back``: of candidates and trees,
    whether a candidate may be drawn again beside itself. ``servers``: of a method, the
    devices that have the target. ``seconds`` of a processor's time and ``runs`` limit
    the work; in another thread than the main one nothing ends a rule that never ends.

    The answer is true where the rule is lossless, so that ``assert check(rule)`` is a
    test. A sampled answer proves nothing: it is true nowhere, and where it finds no
    error its ``problem`` is empty. Errors below a probability of 1e-6 are not seen.
    Whatever the rule does, nothing is raised but BadValue and BadCall for arguments of
    ``check`` itself.
    """
    _require_arguments(array, gamma, vocab, servers, seconds, runs)
    if isinstance(rule, str):
        if rule not in METHODS:
            raise unknown_name(f"no method {rule!r}", rule, METHODS)
        rule, shape = _page_of(rule), "method"
    if not callable(rule):
        raise BadCall(f"a rule is a function; this is {as_shown(rule)}")
    shape = shape or shape_of(rule)
    if shape not in SHAPES:
        raise unknown_name(f"no shape {shape!r}", shape, SHAPES)
    if shape != "line" and (gamma is not None or vocab is not None):
        raise BadValue(f"gamma and vocab are of a line; this is a {shape}")
    if put_back and shape not in ("tree", "candidates"):
        raise BadValue(f"put_back is of candidates and trees; this is a {shape}")
    if shape != "method":
        _require_order(rule)

    began = process_time()
    try:
        with time_limit(seconds):
            if shape == "method":
                answer = _check_method(rule, servers)
            else:
                cases = _cases(shape, gamma, vocab, put_back)
                asked = _Asked(rule, shape, array, seconds, runs, cases)
                answer = _check_rule(asked)
    except Failed as failed:
        answer = Checked(None, problem=str(failed), how="not run")
    return replace(answer, seconds=process_time() - began)


# -- what is asked ---------------------------------------------------------------------
def _require_arguments(
    array: object,
    gamma: int | None,
    vocab: int | None,
    servers: int,
    seconds: float,
    runs: int,
) -> None:
    """Raises BadValue for an argument that ``check`` cannot work with."""
    require_counts(gamma=gamma, servers=servers)
    require_counts(2, vocab=vocab)
    require_counts(LEAST_RUNS, runs=runs)
    if not callable(array):
        raise BadValue(
            f"array is {as_shown(array)}: give a function, such as list or torch.tensor"
        )
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise BadValue(f"seconds is {as_shown(seconds)}: give a number above 0")
    if not seconds > 0:
        raise BadValue(f"seconds is {seconds}: give a number above 0")


def _require_order(rule: Rule) -> None:
    """Raises BadValue for a rule that calls its arguments p and q the other way round.

    They are given by their places: the draft's rows first.
    """
    try:
        names = _arguments(rule)
    except BadValue:  # they are not known
        return
    if "p" in names and "q" in names and names.index("p") < names.index("q"):
        raise BadValue(
            f"the rule takes ({', '.join(names)}), and is given q before p: the "
            "draft's rows, then the target's"
        )


def shape_of(rule: Rule) -> str:
    """The shape of a rule, by the arguments that it takes.

    Raises BadValue where they fit none.
    """
    names = _arguments(rule)
    if names[:1] == ["world"]:
        return "method"
    if names[:1] == ["candidates"]:
        return "candidates"
    if names[1:2] == ["parents"]:
        return "tree"
    if len(names) in (ARGUMENTS["line"], ARGUMENTS["line"] - 1):
        return "line"
    raise BadValue(
        f"a rule with the arguments ({', '.join(names)}) fits no shape: write "
        "rule(drafted, q, p, coin), or name one of " + ", ".join(SHAPES)
    )


def _arguments(rule: Rule) -> list[str]:
    """The names of what a rule must be given, in their order."""
    try:
        arguments = signature(rule).parameters.values()
    except (TypeError, ValueError):
        raise BadValue(
            f"the arguments of {as_shown(rule)} are not known: name its shape, one of "
            + ", ".join(SHAPES)
        ) from None
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return [
        each.name
        for each in arguments
        if each.kind in positional and each.default is Parameter.empty
    ]


def _takes_coin(rule: Rule, shape: str) -> bool:
    """Whether a rule asks for a coin; one whose arguments are not known does."""
    try:
        return len(_arguments(rule)) != ARGUMENTS[shape] - 1
    except BadValue:
        return True


def _cases(
    shape: str, gamma: int | None, vocab: int | None, put_back: bool
) -> Sequence[Any]:
    """What a rule is tried on."""
    if shape == "tree":
        return [replace(tree, put_back=put_back) for tree in TREES]
    if shape == "candidates":
        return [replace(position, put_back=put_back) for position in POSITIONS]
    if gamma is None and vocab is None:
        return CASES
    gamma = 3 if gamma is None else gamma
    vocab = 3 if vocab is None else vocab
    name = f"{vocab} tokens, {gamma} drafted"
    # Every text that may be drafted may be rejected at each place, for every token.
    if vocab ** (gamma + 1) * (gamma + 1) <= MOST_OUTCOMES:
        return [random_line(name, vocab, gamma, seed) for seed in (1, 2)]
    draft, target = DrawnWhenAsked(vocab, seed=1), DrawnWhenAsked(vocab, seed=2)
    return [LineCase(name, draft, target, gamma)]


class _Asked(NamedTuple):
    """A rule to be checked, and on what."""

    rule: Rule
    shape: str
    array: Array
    seconds: float
    runs: int
    cases: Sequence[Any]

    @property
    def takes_coin(self) -> bool:
        return _takes_coin(self.rule, self.shape)

    def walk(self, case: Any) -> dict[Any, float]:
        """What the rule gives in a case, over every outcome.

        Raises NotRepeatable where it does not do the same each time.
        """
        distribution: dict[Any, float] = case.distribution(
            self._with_coin(), self.array
        )
        return distribution

    def _with_coin(self) -> Rule:
        """The rule as one that is given a coin, whether or not it takes one."""
        rule = self.rule
        if self.takes_coin:
            return rule

        @wraps(rule)
        def ignoring_coin(*arguments: Any) -> Any:
            return rule(*arguments[:-1])

        return ignoring_coin


# -- a rule ----------------------------------------------------------------------------
def _check_rule(asked: _Asked) -> Checked:
    """The answer for a rule: walked, or sampled where that cannot be done."""
    first = asked.cases[0]
    if isinstance(first, LineCase) and isinstance(first.target, DrawnWhenAsked):
        too_many = f"{first.name}: too many outcomes to walk them all."
        return _by_sampling(asked, too_many)
    try:
        return _by_walking(asked)
    except NotRepeatable:
        return _by_sampling(asked, OWN_RANDOMNESS)
    except Failed as failed:
        # A library that knows no coins names their class in its error.
        is_about_coins = is_caused_by(failed, NotWalkable) or "Coin" in str(failed)
        if not is_about_coins:
            raise
        return _by_sampling(asked, COIN_TOO_FREE)


def _by_walking(asked: _Asked) -> Checked:
    """Raises NotRepeatable for a rule that draws its own random numbers."""
    ends = process_time() + asked.seconds / 2
    generators = _states_of_generators()
    distributions: list[dict[Any, float]] = []
    for case in asked.cases:
        if distributions and process_time() > ends:
            break
        distributions.append(asked.walk(case))
    if _states_of_generators() != generators:
        raise NotRepeatable(OWN_RANDOMNESS)

    walked = asked.cases[: len(distributions)]
    pairs = list(zip(walked, distributions, strict=True))
    problem = _first(case.difference(found) for case, found in pairs)
    if problem is not None:
        _require_repeatable(asked, pairs)
    is_whole = len(walked) == len(asked.cases)
    is_lossless: bool | None = problem is None
    if is_lossless and not is_whole:
        is_lossless = None  # what was not walked may still show an error
    answer = Checked(
        is_lossless=is_lossless,
        problem=problem or "",
        how="walked" if is_whole else "walked in part",
        scope=_scope_of(walked, asked.cases),
        rate=_rate_of(pairs),
        notes=_possible_by_a_coin_of_0(pairs) if problem is None else (),
    )
    if problem is None:
        return answer

    mistake = _mistake_like(asked, distributions)
    return replace(
        answer,
        largest_error=max(case.largest_error(found) for case, found in pairs),
        mistake=mistake.name if mistake else "",
        question=mistake.question if mistake else "",
        is_lossless_greedy=_is_lossless_greedy(asked),
    )


def _states_of_generators() -> list[object]:
    """How far the random generators are that everybody shares: a draw moves them."""
    states: list[object] = [random.getstate(), repr(np.random.get_state())]
    torch = sys.modules.get("torch")  # nobody draws from it who has not loaded it
    if torch is not None:
        states.append(torch.get_rng_state().tolist())
    return states


def _require_repeatable(
    asked: _Asked, pairs: Sequence[tuple[Any, dict[Any, float]]]
) -> None:
    """Raises NotRepeatable where the walks are not the same when made once more."""
    for _ in range(TIMES - 1):
        for case, distribution in pairs:
            if not is_same(asked.walk(case), distribution):
                raise NotRepeatable(OWN_RANDOMNESS)


def _possible_by_a_coin_of_0(
    pairs: Iterable[tuple[Any, dict[Any, float]]],
) -> tuple[str, ...]:
    """A note on what may be written with probability 0, and by the target never."""
    impossible = _first(case.impossible(found) for case, found in pairs)
    if impossible is None:
        return ()
    return (impossible,)


def _mistake_like(
    asked: _Asked, distributions: Sequence[dict[Any, float]]
) -> Mistake | None:
    """The known mistake that gives the same in every case that was walked."""
    known: dict[str, tuple[Mistake, ...]] = {
        "line": line_mistakes.MISTAKES,
        "candidates": candidate_mistakes.MISTAKES,
    }
    walked = asked.cases[: len(distributions)]

    def answers_of(solution: Rule) -> list[dict[Any, float]] | None:
        try:
            return [case.distribution(solution) for case in walked]
        except Failed:
            return None

    return likely_mistake(distributions, known.get(asked.shape, ()), answers_of)


def _is_lossless_greedy(asked: _Asked) -> bool | None:
    """Whether a rule for lines is right with models that are sure of their tokens."""
    if asked.shape != "line":
        return None
    try:
        for case in GREEDY_CASES:
            if case.difference(asked.walk(case)) is not None:
                return False
    except Failed:
        return False
    return True


def _rate_of(pairs: Sequence[tuple[Any, dict[Any, float]]]) -> Rate:
    """What a pass gives in the mean over the cases, beside what is possible."""
    rates = [case.rate(found) for case, found in pairs]
    unit: str = pairs[0][0].unit
    best = _means([case.best_rates() for case, _ in pairs])
    return Rate(float(np.mean(rates)), unit, best)


def _means(rates: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of each kind over the cases."""
    return {kind: float(np.mean([each[kind] for each in rates])) for kind in rates[0]}


def _scope_of(walked: Sequence[Any], cases: Sequence[Any]) -> str:
    """What was walked, in a sentence."""
    if len(walked) < len(cases):
        return (
            f"Every outcome was walked, in {len(walked)} of {len(cases)} cases: there "
            "was no time for more."
        )
    first, last = cases[0].name, cases[-1].name
    return (
        f"Every outcome was walked, in {len(cases)} cases, from {first!r} to {last!r}."
    )


def _first(differences: Iterable[str | None]) -> str | None:
    """The first that is there."""
    return next((each for each in differences if each is not None), None)


# -- by sampling -----------------------------------------------------------------------
def _by_sampling(asked: _Asked, why: str) -> Checked:
    """The answer by many runs of the rule."""
    if asked.shape == "candidates":
        return Checked(
            None,
            problem=f"{why} For candidates there is no answer by sampling.",
            how="not run",
        )
    cases = [case for case in asked.cases if not _is_sure(case)]
    samples: list[Sampled] = []
    for case in cases:
        samples.append(
            sample(
                case,
                asked.rule,
                takes_coin=asked.takes_coin,
                array=asked.array,
                runs=max(LEAST_RUNS, asked.runs // len(cases)),
                seconds=asked.seconds / (2 * len(cases)),
            )
        )
    problem = _first(each.difference for each in samples)
    runs = sum(each.runs for each in samples)
    if problem is None and min(each.runs for each in samples) < LEAST_RUNS:
        return Checked(
            None,
            problem=f"{why} In the time that it had it was run {runs} times only.",
            how="not run",
        )
    return Checked(
        is_lossless=None if problem is None else False,
        problem=problem or "",
        how="sampled",
        scope=f"{why} It was run {runs:,} times.",
        largest_error=max(each.error for each in samples),
        would_find=max(each.would_find for each in samples),
        rate=_sampled_rate(samples, cases),
    )


def _is_sure(case: Case[Any]) -> bool:
    """Whether the target is sure of its token at once, so that nothing is by chance."""
    return float(case.target[()].max()) == 1.0


def _sampled_rate(samples: Sequence[Sampled], cases: Sequence[Any]) -> Rate:
    """Tokens a pass, in the mean over the cases, beside what is possible."""
    mean = float(np.mean([each.tokens for each in samples]))
    off = float(np.sqrt(np.mean([each.tokens_off**2 for each in samples])))
    off /= len(samples) ** 0.5
    is_large = isinstance(cases[0].target, DrawnWhenAsked)
    best = {} if is_large else _means([case.best_rates() for case in cases])
    return Rate(mean, f"tokens a pass (95 % interval: +-{off:.4f})", best)


# -- a method --------------------------------------------------------------------------
def _page_of(name: str) -> pages.Method:
    """A registered method as a function of a world and a draft length."""
    required = _arguments(METHODS[name])

    def page(world: World, gamma: int) -> None:
        settings = {length: gamma for length in LENGTHS if length in required}
        METHODS[name](world, **settings)

    return page


def _check_method(method: pages.Method, servers: int) -> Checked:
    """The answer for a whole method."""
    setup = pages.Setup(servers=servers)
    try:
        behaviour = pages.behaviour_of(method, setup)
        problem = _first(
            find(behaviour, setup)
            for find in (
                pages.greedy_difference,
                pages.sampled_difference,
                pages.clock_difference,
            )
        )
        if problem is not None and not pages.is_repeatable(method, setup, behaviour):
            raise NotRepeatable(OWN_RANDOMNESS)
    except NotRepeatable:
        return Checked(None, problem=OWN_RANDOMNESS, how="not run")

    errors, is_right_greedy = [], True
    for walk, found in zip(setup.walks, behaviour.sampled, strict=True):
        wanted = pages.target_distribution(walk, temperature=1.0)
        errors.append(total_variation(found, wanted))
    if pages.greedy_difference(behaviour, setup) is not None:
        is_right_greedy = False
    walked = ", and ".join(walk.words for walk in setup.walks)
    return Checked(
        is_lossless=problem is None,
        problem=problem or "",
        scope=f"Every outcome was walked of all texts {walked}, greedily and sampling.",
        largest_error=max(errors),
        is_lossless_greedy=is_right_greedy,
        notes=tuple(_speeds(behaviour, setup)),
    )


def _speeds(behaviour: pages.Behaviour, setup: pages.Setup) -> list[str]:
    """How fast a method is on the virtual clock: a sentence for each run."""
    sentences = []
    for run in behaviour.clock:
        how = "greedily" if run.temperature == 0 else "at temperature 1"
        sentences.append(
            f"On the virtual clock (c = {run.c:g}, alpha = {pages.CLOCK_ALPHA:g}, "
            f"{setup.words}), {how}: {setup.clock_tokens / run.seconds:.2f} times as "
            "fast as plain decoding."
        )
    return sentences
