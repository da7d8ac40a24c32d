"""Every method, in every variant: losslessness, caches, rates, the paper's examples.

Expected values come from the target's script, from arithmetic, and from the papers.
"""

from __future__ import annotations

import tomllib
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pytest
from helpers.watched_world import WatchedWorld
from scipy.stats import chi2

from speclib.core.kv_prefix import Prefix
from speclib.core.sampling import Coins, Drafted, Sampler, ids
from speclib.core.verification import Verified, verify
from speclib.data.latency import Curve, Latency
from speclib.errors import BadCall, SpeclibError
from speclib.methods import METHODS, about, parameters
from speclib.methods.pearl import next_window
from speclib.models.toy import BOS, Random, Scripted, Toy
from speclib.operations.model import Model
from speclib.paths import DATA, ROOT
from speclib.trace.metrics import stats, total
from speclib.worlds.virtual import Virtual

WORDS = tuple(range(1, 50))  # all different: an end token has one position
GAMMAS = range(1, 9)
some_or_all = pytest.mark.parametrize(
    "gammas",
    [(1, 2, 4), pytest.param(tuple(GAMMAS), marks=pytest.mark.thorough)],
    ids=["some", "all"],
)


def toys(alpha: float, seed: int = 0) -> dict:
    """Returns a target that writes WORDS, and a draft that agrees at rate ``alpha``."""
    return {
        "draft": Toy(alpha, 50, seed, WORDS, 128),
        "target": Toy(None, 50, seed, WORDS, 128),
    }


# -- source files ----------------------------------------------------------------------
# Settings that no variant changes, and why.
NOT_VARIED = {
    ("dsi", "servers"),  # variants are tested in worlds with one target
}


def test_every_methods_source_file_is_registered():
    pages = {path.stem for path in (ROOT / "speclib" / "methods").glob("*.py")}
    registered = {method.__module__.rpartition(".")[2] for method in METHODS.values()}
    missing = pages - registered - {"__init__", "method_facts"}
    assert not missing, f"add {missing} to METHODS in speclib/methods/__init__.py"


@pytest.mark.parametrize("name", METHODS)
def test_a_method_describes_itself(name):
    """In its docstring, its ABOUT and the manual."""
    assert METHODS[name].__doc__, f"{name} has no docstring"
    assert about(name).name != name, f"speclib.methods.{name} lacks ABOUT"
    table = (ROOT / "docs" / "use.md").read_text()
    assert f"`{name}`" in table, f"add {name} to the table of methods in docs/use.md"


@pytest.mark.parametrize("name", METHODS)
def test_each_setting_of_a_method_is_changed_in_one_of_its_variants(name):
    varied = {setting for variant in about(name).variants for setting in variant}
    known = {setting for method, setting in NOT_VARIED if method == name}
    forgotten = set(parameters(name)) - varied - known - {"gamma"}
    assert not forgotten, (
        f"give {forgotten} a variant in ABOUT, or add a reason to NOT_VARIED"
    )


# -- greedy ----------------------------------------------------------------------------
@some_or_all
@pytest.mark.parametrize(
    "alpha", [pytest.param(0.0, marks=pytest.mark.thorough), 0.7, 1.0]
)
def test_greedy_output_equals_plain_decodings_for_every_gamma_prompt_and_limit(
    case, decode, alpha, gammas
):
    for settings in case.at(*gammas):
        gamma = settings.get("gamma", 8)
        models = toys(alpha, seed=gamma)
        for prompt in prompt_lengths(gamma, max(gammas)):
            for limit in range(1, 3 * gamma + 1):
                output, _ = decode(
                    case.method, models, limit, prompt=(0,) * prompt, **settings
                )
                assert output == WORDS[prompt - 1 :][:limit], (settings, prompt, limit)


def prompt_lengths(gamma: int, largest_gamma: int) -> list[int]:
    """Returns prompt lengths below, at and above a draft of ``gamma`` tokens.

    A method without a gamma counts as gamma 8. If all others have smaller gammas, it
    gets their prompt lengths and its own longest.
    """
    lengths = range(1, min(gamma, largest_gamma) + 2)
    return sorted({*lengths, gamma + 1})


@some_or_all
@pytest.mark.parametrize("alpha", [0.8, 1.0])
def test_greedy_output_ends_at_eos_at_every_offset_of_a_block(
    case, decode, alpha, gammas
):
    for settings in case.at(*gammas):
        gamma = settings.get("gamma", 8)
        models = toys(alpha, seed=gamma)
        for prompt in (1, 3):
            words = WORDS[prompt - 1 :][: 3 * gamma]
            for offset, eos in enumerate(words):
                output, _ = decode(
                    case.method,
                    models,
                    3 * gamma,
                    prompt=(0,) * prompt,
                    eos=frozenset({eos}),
                    **settings,
                )
                assert output == words[: offset + 1], (settings, prompt, offset)


