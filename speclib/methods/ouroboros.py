"""Ouroboros: speculative decoding that drafts and lengthens its drafts by phrases.

Each model feeds on what the other has thrown away. A phrase is a few tokens that once
came after some token; the pool keeps phrases by that token. With gamma = 4 a round is

    text ── d1 ── d2 ── d3 ── d4 ─┬─ a1 ── a2 ── a3      phrases that followed d4
                                  └─ b1 ── b2            before, wherever that was

where d1 .. d4 took the draft model fewer than four passes, since it went along phrases
too. The target scores all of it in one pass. What it says after the tokens that failed
makes new phrases, and mends those that were tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from speclib.core.candidate_tree import CandidateTree, merged
from speclib.core.sampling import Drafted, Rows, Tokens, ids
from speclib.core.settings import require_counts
from speclib.core.verification import TEXT, offer, verify_tree
from speclib.worlds.world import World

from .lookahead import Pool, Window


def ouroboros(
    world: World,
    gamma: int,
    phrases: int = 3,
    window: int = 20,
    ngram: int = 7,
    guesses: int = 20,
) -> None:
    """Drafts ``gamma`` tokens by phrases, and tests ``phrases`` more phrases after
    them.

    *Drafting by phrases.* The draft model is decoded by lookahead decoding, with the
    window and the n-grams of ``lookahead``: a pass drafts one token, and one more for
    each token of a phrase that the draft itself would have written. With ``window`` 0
    the draft writes a token a pass.

    *Lengthening.* The latest ``phrases`` of the pool that begin with the last drafted
    token follow it, as a tree. A token x of them passes with probability p(x); where
    siblings fail, p goes on without them. Drafted tokens pass by the ratio test.

    *Phrases from the verification.* After each drafted token that failed or came after
    it, the target has said what it would write. As long as that is the next drafted
    token, it makes a phrase. A phrase that was tried is replaced by what the target
    said along it. The pool keeps the latest ``guesses`` phrases for each token, of at
    most ``ngram`` - 1 tokens.

    *Why it is lossless.* The pool never decides which tokens are drafted, only in how
    many passes. It does depend on drafts that failed, whose coins are read again. But a
    place whose draft failed is drafted again in the next round, so no phrase stands
    there.

    Source: Zhao et al. 2024, "Ouroboros: Generating Longer Drafts Phrase by Phrase for
    Faster Speculative Decoding"; the defaults are those of its published code.
    Differences from the paper: phrases are not carried over from earlier requests (its
    warm start); each request stands alone and begins with an empty pool.
    Differences from the published code: it is greedy only, here any sampler is
    lossless. It keeps only whole phrases of the verification, here shorter ones, too;
    it credits a phrase that matches to its end with one token less. Phrases that begin
    alike are fed once. The window begins with the prompt's tokens in order, there with
    random ones of it. Nothing follows a drafted end token. Near the end of the models'
    context the draft writes a token a pass.
    """
    require_counts(least=0, phrases=phrases, window=window)
    require_counts(guesses=guesses)
    require_counts(least=3, ngram=ngram)
    pool = Pool(guesses)
    ahead = None
    if window:
        ahead = Window(world.text, places=window + ngram - 3, height=ngram - 1)
    while world.going:
        if ahead is None:
            drafted = world.wait(world.draft.propose(world.text, gamma))
        else:
            drafted = draft_by_phrases(world, gamma, pool, ahead)
        last_token = (world.text + ids(drafted))[-1]

        tried = pool.starting_with(last_token)[:phrases]
        tree = lengthened(world, drafted, tried)
        scoring = world.target.score_tree(
            world.text, tree.tokens, tree.parents, looked=len(tree.tokens), tested=True
        )
        rows = world.wait(scoring)
        verified = verify_tree(world, tree, rows)

        # Row 0 follows the text, row i + 1 drafted token i.
        said = said_after(tree, rows, verified.tokens)
        failed = len(verified.accepted)  # the first drafted token that did not pass
        failed_tokens = ids(drafted[failed:])
        said_after_failed = said[failed + 1 : len(drafted) + 1]
        for phrase in agreed(failed_tokens, said_after_failed, longest=ngram - 1):
            pool.add(phrase)

        last_drafted = len(drafted) - 1
        for tail in reversed(tried):  # so that the latest stays the latest
            mended = said_along(tree, last_drafted, tail, said)[: ngram - 1]
            if mended:
                pool.replace((last_token, *tail), (last_token, *mended))
        world.commit(verified.tokens)


def draft_by_phrases(
    world: World, gamma: int, pool: Pool, ahead: Window
) -> tuple[Drafted, ...]:
    """``gamma`` tokens after the world's text; the draft is decoded by lookahead.

    They are those that the draft would write a token a pass. The window's n-grams go
    into the ``pool``.
    """
    drafted: tuple[Drafted, ...] = ()
    while len(drafted) < gamma:
        text = world.text + ids(drafted)
        left = gamma - len(drafted)
        has_room = len(text) + max(left, ahead.places) <= world.context
        if not has_room:
            return drafted + world.wait(world.draft.propose(text, left))

        # The last token that is wanted needs no candidate: the pass itself gives it.
        last_token = text[-1]
        paths = [tail[: left - 1] for tail in pool.starting_with(last_token)]
        tokens, parents = merged(paths)
        phrase = world.wait(
            world.draft.draft_phrase(
                text,
                left,
                tokens + ahead.tokens,
                parents + ahead.parents(first=len(tokens)),
                candidates=len(tokens),
                looked=ahead.lowest_width,
            )
        )
        drafted += phrase.drafted
        for written in ahead.ngrams(last_token, phrase.likeliest):
            pool.add(written)
        ahead.move(phrase.likeliest)
    return drafted


def lengthened(
    world: World, drafted: tuple[Drafted, ...], tails: Sequence[Tokens]
) -> CandidateTree:
    """The drafted line, and after its last token the ``tails`` as a tree."""
    room = min(world.left - 1, world.context - len(world.text)) - len(drafted)
    has_ended = any(draft.token in world.eos for draft in drafted)
    if has_ended or room < 1:
        tails = ()
    offered = offer(world, [tail[:room] for tail in tails])

    last_drafted = len(drafted) - 1
    parents = list(range(TEXT, last_drafted))
    for parent in offered.parents:
        is_first = parent == TEXT
        parents.append(last_drafted if is_first else len(drafted) + parent)
    return CandidateTree(drafted + offered.drafted, tuple(parents))


def said_after(tree: CandidateTree, rows: Rows, committed: Tokens) -> Tokens:
    """What the target says after the text, and after every node.

    Along the way that was followed it is what was ``committed``, elsewhere what the
    target finds likeliest.
    """
    said: list[int] = rows.argmax(-1).tolist()
    node: int | None = TEXT
    for token in committed:
        if node is None:
            break
        said[node + 1] = token
        node = child_with(tree, node, token)
    return tuple(said)


def said_along(tree: CandidateTree, node: int, tail: Tokens, said: Tokens) -> Tokens:
    """What the target says after ``node`` and along ``tail``; () where none of it was
    tried."""
    words = [said[node + 1]]
    for token in tail:
        child = child_with(tree, node, token)
        if child is None:
            break
        node = child
        words.append(said[node + 1])
    has_tried = len(words) > 1
    return tuple(words) if has_tried else ()


def child_with(tree: CandidateTree, node: int, token: int) -> int | None:
    """The child of ``node`` that carries ``token``, if there is one."""
    for child in tree.children(node):
        if tree.drafted[child].token == token:
            return child
    return None


def agreed(tokens: Tokens, said: Tokens, longest: int) -> Iterator[Tokens]:
    """For each of ``tokens`` that token, and what the target said from there on.

    ``said``: what it said after each of them. It is followed for as long as it is the
    next of the tokens, and for up to ``longest`` tokens.
    """
    for start, first_token in enumerate(tokens):
        tail: Tokens = ()
        for place in range(start, min(start + longest, len(tokens))):
            tail += (said[place],)
            goes_on = tokens[place + 1 : place + 2] == (said[place],)
            if not goes_on:
                break
        yield (first_token, *tail)
