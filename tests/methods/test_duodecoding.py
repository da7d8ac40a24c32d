"""DuoDecoding: the number of sequences, the one that continues, and a round's time.

Expected values come from arithmetic on hand-made probabilities, and from plain
decoding's output.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclib.core.kv_prefix import Prefix
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.models.toy import Random, Toy
from speclib.operations.draft_sequences import DraftSequences
from speclib.operations.model import Model
from speclib.operations.operation import DecodingRun, perform
from speclib.trace.metrics import stats

DUO = METHODS["duodecoding"]
WORDS = tuple(range(1, 60))


class Table(Model):
    """A draft whose probabilities depend only on the position.

    They are ``rows[i]`` after 1 + i tokens, and the last row after any longer text.
    """

    context = 99
    stopped = staticmethod(bool)

    def __init__(self, *rows):
        self.table = np.array(rows)
        self.vocab = len(rows[0])
        self.reset()

    def reset(self):
        self.prefix = Prefix()

    def cut(self, length):
        self.prefix.cut(length)

    def chances(self):
        return self.table[min(len(self.prefix.fed), len(self.table)) - 1]

    def rows(self, text, last, sampler):
        self.prefix.move(text, self.prefix.keep(text, last))
        return sampler(np.log(self.chances() + 1e-300)[None])


def branched(draft, n, **settings):
    """Returns (sequences, theta, probabilities of their first tokens) after (0,)."""
    operation = DraftSequences((0,), n, **settings)
    sequences, chances = operation.run(draft, DecodingRun(0, Coins(), Sampler()))
    theta, *first_chances = [float(chance) for chance in chances]
    return sequences, pytest.approx(theta), first_chances


def sequence_counts(draft, budgets, **settings) -> list[int]:
    """Returns the number of sequences for each budget."""
    return [len(branched(draft, budget, **settings)[0]) for budget in budgets]


FIRST = [0.5, 0.2, 0.25, 0.05]


# -- how many sequences ----------------------------------------------------------------
@pytest.mark.parametrize(
    "second, theta, sequences",
    [
        (
            [0.0, 1.0, 0.0, 0.0],
            0.5,
            [(0, 1, 1, 1, 1, 1)],
        ),  # nothing else is above 0.5
        ([0.1, 0.45, 0.45, 0.0], 0.225, [(0, 1, 1), (2, 1, 1)]),  # 0.25 is above it
        ([0.1, 0.39, 0.38, 0.13], 0.195, [(0, 1), (2, 1), (1, 1)]),  # and 0.2
    ],
)
def test_a_first_token_begins_a_sequence_if_likelier_than_the_best_two_tokens(
    second, theta, sequences
):
    drafted, drafted_theta, chances = branched(Table(FIRST, second), 6)
    assert drafted == tuple(sequences)
    assert drafted_theta == theta
    assert chances == [FIRST[sequence[0]] for sequence in sequences]


def test_the_number_of_sequences_divides_the_budget_and_has_a_limit():
    # theta is 0.135, so all four tokens may begin a sequence.
    four = Table([0.3, 0.25, 0.24, 0.21], [0.1, 0.45, 0.45, 0.0])
    counts = sequence_counts(four, budgets=(1, 2, 3, 4, 5, 6, 7, 8, 12))
    assert counts == [1, 2, 3, 4, 1, 3, 1, 4, 4]
    for most, count in ((1, 1), (2, 2), (3, 3), (8, 4)):
        assert sequence_counts(four, budgets=[12], most=most) == [count]


def test_a_given_number_of_sequences_overrides_the_drafts_confidence():
    sure = Table([0.97, 0.01, 0.02, 0.0], [0.0, 1.0, 0.0, 0.0])
    for k, length in ((1, 7), (2, 3), (3, 2)):
        sequences, theta, _ = branched(sure, 7, k=k)
        assert [sequence[0] for sequence in sequences] == [0, 2, 1][:k]
        assert {len(sequence) for sequence in sequences} == {length}
        assert theta == 0
    assert sequence_counts(sure, budgets=(1, 2, 3), k=3) == [1, 2, 3]


@given(
    seed=st.integers(0, 50), n=st.integers(1, 12), k=st.sampled_from([None, 1, 2, 3])
)
def test_every_sequence_is_what_the_draft_would_write_alone(seed, n, k):
    """Each token except a sequence's first takes one pass.

    There is at most one additional pass, which is for a second token.
    """
    draft, twin = Random(5, seed), Random(5, seed)
    operation = DraftSequences((0, 1), n, k)
    done = perform(operation, draft, DecodingRun(1, Coins(), Sampler(1.0)))
    sequences, _ = done.output
    for tokens in sequences:
        text = (0, 1) + tokens[:1]
        while len(text) < 2 + len(tokens):
            (row,) = twin.rows(text, 0, Sampler())
            text += (int(row.argmax()),)
        assert text[2:] == tokens

    first_tokens = {sequence[0] for sequence in sequences}
    assert len(first_tokens) == len(sequences)
    drafted = sum(len(sequence) - 1 for sequence in sequences)
    assert done.fed - 2 - drafted in (0, 1)


# -- which sequence continues ----------------------------------------------------------
@pytest.mark.slow
def test_the_output_is_plain_decodings_own_at_any_temperature_and_budget(decode):
    models = {"draft": Random(4, 1), "target": Random(4, 2)}
    samplers = (Sampler(), Sampler(1.0), Sampler(0.6, 3, 0.9))
    for sampler, seed in product(samplers, range(2)):
        how = {"sampler": sampler, "coins": Coins(seed)}
        plain, _ = decode(METHODS["autoregressive"], models, 30, **how)
        for gamma, k in product((1, 4, 6, 12), (None, 2, 8)):
            output, _ = decode(DUO, models, 30, gamma=gamma, k=k, **how)
            assert output == plain


def test_the_next_window_is_the_sequence_that_the_targets_token_chooses(decode):
    """The window, which the target is fed after the text, continues the text.

    It is the chosen sequence without its first token, which the text already contains.
    """
    models = {"draft": Random(3, 3), "target": Random(3, 4)}
    chosen = set()
    for seed in range(20):
        _, trace = decode(
            DUO, models, 40, gamma=6, sampler=Sampler(1.0), coins=Coins(seed)
        )
        draftings = [e for e in trace.operations if e.op == "draft_sequences"]
        passes = [e for e in trace.operations if e.op == "score"]
        rounds = zip(draftings, passes, passes[1:], trace.commits, strict=False)
        for drafting, this_pass, next_pass, commit in rounds:
            # All of the window and a target token are committed if the window passed.
            number = None
            if len(commit.tokens) == this_pass.tested + 1:
                number = place_of_sequence(drafting.sequences, commit.tokens[-1])
            chosen.add(number)

            window = () if number is None else drafting.sequences[number][1:]
            start = len(next_pass.tokens) - next_pass.tested
            assert next_pass.tokens[start:] == window
    assert chosen >= {None, 0, 1, 2}


def place_of_sequence(sequences, first_token: int) -> int | None:
    """Returns the index of the sequence that begins with this token, if any."""
    for number, sequence in enumerate(sequences):
        if sequence[:1] == (first_token,):
            return number
    return None


# -- the time of a round ---------------------------------------------------------------
@pytest.mark.parametrize("alpha, rate", [(0.0, 0.0), (1.0, 1.0)])
def test_an_always_wrong_draft_has_rate_0_and_a_right_one_1(decode, alpha, rate):
    """Tokens outside every sequence count as tested; otherwise no rate would be low."""
    models = toys(alpha)
    _, trace = decode(METHODS["duodecoding"], models, 20, gamma=3, k=1)
    counted = stats(trace)
    assert counted.acceptance_rate == rate
    if not alpha:
        assert counted.rejected == 20  # one per token of plain decoding


def toys(alpha: float, **settings) -> dict:
    return {
        "draft": Toy(alpha, 60, 0, WORDS, **settings),
        "target": Toy(None, 60, 0, WORDS),
    }


@pytest.mark.parametrize("gamma, c, seconds", [(3, 6, 1.0), (6, 6, 1.0), (12, 6, 2.0)])
def test_a_round_takes_the_longer_of_draft_and_target(decode, gamma, c, seconds):
    _, trace = decode(
        DUO, toys(1.0), 2 + 5 * gamma, gamma=gamma, k=1, latency=Latency.ratio(c)
    )
    for number, commit in enumerate(trace.commits[:4]):
        assert commit.ts == pytest.approx(1 + number * seconds)

    # With a perfect draft, the first two rounds commit one token each (the first window
    # has a single token), and later rounds gamma.
    sizes = [len(commit.tokens) for commit in trace.commits]
    assert sizes[:4] == [1, 1, gamma, gamma]


def test_the_first_round_is_short_by_default(decode):
    """At c = 2, a budget of 8 would delay the first token by 4 target passes."""
    how = {"gamma": 8, "latency": Latency.ratio(2)}
    _, late = decode(DUO, toys(1.0), 20, first=8, **how)
    _, soon = decode(DUO, toys(1.0), 20, **how)
    assert late.commits[0].ts == 4.0
    assert soon.commits[0].ts == 1.0


def test_a_budget_of_one_is_plain_decoding_pass_for_pass(decode):
    _, plain = decode(METHODS["autoregressive"], toys(0.6), 25)
    _, duo = decode(DUO, toys(0.6), 25, gamma=1)
    assert target_passes(duo) == target_passes(plain)


def target_passes(trace) -> list[tuple]:
    """Returns the times and the input of each target pass."""
    passes = [event for event in trace.operations if event.is_scoring]
    return [(event.ts, event.dur, event.tokens) for event in passes]


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"k": 0}, "k is 0: give at least 1"),
        ({"most": 0}, "most is 0"),
        ({"first": 0}, "first is 0"),
    ],
)
def test_counts_below_one_are_refused(decode, settings, words):
    with pytest.raises(SpeclibError, match=words):
        decode(DUO, toys(0.5), 4, gamma=2, **settings)


def test_a_first_token_only_as_likely_as_the_best_two_tokens_begins_no_sequence():
    """Here theta = 1/2 * 1/2 = P_2, and section 3.2 requires more than theta."""
    draft = Table([0.5, 0.25, 0.125, 0.125], [0.5, 0.5, 0, 0])
    sequences, theta, chances = branched(draft, 4)
    assert theta == 0.25
    assert len(sequences) == 1
    assert chances == [0.5]
