"""Small specs of each kind, which tests of cells fill."""

from __future__ import annotations

from typing import Any

from speclab.runs.spec import Spec

LATENCY = "pearl/codellama-7-34"  # its c is 2.66
MACHINE = "a-machine"  # on which tests measure


def virtual_spec(method: str = "pearl", gamma: Any = 3, **changes: Any) -> Spec:
    """A virtual cell of three requests of 120 tokens."""
    defaults = {
        "kind": "virtual",
        "method": method,
        "gamma": gamma,
        "latency": LATENCY,
        "alpha": 0.9,
        "requests": 3,
        "tokens": 120,
    }
    return Spec(**(defaults | changes))


def emulated_spec(method: str = "pearl", gamma: Any = 3, **changes: Any) -> Spec:
    """An emulated cell of three requests of 24 tokens, at a latency of the test."""
    defaults = {
        "kind": "emulated",
        "method": method,
        "gamma": gamma,
        "latency": "quick",
        "alpha": 0.8,
        "requests": 3,
        "tokens": 24,
    }
    return Spec(**(defaults | changes))


def measured_spec(method: str = "pearl", gamma: Any = 2, **changes: Any) -> Spec:
    """A measured cell of three requests of 12 tokens, on toys in real processes."""
    defaults = {
        "kind": "measured",
        "method": method,
        "gamma": gamma,
        "pair": "toy",
        "task": "toy",
        "requests": 3,
        "tokens": 12,
    }
    return Spec(**(defaults | changes))
