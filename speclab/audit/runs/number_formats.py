"""Arithmetic of number formats: what becomes of whole numbers that are rounded."""

from __future__ import annotations

from speclab.audit.quantity import Quantities, Quantity


def to_bfloat16(number: int) -> int:
    """A whole number as bfloat16 holds it: eight binary digits, halves to even."""
    spacing: int = 2 ** max(0, number.bit_length() - 8)
    return round(number / spacing) * spacing


def ids_in_bfloat16(requests: int, token: int, vocab: int) -> Quantities:
    """What becomes of a token id that is stored as bfloat16, and of all ids."""
    unchanged = sum(to_bfloat16(number) == number for number in range(vocab))
    return {
        "id": Quantity.exact(token, "arithmetic"),
        "id as bfloat16": Quantity.exact(to_bfloat16(token), "arithmetic"),
        "share of ids that stay": Quantity.exact(unchanged / vocab, "arithmetic"),
    }
