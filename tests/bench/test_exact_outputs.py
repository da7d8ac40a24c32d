"""Finding where an output diverges from plain decoding's, tested with toys."""

from math import inf

import pytest

import speclib
from speclab.bench.gpu.exactness import PLAIN, divergences, written

TEXTS = ["toy", "another toy"]
LENGTH = 12


@pytest.fixture(scope="module")
def world():
    with speclib.Processes(speclib.load_pair("toy")) as world:
        yield world


@pytest.fixture(scope="module")
def plain(world):
    """Plain decoding's output after each text."""
    outputs = written(world, PLAIN, TEXTS, LENGTH)
    assert [len(output) for output in outputs] == [LENGTH, LENGTH]
    return outputs


def divergences_from(world, expected, method="pearl"):
    """Returns where a method's outputs diverge from the ``expected`` ones."""
    return divergences(world, method, TEXTS, expected, LENGTH)


@pytest.mark.parametrize("method", ["pearl", "speculative"])
def test_a_lossless_method_never_diverges_from_plain_decoding(world, plain, method):
    assert divergences_from(world, plain, method) == []


def test_a_divergence_is_found_at_its_token(world, plain):
    """No output differs by itself, so the expected output is altered."""
    altered = list(plain[1])
    altered[7] += 1
    (divergence,) = divergences_from(world, [plain[0], tuple(altered)])
    assert (divergence.prompt, divergence.token) == (1, 7)
    assert divergence.gap == inf or divergence.gap > 0


def test_a_longer_output_diverges_where_the_shorter_one_ends(world, plain):
    (divergence,) = divergences_from(world, [plain[0][:5], plain[1]])
    assert (divergence.prompt, divergence.token) == (0, 5)
