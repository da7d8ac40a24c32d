"""DSI: distributed speculative inference. Drafting never stops; several targets verify
at once.

    draft      d1 d2 | d3 d4 | d5 d6 | ...          never waits, lookahead 2
    target     text ─────────┐                      plain decoding's own pass
    target-2         d1 d2 ──┼──────┐               as soon as two drafts exist
    target-3               d3 d4 ───┼──────┐
                             │      │      │
                             rows arrive in any order, but are used in text order

With one drafter, ceil(t_target / (lookahead * t_draft)) targets keep up with it.
"""

from __future__ import annotations

from typing import NamedTuple

from speclib.core.sampling import Drafted, Row, Rows, Tokens, ids
from speclib.core.settings import require_counts, require_one_of
from speclib.core.text import AnyText, begins_with
from speclib.core.verification import match, verify
from speclib.worlds.devices import AnyFuture, Device, DeviceLost, Future
from speclib.worlds.world import World

from .method_facts import About, shows

TESTS = {"exact": match, "ratio": verify}


def dsi(
    world: World,
    lookahead: int,
    servers: int | None = None,
    test: str = "exact",
    block: int | None = None,
) -> None:
    """Every drafter writes its own text; ``servers`` targets score the drafts.

    An idle target scores the texts that no target has scored yet. If the committed text
    is one of them, the target starts at once, so plain decoding continues regardless of
    the drafts; otherwise it waits for ``lookahead`` unscored texts. If a device is
    lost, the others continue.

    ``servers``: None uses all targets. ``test``: "exact" gives plain decoding's own
    tokens. "ratio" keeps more tokens; it is equal in distribution as long as no draft's
    time depends on its token, since time decides which draft is tested. ``block``: how
    many tokens a drafter writes per operation; None means ``lookahead``.

    All results that arrive at the same moment are recorded before the next decision;
    the paper leaves that order open. (docs/decisions.md states the cost of this order
    and of blocks.)

    With ``lookahead`` 1, one server and ``block`` 1 this is AMUSD (McDanel 2024,
    arXiv:2410.17375): a draft that never waits, and one target that scores everything
    drafted so far whenever it is idle. (Its code, github.com/BradMcDanel/AMUSD at
    c52657a, amusd.py, line 437, has the target wait until two tokens are drafted.)

    Source: Timor et al. 2024, section 3.1, Algorithm 1; its line 6 gives both drafters
    and targets work, and the lookahead is its "preemption".
    Differences from the paper: drafters do not continue each other's texts, and all
    that agree keep writing (line 10 would end all but one). A target scores all
    unscored texts along a draft at once. Line 17 may return an unverified prefix; this
    does not. Line 8 ends a drafter at the token that a target contradicts. Here a block
    that starts after such a token is cancelled, but one that contains the token is
    finished, since its tokens are known only once the block is written. ``block=1``
    ends it at once, at the cost of a message per token.
    """
    require_one_of("test", test, tuple(TESTS))
    require_counts(lookahead=lookahead, servers=servers, block=block)
    speculation = Speculation(world, lookahead, servers, test, block or lookahead)
    while world.going:
        speculation.keep_drafters_writing()  # line 6, of f_1 ... f_(m-1)
        speculation.give_idle_targets_work()  # line 6, of f_m; section 3.1's lookahead
        for finished in world.earliest(*speculation.running):  # line 4: once any ends
            speculation.record(finished)  # line 4: its token is known
        speculation.commit_what_is_verified()  # lines 7, 9 and 11-14
        speculation.cancel_what_cannot_follow()  # line 8


class Scoring(NamedTuple):
    """A target's current work: to score ``texts``."""

    target: Device
    texts: list[AnyText]


