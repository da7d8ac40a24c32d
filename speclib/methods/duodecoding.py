"""DuoDecoding: the draft on a CPU writes while the target on a GPU verifies.

Like PEARL's post-verify, but a draft that is unsure writes several shorter sequences,
and the target's own next token chooses among them:

    target scores     text  w1 w2 w3                 the window, from the previous round
    draft writes                      a1 a2          sequence 1
                                      b1 b2          sequence 2: another first token
    the target's token after w3 is b1   ->   w = b2, the rest of sequence 2, is the next
                                             window
"""

from __future__ import annotations

from speclib.core.sampling import Drafted, Tokens, ids
from speclib.core.settings import require_counts
from speclib.core.verification import match
from speclib.worlds.world import World

from .method_facts import GAMMA, About


def duodecoding(
    world: World, gamma: int, k: int | None = None, most: int = 8, first: int = 1
) -> None:
    """Drafts ``gamma`` tokens in all, in one or more sequences, *while* the target
    scores.

    The target scores the ``window``: the tokens of the last chosen sequence that are
    still untested. If all of them pass, the target's own next token chooses among the
    new sequences: the sequence that begins with this token, if any, becomes the next
    window. See ``DraftSequences`` for the number of sequences.

    A round takes max(gamma * t_draft, t_target), so the paper sets gamma to the
    measured c = t_target / t_draft.

    ``k``: a fixed number of sequences; None: as many as the draft's own probabilities
    suggest, but at most ``most``. ``first``: the first round's budget, small because no
    token is committed before that round ends (TTFT). ``most`` and ``first`` are from
    the published code.

    Drafts are greedy at every temperature, and pass if the target itself draws the same
    token at that position. So the output is plain decoding's own, token for token.

    Source: Lv et al. 2025, section 3, Algorithm 1.
    Differences from the paper: it verifies by speculative sampling, and its code
    handles greedy decoding only; since the drafts' q is one-hot, both rules accept a
    token x with probability p(x). The published code hard-codes c; here it is measured.
    A sequence that is not chosen is dropped. Its KV cache is dropped, too, except for
    the part that the next text shares with it.
    """
    require_counts(k=k, most=most, first=first)
    window: tuple[Drafted, ...] = ()
    budget = first
    while world.going:
        text = world.text + ids(window)
        rows, sequences = world.all(
            world.target.score(text, last=len(window)),
            world.draft.draft_sequences(text, budget, k, most),
        )
        verified = match(world, window, rows)

        # Marks come before the commit; the chosen token itself is verified.extra.
        all_passed = len(verified.accepted) == len(window)
        window = choose_sequence(world, sequences, verified.extra) if all_passed else ()
        world.commit(verified.tokens)
        budget = gamma


def choose_sequence(
    world: World, sequences: tuple[tuple[Drafted, ...], ...], target_token: Tokens
) -> tuple[Drafted, ...]:
    """The rest of the sequence that begins with the target's token, or () if none does.

    The trace counts this as one test: the chosen sequence's first token is accepted, or
    else the likeliest sequence's first token is rejected.
    """
    if not sequences:
        return ()
    for sequence in sequences:
        if ids(sequence[:1]) == target_token:
            world.mark(sequence[0], "accepted")
            return sequence[1:]
    world.mark(sequences[0][0], "rejected")
    return ()


def sequence_count(k: int | None) -> str:
    """How a timeline writes ``k``."""
    return f"k = {k}" if k else "dynamic k"


ABOUT = About(
    name="DuoDecoding",
    labels={**GAMMA, "k": sequence_count},
    variants=({}, {"k": 1}, {"k": 3}, {"most": 2, "first": 3}),
)
