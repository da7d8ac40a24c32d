"""DuoDecoding: the draft on a CPU writes while the target on a GPU checks.

Like PEARL's post-verify, but where the draft is not sure it writes several shorter
sequences, and the target's own next token chooses among them:

    target scores     text  w1 w2 w3                 the window, from the round before
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

from .page_facts import GAMMA, About


def duodecoding(
    world: World, gamma: int, k: int | None = None, most: int = 8, first: int = 1
) -> None:
    """Drafts ``gamma`` tokens in all, in one or more sequences, *while* the target
    scores.

    The target scores the ``window``: the tokens of the sequence chosen last that still
    await it. If all of them pass, the target's own next token chooses among the new
    sequences. The one that begins with it, if any, is the next window. See
    ``DraftSequences`` for how many sequences there are.

    A round takes max(gamma * t_draft, t_target), so the paper's gamma is
    c = t_target / t_draft, measured.

    ``k``: always so many sequences; None is as many as the draft's own chances say, at
    most ``most``. ``first``: the first round's budget, small since no token is out
    before that round ends (TTFT). ``most`` and ``first`` are the published code's.

    Drafts are greedy at every temperature, and pass when they are what the target draws
    there itself. So the output is plain decoding's own, token for token.

    Source: Lv et al. 2025, section 3, Algorithm 1.
    Differences from the paper: it verifies by speculative sampling, and its code
    handles greedy decoding only; with a draft that is certain of its tokens both rules
    pass a token x with probability p(x). The published c is typed in; here it is
    measured. A sequence that the target's token does not choose is dropped, its KV too,
    except for what the next text shares with it.
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
    """The rest of the sequence that begins with the target's own token; () for none.

    The trace counts this as one test: of the chosen sequence's first token as accepted,
    or else of the likeliest sequence's first token as rejected.
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
