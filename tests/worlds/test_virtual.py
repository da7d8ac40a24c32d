"""The virtual clock, compared with SimPy and formulas."""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np
import pytest
import simpy
from helpers.watched_world import common_prefix
from hypothesis import given
from hypothesis import strategies as st

from speclib.core.kv_prefix import Prefix
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Curve, Latency, load_latency
from speclib.errors import BadValue, SpeclibError
from speclib.methods import METHODS
from speclib.models.toy import Random, Toy
from speclib.operations.model import Model
from speclib.operations.score import Score
from speclib.worlds.devices import DeviceFailed
from speclib.worlds.virtual import Virtual

DEVICES = ("draft", "target", "target-1", "target-2")


class Still(Model):
    """A model that computes nothing and caches what it is fed."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.prefix = Prefix()

    def cut(self, length):
        self.prefix.cut(length)

    def rows(self, text, last, sampler):
        self.prefix.move(text, self.prefix.keep(text, last))
        return np.ones((last + 1, 1))


class Broken(Still):
    def rows(self, text, last, sampler):
        raise ValueError("no logits today")


class Given(Latency):
    """Gives latencies by the operation's first token."""

    def __init__(self, durations):
        super().__init__(**vars(Latency.ratio(1)))
        self.durations = durations

    def seconds(self, device, op, kept, fed):
        return self.durations[op.text[0]]


def still(durations=(1.0,) * 100, cancel="immediate", devices=DEVICES) -> Virtual:
    world = Virtual(
        {name: Still() for name in devices}, Given(durations), cancel=cancel
    )
    world.begin((0,), sampler=Sampler(), coins=Coins(), limit=1)
    return world


def times(trace) -> dict:
    """id -> (device, start, duration)."""
    return {e.id: (e.device, e.ts, e.dur) for e in trace.operations}


# -- SimPy as the oracle ---------------------------------------------------------------
class Submit(NamedTuple):
    device: str
    seconds: float


class Wait(NamedTuple):
    """A wait for several operations, given by number: for all, or the first to end."""

    kind: str  # "all" or "first"
    operations: list[int]


class Cancel(NamedTuple):
    operation: int


Statement = Submit | Wait | Cancel


class Outcome(NamedTuple):
    """``spans``: operation -> (device, start, seconds); ``woken``: when waits ended."""

    spans: dict[int, tuple[str, float, float]]
    woken: list[float]


def random_program(seed: int, ties: bool, cancels: bool) -> list[Statement]:
    """Returns random statements: submit, cancel, wait for all or for the first.

    Durations are multiples of 2**-20, so sums are exact. With ``ties``, there are only
    a few small durations, including zero.
    """
    dice = random.Random(seed)
    statements: list[Statement] = []
    cancelled: set[int] = set()
    for number in range(40):
        if ties:
            seconds = dice.randrange(4) / 4
        else:
            seconds = dice.randrange(1, 1 << 24) / (1 << 20)
        statements.append(Submit(dice.choice(DEVICES), seconds))

        wanted = [n for n in range(number + 1) if n not in cancelled]
        chance = dice.random()
        if chance < 0.15 and wanted:
            some = dice.sample(wanted, min(len(wanted), 3))
            statements.append(Wait("all", some))
        elif chance < 0.35 and wanted:
            some = dice.sample(wanted, min(len(wanted), 4))
            statements.append(Wait("first", some))
        elif chance < 0.45 and cancels and wanted:
            victim = dice.choice(wanted)
            cancelled.add(victim)
            statements.append(Cancel(victim))
    return statements


def run_here(statements: list[Statement], cancel: str) -> Outcome:
    seconds = [s.seconds for s in statements if isinstance(s, Submit)]
    world = still(seconds, cancel)
    futures = []
    woken = []
    for statement in statements:
        if isinstance(statement, Submit):
            operation = Score((len(futures),))
            futures.append(world.submit(statement.device, operation))
            continue
        if isinstance(statement, Cancel):
            world.cancel(futures[statement.operation])
        else:
            wait = world.all if statement.kind == "all" else world.first
            wait(*(futures[n] for n in statement.operations))
        woken.append(world.now)

    for future in futures:
        if not future.cancelled:
            world.wait(future)
    return Outcome(times(world.end()), woken)


