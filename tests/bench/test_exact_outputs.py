"""Where an output leaves plain decoding's, found with toys."""

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
    """What plain decoding writes after each text."""
    outputs = written(world, PLAIN, TEXTS, LENGTH)
    assert [len(output) for output in outputs] == [LENGTH, LENGTH]
    return outputs


def divergences_from(world, expected, method="pearl"):
    """Where a method's outputs leave those that are said to be plain decoding's."""
    return divergences(world, method, TEXTS, expected, LENGTH)


@pytest.mark.parametrize("method", ["pearl", "speculative"])
def test_a_lossless_method_never_leaves_plain_decoding(world, plain, method):
    assert divergences_from(world, plain, method) == []


def test_an_output_that_leaves_plain_decodings_is_found_at_its_token(world, plain):
    """Nothing differs by itself, so what is called plain decoding's is altered."""
    altered = list(plain[1])
    altered[7] += 1
    (divergence,) = divergences_from(world, [plain[0], tuple(altered)])
    assert (divergence.prompt, divergence.token) == (1, 7)
    assert divergence.gap == inf or divergence.gap > 0


def test_an_output_that_is_longer_leaves_the_other_where_that_ends(world, plain):
    (divergence,) = divergences_from(world, [plain[0][:5], plain[1]])
    assert (divergence.prompt, divergence.token) == (0, 5)
