"""The exercise on plain decoding that several equal devices share."""

from __future__ import annotations

from speclab.check.mistakes import Mistake
from speclab.teach.card import Card

from .formula import Answer, Formula


def seconds(n: int, alone: float, reading: float, joining: float) -> float:
    """The rest, an nth of the reading, and the joining where there are several.

    Source: ``speclab.theory.plain_decoding``.
    """
    if n == 1:
        return alone
    return alone - reading + reading / n + joining


SECONDS = Formula(
    name="seconds",
    arguments=("n", "alone", "reading", "joining"),
    cases=(
        (2, 1.0, 0.8, 0.0),
        (2, 1.0, 0.8, 0.1),
        (1, 1.0, 0.8, 0.1),
        (4, 0.108, 0.08, 0.001),
        (8, 0.1, 0.06, 0.002),
        (3, 0.2, 0.2, 0.01),  # nothing but reading
        (4, 0.2, 0.01, 0.02),  # more devices are slower here
    ),
    solution=seconds,
    asked_for="the time of the pass",
    mistakes=(
        Mistake(
            "joining on one device",
            "On one device there are no parts to put together.",
            lambda n, alone, reading, joining: alone - reading + reading / n + joining,
        ),
        Mistake(
            "joining forgotten",
            "Several devices also put the parts of each layer together.",
            lambda n, alone, reading, joining: alone - reading + reading / n,
        ),
        Mistake(
            "all of it divided",
            "Only the reading is divided: each device launches all of its kernels.",
            lambda n, alone, reading, joining: alone / n + (joining if n > 1 else 0.0),
        ),
        Mistake(
            "rest forgotten",
            "What is not reading stays, however many devices there are.",
            lambda n, alone, reading, joining: (
                reading / n + (joining if n > 1 else 0.0)
            ),
        ),
        Mistake(
            "reading counted twice",
            "alone contains the reading: what is left without it?",
            lambda n, alone, reading, joining: (
                alone + reading / n + joining if n > 1 else alone
            ),
        ),
        Mistake(
            "rest divided",
            "Each device reads its own part of the weights: that is what is divided.",
            lambda n, alone, reading, joining: (
                reading + (alone - reading) / n + joining if n > 1 else alone
            ),
        ),
        Mistake(
            "joining divided",
            "Putting the parts together does not become shorter with more devices.",
            lambda n, alone, reading, joining: (
                alone - reading + (reading + joining) / n if n > 1 else alone
            ),
        ),
    ),
    praise="So more devices help as long as reading is most of the pass.",
)


def check_seconds(function: Answer) -> Card:
    """Checks ``function(n, alone, reading, joining)``: a plain pass on n devices.

    ``alone``: its seconds on one device, of which ``reading`` are for the weights.
    ``joining``: those in which several devices put the parts of the layers together.
    """
    return SECONDS.check(function)
