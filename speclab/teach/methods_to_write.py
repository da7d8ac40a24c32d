"""Methods that a student writes, each with the mistakes that are known by name.

A mistake is a whole method that makes it, from ``speclab.mutants``; the card calls it
by its name where the student's method behaves alike (see ``method_exercise``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, TypeAlias

from speclab.check.calls import Failed, as_written, call_guarded
from speclab.check.mistakes import Mistake
from speclab.check.pages import Method, Setup, Walk
from speclab.mutants import draft_tests, dsi_mistakes, pearl_mistakes
from speclab.mutants import duodecoding_mistakes as duo
from speclab.mutants.draft_tests import DraftTest, pearl_with, speculative_with
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
# Gives the method whose test of drafts is replaced.
MethodWith: TypeAlias = Callable[[DraftTest], Method]
# commit(world, known_rows, draft) gives what is left of the draft.
DSICommit: TypeAlias = Callable[[World, Mapping[AnyText, Row], Draft], Draft]


# -- rounds ----------------------------------------------------------------------------
def method_repeating(step: Step) -> Method:
    """The method that takes a student's step until the text is complete."""

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
                    "A round of yours commits nothing, and waits for nothing: no model "
                    "is asked."
                )
            if world.text == before:
                raise Failed(
                    "A round of yours commits nothing: every pass of the target model "
                    "gives at least one token."
                )

    return method


def _check_window(window: Any) -> None:
    """Raises Failed where what a step returns is nothing, or tokens for drafts."""
    if window is None:
        raise Failed(
            "Your function gives nothing. Does every way through it end with a return? "
            "Return the window of the next round, which is `()` where it is empty."
        )
    if isinstance(window, Iterable) and not isinstance(window, Iterator):
        for draft in window:
            if not isinstance(draft, Drafted):
                raise Failed(
                    f"Your function gives {as_written(window)}: a window is a tuple of "
                    "drafts, which carry their q. It is not a tuple of tokens."
                )


# -- mistakes that SD and PEARL share --------------------------------------------------
def _row_off_by_one(method_with: MethodWith) -> Mistake:
    return Mistake(
        "row off by one",
        "Is each draft tested with the row after it? The first row says what the "
        "target would have written at the position of the first draft.",
        method_with(draft_tests.row_off_by_one),
    )


def _greedy_q(method_with: MethodWith) -> Mistake:
    return Mistake(
        "greedy q when sampling",
        "The draft model was not certain of its tokens: the test needs the "
        "probabilities that they were drawn with.",
        method_with(draft_tests.greedy_q),
    )


# -- mistakes in PEARL that come in several forms --------------------------------------
def _new_drafts_for_the_window(step: Step) -> Mistake:
    return Mistake(
        "new drafts for the window",
        "Which of the new drafts is tested in this round already, by the last row? It "
        "is written then, so it is not in the next window.",
        method_repeating(step),
    )


def _window_tested_alone(step: Step) -> Mistake:
    return Mistake(
        "window tested alone",
        "Which drafts does verify get? The last row of the pass is to test the first "
        "new draft. Where verify gets the window alone, that row writes a token of the "
        "target model's own.",
        method_repeating(step),
    )


# -- SD and PEARL ----------------------------------------------------------------------
SD = MethodExercise(
    "speculative",
    (
        Mistake(
            "reused coin",
            "Do two decisions share a coin? verify takes the coins of the position at "
            "which the text ends, so it can be called once before each commit.",
            speculative_with(draft_tests.tested_twice_at_one_position),
        ),
        _row_off_by_one(speculative_with),
        _greedy_q(speculative_with),
        Mistake(
            "untested first draft",
            "Every draft is tested, the first one too.",
            speculative_with(draft_tests.first_untested),
        ),
        Mistake(
            "rejected drafts committed",
            "Only what the test accepted may be committed, and the one token more that "
            "it gives.",
            speculative_with(draft_tests.all_accepted),
        ),
    ),
)


