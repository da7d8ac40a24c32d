"""Assisted generation: speculative decoding whose draft length follows the draft's
confidence."""

from __future__ import annotations

from speclib.core.sampling import Drafted, ids
from speclib.core.settings import require_counts, require_one_of
from speclib.core.verification import verify
from speclib.worlds.world import World

from .method_facts import About


def assisted(
    world: World,
    num_assistant_tokens: int = 20,
    schedule: str = "constant",
    confidence_threshold: float = 0.4,
) -> None:
    """Drafts until the draft is unsure; then the target tests all drafts, as in SD.

    The draft stops at ``num_assistant_tokens``, at an end token, or at a token whose
    probability is below ``confidence_threshold`` (0: never). That token is still
    tested. The draft never writes the last token that the limit allows, since the
    target writes it anyway.

    ``schedule="heuristic"``: two more draft tokens next time if all were accepted, else
    one fewer, but at least one. ``"constant"``: always the same number. The defaults
    are those of transformers 5.23.

    Source: Gante 2023, "Assisted Generation: a new direction toward low-latency text
    generation"; transformers 5.23, ``AssistedCandidateGenerator``; confidence: its
    ``ConfidenceCriteria``.
    Differences from transformers: none in a request's tokens or forward passes; in
    both, each model's first pass is its prefill. Every request starts with the initial
    number (there: "heuristic_transient"; its "heuristic" carries the number over to the
    next request). If scikit-learn is installed, transformers also moves the threshold
    along the ROC curve of past tests; here it is fixed. After a rejection, transformers
    feeds two tokens to the next draft pass; here only the tokens that the draft's KV
    cache lacks are fed.
    """
    require_one_of("schedule", schedule, ("constant", "heuristic"))
    require_counts(num_assistant_tokens=num_assistant_tokens)
    draft_length = num_assistant_tokens
    while world.going:
        draft: tuple[Drafted, ...] = ()
        length = min(draft_length, world.left - 1)
        if length:
            draft = world.wait(
                world.draft.propose(world.text, length, confidence=confidence_threshold)
            )
        rows = world.wait(world.target.score(world.text + ids(draft), last=len(draft)))
        verified = verify(world, draft, rows)
        world.commit(verified.tokens)

        if schedule == "heuristic":
            all_accepted = len(verified.accepted) == len(draft)
            draft_length = (
                draft_length + 2 if all_accepted else max(1, draft_length - 1)
            )


ABOUT = About(
    name="Assisted decoding",
    variants=(
        {},
        {
            "num_assistant_tokens": 2,
            "schedule": "heuristic",
            "confidence_threshold": 0.0,
        },
    ),
)
