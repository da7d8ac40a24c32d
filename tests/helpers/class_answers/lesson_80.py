"""Answers to the exercise of writing one's own method: speculative decoding."""

from __future__ import annotations

from speclib.core.sampling import ids
from speclib.core.verification import verify


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


def until_the_limit(world, gamma):
    while world.left > 0:
        drafts = world.wait(world.draft.propose(world.text, gamma))
        text = world.text + ids(drafts)
        rows = world.wait(world.target.score(text, last=len(drafts)))
        world.commit(verify(world, drafts, rows).tokens)


def drafts_before_it_asks(world, gamma):
    drafts = world.wait(world.draft.propose(world.text, gamma))
    while world.going:
        text = world.text + ids(drafts)
        rows = world.wait(world.target.score(text, last=len(drafts)))
        world.commit(verify(world, drafts, rows).tokens)
        drafts = world.wait(world.draft.propose(world.text, gamma))


RIGHT = {
    "method": [method_as_in_the_lesson, method_by_recursion, method_draft_by_draft]
}
WRONG = {"method": [first_draft_tested_alone, gamma_ignored, bonus_left_out]}
NAMED = {"method": {"end token overlooked": [until_the_limit, drafts_before_it_asks]}}
