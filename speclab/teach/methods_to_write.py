"""Methods that a student writes, each with the mistakes that are known by name.

A mistake is a whole method that makes it; the card calls it by its name where the
student's method behaves alike (see ``method_exercise``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeAlias

import numpy as np

from speclib.core.sampling import Drafted, Row, Rows, Tokens, ids
from speclib.core.text import AnyText
from speclib.core.verification import Verified, match, verify
from speclib.errors import unknown_name
from speclib.methods.dsi import Speculation
from speclib.worlds.world import World

from .calls import Failed, call
from .card import Card
from .method_exercise import Method, MethodExercise, Setup, Walk
from .mistakes import Mistake

Step: TypeAlias = Callable[[World, Any, int], Any]
Draft: TypeAlias = tuple[Drafted, ...]
MOST = 8  # sequences of DuoDecoding, as in its published code
# commit(world, known_rows, draft) gives what is left of the draft.
DSICommit: TypeAlias = Callable[[World, Mapping[AnyText, Row], Draft], Draft]


# -- rounds ----------------------------------------------------------------------------
def repeated(step: Step) -> Method:
    """The method that takes a student's step until the text is complete."""

    @wraps(step)
    def method(world: World, gamma: int) -> None:
        window: Any = ()
        while world.going:
            before = world.text
            window = step(world, window, gamma)
            if isinstance(window, list):
                window = tuple(window)
            if world.text == before:
                raise Failed(
                    "A round of yours commits nothing: every pass of the target model "
                    "gives at least one token."
                )

    return method


# -- mistakes of SD --------------------------------------------------------------------
def _greedy_q(drafted: Sequence[Drafted]) -> tuple[Drafted, ...]:
    """Drafts that claim to have been certain."""
    changed = []
    for draft in drafted:
        certain = np.zeros_like(draft.q)
        certain[draft.token] = 1
        changed.append(draft._replace(q=certain))
    return tuple(changed)


def _sd_with(test: Callable[..., Tokens]) -> Method:
    """SD that commits what ``test(world, drafted, rows)`` gives."""

    def run(world: World, gamma: int) -> None:
        while world.going:
            drafted = world.wait(world.draft.propose(world.text, gamma))
            rows = world.wait(
                world.target.score(world.text + ids(drafted), last=len(drafted))
            )
            world.commit(test(world, drafted, rows))

    return run


def _tested_twice_at_one_place(
    world: World, drafted: Sequence[Drafted], rows: Sequence[Row]
) -> Tokens:
    """The first draft alone, and then the others without a commit in between."""
    first = verify(world, drafted[:1], rows[:1])
    if first.extra:
        return first.tokens
    return first.tokens + verify(world, drafted[1:], rows[1:]).tokens


SD = MethodExercise(
    "speculative",
    (
        Mistake(
            "reused coin",
            "Do two decisions share a coin? verify takes the coins of the place where "
            "the text ends, so it can be called once before each commit.",
            _sd_with(_tested_twice_at_one_place),
        ),
        Mistake(
            "row off by one",
            "Is each draft tested with the row after it? The first row says what the "
            "target would have written in the place of the first draft.",
            _sd_with(
                lambda world, drafted, rows: verify(world, drafted, rows[1:]).tokens
            ),
        ),
        Mistake(
            "greedy q when sampling",
            "The draft model was not certain of its tokens: the test needs the "
            "probabilities that they were drawn with.",
            _sd_with(
                lambda world, drafted, rows: (
                    verify(world, _greedy_q(drafted), rows).tokens
                )
            ),
        ),
        Mistake(
            "untested first draft",
            "Every draft is tested, the first one too.",
            _sd_with(
                lambda world, drafted, rows: (
                    ids(drafted[:1]) + verify(world, drafted[1:], rows[1:]).tokens
                )
            ),
        ),
        Mistake(
            "rejected drafts committed",
            "Only what the test accepted may be committed, and the one token more that "
            "it gives.",
            _sd_with(lambda world, drafted, rows: ids(drafted)),
        ),
    ),
)


