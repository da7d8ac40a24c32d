"""Methods that a student writes, each with its named mistakes.

A mistake is represented by a whole method from ``speclab.mutants``. The card names it
if the student's method behaves like that one (see ``method_exercise``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, TypeAlias

from speclab.check.calls import Failed, as_written, call_guarded
from speclab.check.pages import WALKS, Method, Setup, Walk
from speclab.mutants import draft_tests, dsi_mistakes, pearl_mistakes
from speclab.mutants import duodecoding_mistakes as duo
from speclab.mutants.draft_tests import pearl_with, speculative_with
from speclab.mutants.duodecoding_mistakes import duodecoding_with
from speclib.core.sampling import Drafted, Row
from speclib.core.text import AnyText
from speclib.errors import unknown_name
from speclib.methods.dsi import Speculation
from speclib.worlds.world import World

from .card import Card
from .method_exercise import MethodExercise

Step: TypeAlias = Callable[[World, Any, int], Any]
Draft: TypeAlias = tuple[Drafted, ...]
# commit(world, known_rows, draft) returns the rest of the draft.
DSICommit: TypeAlias = Callable[[World, Mapping[AnyText, Row], Draft], Draft]


# -- rounds ----------------------------------------------------------------------------
def method_repeating(step: Step) -> Method:
    """The method that repeats a student's step until the text is complete."""

    @wraps(step)
    def method(world: World, gamma: int) -> None:
        window: Any = ()
        while world.going:
            before, began = world.text, world.now
            window = step(world, window, gamma)
            if isinstance(window, list):
                window = tuple(window)
            if world.going:
                _check_window(window)
            if world.text == before and world.now == began:
                raise Failed(
                    "One of your rounds commits nothing and waits for nothing: it uses "
                    "no model."
                )
            if world.text == before:
                raise Failed(
                    "One of your rounds commits nothing, but each target pass adds "
                    "at least one token. Does `score` get the window's tokens, too?"
                )

    return method


def _check_window(window: Any) -> None:
    """Raises Failed if a step returns nothing, or tokens instead of drafts."""
    if window is None:
        raise Failed(
            "Your function returns nothing. Does every path through it end with a "
            "return? Return the window of the next round, which is `()` if it is empty."
        )
    if isinstance(window, Iterable) and not isinstance(window, Iterator):
        for draft in window:
            if not isinstance(draft, Drafted):
                raise Failed(
                    f"Your function returns {as_written(window)}: a window is a tuple "
                    "of drafts, which include their q. It is not a tuple of tokens."
                )


# -- SD and PEARL ----------------------------------------------------------------------
WITH_AN_END = Setup(walks=(*WALKS, Walk(3, 2, 3, end=1)))
SD = MethodExercise(
    "speculative",
    (
        ("reused coin", speculative_with(draft_tests.tested_twice_at_one_position)),
        ("row off by one", speculative_with(draft_tests.row_off_by_one)),
        ("greedy q when sampling", speculative_with(draft_tests.greedy_q)),
        ("untested first draft", speculative_with(draft_tests.first_untested)),
        ("rejected drafts committed", speculative_with(draft_tests.all_accepted)),
    ),
    setup=WITH_AN_END,
)


# Some mistakes in PEARL come in several forms.
STEPS_OF_PEARL: tuple[tuple[str, Step], ...] = (
    ("one operation after the other", pearl_mistakes.taking_turns),
    ("speculative decoding", pearl_mistakes.speculative_round),
    ("drafts after the text alone", pearl_mistakes.drafted_after_the_text),
    ("new drafts for the window", pearl_mistakes.new_drafts_left),
    ("new drafts for the window", pearl_mistakes.new_drafts_always_left),
    ("window tested alone", pearl_mistakes.window_tested_alone),
    ("window tested alone", pearl_mistakes.window_tested_alone_then_left),
    ("window tested alone", pearl_mistakes.window_tested_alone_always_left),
    ("window thrown away", pearl_mistakes.window_thrown_away),
    ("one draft of the window kept", pearl_mistakes.one_draft_left),
    ("one draft too many", pearl_mistakes.one_draft_more),
    ("last forgotten", pearl_mistakes.last_forgotten),
    ("window kept after a rejection", pearl_mistakes.others_always_left),
    ("return reversed", pearl_mistakes.others_left_if_rejected),
    ("return reversed", pearl_mistakes.rest_left_if_rejected),
    ("committed drafts kept", pearl_mistakes.all_left),
    ("window not tested", pearl_mistakes.new_drafts_tested),
    ("untested drafts", pearl_mistakes.new_drafts_committed),
)
FIRST_UNTESTED = draft_tests.first_of_next_block_untested
PEARL = MethodExercise(
    "pearl",
    (
        *((name, method_repeating(step)) for name, step in STEPS_OF_PEARL),
        ("untested first draft", pearl_with(FIRST_UNTESTED)),
        ("window kept after a rejection", pearl_with(keeps_window=True)),
        ("row off by one", pearl_with(draft_tests.row_off_by_one)),
        ("greedy q when sampling", pearl_with(draft_tests.greedy_q)),
    ),
    failing=(
        ("one row too many", method_repeating(pearl_mistakes.one_row_more)),
        ("window in no text", method_repeating(pearl_mistakes.window_in_no_text)),
        ("accepted drafts alone", method_repeating(pearl_mistakes.accepted_alone)),
        ("replacement alone", method_repeating(pearl_mistakes.extra_alone)),
    ),
)


