"""Where an output leaves plain decoding's, found with toys."""

from math import inf

import speclib
from speclib.bench.exact_outputs import PLAIN, divergences, written


def test_an_output_that_leaves_plain_decodings_is_found_at_its_token():
    """Nothing differs by itself, so what is called plain decoding's is altered."""
    texts = ["toy", "another toy"]
    with speclib.Processes(speclib.load_pair("toy")) as world:
        plain = written(world, PLAIN, texts, 12, ignore_eos=True)
        assert [len(tokens) for tokens in plain] == [12, 12]
        same = divergences(world, "speculative", texts, plain, 12, ignore_eos=True)
        altered = [plain[0], (*plain[1][:7], plain[1][7] + 1, *plain[1][8:])]
        found = divergences(world, "pearl", texts, altered, 12, ignore_eos=True)
        shorter = [plain[0][:5], plain[1]]
        cut = divergences(world, "pearl", texts, shorter, 12, ignore_eos=True)

    assert same == []
    assert [(one.prompt, one.token) for one in found] == [(1, 7)]
    assert found[0].gap == inf or found[0].gap > 0
    assert [(one.prompt, one.token) for one in cut] == [(0, 5)]