# -- mistakes of PEARL -----------------------------------------------------------------
def _pearl_with(
    test: Callable[..., Verified] = verify, keeps_window: bool = False
) -> Method:
    """PEARL that commits what ``test(world, drafted, rows)`` gives.

    ``keeps_window``: after a rejection, too.
    """

    def run(world: World, gamma: int) -> None:
        window: tuple[Drafted, ...] = ()
        while world.going:
            rows, drafted = world.all(
                world.target.score(world.text + ids(window), last=len(window)),
                world.draft.propose(world.text + ids(window), gamma),
            )
            verified = test(world, window + drafted, rows)
            world.commit(verified.tokens)
            window = (window + drafted)[len(verified.accepted) :]
            if verified.extra and not keeps_window:
                window = ()

    return run


def _untested_first(
    world: World, drafted: Sequence[Drafted], rows: Sequence[Row]
) -> Verified:
    """The first token of the block that is drafted meanwhile counts as accepted."""
    verified = verify(world, drafted, rows[:-1])
    if verified.extra:
        return verified
    accepted = len(verified.accepted)
    return Verified(ids(drafted[: accepted + 1]), ())


def _taking_turns(world: World, window: Draft, gamma: int) -> Draft:
    """A round in which the draft model begins when the target's pass has ended."""
    text = world.text + ids(window)
    rows = world.wait(world.target.score(text, last=len(window)))
    drafted = world.wait(world.draft.propose(text, gamma))
    return _tested(world, window + drafted, rows)


def _with_window(keep: Callable[[Draft], Draft]) -> Step:
    """A round of PEARL that hands on ``keep(window)`` in place of the next window."""

    def step(world: World, window: Draft, gamma: int) -> Draft:
        return keep(_round_of_pearl(world, window, gamma))

    return step


def _one_draft_more(world: World, window: Draft, gamma: int) -> Draft:
    """A round that drafts for longer than it should."""
    return _round_of_pearl(world, window, gamma + 1)


def _one_row_more(world: World, window: Draft, gamma: int) -> Draft:
    """A round whose first row is one of a place that is committed already."""
    text = world.text + ids(window)
    rows, drafted = world.all(
        world.target.score(text, last=len(window) + 1),
        world.draft.propose(text, gamma),
    )
    return _tested(world, window + drafted, rows)


def _round_of_pearl(world: World, window: Draft, drafts: int) -> Draft:
    """A round of PEARL that asks for so many ``drafts``; gives the next window."""
    text = world.text + ids(window)
    rows, drafted = world.all(
        world.target.score(text, last=len(window)), world.draft.propose(text, drafts)
    )
    return _tested(world, window + drafted, rows)


def _tested(world: World, drafted: Draft, rows: Rows) -> Draft:
    """Commits what the rows let pass; gives what is left to be tested."""
    verified = verify(world, drafted, rows)
    world.commit(verified.tokens)
    return () if verified.extra else drafted[len(verified.accepted) :]


PEARL = MethodExercise(
    "pearl",
    (
        Mistake(
            "one operation after the other",
            "Does one model wait for the other? Ask for both operations first, and "
            "wait for both together: world.all does it.",
            repeated(_taking_turns),
        ),
        Mistake(
            "window thrown away",
            "What was drafted during the target's pass, and not rejected, is the next "
            "window. What do you return?",
            repeated(_with_window(lambda window: ())),
        ),
        Mistake(
            "one draft of the window kept",
            "All drafts that are left follow the text. How many of them do you return?",
            repeated(_with_window(lambda window: window[:1])),
        ),
        Mistake(
            "one draft too many",
            "The draft model writes gamma tokens in a round. How many do you ask for?",
            repeated(_one_draft_more),
        ),
        Mistake(
            "one row too many",
            "score(text, last=n) gives n + 1 rows, the first of them after text[:-n]. "
            "How many tokens at the end of your text are not committed yet?",
            repeated(_one_row_more),
            fails=True,
        ),
        Mistake(
            "untested first draft",
            "Is the first token of a new block committed without a test? The last row "
            "of the target's pass tests it.",
            _pearl_with(_untested_first),
        ),
        Mistake(
            "window kept after a rejection",
            "What was drafted after a rejected token follows a text that is not "
            "written: what becomes of the window then?",
            _pearl_with(keeps_window=True),
        ),
        Mistake(
            "row off by one",
            "Is each draft tested with the row after it? The first row says what the "
            "target would have written in the place of the first draft.",
            _pearl_with(
                lambda world, drafted, rows: verify(
                    world, drafted, rows[1:] if len(rows) > 1 else rows
                )
            ),
        ),
        Mistake(
            "greedy q when sampling",
            "The draft model was not certain of its tokens: the test needs the "
            "probabilities that they were drawn with.",
            _pearl_with(
                lambda world, drafted, rows: verify(world, _greedy_q(drafted), rows)
            ),
        ),
    ),
)


