"""Trees of candidates: building, scoring in one pass, and following them.

They are compared with texts scored one by one.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np
import pytest

from speclib.core.candidate_tree import CandidateTree, ancestry, merged, paths, stem
from speclib.core.sampling import Coins, Sampler, ids
from speclib.core.verification import Verified, match_tree, offer
from speclib.data.latency import Curve, Latency
from speclib.models.toy import Random, Scripted, Toy
from speclib.operations.model import Model
from speclib.operations.score import ScoreTree
from speclib.trace.metrics import stats
from speclib.worlds.enumerator import distance, outcomes, truth
from speclib.worlds.virtual import Virtual


def random_parents(dice: random.Random, nodes: int) -> tuple[int, ...]:
    """Returns a tree's parents; each node follows an earlier node or the text."""
    return tuple(dice.randrange(-1, node) for node in range(nodes))


# -- shapes ----------------------------------------------------------------------------
def test_paths_share_the_nodes_of_a_common_prefix():
    tokens, parents = merged([(5, 6, 7), (5, 8), (), (9,), (5, 6)])
    assert tokens == (5, 6, 7, 8, 9)
    assert parents == (-1, 0, 1, 0, -1)
    assert merged([]) == merged([()]) == ((), ())


def test_a_node_sees_itself_and_its_path():
    """The paths are 0 - 1 - 2, 0 - 3 and 4."""
    assert ancestry((-1, 0, 1, 0, -1)).astype(int).tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [0, 0, 0, 0, 1],
    ]
    assert paths((3, 5, 6, 7, 8, 9), (-1, 0, 1, 0, -1)) == (
        (3,),
        (3, 5),
        (3, 5, 6),
        (3, 5, 6, 7),
        (3, 5, 8),
        (3, 9),
    )


def test_the_trunk_ends_at_the_first_node_that_does_not_follow_the_one_before():
    assert stem(()) == 0
    assert stem((-1,)) == 1
    assert stem((-1, 0, 1)) == 3
    assert stem((-1, 0, 0)) == 2
    assert stem((-1, -1, 1)) == 1


# -- offering and following ------------------------------------------------------------
def opened(limit=9, eos=frozenset(), vocab=10, target=None, **request) -> Virtual:
    models = {"draft": Random(vocab), "target": target or Random(vocab, 1)}
    world = Virtual(models, Latency.ratio(2))
    world.begin(
        (1, 2), sampler=Sampler(), coins=Coins(), limit=limit, eos=eos, **request
    )
    return world


def test_candidates_end_before_an_end_token_and_before_the_last_token_to_write():
    world = opened(limit=4, eos=frozenset({9}))
    drafted, parents = offer(world, [(3, 9, 4), (5, 6, 7, 8), (9,)])
    assert ids(drafted) == (3, 5, 6, 7)
    assert parents == (-1, -1, 1, 2)

    assert offer(opened(limit=1), [(3, 4)]) == ((), ())


def test_candidates_outside_the_vocabulary_are_dropped_with_their_descendants():
    drafted, parents = offer(opened(vocab=6), [(3, 4), (5, 6), (2,)])
    assert ids(drafted) == (3, 4, 5)
    assert parents == (-1, 0, -1)


def certainly(*tokens: int, vocab=10) -> np.ndarray:
    """Returns the rows of a target that is certain of each token."""
    return np.eye(vocab)[list(tokens)]


@pytest.mark.parametrize(
    "said, verified, outcome",
    [
        (
            (3, 4, 0, 9, 0),
            Verified((3, 4), (9,)),
            ("accepted", "accepted", "discarded", "discarded"),
        ),
        (
            (3, 5, 0, 0, 8),
            Verified((3, 5), (8,)),
            ("accepted", "discarded", "discarded", "accepted"),
        ),
        (
            (6, 0, 7, 0, 0),
            Verified((6,), (7,)),
            ("discarded", "discarded", "accepted", "discarded"),
        ),
        (
            (3, 6, 0, 0, 0),
            Verified((3,), (6,)),
            ("accepted", "rejected", "discarded", "discarded"),
        ),
        (
            (7, 0, 0, 0, 0),
            Verified((), (7,)),
            ("rejected", "discarded", "discarded", "discarded"),
        ),
    ],
)
def test_a_tree_is_followed_as_far_as_the_target_agrees(said, verified, outcome):
    """``said``: the target's tokens after the text, 3, 6, 3 4 and 3 5.

    text ── 3 ─┬─ 4
         │     └─ 5
         └─ 6
    """
    world = opened()
    tree = CandidateTree(world.guess((3, 4, 6, 5)), parents=(-1, 0, -1, 0))
    after_text, after_3, after_6, after_3_4, after_3_5 = said
    rows = certainly(after_text, after_3, after_3_4, after_6, after_3_5)
    assert match_tree(world, tree, rows) == verified
    world.commit(verified.tokens)
    assert world.end().events[0].outcome == outcome


