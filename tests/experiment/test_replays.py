"""Replays: the same tokens in the same rounds, of more prompts than were measured."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from helpers.specs import measured_spec

from speclab.experiment.cells.measured_prompt import (
    PLAIN,
    Conditions,
    Setting,
    decode_prompt,
)
from speclab.experiment.cells.replayed_prompt import (
    Replay,
    is_replayable,
    pair_to_replay,
    works_at_once,
)
from speclab.experiment.cells.task_prompts import count_prompts, load_prompts
from speclab.experiment.cells.timed_passes import MachineTimes, TimedPasses
from speclab.experiment.engines import measured, pass_times, replayed, replayed_cell
from speclab.experiment.engines.measured_cell import MeasuredCell
from speclab.experiment.limits import Limits
from speclab.experiment.pool import Cores
from speclab.experiment.run_cells import Runner, run_all, stored
from speclab.experiment.spec import REPLAYS_OF_A_REQUEST, Spec
from speclab.progress import Progress
from speclib import simulate
from speclib.data import prompts
from speclib.data.latency import Latency
from speclib.data.pairs import load_pair
from speclib.methods import METHODS, takes_gamma
from speclib.models.open_pair import open_pair
from speclib.models.remembering import Memories
from speclib.worlds.processes import Processes

PAIR = "embedded/llama-7b-70b"
HEAD = "embedded/eagle"
# How many passes these take depends on when an answer comes, on any clock.
BY_TIME = ("dsi",)
COUNTS = ("rounds", "drafted", "accepted", "rejected", "draft_runs", "target_runs")


def times_at(c: float) -> MachineTimes:
    passes = TimedPasses(Latency.ratio(c, target=0.02), message=0.0)
    return MachineTimes(passes, passes)


def conditions(temperature: float = 0.0) -> Conditions:
    return Conditions("humaneval", None, 16, temperature, seed=3, ignore_eos=False)


# -- one prompt ------------------------------------------------------------------------
METHODS_AND_PAIRS = [(HEAD if m == "eagle" else PAIR, m) for m in sorted(METHODS)]


@pytest.fixture(scope="module")
def beside(request):
    """Real workers of a pair, and its replay in this process."""
    pytest.importorskip("torch")
    opened = open_pair(load_pair(request.param))
    with Processes(opened) as world:
        yield world, Replay(opened, times_at(world.ratio), Memories())


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("beside, method", METHODS_AND_PAIRS, indirect=["beside"])
def test_a_replay_writes_the_tokens_of_a_real_run_in_its_rounds(
    beside, method, temperature
):
    """Dilated models in worker processes, and undilated ones that remember."""
    world, replay = beside
    setting = Setting(method, 3 if takes_gamma(method) else None)
    asked = prompts.load("humaneval", 1)[0].input, setting, conditions(temperature), 0
    real, again = decode_prompt(world, *asked), replay.decode(*asked)
    assert again.tokens == real.tokens
    if method not in BY_TIME:
        for count in COUNTS:
            assert getattr(again.stats, count) == getattr(real.stats, count), count


@pytest.mark.slow
@pytest.mark.parametrize("beside", ["embedded/easyspec"], indirect=["beside"])
def test_so_does_one_of_passes_that_are_never_calibrated(beside):
    """What they say hangs on those before them: of the same request, and of no other.

    In between the replay's models read the same texts exactly, for another method.
    """
    world, replay = beside
    settings = (("width", 4), ("lp", 4), ("calibrate", False))
    fuzzy, exact = Setting("easyspec", 5, settings), Setting("tree", 5)
    for number, prompt in enumerate(prompts.load("gsm8k", 3)):
        asked = prompt.input, fuzzy, conditions(), number
        real = decode_prompt(world, *asked)
        replay.decode(prompt.input, exact, conditions(), number)
        for again in (replay.decode(*asked), replay.decode(*asked)):
            assert again.tokens == real.tokens
            for count in COUNTS:
                assert getattr(again.stats, count) == getattr(real.stats, count), count


@pytest.mark.slow
@pytest.mark.parametrize("pair", [PAIR, "ladder/poor"])
@pytest.mark.parametrize(
    "setting", [Setting("pearl", 3), Setting("tree", 4), Setting("duodecoding", 6)]
)
def test_texts_that_are_read_ahead_change_nothing(pair, setting):
    """Also a text that the target would never write, which is read in vain."""
    pytest.importorskip("torch")
    opened = open_pair(load_pair(pair))
    prompt = prompts.load("gsm8k", 1)[0].input
    runs = []
    for ahead in (None, "own", "foreign"):
        memories = Memories()
        replay = Replay(opened, times_at(5.0), memories)
        if ahead is not None:
            asked = tuple(runs[0].trace.meta["prompt"])
            (text,) = memories.write(opened, [asked], conditions().tokens)
            assert text == runs[0].tokens
            read = text if ahead == "own" else (7, 8, 9)
            memories.read(opened, asked, read, ahead=8)
        runs.append(replay.decode(prompt, setting, conditions(), 0))
    assert runs[0].tokens == runs[1].tokens == runs[2].tokens
    assert runs[0].stats == runs[1].stats == runs[2].stats


@pytest.mark.slow
def test_where_the_draft_leaves_the_text_it_has_been_read_ahead():
    """A draft that is often wrong: nothing that it drafts in a line is new."""
    pytest.importorskip("torch")
    opened = open_pair(load_pair("ladder/poor"))
    prompt = prompts.load("gsm8k", 1)[0].input
    memories = Memories()
    replay = Replay(opened, times_at(5.0), memories)
    draft = replay.world.models["draft"].memory
    plain = replay.decode(prompt, PLAIN, conditions(), 0)
    asked = tuple(plain.trace.meta["prompt"])

    memories.read(opened, asked, plain.tokens, ahead=6)
    known = len(draft.logits_after)
    run = replay.decode(prompt, Setting("speculative", 6), conditions(), 0)
    assert run.stats.rejected >= 3
    assert len(draft.logits_after) == known
    replay.decode(prompt, Setting("speculative", 9), conditions(), 0)
    assert len(draft.logits_after) > known


def test_methods_whose_devices_work_at_once_go_by_the_times_beside_others():
    opened = open_pair(load_pair("toy"))
    times = times_at(4.0)
    slower = TimedPasses(Latency.ratio(4.0, target=0.04), message=0.0)
    replay = Replay(opened, replace(times, together=slower), Memories())

    def seconds_per_target_pass(method: str) -> float:
        gamma = 4 if takes_gamma(method) else None
        run = replay.decode("toy", Setting(method, gamma), conditions(), 0)
        last = run.trace.operations[-1]
        return max(event.dur for event in run.trace.operations[:-1] or [last])

    assert seconds_per_target_pass("autoregressive") == pytest.approx(0.02)
    assert seconds_per_target_pass("pearl") == pytest.approx(0.04)


@pytest.mark.parametrize("method, first_time", [("speculative", 1), ("pearl", 2)])
def test_a_setting_begins_with_the_times_that_it_went_by_before(method, first_time):
    replay = Replay(open_pair(load_pair("toy")), times_at(4.0), Memories())
    setting, ran = Setting(method, 4), []

    def run(world):
        ran.append(method)
        return decode_prompt(world, "toy", setting, conditions(), len(ran))

    replay.by_own_times(run, setting)
    assert len(ran) == first_time
    replay.by_own_times(run, setting)
    assert len(ran) == first_time + 1


def test_methods_that_take_turns_and_those_that_do_not_are_told_apart():
    assert not works_at_once(simulate("speculative").trace)
    assert not works_at_once(simulate("autoregressive").trace)
    for method in ("pearl", "dsi", "duodecoding"):
        assert works_at_once(simulate(method).trace)


def test_only_models_of_ours_are_replayed_and_always_on_the_cpu():
    """A model of 70 billion weights would be loaded once more, for nothing."""
    assert is_replayable(load_pair("embedded/duo"))
    assert is_replayable(load_pair("shape/llama-7b-70b"))
    assert is_replayable(load_pair("toy"))
    assert not is_replayable(load_pair("hub/llama-7b-70b"))
    assert not is_replayable(load_pair("hub/vicuna-68m-7b"))

    on_gpus = pair_to_replay(load_pair("shape/llama-7b-70b"))
    assert set(on_gpus.place.draft + on_gpus.place.target) == {"cpu"}
    assert not pair_to_replay(load_pair("embedded/duo")).draft.in_llamacpp


# -- cells -----------------------------------------------------------------------------
def test_a_measured_cell_comes_with_replays_of_its_prompts_and_of_more():
    spec = measured_spec(requests=2)
    result = run_all([spec])[spec]
    assert len(result.stats) == 2
    assert len(result.replays.stats) == len(result.replays.baseline) == 24
    assert REPLAYS_OF_A_REQUEST == 12
    for real, again in zip(result.stats, result.replays.stats, strict=False):
        for count in COUNTS:
            assert getattr(real, count) == getattr(again, count), count
    assert {stats.target_runs for stats in result.replays.baseline} == {spec.tokens}


def test_more_measured_prompts_bring_more_replays_and_keep_those_there_are():
    few, many = measured_spec(requests=1), measured_spec(requests=3)
    before = run_all([few])[few].replays.stats
    after = run_all([many])[many].replays.stats
    assert (len(before), len(after)) == (12, 36)
    assert after[:12] == before


def test_all_prompts_are_replayed_where_claims_are_short_of_them():
    """Of a cell that was not measured none are, and nothing is measured for it."""
    spec, unmeasured = measured_spec(requests=1), measured_spec(gamma=5, requests=1)
    before = run_all([spec])[spec].replays.stats
    with Runner(Progress("cells")) as runner:
        runner.replay([spec, unmeasured], Limits(deadline=0.0))
        assert len(stored(spec).replays.stats) == len(before)
        runner.replay([spec, unmeasured], Limits(requests=2))
        assert len(stored(spec).replays.stats) == 24
        runner.replay([spec, unmeasured])
    after = stored(spec)
    assert len(after.stats) == 1
    assert len(after.replays.stats) == len(after.replays.baseline) == 96
    assert after.replays.stats[: len(before)] == before
    assert stored(unmeasured) is None


@pytest.mark.parametrize("seconds, prompts", [(5.0, 8), (4.5, 6), (2.5, 4), (0.5, 0)])
def test_no_block_is_begun_that_would_end_too_late(seconds, prompts):
    """By a clock that goes on by a second whenever it is read: a block takes one.

    The first block of four prompts begins at 2 s, and the second one, also of four, at
    5 s if it has its quarter of a second for each prompt left when it is asked, at 4 s.
    """
    ticks = itertools.count()
    spec = measured_spec(requests=1)
    cell = replayed_cell.replayed_cell(spec, PLAIN, times_at(4.0))
    with Cores() as cores:
        replayed.replay([cell], 24, cores, seconds, clock=lambda: float(next(ticks)))
    assert len(cell.prompts) == prompts


def test_cells_of_unequal_length_share_plain_decoding_and_neither_loses_replays():
    few, many = measured_spec(requests=1), measured_spec(gamma=3, requests=2)
    results = run_all([many, few])
    assert len(results[few].replays.stats) == 12
    assert len(results[many].replays.stats) == 24


def test_the_best_window_is_searched_on_replays_and_no_prompt_is_measured_for_it(
    monkeypatch,
):
    """Every decoding in the workers is of a window that the table shows."""
    decoded = []
    decode = measured.measured_cells.decode_prompt

    def noting(world, prompt, setting, conditions, request):
        if conditions.tokens > measured.WARM_UP_TOKENS:
            decoded.append(setting)
        return decode(world, prompt, setting, conditions, request)

    monkeypatch.setattr(measured.measured_cells, "decode_prompt", noting)
    spec = measured_spec("speculative", "best", requests=2)
    result = run_all([spec])[spec]
    assert set(decoded) == {PLAIN, Setting("speculative", result.gamma)}
    searched = result.facts["searched"]
    assert max(searched, key=searched.__getitem__) == str(result.gamma)


@pytest.mark.parametrize("at_least, prompts", [(0, 4), (8, 8), (12, 12)])
def test_a_search_that_takes_too_long_begins_no_further_block(at_least, prompts):
    """Blocks are of 4, 4 and 4. The clock is read at the beginning, and before each
    block that need not be; it is late from the second block on."""
    spec = measured_spec(requests=1)
    cell = replayed_cell.replayed_cell(
        spec, Setting("speculative", 3, ()), times_at(3.0)
    )
    reads = iter((0.0, 0.0) if at_least == 0 else (0.0,))
    with Cores() as cores:
        replayed.replay(
            [cell], 12, cores, 4.0, at_least, clock=lambda: next(reads, 5.0)
        )
    assert len(cell.prompts) == prompts


def test_a_pair_that_is_not_replayed_is_searched_by_measuring(monkeypatch):
    """As one with weights of others'; its numbers rest on what was measured alone."""
    monkeypatch.setattr(measured, "is_replayable", lambda pair: False)
    spec = measured_spec("speculative", "best", requests=2)
    result = run_all([spec])[spec]
    assert str(result.gamma) in result.facts["searched"]
    assert result.replays is None


