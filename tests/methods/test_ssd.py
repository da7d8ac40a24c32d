"""SSD: which outcomes are guessed, the drafts for them, and the time of a round.

Expected values come from arithmetic, from a hand-made table of probabilities, and from
a search over all allotments of guesses.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import speclib
from speclib.core.kv_prefix import Prefix
from speclib.core.sampling import Coins, Sampler, scaled
from speclib.core.verification import Outcome
from speclib.data.latency import Curve, Latency
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.methods.ssd import allotted_fan
from speclib.models.toy import Random, Toy
from speclib.operations.fork import Fork
from speclib.operations.model import Model
from speclib.operations.operation import DecodingRun, perform
from speclib.trace.metrics import stats

SSD = METHODS["ssd"]
WORDS = tuple(range(1, 60))
QWEN = "ssd/qwen3-0.6-32-h100"


def branches_of(draft, text, n, fan, **settings):
    """Returns outcome -> tokens drafted for it, by a model with an empty cache."""
    operation = Fork(text, n, fan, **settings)
    done = perform(operation, draft, DecodingRun(1, Coins(), Sampler()))
    if not done.output.small:
        return {}
    outcomes, tokens = done.output.small
    return {
        Outcome(*outcome): branch
        for outcome, branch in zip(outcomes, tokens, strict=True)
    }


# -- which outcomes are guessed --------------------------------------------------------
class Table(Model):
    """A draft whose next token depends only on the last one: ``rows[last token]``."""

    context = 99

    def __init__(self, *rows):
        self.table = np.array(rows)
        self.vocab = len(rows[0])
        self.reset()

    def reset(self):
        self.prefix = Prefix()

    def cut(self, length):
        self.prefix.cut(length)

    def chances(self):
        return self.table[self.prefix.fed[-1]]

    def rows(self, text, last, sampler):
        self.prefix.move(text, self.prefix.keep(text, last))
        ends = [text[end] for end in range(len(text) - last - 1, len(text))]
        with np.errstate(divide="ignore"):
            return sampler(np.log(self.table[ends]))


TABLE = (
    [0.1, 0.4, 0.3, 0.2],  # after token 0
    [0.2, 0.1, 0.3, 0.4],
    [0.4, 0.3, 0.2, 0.1],
    [0.0, 0.0, 1.0, 0.0],
)


def test_after_each_number_of_accepted_drafts_the_likeliest_other_tokens_are_guessed():
    """The text is 0 and the window 1 3.

    Before the window, 2 and 3 are guessed, as 1 is the window's token; after 1, the
    guess is 2. After 1 3 no token is excluded, and the guess is 2.
    """
    branches = branches_of(Table(*TABLE), (0, 1, 3), 2, (2, 1, 1))
    assert branches == {
        Outcome(0, 2): (0, 1),
        Outcome(0, 3): (2, 0),
        Outcome(1, 2): (0, 1),
        Outcome(2, 2): (0, 1),
    }


def test_an_impossible_token_is_not_guessed():
    """Only 2 can follow 3, and 2 is the window's next token."""
    branches = branches_of(Table(*TABLE), (3, 2), 1, (3, 0))
    assert branches == {}


@given(
    seed=st.integers(0, 50),
    window=st.integers(0, 3),
    fan=st.integers(0, 3),
    n=st.integers(1, 4),
)
def test_every_branch_is_what_the_draft_would_write_alone(seed, window, fan, n):
    draft, twin = Random(5, seed), Random(5, seed)
    text = (0, 1, 2, 3, 4)[: 2 + window]
    fans = (fan,) * (window + 1)
    branches = branches_of(draft, text, n, fans) if fan else {}
    for (accepted, guess), tokens in branches.items():
        path = text[: 2 + accepted]
        (row,) = twin.rows(path, 0, Sampler(1.0))
        others = [t for t in np.argsort(-row) if t not in text[2 + accepted :][:1]]
        assert guess in others[:fan]

        path += (guess,)
        for token in tokens:
            (row,) = twin.rows(path, 0, Sampler())
            assert token == row.argmax()
            path += (token,)
        assert len(tokens) == n
    assert len(branches) == fan * (window + 1)


def test_a_fork_is_charged_for_its_window_and_for_the_width_of_every_level():
    operation = Fork((0, 1, 2, 3), n=3, fan=(2, 1, 1))
    done = perform(operation, Random(6, 1), DecodingRun(1, Coins(), Sampler()))
    glue, level = operation.passes(done.kept, done.fed)
    assert (glue.fed, glue.times) == (4, 1)
    assert (level.fed, level.times) == (4, 3)  # 2 + 1 + 1 branches

    # If the text is cached, the pass feeds its last token and the window.
    model = Random(6, 1)
    request = DecodingRun(1, Coins(), Sampler())
    perform(Fork((0, 1), n=1, fan=(1,)), model, request)
    done = perform(operation, model, request)
    assert operation.passes(done.kept, done.fed)[0].fed == 3


