"""Claims judged: does an ordering, a maximum, a ratio, a range, an equality hold among numbers?

One judge for every kind of number; what a number is, and where it comes from, is not its business.
The forms of a claim are described in ``paper.toml``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from .ledger import ClaimRow
from .printed import Claim, Table

Number = float | None
SLACK = 1e-9                # rounding of floating point, nothing else


class Numbers(NamedTuple):
    """One kind's numbers. ``cell(item, row, column)``; ``interval`` the same, 95 % or None;
    ``c(row, column)``: the cost ratio behind a cell of the claim's table."""

    kind: str
    cell: Callable[[str, str, str], Number]
    c: Callable[[str, str], Number]
    interval: Callable[[str, str, str], tuple[float, float] | None] = lambda *_: None
    labels: Callable[[str], tuple[tuple[str, ...], tuple[str, ...]]] | None = None


class Verdict(NamedTuple):
    holds: bool | None      # None: nothing to judge
    value: str
    expected: str
    note: str = ""


def judge(claim: Claim, table: Table, numbers: Numbers) -> ClaimRow:
    """The verdict on ``claim`` of ``table`` for one kind of number."""
    if numbers.kind not in claim.kinds:
        verdict = Verdict(None, "", "", "a claim about the print")
    else:
        verdict = _JUDGES[claim.kind](claim, table, numbers)
    holds = {True: "yes", False: "no", None: "n/a"}[verdict.holds]
    return ClaimRow(table.paper.key, table.item, claim.id, numbers.kind, holds, *verdict[1:])


# -- over labels: order, argmax ------------------------------------------------------------------
def _lines(claim: Claim, table: Table, numbers: Numbers):
    """(line, {label: value}) for each column (over = "row") or row (over = "column") judged."""
    rows, columns = table.row_labels, table.column_labels
    across, chosen = (columns, claim.column) if claim.over == "row" else (rows, claim.row)
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
                fails.append(f"{line}: {high} {found[high]:.4g}, {low} {found[low]:.4g}")
            elif _overlap(numbers, table.item, at(high), at(low)):
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
        close += [f"{line}: {winner} and {x}" for x in found if x != winner
                  and _overlap(numbers, table.item, at(winner), at(x))]
    verdict = _summary(len(winners), fails, ", ".join(_once(wanted)), close)
    return verdict._replace(value=", ".join(_once(winners)))


def _expected_label(claim: Claim, line: str, numbers: Numbers, at) -> str | None:
    expected = claim.expected[line] if isinstance(claim.expected, dict) else claim.expected
    if expected != "round(c)":
        return expected
    c = numbers.c(*at("*"))
    return None if c is None else str(round(c))


def _overlap(numbers: Numbers, item: str, a: tuple, b: tuple) -> bool:
    one, two = numbers.interval(item, *a), numbers.interval(item, *b)
    return bool(one and two and one[0] <= two[1] and two[0] <= one[1])


def _summary(judged: int, fails: list[str], expected: str, close: list[str]) -> Verdict:
    if not judged:
        return Verdict(None, "", expected, "no numbers")
    note = "; ".join(fails)
    if close:
        note += ("; " if note else "") + "intervals overlap: " + ", ".join(close)
    broken = len({f.split(":")[0] for f in fails})
    return Verdict(not fails, f"{judged - broken} of {judged}", expected, note)


# -- over numbers: ratio, range, equal -----------------------------------------------------------
def _quotients(claim: Claim, table: Table, numbers: Numbers) -> list[tuple[str, float, tuple]]:
    """(label, of / by, the cell of ``of``), where both are there; ``by`` may be missing."""
    if claim.over is not None:
        labels = table.column_labels if claim.over == "columns" else table.row_labels

        def refs(name):
            return [(table.item, *((name, x) if claim.over == "columns" else (x, name)))
                    for x in labels]
        tops, bottoms = refs(claim.of), refs(claim.by) if claim.by else [None] * len(labels)
    else:
        labels = None
        tops = _expand(claim.of, table)
        bottoms = _expand(claim.by, table) if claim.by and claim.kind != "equal" \
            else [None] * len(tops)
    out = []
    for i, (top, bottom) in enumerate(zip(tops, bottoms, strict=True)):
        value, unit = numbers.cell(*top), 1.0 if bottom is None else numbers.cell(*bottom)
        if value is not None and unit:
            out.append((labels[i] if labels else " / ".join(top[1:]), value / unit, top))
    return out