# -- DSI -------------------------------------------------------------------------------
class StudentsSpeculation(Speculation):
    """DSI with one drafter, in which a student's function decides what to commit."""

    def __init__(self, world: World, lookahead: int, commit: DSICommit):
        super().__init__(world, lookahead, None, "exact", block=lookahead)
        self.commit = commit
        self._text_before: AnyText = ()

    def wait_for_some(self) -> None:
        """Records the next results, unless all devices are idle.

        Even then, unused known rows may still extend the text.
        """
        if not self.running:
            self._check_that_it_goes_on()
        else:
            for finished in self.world.earliest(*self.running):
                self.record(finished)
        self._text_before = self.world.text

    def _check_that_it_goes_on(self) -> None:
        """Raises Failed if nothing more can happen before the text is complete."""
        if self.world.text not in self.known_rows:
            raise Failed(
                "Nothing is being drafted or scored, and the text is unfinished: do "
                "you return the part of the draft that follows the text?"
            )
        if self.world.text == self._text_before:
            left = self.world.left
            tokens = "1 token is" if left == 1 else f"{left} tokens are"
            raise Failed(
                f"{tokens} still to be written, the row after the text is known, and "
                "all devices are idle, but your function commits nothing."
            )

    def commit_what_is_verified(self) -> None:
        (drafter,) = self.drafts
        rows, draft, before = (
            dict(self.known_rows),
            self.drafts[drafter],
            self.world.text,
        )
        left = call_guarded(self.commit, self.world, rows, draft)
        left = _checked_draft(left)
        if self.world.text == before and len(left) < len(draft):
            raise Failed(
                "Your function commits nothing, and returns less of the draft than it "
                "received: if a draft is rejected, commit `extra`, which replaces it."
            )
        self.drafts[drafter] = left


def _checked_draft(left: Any) -> Draft:
    """The rest of the draft as a tuple. Raises Failed unless all are drafts."""
    is_draft = isinstance(left, tuple | list)
    if is_draft and all(isinstance(draft, Drafted) for draft in left):
        return tuple(left)
    raise Failed(
        f"Your function returns {as_written(left)}: return the remaining drafts as a "
        "tuple, which is empty after a rejection."
    )


def dsi_with(commit: DSICommit) -> Method:
    """DSI in which ``commit`` decides what to commit."""

    @wraps(commit)
    def run(world: World, gamma: int) -> None:
        speculation = StudentsSpeculation(world, gamma, commit)
        while world.going:
            speculation.keep_drafters_writing()
            speculation.give_idle_targets_work()
            speculation.wait_for_some()
            speculation.commit_what_is_verified()
            speculation.cancel_what_cannot_follow()

    return run


DSI = MethodExercise(
    "dsi",
    (
        ("whole draft returned", dsi_with(dsi_mistakes.returns_whole_draft)),
        ("waiting for drafts", dsi_with(dsi_mistakes.waits_for_drafts)),
        ("untested draft", dsi_with(dsi_mistakes.untested)),
        ("one row at a time", dsi_with(dsi_mistakes.one_row_at_a_time)),
        ("draft kept after a rejection", dsi_with(dsi_mistakes.keeps_draft)),
        ("draft thrown away", dsi_with(dsi_mistakes.forgets_draft)),
    ),
    failing=(
        ("waiting for a later row or draft", dsi_with(dsi_mistakes.row_off_by_one)),
    ),
    setup=Setup(
        walks=(Walk(2, 2, 3),),
        servers=3,
        clock_c=(4.0, 1.0),  # with c = 1, the target's rows may precede the draft
        clock_gamma=2,
        clock_tokens=100,
        words="lookahead 2, three servers",
    ),
)

# -- DuoDecoding -----------------------------------------------------------------------
DUODECODING = MethodExercise(
    "duodecoding",
    (
        ("untested window", duodecoding_with(duo.chosen, duo.window_untested)),
        ("chosen token twice", duodecoding_with(duo.chosen_token_twice)),
        ("no sequence chosen", duodecoding_with(duo.none_chosen)),
        (
            "sequence chosen after a rejection",
            duodecoding_with(duo.chosen_after_a_rejection),
        ),
        ("likeliest sequence always", duodecoding_with(duo.likeliest_always)),
    ),
)


EXERCISES = {exercise.name: exercise for exercise in (SD, PEARL, DSI, DUODECODING)}


def check_pearl(step: Step) -> Card:
    """Checks ``step(world, window, gamma)``: a round of PEARL.

    ``window``: the drafts that the target model has yet to test. The round commits
    verified tokens, and returns the next window.
    """

    return PEARL.check(method_repeating(step))


def check_duodecoding(step: Step) -> Card:
    """Checks ``step(world, window, gamma)``: a round of DuoDecoding.

    ``window``: the drafts that the target model has yet to test. The round commits
    verified tokens, and returns the next window.
    """
    return DUODECODING.check(method_repeating(step))


def check_dsi(commit: DSICommit) -> Card:
    """Checks ``commit(world, known_rows, draft)``: what DSI commits, and when.

    ``known_rows``: text -> the target's distribution after it. ``draft``: the
    tokens that the draft model has written after the committed text. The function
    commits all verified tokens, and returns the rest of the draft. We provide
    everything else.
    """
    return DSI.check(dsi_with(commit))


def check_method(method: Method, like: str = "speculative") -> Card:
    """Checks ``method(world, gamma)``: it must be lossless, and as fast as ``like``.

    ``like``: "speculative", "pearl", "duodecoding" or "dsi". DSI has three servers, and
    gamma is its lookahead.
    """
    if like not in EXERCISES:
        raise unknown_name(f"no exercise {like!r}", like, EXERCISES)
    return EXERCISES[like].check(method)