def test_greedy_output_ends_at_the_first_of_several_end_tokens(case, decode):
    for settings in case.at(3):
        models = toys(0.8, seed=3)
        for first in range(6):
            end_tokens = (WORDS[first + 1], WORDS[first], WORDS[first + 7])
            output, _ = decode(case.method, models, 20, eos=end_tokens, **settings)
            assert output == WORDS[: first + 1], (settings, first)


def test_greedy_output_is_the_targets_argmax_if_every_text_has_its_own(case, decode):
    for seed in range(2):
        target = Random(3, 100 + seed)
        text = (1, 2)
        for _ in range(16):
            (row,) = target.rows(text, 0, Sampler(1.0))
            text += (int(row.argmax()),)

        models = {"draft": Random(3, seed), "target": target}
        for settings in case.at(1, 2, 5):
            output, _ = decode(case.method, models, 16, prompt=(1, 2), **settings)
            assert output == text[2:], (settings, seed)


def test_the_cost_ratio_never_changes_the_tokens(case, decode):
    for settings in case.at(4):
        for c in (0.2, 1.0, 3.7, 50.0):
            latency = Latency.ratio(c)
            output, _ = decode(case.method, toys(0.7), 30, latency=latency, **settings)
            assert output == WORDS[:30]


def test_pearls_next_window_contains_all_drafts_not_yet_tested():
    """As in PEARL's Table 9: of x1 x2 x3, x1 is accepted, so x2 and x3 are next."""
    x1, x2, x3 = (Drafted(token, np.eye(4)[token]) for token in (1, 2, 3))
    assert next_window((x1, x2, x3), Verified((1,), ())) == (x2, x3)
    assert next_window((x1, x2, x3), Verified((1, 2, 3), ())) == ()
    assert next_window((x1, x2, x3), Verified((1,), (0,))) == ()  # the rest is stale


@pytest.mark.parametrize("name", ["speculative", "pearl"])
def test_a_text_may_fill_the_context_to_its_last_token(decode, name):
    models = {"draft": Toy(1.0, context=16), "target": Toy(context=16)}
    expected, _ = decode(METHODS["autoregressive"], models, 15)
    output, _ = decode(METHODS[name], models, 15, gamma=5)
    assert output == expected


def test_the_toys_overlap_is_alpha_in_any_context():
    p = Toy(context=99).rows((0, 1, 2), 2, Sampler(1.0))
    q = Toy(0.7, context=500).rows((0, 1, 2), 2, Sampler(1.0))
    assert np.minimum(p, q).sum(1) == pytest.approx([0.7] * 3)


# -- sampling --------------------------------------------------------------------------
class Markov(Model):
    """A model whose next token depends only on the last, to count transitions."""

    def __init__(self, table: np.ndarray):
        self.vocab = len(table)
        with np.errstate(divide="ignore"):
            self.logits = np.log(table)
        self.shaped = {}  # by the sampler
        self.reset()

    def reset(self) -> None:
        self.prefix = Prefix()

    def cut(self, length: int) -> None:
        self.prefix.cut(length)

    @contextmanager
    def drafting(self, lp, calibrate):
        yield  # without layers, all passes are exact

    def chances(self):
        return Sampler(1.0)(self.logits[self.prefix.fed[-1:]])[0]

    def rows(self, text, last, sampler):
        self.prefix.move(text, self.prefix.keep(text, last))
        if sampler not in self.shaped:
            self.shaped[sampler] = sampler(self.logits)
        last_tokens = list(text[len(text) - last - 1 :])
        return self.shaped[sampler][last_tokens]


KINDS = 5  # vocabulary; smaller ones need fewer requests for the same power
FREEDOM = KINDS * (KINDS - 1)  # of the transitions between tokens
TABLES = np.random.default_rng(5).dirichlet(np.ones(KINDS) * 2, (2, KINDS))
LIMIT = chi2.isf(1e-3, FREEDOM)  # 1 seed in 1,000 would be a false alarm


class Amount(NamedTuple):
    """How much is decoded to count transitions, and the total variation detected."""

    requests: int
    length: int  # tokens per request; some methods' time is quadratic
    variation: float


FAST = Amount(requests=150, length=25, variation=0.067)
LONG = Amount(requests=300, length=200, variation=0.02)


