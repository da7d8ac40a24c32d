"""DSI writes plain decoding's tokens under every timing, and is never slower."""

from __future__ import annotations

import random
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency, Step
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.methods.dsi import dsi
from speclib.models.toy import BOS, Random, Toy
from speclib.trace.events import COMMIT, Trace
from speclib.trace.metrics import stats
from speclib.worlds.enumerator import Intervals, distance, truth
from speclib.worlds.virtual import Virtual

POLICIES = ("immediate", "after-op")


class AnyTime(Latency):
    """Operations have random durations, so they end in any order."""

    def __init__(self, seed: int, choices=(0.1, 1.0, 1.0, 2.5, 7.0)):
        super().__init__(**vars(Latency.ratio(3)))
        self.random = random.Random(seed)
        self.choices = choices

    def seconds(self, device, op, kept, fed) -> float:
        return self.random.choice(self.choices)


def toys(alpha: float, servers: int, drafters: int = 1, seed: int = 0) -> dict:
    drafts = [Toy(alpha, seed=seed, vocab=5, context=256) for _ in range(drafters)]
    targets = [Toy(seed=seed, vocab=5, context=256) for _ in range(servers)]
    return named(drafts, targets)


def named(drafts, targets) -> dict:
    """Returns models by device: draft, draft-2, ..., target, target-2, ..."""
    models_by_device = {}
    for role, models in (("draft", drafts), ("target", targets)):
        for number, model in enumerate(models, 1):
            device = role if number == 1 else f"{role}-{number}"
            models_by_device[device] = model
    return models_by_device


def run(
    models: dict,
    latency,
    limit: int,
    *,
    method=dsi,
    sampler=None,
    coins=None,
    cancel="immediate",
    eos=frozenset(),
    clock_type=Virtual,
    **how,
) -> tuple[tuple[int, ...], Trace]:
    world = clock_type(models, latency, cancel=cancel)
    world.begin(
        (BOS,),
        sampler=sampler or Sampler(),
        coins=coins or Coins(1),
        limit=limit,
        eos=eos,
    )
    method(world, **how)
    return world.text[1:], world.end()


# -- lossless --------------------------------------------------------------------------
SCHEDULES = dict(
    servers=st.integers(1, 7),
    lookahead=st.integers(1, 10),
    seed=st.integers(0, 10**6),
    alpha=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    limit=st.integers(1, 30),
    temperature=st.sampled_from([0.0, 1.0]),
    cancel=st.sampled_from(POLICIES),
    drafters=st.integers(1, 3),
    end=st.sampled_from([frozenset(), frozenset({2})]),
    block=st.sampled_from([None, 1, 4]),
)


def writes_plain_decodings_tokens(
    servers, lookahead, seed, alpha, limit, temperature, cancel, drafters, end, block
) -> None:
    how = {"sampler": Sampler(temperature), "coins": Coins(seed), "eos": end}
    plain, _ = run(
        toys(alpha, 1, seed=seed),
        AnyTime(0),
        limit,
        method=METHODS["autoregressive"],
        **how,
    )
    ours, trace = run(
        toys(alpha, servers, drafters, seed),
        AnyTime(seed),
        limit,
        cancel=cancel,
        lookahead=lookahead,
        block=block,
        **how,
    )
    assert ours == plain
    assert sum(len(e.tokens) for e in trace.commits) == len(plain)


@pytest.mark.slow
@pytest.mark.parametrize(
    "schedules", [200, pytest.param(1000, marks=pytest.mark.thorough)]
)
def test_exact_match_writes_plain_decodings_tokens_under_any_timing(schedules):
    on_schedules = given(**SCHEDULES)(writes_plain_decodings_tokens)
    settings(max_examples=schedules)(on_schedules)()


class ByPosition(AnyTime):
    """An operation's duration depends on its position in the text, not on tokens."""

    def __init__(self, seed: int):
        super().__init__(seed, (1, 2, 3, 5))
        self.random_seed = seed

    def seconds(self, device, op, kept, fed) -> float:
        key = f"{self.random_seed},{device},{len(op.text)},{op.name}"
        return random.Random(key).choice(self.choices)


def outcomes(
    servers: int, drafters: int, clock, tokens: int = 3, cancel="immediate", **how
):
    """Returns DSI's exact distribution and the target's; each run has a new clock."""
    drafts = [Random(2, 10 + number, 1 + tokens) for number in range(drafters)]
    targets = [Random(2, 20, 1 + tokens) for _ in range(servers)]
    models = named(drafts, targets)

    chances = {}
    path = []
    while path is not None:
        coins = Intervals(path)
        output, _ = run(
            models,
            clock(),
            tokens,
            sampler=Sampler(1.0),
            coins=coins,
            cancel=cancel,
            **how,
        )
        chances[output] = chances.get(output, 0.0) + coins.mass
        path = coins.following()
    return chances, truth(models["target"], tokens)


