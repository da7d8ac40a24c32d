"""What the committed ledger says, where the runs of this checkout do not say it.

A quick run leaves many claims open, and a paper that was not run has no verdicts at
all. The repository holds the verdicts of a longer run. The index shows them in these
places, marked, and never in place of a verdict of this checkout that is settled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from speclab.papers.ledger import SAME_DEVICES_SUFFIX, SETTLED, VerdictLine
from speclab.papers.paper_schema import KINDS, Claim, Paper
from speclab.views.anchors import claim_anchor
from speclab.views.tables.tally import is_own

from .entry import ClaimEntry, KindVerdict, PaperEntry

# As the notes of verdicts have it: "1.246 (95 %: 1.219 .. 1.274)".
INTERVAL = re.compile(r"([\d.e+-]+) \(95 %: ([\d.e+-]+) \.\. ([\d.e+-]+)\)")
LineKey = tuple[str, str, str]  # item, claim, kind


def with_committed(
    entries: Sequence[PaperEntry],
    papers: Mapping[str, Paper],
    lines: Iterable[VerdictLine],
) -> list[PaperEntry]:
    """The entries with what committed ``lines`` add to them.

    ``papers``: those that have lines; those without an entry get one, and come last.
    """
    by_paper: dict[str, dict[LineKey, VerdictLine]] = {}
    for line in lines:
        if not line.claim.endswith(SAME_DEVICES_SUFFIX):
            of_paper = by_paper.setdefault(line.paper, {})
            of_paper[line.item, line.claim, line.kind] = line

    complete = {entry.key: entry for entry in entries}
    for key, of_paper in by_paper.items():
        if key in complete:
            complete[key] = _add_to_entry(complete[key], of_paper)
        elif key in papers:
            complete[key] = _new_entry(papers[key], of_paper)
    return list(complete.values())


def _add_to_entry(
    entry: PaperEntry, lines: Mapping[LineKey, VerdictLine]
) -> PaperEntry:
    claims = [_add_to_claim(claim, lines) for claim in entry.claims or ()]
    return entry.model_copy(update={"claims": tuple(claims)})


def _add_to_claim(
    claim: ClaimEntry, lines: Mapping[LineKey, VerdictLine]
) -> ClaimEntry:
    """The claim, with a committed verdict for each kind of which it says less."""
    verdicts = {verdict.kind: verdict for verdict in claim.verdicts}
    expected = claim.expected
    for kind in KINDS:
        line = lines.get((claim.item, claim.id, kind))
        if line is None:
            continue
        expected = expected or line.expected
        own = verdicts.get(kind)
        committed = _verdict_of(line)
        if own is None:
            verdicts[kind] = committed
        elif says_more(committed, own):
            verdicts[kind] = own.model_copy(update={"committed": committed})
    changed = {"verdicts": tuple(verdicts.values()), "expected": expected}
    return claim.model_copy(update=changed)


def says_more(committed: KindVerdict, own: KindVerdict) -> bool:
    """Whether a committed verdict settles what this checkout's own one leaves open."""
    if own.holds == "n/a":
        return committed.holds != "n/a"
    return own.holds == "open" and committed.holds in SETTLED


def _new_entry(paper: Paper, lines: Mapping[LineKey, VerdictLine]) -> PaperEntry:
    """What the index says of a paper that was not run in this checkout."""
    headlines = [tuple(headline) for headline in paper.facts.get("headlines", ())]
    claims = []
    for table in paper.tables.values():
        for claim in table.claims:
            is_headline = (table.item, claim.id) in headlines
            entry = _claim_of(table.item, claim, is_headline)
            entry = _add_to_claim(entry, lines)
            if entry.verdicts:
                claims.append(entry)
    return PaperEntry(
        key=paper.key,
        title=paper.title,
        authors=", ".join(paper.authors),
        year=paper.year,
        is_committed=True,
        claims=tuple(claims),
    )


def _claim_of(item: str, claim: Claim, is_headline: bool) -> ClaimEntry:
    is_number = isinstance(claim.expected, int | float)
    return ClaimEntry(
        item=item,
        id=claim.id,
        anchor=claim_anchor(item, claim.id),
        text=claim.text,
        source=claim.source,
        is_own=is_own(claim),
        is_headline=is_headline,
        claimed=claim.expected if is_number else None,
        within=claim.within,
    )


def _verdict_of(line: VerdictLine) -> KindVerdict:
    """A committed verdict; its interval stands in the line's note, if anywhere.

    The note may have others, of two numbers that are compared.
    """
    found = INTERVAL.search(line.note)
    interval = found if found and found[1] == line.value else None
    return KindVerdict(
        kind=line.kind,
        holds=line.holds,
        value=line.value,
        note=line.note,
        number=_as_number(line.value),
        low=float(interval[2]) if interval else None,
        high=float(interval[3]) if interval else None,
        is_committed=True,
    )


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