def chi_square(decode, method, settings, amount: Amount) -> float:
    models = {"draft": Markov(TABLES[0]), "target": Markov(TABLES[1])}
    counts = np.zeros((KINDS, KINDS))
    for request in range(amount.requests):
        output, _ = decode(
            method,
            models,
            amount.length,
            sampler=Sampler(1.0),
            coins=Coins(1, request),
            **settings,
        )
        np.add.at(counts, ((0, *output[:-1]), output), 1)
    expected = counts.sum(1, keepdims=True) * TABLES[1]
    return ((counts - expected) ** 2 / expected).sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    "amount",
    [FAST, pytest.param(LONG, marks=pytest.mark.thorough)],
    ids=["fast", "long"],
)
def test_sampled_transitions_have_the_targets_frequencies(main_case, decode, amount):
    for settings in main_case.at(3):
        assert chi_square(decode, main_case.method, settings, amount) < LIMIT


def test_the_chi_square_test_finds_an_ignored_residual(decode):
    def careless(world, gamma):
        while world.going:
            draft = world.wait(world.draft.propose(world.text, gamma))
            rows = world.wait(world.target.score(world.text + ids(draft), gamma))
            accepted, extra = verify(world, draft, rows)
            if len(accepted) < gamma:
                position = len(world.text) + len(accepted)
                extra = (world.coins.choose(rows[len(accepted)], position, "residual"),)
            world.commit(accepted + extra)

    assert chi_square(decode, careless, {"gamma": 3}, FAST) > 2 * LIMIT


# -- caches ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "sampler",
    [pytest.param(Sampler(), marks=pytest.mark.thorough), Sampler(1.0)],
    ids=["greedy", "sampling"],
)
@some_or_all
def test_a_cache_contains_the_tokens_fed_and_keeps_at_most_the_common_prefix(
    case, sampler, gammas
):
    for settings in case.at(*gammas):
        for seed in range(2):
            models = {"draft": Random(3, seed), "target": Random(3, seed + 9)}
            world = WatchedWorld(models, Latency.ratio(3))
            world.begin((0, 1), sampler=sampler, coins=Coins(seed), limit=30)
            case.method(world, **settings)
            trace = world.end()
            assert world.checked == len(trace.operations) > 0
            for event in trace.operations:
                if event.is_scoring:
                    assert len(event.tokens) == event.fed


# -- rates -----------------------------------------------------------------------------
def decoded(decode, name, alpha, gamma, tokens, request=0, **settings):
    """Returns a toy run's trace.

    A target pass takes as long as gamma draft passes, and a prefill takes no longer.
    """
    models = {"draft": Toy(alpha, seed=request), "target": Toy(seed=request)}
    flat = Latency(Curve(((1, 1.0),)), Curve(((1, float(gamma)),)))
    _, trace = decode(
        METHODS[name],
        models,
        tokens,
        gamma=gamma,
        latency=flat,
        coins=Coins(2, request),
        **settings,
    )
    return trace


def counted(decode, name, alpha, gamma, sampler=None, requests=10):
    """Returns the statistics of several requests of 300 tokens."""
    stats_of_requests = []
    for request in range(requests):
        trace = decoded(decode, name, alpha, gamma, 300, request, sampler=sampler)
        stats_of_requests.append(stats(trace))
    return total(stats_of_requests)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler", [Sampler(), Sampler(1.0)], ids=["greedy", "sampling"]
)
@pytest.mark.parametrize("alpha", [0.3, 0.95])
@pytest.mark.parametrize("name", ["speculative", "pearl"])
def test_the_acceptance_rate_is_the_toys_alpha(decode, name, alpha, sampler):
    """A draft passes with probability alpha; the tolerance is 4 standard errors.

    1 seed in 16,000 would fail. Accepted per rejected is alpha / (1 - alpha), which is
    less than Theorem 2 states.
    """
    counts = counted(decode, name, alpha, 4, sampler)
    rate = counts.acceptance_rate
    tested = counts.accepted + counts.rejected
    standard_error = (alpha * (1 - alpha) / tested) ** 0.5
    assert abs(rate - alpha) < 4 * standard_error
    assert counts.run_length == pytest.approx(rate / (1 - rate))


