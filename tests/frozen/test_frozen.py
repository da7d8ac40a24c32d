"""Tokens, traces, exact probabilities and a network's rows equal values.json."""

import json

import pytest
from frozen import make

STORED = json.loads(make.FILE.read_text())


def thorough(*values):
    return pytest.param(*values, marks=pytest.mark.thorough)


def test_no_method_variant_or_setting_is_added_or_removed():
    assert list(STORED["greedy"]) == make.PROMPTS
    assert STORED["traces"].keys() == make.TRACED.keys()
    assert STORED["seconds"].keys() == STORED["exact"].keys() == make.EXACT.keys()
    for seconds in STORED["seconds"].values():
        assert seconds.keys() == make.SHORT.keys()


@pytest.mark.parametrize("prompts, count", [(2, 5), thorough(12, 12)])
def test_every_variant_writes_the_targets_greedy_tokens(prompts, count):
    pytest.importorskip("torch")
    for prompt in make.PROMPTS[:prompts]:
        for name, run in make.SHORT.items():
            tokens = make.greedy_tokens(prompt, count, *run)
            assert tokens == STORED["greedy"][prompt][:count], (prompt, name)


@pytest.mark.parametrize("first", [0, thorough(1), thorough(2)])
def test_every_third_trace_is_unchanged_byte_for_byte(first):
    names = list(make.TRACED)[first::3]
    hashes = {name: make.trace_hash(*make.TRACED[name]) for name in names}
    assert hashes == {name: STORED["traces"][name] for name in names}


@pytest.mark.parametrize("kinds", ["two kinds", *map(thorough, list(make.EXACT)[1:])])
def test_every_variant_has_the_same_exact_probabilities_and_expected_seconds(kinds):
    for name, run in make.SHORT.items():
        stored = STORED["exact"][kinds] | {"seconds": STORED["seconds"][kinds][name]}
        found = make.enumerated(kinds, *run)
        assert found == pytest.approx(stored, rel=0, abs=1e-12), name


def test_two_ranks_give_the_same_rows():
    """They are equal up to rounding, which may differ between CPUs."""
    pytest.importorskip("torch")
    assert make.rows_of_two_ranks() == pytest.approx(STORED["two ranks"], rel=1e-5)
