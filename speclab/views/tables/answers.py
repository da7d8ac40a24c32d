"""Whether a table reproduces, in one or two sentences that follow from its numbers.

::

    largest difference between print and prediction    the size
    at most 5 %                                        reproduces
    at most 15 %                                       nearly reproduces
    more                                               does not reproduce

    claims about an order, a maximum or a bound        the order
    all hold for the predictions                       reproduces
    some hold                                          reproduces in part
    none holds                                         does not reproduce

Numbers that set the acceptance rate or the clock are not predictions and do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from speclab.papers.paper_schema import MainQuantity
from speclab.papers.table_result import TableResult

from .main_quantity import Point, calibrated_cells
from .statements import is_of_size, is_own
from .written import write_range

CLOSE, NEAR = 0.05, 0.15  # differences from print that count as none, as small
FEW = 0.25  # share of rows that are named as exceptions


class Count(NamedTuple):
    """The number of claims that hold, and the number judged yes or no.

    ``claims`` describes the claims.
    """

    held: int
    judged: int
    claims: str = "claims about orders and bounds"
    open: int = 0


def question_of(result: TableResult) -> str:
    """The reader's question about a table: "PEARL, Table 1: does it reproduce?"."""
    table = result.table
    name = f"{table.paper.short_name}, {item_name(table.item)}"
    if not table.cells:
        return f"{name}: {_lowered(table.title)}"
    if result.kinds == ("paper",):
        return f"{name}: is the print consistent?"
    return f"{name}: does it reproduce?"


def item_name(item: str) -> str:
    """The name of an item in text: "Table 1", "Blog figure 1"."""
    return item.replace("-", " ").capitalize()


def item_key(name: str) -> str:
    """The key of an item with this name: "table-1"."""
    return name.lower().replace(" ", "-")


def answer_of(result: TableResult, points: Sequence[Point]) -> str:
    """The sentences that answer the question of a table's page."""
    errors = errors_of(result, points)
    orders = count_claims(result, "virtual")
    sentences = []
    if errors:
        sentences.append(_about_print(result, points, errors, orders))
        if result.table.main is not None:
            sentences.append(_about_baseline(result.table.main, points))
    elif "virtual" in result.kinds:
        sentences.append(_about_claims(count_claims(result, "virtual"), "By our code,"))
    if "measured" in result.kinds:
        sentences.append(_about_measured(result, points))
    if not any(sentences):
        sentences.append(_about_print_alone(result))
    return " ".join(sentence for sentence in sentences if sentence)


def errors_of(result: TableResult, points: Sequence[Point]) -> list[float]:
    """The relative difference of each prediction from print.

    Compares the table's points, or all its cells if it has no points.
    """
    if points:
        errors = [point.error for point in points]
        return [error for error in errors if error is not None]
    calibrated = calibrated_cells(result)
    found = []
    for row, column, kind in result.numbers:
        error = result.error(row, column) if kind == "virtual" else None
        if error is not None and (row, column) not in calibrated:
            found.append(error)
    return found


def count_claims(result: TableResult, kind: str) -> Count:
    """Counts the paper's claims that hold for one kind of number.

    Claims about the size of one number count only for print. So do claims that the
    print contradicts, since a number that reproduces the print may fail them. Our own
    checks count only for our own items, which have no other claims.
    """
    chosen, contradicted = set[str](), set[str]()
    for claim in result.table.claims:
        is_counted = kind == "paper" or not is_of_size(claim)
        if is_counted and (not result.table.cells or not is_own(claim)):
            is_contradicted = kind != "paper" and claim.printed == "no"
            (contradicted if is_contradicted else chosen).add(claim.id)
    found = [(v.claim, v.holds) for v in result.claims if v.kind == kind]
    judged = [(claim, holds) for claim, holds in found if holds in ("yes", "no")]
    holds = [holds for claim, holds in judged if claim in chosen]
    open_ones = sum(holds == "open" and claim in chosen for claim, holds in found)
    count = Count(holds.count("yes"), len(holds), open=open_ones)
    if any(claim in contradicted for claim, _ in judged):
        return count._replace(claims=f"{count.claims} that the print confirms")
    return count


# -- sentences -------------------------------------------------------------------------
def _about_print(
    result: TableResult,
    points: Sequence[Point],
    errors: list[float],
    orders: Count,
) -> str:
    """Whether order and size reproduce, and how far the predictions are from print."""
    far = [p.label for p in points if p.error is not None and abs(p.error) > NEAR]
    exceptions = far if len(far) <= FEW * len(errors) else []
    size = _size_in_words(errors, exceptions)
    lead = _lead(size, orders)
    if exceptions:
        rows = "; ".join(exceptions)
        lead += f", but for {len(exceptions)} of {len(errors)} rows ({rows})"
    near = sum(abs(error) <= NEAR for error in errors)
    most = ""
    if size == "does not reproduce" and near > len(errors) / 2:
        most = f" ({near} of {len(errors)} within {NEAR:.0%})".replace("%", " %")
    main = result.table.main
    subject = main.name if main else "our code"
    claims = f", and {_of_claims(orders)}" if orders.judged else ""
    return (
        f"{lead}: at the paper's own latencies, {subject} comes out "
        f"{_off_print(errors)}{most}{claims}."
    )