class Speculation:
    """What all devices have written and scored beyond the committed text.

    ``drafts``: what each drafter that is not lost has written after the committed text.
    ``known_rows``: the target's rows, by the text that they follow. They arrive in any
    order and wait here until their text is committed.
    """

    def __init__(
        self,
        world: World,
        lookahead: int,
        servers: int | None,
        test: str,
        block: int,
    ):
        self.world = world
        self.lookahead = lookahead
        self.block = block
        self.test = TESTS[test]
        self.targets = list(world.targets[:servers])
        self.drafts: dict[Device, tuple[Drafted, ...]] = {}
        for drafter in world.drafts:
            self.drafts[drafter] = ()
        self.known_rows: dict[AnyText, Row] = {}
        self._scoring: dict[Future[Rows], Scoring] = {}
        self._writing: dict[Future[tuple[Drafted, ...]], Device] = {}

    @property
    def running(self) -> list[AnyFuture]:
        """All operations whose results are not recorded yet."""
        return [*self._scoring, *self._writing]

    def keep_drafters_writing(self) -> None:
        """Each idle drafter continues its own draft while tokens are left to write."""
        busy = set(self._writing.values())
        for drafter, draft in self.drafts.items():
            if drafter not in busy and len(draft) < self.world.left:
                text = self.world.text + ids(draft)
                future = drafter.propose(text, self.block, drafter.index)
                self._writing[future] = drafter

    def give_idle_targets_work(self) -> None:
        """Each idle target scores the unseen texts along a draft."""
        busy = {scoring.target for scoring in self._scoring.values()}
        for target in self.targets:
            if target in busy:
                continue
            texts = self._texts_to_score()
            if texts:
                future = target.score(texts[-1], last=len(texts) - 1)
                self._scoring[future] = Scoring(target, texts)

    def _texts_to_score(self) -> list[AnyText]:
        """The unseen texts along the first draft that has enough of them, or []."""
        seen = set(self.known_rows)
        for scoring in self._scoring.values():
            seen.update(scoring.texts)

        drafts = list(self.drafts.values()) or [()]  # without drafters: plain decoding
        for draft in drafts:
            texts = first_unseen(texts_along(self.world.text, draft), seen)
            if self.world.text in texts or len(texts) >= self.lookahead:
                return texts
        return []

    def record(self, finished: AnyFuture) -> None:
        """Records a device's answer, or that the device is lost."""
        error = finished.error
        if finished in self._scoring:
            target, texts = self._scoring.pop(finished)
            if isinstance(error, DeviceLost):
                self._do_without(target, error)
            elif error is None:
                self.known_rows.update(zip(texts, finished.result(), strict=True))
        else:
            drafter = self._writing.pop(finished)
            if isinstance(error, DeviceLost):
                self._do_without(drafter, error)
            elif error is None:
                self.drafts[drafter] = self._extended(self.drafts[drafter], finished)

    def _do_without(self, device: Device, error: DeviceLost) -> None:
        """Stops using ``device``; raises ``error`` if no target is left."""
        self.targets = [target for target in self.targets if target is not device]
        self.drafts.pop(device, None)
        if not self.targets:
            raise error

    def _extended(
        self, draft: tuple[Drafted, ...], future: Future[tuple[Drafted, ...]]
    ) -> tuple[Drafted, ...]:
        """``draft`` and what follows it; () unless it continues the committed text."""
        committed = self.world.text
        written = future.op.text + ids(future.result())
        beyond = len(written) - len(committed)
        if not beyond or not begins_with(written, committed):
            return ()
        return (draft + future.result())[-beyond:]

    def commit_what_is_verified(self) -> None:
        """Tests the first non-empty draft for as long as its next row is known."""
        while self.world.going and self.world.text in self.known_rows:
            draft = next(filter(None, self.drafts.values()), ())
            rows = self._known_rows_along(draft)
            committed = self.test(self.world, draft, rows).tokens
            self.world.commit(committed)
            for drafter in self.drafts:
                written = self.drafts[drafter]
                self.drafts[drafter] = remaining_draft(written, committed)

    def _known_rows_along(self, draft: tuple[Drafted, ...]) -> list[Row]:
        """The rows after the committed text and along ``draft``, up to the first one
        that is unknown."""
        rows = []
        for text in texts_along(self.world.text, draft):
            if text not in self.known_rows:
                break
            rows.append(self.known_rows[text])
        return rows

    def cancel_what_cannot_follow(self) -> None:
        """Drops the rows and operations that the committed text makes useless."""
        committed = self.world.text
        following = {}
        for text, row in self.known_rows.items():
            if begins_with(text, committed):
                following[text] = row
        self.known_rows = following

        stale = [f for f in self.running if not f.op.concerns(committed)]
        self.world.cancel(*stale)


def texts_along(text: AnyText, draft: tuple[Drafted, ...]) -> list[AnyText]:
    """``text``, followed by the first 0, 1, 2 ... drafted tokens."""
    return [text + ids(draft[:count]) for count in range(len(draft) + 1)]


def first_unseen(texts: list[AnyText], seen: set[AnyText]) -> list[AnyText]:
    """The first run of consecutive ``texts`` that are not in ``seen``."""
    unseen: list[AnyText] = []
    for text in texts:
        if text not in seen:
            unseen.append(text)
        elif unseen:
            break
    return unseen


def remaining_draft(
    draft: tuple[Drafted, ...], committed: Tokens
) -> tuple[Drafted, ...]:
    """``draft`` without ``committed``; () if it does not begin with ``committed``."""
    if ids(draft)[: len(committed)] != committed:
        return ()
    return draft[len(committed) :]


def servers_label(count: int | None) -> str:
    """How a timeline writes ``servers``."""
    if not count:
        return ""
    return "1 target" if count == 1 else f"{count} targets"


ABOUT = About(
    name="DSI",
    labels={"lookahead": shows("lookahead {}"), "servers": servers_label},
    variants=(
        {"lookahead": 1},
        {"lookahead": 3},
        {"lookahead": 2, "test": "ratio"},
        {"lookahead": 3, "block": 1},
        {"lookahead": 1, "servers": 1, "block": 1},  # AMUSD
    ),
    depends_on_timing=True,
)
