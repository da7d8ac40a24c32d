"""A request to ``check``: a rule, its shape, and the cases to try it on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, wraps
from inspect import Parameter, isasyncgenfunction, iscoroutinefunction, signature
from typing import Any, NamedTuple

import numpy as np

from speclab.check.calls import NO_COROUTINE, call_of
from speclab.check.candidates import GREEDY_POSITIONS, POSITIONS
from speclab.check.case import CHOICES, Array, DrawnOnDemand, Rule
from speclab.check.line import (
    CASES,
    GREEDY_CASES,
    LIKED_ALIKE,
    LIKELIEST_DRAFTED,
    LineCase,
    random_line,
)
from speclab.check.sampled import LEAST_RUNS
from speclab.check.tree import GREEDY_TREES, TREES
from speclib.arguments import shown as as_shown
from speclib.core.settings import require_counts
from speclib.errors import BadCall, BadValue

SHAPES = ("line", "tree", "candidates", "method")
ARGUMENTS = {"line": 4, "tree": 5, "candidates": 4}  # how many; the last is the coin
# The positions of q and p among the arguments.
Q_AND_P = {"line": (1, 2), "tree": (2, 3), "candidates": (1, 2)}
MOST_OUTCOMES = 20_000  # enumerated in a case with the caller's gamma or vocab
MOST_GAMMA = 256  # beyond this a check takes too long
MOST_VOCAB = 300_000  # above the largest vocabularies of published models
COIN = "coin"
END = "end"  # the argument for the token that ends a text, if a rule takes it


class CheckRequest(NamedTuple):
    """A rule to check, and how to check it."""

    rule: Rule
    shape: str
    array: Array
    seconds: float
    runs: int
    choice: str
    cases: Sequence[Any]

    @property
    def takes_end(self) -> bool:
        return _takes_end(self.rule)

    def walk(self, case: Any, end: int | None = None) -> dict[Any, float]:
        """The distribution of what the rule returns in a case, over every outcome.

        Raises NotRepeatable if the rule behaves differently from call to call.
        """
        distribution: dict[Any, float] = case.distribution(self.called(end), self.array)
        return distribution

    def called(self, end: int | None = None) -> Rule:
        """The rule, callable with a coin and without an end token.

        ``end``: the token passed to a rule that takes an end token.
        """
        rule = self.rule
        takes_coin, takes_end = _takes_coin(rule, self.shape), _takes_end(rule)
        if takes_coin and not takes_end:
            return rule

        @wraps(rule)
        def run(*arguments: Any) -> Any:
            given = arguments if takes_coin else arguments[:-1]
            return rule(*given, **({END: end} if takes_end else {}))

        return run

    def with_changed_q(self, change: Callable[[Any], Any]) -> Rule:
        """The rule, called with rows of q that ``change`` has changed."""
        rule = self.called()

        @wraps(rule)
        def run(*arguments: Any) -> Any:
            *before, q, p, coin = arguments
            rows = np.array([np.asarray(row, float) for row in q])
            return rule(*before, self.array(change(rows)), p, coin)

        return run


def few_cases(shape: str) -> Sequence[Any]:
    """Small cases that are sensitive to how drafts are chosen."""
    if shape == "tree":
        return TREES[:2]
    if shape == "candidates":
        return POSITIONS[1:4]
    return (LIKELIEST_DRAFTED, LIKED_ALIKE)


def greedy_cases(shape: str) -> Sequence[Any]:
    """Cases with a deterministic target."""
    if shape == "tree":
        return GREEDY_TREES
    if shape == "candidates":
        return GREEDY_POSITIONS
    return GREEDY_CASES


# -- arguments -------------------------------------------------------------------------
def require_arguments(
    array: object,
    drawn: object,
    gamma: int | None,
    vocab: int | None,
    servers: int,
    seconds: float,
    runs: int,
) -> None:
    """Raises BadValue for an argument that ``check`` cannot work with."""
    require_counts(gamma=gamma, servers=servers)
    require_counts(2, vocab=vocab)
    for name, count, most in (
        ("gamma", gamma, MOST_GAMMA),
        ("vocab", vocab, MOST_VOCAB),
    ):
        if count is not None and count > most:
            raise BadValue(f"{name} is {count:,}: give at most {most:,}")
    require_counts(LEAST_RUNS, runs=runs)
    if not callable(array):
        raise BadValue(
            f"array is {as_shown(array)}: give a function, such as list or torch.tensor"
        )
    if not isinstance(drawn, str) or drawn not in CHOICES:
        known = [repr(choice) for choice in CHOICES]
        raise BadValue(
            f"drawn is {as_shown(drawn)}: give {', '.join(known[:-1])} or {known[-1]}"
        )
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise BadValue(f"seconds is {as_shown(seconds)}: give a number above 0")
    if not seconds > 0:
        raise BadValue(f"seconds is {seconds}: give a number above 0")


def require_fit(
    shape: str, drawn: str, gamma: int | None, vocab: int | None, put_back: bool
) -> None:
    """Raises BadValue for an argument that this shape does not take."""
    if shape != "line" and (gamma is not None or vocab is not None):
        raise BadValue(f"gamma and vocab are for a line; this is a {shape}")
    if put_back and shape not in ("tree", "candidates"):
        raise BadValue(f"put_back is for candidates and trees; this is a {shape}")
    if drawn != "q" and shape in ("method", "pair"):
        raise BadValue(
            f"drawn is for a rule; this is a {shape}, which chooses its own drafts"
        )


def require_plain(rule: Rule) -> None:
    """Raises BadCall for a rule that is ``async``."""
    while isinstance(rule, partial):
        rule = rule.func
    for function in (rule, call_of(rule)):
        if iscoroutinefunction(function) or isasyncgenfunction(function):
            raise BadCall(
                f"the rule is {as_shown(rule)}, an `async def`: {NO_COROUTINE}"
            )


def require_order(rule: Rule, shape: str) -> None:
    """Raises BadValue for a rule whose argument names put p before q.

    Arguments are passed by position: first the draft's rows, then the target's.
    """
    try:
        names = arguments_of(rule)
    except BadValue:  # unknown
        return
    q_place, p_place = Q_AND_P[shape]
    if len(names) <= p_place:
        return
    if _rows_named(names[q_place]) == "p" or _rows_named(names[p_place]) == "q":
        raise BadValue(
            f"the rule takes ({', '.join(names)}), but check passes q before p: the "
            "draft's rows, then the target's"
        )


def _rows_named(name: str) -> str:
    """Which rows an argument's name suggests: "q", "p", or "" for neither."""
    words = name.lower().split("_")
    for whose, kinds in (("q", ("draft", "assistant")), ("p", ("target",))):
        if any(kind in name.lower() for kind in kinds):
            return whose
    return next((word for word in words if word in ("q", "p")), "")