def test_a_position_counts_once_for_any_number_of_candidates():
    world = opened()
    tree = offer(world, [(3,), (4,), (5,)])
    verified = match_tree(world, tree, certainly(9, 0, 0, 0))
    world.commit(verified.tokens)
    counts = stats(world.end())
    assert (counts.drafted, counts.accepted, counts.rejected) == (3, 0, 1)


# -- losslessness ----------------------------------------------------------------------
def two_tokens_at_once(world, test):
    """Offers three paths of two tokens in every round; ``test`` decides."""
    while world.going:
        tree = offer(world, [(0, 1), (1, 0), (1, 1)])
        scoring = world.target.score_tree(world.text, tree.tokens, tree.parents)
        rows = world.wait(scoring)
        verified = test(world, tree, rows)
        world.commit(verified.tokens)


def drawn_afresh_for_every_path(world, tree, rows):
    """Acts as REST's published code, which draws separately for each path.

    It draws a token at every node of a path, and accepts the longest path that agrees
    with its draws.
    """
    best = Passed(node=-1, tokens=())
    for index, leaf in enumerate(leaves_of(tree)):
        passed = follow_one_path(world, tree, rows, leaf, coin=1 + index)
        if len(passed.tokens) > len(best.tokens):
            best = passed

    position = len(world.text) + len(best.tokens)
    extra = world.coins.choose(rows[best.node + 1], position, "target")
    return Verified(best.tokens, (extra,))


class Passed(NamedTuple):
    """The last node of a path up to which drafts and draws agreed."""

    node: int
    tokens: tuple[int, ...]


def leaves_of(tree: CandidateTree) -> list[int]:
    nodes = range(len(tree.drafted))
    return [node for node in nodes if node not in tree.parents] or [-1]


def follow_one_path(world, tree, rows, leaf: int, coin: int) -> Passed:
    passed = Passed(node=-1, tokens=())
    if leaf < 0:
        return passed

    on_path = ancestry(tree.parents)[leaf]
    for node, draft in enumerate(tree.drafted):
        if not on_path[node]:
            continue
        position = len(world.text) + len(passed.tokens)
        row = rows[passed.node + 1]
        token = world.coins.choose(row, position, "target", coin)
        if token != draft.token:
            break
        passed = Passed(node, (*passed.tokens, token))
    return passed


def test_following_a_tree_is_lossless_and_drawing_afresh_for_every_path_is_not():
    models = {"draft": Random(2, 3, 5), "target": Random(2, 4, 5)}
    expected = truth(models["target"], 4)

    chances = outcomes(two_tokens_at_once, models, 4, test=match_tree)
    assert distance(chances, expected) < 1e-12

    chances = outcomes(two_tokens_at_once, models, 4, test=drawn_afresh_for_every_path)
    assert distance(chances, expected) > 0.01


# -- the operation ---------------------------------------------------------------------
@pytest.mark.parametrize(
    "model", [Toy(None, 16, 2), Random(6, 3), Scripted({(1, 2): 3}, 9)]
)
@pytest.mark.parametrize(
    "sampler", [Sampler(), Sampler(0.7, 3)], ids=["greedy", "sampling"]
)
def test_a_trees_rows_equal_those_of_its_texts_scored_one_by_one(model, sampler):
    dice = random.Random(1)
    for _ in range(20):
        parents = random_parents(dice, dice.randrange(6))
        tokens = tuple(dice.randrange(1, 6) for _ in parents)
        operation = ScoreTree((1, 2, *tokens), parents)
        one_by_one = [model.rows(text, 0, sampler)[0] for text in operation.texts]
        rows = model.tree(operation.text, parents, sampler)
        assert (rows == one_by_one).all()


class WithoutTrees(Random):
    """A model that scores only texts, not trees."""

    tree = Model.tree


def test_a_model_without_trees_scores_their_texts_one_by_one():
    rows = []
    for target in (WithoutTrees(6, 3), Random(6, 3)):
        world = opened(vocab=6, target=target)
        scoring = world.target.score_tree(world.text, (3, 4, 5), (-1, 0, -1))
        rows.append(world.wait(scoring))
    assert rows[0].shape == (4, 6)
    assert (rows[0] == rows[1]).all()


