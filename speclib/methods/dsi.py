"""DSI: distributed speculative inference: drafting never stops, several targets verify at once.

A free target scores the texts that no target has looked at: at once if the committed text is one
of them, so plain decoding never stops; else when ``lookahead`` of them have gathered. Rows come in
any order and wait in ``known``, by the text they follow, until that is committed. With one drafter
ceil(t_target / (lookahead * t_draft)) targets keep up.
"""

from itertools import dropwhile, takewhile

from speclib.core.sampling import ids
from speclib.core.verification import match, verify
from speclib.errors import SpeclibError
from speclib.worlds.world import DeviceLost

TESTS = {"exact": match, "ratio": verify}


def dsi(world, lookahead: int, servers: int | None = None, test: str = "exact"):
    """Every drafter writes a text of its own; ``servers`` targets (None: all) score what is there.
    ``test="exact"`` gives plain decoding's own tokens; "ratio" keeps more, equal in distribution as
    long as no draft's time depends on its token. A lost device is done without.

    Source: Timor et al. 2024, section 3.1, Algorithm 1: lines 4-6 are the two loops, 7-12 the test,
    13 is ``known``; the lookahead is its "preemption".
    Differences from the paper: drafters do not continue each other's texts; a target scores all
    that has gathered; line 17 may return an unverified prefix, this does not.
    """
    if test not in TESTS:
        raise SpeclibError(f"test is {test!r}: give 'exact' or 'ratio'")
    targets, drafts = world.targets[:servers], dict.fromkeys(world.drafts, ())
    known, scoring, writing = (
        {},
        {},
        {},
    )  # text -> the row after it; future -> its device
    while world.going:
        for at, draft in drafts.items():
            if at not in writing.values() and len(draft) < world.left:
                writing[at.propose(world.text + ids(draft), lookahead, at.index)] = at
        for at in (target for target in targets if target not in scoring.values()):
            seen = {*known, *(text for future in scoring for text in future.op.texts)}
            texts = _unseen(world.text, drafts.values() or [()], seen, lookahead)
            scoring |= {at.score(texts[-1], last=len(texts) - 1): at} if texts else {}
        done = world.first(*scoring, *writing)
        at = scoring.pop(done, None) or writing.pop(done)
        if isinstance(done.error, DeviceLost):
            targets, _ = [t for t in targets if t is not at], drafts.pop(at, None)
            if not targets:
                raise done.error
        elif done.error is None and at in targets:
            known |= zip(done.op.texts, done.value, strict=True)
        elif done.error is None:
            drafts[at] = _beyond(world.text, drafts[at], done)
        while world.going and world.text in known:
            draft = next(filter(None, drafts.values()), ())
            rows = [
                known[t]
                for t in takewhile(known.__contains__, _along(world.text, draft))
            ]
            world.commit(tokens := TESTS[test](world, draft, rows).tokens)
            drafts = {
                at: draft[len(tokens) :] if ids(draft)[: len(tokens)] == tokens else ()
                for at, draft in drafts.items()
            }
        known = {
            t: row for t, row in known.items() if t[: len(world.text)] == world.text
        }
        world.cancel(
            *(f for f in (*scoring, *writing) if not f.op.concerns(world.text))
        )


def _along(text, draft):
    """``text``, then with one drafted token more each."""
    return [text + ids(draft[:n]) for n in range(len(draft) + 1)]


def _unseen(text, drafts, seen, lookahead):
    """The texts a free target should score, along the first draft that has enough of them."""
    for draft in drafts:
        later = dropwhile(seen.__contains__, _along(text, draft))
        texts = list(takewhile(lambda t: t not in seen, later))
        if text in texts or len(texts) >= lookahead:
            return texts


def _beyond(text, draft, future):
    """What follows ``text`` once ``future`` has gone on from ``draft``; nothing if it left it."""
    written = future.op.text + ids(future.value)
    beyond = len(written) - len(text)
    return (
        (draft + future.value)[-beyond:]
        if beyond and written[: len(text)] == text
        else ()
    )
