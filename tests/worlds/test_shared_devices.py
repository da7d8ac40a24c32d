"""Draft and target on the same devices: who computes when, and that nothing is lost.

A target in stages runs on one device after the other; the draft writes the first half
of a block on the last device and the rest on the first (PEARL, Appendix G).
"""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest
from helpers.patience import wait_until
from helpers.processes import gone

import speclib
from speclib.core.sampling import Coins, Sampler
from speclib.data import latency as latency_files
from speclib.data.latency import Curve, Latency, Shared, load_latency
from speclib.errors import BadValue
from speclib.worlds.devices import DeviceLost
from speclib.worlds.processes import Processes
from speclib.worlds.stage_locks import StageLocks

TOY = speclib.load_pair("toy")
PLAIN = speclib.decode("x", pair=TOY, method="autoregressive", world="virtual")
NO_TIME = Curve(((1, 0.0),))


def seconds_of_pearl(stages: int | None, c=5, target=0.1, gamma=5) -> float:
    """Seconds of three rounds with all drafts right; the text continues after them."""
    latency = Latency.ratio(c, target)
    if stages is not None:
        latency = latency.sharing(stages)
    run = speclib.simulate("pearl", alpha=1, tokens=30, gamma=gamma, latency=latency)
    return run.trace.commits[2].end


def test_the_papers_example_of_four_devices_and_c_5_has_no_wait():
    """Appendix G: the 20 steps of M_p and M_q name different devices in each place."""
    assert seconds_of_pearl(4) == pytest.approx(3 * 0.1)


def test_on_two_devices_the_second_stage_waits_for_the_third_draft():
    """Three drafts keep the last device until 0.06 s; its stage then takes 0.05 s."""
    assert seconds_of_pearl(2) == pytest.approx(3 * 0.11)


def test_a_slow_draft_waits_for_the_target_on_its_own_device():
    """c = 2.5, gamma = 6, two devices, in units of a draft pass: rounds of 7.25.

    Drafts 1 and 2 take the last device until 2. The target has waited for it since 1.25
    and takes it until 3.25, draft 3 until 4.25. Drafts 4 to 6 take the first one until
    7.25.
    """
    seconds = seconds_of_pearl(2, c=2.5, target=2.5, gamma=6)
    assert seconds == pytest.approx(3 * 7.25)


def test_plain_decoding_takes_as_long_on_shared_devices():
    alone = speclib.simulate("autoregressive", tokens=9)
    latency = Latency.ratio(5, 0.1).sharing(3)
    shared = speclib.simulate("autoregressive", tokens=9, latency=latency)
    assert shared.stats.seconds == pytest.approx(alone.stats.seconds)


def test_the_cache_is_moved_there_and_back():
    """Four drafts of 1 s; the cache then holds the prompt and three of them."""
    move = Curve(((1, 0.25), (5, 0.25), (1000, 9.0)))
    latency = Latency(Curve(((1, 1.0),)), Curve(((1, 4.0),)), shared=Shared(2, move))
    with speclib.open_world("virtual", TOY, latency="pearl/llama2-7-70") as world:
        world.latency = latency
        result = speclib.decode(
            "x", world=world, method="speculative", gamma=4, max_new_tokens=5
        )
    drafting = result.trace.operations[0]
    assert drafting.dur == pytest.approx(4 * 1.0 + 2 * 0.25)


@pytest.mark.parametrize("stages, cancel", [(2, "immediate"), (3, "after-op")])
def test_no_method_loses_a_token_on_shared_devices(case, cancel, stages):
    for settings in case.at(3):
        with speclib.open_world(
            "virtual", TOY, latency="pearl/llama2-7-70-shared", cancel=cancel
        ) as world:
            world.latency = world.latency.sharing(stages)
            result = speclib.decode(
                "x", world=world, method=case.name, max_new_tokens=24, **settings
            )
        assert result.tokens == PLAIN.tokens[:24]


def test_a_lost_device_gives_its_stage_back():
    latency = Latency.ratio(5, 0.1).sharing(2)
    how = {"servers": 2, "lost": {"target-2": 0.05}}
    result = speclib.simulate("dsi", latency=latency, **how)
    assert result.tokens == speclib.simulate("autoregressive").tokens


# -- among processes -------------------------------------------------------------------
SWIFT = Latency(
    Curve(((1, 0.004), (2000, 4.0)), 0.0),
    Curve(((1, 0.016), (2000, 16.0)), 0.0),
    shared=Shared(2, NO_TIME),
)


