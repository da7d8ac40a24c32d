"""Ouroboros: speculative decoding that drafts with phrases and appends phrases.

A phrase is a few tokens that once followed some token; a pool stores phrases under that
token. The draft writes most phrases ahead of itself, in the window of ``lookahead``.
The others are the target's answers to rejected drafts. With gamma = 4 a round is

    text ── d1 ── d2 ── d3 ── d4 ─┬─ a1 ── a2 ── a3      phrases that once
                                  └─ b1 ── b2            followed d4

where d1 .. d4 may have taken the draft model fewer than four passes, since it uses
phrases, too. The target scores the whole tree in one pass. Its answers after the
rejected tokens become new phrases, and correct the phrases that were tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from speclib.core.candidate_tree import CandidateTree, merged
from speclib.core.sampling import Drafted, Rows, Tokens, ids
from speclib.core.settings import require_counts
from speclib.core.verification import TEXT, offer, verify_tree
from speclib.worlds.world import World

from .lookahead import Pool, Window, window_span
from .method_facts import About


def ouroboros(
    world: World,
    gamma: int,
    phrases: int = 3,
    window: int = 20,
    ngram: int = 7,
    guesses: int = 20,
) -> None:
    """Drafts tokens with phrases, and tests further phrases after them.

    ``gamma``: how many tokens are drafted.
    ``phrases``: how many phrases of the pool are tested after them.
    ``window``, ``ngram``, ``guesses``: settings of the lookahead decoding that drafts
    (see ``lookahead``); the pool keeps ``guesses`` phrases for each token.

    *Drafting with phrases.* The draft model uses lookahead decoding, with the window
    and n-grams of ``lookahead``: a pass drafts one token, and one more for each token
    of a phrase that the draft itself would have written. With ``window`` 0 each pass of
    the draft writes one token.

    *Lengthening.* The pool's latest ``phrases`` that once followed the last drafted
    token are added after it, as a tree. A token x of a phrase is accepted with
    probability p(x); siblings that fail are removed from p. Drafted tokens are tested
    with the ratio test.

    *Phrases from the verification.* Starting after each rejected or untested draft, the
    target's answers form a phrase, up to and including the first answer that differs
    from the next drafted token. A phrase that was tried is replaced with the target's
    answers along it. Each answer follows the tried tokens, so after the first answer
    that differs from them, the rest is a guess. The pool keeps the latest phrases for
    each token; they have at most ``ngram`` - 1 tokens.

    *Why it is lossless.* A coin belongs to a position of the text and to a purpose,
    such as drafting. In drafting, the pool changes only the number of passes. In
    lengthening, phrases are fixed before the target's pass, and are tested with coins
    that were never read before. One danger remains. The pool depends on the drafts that
    follow a rejected one, and the next round reads the draft coins of their positions
    again. But that round drafts the next ``gamma`` positions, which include all of
    these positions, and its phrases depend only on the last draft, and follow it. So no
    token before such a position depends on the position's draft coin. If the context
    cuts the draft short, no phrase is added.

    Source: Zhao et al. 2024, "Ouroboros: Generating Longer Drafts Phrase by Phrase for
    Faster Speculative Decoding"; the defaults are from ``ouroboros`` in its published
    code (github.com/thunlp/Ouroboros, 7dac65b, ouroboros/ouroboros.py).
    Differences from the paper: phrases are not carried over from earlier requests (its
    warm start); each request starts with an empty pool.
    Differences from that code, which

    - is greedy only; here any sampler can be used, and is lossless;
    - keeps only whole phrases from the verification; here shorter ones are kept, too;
    - credits a phrase that matches to its end with one token too few;
    - corrects tried phrases only if all drafts were accepted: if one failed, line 103
      counts the phrases before line 115 joins them, so the default three count as none;
      here they are always corrected;
    - starts its window with random tokens of the prompt; here they are in order;
    - feeds phrases with a common prefix separately; here the prefix is fed once.

    Three more choices are ours: no phrase is added to a draft with an end token; the
    window continues from drafts that are rejected later, and is not moved back; and
    near the end of the models' context each pass of the draft writes one token.
    """
    require_counts(least=0, phrases=phrases, window=window)
    require_counts(guesses=guesses)
    require_counts(least=3, ngram=ngram)
    longest = ngram - 1  # a phrase is an n-gram without its first token
    pool = Pool(guesses)
    levels_ahead = None
    if window:
        levels_ahead = Window(world.text, window_span(window, ngram), height=ngram - 1)

    while world.going:
        drafted = draft_by_phrases(world, gamma, pool, levels_ahead)
        last_token = (world.text + ids(drafted))[-1]
        tried = pool.starting_with(last_token)[:phrases]
        tree = lengthened(world, drafted, tried)

        scoring = world.target.score_tree(
            world.text,
            tree.tokens,
            tree.parents,
            likeliest_count=len(tree.tokens),
            tested=True,
        )
        rows = world.wait(scoring)
        verified = verify_tree(world, tree, rows)

        answers = Answers(tree, answers_after_nodes(tree, rows, verified.tokens))
        first_failed = len(verified.accepted)
        learn_from_failed_drafts(pool, drafted, first_failed, answers, longest)
        mend_tried_phrases(pool, drafted, last_token, tried, answers, longest)
        world.commit(verified.tokens)


# -- drafting --------------------------------------------------------------------------
def draft_by_phrases(
    world: World, gamma: int, pool: Pool, window: Window | None
) -> tuple[Drafted, ...]:
    """Drafts ``gamma`` tokens after the world's text with lookahead decoding.

    They are the same tokens that the draft would write one per pass; without a
    ``window`` it does so. The window's n-grams are added to the ``pool``.
    """
    if window is None:
        return world.wait(world.draft.propose(world.text, gamma))

    wanted = min(gamma, world.left)
    drafted: tuple[Drafted, ...] = ()
    while len(drafted) < wanted:
        text = world.text + ids(drafted)
        left = wanted - len(drafted)
        window_fits = len(text) + max(left, window.span) <= world.context
        if not window_fits:
            return drafted + world.wait(world.draft.propose(text, left))

        # The last token needs no candidate: the pass itself writes it.
        last_token = text[-1]
        paths = [tail[: left - 1] for tail in pool.starting_with(last_token)]
        tokens, parents = merged(paths)
        phrase = world.wait(
            world.draft.draft_phrase(
                text,
                left,
                tokens + window.tokens,
                parents + window.parents(first=len(tokens)),
                candidates=len(tokens),
                likeliest_count=window.lowest_width,
            )
        )
        drafted += phrase.drafted
        for written in window.ngrams(last_token, phrase.likeliest):
            pool.add(written)
        window.move(phrase.likeliest)
    return drafted


def lengthened(
    world: World, drafted: tuple[Drafted, ...], phrases: Sequence[Tokens]
) -> CandidateTree:
    """The drafted line, followed by the ``phrases`` as a tree."""
    tokens_left = min(world.left - 1, world.context - len(world.text)) - len(drafted)
    has_ended = any(draft.token in world.eos for draft in drafted)
    if has_ended or tokens_left < 1:
        phrases = ()
    offered = offer(world, [phrase[:tokens_left] for phrase in phrases])

    last_drafted = len(drafted) - 1
    parents = list(range(TEXT, last_drafted))
    for parent in offered.parents:
        is_first = parent == TEXT
        parents.append(last_drafted if is_first else len(drafted) + parent)
    return CandidateTree(drafted + offered.drafted, tuple(parents))


# -- learning from the verification ----------------------------------------------------
class Answers(NamedTuple):
    """What the target writes after the text, and after every node of a ``tree``."""

    tree: CandidateTree
    tokens: Tokens  # the first follows the text, the next ones node 0, 1, ...

    def after(self, node: int) -> int:
        return self.tokens[node + 1]

    def along(self, node: int, phrase: Tokens) -> Tokens:
        """What the target writes after ``node`` and along the ``phrase`` from there.

        () if none of the phrase's tokens is in the tree.
        """
        written = [self.after(node)]
        for token in phrase:
            child = child_with(self.tree, node, token)
            if child is None:
                break
            node = child
            written.append(self.after(node))
        was_tried = len(written) > 1
        return tuple(written) if was_tried else ()


def answers_after_nodes(tree: CandidateTree, rows: Rows, committed: Tokens) -> Tokens:
    """What the target writes after the text, then after every node.

    Along the accepted path these are the ``committed`` tokens, elsewhere the target's
    likeliest tokens.
    """
    # Row 0 follows the text, and row n + 1 follows node n.
    answers: list[int] = rows.argmax(-1).tolist()
    node: int | None = TEXT
    for token in committed:
        if node is None:
            break
        answers[node + 1] = token
        node = child_with(tree, node, token)
    return tuple(answers)


def child_with(tree: CandidateTree, node: int, token: int) -> int | None:
    """The child of ``node`` with this ``token``, or None."""
    for child in tree.children(node):
        if tree.drafted[child].token == token:
            return child
    return None


def learn_from_failed_drafts(
    pool: Pool,
    drafted: tuple[Drafted, ...],
    first_failed: int,
    answers: Answers,
    longest: int,
) -> None:
    """Adds the target's answers after the drafted tokens that failed, as phrases.

    ``first_failed``: the index of the first one; the tokens after it were not tested.
    If all drafts were accepted, nothing is added.
    """
    failed_nodes = range(first_failed, len(drafted))
    failed_tokens = ids(drafted[first_failed:])
    answers_after_them = tuple(answers.after(node) for node in failed_nodes)
    for ngram in ngrams_of_answers(failed_tokens, answers_after_them, longest):
        pool.add(ngram)


def ngrams_of_answers(
    tokens: Tokens, answers: Tokens, longest: int
) -> Iterator[Tokens]:
    """An n-gram for each of ``tokens``: the token, and what the target wrote after it.

    ``answers``: what the target wrote after each token. An n-gram continues as long as
    each answer equals the next token, and has up to ``longest`` answers::

        tokens     a   b   c   d
        answers    b   x   d   y        gives  a b x,  b x,  c d y,  d y
    """
    for start, first_token in enumerate(tokens):
        phrase: Tokens = ()
        for index in range(start, min(start + longest, len(tokens))):
            phrase += (answers[index],)
            goes_on = tokens[index + 1 : index + 2] == (answers[index],)
            if not goes_on:
                break
        yield (first_token, *phrase)


def mend_tried_phrases(
    pool: Pool,
    drafted: tuple[Drafted, ...],
    last_token: int,
    tried: Sequence[Tokens],
    answers: Answers,
    longest: int,
) -> None:
    """Replaces each phrase that was tried with what the target wrote along it.

    The phrases followed the last drafted token, ``last_token``.
    """
    last_drafted = len(drafted) - 1
    for phrase in reversed(tried):  # so that the latest stays the latest
        mended = answers.along(last_drafted, phrase)[:longest]
        if mended:
            pool.replace((last_token, *phrase), (last_token, *mended))


# -- facts -----------------------------------------------------------------------------
ABOUT = About(
    name="Ouroboros",
    narrow="window=0",
    variants=(
        {"window": 2, "ngram": 3, "guesses": 2, "phrases": 2},
        {"window": 0, "ngram": 4},
    ),
)
