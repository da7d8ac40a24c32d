"""Ouroboros: speculative decoding that drafts and lengthens its drafts by phrases.

A phrase is a few tokens that once came after some token; a pool keeps phrases by that
token. Most of them the draft writes ahead of itself, in the window of ``lookahead``.
Others are the target's answers to drafts that failed. With gamma = 4 a round is

    text ── d1 ── d2 ── d3 ── d4 ─┬─ a1 ── a2 ── a3      phrases that followed d4
                                  └─ b1 ── b2            before, wherever that was

where d1 .. d4 may have taken the draft model fewer than four passes, since it went
along phrases, too. The target scores all of it in one pass. What it says after the
tokens that failed makes new phrases, and mends those that were tried.
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
from .page_facts import About


def ouroboros(
    world: World,
    gamma: int,
    phrases: int = 3,
    window: int = 20,
    ngram: int = 7,
    guesses: int = 20,
) -> None:
    """Drafts tokens by phrases, and tests further phrases after them.

    ``gamma``: how many tokens are drafted.
    ``phrases``: how many phrases of the pool are tested after them.
    ``window``, ``ngram``, ``guesses``: of the lookahead decoding that drafts (see
    ``lookahead``); the pool keeps ``guesses`` phrases for each token.

    *Drafting by phrases.* The draft model is decoded by lookahead decoding, with the
    window and the n-grams of ``lookahead``: a pass drafts one token, and one more for
    each token of a phrase that the draft itself would have written. With ``window`` 0
    each pass of the draft writes one token.

    *Lengthening.* The latest ``phrases`` of the pool that once followed the last
    drafted token stand after it, as a tree. A token x of them is accepted with
    probability p(x); where siblings fail, p goes on without them. Drafted tokens are
    tested by the ratio test.

    *Phrases from the verification.* From each drafted token on that was not accepted,
    the target's answers form a phrase, up to and including the first answer that is not
    the next drafted token. A phrase that was tried is replaced by the target's answers
    along it. Each answer follows the tried tokens: behind the first answer that is not
    the tried token, the rest is a guess. The pool keeps the latest phrases for each
    token, of at most ``ngram`` - 1 tokens.

    *Why it is lossless.* A coin belongs to a position of the text and to a purpose,
    such as drafting. In drafting, the pool changes only the number of passes. In
    lengthening, phrases are fixed before the target's pass, and are tested with coins
    that nobody has read. One danger is left. The pool depends on the drafts that came
    after a failed one, and the next round reads the draft coins of their positions
    again. But it drafts the next ``gamma`` positions, which include all of those, and
    phrases hang on the last drafted token alone, behind them. So no token before such a
    position has depended on its draft coin. Where the context cuts the draft short, no
    phrase is added.

    Source: Zhao et al. 2024, "Ouroboros: Generating Longer Drafts Phrase by Phrase for
    Faster Speculative Decoding"; the defaults are those of ``ouroboros`` in its
    published code (github.com/thunlp/Ouroboros, 7dac65b, ouroboros/ouroboros.py).
    Differences from the paper: phrases are not carried over from earlier requests (its
    warm start); each request stands alone and begins with an empty pool.
    Differences from that code, which

    - is greedy only; here it is lossless with any sampler;
    - keeps only whole phrases of the verification; here shorter ones, too;
    - credits a phrase that matches to its end with one token less;
    - mends tried phrases only where all drafts were accepted: where one failed, line
      103 counts them before they are joined (line 115 joins them), which gives none for
      the default three; here they are mended always;
    - begins its window with random tokens of the prompt; here with them in order;
    - feeds phrases that begin alike apart; here their common tokens are fed once.

    Here, besides, no phrase is added to a draft that has an end token, the window goes
    on from drafts that fail later and is not moved back, and near the end of the
    models' context each pass of the draft writes one token.
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
    """``gamma`` tokens after the world's text; the draft is decoded by lookahead.

    They are those that the draft would write a token a pass, as it does where there is
    no ``window``. The window's n-grams go into the ``pool``.
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

        # The last token that is wanted needs no candidate: the pass itself gives it.
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
    """The drafted line, and after its last token the ``phrases`` as a tree."""
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
        """What it writes after ``node`` and along the ``phrase`` from there.

        () where none of the phrase's tokens was in the tree.
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

    Along the way that was followed it is what was ``committed``, elsewhere what the
    target finds likeliest.
    """
    # The row after a node has the node's number + 1, and that after the text is row 0.
    answers: list[int] = rows.argmax(-1).tolist()
    node: int | None = TEXT
    for token in committed:
        if node is None:
            break
        answers[node + 1] = token
        node = child_with(tree, node, token)
    return tuple(answers)


def child_with(tree: CandidateTree, node: int, token: int) -> int | None:
    """The child of ``node`` that carries ``token``, if there is one."""
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
    """Adds the phrases that the target makes of the drafted tokens that failed.

    ``first_failed``: the index of the first one; those after it were not tested. Where
    all of them were accepted there is none.
    """
    failed_nodes = range(first_failed, len(drafted))
    failed_tokens = ids(drafted[first_failed:])
    answers_after_them = tuple(answers.after(node) for node in failed_nodes)
    for ngram in ngrams_of_answers(failed_tokens, answers_after_them, longest):
        pool.add(ngram)


def ngrams_of_answers(
    tokens: Tokens, answers: Tokens, longest: int
) -> Iterator[Tokens]:
    """From each of ``tokens`` an n-gram: the token, and what the target wrote after it.

    ``answers``: what it wrote after each of the tokens. An n-gram goes on for as long
    as an answer is the next of the tokens, and for up to ``longest`` answers::

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
    """Replaces each phrase that was tried by what the target wrote along it.

    They stood after the last drafted token, which is ``last_token``.
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
