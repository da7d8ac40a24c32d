"""A small spec of each kind, for tests of cells."""

from __future__ import annotations

from typing import Any

from speclab.runs.spec import EmulatedSpec, MeasuredSpec, VirtualSpec

LATENCY = "pearl/codellama-7-34"  # its c is 2.66
MACHINE = "a-machine"  # the machine on which tests measure


def virtual_spec(method: str = "pearl", gamma: Any = 3, **changes: Any) -> VirtualSpec:
    """A virtual cell: three requests of 120 tokens."""
    defaults = {
        "method": method,
        "gamma": gamma,
        "latency": LATENCY,
        "alpha": 0.9,
        "requests": 3,
        "tokens": 120,
    }
    return VirtualSpec(**(defaults | changes))


def emulated_spec(
    method: str = "pearl", gamma: Any = 3, **changes: Any
) -> EmulatedSpec:
    """An emulated cell: three requests of 24 tokens, with the test's latency."""
    defaults = {
        "method": method,
        "gamma": gamma,
        "latency": "quick",
        "alpha": 0.8,
        "requests": 3,
        "tokens": 24,
    }
    return EmulatedSpec(**(defaults | changes))


def measured_spec(
    method: str = "pearl", gamma: Any = 2, **changes: Any
) -> MeasuredSpec:
    """A measured cell: three requests of 12 tokens, with toys in real processes."""
    defaults = {
        "method": method,
        "gamma": gamma,
        "pair": "toy",
        "task": "toy",
        "requests": 3,
        "tokens": 12,
    }
    return MeasuredSpec(**(defaults | changes))
