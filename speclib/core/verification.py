"""How drafted tokens are tested against the target's distributions.

There are three rules. Two of them test drafts in a line and drafts in a tree:

                    in a line       in a tree
    ratio test      verify          verify_tree   draft by draft; equal in distribution
    block test      verify_block    -             keeps the most; equal in distribution
    exact match     match           match_tree    the target's own draws

Row i of ``rows`` is p after the committed text and i drafted tokens; in a tree, row 0
follows the text and row i + 1 follows node i. ``world`` provides its text and its
coins, and records in the trace what became of each draft.

This module uses no model and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, takewhile
from typing import NamedTuple, Protocol

import numpy as np

from .candidate_tree import CandidateTree, merged
from .sampling import CoinTosser, Drafted, Row, Rows, Tokens, ids, residual
from .text import AnyText

ACCEPT = 0  # the outcome of a coin that accepts a drafted token
TEXT = -1  # the parent of a tree's first nodes: the text itself


class Verified(NamedTuple):
    """The result of testing drafted tokens.

    ``accepted``: the drafted tokens that passed. ``extra``: one more token, or none.
    After a rejection it is the replacement. If all drafts were accepted and a row is
    left, it is the target's own next token (the bonus).
    """

    accepted: Tokens
    extra: Tokens

    @property
    def tokens(self) -> Tokens:
        """All tokens that may be committed."""
        return self.accepted + self.extra


class Outcome(NamedTuple):
    """A possible outcome of a test: the number of accepted drafts, and the next
    token."""

    accepted: int
    token: int


class Writing(Protocol):
    """What a test needs from a world: its text, its coins, and marks for the trace."""

    @property
    def text(self) -> AnyText: ...
    @property
    def coins(self) -> CoinTosser: ...
    def mark(self, drafted: Drafted, outcome: str) -> None:
        """Records the outcome of a drafted token: "accepted" or "rejected"."""
        ...


class TakesGuesses(Protocol):
    """What ``offer`` needs from a world."""

    @property
    def eos(self) -> frozenset[int]: ...
    @property
    def left(self) -> int: ...
    def guess(
        self, tokens: Iterable[int], row: Row | None = None
    ) -> tuple[Drafted, ...]:
        """``tokens`` as drafts, made without a draft model."""
        ...


# -- in a line -------------------------------------------------------------------------
def verify(
    world: Writing, drafted: Sequence[Drafted], rows: Rows | Sequence[Row]
) -> Verified:
    """Tests ``drafted`` in order with the ratio test, as long as there are rows.

    A token x is accepted if its coin is below min(1, p(x)/q(x)), strictly. The test
    stops at the first rejection, and a draw from norm(max(0, p - q)) replaces that
    token. If all are accepted and a row is left, the next token is drawn from that row.
    So with nothing drafted, this is plain decoding.

    Source: Leviathan et al. 2023, Algorithm 1; PEARL section 2, equation 1.
    """
    accepted: Tokens = ()
    position = len(world.text)
    for draft, p in zip(drafted, rows, strict=False):
        if not _is_accepted(world.coins, draft, p, position):
            world.mark(draft, "rejected")
            left = residual(p, draft.q)
            replacement = world.coins.choose(left, position, "residual")
            return Verified(accepted, (replacement,))
        world.mark(draft, "accepted")
        accepted += (draft.token,)
        position += 1
    return Verified(accepted, _bonus(world, accepted, rows))


def verify_block(
    world: Writing, drafted: Sequence[Drafted], rows: Rows | Sequence[Row]
) -> Verified:
    """Tests ``drafted`` as one block: all drafts are read before the decision.

    The weight of a prefix is the product of its ratios p(x)/q(x), capped at 1 after
    each. Each prefix passes or fails by itself, and the longest prefix that passes is
    kept. The whole block passes with probability weight. A shorter prefix passes with
    probability S / (S + 1 - weight), where S is the sum of max(0, weight * p - q) over
    the tokens that may follow it. After a shorter prefix the next token is drawn from
    norm(max(0, weight * p - q)). So a draft that the ratio test would reject can be
    kept because of the drafts after it. On average the block test accepts no fewer
    tokens than the ratio test, and no rule accepts more.

    Every draft affects what is kept. So a position that is drafted again needs a new
    coin, since its first draft was read (see ``drafting_attempt``). For the same reason
    a single coin decides the length: the first position's, which is never tested again.

    Source: Sun et al. 2024, "Block Verification Accelerates Speculative Decoding",
    Algorithm 2. The paper tosses a coin for each prefix; here a single coin chooses the
    prefix, with the same probabilities.
    """
    tested = min(len(drafted), len(rows))
    weights = beginning_weights(drafted[:tested], rows)
    chances = beginning_chances(weights, drafted[:tested], rows)
    position = len(world.text)
    kept = 0
    if tested:
        kept = world.coins.choose(_lengths_kept(chances), position, "accept")
    for draft in drafted[:kept]:
        world.mark(draft, "accepted")
    accepted = ids(drafted[:kept])
    if kept == tested:
        return Verified(accepted, _bonus(world, accepted, rows))

    world.mark(drafted[kept], "rejected")
    left = residual(weights[kept] * rows[kept], drafted[kept].q)
    return Verified(accepted, (world.coins.choose(left, position + kept, "residual"),))


def beginning_weights(
    drafted: Sequence[Drafted], rows: Rows | Sequence[Row]
) -> list[float]:
    """The products of p(x)/q(x) over the first 0, 1, 2 ... drafts; see verify_block."""
    weights = [1.0]
    for draft, p in zip(drafted, rows, strict=False):
        ratio = float(p[draft.token]) / float(draft.q[draft.token])
        weights.append(min(1.0, weights[-1] * ratio))
    return weights


def beginning_chances(
    weights: Sequence[float], drafted: Sequence[Drafted], rows: Rows | Sequence[Row]
) -> list[float]:
    """The probabilities that the first 0, 1, 2 ... drafts pass, each by itself.

    The empty prefix always passes.
    """
    chances = [1.0]
    for length in range(1, len(weights)):
        weight = weights[length]
        if length == len(drafted):
            chances.append(weight)
            continue
        lacking = weight * rows[length] - drafted[length].q
        mass = float(np.maximum(lacking, 0).sum())
        # Not (mass + 1) - weight: if weight is 1, a tiny mass would be rounded away.
        chances.append(mass / (mass + (1 - weight)) if mass > 0 else 0.0)
    return chances


def _lengths_kept(chances: Sequence[float]) -> Row:
    """The probabilities that the first 0, 1, 2 ... drafts are the longest to pass."""
    lengths = np.zeros(len(chances))
    none_longer = 1.0
    for length in reversed(range(len(chances))):
        lengths[length] = none_longer * chances[length]
        none_longer -= lengths[length]
    return lengths


def match(
    world: Writing, drafted: Sequence[Drafted], rows: Rows | Sequence[Row]
) -> Verified:
    """Tests ``drafted`` in order against the target's own draws.

    A drafted token is accepted if the target draws the same token at its position, with
    plain decoding's own coin. So the output is plain decoding's, token for token, at
    any temperature and under any timing. The ratio test accepts more tokens.

    Source: Timor et al. 2024 (DSI), section 3.1, Algorithm 1, lines 8-9.
    """
    accepted: Tokens = ()
    position = len(world.text)
    for draft, p in zip(drafted, rows, strict=False):
        token = world.coins.choose(p, position, "target")
        if token != draft.token:
            world.mark(draft, "rejected")
            return Verified(accepted, (token,))
        world.mark(draft, "accepted")
        accepted += (token,)
        position += 1
    return Verified(accepted, _bonus(world, accepted, rows))


def _is_accepted(
    coins: CoinTosser, draft: Drafted, p: Row, position: int, index: int = 0
) -> bool:
    """The ratio test: true with probability min(1, p(x)/q(x))."""
    chance = min(1.0, float(p[draft.token]) / float(draft.q[draft.token]))
    accept_or_reject = np.array((chance, 1 - chance))
    outcome = coins.choose(accept_or_reject, position, "accept", index)
    return outcome == ACCEPT


def _bonus(world: Writing, accepted: Tokens, rows: Rows | Sequence[Row]) -> Tokens:
    """The target's own token after the accepted ones, if a row is left for it."""
    if len(rows) <= len(accepted):
        return ()
    position = len(world.text) + len(accepted)
    return (world.coins.choose(rows[len(accepted)], position, "target"),)


