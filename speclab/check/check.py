"""Checks whether an acceptance rule is lossless, by enumerating every outcome.

A rule decides which drafted tokens are kept and what replaces the others. It is
lossless if the text that it writes has the target's distribution. We decide this
without sampling: models over a few tokens are known completely, and each of the rule's
random numbers is an interval that every comparison cuts in two. If this is impossible,
we run the rule many times, and the answer states how large an error we would find.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from speclab.check import candidate_mistakes, line_mistakes, pages
from speclab.check.calls import (
    AllTookTooLong,
    Failed,
    TookTooLong,
    is_caused_by,
    time_limit,
)
from speclab.check.case import (
    CHOICES,
    Array,
    Case,
    DrawnOnDemand,
    Rule,
    listed,
    with_true_q,
)
from speclab.check.check_request import (
    SHAPES,
    CheckRequest,
    arguments_of,
    cases_of,
    chosen,
    few_cases,
    greedy_cases,
    require_arguments,
    require_fit,
    require_order,
    require_plain,
    shape_of,
)
from speclab.check.coin import NotWalkable
from speclab.check.line import LineCase
from speclab.check.mistakes import Mistake, is_same
from speclab.check.randomness import modules_and_states
from speclab.check.report import Checked, Rate
from speclab.check.sampled import LEAST_RUNS, RUNS, Sampled, sample
from speclib.arguments import shown as as_shown
from speclib.errors import BadCall, unknown_name
from speclib.methods import METHODS
from speclib.paths import DATA
from speclib.worlds.enumerator import NotRepeatable, total_variation
from speclib.worlds.world import World

if TYPE_CHECKING:
    from speclib.data.pairs import Pair

LENGTHS = ("gamma", "lookahead")  # methods' names for the draft length
TIMES = 3  # enumerations of a rule, to see whether it draws its own random numbers
FIRST_CASES = 6  # how many cases are enumerated again, with an end token or another q
FEWER = 1e-6  # tokens per pass; a smaller shortfall is not reported
OWN_RANDOMNESS = (
    "It draws its own random numbers, so its outcomes cannot all be enumerated. If it "
    "draws them only from `coin()`, the answer is exact."
)
DIFFERS_EACH_TIME = (
    "It behaves differently from call to call, so its outcomes cannot all be "
    "enumerated. Does it draw its own random numbers, or keep state between calls? If "
    "it draws random numbers only from `coin()`, the answer is exact."
)
NO_TIME_FOR_AN_END = (
    "No error was found, but there was no time to try it with an end token."
)
COIN_NOT_ONLY_COMPARED = (
    "It does more with a coin than compare it, so its outcomes cannot all be "
    "enumerated."
)
Found = TypeVar("Found")
Walked = Sequence[tuple[Any, dict[Any, float]]]  # a case, the rule's distribution in it


class Fault(NamedTuple):
    """What is wrong with a rule: a sentence, and the name of the mistake.

    ``needs_end``: whether the error shows only if a token ends the text.
    """

    problem: str
    mistake: str = ""
    question: str = ""
    needs_end: bool = False


def check(
    rule: Rule | Pair | str,
    shape: str | None = None,
    *,
    array: Array = np.array,
    gamma: int | None = None,
    vocab: int | None = None,
    put_back: bool = False,
    drawn: str = "q",
    servers: int = 1,
    seconds: float = 30.0,
    runs: int = RUNS,
) -> Checked:
    """Checks whether an acceptance rule, or a whole method, is lossless.

    >>> bool(speclib.check("speculative"))
    True
    >>> bool(speclib.check(lambda drafted, q, p, coin: drafted[:1]))
    False

    ``rule`` is a function. Its ``shape`` determines how it is called:

        line         rule(drafted, q, p, coin)           -> the committed tokens
        tree         rule(tokens, parents, q, p, coin)   -> the committed tokens
        candidates   rule(candidates, q, p, coin)        -> one token
        method       method(world, gamma)                as in speclib.methods

    The modules ``line``, ``tree``, ``candidates`` and ``pages`` of ``speclab.check``
    explain the arguments. By default the shape is inferred from the function's
    arguments. ``rule`` may also be the name of a registered method, or a Pair or its
    name (see ``speclab.check.pair``). The committed tokens are the accepted drafts and
    one more token. A rule for a line or a tree that takes ``end`` is also tried with a
    token that ends the text. ``coin()`` returns a random number in [0, 1): compare it,
    or pass it to ``draw(row, coin())`` from ``speclab.check.coin``. A rule that draws
    its own random numbers takes no coin; it is checked by sampling.

    ``array`` converts q and p for the rule: ``torch.tensor``, ``list``, or any
    function of a numpy array. ``gamma``, ``vocab`` (for a line): the draft length and
    vocabulary size to try instead of the usual cases; if there are too many outcomes,
    we sample. ``put_back`` (for candidates and trees): whether candidates are drawn
    with replacement. ``drawn``: how each draft is chosen, given the draft's softmax q:
    "q" draws from q, "argmax" takes the likeliest token, "top-k" draws from the two
    likeliest. ``servers`` (for a method): the number of devices with the target.
    ``seconds`` of CPU time and ``runs`` limit the work. Outside the main thread we
    cannot stop a rule that never ends.

    The answer is true if the rule is lossless, so ``assert check(rule)`` is a test. A
    sampled answer proves nothing: it is never true, and its ``problem`` is empty if no
    error was found. Errors below a probability of 1e-6 are not detected. Whatever the
    rule does, raises only BadValue and BadCall, for arguments of ``check`` itself.
    """
    require_arguments(array, drawn, gamma, vocab, servers, seconds, runs)
    subject: Any = rule
    if isinstance(rule, str) and rule in METHODS:
        subject, shape = _page_of(rule), "method"
    is_rule = callable(subject)
    subject = subject if is_rule else _pair_of(subject)
    shape = _shape_of(subject, shape) if is_rule else "pair"
    require_fit(shape, drawn, gamma, vocab, put_back)

    began = process_time()
    if not is_rule:
        from speclab.check.pair import check_pair

        return replace(check_pair(subject, seconds), seconds=process_time() - began)
    try:
        with time_limit(seconds):
            if shape == "method":
                answer = _check_method(subject, servers)
            else:
                cases = cases_of(shape, gamma, vocab, put_back, drawn)
                request = CheckRequest(
                    subject, shape, array, seconds, runs, drawn, cases
                )
                answer = _check_rule(request)
    except Failed as failed:
        answer = Checked(None, problem=str(failed), how="not run")
    return replace(answer, seconds=process_time() - began)


def _shape_of(rule: Rule, shape: str | None) -> str:
    """The given shape, or the one inferred from the rule's arguments."""
    require_plain(rule)
    shape = shape_of(rule) if shape is None else shape
    if shape not in SHAPES:
        raise unknown_name(f"no shape {shape!r}", shape, SHAPES)
    if shape != "method":
        require_order(rule, shape)
    return shape