@pytest.mark.parametrize("left, n", [(0, 0), (1, 0), (2, 1), (4, 3), (9, 3)])
def test_a_branch_needs_a_position_for_its_guess_and_for_each_token(left, n):
    assert Fork((0,), n=3, fan=(2,)).within(left).n == n


def test_a_texts_context_may_be_filled_to_its_last_token(decode):
    models = {"draft": Toy(1.0, context=16), "target": Toy(context=16)}
    expected, _ = decode(METHODS["autoregressive"], models, 15)
    output, _ = decode(SSD, models, 15, gamma=5)
    assert output == expected


def test_scaling_makes_the_likeliest_tokens_less_likely():
    row = np.array([0.3, 0.5, 0.2])
    assert scaled(row, 2, 0.5) == pytest.approx([0.15 / 0.6, 0.25 / 0.6, 0.2 / 0.6])
    assert scaled(row, 0, 0.5) is row
    assert scaled(row, 2, 1.0) is row
    assert row.tolist() == [0.3, 0.5, 0.2]


# -- cache-aware sampling --------------------------------------------------------------
def test_each_branchs_q_is_the_row_that_its_token_was_drawn_from():
    operation = Fork((0, 1), n=2, fan=(1, 2), factor=0.25, likeliest=2)
    draft, twin = Random(5, 3), Random(5, 3)
    done = perform(operation, draft, DecodingRun(1, Coins(), Sampler(1.0)))
    outcomes, branches = done.output.small
    rows = iter(done.output.rows)
    for (accepted, guess), tokens in zip(outcomes, branches, strict=True):
        path = ((0,), (0, 1))[accepted] + (guess,)
        for token in tokens:
            (row,) = twin.rows(path, 0, Sampler(1.0))
            assert next(rows) == pytest.approx(scaled(row, 2, 0.25))
            path += (token,)


def test_greedy_drafts_are_not_scaled():
    plain = branches_of(Random(5, 3), (0, 1), 3, (2, 2))
    changed = branches_of(Random(5, 3), (0, 1), 3, (2, 2), factor=0.1, likeliest=3)
    assert plain == changed


# -- the allotment of guesses ----------------------------------------------------------
def test_the_papers_fan_by_hand():
    """With alpha 0.8, power 1 and gamma 2, the shares are 1, 0.894 and 0.8 * 5^0.5 =
    1.789 of 3.683.
    """
    assert allotted_fan(10, 2, 0.8, 1.0) == (3, 2, 5)