@pytest.mark.slow
@pytest.mark.parametrize("alpha, gamma", [(0.5, 2), (0.8, 5), (0.95, 8)])
def test_pearls_tokens_per_step_match_its_two_state_chain(decode, alpha, gamma):
    """Pre-verify commits 1 token, and post-verify follows with probability alpha.

    Post-verify commits (1 - alpha^gamma) / (1 - alpha), and follows itself with
    probability alpha^gamma. The tolerance of 8 % is at least four standard errors for
    6,000 tokens.
    """
    counts = counted(decode, "pearl", alpha, gamma, Sampler(1.0), requests=20)
    post_steps = alpha / (1 - alpha**gamma)  # post-verify steps per pre-verify step
    tokens_of_a_post_step = (1 - alpha**gamma) / (1 - alpha)
    expected = (1 + post_steps * tokens_of_a_post_step) / (1 + post_steps)
    assert counts.tokens / counts.rounds == pytest.approx(expected, rel=0.08)


@pytest.mark.parametrize("gamma", [1, 3, 7])
def test_with_a_perfect_draft_pearl_commits_gamma_tokens_per_step(decode, gamma):
    """The first step pre-verifies one token; no step adds a bonus token.

    The target never waits, and the draft's last token is the text's last.
    """
    trace = decoded(decode, "pearl", 1.0, gamma, 1 + 20 * gamma)
    assert [len(e.tokens) for e in trace.commits] == [1] + [gamma] * 20
    assert trace.busy("target") == trace.makespan == 21 * gamma
    assert trace.busy("draft") == 1 + 20 * gamma


@pytest.mark.parametrize("gamma", [1, 3, 7])
def test_with_a_perfect_draft_the_others_commit_what_their_rows_allow(decode, gamma):
    """Speculative decoding commits gamma tokens and a bonus per step.

    Without pre-verify, PEARL's first step commits nothing, and later steps gamma.
    Without post-verify, one token comes early, then gamma - 1 and a bonus.
    """

    def sizes(name, **settings):
        trace = decoded(decode, name, 1.0, gamma, 10 * gamma, **settings)
        return [len(e.tokens) for e in trace.commits][:4]

    assert sizes("speculative") == [gamma + 1] * 4
    assert sizes("pearl", without="pre-verify") == [0] + [gamma] * 3
    assert sizes("pearl", without="post-verify") == (
        [1, gamma] * 2 if gamma > 1 else [1] * 4
    )


@pytest.mark.parametrize("settings", [{}, {"without": "post-verify"}], ids=str)
def test_pearl_of_one_token_is_plain_decoding_pass_for_pass(decode, settings):
    _, plain = decode(METHODS["autoregressive"], toys(0.6), 25)
    _, pearl = decode(METHODS["pearl"], toys(0.6), 25, gamma=1, **settings)
    assert target_passes(pearl) == target_passes(plain)
    assert [e.tokens for e in pearl.commits] == [e.tokens for e in plain.commits]


def target_passes(trace) -> list[tuple]:
    """Returns the times and the input of each target pass."""
    passes = [event for event in trace.operations if event.is_scoring]
    return [(e.ts, e.dur, e.tokens, e.kept, e.fed) for e in passes]


def test_an_unknown_ablation_is_refused(decode):
    with pytest.raises(
        SpeclibError, match="without is 'preverify': give .*'pre-verify'"
    ):
        decode(METHODS["pearl"], toys(0.5), 4, gamma=2, without="preverify")


# -- the printed examples --------------------------------------------------------------
class Step(NamedTuple):
    """One step of a run."""

    mode: str
    start: float
    drafted: list[str]
    committed: list[str]


class Replayed(NamedTuple):
    """A run of PEARL on a printed example.

    ``printed``: the steps printed in the paper. ``accepted`` and ``rejected``: the
    drafted words that the target tested, in order.
    """

    steps: list[Step]
    printed: list[dict]
    accepted: list[str]
    rejected: list[str]


class Script:
    """The words of draft and target, which force PEARL to take the printed steps.

    Words have numbers; 0 is an unprinted word.
    """

    def __init__(self, steps: list[dict], gamma: int):
        printed = set()
        for step in steps:
            printed.update(step["draft"], step["committed"])
        self.words = ["(not printed)", *sorted(printed)]
        self.number = {word: number for number, word in enumerate(self.words)}

        self.draft: dict[tuple[int, ...], int] = {}
        self.target: dict[tuple[int, ...], int] = {}
        self.text: tuple[int, ...] = (BOS,)
        for step in steps:
            self.add(step, gamma)

    def add(self, step: dict, gamma: int) -> None:
        # The draft continues after the window, which is the last step's block without
        # its first token, and with unprinted tokens for those that the paper omits.
        block = [self.number[word] for word in step["block"]]
        window: tuple[int, ...] = ()
        if block:
            unprinted = [BOS] * (gamma - len(block))
            window = (*block[1:], *unprinted)

        drafted = tuple(self.number[word] for word in step["draft"])
        for index, token in enumerate(drafted):
            self.draft[self.text + window + drafted[:index]] = token
        for word in step["committed"]:
            self.target[self.text] = self.number[word]
            self.text += (self.number[word],)

    def models(self) -> dict[str, Scripted]:
        return {
            "draft": Scripted(self.draft, len(self.words)),
            "target": Scripted(self.target, len(self.words)),
        }