def _pair_of(pair: object) -> Pair:
    """Returns the pair itself, or loads it if ``pair`` is a name.

    Raises BadValue for an unknown name, BadCall for anything else.
    """
    from speclib.data.pairs import Pair, load_pair
    from speclib.data.toml_files import names_under

    if isinstance(pair, Pair):
        return pair
    if not isinstance(pair, str):
        raise BadCall(f"a rule is a function; this is {as_shown(pair)}")
    if pair in names_under(DATA / "pairs"):
        return load_pair(pair)
    others = (
        "A rule is path/to/file.py:function, and a pair has a name like embedded/once"
    )
    raise unknown_name(f"no method {pair!r}", pair, METHODS, others)


# -- a rule ----------------------------------------------------------------------------
def _check_rule(request: CheckRequest) -> Checked:
    """Checks a rule, by enumeration if possible and otherwise by sampling."""
    first = request.cases[0]
    if isinstance(first, LineCase) and isinstance(first.target, DrawnOnDemand):
        too_many = f"{first.name}: too many outcomes to enumerate."
        return _by_sampling(request, too_many)
    try:
        return _by_walking(request)
    except NotRepeatable as error:
        return _by_sampling(request, _why_not_walked(error))
    except Failed as failed:
        # A library that cannot handle a coin names the class Coin in its error.
        is_about_coins = is_caused_by(failed, NotWalkable) or "Coin" in str(failed)
        if not is_about_coins:
            raise
        return _by_sampling(request, COIN_NOT_ONLY_COMPARED)


def _why_not_walked(error: NotRepeatable) -> str:
    """The sentence about a rule that behaves differently from call to call."""
    return OWN_RANDOMNESS if str(error) == OWN_RANDOMNESS else DIFFERS_EACH_TIME