def test_where_replays_tell_nothing_windows_are_tried_by_measuring(monkeypatch):
    monkeypatch.setattr(measured.replayed, "replay", lambda *_, **__: None)
    spec = measured_spec("speculative", "best", requests=2)
    result = run_all([spec])[spec]
    assert str(result.gamma) in result.facts["searched"]


def test_without_times_or_replays_a_result_has_none(monkeypatch):
    spec = measured_spec(requests=2)
    run_all([spec])
    monkeypatch.setattr(pass_times, "stored", lambda *_: None)
    assert stored(spec).replays is None


def test_a_cell_without_a_measured_prompt_has_no_result_whatever_was_replayed(
    monkeypatch,
):
    """A replay alone is no measurement."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(measured.Measurement, "_measure_prompt", interrupted)
    spec = measured_spec("speculative", "best", requests=2)
    with pytest.raises(KeyboardInterrupt):
        run_all([spec])
    assert MeasuredCell(spec).header.gamma  # from replays
    assert stored(spec) is None


# -- what a replay depends on ----------------------------------------------------------
def key(spec: Spec = None, setting: Setting = PLAIN, c: float = 4.0) -> str:
    spec = spec or measured_spec(pair=PAIR, task="humaneval")
    return replayed_cell.replayed_cell(spec, setting, times_at(c)).key


def test_replays_of_other_weights_other_times_or_other_prompts_are_others(
    monkeypatch, tmp_path
):
    first = key()
    assert key() == first
    assert key(c=4.1) != first
    assert key(setting=Setting("pearl", 3)) != first
    assert key(measured_spec(pair=PAIR, task="gsm8k")) != first
    assert key(measured_spec(pair=PAIR, task="humaneval", requests=9)) == first

    other = tmp_path / "SHA256SUMS"
    other.write_text("other weights")
    monkeypatch.setattr("speclab.experiment.engines.inputs.CHECKSUMS", other)
    assert key() != first


# -- prompts ---------------------------------------------------------------------------
def test_categories_of_a_task_take_turns():
    """MT-bench's first prompts are both turns of one dialogue of each category."""
    asked = load_prompts("mt_bench", None, 16, tokenizer=None)
    firsts = [prompts.load(category, 1)[0].turns[0] for category in prompts.MT_BENCH]
    assert [prompt[-1]["content"] for prompt in asked[::2]] == firsts
    assert all(turn.number == 1 for turn in asked[1::2])


def test_prompts_are_counted_by_their_turns():
    assert count_prompts("humaneval", None) == 96
    assert count_prompts("stem", None) == 2 * 96
    assert count_prompts("mt_bench", None) == 8 * 2 * 96
    assert count_prompts("humaneval", length=64) == 96