def test_a_tree_takes_the_time_of_one_pass_over_its_fed_tokens():
    """A text of 2 tokens and 3 nodes take 5 s, between (1, 1 s) and (9, 9 s).

    The cache keeps the text and the first path, 3 4. The 5 was the 4's sibling, not its
    child, and is fed again.
    """
    models = {"draft": Random(9), "target": Random(9, 1)}
    draft_latency = Curve(((1, 1.0),))
    target_latency = Curve(((1, 1.0), (9, 9.0)))
    world = Virtual(models, Latency(draft_latency, target_latency))
    world.begin((1, 2), sampler=Sampler(), coins=Coins(), limit=9)
    world.wait(world.target.score_tree(world.text, (3, 4, 5), (-1, 0, 0)))
    world.wait(world.target.score_tree(world.text + (3, 4, 5), (7,), (-1,)))

    first, second = world.end().operations
    assert (first.dur, first.kept, first.fed) == (5, 0, 5)
    assert (first.tested, first.tokens) == (3, (1, 2, 3, 4, 5))
    assert (second.dur, second.kept, second.fed) == (2, 4, 2)
    assert (second.tested, second.tokens) == (1, (5, 7))


def test_the_trace_has_the_targets_likeliest_tokens_after_the_last_nodes():
    target = Scripted({(1, 2): 3, (1, 2, 4): 5, (1, 2, 4, 6): 7}, 10)
    world = opened(target=target)
    world.wait(
        world.target.score_tree(world.text, (4, 6, 8), (-1, 0, -1), likeliest_count=2)
    )
    world.wait(world.target.score_tree(world.text, (4,), (-1,)))

    first, second = world.end().operations
    assert first.payload.likeliest == (7, 0)
    assert second.payload.likeliest == ()


# -- transformers ----------------------------------------------------------------------
def networks(dtype: str):
    """Yields small random networks: two families, each with two kinds of attention."""
    torch = pytest.importorskip("torch")
    import transformers

    sizes = {
        "vocab_size": 61,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 128,
    }
    families = {
        transformers.LlamaConfig: transformers.LlamaForCausalLM,
        transformers.Qwen2Config: transformers.Qwen2ForCausalLM,
    }
    for config, network in families.items():
        for attention in ("sdpa", "eager"):
            torch.manual_seed(0)
            net = network(config(**sizes, attn_implementation=attention))
            yield net.to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype, close", [("float32", 1e-5), ("float64", 1e-12)])
def test_a_transformers_model_scores_any_tree_in_one_pass_as_its_texts_one_by_one(
    dtype, close
):
    """The cache is empty at first, and later what other trees and texts left.

    With the cache left by a tree, the next text gets the same rows as with a fresh one.
    """
    pytest.importorskip("torch")
    from speclib.models.hf import HFModel

    sampler = Sampler(1.0)
    dice = random.Random(2)
    for network in networks(dtype):
        model, fresh_model = HFModel(network, 61), HFModel(network, 61)

        def fresh_rows(text, fresh_model=fresh_model):
            """Returns the row after a text, with an empty cache."""
            fresh_model.reset()
            return fresh_model.rows(text, 0, sampler)

        text = (1, 2, 3)
        for _ in range(12):
            parents = random_parents(dice, dice.randrange(12))
            tokens = tuple(dice.randrange(61) for _ in parents)
            rows = model.tree(text + tokens, parents, sampler)
            for row, path in zip(rows, paths(text + tokens, parents), strict=True):
                np.testing.assert_allclose(row, fresh_rows(path)[0], atol=close)

            # The cache contains the text and the tree's first path.
            stays = text + tokens[: stem(parents)]
            lengths = {layer.get_seq_length() for layer in model.cache.layers}
            assert model.prefix.fed == list(stays)
            assert lengths == {len(stays)}

            text += tokens[: dice.randrange(3)] + (dice.randrange(61),)
            expected = fresh_rows(text)
            rows = model.rows(text, 0, sampler)
            np.testing.assert_allclose(rows, expected, atol=close)


def test_a_tree_with_one_path_equals_a_text():
    pytest.importorskip("torch")
    from speclib.models.hf import HFModel

    network = next(networks("float64"))
    text = (1, 2, 3, 4, 5)
    by_tree, by_text = HFModel(network, 61), HFModel(network, 61)
    rows = by_tree.tree(text, (-1, 0, 1), Sampler(1.0))
    expected = by_text.rows(text, 3, Sampler(1.0))

    np.testing.assert_allclose(rows, expected, atol=1e-15)
    assert by_tree.prefix.fed == by_text.prefix.fed
    assert by_tree.prefix.count == by_text.prefix.count == 5
