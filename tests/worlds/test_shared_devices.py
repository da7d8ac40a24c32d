"""Draft and target share devices: their schedule is right, and nothing is lost.

A target in stages runs on one device after the other. The draft writes the first half
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
    """Returns how long three rounds take; all drafts are accepted."""
    latency = Latency.ratio(c, target)
    if stages is not None:
        latency = latency.sharing(stages)
    run = speclib.simulate("pearl", alpha=1, tokens=30, gamma=gamma, latency=latency)
    return run.trace.commits[2].end


def test_the_papers_example_with_four_devices_and_c_5_never_waits():
    """In Appendix G, M_p and M_q use different devices in each of the 20 steps."""
    assert seconds_of_pearl(4) == pytest.approx(3 * 0.1)


def test_on_two_devices_the_second_stage_waits_for_the_third_draft():
    """Three drafts occupy the last device until 0.06 s; its stage then takes 0.05 s."""
    assert seconds_of_pearl(2) == pytest.approx(3 * 0.11)


def test_a_slow_draft_waits_for_the_target_on_its_own_device():
    """With c = 2.5, gamma = 6 and two devices, a round takes 7.25 draft passes.

    Drafts 1 and 2 occupy the last device until 2. The target, which has waited since
    1.25, occupies it until 3.25, and draft 3 until 4.25. Drafts 4 to 6 occupy the first
    device until 7.25.
    """
    seconds = seconds_of_pearl(2, c=2.5, target=2.5, gamma=6)
    assert seconds == pytest.approx(3 * 7.25)


def test_plain_decoding_takes_the_same_time_on_shared_devices():
    alone = speclib.simulate("autoregressive", tokens=9)
    latency = Latency.ratio(5, 0.1).sharing(3)
    shared = speclib.simulate("autoregressive", tokens=9, latency=latency)
    assert shared.stats.seconds == pytest.approx(alone.stats.seconds)


def test_the_cache_is_moved_to_the_other_device_and_back():
    """After four drafts of 1 s, the cache contains the prompt and three of them."""
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


def test_a_lost_device_releases_its_stage():
    latency = Latency.ratio(5, 0.1).sharing(2)
    how = {"servers": 2, "lost": {"target-2": 0.05}}
    result = speclib.simulate("dsi", latency=latency, **how)
    assert result.tokens == speclib.simulate("autoregressive").tokens


# -- in processes ----------------------------------------------------------------------
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
    """Makes a request for a stage return without waiting."""
    return True


def has_waiting_process(locks: StageLocks, stage: int) -> bool:
    """Whether another process waits for a stage, which this process may occupy."""
    return not locks.enter(stage, stop_at_once)


def is_taken(locks: StageLocks, stage: int) -> bool:
    """Whether another process occupies a stage."""
    if not locks.enter(stage, stop_at_once):
        return True
    locks.leave(stage)
    return False


def test_in_processes_a_stage_waits_for_its_device(emulated):
    """Another process occupies the last device; a 16 ms pass ends after its release."""
    emulated.begin((0,), sampler=Sampler(), coins=Coins(), limit=4)
    locks = emulated.stage_locks
    assert locks.enter(1, stop_at_once)
    scoring = emulated.target.score((0, 1))
    assert wait_until(lambda: has_waiting_process(locks, 1))
    given_back = emulated.now
    locks.leave(1)
    emulated.wait(scoring)

    (event,) = emulated.end().operations
    assert event.end >= given_back


def test_a_killed_process_releases_its_stage():
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


def test_only_one_process_holds_a_lock_and_its_end_releases_the_lock():
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
def test_latency_files_for_shared_devices_have_the_same_passes_as_the_others():
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
