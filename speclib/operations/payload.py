"""What a trace event records about its operation, beyond what every event records.

A payload answers questions about its event: how many forward passes there were, and
which token follows which. So a reader of traces, such as a timeline, never branches on
an operation's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from speclib.core.sampling import Tokens


class OwnEvent(Protocol):
    """What an operation reads in its own trace event; see ``trace.events.Event``."""

    @property
    def tokens(self) -> Tokens: ...
    @property
    def outcome(self) -> tuple[str, ...]: ...
    @property
    def kept(self) -> int: ...
    @property
    def fed(self) -> int: ...
    @property
    def cancelled(self) -> bool: ...
    @property
    def payload(self) -> Any: ...


@dataclass(frozen=True)
class Payload:
    """The payload of an event with nothing more to show, such as a commit."""

    is_drafting: ClassVar[bool] = False  # the draft model's work: its tokens are drafts
    is_scoring: ClassVar[bool] = False  # one pass of the target model

    @property
    def tested(self) -> int:
        """How many of the last fed tokens the target was asked to test."""
        return 0

    @property
    def likeliest(self) -> Tokens:
        """The likeliest token after each of the last candidates."""
        return ()

    def pass_count(self, tokens: Tokens) -> int:
        """The number of forward passes."""
        return 1

    def drafts_fed(self, tokens: Tokens) -> int:
        """How many of the fed tokens the operation itself had drafted."""
        return 0

    @property
    def fuzzy_slots(self) -> int:
        """How many of the KV cache's last slots were filled by fuzzy passes."""
        return 0

    @property
    def drops_fuzzy_slots(self) -> bool:
        """Whether the operation drops these slots when it ends."""
        return False

    def depths(self, tokens: Tokens) -> tuple[int, ...]:
        """How many of the event's tokens come before each token on its path."""
        return tuple(range(len(tokens)))

    def places(self, tokens: Tokens) -> tuple[int, ...]:
        """How far each token is from the end of its operation's text; 0: next to it."""
        return self.depths(tokens)

    def is_line(self, tokens: Tokens) -> bool:
        """Whether each token follows the one before it: one sequence, not a tree."""
        return self.depths(tokens) == tuple(range(len(tokens)))

    def sequences(self, tokens: Tokens) -> tuple[Tokens, ...]:
        """The tokens of each sequence; a line or a tree is one sequence."""
        return (tokens,)


@dataclass(frozen=True)
class DraftPayload(Payload):
    """The payload of an event whose tokens the draft model wrote."""

    is_drafting: ClassVar[bool] = True

    def pass_count(self, tokens: Tokens) -> int:
        """One pass for each token of the longest path; none without output."""
        return 1 + max(self.depths(tokens), default=-1)

    def drafts_fed(self, tokens: Tokens) -> int:
        """All drafts but the last: nothing has been drafted after it yet."""
        return max(0, len(tokens) - 1)
