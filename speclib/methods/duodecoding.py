"""DuoDecoding: the draft on a CPU writes while the target on a GPU checks what it wrote before."""

from speclib.core.sampling import ids
from speclib.core.verification import match
from speclib.errors import SpeclibError


def duodecoding(world, gamma: int, k: int | None = None, most: int = 8, first: int = 1):
    """The draft spends a budget of ``gamma`` tokens on one sequence or, where it is not sure, on
    several shorter ones that differ in their first token (see ``Branch``), *while* the target
    scores the ``window``, the tokens of the chosen sequence that still await it. If all of them
    pass, the target's own next token chooses among the new sequences: the one that begins with it,
    if any, is the next window. One round takes max(gamma * t_draft, t_target), so the paper's gamma
    is c = t_target / t_draft, measured.

    ``k``: always so many sequences; None: as many as the draft's own chances say, at most ``most``.
    ``first``: the first round's budget, since nothing is out before its end (TTFT).

    Drafts are greedy at every temperature, and pass when they are what the target draws there
    itself: the output is plain decoding's own, token for token.

    Source: Lv et al. 2025, section 3, Algorithm 1.
    Differences from the paper: it verifies by speculative sampling, published for greedy decoding
    only; with a draft that is certain of its tokens both rules pass a token x with probability
    p(x). The published c is typed in; here it is measured. A sequence that the target's token does
    not choose is dropped, its KV too, except for what the next text shares with it.
    """
    for name, value in (("k", 1 if k is None else k), ("most", most), ("first", first)):
        if value < 1:
            raise SpeclibError(f"{name} is {value}: give at least 1")
    window, budget = (), first
    while world.going:
        text = world.text + ids(window)
        rows, sequences = world.all(
            world.target.score(text, last=len(window)),
            world.draft.branch(text, budget, k, most),
        )
        accepted, own = match(world, window, rows)
        window, passed = (), len(accepted) == len(window)
        if passed and sequences[0]:
            chosen = next((s for s in sequences if ids(s[:1]) == own), ())
            world.mark(
                (chosen or sequences[0])[0], "accepted" if chosen else "rejected"
            )
            window = chosen[1:]
        world.commit(accepted + own)
        budget = gamma
