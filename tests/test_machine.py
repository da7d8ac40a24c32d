"""The machine's name and abilities."""

from __future__ import annotations

import json

import pytest

from speclab import machine_facts
from speclib import machine


def test_the_machine_has_a_short_stable_name():
    assert machine_facts.name() == machine_facts.name()
    assert " " not in machine_facts.name()
    assert f"-{machine.cores()}c" in machine_facts.name()
    assert json.dumps(machine_facts.environment())


@pytest.mark.parametrize(
    "flags, places, able",
    [
        ("fpu avx512_bf16", ("core:0",), True),
        ("fpu avx2", ("core:0", "cpu"), False),
        ("fpu avx2", ("cuda:0", "cuda:1"), True),
        ("fpu avx2", ("cpu", "cuda:0"), False),
    ],
)
def test_bfloat16_needs_instructions_on_every_device(monkeypatch, flags, places, able):
    monkeypatch.setattr(machine_facts, "cpuinfo", {"flags": flags}.get)
    assert machine_facts.computes("bfloat16", places) is able
    assert machine_facts.computes("auto", places)