@pytest.mark.parametrize("alpha", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_papers_fan_misses_at_most_4_percent_more_often_than_the_best(alpha, power):
    """The best is found among all allotments of 12 guesses to four outcomes.

    Outcome k has probability (1 - alpha) alpha^k, the last one alpha^3. F guesses miss
    an outcome with probability F^-power.
    """
    odds = [(1 - alpha) * alpha**k for k in range(3)] + [alpha**3]

    def missed(fan):
        return sum(p * f**-power for p, f in zip(odds, fan, strict=True))

    fans = [fan for fan in product(range(1, 10), repeat=4) if sum(fan) == 12]
    best = min(map(missed, fans))
    chosen = allotted_fan(12, 3, alpha, power)
    assert sum(chosen) == 12
    assert best <= missed(chosen) <= 1.04 * best


# -- the time of a round ---------------------------------------------------------------
def latency(draft, target) -> Latency:
    return Latency(Curve(((1, draft),)), Curve(((1, target),)))


@pytest.mark.parametrize("c", [3.0, 5.0, 8.0])
def test_with_an_always_right_draft_a_round_commits_gamma_plus_one_tokens(decode, c):
    """Four drafts and a pass over the window take 5 s; the target's pass takes c."""
    models = {"draft": Toy(1.0, 60, 0, WORDS), "target": Toy(None, 60, 0, WORDS)}
    output, trace = decode(SSD, models, 21, gamma=4, fan=1, latency=latency(1.0, c))
    assert output == WORDS[:21]
    # The first round tests nothing; each later round commits five tokens.
    assert trace.makespan == pytest.approx(5 * max(5.0, c))
    assert stats(trace).acceptance_rate == 1


@pytest.mark.parametrize("gamma, milliseconds", [(3, 12.21), (4, 13.75), (7, 21.37)])
def test_a_round_of_the_profiled_engine_takes_its_parts_time(gamma, milliseconds):
    """After 0.76 ms of serving come 11.45 ms, or 2.83 + 2.54 per draft if that is more.

    The draft is always right, with three guesses for each number of accepted drafts.
    """
    how = {"gamma": gamma, "fan": 3, "alpha": 1.0, "latency": QWEN}
    long = speclib.simulate("ssd", tokens=1 + 5 * (gamma + 1), **how).trace
    short = speclib.simulate("ssd", tokens=1 + 2 * (gamma + 1), **how).trace
    three_rounds = long.makespan - short.makespan
    assert three_rounds == pytest.approx(3e-3 * milliseconds)


def test_after_a_miss_the_target_waits_for_the_backup_if_there_is_one(decode):
    """With a fan of 0, nothing is ever guessed.

    With a backup, this is speculative decoding; without one, it is plain decoding.
    """
    models = {"draft": Toy(1.0, 60, 0, WORDS), "target": Toy(None, 60, 0, WORDS)}
    settings = {"gamma": 2, "fan": 0, "latency": latency(1.0, 5.0)}
    _, trace = decode(SSD, models, 10, **settings)
    # One token takes 5 s; then three rounds of three tokens take 2 + 5 s each.
    assert trace.makespan == pytest.approx(5 + 3 * 7)
    _, trace = decode(SSD, models, 10, backup="none", **settings)
    assert trace.makespan == pytest.approx(10 * 5)


def test_random_backups_take_no_time_and_are_right_as_often_as_chance(decode):
    """With a fan of 0, every round misses; 1 in V random tokens is right."""
    vocab, rounds = 9, 400
    models = {"draft": Toy(0.5, vocab), "target": Toy(None, vocab)}
    settings = {"gamma": 1, "fan": 0, "latency": latency(1.0, 5.0)}
    output, trace = decode(SSD, models, rounds, backup="random", **settings)
    plain, _ = decode(
        METHODS["autoregressive"], models, rounds, latency=settings["latency"]
    )
    assert output == plain
    assert not any(event.op == "propose" for event in trace.operations)
    tested = len(trace.commits) - 1
    right = sum(len(commit.tokens) == 2 for commit in trace.commits)
    chance = 1 / vocab
    error = (chance * (1 - chance) / tested) ** 0.5
    assert abs(right / tested - chance) < 4 * error
    assert trace.makespan == pytest.approx(5.0 * len(trace.commits))


def doubtful(alpha):
    """Returns a draft whose second guess is often right if its first is not."""
    return {
        "draft": Toy(alpha, 60, 4, WORDS, doubt=1.0),
        "target": Toy(None, 60, 4, WORDS),
    }


def test_a_hit_needs_no_new_draft_and_a_miss_drafts_again(decode):
    models = doubtful(0.6)
    output, trace = decode(SSD, models, 40, gamma=3, fan=1)
    assert output == WORDS[:40]
    guessed: dict[int, dict] = {}  # by round
    for event in trace.operations:
        if event.op == "fork":
            guessed[event.round] = dict(event.payload.branches(event.tokens))
    backups = {event.round for event in trace.operations if event.op == "propose"}
    for before, commit in enumerate(trace.commits[:-1]):
        outcome = Outcome(len(commit.tokens) - 1, commit.tokens[-1])
        assert (before + 1 in backups) == (outcome not in guessed[before])
    assert backups
    assert len(backups) < len(trace.commits) - 1


def test_auto_leaves_room_for_the_pass_over_the_window():
    """At c = 5, four drafts and that pass take as long as a target pass."""
    for c, gamma in ((5.0, 4), (8.0, 7), (1.0, 1)):
        trace = speclib.simulate("ssd", c=c, tokens=30).trace
        assert trace.meta["gamma"] == gamma


def test_rounds_after_a_miss_can_have_a_different_fan(decode):
    models = doubtful(0.5)
    _, trace = decode(SSD, models, 40, gamma=2, fan=(3, 2), fan_after_miss=1)
    backups = {event.round for event in trace.operations if event.op == "propose"}
    for event in trace.operations:
        if event.op == "fork" and event.tokens:
            accepted = event.payload.accepted
            expected = (0, 1, 2) if event.round in backups else (0, 0, 0, 1, 1, 2, 2)
            if event.round:
                assert accepted == expected
    assert backups


# -- bad values ------------------------------------------------------------------------
@pytest.mark.parametrize(
    "settings, message",
    [
        ({"fan": -1}, "fan is -1: give at least 0"),
        ({"fan": ()}, "fan is empty: give a count, or a list with at least one"),
        ({"fan": "auto"}, "fan is 'auto': give at least"),
        ({"fan": 10**9}, "gamma 2 and a fan of 1000000000 ask for up to"),
        ({"backup": "coin"}, "backup is 'coin': give 'draft', 'random' or 'none'"),
        ({"test": "tree"}, "test is 'tree': give 'ratio', 'block' or 'exact'"),
        ({"scale": 0}, "scale is 0: give a number above 0, up to 1"),
        ({"scaled": -1}, "scaled is -1: give at least 0"),
    ],
)
def test_bad_settings_are_refused_by_name(decode, settings, message):
    models = {"draft": Toy(0.5), "target": Toy()}
    with pytest.raises(SpeclibError, match=message):
        decode(SSD, models, 4, gamma=2, **settings)
