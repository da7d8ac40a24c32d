"""Assisted generation: speculative decoding whose draft length follows the draft's confidence."""

from speclib.core.sampling import ids
from speclib.core.verification import verify
from speclib.errors import SpeclibError


def assisted(
    world,
    num_assistant_tokens: int = 20,
    schedule: str = "constant",
    confidence_threshold: float = 0.4,
):
    """The draft goes on until it has ``num_assistant_tokens``, has written an end token, or was
    less sure of a token than ``confidence_threshold`` (0: never); that token is still tested. Then
    the target scores them all and adds one of its own, as in speculative decoding. It never drafts
    the last token there is room for: the target gives that one anyway.

    ``schedule="heuristic"``: two more tokens next time if all passed, otherwise one fewer, at least
    one; ``"constant"``: always as many. Defaults are those of transformers 5.23.

    Source: Gante 2023, "Assisted Generation: a new direction toward low-latency text generation";
    transformers 5.23, ``AssistedCandidateGenerator``; confidence: its ``ConfidenceCriteria``.
    Differences from transformers: none in tokens or forward passes of a request; the prefill is the
    first pass of each model in both. Every request starts afresh (there: "heuristic_transient";
    its "heuristic" carries the number over to the next request). Where scikit-learn is installed,
    transformers also moves the threshold along the ROC curve of past tests; here it stays. There,
    a draft that was rejected feeds two tokens to its next pass, here only those it lacks.
    """
    if schedule not in ("constant", "heuristic"):
        raise SpeclibError(f"schedule is {schedule!r}: give 'constant' or 'heuristic'")
    if num_assistant_tokens < 1:
        raise SpeclibError(
            f"num_assistant_tokens is {num_assistant_tokens}: give at least 1"
        )
    number = num_assistant_tokens
    while world.going:
        room = min(number, world.left - 1)
        draft = (
            world.wait(
                world.draft.propose(world.text, room, confidence=confidence_threshold)
            )
            if room
            else ()
        )
        rows = world.wait(world.target.score(world.text + ids(draft), last=len(draft)))
        verdict = verify(world, draft, rows)
        world.commit(verdict.tokens)
        if schedule == "heuristic":
            passed = len(verdict.accepted) == len(draft)
            number = number + 2 if passed else max(1, number - 1)
