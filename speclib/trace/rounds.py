"""What a trace tells of its rounds: where their time goes, what each leaves to the next, how its
drafting branched.

Knows no method, model or clock.
"""

from __future__ import annotations

from .events import Event, Trace

DRAFTING = ("propose", "branch", "grow")  # operations of the draft


def steps(trace: Trace) -> dict:
    """Where the time goes from the end of the first round to the end of the last: counts and
    seconds, by the names that Stats has for them."""
    later = [e for e in trace.events if e.round > 0]
    ends = [e.end for e in trace.commits]
    if len(ends) < 2:
        return {}
    busy, reached = 0.0, ends[0]
    for event in sorted(
        (e for e in later if e.device != "controller"), key=lambda e: e.ts
    ):
        busy += max(0.0, min(event.end, ends[-1]) - max(event.ts, reached))
        reached = max(reached, event.end)

    def seconds(*ops: str) -> float:
        return sum(e.dur for e in later if e.op in ops)

    return {
        "steps": len(ends) - 1,
        "step_seconds": ends[-1] - ends[0],
        "step_busy": busy,
        "step_draft": seconds(*DRAFTING),
        "step_target": seconds("score"),
        "step_verify": seconds("commit"),
    }


# -- the published accounting --------------------------------------------------------------------
def with_tail(trace: Trace) -> tuple[int, float]:
    """(tokens, seconds) where the published code of PEARL and DuoDecoding stops and counts: at the
    first commit after which the tokens, with the drafted ones that still await the target, reach
    the limit. Where none does, at the last commit that has tokens."""
    done, at, limit = 0, 0.0, trace.meta.get("limit", float("inf"))
    for commit, tail in zip(trace.commits, _tails(trace, limit), strict=True):
        if commit.tokens:
            done, at = done + len(commit.tokens), commit.end
        if done + tail >= limit:
            return done + tail, commit.end
    return done, at


def _tails(trace: Trace, limit: float) -> list[int]:
    """Drafts that await the target after each commit: those that the next round's first pass
    scores, unless they were drafted in that round. After a last commit that the limit ended: what
    was drafted beside that round's pass, from a first token that passed on. What is drafted beside
    a pass is asked for after it (so no clock is needed to tell), and before it what it scores."""
    rounds: list[list[Event]] = [[] for _ in range(len(trace.commits) + 1)]
    for event in trace.operations:
        rounds[min(event.round, len(rounds) - 1)].append(event)
    tails = [_awaiting(*two) for two in zip(rounds[:-2], rounds[1:-1], strict=True)]
    full = sum(len(e.tokens) for e in trace.commits) == limit
    return tails + [_begun(rounds[-2]) if full else 0] if trace.commits else []


def _awaiting(before: list[Event], now: list[Event]) -> int:
    score = _pass(now)
    there = (
        score is not None
        and any(e.op in DRAFTING for e in before)
        and not any(e.op in DRAFTING and e.id < score.id for e in now)
    )
    return score.last if there else 0


def _begun(last: list[Event]) -> int:
    score = _pass(last)
    beside = [
        e for e in last if e.op in DRAFTING and score is not None and e.id > score.id
    ]
    return sum(len(e.drafts[0]) - 1 for e in beside if "accepted" in _firsts(e))


def _pass(events: list[Event]) -> Event | None:
    return min((e for e in events if e.op == "score"), key=lambda e: e.id, default=None)


# -- several sequences ---------------------------------------------------------------------------
def branches(trace: Trace) -> list[tuple[int, int | None]]:
    """Of every drafting that could branch (a budget of two tokens or more): the number of its
    sequences, and which of them the target chose: 0 for the likeliest, -1 for none, None where it
    never came to choose, since a draft before them failed or the output ended."""
    found = []
    for event in trace.operations:
        if event.op == "branch" and len(event.tokens) > 1:
            firsts = _firsts(event)
            none = -1 if "rejected" in firsts else None
            found.append(
                (
                    event.sequences,
                    firsts.index("accepted") if "accepted" in firsts else none,
                )
            )
    return found


def _firsts(event: Event) -> tuple[str, ...]:
    """The outcome of each sequence's first token."""
    return event.outcome[:: len(event.drafts[0])] if event.tokens else ()