def replay(item: str, c: float) -> Replayed:
    """Runs PEARL on a printed example; t_draft is 1, t_target is ``c``."""
    path = DATA / "papers" / "pearl" / f"{item}.toml"
    table = tomllib.loads(path.read_text())
    gamma = table["settings"]["gamma"]
    script = Script(table["steps"], gamma)
    words = script.words

    latency = Latency(Curve(((1, 1.0),)), Curve(((1, float(c)),)))
    world = Virtual(script.models(), latency)

    def stop_where_the_print_does(tokens):
        world.going = len(world.text) < len(script.text)

    world.begin(
        (BOS,),
        sampler=Sampler(),
        coins=Coins(),
        limit=2 * len(script.text),  # text and draft continue
        on_commit=stop_where_the_print_does,
    )
    METHODS["pearl"](world, gamma)
    trace = world.end()

    draftings = [event for event in trace.operations if event.op == "propose"]
    passes = [event for event in trace.operations if event.is_scoring]
    steps = []
    for drafting, scoring, commit in zip(draftings, passes, trace.commits, strict=True):
        step = Step(
            mode="post-verify" if scoring.tested else "pre-verify",
            start=scoring.ts,
            drafted=[words[token] for token in drafting.tokens if token],
            committed=[words[token] for token in commit.tokens],
        )
        steps.append(step)

    tested: dict[str, list[str]] = {"accepted": [], "rejected": [], "discarded": []}
    for drafting in draftings:
        for token, outcome in zip(drafting.tokens, drafting.outcome, strict=True):
            tested[outcome].append(words[token])
    return Replayed(steps, table["steps"], tested["accepted"], tested["rejected"])


def test_table_9_is_replayed_step_by_step():
    """Modes, drafts, judgements and output of steps 0 to 7.

    The paper has misprints: step 1 cuts the draft to 'm glad ' and omits the target's
    mark; steps 1 and 2 show four of five drafted tokens; step 6 shows four of five
    accepted tokens and a truncated output; step 7's output is too long.
    """
    replayed = replay("table-9", c=5)
    steps, printed = replayed.steps, replayed.printed
    modes = [step.mode for step in steps]
    assert modes == [step["mode"] for step in printed]
    assert modes == [
        "pre-verify",
        "pre-verify",
        "post-verify",
        "pre-verify",
        "post-verify",
        "pre-verify",
        "post-verify",
        "post-verify",
    ]
    assert [step.drafted for step in steps] == [step["draft"] for step in printed]
    assert [step.committed for step in steps] == [step["committed"] for step in printed]
    assert [len(step.committed) for step in steps] == [1, 1, 2, 1, 4, 1, 5, 3]

    output = [word for step in steps for word in step.committed]
    sentence = (
        "I ' m happy to help you with your question ! However , "
        "I notice that the equations"
    )
    assert " ".join(output) == sentence
    assert replayed.rejected == ["Great", "glad", "this", "equation"]
    accepted = [word for step in printed for word in step["accepted"]]
    assert replayed.accepted == accepted


def test_figure_3_is_replayed_at_its_times():
    """At c = 3, PEARL pre-verifies at 0 and 3t, post-verifies at 6t and 9t, and drops
    x10 .. x12.
    """
    replayed = replay("figure-3", c=3)
    steps = replayed.steps
    assert [(step.start, step.mode) for step in steps] == [
        (0, "pre-verify"),
        (3, "pre-verify"),
        (6, "post-verify"),
        (9, "post-verify"),
    ]
    assert [" ".join(step.drafted) for step in steps] == [
        "x1 x2 x3",
        "x4 x5 x6",
        "x7 x8 x9",
        "x10 x11 x12",
    ]
    output = [word for step in steps for word in step.committed]
    assert " ".join(output) == "y1 x4 x5 x6 x7 x8 y2"
    assert " ".join(replayed.accepted) == "x4 x5 x6 x7 x8"
    assert replayed.rejected == ["x1", "x9"]


@pytest.mark.parametrize("name", METHODS)
def test_the_error_for_a_method_called_without_a_world_is_one_line(name):
    with pytest.raises(BadCall) as refused:
        METHODS[name]("x", gamma=3)
    message = str(refused.value)
    assert message.startswith(f"{name}() was called with 'x'")
    assert "World" in message
    assert "\n" not in message