def run_simpy(statements: list[Statement], cancel: str) -> Outcome:
    """Runs the program with SimPy's resources, processes and events."""
    env = simpy.Environment()
    devices = {name: simpy.Resource(env, capacity=1) for name in DEVICES}
    jobs: list[simpy.Process] = []
    stops: list[simpy.Event] = []
    spans = {}
    woken = []

    def run_job(number: int, device: str, seconds: float):
        with devices[device].request() as turn:
            yield turn | stops[number]
            if not turn.triggered:
                return  # cancelled while waiting
            start = env.now
            over = env.timeout(seconds)
            yield (over | stops[number]) if cancel == "immediate" else over
            spans[number] = (device, start, env.now - start)

    def run_program():
        for statement in statements:
            if isinstance(statement, Submit):
                stops.append(env.event())
                job = run_job(len(jobs), statement.device, statement.seconds)
                jobs.append(env.process(job))
                continue
            if isinstance(statement, Cancel):
                if not stops[statement.operation].triggered:
                    stops[statement.operation].succeed()
                for _ in range(4):  # release, grant and start happen at one instant
                    yield env.timeout(0)
            else:
                wait = env.all_of if statement.kind == "all" else env.any_of
                yield wait([jobs[n] for n in statement.operations])
            woken.append(env.now)

    env.process(run_program())
    env.run()
    return Outcome(spans, woken)


@pytest.mark.parametrize("ties", [True, False], ids=["ties", "no ties"])
def test_operations_start_and_end_as_in_simpy(ties):
    for seed in range(150):
        program = random_program(seed, ties, cancels=False)
        assert run_here(program, "after-op") == run_simpy(program, "after-op"), seed


@pytest.mark.parametrize("cancel", ["immediate", "after-op"])
def test_cancelled_operations_free_their_devices_as_in_simpy(cancel):
    for seed in range(150):
        program = random_program(seed, ties=False, cancels=True)
        assert run_here(program, cancel) == run_simpy(program, cancel), seed


# -- order, cancellation and errors ----------------------------------------------------
def test_operations_with_equal_deadlines_end_in_order_of_their_start():
    world = still()
    futures = [
        world.submit(name, Score((i,))) for i, name in enumerate(reversed(DEVICES))
    ]
    assert world.first(*reversed(futures)) is futures[0]
    world.all(*futures)
    assert [e.id for e in world.end().operations] == [0, 1, 2, 3]


def test_operations_that_end_together_all_count_as_first_despite_rounding():
    assert 0.1 + 0.2 > 0.3  # in floating point; 0.1 and 0.2 are consecutive here
    world = still([0.1, 0.3, 0.3 + 1e-6, 0.2])
    names = list(DEVICES)[:3]
    early, together, later = [
        world.submit(name, Score((number,))) for number, name in enumerate(names)
    ]
    queued = world.submit(names[0], Score((3,)))
    assert world.earliest(early, together, later, queued) == [early]
    assert world.earliest(later, queued, together) == [queued, together]
    assert world.earliest(later) == [later]


@pytest.mark.parametrize("cancel", ["immediate", "after-op"])
def test_cancelling_again_changes_nothing(cancel):
    """Whether queued or running: methods need not track what they have cancelled."""
    world = still([5.0, 1.0, 1.0], cancel)
    running = world.submit("target", Score((0,)))
    queued = world.submit("target", Score((1,)))
    last = world.submit("target", Score((2,)))

    world.cancel(queued)
    world.cancel(queued, running)
    world.cancel(running, queued)

    world.wait(last)
    begins = 0 if cancel == "immediate" else 5
    assert running.cancelled
    assert queued.cancelled
    assert not queued.done
    assert times(world.end()) == {
        0: ("target", 0, begins),
        2: ("target", begins, 1),
    }


def test_cancelling_a_running_and_a_queued_operation_starts_nothing():
    world = still([5.0, 1.0])
    running = world.submit("target", Score((0,)))
    queued = world.submit("target", Score((1,)))
    world.cancel(running, queued)
    assert [e.id for e in world.end().operations] == [0]


