"""Beyond a sliding window, passes give the same rows with and without a cache."""

from __future__ import annotations

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helpers.checkpoints import PLAIN, pair_over_ranks  # noqa: E402
from helpers.snapshots import (  # noqa: E402
    VOCAB,
    WINDOW,
    WITH_WINDOW,
    prompt,
    random_network,
)
from transformers.cache_utils import DynamicSlidingWindowLayer  # noqa: E402

from speclib.core.candidate_tree import paths  # noqa: E402
from speclib.core.sampling import Coins  # noqa: E402
from speclib.models.configuration import attention_windows  # noqa: E402
from speclib.models.hf import HFModel  # noqa: E402
from speclib.models.kv_cache import WindowLayer  # noqa: E402
from speclib.worlds.processes import Processes  # noqa: E402

LONG = prompt(WINDOW + 20)
ONE_KIND = ["MistralConfig", "MixtralConfig", "Phi3Config"]

# Two paths of three nodes and one of two: t -+- 4 - 6 - 8
#                                             +- 3 - 1 - 9
#                                             +- 5 - 2
NODES = (4, 6, 8, 3, 1, 9, 5, 2)
PARENTS = (-1, 0, 1, -1, 3, 4, -1, 6)


@torch.inference_mode()
def fresh(network, text) -> np.ndarray:
    """Returns the row after ``text``, from transformers' pass without a cache."""
    logits = network(input_ids=torch.tensor([list(text)])).logits[0, -1, :].double()
    return torch.softmax(logits, -1).numpy()


def fresh_tree(network, text, nodes, parents) -> np.ndarray:
    """Returns the rows after the text and after each path, each from its own pass."""
    rows = [fresh(network, path) for path in paths((*text, *nodes), parents)]
    return np.array(rows)


@pytest.mark.parametrize("name", WITH_WINDOW)
def test_in_these_networks_the_window_decides_what_comes_next(name):
    """Otherwise the tests below, which allow 1e-5, would miss an ignored window."""
    near = random_network(name)
    far = random_network(name, sliding_window=10 * WINDOW)
    difference = np.abs(fresh(near, LONG) - fresh(far, LONG)).max()
    assert difference > 1e-3


@pytest.mark.parametrize("name", WITH_WINDOW)
def test_a_tree_beyond_the_window_gives_its_paths_rows(name):
    network = random_network(name)
    expected = fresh_tree(network, LONG, NODES, PARENTS)
    model = HFModel(network, VOCAB)
    uncached = model.tree((*LONG, *NODES), PARENTS, PLAIN)
    np.testing.assert_allclose(uncached, expected, atol=1e-5)

    # Again, when all but the last token of the text is cached.
    model.reset()
    model.rows(LONG[:-1], 0, PLAIN)
    cached = model.tree((*LONG, *NODES), PARENTS, PLAIN)
    np.testing.assert_allclose(cached, expected, atol=1e-5)


@pytest.mark.parametrize("name", WITH_WINDOW)
def test_a_tree_drafted_level_by_level_gives_its_paths_rows(name):
    network = random_network(name)
    model = HFModel(network, VOCAB)
    model.rows(LONG, 0, PLAIN)
    first = model.level((*LONG, 4, 3), (-1, -1), 2, PLAIN)
    second = model.level((*LONG, 4, 3, 6, 1, 2), (-1, -1, 0, 1, 1), 3, PLAIN)

    expected = fresh_tree(network, LONG, (4, 3, 6, 1, 2), (-1, -1, 0, 1, 1))
    np.testing.assert_allclose(first, expected[1:3], atol=1e-5)
    np.testing.assert_allclose(second, expected[3:], atol=1e-5)


@pytest.mark.parametrize("name", ["MistralConfig", "Gemma3TextConfig"])
def test_a_rejection_may_return_to_before_the_window(name):
    """Texts follow each other at random, as in test_hf, but outgrow the window."""
    network = random_network(name)
    model = HFModel(network, VOCAB)
    dice = random.Random(1)
    text = list(LONG)
    for _ in range(40):
        text = text[: dice.randint(1, len(text))]
        text += [dice.randrange(VOCAB) for _ in range(dice.randint(0, WINDOW))]
        text = text[: 3 * WINDOW]
        rows = model.rows(tuple(text), 0, PLAIN)
        np.testing.assert_allclose(rows[0], fresh(network, text), atol=1e-5)


@pytest.mark.parametrize("name", WITH_WINDOW)
def test_a_configurations_windows_equal_those_of_transformers_cache(name):
    config = random_network(name).config
    windows = attention_windows(config)
    assert set(windows.values()) <= {None, WINDOW}
    assert (len(windows) == 1) == (name in ONE_KIND)

    cache = transformers.DynamicCache(config=config)
    has_window = [layer.is_sliding for layer in cache.layers]
    assert any(has_window)
    assert all(has_window) == (name in ONE_KIND)


def test_a_pass_reads_what_transformers_layer_shows_even_after_a_rejection():
    torch.manual_seed(0)
    keys, values = torch.randn(2, 1, 2, 400, 8)
    ours, length = WindowLayer(WINDOW), 0
    theirs = DynamicSlidingWindowLayer(WINDOW)
    for fed in (1, 20, 58, 1, 1, 130, 7):
        end = length + fed
        ours.first_position = length
        assert ours.get_mask_sizes(fed) == theirs.get_mask_sizes(fed)
        new = keys[:, :, length:end], values[:, :, length:end]
        shown_by_both = zip(ours.update(*new), theirs.update(*new), strict=True)
        for shown, expected in shown_by_both:
            assert torch.equal(shown, expected)
        length = end

    # A rejection to before the window; transformers would have to reread the text.
    length = 90
    ours.crop(length - ours.get_seq_length())
    ours.first_position = length
    shown, _ = ours.update(keys[:, :, 300:302], values[:, :, 300:302])
    expected = torch.cat(
        [keys[:, :, length - WINDOW + 1 : length], keys[:, :, 300:302]], 2
    )
    assert torch.equal(shown, expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, spread", [("MistralConfig", "tensors"), ("Gemma3TextConfig", "stages")]
)
def test_beyond_the_window_ranks_give_the_whole_networks_rows(tmp_path, name, spread):
    network = random_network(name)
    pair = pair_over_ranks(tmp_path, 2, spread, "target")
    network.save_pretrained(tmp_path)
    with Processes(pair, timeout=60) as world:
        world.begin(LONG, sampler=PLAIN, coins=Coins(), limit=9)
        rows = world.wait(world.target.score((*LONG, 7), 1))
        tree_rows = world.wait(world.target.score_tree(LONG, NODES, PARENTS))

    np.testing.assert_allclose(rows[0], fresh(network, LONG), atol=1e-5)
    np.testing.assert_allclose(rows[1], fresh(network, (*LONG, 7)), atol=1e-5)
    expected = fresh_tree(network, LONG, NODES, PARENTS)
    np.testing.assert_allclose(tree_rows, expected, atol=1e-5)


@pytest.mark.slow
def test_a_cache_longer_than_the_window_can_move_between_replicas(tmp_path):
    network = random_network("Gemma2Config")
    pair = pair_over_ranks(tmp_path, 2, "replicas", "draft")
    network.save_pretrained(tmp_path)
    with Processes(pair, timeout=60) as world:
        world.begin(LONG, sampler=PLAIN, coins=Coins(), limit=9)
        drafted = world.wait(world.draft.propose(LONG, 4))

    text = LONG
    for draft in drafted:
        np.testing.assert_allclose(draft.q, fresh(network, text), atol=1e-5)
        text = (*text, draft.token)
