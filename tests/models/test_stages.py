"""Pipelines and replicas return what the whole network returns."""

from __future__ import annotations

from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helpers.checkpoints import (  # noqa: E402
    PLAIN,
    TEXT,
    VOCAB,
    network,
    pair_over_ranks,
)

import speclib  # noqa: E402
from speclib.core.sampling import Coins, Sampler  # noqa: E402
from speclib.errors import BadValue  # noqa: E402
from speclib.models.hf import HFModel  # noqa: E402
from speclib.models.open_pair import open_pair  # noqa: E402
from speclib.models.parallel.pipeline import Pipeline  # noqa: E402
from speclib.worlds.processes import Processes  # noqa: E402

NODES = (4, 6, 8, 3, 1)
PARENTS = (-1, 0, -1, 2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
def test_a_pipeline_gives_the_whole_networks_probabilities(tmp_path, size):
    pair = pair_over_ranks(tmp_path, size, "stages", "target")
    with Processes(pair, timeout=60) as world:
        world.begin(TEXT, sampler=PLAIN, coins=Coins(), limit=9)
        rows = world.wait(world.target.score((*TEXT, 7), 3))
        tree_rows = world.wait(world.target.score_tree(TEXT, NODES, PARENTS))
        rows_after_rejection = world.wait(world.target.score((*TEXT[:3], 8, 8), 1))

    whole = HFModel(network(), open_pair(pair).vocab)
    np.testing.assert_allclose(rows, whole.rows((*TEXT, 7), 3, PLAIN), atol=1e-6)
    expected_tree = whole.tree((*TEXT, *NODES), PARENTS, PLAIN)
    np.testing.assert_allclose(tree_rows, expected_tree, atol=1e-6)
    expected = whole.rows((*TEXT[:3], 8, 8), 1, PLAIN)
    np.testing.assert_allclose(rows_after_rejection, expected, atol=1e-6)


def test_more_stages_than_layers_are_refused():
    layers = network().config.num_hidden_layers
    with pytest.raises(
        BadValue, match=f"{layers} layers, too few for the stages of {layers + 1}"
    ):
        Pipeline(network(), VOCAB, 0, layers + 1)


@pytest.fixture(scope="module")
def replicas(tmp_path_factory):
    """Worlds whose draft has one, two or three replicas, by that number."""
    with ExitStack() as stack:
        worlds = {}
        for size in (1, 2, 3):
            folder = tmp_path_factory.mktemp("model")
            pair = pair_over_ranks(folder, size, "replicas")
            worlds[size] = stack.enter_context(Processes(pair, timeout=60))
        yield worlds


class Drafted(NamedTuple):
    """The tokens and last row of each drafted block, and the draft's counts."""

    tokens: list[list[int]]
    rows: np.ndarray
    counts: list[tuple[int, int]]


def draft_blocks(world, temperature) -> Drafted:
    """Drafts blocks of every length, with rejections at every position between them."""
    texts = [TEXT, (*TEXT, 3), (*TEXT, 3, 5, 2, 2), TEXT[:4], (*TEXT[:4], 9)]
    world.begin(TEXT, sampler=Sampler(temperature), coins=Coins(5), limit=9)
    tokens, rows = [], []
    for text in texts:
        for length in (5, 1, 2, 4):
            block = world.wait(world.draft.propose(text, length))
            tokens.append([each.token for each in block])
            rows.append(block[-1].q)
    counts = [(event.kept, event.fed) for event in world.end().operations]
    return Drafted(tokens, np.concatenate(rows), counts)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_replicas_draft_what_a_single_draft_does(replicas, temperature):
    expected = draft_blocks(replicas[1], temperature)
    for size in (2, 3):
        drafted = draft_blocks(replicas[size], temperature)
        assert drafted.tokens == expected.tokens
        assert drafted.counts == expected.counts
        np.testing.assert_allclose(drafted.rows, expected.rows, atol=1e-5)


# Draft lengths are fixed, because choosing them would time passes.
ON_SHARED_PLACES = {
    "pearl": {"gamma": 3},
    "speculative": {"gamma": 3},
    "duodecoding": {"gamma": 3},
    "dsi": {"lookahead": 3},
    "tree": {"gamma": 3},
}


@pytest.mark.slow
@pytest.mark.parametrize("cancel", ["after-op", "immediate"])
def test_on_shared_places_no_method_loses_a_token(tmp_path, cancel):
    pair = pair_over_ranks(tmp_path, 2, "stages", "target")
    draft = pair.draft.model_copy(update={"spread": "replicas"})
    place = pair.place.model_copy(update={"draft": ("cpu", "cpu")})
    pair = pair.model_copy(update={"draft": draft, "place": place})
    with Processes(pair, timeout=60, cancel=cancel) as world:
        how = {"world": world, "max_new_tokens": 24, "ignore_eos": True}
        plain = speclib.decode("w1 w2", method="autoregressive", **how)
        for method, settings in ON_SHARED_PLACES.items():
            result = speclib.decode("w1 w2", method=method, **settings, **how)
            assert result.tokens == plain.tokens, method