PEARL = MethodExercise(
    "pearl",
    (
        Mistake(
            "one operation after the other",
            "Does one model wait for the other? Ask for both operations first, and "
            "wait for both together: world.all does it.",
            method_repeating(pearl_mistakes.taking_turns),
        ),
        Mistake(
            "speculative decoding",
            "This is speculative decoding: the draft model waits for the test, and the "
            "target model for the drafts. In PEARL both are asked before anybody is "
            "waited for: what can each of them do with the text and the window?",
            method_repeating(pearl_mistakes.speculative_round),
        ),
        Mistake(
            "drafts after the text alone",
            "The new drafts are to follow the window. After which text does your draft "
            "model go on?",
            method_repeating(pearl_mistakes.drafted_after_the_text),
        ),
        _new_drafts_for_the_window(pearl_mistakes.new_drafts_left),
        _new_drafts_for_the_window(pearl_mistakes.new_drafts_always_left),
        _window_tested_alone(pearl_mistakes.window_tested_alone),
        _window_tested_alone(pearl_mistakes.window_tested_alone_then_left),
        _window_tested_alone(pearl_mistakes.window_tested_alone_always_left),
        Mistake(
            "window thrown away",
            "What was drafted during the target's pass, and not rejected, is the next "
            "window. What do you return?",
            method_repeating(pearl_mistakes.window_thrown_away),
        ),
        Mistake(
            "one draft of the window kept",
            "All drafts that are left follow the text. How many of them do you return?",
            method_repeating(pearl_mistakes.one_draft_left),
        ),
        Mistake(
            "one draft too many",
            "The draft model writes gamma tokens in a round. How many do you ask for?",
            method_repeating(pearl_mistakes.one_draft_more),
        ),
        Mistake(
            "one row too many",
            "score(text, last=n) gives n + 1 rows, the first of them after text[:-n]. "
            "How many tokens at the end of your text are not committed yet? And does "
            "every round commit what was verified?",
            method_repeating(pearl_mistakes.one_row_more),
            fails=True,
        ),
        Mistake(
            "untested first draft",
            "Is the first token of a new block committed without a test? The last row "
            "of the target's pass tests it.",
            pearl_with(draft_tests.first_of_next_block_untested),
        ),
        Mistake(
            "window kept after a rejection",
            "What was drafted after a rejected token follows a text that is not "
            "written: what becomes of the window then?",
            pearl_with(keeps_window=True),
        ),
        _row_off_by_one(pearl_with),
        _greedy_q(pearl_with),
    ),
)


# -- DSI -------------------------------------------------------------------------------
class StudentsSpeculation(Speculation):
    """DSI's devices as they are, with a student's function for what is committed.

    There is one drafter.
    """

    def __init__(self, world: World, lookahead: int, commit: DSICommit):
        super().__init__(world, lookahead, None, "exact", block=lookahead)
        self.commit = commit
        self._text_before: AnyText = ()

    def wait_for_some(self) -> None:
        """Takes in what ends next; nothing, where no device is at work any more.

        Then the text may still grow by rows that are known and have not been used.
        """
        if not self.running:
            self._check_that_it_goes_on()
        else:
            for finished in self.world.earliest(*self.running):
                self.record(finished)
        self._text_before = self.world.text

    def _check_that_it_goes_on(self) -> None:
        """Raises Failed where nothing can happen any more before the text is whole."""
        if self.world.text not in self.known_rows:
            raise Failed(
                "Nothing is drafted or scored any more, and the text is unfinished: "
                "is what you return the part of the draft that follows the text?"
            )
        if self.world.text == self._text_before:
            left = self.world.left
            tokens = "1 token is" if left == 1 else f"{left} tokens are"
            raise Failed(
                f"{tokens} still to be written, the row after the text is known, all "
                "devices wait, and your function commits nothing."
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
                "Your function commits nothing, and gives back less of the draft than "
                "it was given: where a draft is rejected, `extra` is written in its "
                "place."
            )
        self.drafts[drafter] = left


def _checked_draft(left: Any) -> Draft:
    """What a student says is left of the draft. Raises Failed where it is no draft."""
    is_draft = isinstance(left, tuple | list)
    if is_draft and all(isinstance(draft, Drafted) for draft in left):
        return tuple(left)
    raise Failed(
        f"Your function gives {as_written(left)}: return the drafts that are left, a "
        "tuple, which is empty after a rejection."
    )