def _by_walking(request: CheckRequest) -> Checked:
    """Checks a rule by enumeration.

    Raises NotRepeatable for a rule that draws its own random numbers.
    """
    ends = process_time() + request.seconds / 2
    pairs: list[tuple[Any, dict[Any, float]]] = []
    for case in request.cases:
        if pairs and process_time() > ends:
            break
        try:
            found = _without_draws(request.rule, partial(request.walk, case))
            pairs.append((case, found))
        except AllTookTooLong:
            if not pairs:
                raise
            break

    walked = [case for case, _ in pairs]
    is_whole = len(walked) == len(request.cases)
    fault = _fault(request, pairs)
    is_lossless: bool | None = fault is None
    if is_lossless and not is_whole:
        is_lossless = None  # the other cases may still show an error
    answer = Checked(
        is_lossless=is_lossless,
        how="walked" if is_whole else "walked in part",
        scope=_scope_of(walked, request.cases) + _describe_drafts(request),
        rate=_rate_of(pairs),
    )
    if fault is None:
        return replace(answer, notes=_notes(request, pairs, answer.rate))
    return replace(
        answer,
        problem=fault.problem,
        mistake=fault.mistake,
        question=fault.question,
        largest_error=max(case.largest_error(found) for case, found in pairs),
        is_lossless_greedy=None if fault.needs_end else _is_lossless_greedy(request),
    )


def _without_draws(rule: Rule, run: Callable[[], Found]) -> Found:
    """Returns the result of ``run``.

    Raises NotRepeatable if ``rule`` draws its own random numbers during the run. An
    import can also add and advance generators, but only once; so we run again.
    """
    for _ in range(TIMES):
        before = modules_and_states(rule)
        found = run()
        after = modules_and_states(rule)
        if after == before:
            return found
        if after.modules == before.modules:
            break
    raise NotRepeatable(OWN_RANDOMNESS)


def _fault(request: CheckRequest, pairs: Walked) -> Fault | None:
    """What is wrong with a rule; None if nothing was found."""
    problem = _first(case.difference(found) for case, found in pairs)
    if problem is None:
        return _fault_with_an_end(request) if request.takes_end else None
    _require_repeatable(request, pairs)
    mistake = _mistake_like(request, pairs)
    if mistake is None:
        return Fault(problem)
    return Fault(problem, mistake.name, mistake.question)


def _require_repeatable(request: CheckRequest, pairs: Walked) -> None:
    """Raises NotRepeatable if a second enumeration has a different result."""
    for _ in range(TIMES - 1):
        for case, distribution in pairs:
            try:
                found = request.walk(case)
            except TookTooLong:  # no time to repeat the rest
                return
            if not is_same(found, distribution):
                raise NotRepeatable(DIFFERS_EACH_TIME)


def _fault_with_an_end(request: CheckRequest) -> Fault | None:
    """What is wrong with a rule if one of the tokens ends the text."""
    for case in request.cases[:FIRST_CASES]:
        for end in range(case.vocab):
            try:
                found = request.walk(case, end)
            except Failed as failed:
                raise Failed(f"If {end} ends the text: {failed}") from failed
            except AllTookTooLong as error:
                raise Failed(NO_TIME_FOR_AN_END) from error
            for committed, probability in sorted(found.items()):
                if end in committed[:-1] and probability > 0:
                    return Fault(
                        f"If {end} ends the text, your function can commit "
                        f"{listed(committed)}: nothing may follow an end token.",
                        "tokens behind the end",
                        "An accepted draft may be the end token. What happens to the "
                        "drafts, and to the extra token, that follow it?",
                        needs_end=True,
                    )
            problem = case.difference(found)
            if problem is not None:
                return Fault(f"If {end} ends the text: {problem}", needs_end=True)
    return None


def _mistake_like(request: CheckRequest, pairs: Walked) -> Mistake | None:
    """The known mistake with the same distribution in every enumerated case."""
    for mistake in _known_mistakes(request):
        try:
            if _behaves_the_same(mistake.solution, pairs):
                return mistake
        except Failed:
            continue
        except TookTooLong:
            break
    return None


def _behaves_the_same(rule: Rule, pairs: Walked) -> bool:
    return all(is_same(case.distribution(rule), found) for case, found in pairs)


