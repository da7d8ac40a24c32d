"""A run as views show it: its trace, its name, and which model wrote which token.

It is made from a trace, the text of the tokens, and the method's name in its ABOUT.
This module uses no picture, clock or notebook.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from speclib.drawing.text_in_pictures import TextPart, one_line, token_label
from speclib.errors import BadValue
from speclib.methods import about
from speclib.trace.events import Event, Trace
from speclib.trace.metrics import Stats, stats


class CommittedText(NamedTuple):
    """A commit, with the text of each of its tokens and the model that wrote it."""

    commit: Event
    parts: tuple[TextPart, ...]  # of kind "draft" or "target"


@dataclass(frozen=True)
class TimelineRun:
    """One trace to show, and its labels.

    ``note`` follows the label. ``pieces`` maps token ids to their text, and ``places``
    maps devices to their places.
    """

    label: str
    note: str
    trace: Trace
    pieces: dict[int, str]
    places: dict[str, str] = field(default_factory=dict)

    @property
    def clock_error(self) -> float:
        """The error in comparing several machines' clocks, in seconds; 0 on one."""
        errors: dict[str, float] = self.trace.meta.get("clock_error", {})
        return max(errors.values(), default=0.0)

    @property
    def title(self) -> str:
        """The label and, in parentheses, the note."""
        return f"{self.label} ({self.note})" if self.note else self.label

    @property
    def seconds(self) -> float:
        """The makespan."""
        return self.trace.makespan

    @cached_property
    def stats(self) -> Stats:
        """The counts and ratios of the whole run."""
        return stats(self.trace)

    @property
    def kind(self) -> str:
        """The kind of the run's numbers: virtual, emulated or measured."""
        clock: str | None = self.trace.meta.get("clock")
        if clock:
            return clock
        return self.trace.events[0].clock if self.trace.events else "virtual"

    def with_kind_named(self) -> TimelineRun:
        """The same run, with the kind of its numbers in the note."""
        return replace(self, note=", ".join(filter(None, [self.note, self.kind])))

    @property
    def devices(self) -> list[str]:
        """The devices that did something, the draft's first."""
        used = {event.device for event in self.trace.operations}
        devices = [device for device in self.trace.devices if device in used]
        return sorted(devices, key=lambda device: not device.startswith("draft"))

    @property
    def lost(self) -> dict[str, float]:
        """Maps each lost device to the time in seconds at which it was lost."""
        return {
            event.device: event.end for event in self.trace.operations if event.lost
        }

    def idle_share(self, device: str) -> float:
        """The share of the makespan during which ``device`` is idle."""
        if not self.seconds:
            return float("nan")
        return 1 - self.trace.busy(device) / self.seconds

    def piece(self, token: int) -> str:
        """The token's text, or its id if the text is unknown."""
        return self.pieces.get(token, f" {token}")

    def label_of(self, token: int) -> str:
        """The token's text as it fits into a cell."""
        return token_label(self.piece(token))

    def spelled(self, tokens: Sequence[int]) -> str:
        """The text of all tokens, on one line."""
        return one_line("".join(map(self.piece, tokens)))

    def operations_of(self, device: str) -> list[Event]:
        """One device's operations, in the order in which they began."""
        events = [event for event in self.trace.operations if event.device == device]
        return sorted(events, key=lambda event: event.ts)

    def passes_without_use(self, device: str) -> set[int]:
        """The ids of ``device``'s target passes whose rows were not used.

        They failed or were cancelled, ended after the last commit, or read tokens
        before their tested drafts that were never committed. An operation keeps the
        first tokens of its device's KV cache and adds the tokens that it is fed, so the
        cache always contains the whole text that the operation reads::

            prompt ...  | committed, or drafted earlier | drafts that are tested
                        ^ prompt_length                 ^ event.tested before the end
        """
        commits = self.trace.commits
        committed = [token for commit in commits for token in commit.tokens]
        last_commit = max((commit.end for commit in commits), default=0.0)
        in_time = last_commit * (1 + 1e-9)

        prompt_length = self.trace.prompt_length
        cache: list[int] = []
        useless = set()
        for event in self.operations_of(device):
            cache[event.kept :] = event.tokens
            if not event.is_scoring:
                continue
            before_drafts = cache[prompt_length : len(cache) - event.tested]
            is_stale = before_drafts != committed[: len(before_drafts)]
            if is_stale or not event.tokens or event.end > in_time:
                useless.add(event.id)
        return useless

    def committed_texts(self) -> list[CommittedText]:
        """Every commit, with the text of its tokens and the model that wrote each."""
        accepted = self.trace.draft_positions("accepted")
        position = self.trace.prompt_length
        texts = []
        for commit in self.trace.commits:
            parts = []
            for token in commit.tokens:
                writer = "draft" if position in accepted else "target"
                parts.append(TextPart(writer, self.piece(token)))
                position += 1
            texts.append(CommittedText(commit, tuple(parts)))
        return texts


def timeline_run(
    item: object, label: str | None = None, places: dict[str, str] | None = None
) -> TimelineRun:
    """``item`` as a run to show.

    ``item``: a Trace, or an object with a ``trace`` and, for the text, ``pieces``.
    ``label``: replaces the method's name and settings. Raises SpeclibError for any
    other item.
    """
    trace = getattr(item, "trace", item)
    if not isinstance(trace, Trace):
        raise BadValue(
            f"a timeline shows results or traces; {type(item).__name__} is neither: "
            "give what speclib.decode returns"
        )

    method = str(trace.meta.get("method") or "run")
    return TimelineRun(
        label=label or about(method).name,
        note="" if label else about(method).note(trace.meta),
        trace=trace,
        pieces=getattr(item, "pieces", None) or {},
        places=places or trace.meta.get("nodes", {}),
    )