def dsi_with(commit: DSICommit) -> Method:
    """DSI in which ``commit`` says what is committed."""

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
        Mistake(
            "whole draft returned",
            "What has been committed is no draft any more. What is left of the draft?",
            dsi_with(dsi_mistakes.returns_whole_draft),
        ),
        Mistake(
            "waiting for drafts",
            "A row may be known before anything is drafted there. Does your loop then "
            "commit the target's own token?",
            dsi_with(dsi_mistakes.waits_for_drafts),
        ),
        Mistake(
            "untested draft",
            "Every draft is tested, with the target's row after the text before it.",
            dsi_with(dsi_mistakes.untested),
        ),
        Mistake(
            "waiting for a later row or draft",
            "Is a draft tested with the row after it, or only if another draft follows "
            "it? known_rows[world.text] is enough: it says what the target would write "
            "in the draft's place. At the end of the text nothing follows.",
            dsi_with(dsi_mistakes.row_off_by_one),
            fails=True,
        ),
        Mistake(
            "one row at a time",
            "Results come in any order. When one comes, the rows of later texts may "
            "wait already: how many of them can be used now?",
            dsi_with(dsi_mistakes.one_row_at_a_time),
        ),
        Mistake(
            "draft kept after a rejection",
            "What was drafted after a rejected token follows a text that is not "
            "written: what becomes of it?",
            dsi_with(dsi_mistakes.keeps_draft),
        ),
        Mistake(
            "draft thrown away",
            "After an accepted draft the others still follow the text: what is left "
            "of the draft?",
            dsi_with(dsi_mistakes.forgets_draft),
        ),
    ),
    Setup(
        walks=(Walk(2, 2, 3),),
        servers=3,
        clock_c=(4.0, 1.0),  # with 1 the target's rows may come before the draft
        clock_gamma=2,
        clock_tokens=100,
        words="lookahead 2, three servers",
    ),
)

# -- DuoDecoding -----------------------------------------------------------------------
DUODECODING = MethodExercise(
    "duodecoding",
    (
        Mistake(
            "untested window",
            "Every token of the window is tested: match does it, with the rows that "
            "the target model gave.",
            duodecoding_with(duo.chosen, duo.window_untested),
        ),
        Mistake(
            "chosen token twice",
            "The chosen sequence begins with the target's own token. It is committed "
            "already: what is left to be tested?",
            duodecoding_with(duo.chosen_token_twice),
        ),
        Mistake(
            "no sequence chosen",
            "Every round commits the target's own token alone. Does your comparison "
            "ever hold? Compare ids(sequence[:1]) with extra: both are tuples.",
            duodecoding_with(duo.none_chosen),
        ),
        Mistake(
            "sequence chosen after a rejection",
            "Where a token of the window was rejected, the sequences follow a text "
            "that is not written. What is the next window then?",
            duodecoding_with(duo.chosen_after_a_rejection),
        ),
        Mistake(
            "likeliest sequence always",
            "The first sequence may begin with another token than the one that is "
            "written.",
            duodecoding_with(duo.likeliest_always),
        ),
    ),
)


EXERCISES = {exercise.name: exercise for exercise in (SD, PEARL, DSI, DUODECODING)}


def check_pearl(step: Step) -> Card:
    """Checks ``step(world, window, gamma)``: a round of PEARL.

    ``window``: the drafts that the target model has yet to test. The round commits what
    is verified, and returns the next window.
    """

    return PEARL.check(method_repeating(step))


def check_duodecoding(step: Step) -> Card:
    """Checks ``step(world, window, gamma)``: a round of DuoDecoding.

    ``window``: the drafts that the target model has yet to test. The round commits what
    is verified, and returns the next window.
    """
    return DUODECODING.check(method_repeating(step))


def check_dsi(commit: DSICommit) -> Card:
    """Checks ``commit(world, known_rows, draft)``: what DSI commits, and when.

    ``known_rows``: the target's row by the text that it follows. ``draft``: what the
    draft model has written after the committed text. The function commits all that is
    verified, and returns what is left of the draft. Everything else is DSI's own page.
    """
    return DSI.check(dsi_with(commit))


def check_method(method: Method, like: str = "speculative") -> Card:
    """Checks ``method(world, gamma)``: it must be lossless, and as fast as ``like``.

    ``like``: "speculative", "pearl", "duodecoding" or "dsi". For DSI there are three
    servers, and gamma is the lookahead.
    """
    if like not in EXERCISES:
        raise unknown_name(f"no exercise {like!r}", like, EXERCISES)
    return EXERCISES[like].check(method)
