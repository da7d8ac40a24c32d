"""Items judged: their evidence produced, and from it a verdict on what is claimed.

The verdict is about what a paper claims or prints, and nobody types it in:

    not supported   some evidence contradicts it
    open            none contradicts it, and some does not settle it, or there is none
    supported       all evidence bears it out
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from speclib.errors import BadValue, SpeclibError

from .claims import claim_of, verdict_on
from .load import errata_notes
from .printed import (
    compare_words,
    name_cell,
    work_out,
    work_out_conflict,
)
from .quantity import ROUNDING, Answer, Kind, Quantity, compare, digits
from .runs import Quantities, run
from .schema import (
    Arithmetic,
    AuditItem,
    ClaimVerdict,
    Evidence,
    Operand,
    PrintedTwice,
    Publication,
    Run,
    Words,
)

Verdict = Literal["supported", "not supported", "open"]
VERDICTS: tuple[Verdict, ...] = ("supported", "not supported", "open")

REQUESTS = 40  # simulated ones per number, unless somebody asks for others


@dataclass(frozen=True)
class Finding:
    """A piece of evidence, produced.

    kinds       of its numbers
    says        what it looks at
    lines       its steps or its numbers
    statement   what would have to hold if what is claimed is right
    answer      whether that holds
    decides     whether the verdict rests on it
    pointer     the claim in the paper's tables that it comes from, if any
    """

    kinds: tuple[Kind, ...]
    says: str
    lines: tuple[str, ...]
    statement: str
    answer: Answer
    decides: bool = True
    pointer: str = ""


@dataclass(frozen=True)
class JudgedItem:
    """An item with its findings and its verdict.

    ``errata`` are the notes of the paper's own tables that say the same, each with its
    cell.
    """

    item: AuditItem
    findings: tuple[Finding, ...]
    verdict: Verdict
    errata: tuple[str, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of number that its evidence has."""
        kinds: list[str] = []
        for finding in self.findings:
            kinds += finding.kinds
        return tuple(dict.fromkeys(kinds))

    @property
    def rests_on_reading(self) -> bool:
        """Whether the verdict holds only if published code does what we read in it."""
        return bool(self.item.readings)


@dataclass(frozen=True)
class JudgedPublication:
    """A publication with all its items judged."""

    publication: Publication
    items: tuple[JudgedItem, ...]


def count_verdicts(items: Iterable[JudgedItem]) -> dict[Verdict, int]:
    """How many of these items have each verdict."""
    verdicts = [judged.verdict for judged in items]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def judge_publication(
    publication: Publication, requests: int = REQUESTS
) -> JudgedPublication:
    """Judges every item; simulated numbers come from so many ``requests``.

    Raises SpeclibError naming the item whose evidence cannot be produced.
    """
    judged = []
    for item in publication.items:
        try:
            judged.append(judge_item(item, publication.paper, requests))
        except SpeclibError as error:
            raise BadValue(
                f"data/audit/{publication.key}.toml, item {item.id!r}: {error}"
            ) from error
    return JudgedPublication(publication, tuple(judged))


def judge_item(item: AuditItem, paper: str, requests: int = REQUESTS) -> JudgedItem:
    """Produces the evidence of one item, and gives the verdict that follows from it."""
    findings = []
    for evidence in item.evidence:
        findings.append(produce(evidence, paper, requests))
    verdict = conclude(finding.answer for finding in findings if finding.decides)

    errata = []
    for cell in item.errata:
        for note in errata_notes(paper, cell):
            errata.append(f"{name_cell(cell)}: {note}")
    return JudgedItem(item, tuple(findings), verdict, tuple(errata))


def conclude(answers: Iterable[Answer]) -> Verdict:
    """The verdict that follows from what the pieces of evidence answer."""
    given = list(answers)
    if "no" in given:
        return "not supported"
    if "open" in given or not given:
        return "open"
    return "supported"


# -- evidence --------------------------------------------------------------------------
def produce(evidence: Evidence, paper: str, requests: int) -> Finding:
    """One piece of evidence, produced now."""
    if isinstance(evidence, Run):
        return _from_run(evidence, requests)
    if isinstance(evidence, ClaimVerdict):
        return _from_claim(evidence, evidence.paper or paper)
    return _from_print(evidence, paper)


def _from_print(evidence: Arithmetic | PrintedTwice | Words, paper: str) -> Finding:
    if isinstance(evidence, Arithmetic):
        worked = work_out(evidence, paper)
    elif isinstance(evidence, PrintedTwice):
        worked = work_out_conflict(evidence, paper)
    else:
        worked = compare_words(evidence)
    return Finding(
        kinds=("paper",),
        says=evidence.says,
        lines=worked.lines,
        statement=worked.statement,
        answer=worked.answer,
        decides=evidence.decides,
    )


def _from_claim(evidence: ClaimVerdict, paper: str) -> Finding:
    claim = claim_of(paper, evidence.item, evidence.claim)
    row = verdict_on(paper, evidence.item, evidence.claim, evidence.kind)
    lines = ["not judged yet: `make reproduce` does it"]
    if row is not None:
        lines = [
            f"found {row.value or 'nothing'}, expected {row.expected or 'nothing'}"
        ]
        if row.note:
            lines.append(row.note)
    statement = claim.text
    if evidence.bears_out == "no":
        statement = f"it is not so that {claim.text}"
    return Finding(
        kinds=(evidence.kind,),
        says=evidence.says,
        lines=tuple(lines),
        statement=statement,
        answer=_answer_of_claim(row.holds if row else "", evidence.bears_out),
        decides=evidence.decides,
        pointer=f"{paper}, {evidence.item}, {evidence.claim}",
    )


def _answer_of_claim(holds: str, bears_out: str) -> Answer:
    """Whether the verdict on a claim is the one that bears out what is claimed."""
    if holds not in ("yes", "no"):
        return "open"
    return "yes" if holds == bears_out else "no"


def _from_run(evidence: Run, requests: int) -> Finding:
    quantities = run(evidence.run, requests, evidence.settings)
    left, relation, right = evidence.compare
    answer = compare(
        _look_up(left, quantities),
        relation,
        _look_up(right, quantities),
        evidence.within,
    )
    statement = f"{_name(left)} {relation} {_name(right)}"
    if evidence.within:
        statement += f", within {100 * evidence.within:g} %"
    kinds = tuple(dict.fromkeys(number.kind for number in quantities.values()))
    lines = []
    for name, number in quantities.items():
        mark = f" ({number.kind})" if len(kinds) > 1 else ""
        lines.append(f"{name} = {write(number)}{mark}")
    return Finding(
        kinds=kinds,
        says=evidence.says,
        lines=tuple(lines),
        statement=statement,
        answer=answer,
        decides=evidence.decides,
    )


def _look_up(operand: Operand, quantities: Quantities) -> Quantity:
    if not isinstance(operand, str):
        return Quantity.exact(operand)
    if operand not in quantities:
        known = ", ".join(quantities)
        raise BadValue(f"the run gives no {operand!r}; it gives: {known}")
    return quantities[operand]


def _name(operand: Operand) -> str:
    return operand if isinstance(operand, str) else f"{operand:g}"


def write(number: Quantity) -> str:
    """A quantity with its range, if it has one."""
    if abs(number.value) < ROUNDING and number.is_exact:
        return "0"
    if number.is_exact:
        return digits(number.value)
    interval = f"{number.low:.4g} .. {number.high:.4g}"
    return f"{digits(number.value)} (95 %: {interval})"
