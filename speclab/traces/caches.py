"""The contents of the devices' KV caches, from event to event.

An operation keeps some number of slots at the start of its device's cache, cuts off the
rest, and adds a slot for each token fed to it. So every cache's contents follow from
the trace::

    before      a b c d e x y     the text is now a b c d e f, so x and y are stale
    cut         a b c d e
    afterwards  a b c d e f g

This module does not depend on the method, the models or the clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from speclib.errors import BadValue
from speclib.trace.events import COMMIT, Event, Trace

EXACT, FUZZY, STALE = "exact", "fuzzy", "stale"
PROMPT_TOKEN = -1  # stands for any prompt token: a trace need not record the prompt


class Slot(NamedTuple):
    """A slot of a KV cache: its token, and what kind of pass filled it."""

    token: int
    kind: str


class CacheMoment(NamedTuple):
    """All KV caches at the end of an event.

    event        an operation, or a commit
    text_length  tokens in the text, including the prompt
    kinds        the kind of every slot, by device: "stale" from the first token that
                 differs from the text; otherwise "fuzzy" if a fuzzy pass of EasySpec's
                 draft filled it, or "exact"
    cut          the number of slots that the operation cut off before adding new ones
    added        the number of slots that the operation added
    """

    event: Event
    text_length: int
    kinds: dict[str, tuple[str, ...]]
    cut: int = 0
    added: int = 0


def cache_moments(trace: Trace) -> list[CacheMoment]:
    """A moment for each operation and each commit, in the order in which they ended.

    Raises BadValue for a trace with trees or several sequences of drafts: their slots
    do not follow the text's positions.
    """
    _check_lines(trace)
    text = [PROMPT_TOKEN] * trace.prompt_length
    text_lengths = [len(text)]  # indexed by the number of rounds completed
    caches: dict[str, list[Slot]] = {device: [] for device in trace.devices}
    # By device and position in the text: the device's latest draft.
    drafted: dict[str, dict[int, int]] = {device: {} for device in trace.devices}
    moments = []
    for event in trace.events:
        if event.op == COMMIT:
            text += event.tokens
            text_lengths.append(len(text))
            moments.append(CacheMoment(event, len(text), _kinds(caches, text)))
            continue
        if event.device not in caches:
            continue

        cache = caches[event.device]
        cut = len(cache) - event.kept
        fuzzy = event.payload.fuzzy_slots
        text_then = text[: text_lengths[event.round]]
        tokens = _fed_tokens(event, text_then, drafted[event.device])
        kinds = [EXACT] * (len(tokens) - fuzzy) + [FUZZY] * fuzzy
        cache[event.kept :] = map(Slot, tokens, kinds)
        if event.is_drafting:
            own_drafts = enumerate(event.tokens, start=event.text_length)
            drafted[event.device].update(own_drafts)
        moment = CacheMoment(event, len(text), _kinds(caches, text), cut, len(tokens))
        moments.append(moment)

        if fuzzy and event.payload.drops_fuzzy_slots:
            del cache[-fuzzy:]
    return moments


def _check_lines(trace: Trace) -> None:
    for event in trace.operations:
        if not event.payload.is_line(event.tokens):
            method = trace.meta.get("method", "this method")
            raise BadValue(
                f"{method} drafts a tree or several sequences, but KV caches can only "
                "be shown for a single line of drafts: give width=1 or k=1 if the "
                "method has such a setting, or choose another method"
            )


def _fed_tokens(
    event: Event, text: Sequence[int], drafted: Mapping[int, int]
) -> list[int]:
    """The tokens fed to an operation.

    ``text``: the text when the operation was submitted. A scoring operation records its
    input. A drafting operation is first fed whatever its cache lacks of the text and of
    the drafts not yet tested, and then its own drafts, except the last.
    """
    if not event.is_drafting:
        return list(event.tokens[: event.fed])
    tokens = []
    for position in range(event.kept, event.text_length):
        token = text[position] if position < len(text) else drafted[position]
        tokens.append(token)
    return tokens + list(event.tokens[: event.drafts_fed])


def _kinds(
    caches: Mapping[str, Sequence[Slot]], text: Sequence[int]
) -> dict[str, tuple[str, ...]]:
    """The kind of every slot, given the current text."""
    kinds = {}
    for device, cache in caches.items():
        right = _common_length(cache, text)
        own_kinds = [slot.kind for slot in cache]
        if right < min(len(cache), len(text)):
            own_kinds[right:] = [STALE] * (len(cache) - right)
        kinds[device] = tuple(own_kinds)
    return kinds


def _common_length(cache: Sequence[Slot], text: Sequence[int]) -> int:
    """How many slots match the text's tokens before the first mismatch."""
    for length, (slot, token) in enumerate(zip(cache, text, strict=False)):
        if token not in (slot.token, PROMPT_TOKEN):
            return length
    return min(len(cache), len(text))