CLOCKS = {
    "draft slower": lambda: Latency.ratio(0.5),
    "c = 2": lambda: Latency.ratio(2),
    "c = 7": lambda: Latency.ratio(7),
    "any order 0": lambda: AnyTime(0, (1, 2, 3, 5)),
    "any order 1": lambda: AnyTime(1, (1, 2, 3, 5)),
    "any order 2": lambda: AnyTime(2, (1, 2, 3, 5)),
    "by position 0": lambda: ByPosition(0),
    "by position 1": lambda: ByPosition(1),
    "by position 2": lambda: ByPosition(2),
}
CLOCKS_AT_EVERY_PUSH = ("c = 2", "any order 0", "by position 0")


def clocks_with_marks() -> list:
    """Returns the names of all CLOCKS as parameters, most of them marked thorough."""
    names = []
    for name in CLOCKS:
        if name in CLOCKS_AT_EVERY_PUSH:
            names.append(name)
        else:
            names.append(pytest.param(name, marks=pytest.mark.thorough))
    return names


@pytest.mark.slow
@pytest.mark.parametrize("clock", clocks_with_marks())
@pytest.mark.parametrize(
    "servers, drafters, lookahead",
    [
        (1, 1, 1),
        (2, 1, 2),
        (3, 1, 1),
        (2, 2, 1),
        pytest.param(2, 2, 2, marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize("test", ["exact", "ratio"])
def test_every_order_of_completion_leaves_the_targets_distribution(
    test, servers, drafters, lookahead, clock
):
    for cancel in POLICIES:
        chances, target_chances = outcomes(
            servers,
            drafters,
            CLOCKS[clock],
            cancel=cancel,
            test=test,
            lookahead=lookahead,
        )
        assert sum(chances.values()) == pytest.approx(1, abs=1e-12)
        assert distance(chances, target_chances) < 1e-12


class Telling(Virtual):
    """A clock on which drafting token 1 takes longer than drafting any other token."""

    def _carry_out(self, future, steps, done, error=None) -> None:
        is_slow = future.op.name == "propose" and 1 in done.output.small
        super()._carry_out(future, [*steps, Step(9 * is_slow)], done, error)


def test_a_draft_whose_timing_reveals_its_token_breaks_only_the_ratio_test():
    """The enumerator shows the limit that the method's docstring states."""
    errors = {}
    for test in ("exact", "ratio"):
        chances, target_chances = outcomes(
            2,
            1,
            lambda: Latency.ratio(2),
            lookahead=1,
            test=test,
            clock_type=Telling,
        )
        errors[test] = distance(chances, target_chances)

    assert errors["exact"] < 1e-12
    assert errors["ratio"] > 0.01


# -- never slower ----------------------------------------------------------------------
@pytest.mark.slow
@settings(max_examples=200)
@given(
    alpha=st.sampled_from([0.0, 0.3, 0.7, 0.95, 1.0]),
    c=st.floats(1.0, 20),
    seed=st.integers(0, 99),
    servers=st.integers(1, 7),
    lookahead=st.integers(1, 10),
    cancel=st.sampled_from(POLICIES),
)
def test_with_constant_pass_times_dsi_is_never_slower_than_plain_decoding(
    alpha, c, seed, servers, lookahead, cancel
):
    """The code obeys Theorem 1, even with too few servers to keep up."""
    _, trace = run(
        toys(alpha, servers, seed=seed),
        Latency.ratio(c),
        40,
        cancel=cancel,
        lookahead=lookahead,
    )
    assert stats(trace).seconds <= 40 * (1 + 1e-9)
    written = 0
    for commit in trace.commits:
        for _ in commit.tokens:
            written += 1
            assert commit.end <= written + 1e-6


@pytest.mark.slow
@settings(max_examples=120)
@given(
    alpha=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    c=st.integers(2, 9),
    seed=st.integers(0, 999),
)
def test_right_drafts_cost_t1_and_wrong_ones_and_the_last_token_t2(alpha, c, seed):
    """This follows Proposition 1's derivation; the time is exact, not a bound."""
    tokens = 30
    models = toys(alpha, c + 1, seed=seed)
    output, trace = run(models, Latency.ratio(c, target=float(c)), tokens, lookahead=1)

    drafts = models["draft"].rows((BOS, *output), tokens, Sampler()).argmax(-1)
    right = int((drafts[: tokens - 1] == output[:-1]).sum())
    assert stats(trace).seconds == pytest.approx(right + c * (tokens - 1 - right) + c)


# -- the algorithm ---------------------------------------------------------------------
def test_one_target_always_works_on_the_committed_text():
    _, trace = run(toys(0.4, 3), Latency.ratio(4), 24, lookahead=3)
    for commit in trace.commits[:-1]:
        at = commit.end
        length = 1 + sum(len(e.tokens) for e in trace.commits if e.end <= at)
        spans = [
            (e.kept + e.fed - e.tested, e.kept + e.fed)
            for e in trace.operations
            if e.is_scoring and e.ts <= at + 1e-9 < e.end + 1e-9
        ]
        assert any(low <= length <= high for low, high in spans)


# -- simultaneous events ---------------------------------------------------------------
class Backwards(Virtual):
    """A clock that handles simultaneous events in the opposite order."""

    def __init__(self, *args, **how):
        super().__init__(*args, **how)
        self._sequence = count(0, -1)


@pytest.mark.parametrize("cancel", POLICIES)
@pytest.mark.parametrize("servers, lookahead", [(1, 5), (3, 2), (5, 1)])
@pytest.mark.parametrize("c", [2, 5])
def test_the_order_of_simultaneous_events_changes_no_time(
    c, servers, lookahead, cancel
):
    for seed in range(3):
        times = []
        for clock_type in (Virtual, Backwards):
            _, trace = run(
                toys(0.7, servers, seed=seed),
                Latency.ratio(c),
                30,
                cancel=cancel,
                lookahead=lookahead,
                clock_type=clock_type,
            )
            times.append(stats(trace).seconds)
        assert times[0] == pytest.approx(times[1], rel=1e-9)


def mean_seconds(c, alpha=0.8, servers=1, lookahead=5, requests=6, **how) -> float:
    total = 0.0
    for seed in range(requests):
        models = toys(alpha, servers, seed=seed)
        _, trace = run(models, Latency.ratio(c), 30, lookahead=lookahead, **how)
        total += stats(trace).seconds
    return total / requests


@pytest.mark.parametrize("servers", [1, 2])
def test_a_block_that_ends_with_a_pass_is_ready_for_the_next_one(servers):
    """At c = 5, a block of 5 takes as long as a pass, and counts as just in time."""
    just_late, together, just_in_time = [
        mean_seconds(c, servers=servers) for c in (5 - 1e-5, 5, 5 + 1e-5)
    ]
    assert together == pytest.approx(just_in_time, rel=1e-4)
    assert just_late > 1.1 * together


# -- bad settings ----------------------------------------------------------------------
def test_an_empty_block_is_refused():
    with pytest.raises(SpeclibError, match="block is 0: give at least 1"):
        run(toys(0.5, 1), Latency.ratio(2), 4, lookahead=1, block=0)


def test_an_unknown_test_is_refused_by_name():
    with pytest.raises(SpeclibError, match="'strict': give 'exact' or 'ratio'"):
        run(toys(0.5, 1), Latency.ratio(2), 4, lookahead=1, test="strict")


# -- AMUSD -----------------------------------------------------------------------------
def commits_of_amusd(
    agrees: list[bool], c: int, tokens: int
) -> list[tuple[float, int]]:
    """Returns AMUSD's commits, (time, tokens), from independent code for its rules.

    Drafting a token takes 1 s, and a verification takes c. The draft model never stops.
    When the target is free, it verifies what has been drafted, and commits the tokens
    it agrees with and one more. After a wrong draft, the draft model restarts at once.
    """
    committed, written, taken = 0, [], 0
    draft_ends, target_ends = 1, c
    commits = []
    while committed < tokens:
        now = min(draft_ends, target_ends)
        if draft_ends == now:
            written.append(agrees[committed + len(written)])
            draft_ends = now + 1
        if target_ends == now:
            right = 0
            while right < taken and written[right]:
                right += 1
            goes_on = len(written) > right and written[right]
            written = written[right + 1 :] if goes_on else []
            if not goes_on:
                draft_ends = now + 1
            new = min(right + 1, tokens - committed)
            committed += new
            commits.append((now, new))
            taken, target_ends = len(written), now + c
    return commits


@pytest.mark.parametrize("c", [2, 5])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.95])
def test_with_one_server_and_lookahead_and_blocks_of_one_it_is_amusd(alpha, c):
    for seed in range(3):
        models = toys(alpha, 1, seed=seed)
        target, draft = models["target"], models["draft"]
        plain = METHODS["autoregressive"]
        script = run(models, Latency.ratio(1.0), 80, method=plain)[0]
        agrees = []
        for position, token in enumerate(script):
            text = (BOS, *script[:position])
            agrees.append(int(draft.rows(text, 0, Sampler())[0].argmax()) == token)
        _, trace = run(
            named([Toy(alpha, seed=seed, vocab=5, context=256)], [target]),
            Latency.ratio(c, target=float(c)),
            40,
            lookahead=1,
            servers=1,
            block=1,
        )
        commits = [
            (event.end, len(event.tokens))
            for event in trace.events
            if event.op == COMMIT and event.tokens
        ]
        assert commits == commits_of_amusd(agrees, c, 40)
