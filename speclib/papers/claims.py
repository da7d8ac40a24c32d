"""Claims judged: does an ordering, a maximum, a ratio, a range, an equality hold among numbers?

One judge for every kind of number; what a number is, and where it comes from, is not its business.
The fields of a claim are those of ``printed.Claim``. Where it has ``by``, quotients are compared;
differences in ratios and ranges where ``by`` starts with "minus".
"""

from __future__ import annotations

from speclib.errors import SpeclibError

from . import comparisons
from .comparisons import MINUS, Numbers, Verdict, once, reasons
from .ledger import ClaimRow
from .schema import Claim, Table

SURE = 0.975  # of resamples must agree before an order counts as settled


def judge(claim: Claim, table: Table, numbers: Numbers) -> ClaimRow:
    """The verdict on ``claim`` of ``table`` for one kind of number."""
    _check(claim)
    if numbers.kind not in claim.kinds:
        verdict = Verdict(None, "", "", "a claim about the print")
    else:
        divided = claim.by and claim.kind in ("order", "argmax")
        verdict = _JUDGES[claim.kind](
            claim, table, comparisons.relative(claim, numbers) if divided else numbers
        )
    holds = {True: "yes", False: "no", None: "n/a"}[verdict.holds]
    return ClaimRow(
        table.paper.key, table.item, claim.id, numbers.kind, holds, *verdict[1:]
    )


def _check(claim: Claim) -> None:
    """Fails where ``by`` has "minus" and is not ["minus", what is taken from ``of``]."""
    if isinstance(claim.by, tuple) and MINUS in claim.by:
        lengths = (2,) if claim.over else (3, 4)
        if (
            claim.kind not in ("ratio", "range")
            or claim.by[0] != MINUS
            or claim.by.count(MINUS) > 1
            or len(claim.by) not in lengths
        ):
            raise SpeclibError(
                f"claim {claim.id!r}: by = {[*claim.by]} is no difference; of a "
                'ratio or range it is ["minus", label] with over, else ["minus", '
                "row, column]; it is a difference or a quotient, not both"
            )


# -- over labels: order, argmax ------------------------------------------------------------------
def _lines(claim: Claim, table: Table, numbers: Numbers):
    """(line, {label: value}) for each column (over = "row") or row (over = "column") judged."""
    rows, columns = table.row_labels, table.column_labels
    across, chosen = (
        (columns, claim.column) if claim.over == "row" else (rows, claim.row)
    )
    labels = rows if claim.over == "row" else columns
    for line in across if chosen in (None, "*") else _tuple(chosen):

        def at(label, line=line):
            return (label, line) if claim.over == "row" else (line, label)

        found = {x: numbers.cell(table.item, *at(x)) for x in labels}
        yield line, at, {x: v for x, v in found.items() if v is not None}


def _order(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    fails, close, judged = [], [], 0
    for line, at, found in _lines(claim, table, numbers):
        if not all(label in found for label in claim.order):
            continue
        judged += 1
        for high, low in zip(claim.order, claim.order[1:], strict=False):
            if not found[high] > found[low]:
                fails.append(
                    f"{line}: {high} {found[high]:.4g}, {low} {found[low]:.4g}"
                )
            elif not _settled(numbers, table.item, at(high), at(low)):
                close.append(f"{line}: {high} and {low}")
    return _summary(judged, fails, " > ".join(claim.order), close)


def _argmax(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    winners, wanted, fails, close = [], [], [], []
    for line, at, found in _lines(claim, table, numbers):
        target = _expected_label(claim, line, numbers, at)
        if len(found) < 2 or target is None:
            continue
        winner = max(found, key=found.get)
        winners.append(winner)
        wanted.append(target)
        if winner != target:
            value = f" {found[target]:.4g}" if target in found else ": no value"
            fails.append(f"{line}: {winner} {found[winner]:.4g}, {target}{value}")
        close += [
            f"{line}: {winner} and {x}"
            for x in found
            if x != winner and not _settled(numbers, table.item, at(winner), at(x))
        ]
    verdict = _summary(len(winners), fails, ", ".join(once(wanted)), close)
    return verdict._replace(value=", ".join(once(winners)))


def _expected_label(claim: Claim, line: str, numbers: Numbers, at) -> str | None:
    expected = (
        claim.expected[line] if isinstance(claim.expected, dict) else claim.expected
    )
    if expected != "round(c)":
        return expected
    c = numbers.c(*at("*"))
    return None if c is None else str(round(c))


def _settled(numbers: Numbers, item: str, high: tuple, low: tuple) -> bool:
    """Whether ``high`` exceeds ``low`` in 97.5 % of joint resamples, or has none."""
    one, two = numbers.samples(item, *high), numbers.samples(item, *low)
    if one is None or two is None or len(one) != len(two):
        return True
    return float((one > two).mean()) >= SURE


def _summary(judged: int, fails: list[str], expected: str, close: list[str]) -> Verdict:
    if not judged:
        return Verdict(None, "", expected, "no numbers")
    note = reasons(fails)
    if close:
        note += (
            ("; " if note else "")
            + "not settled by these requests: "
            + reasons(close, ", ")
        )
    broken = len({f.split(":")[0] for f in fails})
    return Verdict(not fails, f"{judged - broken} of {judged}", expected, note)


def _tuple(value) -> tuple:
    return (value,) if isinstance(value, str) else tuple(value)


_JUDGES = {
    "order": _order,
    "argmax": _argmax,
    "ratio": comparisons.ratio,
    "range": comparisons.inside,
    "equal": comparisons.equal,
}