# The tests of drafts in a line that a method can use.
LINE_TESTS = {"ratio": verify, "block": verify_block, "exact": match}


def drafting_attempt(test: str, round_number: int) -> int:
    """The index of the coins that a round's drafts are drawn with.

    The ratio test and exact match never read a draft after a rejected one, so a
    position that is drafted again may use its coin again. The block test does read
    them, so every round needs new coins.
    """
    return round_number if test == "block" else 0


# -- in a tree -------------------------------------------------------------------------
def verify_tree(world: Writing, tree: CandidateTree, rows: Rows) -> Verified:
    """The ratio test down a tree, by removal and renormalisation.

    At each position the candidates x are tried in order: x is accepted with probability
    min(1, p(x)/q(x)), strictly. After each rejection, p becomes norm(max(0, p - q)). If
    none is accepted, the token is drawn from the current p.

    The test is lossless if each q is the distribution that its token was drawn from,
    given its earlier siblings; several independent draws from one q also qualify. In
    the trace a position counts once, as in ``match_tree``.

    Source: Yang et al. 2024, "Multi-Candidate Speculative Decoding"; Jeon et al. 2024,
    "Recursive Speculative Decoding".
    """
    accepted: Tokens = ()
    node = TEXT
    while True:
        p = rows[node + 1]
        position = len(world.text) + len(accepted)
        candidates = tree.children(node)
        accepted_node = None
        for index, candidate in enumerate(candidates):
            draft = tree.drafted[candidate]
            if _is_accepted(world.coins, draft, p, position, index):
                accepted_node = candidate
                break
            p = residual(p, draft.q)

        if accepted_node is None:
            _mark_rejected(world, tree, candidates)
            role = "residual" if candidates else "target"
            return Verified(accepted, (world.coins.choose(p, position, role),))
        world.mark(tree.drafted[accepted_node], "accepted")
        accepted += (tree.drafted[accepted_node].token,)
        node = accepted_node


