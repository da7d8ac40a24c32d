"""Mistakes in what DSI commits when a target distribution arrives.

Each function takes the world, the target's known distributions, keyed by the preceding
text, and the draft after the committed text. It commits tokens and returns the rest of
the draft.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from speclib.core.sampling import Drafted, Row, ids
from speclib.core.text import AnyText
from speclib.core.verification import match
from speclib.worlds.world import World

Draft: TypeAlias = tuple[Drafted, ...]
KnownRows: TypeAlias = Mapping[AnyText, Row]


def commit_known(world: World, rows: KnownRows, draft: Draft) -> Draft:
    """No mistake: tests the next draft as long as its distribution is known."""
    while world.going and world.text in rows:
        tested = match(world, draft[:1], [rows[world.text]])
        world.commit(tested.tokens)
        draft = () if tested.extra else draft[1:]
    return draft


def untested(world: World, rows: KnownRows, draft: Draft) -> Draft:
    """Commits the next draft untested as soon as its distribution is known."""
    while world.going and world.text in rows:
        own = match(world, (), [rows[world.text]]).tokens
        world.commit(ids(draft[:1]) or own)
        draft = draft[1:]
    return draft


def row_off_by_one(world: World, rows: KnownRows, draft: Draft) -> Draft:
    """Tests a draft with the distribution after it."""
    while world.going and world.text + ids(draft[:1]) in rows:
        p = rows[world.text + ids(draft[:1])]
        tested = match(world, draft[:1], [p])
        world.commit(tested.tokens)
        draft = () if tested.extra else draft[1:]
    return draft


def one_row_at_a_time(world: World, rows: KnownRows, draft: Draft) -> Draft:
    """Uses one distribution, although more may be known."""
    only = {text: p for text, p in rows.items() if text == world.text}
    return commit_known(world, only, draft)


def keeps_draft(world: World, rows: KnownRows, draft: Draft) -> Draft:
    """Keeps the drafts after a rejected one."""
    while world.going and world.text in rows:
        world.commit(match(world, draft[:1], [rows[world.text]]).tokens)
        draft = draft[1:]
    return draft


def forgets_draft(world: World, rows: KnownRows, draft: Draft) -> Draft:
    """Discards the drafts after an accepted one."""
    before = world.text
    left = commit_known(world, rows, draft)
    return left if world.text == before else ()


def returns_whole_draft(world: World, rows: KnownRows, draft: Draft) -> Draft:
    """Returns the committed drafts along with the rest."""
    commit_known(world, rows, draft)
    return draft


def waits_for_drafts(world: World, rows: KnownRows, draft: Draft) -> Draft:
    """Stops using distributions when no draft is left to test."""
    while world.going and draft and world.text in rows:
        tested = match(world, draft[:1], [rows[world.text]])
        world.commit(tested.tokens)
        draft = () if tested.extra else draft[1:]
    return draft
