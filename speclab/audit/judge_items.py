"""Items judged: their evidence produced, and from it a verdict on what is claimed.

The verdict is about what a paper claims or prints, and nobody types it in:

    not supported   some evidence contradicts it
    open            none contradicts it, and some does not settle it, or there is none
    supported       all evidence bears it out

Two rules are in favour of who is judged. Our simulated clock settles nothing alone,
unless it is shown to follow the paper's own numbers there. And where the best
answer of the authors would explain what contradicts them, the item stays open.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from speclab.papers.ledger import VerdictLine
from speclib.errors import BadValue, SpeclibError

from .item_schema import (
    Arithmetic,
    AuditItem,
    ClaimVerdict,
    CodeRead,
    Evidence,
    Operand,
    PrintedTwice,
    Publication,
    Run,
    Words,
)
from .load_items import errata_notes
from .printed import (
    compare_words,
    name_cell,
    work_out,
    work_out_conflict,
)
from .quantity import (
    ROUNDING,
    Answer,
    Basis,
    Kind,
    Quantities,
    Quantity,
    compare,
    digits,
)
from .runs import experiment, run_experiment
from .verdicts_of_tables import claim_of, printed_numbers_of, verdict_on

Verdict = Literal["supported", "not supported", "open"]
VERDICTS: tuple[Verdict, ...] = ("supported", "not supported", "open")

REQUESTS = 40  # simulated ones per number, unless somebody asks for others


@dataclass(frozen=True)
class Finding:
    """A piece of evidence, produced.

    basis       what its answer rests on
    kinds       of its numbers; none where code was read
    says        what it looks at
    lines       its steps or its numbers
    statement   what would have to hold if what is claimed is right
    answer      whether that holds
    decides     whether the verdict rests on it
    pointer     the claim in the paper's tables that it comes from, if any
    code        the published lines that were read, if any
    """

    basis: Basis
    kinds: tuple[Kind, ...]
    says: str
    lines: tuple[str, ...]
    statement: str
    answer: Answer
    decides: bool = True
    pointer: str = ""
    code: CodeRead | None = None


@dataclass(frozen=True)
class JudgedItem:
    """An item with its findings and its verdict.

    ``clock_follows`` are the findings that show whether our clock follows the paper's
    own numbers there. ``errata`` are the notes of the paper's own tables that say the
    same, each with its cell.
    """

    item: AuditItem
    findings: tuple[Finding, ...]
    verdict: Verdict
    clock_follows: tuple[Finding, ...] = ()
    errata: tuple[str, ...] = ()

    @property
    def bases(self) -> tuple[Basis, ...]:
        """What the verdict rests on; where all is beside it, what that rests on."""
        deciding = [finding.basis for finding in self.findings if finding.decides]
        shown = deciding or [finding.basis for finding in self.findings]
        return tuple(dict.fromkeys(shown))

    @property
    def is_counted(self) -> bool:
        """Whether the authors' own statement is judged, and not one of ours."""
        return self.item.whose == "authors"


@dataclass(frozen=True)
class JudgedPublication:
    """A publication with all its items judged."""

    publication: Publication
    items: tuple[JudgedItem, ...]


def count_verdicts(items: Iterable[JudgedItem]) -> dict[Verdict, int]:
    """How many of these items have each verdict; statements of ours do not count."""
    verdicts = [judged.verdict for judged in items if judged.is_counted]
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
    findings = _produce_all(item.evidence, paper, requests)
    clock_follows = _produce_all(item.clock_follows, paper, requests)

    trusts_clock = is_trusted(clock_follows)
    answers = []
    for finding in findings:
        if finding.decides:
            answers.append(weigh(finding, trusts_clock))
    verdict = conclude(answers)
    if verdict == "not supported" and item.answer_convinces:
        verdict = "open"

    errata = []
    for cell in item.errata:
        for note in errata_notes(paper, cell):
            errata.append(f"{name_cell(cell)}: {note}")
    return JudgedItem(item, findings, verdict, clock_follows, tuple(errata))


def is_trusted(clock_follows: Iterable[Finding]) -> bool:
    """Whether our clock is shown to follow a paper's own numbers somewhere."""
    answers = [finding.answer for finding in clock_follows]
    return bool(answers) and all(answer == "yes" for answer in answers)


