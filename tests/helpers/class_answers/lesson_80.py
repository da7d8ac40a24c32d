"""Answers to the exercise of a method of one's own: speculative decoding."""

from __future__ import annotations

from speclib.core.sampling import ids
from speclib.core.verification import match, verify


def method_as_in_the_lesson(world, gamma):
    while world.going:
        drafts = world.wait(world.draft.propose(world.text, gamma))
        text = world.text + ids(drafts)
        rows = world.wait(world.target.score(text, last=len(drafts)))
        world.commit(verify(world, drafts, rows).tokens)


def method_by_recursion(world, gamma):
    if not world.going:
        return
    drafts = world.wait(world.draft.propose(world.text, gamma))
    text = world.text + ids(drafts)
    rows = world.wait(world.target.score(text, last=len(drafts)))
    world.commit(verify(world, drafts, rows).tokens)
    method_by_recursion(world, gamma)


def method_draft_by_draft(world, gamma):
    while world.going:
        drafts = []
        for _ in range(gamma):
            drafts += world.wait(world.draft.propose(world.text + ids(drafts), 1))
        text = world.text + ids(drafts)
        rows = world.wait(world.target.score(text, last=len(drafts)))
        world.commit(list(verify(world, drafts, rows).tokens))


def method_test_by_test(world, gamma):
    """Each draft is tested and committed alone; then the bonus."""
    while world.going:
        drafts = world.wait(world.draft.propose(world.text, gamma))
        text = world.text + ids(drafts)
        rows = world.wait(world.target.score(text, last=len(drafts)))
        for draft, row in zip(drafts, rows, strict=False):
            verified = verify(world, (draft,), [row])
            world.commit(verified.tokens)
            if verified.extra or not world.going:
                break
        else:
            world.commit(match(world, (), rows[-1:]).tokens)


def method_of_rounds(world, gamma):
    """A function for the round, in place of a long loop."""

    def one_round():
        (drafts,) = world.all(world.draft.propose(world.text, gamma))
        operation = world.target.score(world.text + ids(drafts), last=len(drafts))
        (rows,) = world.all(operation)
        accepted, extra = verify(world, drafts, rows)
        world.commit(accepted + extra)
        return world.going

    while one_round():
        pass


def first_draft_tested_alone(world, gamma):
    while world.going:
        drafts = world.wait(world.draft.propose(world.text, gamma))
        text = world.text + ids(drafts)
        rows = world.wait(world.target.score(text, last=len(drafts)))
        verified = verify(world, drafts[:1], rows[:1])
        world.commit(verified.tokens if verified.extra else ids(drafts))


def gamma_ignored(world, gamma):
    while world.going:
        drafts = world.wait(world.draft.propose(world.text, 1))
        text = world.text + ids(drafts)
        rows = world.wait(world.target.score(text, last=1))
        world.commit(verify(world, drafts, rows).tokens)


def bonus_left_out(world, gamma):
    while world.going:
        drafts = world.wait(world.draft.propose(world.text, gamma))
        text = world.text + ids(drafts)
        rows = world.wait(world.target.score(text, last=len(drafts)))
        world.commit(verify(world, drafts, rows[: len(drafts)]).tokens)


def drafts_matched_backwards(world, gamma):
    while world.going:
        drafts = world.wait(world.draft.propose(world.text, gamma))
        text = world.text + ids(drafts)
        rows = world.wait(world.target.score(text, last=len(drafts)))
        world.commit(match(world, drafts[::-1], rows).tokens)


def drafts_committed_as_they_are(world, gamma):
    while world.going:
        drafts = world.wait(world.draft.propose(world.text, gamma))
        text = world.text + ids(drafts)
        rows = world.wait(world.target.score(text, last=len(drafts)))
        verified = verify(world, drafts, rows)
        world.commit(drafts[: len(verified.accepted)] + verified.extra)


RIGHT = {
    "method": [
        method_as_in_the_lesson,
        method_by_recursion,
        method_draft_by_draft,
        method_test_by_test,
        method_of_rounds,
    ]
}
WRONG = {
    "method": [
        first_draft_tested_alone,
        gamma_ignored,
        bonus_left_out,
        drafts_matched_backwards,
        drafts_committed_as_they_are,
    ]
}
