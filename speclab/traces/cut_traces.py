"""Cuts a request out of a longer one, so that its drafts go beyond the limit.

The published code of PEARL and DuoDecoding drafts beyond the limit, and counts these
drafts (see ``counts.with_tail``). To get the same tail, run with a limit that is
``longest_tail`` higher, and count the trace that ``cut_at`` returns.
"""

from __future__ import annotations

from speclib.trace.events import Trace


def longest_tail(gamma: int) -> int:
    """The largest number of drafts beyond a limit in PEARL and DuoDecoding.

    One window may wait for the target while the next one is drafted.
    """
    return 2 * gamma


def cut_at(trace: Trace, limit: int) -> Trace:
    """The first ``limit`` tokens of a longer request, as a separate request.

    Its drafts go beyond the limit. Of the last round, only the committed tokens are
    cut: accepted drafts beyond the limit stay accepted.
    """
    meta = trace.meta | {"limit": limit}
    committed = 0
    for last in trace.commits:
        if committed + len(last.tokens) >= limit:
            break
        committed += len(last.tokens)
    else:
        return Trace(trace.events, meta)

    cut = last._replace(tokens=last.tokens[: limit - committed])
    kept = [event for event in trace.events if event.round <= last.round]
    return Trace([cut if event is last else event for event in kept], meta)
