"""What happened in a run, moment by moment: the text so far, and a sentence.

A player shows it while its cursor moves along the time axis. Reads a run, and knows no
picture, method, clock or notebook.
"""

from __future__ import annotations

from typing import NamedTuple

from speclib.drawing.text_in_pictures import one_line

from .run import CommittedText, TimelineRun


class Moment(NamedTuple):
    """A commit: its second, the whole text since the prompt, and what happened."""

    seconds: float
    text: str
    sentence: str


def story_of(run: TimelineRun) -> list[Moment]:
    """A moment for each commit of a run, in their order."""
    rejected = run.draft_positions("rejected")
    position = run.trace.prompt_length
    text = ""
    moments = []
    for number, committed in enumerate(run.committed_texts(), 1):
        text += "".join(part.text for part in committed.parts)
        sentence = f"{run.label}, round {number}: "
        sentence += _what_happened(committed, position, rejected)
        moments.append(Moment(committed.commit.end, one_line(text), sentence))
        position += len(committed.parts)
    return moments


def _what_happened(committed: CommittedText, position: int, rejected: set[int]) -> str:
    """One commit in words; ``position`` is that of its first token."""
    drafts = [part for part in committed.parts if part.kind == "draft"]
    own = [
        (position + index, part)
        for index, part in enumerate(committed.parts)
        if part.kind == "target"
    ]
    phrases = []
    if drafts:
        plural = "" if len(drafts) == 1 else "s"
        phrases.append(f"{len(drafts)} draft{plural} accepted")
    for own_position, part in own:
        word = one_line(part.text.strip())
        verb = "corrected to" if own_position in rejected else "the target model wrote"
        phrases.append(f"{verb} “{word}”")
    return ", ".join(phrases) or "nothing is certain yet"
