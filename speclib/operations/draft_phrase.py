"""Drafting several tokens in one pass, along phrases that were seen before.

This module depends on no method and no pool of phrases: the caller passes the phrases
to try.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from speclib.core.certain_rows import stacked
from speclib.core.sampling import Drafted, Row, Tokens, certain
from speclib.core.text import AnyText, begins_with, first_tokens
from speclib.core.verification import TEXT

from .drafting import Drafting
from .model import Model
from .operation import DecodingRun, Given, Output, RecordedRun, ToDrafts
from .payload import DraftPayload, OwnEvent


class Phrase(NamedTuple):
    """What one pass drafted.

    ``likeliest``: the draft's likeliest token after each of the requested nodes.
    """

    drafted: tuple[Drafted, ...]
    likeliest: Tokens


@dataclass(frozen=True)
class DraftedPhrase(DraftPayload):
    """The event's tokens were all drafted in one pass.

    ``fed``: the number of the tree's nodes, which were fed after the text.
    ``best``: see ``Phrase.likeliest``.
    """

    fed: int = 0
    best: Tokens = ()

    @property
    def likeliest(self) -> Tokens:
        return self.best

    def pass_count(self, tokens: Tokens) -> int:
        return 1 if tokens else 0

    def drafts_fed(self, tokens: Tokens) -> int:
        return self.fed

    def is_line(self, tokens: Tokens) -> bool:
        """Whether nothing was fed after the text; otherwise it is a tree."""
        return not self.fed


@dataclass(frozen=True)
class DraftPhrase(Drafting):
    """Draft up to ``n`` tokens after a text in one pass, along candidates.

    ``text`` ends with the tokens of a tree's nodes, in the order of ``parents`` (see
    ``core.candidate_tree``). The first ``candidates`` nodes are phrases to try. The
    draft draws a token after the bare text. If a candidate has that token, the draft
    draws the next one from the candidate's row, and so on:

        text ── x ─┬── a ── b ── c      drawn: a, then b, then e: three tokens
                   └── d

    So it drafts the same tokens as ``Propose`` with the same coins, and each token has
    the q that it was drawn from. Candidates merely save passes.

    ``likeliest_count``: for how many of the last nodes to return the likeliest next
    token. These nodes are fed for no other purpose.
    """

    parents: tuple[int, ...]
    candidates: int = 0
    likeliest_count: int = 0

    name: ClassVar[str] = "draft_phrase"
    payload_type: ClassVar = DraftedPhrase
    gives_distributions: ClassVar[bool] = True

    def within(self, tokens_left: int) -> DraftPhrase:
        """Unchanged: its text already contains every token that is fed."""
        return self

    @property
    def bare_text(self) -> AnyText:
        """The text without the tree's nodes."""
        return first_tokens(self.text, len(self.text) - len(self.parents))

    @property
    def last(self) -> int:
        return len(self.parents)

    def concerns(self, text: AnyText) -> bool:
        return begins_with(self.bare_text, text)

    def run(self, model: Model, run: DecodingRun) -> Output:
        rows = model.tree(self.text, self.parents, run.sampler)
        tokens: list[int] = []
        q_rows: list[Row] = []
        node: int | None = TEXT
        while node is not None and len(tokens) < self.n:
            q = rows[node + 1]
            position = len(self.bare_text) + len(tokens)
            token = run.coins.choose(q, position, "draft")
            tokens.append(token)
            q_rows.append(q)
            node = self._candidate_after(node, token)

        last_rows = rows[len(rows) - self.likeliest_count :]
        likeliest = tuple(last_rows.argmax(-1).tolist())
        drafted_rows = stacked(q_rows, model.vocab)
        return Output((tuple(tokens), likeliest), drafted_rows)

    def _candidate_after(self, node: int, token: int) -> int | None:
        """The candidate after ``node`` that has ``token``, if any."""
        first = len(self.bare_text)
        for candidate in range(self.candidates):
            follows = self.parents[candidate] == node
            if follows and self.text[first + candidate] == token:
                return candidate
        return None

    def result(self, output: Output, kept: int, fed: int, to_drafts: ToDrafts) -> Given:
        (tokens, likeliest), rows = output
        phrase = Phrase(to_drafts(tokens, rows), likeliest)
        fed_beyond_text = max(0, kept + fed - len(self.bare_text))
        return Given(phrase, tokens, DraftedPhrase(fed_beyond_text, likeliest))

    def recorded(self, event: OwnEvent, recording: RecordedRun) -> Output:
        rows = certain(event.tokens, recording.vocab)
        return Output((event.tokens, event.payload.likeliest), rows)

    def is_recorded(self, event: OwnEvent) -> bool:
        if event.cancelled:
            return True  # it has no result
        fed_beyond_text = event.payload.drafts_fed(event.tokens)
        text_length = event.kept + event.fed - fed_beyond_text
        is_same_text = text_length == len(self.bare_text)
        return is_same_text and len(event.tokens) <= self.n