def shape_of(rule: Rule) -> str:
    """The shape of a rule, from its arguments. Raises BadValue if they fit none."""
    names = arguments_of(rule)
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
        "rule(drafted, q, p, coin), or give one of " + ", ".join(SHAPES)
    )


def arguments_of(rule: Rule) -> list[str]:
    """The names of a rule's required arguments, in order."""
    try:
        arguments = signature(rule).parameters.values()
    except (TypeError, ValueError):
        raise BadValue(
            f"the arguments of {as_shown(rule)} are unknown: give its shape, one of "
            + ", ".join(SHAPES)
        ) from None
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    given = [each for each in arguments if each.kind in positional]
    names = [each.name for each in given if each.default is Parameter.empty]
    after = given[len(names) : len(names) + 1]
    # A coin is passed even if the argument has a default.
    if [each.name for each in after] == [COIN]:
        names.append(COIN)
    return [name for name in names if name != END]


def _is_end(parameter: Parameter) -> bool:
    by_name = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return parameter.name == END and parameter.kind in by_name


def _takes_end(rule: Rule) -> bool:
    """Whether a rule takes the token that ends a text."""
    try:
        return any(map(_is_end, signature(rule).parameters.values()))
    except (TypeError, ValueError):  # unknown
        return False


def _takes_coin(rule: Rule, shape: str) -> bool:
    """Whether a rule takes a coin. We assume so if its arguments are unknown."""
    try:
        return len(arguments_of(rule)) != ARGUMENTS[shape] - 1
    except BadValue:
        return True


def cases_of(
    shape: str, gamma: int | None, vocab: int | None, put_back: bool, choice: str
) -> Sequence[Any]:
    """The cases to try a rule on."""
    if shape == "tree":
        return chosen(TREES, choice, put_back=put_back)
    if shape == "candidates":
        return chosen(POSITIONS, choice, put_back=put_back)
    return chosen(_lines(gamma, vocab, choice), choice)


def chosen(cases: Sequence[Any], choice: str, **changes: Any) -> list[Any]:
    """The cases, with drafts chosen by ``choice``."""
    return [replace(case, choice=choice, **changes) for case in cases]


def _lines(gamma: int | None, vocab: int | None, choice: str) -> Sequence[LineCase]:
    if gamma is None and vocab is None:
        return CASES if choice == "q" else (LIKELIEST_DRAFTED, *CASES)
    gamma = 3 if gamma is None else gamma
    vocab = 3 if vocab is None else vocab
    name = f"{vocab} tokens, {gamma} drafted"
    # Each possible draft can be rejected at any position, and replaced by any token.
    if vocab ** (gamma + 1) * (gamma + 1) <= MOST_OUTCOMES:
        return [random_line(name, vocab, gamma, seed) for seed in (1, 2)]
    draft, target = DrawnOnDemand(vocab, seed=1), DrawnOnDemand(vocab, seed=2)
    return [LineCase(name, draft, target, gamma)]