def weigh(finding: Finding, trusts_clock: bool) -> Answer:
    """What a piece of evidence counts for: of a clock alone nothing is settled."""
    if finding.basis == "clock" and not trusts_clock:
        return "open"
    return finding.answer


def conclude(answers: Iterable[Answer]) -> Verdict:
    """The verdict that follows from what the pieces of evidence answer."""
    given = list(answers)
    if "no" in given:
        return "not supported"
    if "open" in given or not given:
        return "open"
    return "supported"


# -- evidence --------------------------------------------------------------------------
def _produce_all(
    evidence: Iterable[Evidence], paper: str, requests: int
) -> tuple[Finding, ...]:
    return tuple(produce(piece, paper, requests) for piece in evidence)


def produce(evidence: Evidence, paper: str, requests: int) -> Finding:
    """One piece of evidence, produced now."""
    if isinstance(evidence, Run):
        return _from_run(evidence, requests)
    if isinstance(evidence, ClaimVerdict):
        return _from_claim(evidence, evidence.paper or paper)
    if isinstance(evidence, CodeRead):
        return _from_code(evidence)
    return _from_print(evidence, paper)


def _from_print(evidence: Arithmetic | PrintedTwice | Words, paper: str) -> Finding:
    basis: Basis = "print"
    if isinstance(evidence, Arithmetic):
        worked = work_out(evidence, paper)
        if evidence.steps or evidence.numbers:
            basis = "arithmetic"
    elif isinstance(evidence, PrintedTwice):
        worked = work_out_conflict(evidence, paper)
    else:
        worked = compare_words(evidence)
    return Finding(
        basis=basis,
        kinds=("paper",),
        says=evidence.says,
        lines=worked.lines,
        statement=worked.statement,
        answer=worked.answer,
        decides=evidence.decides,
    )


def _from_code(evidence: CodeRead) -> Finding:
    return Finding(
        basis="code",
        kinds=(),
        says=evidence.says,
        lines=(evidence.reads,),
        statement=evidence.says,
        answer=evidence.bears_out,
        decides=evidence.decides,
        code=evidence,
    )


def _from_claim(evidence: ClaimVerdict, paper: str) -> Finding:
    claim = claim_of(paper, evidence.item, evidence.claim)
    row = verdict_on(paper, evidence.item, evidence.claim, evidence.kind)
    statement = claim.text
    if evidence.bears_out == "no":
        statement = f"it must not be so that {claim.text}"
    return Finding(
        basis=BASIS_OF_KIND[evidence.kind],
        kinds=(evidence.kind,),
        says=evidence.says,
        lines=tuple(_lines_of_claim(evidence, paper, row)),
        statement=statement,
        answer=_answer_of_claim(row.holds if row else "", evidence.bears_out),
        decides=evidence.decides,
        pointer=f"{paper}, {evidence.item}, {evidence.claim}",
    )


# What the verdict on a claim rests on, by the kind of number that it is judged on.
BASIS_OF_KIND: dict[str, Basis] = {
    "paper": "print",
    "virtual": "clock",
    "emulated": "measured",
    "measured": "measured",
}


def _lines_of_claim(
    evidence: ClaimVerdict, paper: str, row: VerdictLine | None
) -> list[str]:
    """The numbers that a claim is judged on: on the print cell by cell."""
    if evidence.kind == "paper":
        return printed_numbers_of(paper, evidence.item, evidence.claim)
    if row is None:
        return ["not judged yet: `make reproduce` does it"]
    lines = [f"found {row.value or 'nothing'}, claimed {row.expected or 'nothing'}"]
    if row.note:
        lines.append(row.note)
    return lines


def _answer_of_claim(holds: str, bears_out: str) -> Answer:
    """Whether the verdict on a claim is the one that bears out what is claimed."""
    if holds not in ("yes", "no"):
        return "open"
    return "yes" if holds == bears_out else "no"


def _from_run(evidence: Run, requests: int) -> Finding:
    quantities = run_experiment(evidence.run, requests, evidence.settings)
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
        lines.append(f"{name} = {write_quantity(number)}{mark}")
    return Finding(
        basis=experiment(evidence.run).basis,
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


def write_quantity(number: Quantity) -> str:
    """A quantity with its range, if it has one."""
    if abs(number.value) < ROUNDING and number.is_exact:
        return "0"
    if number.is_exact:
        return digits(number.value)
    interval = f"{number.low:.4g} .. {number.high:.4g}"
    return f"{digits(number.value)} (95 %: {interval})"