def test_an_aborted_pass_leaves_nothing_in_the_cache():
    world = still([0.0, 1.0, 4.0])
    world.wait(world.submit("target", Score((2, 7, 8))))
    aborted = world.submit("target", Score((2, 7, 8, 9, 9)))
    world.wait(world.submit("draft", Score((1,))))
    world.cancel(aborted)
    world.wait(world.submit("target", Score((2, 7, 8, 9, 9))))
    ops = [
        (e.ts, e.dur, e.kept, e.fed)
        for e in world.end().operations
        if e.device == "target"
    ]
    assert ops == [(0, 4, 0, 3), (4, 1, 3, 0), (5, 4, 3, 2)]


def test_an_aborted_draft_keeps_its_finished_passes():
    """Passes of 1 s start at 2.5 s and stop at 5 s, so two of them have ended.

    The first fed the three tokens of the text, the second the first draft.
    """
    latency = Latency(Curve(((1, 1.0),)), Curve(((1, 2.5),)))
    world = Virtual({"draft": Toy(1.0), "target": Toy()}, latency)
    world.begin((0,), sampler=Sampler(), coins=Coins(), limit=9)
    world.wait(world.target.score((0,)))
    drafting = world.draft.propose((0, 1, 2), 5)
    world.wait(world.target.score((0, 1)))
    world.cancel(drafting)

    written = tuple(draft.token for draft in drafting.value)
    assert len(written) == 2
    world.wait(world.draft.propose((0, 1, 2, *written), 1))
    first, second = [e for e in world.end().operations if e.device == "draft"]
    assert (first.ts, first.dur, first.kept, first.fed) == (2.5, 2.5, 0, 4)
    assert (second.ts, second.dur, second.kept, second.fed) == (5, 1, 4, 1)


def test_devices_of_a_kind_are_numbered_and_the_first_has_no_number():
    models = dict.fromkeys(("draft", "draft-2", "target", "target-2"), Toy())
    world = Virtual(models, FLAT)
    numbered = [(d.name, d.role, d.index) for d in world.devices.values()]
    assert numbered == [
        ("draft", "draft", 0),
        ("draft-2", "draft", 1),
        ("target", "target", 0),
        ("target-2", "target", 1),
    ]


def test_a_worlds_vocabulary_is_what_all_its_models_share():
    world = Virtual({"draft": Random(7, 1), "target": Random(5, 2)}, FLAT)
    world.begin((0,), sampler=Sampler(), coins=Coins(), limit=9)
    assert world.vocab == 5
    assert [draft.token for draft in world.guess((4, 5, 1))] == [4]


def test_waiting_for_an_operation_that_never_ends_is_an_error():
    world = still()
    running = world.submit("target", Score((0,)))
    queued = world.submit("target", Score((1,)))
    world.cancel(queued)
    with pytest.raises(
        SpeclibError, match="cancelled or never submitted: nothing is running"
    ):
        world.all(running, queued)


def test_an_operations_error_is_raised_in_any_wait_for_it():
    world = Virtual({"draft": Still(), "target": Broken()}, Latency.ratio(2))
    world.begin((0,), sampler=Sampler(), coins=Coins(), limit=1)
    future = world.target.score((0,))
    why = "'target' failed in score: ValueError: no logits today"
    with pytest.raises(DeviceFailed, match=why):
        world.wait(world.submit("draft", Score((0,))))
    with pytest.raises(DeviceFailed, match=why):
        world.wait(future)


@pytest.mark.parametrize("wait", ["first", "earliest"])
def test_an_unread_error_ends_the_next_wait(wait):
    world = Virtual({"draft": Broken(), "target": Still()}, Latency.ratio(2))
    world.begin((0,), sampler=Sampler(), coins=Coins(), limit=1)
    drafting = world.draft.propose((0,), 1)
    scoring = world.target.score((0,))
    with pytest.raises(DeviceFailed, match="'draft' failed in propose"):
        getattr(world, wait)(drafting, scoring)


def test_an_error_is_raised_at_once_even_if_another_operation_ends_then():
    models = {"draft": Broken(), "target": Still()}
    world = Virtual(models, Given((1.0,)))  # both take a second
    world.begin((0,), sampler=Sampler(), coins=Coins(), limit=1)
    scoring = world.target.score((0,))
    world.draft.propose((0,), 1)
    with pytest.raises(DeviceFailed, match="'draft' failed in propose"):
        world.earliest(scoring)