def _known_mistakes(request: CheckRequest) -> list[Mistake]:
    """The known mistakes in rules of this shape.

    If drafts are not drawn from q, each is also tried with the true draft probabilities
    as q.
    """
    known = {
        "line": line_mistakes.MISTAKES,
        "tree": candidate_mistakes.IN_A_TREE,
        "candidates": candidate_mistakes.AT_ONE_POSITION,
    }[request.shape]
    if request.choice == "q":
        return list(known)
    right = {
        "line": line_mistakes.verify,
        "tree": candidate_mistakes.pick_down_the_tree,
        "candidates": candidate_mistakes.pick,
    }[request.shape]
    mistakes = [Mistake(*NOT_DRAWN_FROM_Q, right)]
    for mistake in known:
        solution = with_true_q(mistake.solution, request.choice)
        mistakes += [replace(mistake, solution=solution), mistake]
    return mistakes


NOT_DRAWN_FROM_Q = (
    "divides by q although the draft was not drawn from it",
    "The ratio p(x) / q(x) is right for a draft that is drawn from q. What is the "
    "probability that x is drafted here?",
)


def _is_lossless_greedy(request: CheckRequest) -> bool | None:
    """Whether a rule is lossless with deterministic models."""
    try:
        for case in chosen(greedy_cases(request.shape), request.choice):
            if case.difference(request.walk(case)) is not None:
                return False
    except Failed:
        return False
    except TookTooLong:
        return None
    return True


# -- notes on a lossless rule ----------------------------------------------------------
def _notes(request: CheckRequest, pairs: Walked, rate: Rate | None) -> tuple[str, ...]:
    """The notes on a rule in which no error was found."""
    notes = [_first(case.impossible(found) for case, found in pairs)]
    notes.append(_only_if_chosen_so(request))
    if rate is not None and rate.value < min(rate.best.values()) - FEWER:
        notes.append(_never_reads_q(request, pairs))
    if request.takes_end:
        notes.append("Nothing is committed after an end token.")
    return tuple(note for note in notes if note is not None)


def _only_if_chosen_so(request: CheckRequest) -> str | None:
    """A note if the rule is not lossless when drafts are chosen differently."""
    for choice, words in CHOICES.items():
        if choice == request.choice:
            continue
        try:
            cases = chosen(few_cases(request.shape), choice)
            problem = _first(case.difference(request.walk(case)) for case in cases)
        except (Failed, NotRepeatable, TookTooLong):
            continue
        if problem is not None:
            return (
                f"This holds if each draft is {CHOICES[request.choice]}. If it is "
                f"{words} (drawn={choice!r}), the rule is not lossless. {problem}"
            )
    return None


def _never_reads_q(request: CheckRequest, pairs: Walked) -> str | None:
    """A note if the rule does not depend on q and so accepts too few drafts."""
    try:
        for change in (lambda rows: rows * np.nan, lambda rows: np.roll(rows, 1, -1)):
            rule = request.with_changed_q(change)
            for case, found in pairs[:FIRST_CASES]:
                if not is_same(case.distribution(rule, request.array), found):
                    return None
    except (Failed, NotRepeatable, TookTooLong):
        return None
    return "It accepts fewer drafts than it could, because it never reads q."


def _rate_of(pairs: Walked) -> Rate:
    """The mean rate over the cases, and the highest possible."""
    rates = [case.rate(found) for case, found in pairs]
    unit: str = pairs[0][0].unit
    best = _means([case.best_rates() for case, _ in pairs])
    return Rate(float(np.mean(rates)), unit, best)