@pytest.fixture(scope="module")
def emulated():
    with Processes(TOY, emulate=SWIFT) as world:
        yield world


def test_in_processes_no_method_loses_a_token(case, emulated):
    for settings in case.at(3):
        if settings.get("servers", 1) == 1:
            result = speclib.decode(
                "x", world=emulated, method=case.name, max_new_tokens=12, **settings
            )
            assert result.tokens == PLAIN.tokens[:12]


def stop_at_once(seconds: float) -> bool:
    """A request for a stage with this does not wait for it."""
    return True


def has_next_in_line(locks: StageLocks, stage: int) -> bool:
    """Whether another process waits for a stage, which this one may have."""
    return not locks.enter(stage, stop_at_once)


def is_taken(locks: StageLocks, stage: int) -> bool:
    """Whether another process has a stage."""
    if not locks.enter(stage, stop_at_once):
        return True
    locks.leave(stage)
    return False


def test_in_processes_a_stage_waits_for_its_device(emulated):
    """Another process has the last device; a pass of 16 ms ends after it is freed."""
    emulated.begin((0,), sampler=Sampler(), coins=Coins(), limit=4)
    locks = emulated.stage_locks
    assert locks.enter(1, stop_at_once)
    scoring = emulated.target.score((0, 1))
    assert wait_until(lambda: has_next_in_line(locks, 1))
    given_back = emulated.now
    locks.leave(1)
    emulated.wait(scoring)

    (event,) = emulated.end().operations
    assert event.end >= given_back


def test_a_process_that_is_killed_gives_its_stage_back():
    slow_draft = replace(SWIFT, draft=Curve(((1, 30.0),)))
    with Processes(TOY, emulate=slow_draft, timeout=60) as world:
        world.begin((0,), sampler=Sampler(), coins=Coins(), limit=4)
        drafting = world.draft.propose((0,), 1)
        assert wait_until(lambda: is_taken(world.stage_locks, 1))
        (victim,) = world.processes["draft"]
        os.kill(victim, signal.SIGKILL)
        assert gone([victim])

        scored = world.wait(world.target.score((0, 1)))
        assert len(scored) == 1
        with pytest.raises(DeviceLost, match="draft"):
            world.wait(drafting)


def test_a_lock_is_held_by_one_process_and_freed_when_that_ends():
    locks = StageLocks()
    hear, tell = os.pipe()
    child = os.fork()
    if child == 0:
        locks.enter(1, stop_at_once)
        os.write(tell, b"taken")
        signal.pause()
    assert os.read(hear, 5) == b"taken"
    looks = []

    def stopped(seconds: float) -> bool:
        looks.append(seconds)
        return len(looks) > 5

    assert not locks.enter(1, stopped)
    assert len(looks) == 6
    assert locks.enter(0, stopped)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert locks.enter(1, stop_at_once)
    for end in (hear, tell):
        os.close(end)


# -- files -----------------------------------------------------------------------------
def test_shared_latency_files_have_the_passes_of_the_others():
    for name in ("pearl/llama2-7-70", "pearl/llama31-8-70"):
        alone, shared = load_latency(name), load_latency(f"{name}-shared")
        assert (alone.draft, alone.target) == (shared.draft, shared.target)
        assert shared.shared.move(1024) == 0.0016  # Table 16


@pytest.mark.parametrize(
    "part",
    [
        "stages = 1\nmove = [[1, 0.1]]",
        "stages = 2\nmove = [[1, 0.1]]\nspeed = 3",
    ],
)
def test_an_invalid_shared_part_is_refused(tmp_path, monkeypatch, part):
    monkeypatch.setattr(latency_files, "DATA", tmp_path)
    (tmp_path / "latency").mkdir()
    models = "[draft]\nforward = [[1, 0.1]]\n[target]\nforward = [[1, 0.1]]\n"
    path = tmp_path / "latency" / "bad.toml"
    path.write_text(f"{models}[shared]\n{part}")
    with pytest.raises(
        BadValue, match=r"bad\.toml.*\[shared\] needs stages, 2 or more"
    ):
        load_latency("bad")


@pytest.mark.parametrize("stages", [1, 2.5])
def test_an_impossible_number_of_stages_is_refused(stages):
    with pytest.raises(BadValue, match="stages"):
        Latency.ratio(5).sharing(stages)