def _size_in_words(errors: list[float], exceptions: list[str]) -> str:
    """How well the size reproduces, apart from a few ``exceptions``."""
    largest = max(map(abs, errors))
    if largest <= CLOSE:
        return "reproduces"
    if largest <= NEAR or exceptions:
        return "nearly reproduces"
    return "does not reproduce"


def _lead(size: str, orders: Count) -> str:
    """ "The order reproduces, but the size does not"."""
    if not orders.judged:
        return f"The size {size}"
    order = "reproduces" if orders.held == orders.judged else "reproduces in part"
    if not orders.held:
        order = "does not reproduce"
    if order == size:
        return "Yes" if size == "reproduces" else "Neither order nor size reproduces"
    joint = "but" if "not" in order + size else "and"
    return f"The order {order}, {joint} the size {size.removesuffix(' reproduce')}"


def _off_print(errors: list[float]) -> str:
    """ "between 11 % below and 9 % above print", "up to 4 % below print"."""
    low, high = round(100 * min(errors)), round(100 * max(errors))
    if low == high:
        return _percent_off(low)
    if low < 0 < high:
        return f"between {-low} % below and {high} % above print"
    if high <= 0:
        return f"{-high} to {-low} % below print"
    return f"{low} to {high} % above print"


def _percent_off(percent: int) -> str:
    if not percent:
        return "as printed"
    return f"{abs(percent)} % {'above' if percent > 0 else 'below'} print"


def _of_claims(count: Count) -> str:
    """ "all 3 claims about orders and bounds hold", "2 of 3 such claims hold"."""
    if count.judged == 1:
        return f"its claim about the order {'holds' if count.held else 'does not hold'}"
    if count.held == count.judged:
        return f"{_all(count)} {count.claims} hold"
    return _part_that_holds(count)


def _all(count: Count) -> str:
    return "both" if count.judged == 2 else f"all {count.judged}"


def _about_baseline(main: MainQuantity, points: Iterable[Point]) -> str:
    """The gain over the baseline, with the baseline's error if that explains it."""
    compared = [p for p in points if None not in (p.gain("paper"), p.gain("virtual"))]
    if not compared:
        return ""
    printed = [float(point.gain("paper") or 0) for point in compared]
    predicted = [float(point.gain("virtual") or 0) for point in compared]
    text = (
        f"The gain over {main.against_name} is {write_range(predicted, 2)}, where the "
        f"print has {write_range(printed, 2)}"
    )
    errors = [p.error for p in compared if p.error is not None]
    of_baseline = [
        p.error_of_baseline for p in compared if p.error_of_baseline is not None
    ]
    is_smaller = fmean(predicted) < fmean(printed)
    if not errors or not of_baseline or not is_smaller:
        return text + "."
    if fmean(of_baseline) > max(0.0, fmean(errors)) + NEAR / 3:
        text += f", mainly because {main.against_name} itself comes out "
        text += _off_print(of_baseline)
        if len(of_baseline) < len(compared):
            text += f" in {len(of_baseline)} of {len(compared)} rows"
    return text + "."


def _about_measured(result: TableResult, points: Sequence[Point]) -> str:
    """What was measured here, and how many claims hold by it."""
    whose = "With our small models," if result.are_stand_ins else "Measured here,"
    count = count_claims(result, "measured")
    values = [p.numbers["measured"] for p in points if "measured" in p.numbers]
    parts = []
    if result.table.main is not None and values:
        parts.append(f"{result.table.main.name} comes out {write_range(values, 2)}")
    if count.judged:
        parts.append(_of_claims(count))
    if count.open:
        are = "is" if count.open == 1 else "are"
        others = "other " if count.judged else "of these claims "
        parts.append(f"{count.open} {others}{are} open")
    return f"{whose} {'; '.join(parts)}." if parts else ""


def _about_claims(count: Count, how: str) -> str:
    """How many claims hold: "By our code, 2 of 3 claims hold."."""
    if not count.judged:
        return ""
    if count.judged == 1:
        return f"{how} its claim {'holds' if count.held else 'does not hold'}."
    if count.held == count.judged:
        return f"{how} {_all(count)} {count.claims} hold."
    return f"{how} {_part_that_holds(count)}."


def _part_that_holds(count: Count) -> str:
    """ "1 of 3 claims about orders and bounds holds"."""
    held = f"{count.held} of" if count.held else "none of the"
    verb = "holds" if count.held == 1 else "hold"
    return f"{held} {count.judged} {count.claims} {verb}"


def _about_print_alone(result: TableResult) -> str:
    count = count_claims(result, "paper")
    if not result.table.cells and not result.kinds:
        return "Nothing has been run for it yet."
    if not result.table.cells:
        return "These numbers are ours, and settle none of our expectations."
    text = "We neither predict nor measure its numbers."
    if not count.judged:
        return text
    if count.held == count.judged:
        return f"{text} The print confirms the paper's claims about them."
    return f"{text} Claims that the print confirms: {count.held} of {count.judged}."


def _lowered(title: str) -> str:
    """A title inside a sentence: in lower case unless it begins with a name."""
    first_word = title.split()[0]
    is_name = not first_word[1:].islower() or first_word.endswith("'s")
    return title if is_name else title[0].lower() + title[1:]