def match_tree(world: Writing, tree: CandidateTree, rows: Rows) -> Verified:
    """Exact match down a tree.

    At each position the target draws its token with plain decoding's own coin, and the
    candidate with this token is accepted. The output is plain decoding's, token for
    token, at any temperature.

    In the trace a position counts once: its accepted candidate, or else its first
    candidate, as rejected. The others were never needed.
    """
    accepted: Tokens = ()
    node = TEXT
    while True:
        position = len(world.text) + len(accepted)
        token = world.coins.choose(rows[node + 1], position, "target")
        candidates = tree.children(node)
        accepted_node = None
        for candidate in candidates:
            if tree.drafted[candidate].token == token:
                accepted_node = candidate
                break

        if accepted_node is None:
            _mark_rejected(world, tree, candidates)
            return Verified(accepted, (token,))
        world.mark(tree.drafted[accepted_node], "accepted")
        accepted += (token,)
        node = accepted_node


def _mark_rejected(world: Writing, tree: CandidateTree, candidates: list[int]) -> None:
    """Marks a position's first candidate as rejected; the others are not marked."""
    if candidates:
        world.mark(tree.drafted[candidates[0]], "rejected")


def offer(world: TakesGuesses, paths: Iterable[Tokens]) -> CandidateTree:
    """Makes ``paths`` a tree of candidates after the world's text.

    No draft model is needed. Each path is cut before its first end token, and before
    the last token that the limit allows, which is left to the target.
    """
    fitting = [_fitting(world, path) for path in paths]
    tokens, parents = merged(fitting)
    drafted = world.guess(tokens)
    return CandidateTree(drafted, parents[: len(drafted)])


def _fitting(world: TakesGuesses, path: Tokens) -> Tokens:
    """The beginning of ``path`` that can be committed before the target's own token."""
    before_end = takewhile(lambda token: token not in world.eos, path)
    return tuple(islice(before_end, world.left - 1))
