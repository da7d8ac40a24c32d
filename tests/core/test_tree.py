"""Trees of candidates: built, scored in one pass, followed; against texts scored one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from speclib.core.candidate_tree import CandidateTree, ancestry, merged, paths, stem
from speclib.core.sampling import Coins, Sampler, ids
from speclib.core.verification import Verified, match_tree, offer
from speclib.data.latency import Curve, Latency
from speclib.models.toy import Random, Scripted, Toy
from speclib.operations.score_tree import ScoreTree
from speclib.trace.metrics import stats
from speclib.worlds.enumerator import distance, outcomes, truth
from speclib.worlds.virtual import Virtual


def grown(dice: random.Random, nodes: int) -> tuple[int, ...]:
    """Parents of a tree: each node follows any before it, or the text."""
    return tuple(dice.randrange(-1, node) for node in range(nodes))


# -- shapes ----------------------------------------------------------------------------
def test_what_paths_have_in_common_is_one_node():
    assert merged([(5, 6, 7), (5, 8), (), (9,), (5, 6)]) == (
        (5, 6, 7, 8, 9),
        (-1, 0, 1, 0, -1),
    )
    assert merged([]) == merged([()]) == ((), ())


def test_a_node_sees_itself_and_its_path():
    """0 - 1 - 2, 0 - 3, 4."""
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


def test_a_stem_is_as_long_as_each_node_follows_the_one_before():
    assert [stem(p) for p in ((), (-1,), (-1, 0, 1), (-1, 0, 0), (-1, -1, 1))] == [
        0,
        1,
        3,
        2,
        1,
    ]


# -- offering and following ------------------------------------------------------------
def opened(limit=9, eos=frozenset(), vocab=10, target=None, **request) -> Virtual:
    world = Virtual(
        {"draft": Random(vocab), "target": target or Random(vocab, 1)}, Latency.ratio(2)
    )
    world.begin(
        (1, 2), sampler=Sampler(), coins=Coins(), limit=limit, eos=eos, **request
    )
    return world


def test_candidates_end_before_an_end_token_and_the_last_token_to_write():
    drafted, parents = offer(
        opened(limit=4, eos=frozenset({9})), [(3, 9, 4), (5, 6, 7, 8), (9,)]
    )
    assert (ids(drafted), parents) == ((3, 5, 6, 7), (-1, -1, 1, 2))
    assert offer(opened(limit=1), [(3, 4)]) == ((), ())


def test_candidates_beyond_the_vocabulary_are_left_out_with_what_comes_after_them():
    drafted, parents = offer(opened(vocab=6), [(3, 4), (5, 6), (2,)])
    assert (ids(drafted), parents) == ((3, 4, 5), (-1, 0, -1))


def certainly(*tokens, vocab=10) -> np.ndarray:
    return np.eye(vocab)[list(tokens)]


@pytest.mark.parametrize(
    "said, verdict, outcome",
    [
        (
            (3, 4, 0, 9, 0),
            Verified((3, 4), (9,)),
            ("accepted", "accepted", "wasted", "wasted"),
        ),
        (
            (3, 5, 0, 0, 8),
            Verified((3, 5), (8,)),
            ("accepted", "wasted", "wasted", "accepted"),
        ),
        (
            (6, 0, 7, 0, 0),
            Verified((6,), (7,)),
            ("wasted", "wasted", "accepted", "wasted"),
        ),
        (
            (3, 6, 0, 0, 0),
            Verified((3,), (6,)),
            ("accepted", "rejected", "wasted", "wasted"),
        ),
        (
            (7, 0, 0, 0, 0),
            Verified((), (7,)),
            ("rejected", "wasted", "wasted", "wasted"),
        ),
    ],
)
def test_a_tree_is_followed_as_far_as_it_carries_what_the_target_draws(
    said, verdict, outcome
):
    """Nodes 3 - 4, 6, and 5 under 3; row 0 is the text's, row i + 1 node i's."""
    world = opened()
    drafted, parents = world.guess((3, 4, 6, 5)), (-1, 0, -1, 0)
    reordered = (said[0], said[1], said[3], said[2], said[4])  # nodes are 3, 4, 6, 5
    tree = CandidateTree(drafted, parents)
    assert match_tree(world, tree, certainly(*reordered)) == verdict
    world.commit(verdict.tokens)
    assert world.end().events[0].outcome == outcome


def test_a_place_counts_once_whatever_the_number_of_candidates():
    world = opened()
    tree = offer(world, [(3,), (4,), (5,)])
    world.commit(match_tree(world, tree, certainly(9, 0, 0, 0)).tokens)
    s = stats(world.end())
    assert (s.drafted, s.accepted, s.rejected) == (3, 0, 1)


# -- losslessness ----------------------------------------------------------------------
def branching(world, drawn):
    """Offers two candidates of two tokens each time; ``drawn(world, ...)`` decides."""
    while world.going:
        draft, parents = offer(world, [(0, 1), (1, 0), (1, 1)])
        rows = world.wait(world.target.score_tree(world.text, ids(draft), parents))
        world.commit(drawn(world, draft, parents, rows).tokens)


def matched(world, draft, parents, rows):
    return match_tree(world, CandidateTree(draft, parents), rows)


def afresh_for_every_branch(world, draft, parents, rows):
    """REST's published code: each branch draws a token of its own at every node it leads through;
    the longest that its draws agree with counts."""
    leaves = [n for n in range(len(draft)) if n not in parents] or [-1]
    best, text = (-1, ()), len(world.text)
    for index, leaf in enumerate(leaves):
        line = (
            []
            if leaf < 0
            else [n for n in range(len(draft)) if ancestry(parents)[leaf, n]]
        )
        node, passed = -1, ()
        for n in line:
            token = world.coins.choose(
                rows[node + 1], text + len(passed), "target", 1 + index
            )
            if token != draft[n].token:
                break
            node, passed = n, (*passed, token)
        best = max(best, (node, passed), key=lambda found: len(found[1]))
    node, passed = best
    return Verified(
        passed, (world.coins.choose(rows[node + 1], text + len(passed), "target"),)
    )


def test_following_a_tree_is_lossless_and_drawing_afresh_for_every_branch_is_not():
    models = {"draft": Random(2, 3, 5), "target": Random(2, 4, 5)}
    wanted = truth(models["target"], 4)
    assert distance(outcomes(branching, models, 4, drawn=matched), wanted) < 1e-12
    assert (
        distance(outcomes(branching, models, 4, drawn=afresh_for_every_branch), wanted)
        > 0.01
    )


# -- the operation ---------------------------------------------------------------------
@pytest.mark.parametrize(
    "model", [Toy(None, 16, 2), Random(6, 3), Scripted({(1, 2): 3}, 9)]
)
@pytest.mark.parametrize(
    "sampler", [Sampler(), Sampler(0.7, 3)], ids=["greedy", "sampling"]
)
def test_a_trees_rows_are_those_of_its_texts_scored_one_by_one(model, sampler):
    dice = random.Random(1)
    for _ in range(20):
        parents = grown(dice, dice.randrange(6))
        tokens = tuple(dice.randrange(1, 6) for _ in parents)
        op = ScoreTree((1, 2, *tokens), parents)
        rows = [model.rows(text, 0, sampler)[0] for text in op.texts]
        assert (model.tree(op.text, parents, sampler) == rows).all()


def test_a_model_that_knows_no_trees_scores_their_texts_one_by_one():
    class Plain:
        def __init__(self):
            self.toy, self.vocab = Random(6, 3), 6
            self.reset, self.cut, self.rows = (
                self.toy.reset,
                self.toy.cut,
                self.toy.rows,
            )

        prefix = property(lambda self: self.toy.prefix)

    found = [opened(vocab=6, target=target) for target in (Plain(), Random(6, 3))]
    rows = [w.wait(w.target.score_tree(w.text, (3, 4, 5), (-1, 0, -1))) for w in found]
    assert rows[0].shape == (4, 6) and (rows[0] == rows[1]).all()


def test_a_tree_takes_the_time_of_one_pass_over_all_that_is_fed():
    """2 tokens of text and 3 nodes, linear between (1, 1 s) and (9, 9 s): 5 s. The cache keeps the
    text and the first line, 3 4; the 5 stood beside the 4, not after it, and is fed again."""
    world = Virtual(
        {"draft": Random(9), "target": Random(9, 1)},
        Latency(Curve(((1, 1.0),)), Curve(((1, 1.0), (9, 9.0)))),
    )
    world.begin((1, 2), sampler=Sampler(), coins=Coins(), limit=9)
    world.wait(world.target.score_tree(world.text, (3, 4, 5), (-1, 0, 0)))
    world.wait(world.target.score_tree(world.text + (3, 4, 5), (7,), (-1,)))
    one, two = world.end().operations
    assert (one.dur, one.kept, one.fed, one.candidates, one.tokens) == (
        5,
        0,
        5,
        3,
        (1, 2, 3, 4, 5),
    )
    assert (two.dur, two.kept, two.fed, two.candidates, two.tokens) == (
        2,
        4,
        2,
        1,
        (5, 7),
    )


def test_what_the_target_finds_likeliest_after_the_nodes_only_looked_at_is_in_the_trace():
    world = opened(target=Scripted({(1, 2): 3, (1, 2, 4): 5, (1, 2, 4, 6): 7}, 10))
    world.wait(world.target.score_tree(world.text, (4, 6, 8), (-1, 0, -1), looked=2))
    world.wait(world.target.score_tree(world.text, (4,), (-1,)))
    assert [e.payload.likeliest for e in world.end().operations] == [(7, 0), ()]


# -- transformers ----------------------------------------------------------------------
def networks(dtype: str):
    torch = pytest.importorskip("torch")
    from transformers import (
        LlamaConfig,
        LlamaForCausalLM,
        Qwen2Config,
        Qwen2ForCausalLM,
    )

    sizes = {
        "vocab_size": 61,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 128,
    }
    for config, network in (
        (LlamaConfig, LlamaForCausalLM),
        (Qwen2Config, Qwen2ForCausalLM),
    ):
        for attention in ("sdpa", "eager"):
            torch.manual_seed(0)
            yield network(config(**sizes, attn_implementation=attention)).to(
                getattr(torch, dtype)
            )


@pytest.mark.parametrize("dtype, close", [("float32", 1e-5), ("float64", 1e-12)])
def test_a_transformers_model_scores_any_tree_in_one_pass_as_its_texts_one_by_one(
    dtype, close
):
    """From an empty cache and from those that other trees and texts left behind; and what is cached
    afterwards serves the next text as well as fresh."""
    pytest.importorskip("torch")
    from speclib.models.hf import HFModel

    sampler, dice = Sampler(1.0), random.Random(2)
    for network in networks(dtype):
        model, fresh, text = HFModel(network, 61), HFModel(network, 61), (1, 2, 3)
        for _ in range(12):
            parents = grown(dice, dice.randrange(12))
            tokens = tuple(dice.randrange(61) for _ in parents)
            rows = model.tree(text + tokens, parents, sampler)
            for row, path in zip(rows, paths(text + tokens, parents), strict=True):
                fresh.reset()
                np.testing.assert_allclose(
                    row, fresh.rows(path, 0, sampler)[0], atol=close
                )
            stays = text + tokens[: stem(parents)]
            assert model.prefix.fed == list(stays)
            assert {layer.get_seq_length() for layer in model.cache.layers} == {
                len(stays)
            }
            text += tokens[: dice.randrange(3)] + (dice.randrange(61),)
            fresh.reset()
            np.testing.assert_allclose(
                model.rows(text, 0, sampler), fresh.rows(text, 0, sampler), atol=close
            )


def test_a_tree_that_is_one_line_is_a_text():
    pytest.importorskip("torch")
    from speclib.models.hf import HFModel

    network = next(networks("float64"))
    tree, text = HFModel(network, 61), HFModel(network, 61)
    rows = tree.tree((1, 2, 3, 4, 5), (-1, 0, 1), Sampler(1.0))
    np.testing.assert_allclose(
        rows, text.rows((1, 2, 3, 4, 5), 3, Sampler(1.0)), atol=1e-15
    )
    assert (
        tree.prefix.fed == text.prefix.fed
        and tree.prefix.count == text.prefix.count == 5
    )