def test_an_error_of_a_cancelled_operation_is_ignored():
    world = Virtual(
        {"draft": Broken(), "target": Still()}, Latency.ratio(2), cancel="after-op"
    )
    world.begin((0,), sampler=Sampler(), coins=Coins(), limit=1)
    world.cancel(world.draft.propose((0,), 1))
    assert len(world.wait(world.target.score((0,)))) == 1


def test_a_request_begins_with_empty_caches_and_the_clock_at_zero():
    world = still()
    for _ in range(2):
        world.begin((0,), sampler=Sampler(), coins=Coins(), limit=1)
        world.wait(world.submit("target", Score((0, 1, 2))))
        assert [(e.id, e.ts, e.kept, e.fed) for e in world.end().operations] == [
            (0, 0, 0, 3)
        ]


def test_a_request_leaves_the_same_trace_whatever_ran_before_it_in_its_world():
    world = Virtual({"draft": Toy(0.8), "target": Toy()}, FLAT)
    traces = []
    for _ in range(2):
        world.begin((0,), sampler=Sampler(1.0), coins=Coins(3), limit=9)
        METHODS["pearl"](world, gamma=3)
        traces.append(world.end())
    assert traces[1] == traces[0]
    assert traces[0].events[0].round == 0


def test_a_request_begins_on_idle_devices_whatever_the_last_request_left():
    world = still([1.0, 2.0])
    world.submit("target", Score((0,)))
    world.begin((0,), sampler=Sampler(), coins=Coins(), limit=1)
    world.wait(world.submit("target", Score((1,))))
    assert times(world.end()) == {0: ("target", 0, 2)}


# -- commits ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "limit, eos, text, going",
    [
        (9, (), (5, 6, 7, 8), True),
        (4, (), (5, 6, 7, 8), False),
        (2, (), (5, 6), False),
        (9, (7,), (5, 6, 7), False),
        (3, (8, 6), (5, 6), False),
        (9, 7, (5, 6, 7), False),
    ],
)
def test_a_commit_is_cut_at_the_limit_and_after_eos(limit, eos, text, going):
    world, streamed = still(), []
    world.begin(
        (1, 2),
        sampler=Sampler(),
        coins=Coins(),
        limit=limit,
        eos=eos,
        on_commit=streamed.append,
    )
    world.commit(())
    world.commit((5, 6, 7, 8))
    assert world.text == (1, 2, *text)
    assert world.going is going
    assert streamed == [text]
    assert [e.tokens for e in world.end().commits] == [(), text]


@pytest.mark.parametrize("eos", ["2", [2.0], [True], -1], ids=str)
def test_an_end_token_that_is_no_token_id_is_refused(eos):
    with pytest.raises(BadValue, match="eos is "):
        still().begin((1,), sampler=Sampler(), coins=Coins(), limit=9, eos=eos)


def test_nothing_is_committed_after_the_end():
    world = still()
    world.begin((1,), sampler=Sampler(), coins=Coins(), limit=9, eos=frozenset({5}))
    world.commit((5,))
    world.commit((6,))
    assert world.text == (1, 5)
    assert not world.going


# -- latency ---------------------------------------------------------------------------
TD, TT = 0.25, 1.0  # seconds per pass; powers of two make sums exact
FLAT = Latency(Curve(((1, TD),)), Curve(((1, TT),)))


def agree() -> dict:
    return {"draft": Toy(1.0), "target": Toy()}


def starts(trace) -> list[float]:
    return [e.ts for e in trace.commits]


def test_plain_decoding_takes_one_target_pass_per_token(decode):
    _, trace = decode(METHODS["autoregressive"], agree(), 12, latency=FLAT)
    assert starts(trace) == [TT * n for n in range(1, 13)]
    assert trace.makespan == 12 * TT


@pytest.mark.parametrize("gamma", [1, 4])
def test_an_iteration_of_sd_takes_gamma_draft_passes_and_one_target_pass(decode, gamma):
    _, trace = decode(METHODS["speculative"], agree(), 40, latency=FLAT, gamma=gamma)
    assert starts(trace) == [
        n * (gamma * TD + TT) for n in range(1, len(trace.commits) + 1)
    ]