def _means(rates: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean over the cases, by kind of rule."""
    return {kind: float(np.mean([each[kind] for each in rates])) for kind in rates[0]}


def _scope_of(walked: Sequence[Any], cases: Sequence[Any]) -> str:
    """What was enumerated, in a sentence."""
    if len(walked) < len(cases):
        return (
            f"Every outcome was enumerated in {len(walked)} of {len(cases)} cases; "
            "there was no time for the others."
        )
    first, last = cases[0].name, cases[-1].name
    return (
        f"Every outcome was enumerated in {len(cases)} cases, from {first!r} to "
        f"{last!r}."
    )


def _describe_drafts(request: CheckRequest) -> str:
    """How drafts were chosen, in a sentence; "" if they were drawn from q."""
    return (
        "" if request.choice == "q" else f" Each draft was {CHOICES[request.choice]}."
    )


def _first(differences: Iterable[str | None]) -> str | None:
    """The first difference that is not None."""
    return next((each for each in differences if each is not None), None)


# -- by sampling -----------------------------------------------------------------------
def _by_sampling(request: CheckRequest, why: str) -> Checked:
    """Checks a rule by running it many times."""
    if request.shape == "candidates":
        return Checked(
            None,
            problem=f"{why} A rule for candidates cannot be checked by sampling.",
            how="not run",
        )
    cases = [case for case in request.cases if not _is_certain(case)]
    samples: list[Sampled] = []
    for case in cases:
        samples.append(
            sample(
                case,
                request.called(),
                array=request.array,
                runs=max(LEAST_RUNS, request.runs // len(cases)),
                seconds=request.seconds / (2 * len(cases)),
            )
        )
    problem = _first(each.difference for each in samples)
    runs = sum(each.runs for each in samples)
    if problem is None and min(each.runs for each in samples) < LEAST_RUNS:
        return Checked(
            None,
            problem=f"{why} There was time for only {runs} runs.",
            how="not run",
        )
    return Checked(
        is_lossless=None if problem is None else False,
        problem=problem or "",
        how="sampled",
        scope=f"{why} It was run {runs:,} times.{_describe_drafts(request)}",
        largest_error=max(each.error for each in samples),
        would_find=max(each.would_find for each in samples),
        rate=_sampled_rate(samples, cases),
        notes=("It was not tried with an end token.",) if request.takes_end else (),
    )


def _is_certain(case: Case[Any]) -> bool:
    """Whether the target's first token is certain, so that sampling shows nothing."""
    return float(case.target[()].max()) == 1.0


def _sampled_rate(samples: Sequence[Sampled], cases: Sequence[Any]) -> Rate:
    """The mean number of tokens per pass over the cases, and the highest possible."""
    mean = float(np.mean([each.tokens for each in samples]))
    off = float(np.sqrt(np.mean([each.tokens_off**2 for each in samples])))
    off /= len(samples) ** 0.5
    is_large = isinstance(cases[0].target, DrawnOnDemand)
    best = {} if is_large else _means([case.best_rates() for case in cases])
    return Rate(mean, f"tokens per pass (95 % interval: +-{off:.4f})", best)


# -- a method --------------------------------------------------------------------------
def _page_of(name: str) -> pages.Method:
    """A registered method as a function of a world and a draft length."""
    required = arguments_of(METHODS[name])

    def page(world: World, gamma: int) -> None:
        settings = {length: gamma for length in LENGTHS if length in required}
        METHODS[name](world, **settings)

    return page


def _check_method(method: pages.Method, servers: int) -> Checked:
    """Checks a whole method."""
    setup = pages.Setup(walks=pages.WALKS_WITH_ENDS, servers=servers)
    try:
        behaviour = _without_draws(method, partial(pages.behaviour_of, method, setup))
        problem = _first(
            find(behaviour, setup)
            for find in (
                pages.greedy_difference,
                pages.sampled_difference,
                pages.clock_difference,
            )
        )
        if problem is not None and not pages.is_repeatable(method, setup, behaviour):
            raise NotRepeatable(DIFFERS_EACH_TIME)
    except NotRepeatable as error:
        return Checked(None, problem=_why_not_walked(error), how="not run")

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
        scope=f"Every outcome was enumerated for all texts {walked}, greedily and with "
        "sampling.",
        largest_error=max(errors),
        is_lossless_greedy=is_right_greedy,
        notes=(*_speeds(behaviour, setup), *_late_work(method, setup)),
    )


def _late_work(method: pages.Method, setup: pages.Setup) -> list[str]:
    """A note on a method that keeps working after the text has ended."""
    if not pages.works_after_the_end(method, setup):
        return []
    return [
        "It continues after an end token: it runs a model, or commits, although the "
        "text is complete. None of this is written, and it costs time."
    ]


def _speeds(behaviour: pages.Behaviour, setup: pages.Setup) -> list[str]:
    """A method's speed on the virtual clock, one sentence per run."""
    sentences = []
    for run in behaviour.clock:
        if run.seconds == 0:
            return ["It takes no time at all, because it waits for no model."]
        how = "greedily" if run.temperature == 0 else "at temperature 1"
        sentences.append(
            f"On the virtual clock (c = {run.c:g}, alpha = {pages.CLOCK_ALPHA:g}, "
            f"{setup.words}), {how}: {setup.clock_tokens / run.seconds:.2f} times as "
            "fast as plain decoding."
        )
    return sentences