# -- mistakes of DSI -------------------------------------------------------------------
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
            raise Failed(
                "The row after the text is known, all devices wait, and your function "
                "commits nothing."
            )

    def commit_what_is_verified(self) -> None:
        (drafter,) = self.drafts
        rows = dict(self.known_rows)
        left = call(self.commit, self.world, rows, self.drafts[drafter])
        self.drafts[drafter] = _checked_draft(left)


def _checked_draft(left: Any) -> Draft:
    """What a student says is left of the draft. Raises Failed where it is no draft."""
    is_draft = isinstance(left, tuple | list)
    if is_draft and all(isinstance(draft, Drafted) for draft in left):
        return tuple(left)
    raise Failed(
        f"Your function gives {left!r:.60}: return the drafts that are left, a tuple, "
        "which is empty after a rejection."
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


def commit_known(world: World, rows: Mapping[AnyText, Row], draft: Draft) -> Draft:
    """Tests the next draft as long as the row after the text is known."""
    while world.going and world.text in rows:
        tested = match(world, draft[:1], [rows[world.text]])
        world.commit(tested.tokens)
        draft = () if tested.extra else draft[1:]
    return draft


def _untested(world: World, rows: Mapping[AnyText, Row], draft: Draft) -> Draft:
    """The next draft is committed as soon as the row before it is there."""
    while world.going and world.text in rows:
        own = match(world, (), [rows[world.text]]).tokens
        world.commit(ids(draft[:1]) or own)
        draft = draft[1:]
    return draft


def _row_off_by_one(world: World, rows: Mapping[AnyText, Row], draft: Draft) -> Draft:
    """A draft is tested with the row after it."""
    while world.going and world.text + ids(draft[:1]) in rows:
        row = rows[world.text + ids(draft[:1])]
        tested = match(world, draft[:1], [row])
        world.commit(tested.tokens)
        draft = () if tested.extra else draft[1:]
    return draft


def _one_row(world: World, rows: Mapping[AnyText, Row], draft: Draft) -> Draft:
    """One row is used, although more may be known."""
    only = {text: row for text, row in rows.items() if text == world.text}
    return commit_known(world, only, draft)


def _keeps_draft(world: World, rows: Mapping[AnyText, Row], draft: Draft) -> Draft:
    """What follows a rejected draft stays."""
    while world.going and world.text in rows:
        world.commit(match(world, draft[:1], [rows[world.text]]).tokens)
        draft = draft[1:]
    return draft


def _forgets_draft(world: World, rows: Mapping[AnyText, Row], draft: Draft) -> Draft:
    """What follows an accepted draft is thrown away."""
    before = world.text
    left = commit_known(world, rows, draft)
    return left if world.text == before else ()


def _returns_whole_draft(
    world: World, rows: Mapping[AnyText, Row], draft: Draft
) -> Draft:
    """What has been committed is handed on with the rest."""
    commit_known(world, rows, draft)
    return draft


def _waits_for_drafts(world: World, rows: Mapping[AnyText, Row], draft: Draft) -> Draft:
    """Rows are used only while there is a draft to be tested."""
    while world.going and draft and world.text in rows:
        tested = match(world, draft[:1], [rows[world.text]])
        world.commit(tested.tokens)
        draft = () if tested.extra else draft[1:]
    return draft


DSI = MethodExercise(
    "dsi",
    (
        Mistake(
            "whole draft returned",
            "What has been committed is no draft any more. What is left of the draft?",
            dsi_with(_returns_whole_draft),
        ),
        Mistake(
            "waiting for drafts",
            "A row may be known before anything is drafted there. Does your loop then "
            "commit the target's own token?",
            dsi_with(_waits_for_drafts),
        ),
        Mistake(
            "untested draft",
            "Every draft is tested, with the target's row after the text before it.",
            dsi_with(_untested),
        ),
        Mistake(
            "row off by one",
            "Is a draft tested with the row after it? known_rows[world.text] says what "
            "the target would write in its place.",
            dsi_with(_row_off_by_one),
        ),
        Mistake(
            "one row at a time",
            "Results come in any order. When one comes, the rows of later texts may "
            "wait already: how many of them can be used now?",
            dsi_with(_one_row),
        ),
        Mistake(
            "draft kept after a rejection",
            "What was drafted after a rejected token follows a text that is not "
            "written: what becomes of it?",
            dsi_with(_keeps_draft),
        ),
        Mistake(
            "draft thrown away",
            "After an accepted draft the others still follow the text: what is left "
            "of the draft?",
            dsi_with(_forgets_draft),
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

# -- mistakes of DuoDecoding -----------------------------------------------------------
Sequences: TypeAlias = tuple[Draft, ...]
# choose(window_passed, sequences, target_token) gives the next window.
Choose: TypeAlias = Callable[[bool, Sequences, Tokens], Draft]


def _duodecoding_with(choose: Choose, test: Callable[..., Verified] = match) -> Method:
    """DuoDecoding whose next window ``choose`` gives."""

    def run(world: World, gamma: int) -> None:
        window: Draft = ()
        while world.going:
            text = world.text + ids(window)
            rows, sequences = world.all(
                world.target.score(text, last=len(window)),
                world.draft.draft_sequences(text, gamma, None, MOST),
            )
            tested = test(world, window, rows)
            passed = len(tested.accepted) == len(window)
            window = choose(passed, sequences, tested.extra)
            world.commit(tested.tokens)

    return run


def _chosen(passed: bool, sequences: Sequences, token: Tokens) -> Draft:
    """What follows the target's own token in the sequence that begins with it."""
    for sequence in sequences:
        if passed and sequence and ids(sequence[:1]) == token:
            return sequence[1:]
    return ()


def _first_kept(passed: bool, sequences: Sequences, token: Tokens) -> Draft:
    """The whole sequence, with the token that is committed already."""
    for sequence in sequences:
        if passed and sequence and ids(sequence[:1]) == token:
            return sequence
    return ()


def _window_untested(
    world: World, window: Sequence[Drafted], rows: Sequence[Row]
) -> Verified:
    """All of the window counts as accepted."""
    own = match(world, (), rows[-1:]).tokens
    return Verified(ids(window), own)


DUODECODING = MethodExercise(
    "duodecoding",
    (
        Mistake(
            "untested window",
            "Every token of the window is tested: match does it, with the rows that "
            "the target model gave.",
            _duodecoding_with(_chosen, _window_untested),
        ),
        Mistake(
            "chosen token twice",
            "The chosen sequence begins with the target's own token. It is committed "
            "already: what is left to be tested?",
            _duodecoding_with(_first_kept),
        ),
        Mistake(
            "no sequence chosen",
            "Every round commits the target's own token alone. Does your comparison "
            "ever hold? Compare ids(sequence[:1]) with extra: both are tuples.",
            _duodecoding_with(lambda passed, sequences, token: ()),
        ),
        Mistake(
            "sequence chosen after a rejection",
            "Where a token of the window was rejected, the sequences follow a text "
            "that is not written. What is the next window then?",
            _duodecoding_with(
                lambda passed, sequences, token: _chosen(True, sequences, token)
            ),
        ),
        Mistake(
            "likeliest sequence always",
            "The first sequence may begin with another token than the one that is "
            "written.",
            _duodecoding_with(lambda passed, sequences, token: sequences[0][1:]),
        ),
    ),
)


EXERCISES = {exercise.name: exercise for exercise in (SD, PEARL, DSI, DUODECODING)}


def check_pearl(step: Step) -> Card:
    """Checks ``step(world, window, gamma)``: a round of PEARL.

    ``window``: the drafts that the target model has yet to test. The round commits what
    is verified, and returns the next window.
    """

    return PEARL.check(repeated(step))


def check_duodecoding(step: Step) -> Card:
    """Checks ``step(world, window, gamma)``: a round of DuoDecoding.

    ``window``: the drafts that the target model has yet to test. The round commits what
    is verified, and returns the next window.
    """
    return DUODECODING.check(repeated(step))


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