@pytest.mark.parametrize("gamma", [1, 3, 4, 9])
def test_an_iteration_of_pearl_takes_the_longer_of_drafting_and_verifying(
    decode, gamma
):
    _, trace = decode(METHODS["pearl"], agree(), 40, latency=FLAT, gamma=gamma)
    whole = starts(trace)[:-2]  # the last rounds draft what is left of the text
    assert len(whole) >= 4
    assert whole == [n * max(gamma * TD, TT) for n in range(1, len(whole) + 1)]


@pytest.mark.parametrize("gamma", [2, 6])
def test_each_ablation_serialises_the_overlap_that_it_switches_off(decode, gamma):
    """Without pre-verify, the target idles while the first block is drafted.

    Without post-verify, drafting and verifying alternate.
    """
    pearl = METHODS["pearl"]
    _, trace = decode(
        pearl, agree(), 40, latency=FLAT, gamma=gamma, without="pre-verify"
    )
    step = max(gamma * TD, TT)
    whole = starts(trace)[:-2]  # the last rounds draft what is left of the text
    assert len(whole) >= 5
    assert whole == [gamma * TD + n * step for n in range(len(whole))]
    _, trace = decode(
        pearl, agree(), 40, latency=FLAT, gamma=gamma, without="post-verify"
    )
    whole = starts(trace)[:-2]
    assert len(whole) >= 5
    assert whole == [
        (n + 1) // 2 * step + n // 2 * TT for n in range(1, len(whole) + 1)
    ]


def test_prefill_and_later_passes_are_charged_by_the_tokens_fed(decode):
    """A pass takes 1 s + 0.25 s per token after the first.

    Speculative decoding, gamma 2, prompt of 5: the draft is fed 5 tokens, then 1; the
    target 5 + 2. All drafts are accepted; the bonus token is fed to both models next.
    """
    rising = Curve(((1, 1.0), (101, 26.0)))
    _, trace = decode(
        METHODS["speculative"],
        agree(),
        5,
        gamma=2,
        prompt=(0,) * 5,
        latency=Latency(rising, rising),
    )
    ops = [(e.op, e.kept, e.fed, e.dur) for e in trace.operations]
    assert ops == [
        ("propose", 0, 6, 2 + 1),
        ("score", 0, 7, 2.5),
        ("propose", 6, 3, 1.25 + 1),
        ("score", 7, 3, 1.5),
    ]


def test_a_prefill_entry_replaces_the_first_pass_of_a_text_only(decode):
    curve = Curve(((1, 1.0),), prefill=7.0)
    _, trace = decode(
        METHODS["speculative"],
        agree(),
        6,
        gamma=2,
        prompt=(0, 0),
        latency=Latency(curve, curve),
    )
    assert [e.dur for e in trace.operations] == [8, 7, 2, 1]


@given(
    st.lists(
        st.tuples(st.integers(1, 500), st.floats(0, 10)),
        min_size=1,
        max_size=6,
        unique_by=lambda p: p[0],
    ).map(sorted),
    st.integers(0, 600),
)
def test_a_curve_is_numpys_linear_interpolation(points, fed):
    expected = np.interp(fed, *zip(*points, strict=True))
    assert Curve(tuple(points))(fed) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(
    st.lists(st.integers(0, 2), max_size=12),
    st.lists(st.integers(0, 2), min_size=1, max_size=12),
    st.data(),
)
def test_a_cache_keeps_the_common_prefix_except_where_rows_are_requested(
    cached, text, data
):
    prefix = Prefix()
    prefix.move(cached, 0)
    last = data.draw(st.integers(0, len(text) - 1))
    kept = prefix.keep(tuple(text), last)
    assert kept == min(common_prefix(cached, text), len(text) - last - 1)
    prefix.move(tuple(text), kept)
    assert prefix.fed == text