def _expand(ref: tuple[str, ...], table: Table) -> list[tuple[str, str, str]]:
    """The cells a reference names: [row, column] or [item, row, column], "*" spelled out."""
    item, row, column = ref if len(ref) == 3 else (table.item, *ref)
    there = table.paper.tables[item]
    return [(item, r, c) for r in (there.row_labels if row == "*" else [row])
            for c in (there.column_labels if column == "*" else [column])]


def _ratio(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    found = _quotients(claim, table, numbers)
    if claim.reduce and found:
        found = [(max if claim.reduce == "max" else min)(found, key=lambda f: f[1])]
    return _compare(claim, found, lambda label, _: claim.expected[label]
                    if isinstance(claim.expected, dict) else claim.expected)


def _equal(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    found = _quotients(claim, table, numbers)
    if claim.by:
        pairs = dict(zip(_expand(claim.of, table), _expand(claim.by, table), strict=True))
        found = [f for f in found if numbers.cell(*pairs[f[2]]) is not None]
        return _compare(claim, found, lambda _, top: numbers.cell(*pairs[top]))
    if isinstance(claim.expected, list | tuple):
        if found and len(found) != len(claim.expected):
            return Verdict(False, _listed([f[1] for f in found]), _listed(claim.expected))
        wanted = {f[2]: e for f, e in zip(found, claim.expected, strict=False)}
        return _compare(claim, found, lambda _, top: wanted[top])
    return _compare(claim, found, lambda *_: claim.expected)


def _compare(claim: Claim, found: list, expected: Callable[[str, tuple], float]) -> Verdict:
    if not found:
        return Verdict(None, "", "", "no numbers")
    wanted = [expected(label, top) for label, _, top in found]
    fails = [f"{label}: {value:.4g}, expected {want:.4g}"
             for (label, value, _), want in zip(found, wanted, strict=True)
             if abs(value - want) > claim.within * abs(want) + SLACK]
    one = f"{found[0][0]}" if claim.reduce else ""
    return Verdict(not fails, _listed([f[1] for f in found]), _listed(_once(wanted)),
                   "; ".join(filter(None, [one, *(fails if len(found) > 1 else [])])))


def _range(claim: Claim, table: Table, numbers: Numbers) -> Verdict:
    found, fails, highs = _quotients(claim, table, numbers), [], []
    if claim.reduce and found:
        found = [(max if claim.reduce == "max" else min)(found, key=lambda f: f[1])]
    for label, value, (_, row, column) in found:
        high = numbers.c(row, column) if claim.high == "c" else claim.high
        highs.append(high)
        seen = value if claim.decimals is None else round(value + SLACK, claim.decimals)
        if high is None or not claim.low - SLACK <= seen <= high + SLACK:
            fails.append(f"{label}: {value:.4g} not in {claim.low:g} .. "
                         f"{'?' if high is None else format(high, '.4g')}")
    if not found:
        return Verdict(None, "", f"{claim.low:g} .. {claim.high}", "no numbers")
    return Verdict(not fails, _listed([f[1] for f in found]), f"{claim.low:g} .. {claim.high}",
                   "; ".join(fails))


_JUDGES = {"order": _order, "argmax": _argmax, "ratio": _ratio, "range": _range, "equal": _equal}


def _listed(values: Iterable[float]) -> str:
    """Each value; from five on, their range."""
    values = list(values)
    if len(values) > 8:
        return f"{min(values):.4g} .. {max(values):.4g}"
    return ", ".join(f"{v:.4g}" for v in values)


def _once(values: list) -> list:
    """The one value that all share, or all of them."""
    return values[:1] if len(set(values)) == 1 else values


def _tuple(value) -> tuple:
    return (value,) if isinstance(value, str) else tuple(value)
