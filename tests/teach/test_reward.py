"""After a right method: the student's method on the timeline, and on real models."""

from __future__ import annotations

import IPython.display
import pytest

from speclab import teach
from speclab.teach import reward
from speclab.teach.card import Card, Heading, RewardedCard
from speclab.teach.reward import STAGES, OwnRun, reward_of
from speclib.core.sampling import ids
from speclib.core.verification import verify
from speclib.methods import METHODS

PEARL = STAGES["pearl"]


def pearl_step(world, window, gamma):
    text = world.text + ids(window)
    rows, drafted = world.all(
        world.target.score(text, last=len(window)), world.draft.propose(text, gamma)
    )
    verified = verify(world, window + drafted, rows)
    world.commit(verified.tokens)
    return () if verified.extra else (window + drafted)[len(verified.accepted) :]


@pytest.fixture
def displayed(monkeypatch):
    """What a notebook displays, in order."""
    shown = []
    monkeypatch.setattr(
        IPython.display, "display", lambda shows, raw=False: shown.append(shows)
    )
    return shown


def test_below_the_card_of_a_right_pearl_stands_the_students_own_run(displayed):
    card = teach.check_pearl(pearl_step)
    assert repr(card).startswith("✓ Right.")
    card._ipython_display_()
    words, own = displayed
    assert words["text/html"] == card._repr_html_()
    assert words["text/plain"] == repr(card)
    assert isinstance(own, OwnRun)
    assert own.timeline in own.children
    assert own.real in own.children

    speculative, students = own.runs
    assert students.tokens == speculative.tokens
    assert students.trace.makespan < speculative.trace.makespan


def test_the_drafts_are_neither_lucky_nor_unlucky(monkeypatch):
    """On a long text PEARL's gain over speculative decoding is the same within 5 %."""

    def gain() -> float:
        above, own = reward.virtual_runs(METHODS["pearl"], PEARL)
        return above.trace.makespan / own.trace.makespan

    short = gain()
    monkeypatch.setitem(reward.WHAT_IF, "tokens", 1000)
    assert short == pytest.approx(gain(), rel=0.05)


@pytest.mark.parametrize("name", STAGES)
def test_every_method_to_write_has_a_picture_of_its_own(name):
    own = reward_of(METHODS[name], STAGES[name])
    assert isinstance(own, OwnRun), own
    assert own.runs[1].trace.meta["method"] == STAGES[name].name
    assert own.runs[1].trace.makespan < own.runs[0].trace.makespan


def test_a_wrong_method_earns_nothing():
    card = teach.check_pearl(lambda world, window, gamma: ())
    assert type(card) is Card


def test_what_is_drawn_is_judged_once_more():
    """The method is right at the exercise's settings, but fails at the picture's."""

    def fails_at_five(world, gamma):
        if gamma == 5:
            raise ValueError("five")
        METHODS["pearl"](world, gamma)

    def writes_something_else(world, gamma):
        while world.going:
            world.commit((1,))

    card = reward_of(fails_at_five, PEARL)
    assert "your PEARL on the timeline, with gamma = 5" in card.verdict
    assert 'ValueError in your line `raise ValueError("five")`' in card.verdict
    assert "instead of" in reward_of(writes_something_else, PEARL).verdict


def test_the_reward_is_made_only_where_it_is_displayed():
    made = []
    card = RewardedCard(Heading.RIGHT, "Good.", reward=lambda: made.append(1))
    assert card.is_right
    assert repr(card) == "✓ Right. Good."
    assert not made


@pytest.fixture
def toys(monkeypatch):
    monkeypatch.setattr(reward, "PAIR", "toy")
    monkeypatch.setattr(reward, "question", lambda: "x")
    monkeypatch.setattr(reward, "MOST_TOKENS", 8)


def test_a_click_runs_it_on_models_beside_the_other(toys):
    own = reward_of(METHODS["dsi"], STAGES["dsi"])
    assert not own.real.runs
    own.real.button.click()
    own.real.wait()
    assert own.real.error is None
    speculative, students = own.real.runs
    assert students.tokens == speculative.tokens
    assert students.trace.meta["method"] == "your DSI"
    assert "wrote the same text" in own.real.spoken
    assert "your DSI" not in METHODS


def test_where_nobody_can_click_no_real_model_starts(toys, monkeypatch):
    monkeypatch.setenv("SPECLIB_CLICK", "1")
    own = reward_of(METHODS["pearl"], PEARL)
    assert not own.real.runs