# -- latency files ---------------------------------------------------------------------
@pytest.fixture
def latency_file(tmp_path, monkeypatch):
    """Writes data/latency/mine.toml in a separate data folder."""

    def write(text: str) -> None:
        monkeypatch.setattr("speclib.data.latency.DATA", tmp_path)
        (tmp_path / "latency").mkdir(exist_ok=True)
        (tmp_path / "latency" / "mine.toml").write_text(text)

    return write


GOOD = (
    "[draft]\nforward = [[1, 0.5], [3, 1]]\n[target]\nforward = [[1, 2]]\nprefill = 9\n"
)

FUZZY = GOOD + "[fuzzy]\nlayers = 9\nlp_size = 2\nforward = [[1, 0.35], [3, 0.7]]\n"


def test_a_latency_file_is_read_as_written(latency_file):
    latency_file(GOOD)
    latency = load_latency("mine")
    assert (latency.c, latency.draft(2), latency.target(5, 0), latency.name) == (
        4,
        0.75,
        9,
        "mine",
    )


@pytest.mark.parametrize(
    "text",
    [
        "[draft]\nforward = [[1, 1]]\n",
        pytest.param(GOOD.replace("[[1, 2]]", "[[1, -2]]"), id="negative"),
        pytest.param(
            GOOD.replace("[[1, 0.5], [3, 1]]", "[[3, 1], [1, 0.5]]"), id="unsorted"
        ),
        pytest.param(GOOD.replace("prefill", "prefil"), id="unknown key"),
        pytest.param(FUZZY.replace("lp_size = 2", ""), id="no lp_size"),
        pytest.param(GOOD.replace("= 9", "="), id="not TOML"),
    ],
)
def test_a_malformed_latency_file_is_refused_by_name(latency_file, text):
    latency_file(text)
    with pytest.raises(SpeclibError, match="mine.toml"):
        load_latency("mine")


def test_fuzzy_passes_save_the_same_time_for_every_joined_layer(latency_file):
    """Nine layers form 9, 6, 5 and 4 groups with lp 1 to 4 (see test_layer_schedule).

    So 3 layers join at the measured lp of 2, four at 3, five at 4. Each saves 0.05 s of
    the 0.5 s of an exact pass over one token, and 0.1 s of the 1 s over three tokens.
    """
    latency_file(FUZZY)
    latency = load_latency("mine")
    seconds_of = {  # lp -> seconds of one, two and three tokens
        1: (0.5, 0.75, 1),
        2: (0.35, 0.525, 0.7),
        3: (0.3, 0.45, 0.6),
        4: (0.25, 0.375, 0.5),
    }
    for lp, expected in seconds_of.items():
        found = [latency.fuzzy.seconds(latency.draft, lp, fed) for fed in (1, 2, 3)]
        assert found == pytest.approx(expected)
    longer = latency.lengthened(0.5)
    assert longer.fuzzy.curve(3) == pytest.approx(0.7 + 0.5 * 2 * 0.35)
    assert latency.lengthened(0) is latency


def test_a_fuzzy_tree_takes_an_exact_pass_and_a_fuzzy_pass_per_level(latency_file):
    """An exact pass fills an empty cache, calibrated or not: 0.75 s for two tokens.

    Then two levels of three nodes each run three layers at once (0.6 s). The next tree
    starts with both new tokens in an exact pass (0.75 s), or with only the missing
    token in a fuzzy pass (0.3 s).
    """
    latency_file(FUZZY)
    for calibrate, first, second in ((True, 1.95, 1.95), (False, 1.95, 1.5)):
        models = {"draft": Random(5, 1), "target": Random(5, 2)}
        world = Virtual(models, load_latency("mine"))
        world.begin((1, 2), sampler=Sampler(1.0), coins=Coins(), limit=9)
        how = {"levels": 3, "width": 3, "lp": 3, "calibrate": calibrate}
        tree = world.wait(world.draft.draft_tree(world.text, **how))
        text = (*world.text, tree.drafted[0].token, 4)
        world.wait(world.draft.draft_tree(text, **how))
        seconds = [event.dur for event in world.end().operations]
        assert seconds == pytest.approx([first, second])


@pytest.mark.parametrize("c", [0, -1.0, float("nan")])
def test_a_cost_ratio_must_be_above_zero(c):
    with pytest.raises(SpeclibError, match=f"c is {c}"):
        Latency.ratio(c)
