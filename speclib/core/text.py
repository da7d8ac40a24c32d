"""A request's text, stored once and sent once, even if many operations carry it.

Every operation carries its whole text: the committed tokens, then the drafted ones. The
committed tokens only grow, so all these texts share one list of them, the *log*, and
each stores only its own end, the *tail*::

    log     t0 t1 t2 t3 t4 t5 t6 ...      grows by commits; its tokens never change
            |-- shared --|
    tail                  d1 d2           this text: t0 t1 t2 t3 d1 d2

So a longer text costs no more to create, to compare with another text of the same
request, or to send to a process that already has the beginning of the log.

This module uses no model, method or process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, SupportsIndex, TypeAlias, final, overload

import numpy as np

from speclib.errors import SpeclibError

Tokens: TypeAlias = tuple[int, ...]  # token ids, in the order of the text


@final
class Text(Sequence[int]):
    """The first ``shared`` tokens of ``log``, then ``tail``.

    It behaves like the tuple of its tokens: it equals that tuple and has the same hash,
    and a slice is a tuple. ``log`` may grow, but its tokens never change.

    There are no subclasses, so ``type(text) is Text`` is enough to recognise a Text.
    isinstance takes four times as long, since Sequence is an abstract class.
    """

    __slots__ = ("log", "shared", "tail")

    def __init__(self, log: list[int], shared: int, tail: Tokens = ()):
        self.log = log
        self.shared = shared
        self.tail = tail

    def __len__(self) -> int:
        return self.shared + len(self.tail)

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> Tokens: ...
    def __getitem__(self, key: SupportsIndex | slice) -> int | Tokens:
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                return self._between(start, stop)
            return self.whole()[key]

        position = key.__index__()
        if position < 0:
            position += len(self)
        if 0 <= position < self.shared:
            return self.log[position]
        if position < 0:
            raise IndexError(f"a text of {len(self)} tokens has no token {key}")
        return self.tail[position - self.shared]

    def _between(self, start: int, stop: int) -> Tokens:
        """The tokens from ``start`` up to ``stop``; neither is negative."""
        if start >= self.shared:
            return self.tail[start - self.shared : max(0, stop - self.shared)]
        of_log = tuple(self.log[start : min(stop, self.shared)])
        return of_log + self.tail[: max(0, stop - self.shared)]

    def whole(self) -> Tokens:
        """All tokens, as a tuple."""
        return self._between(0, len(self))

    def __iter__(self) -> Iterator[int]:
        return iter(self.whole())

    def __add__(self, tokens: Tokens) -> Text:
        return Text(self.log, self.shared, self.tail + tokens)

    def __radd__(self, tokens: Tokens) -> Tokens:
        return tokens + self.whole()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Text):
            return len(self) == len(other) and begins_with(self, other)
        if isinstance(other, tuple):
            return len(self) == len(other) and self.whole() == other
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.whole())

    def __repr__(self) -> str:
        return repr(self.whole())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.whole(), dtype)

    def __reduce__(self) -> tuple[type[tuple[int, ...]], tuple[Tokens]]:
        """Pickles as a tuple: no other process has its log (see ``TextSender``)."""
        return tuple, (self.whole(),)


AnyText: TypeAlias = Tokens | Text


def as_text(tokens: Sequence[int]) -> AnyText:
    """``tokens`` unchanged if it is a Text, else as a tuple."""
    return tokens if type(tokens) is Text else tuple(tokens)


def first_tokens(text: AnyText, length: int) -> AnyText:
    """The first ``length`` tokens of ``text``, as a Text if ``text`` is one."""
    if type(text) is not Text:
        return text[:length]
    if length < text.shared:
        return Text(text.log, length)
    return Text(text.log, text.shared, text.tail[: length - text.shared])


def begins_with(text: AnyText, start: AnyText) -> bool:
    """Whether ``text`` begins with ``start``.

    If both belong to one request, only the tokens beyond their common log are compared.
    """
    known = 0
    if type(text) is Text and type(start) is Text and text.log is start.log:
        known = min(text.shared, start.shared)
    return text[known : len(start)] == start[known:]


# -- sending texts ---------------------------------------------------------------------
class TextMessage(NamedTuple):
    """The part of a text that its receiver lacks.

    ``start``: how many tokens of the log the receiver has; 0: a new log starts.
    ``new``: the next tokens of the log. ``shared``, ``tail``: see ``Text``.
    """

    start: int
    new: Tokens
    shared: int
    tail: Tokens


class TextSender:
    """Tracks how much of the log one receiver has, so that only the rest is sent.

    A log's tokens never change, so it is enough to count them.
    """

    def __init__(self) -> None:
        self._log: list[int] | None = None
        self._sent = 0

    def pack(self, text: AnyText) -> TextMessage:
        """The message to send for ``text``. Call ``note_sent`` once it is sent."""
        if type(text) is not Text:
            text = Text([], 0, text)
        start = self._sent if text.log is self._log else 0
        new = tuple(text.log[start : text.shared])
        return TextMessage(start, new, text.shared, text.tail)

    def note_sent(self, text: AnyText, message: TextMessage) -> None:
        """Notes that ``message``, made from ``text``, was sent to the receiver."""
        self._log = text.log if type(text) is Text else None
        self._sent = message.start + len(message.new)


class TextReceiver:
    """The receiver's copy of the log, as far as it has arrived."""

    def __init__(self) -> None:
        self._log: list[int] = []

    def unpack(self, message: TextMessage) -> Text:
        """The text of ``message``.

        Raises SpeclibError if it does not continue the log that has arrived.
        """
        if message.start == 0:
            self._log = []
        if message.start != len(self._log):
            raise SpeclibError(
                f"a message begins after {message.start} tokens, but {len(self._log)} "
                "have arrived: another message was lost; begin a new request"
            )
        self._log.extend(message.new)
        return Text(self._log, message.shared, message.tail)
