"""Tree speculative decoding: its candidates, its tests and its costs.

Expected values come from arithmetic, from the exact enumerator, and from speculative
decoding.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclab.mutants.other_tosses import OtherTosses
from speclib.core.candidate_tree import CandidateTree, paths
from speclib.core.kv_prefix import Prefix
from speclib.core.sampling import Coins, Sampler, ids, residual
from speclib.core.verification import Verified, verify_tree
from speclib.data.latency import Curve, Latency
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.models.toy import Random, Toy
from speclib.operations.draft_tree import DraftTree
from speclib.operations.model import Model
from speclib.operations.operation import DecodingRun, perform
from speclib.trace.metrics import stats
from speclib.worlds.enumerator import distance, outcomes, truth
from speclib.worlds.virtual import Virtual

TREE = METHODS["tree"]


class Table(Model):
    """A draft with the same row everywhere; it scores one text at a time."""

    stopped = staticmethod(bool)

    def __init__(self, row):
        self.row = np.array(row)
        self.vocab = len(row)
        self.reset()

    def reset(self):
        self.prefix = Prefix()

    def cut(self, length):
        self.prefix.cut(length)

    def chances(self):
        return self.row

    def rows(self, text, last, sampler):
        self.prefix.move(text, self.prefix.keep(text, last))
        with np.errstate(divide="ignore"):
            return sampler(np.log(self.row)[None])


def grown(model, n, width, sampler=None, seed=0, **how):
    """Grows a tree after the text (0, 1): (tokens, parents, q rows, done)."""
    operation = DraftTree((0, 1), n, width, **how)
    request = DecodingRun(seed, Coins(seed), sampler or Sampler())
    done = perform(operation, model, request)
    (tokens, parents), rows = done.output
    return tokens, parents, rows, done


# -- candidates ------------------------------------------------------------------------
def test_greedy_candidates_are_the_likeliest_paths_with_one_hot_q():
    """Each position has probabilities 0.5, 0.3 and 0.2.

    Level 1, of width 3, has all three tokens. Level 2 has 0.25, then 0.15 twice, with
    the elder node's second child first. Nodes are listed depth first, elder ones first.
    """
    tokens, parents, rows, _ = grown(Table([0.3, 0.5, 0.2]), 2, 3)
    assert tokens == (1, 1, 0, 0, 1, 2)
    assert parents == (-1, 0, 0, -1, 3, -1)
    assert (rows == np.eye(3)[list(tokens)]).all()


@given(
    seed=st.integers(0, 30),
    n=st.integers(1, 4),
    width=st.integers(1, 4),
    more=st.none() | st.integers(0, 6),
    sampled=st.booleans(),
)
def test_a_tree_has_its_levels_and_at_most_its_budget_of_nodes(
    seed, n, width, more, sampled
):
    budget = None if more is None else n + more
    sampler = Sampler(float(sampled))
    tokens, parents, rows, done = grown(
        Random(5, seed), n, width, sampler, seed, budget=budget
    )
    assert len(rows) == len(tokens)
    assert len(tokens) <= (n * width if budget is None else budget)

    node_paths = paths((0, 1, *tokens), parents)[1:]
    assert len({(0, 1), *node_paths}) == len(tokens) + 1  # siblings differ

    depths = [len(path) - 2 for path in node_paths]
    assert set(depths) == set(range(1, n + 1))
    assert all(depths.count(level) <= width for level in depths)
    assert done.fed == 2 + sum(depth < n for depth in depths)


@pytest.mark.parametrize(
    "sampler", [Sampler(1.0), Sampler(0.7, 3), Sampler(2.0, 0, 0.9)], ids=str
)
def test_each_q_is_the_drafts_row_without_elder_siblings(sampler):
    draft, twin = Random(5, 3), Random(5, 3)
    for seed in range(10):
        tokens, parents, rows, _ = grown(draft, 3, 4, sampler, seed)
        node_paths = paths((0, 1, *tokens), parents)[1:]
        for node, path in enumerate(node_paths):
            elder = [tokens[n] for n in range(node) if parents[n] == parents[node]]
            mass_left = twin.rows(path[:-1], 0, sampler)[0].copy()
            mass_left[elder] = 0
            expected = mass_left / mass_left.sum()
            assert rows[node] == pytest.approx(expected, abs=1e-12)


# -- tests -----------------------------------------------------------------------------
def first_of_all(toss):
    """Uses one coin for all siblings."""
    return replace(toss, index=0)


def planted(world, gamma, width, test):
    """Runs tree speculative decoding with the verification ``test``."""
    while world.going:
        drafting = world.draft.draft_tree(world.text, gamma, width)
        draft, parents = world.wait(drafting)
        scoring = world.target.score_tree(world.text, ids(draft), parents)
        rows = world.wait(scoring)
        verdict = test(world, draft, parents, rows)
        world.commit(verdict.tokens)


def removal_and_renormalisation(world, draft, parents, rows):
    return verify_tree(world, CandidateTree(draft, parents), rows)


def each_with_the_first_q(world, draft, parents, rows):
    """Does not renormalise: a younger sibling is tested with the q of the eldest."""
    q_of_eldest = {}
    retold = []
    for drafted, parent in zip(draft, parents, strict=True):
        q_of_eldest.setdefault(parent, drafted.q)
        retold.append(drafted._replace(q=q_of_eldest[parent]))
    return verify_tree(world, CandidateTree(tuple(retold), parents), rows)


def nothing_removed(world, draft, parents, rows):
    """Tests every candidate against p itself, as independent paths are.

    If all are rejected, the last one's residual gives the replacement.
    """
    node = -1
    accepted = ()
    while True:
        p = rows[node + 1]
        position = len(world.text) + len(accepted)
        children = [n for n, parent in enumerate(parents) if parent == node]
        for index, child in enumerate(children):
            token, q = draft[child].token, draft[child].q
            chance = min(1.0, p[token] / q[token])
            pass_or_fail = np.array((chance, 1 - chance))
            if world.coins.choose(pass_or_fail, position, "accept", index) == 0:
                node = child
                accepted += (token,)
                break
        else:  # none passed
            left = residual(p, draft[children[-1]].q) if children else p
            replacement = world.coins.choose(left, position, "residual")
            return Verified(accepted, (replacement,))


def one_coin_for_siblings(world, draft, parents, rows):
    own_coins = world.coins
    world.coins = OtherTosses(own_coins, first_of_all)
    verdict = verify_tree(world, CandidateTree(draft, parents), rows)
    world.coins = own_coins
    return verdict


def error(method, vocab=3, tokens=2, **settings) -> float:
    models = {
        "draft": Random(vocab, 10, 1 + tokens),
        "target": Random(vocab, 20, 1 + tokens),
    }
    chances = outcomes(method, models, tokens, **settings)
    return distance(chances, truth(models["target"], tokens))


@pytest.mark.parametrize("gamma, width", [(1, 2), (1, 3), (2, 2)])
def test_removal_and_renormalisation_lose_nothing(gamma, width):
    settings = {"gamma": gamma, "width": width, "test": removal_and_renormalisation}
    assert error(planted, **settings) < 1e-12


@pytest.mark.parametrize(
    "bug", [each_with_the_first_q, nothing_removed, one_coin_for_siblings]
)
def test_a_planted_bug_in_a_trees_verification_is_found(bug):
    assert error(planted, gamma=1, width=2, test=bug) > 1e-3


# -- degenerate cases ------------------------------------------------------------------
@pytest.mark.parametrize("sampler", [Sampler(), Sampler(1.0), Sampler(0.6, 3)], ids=str)
def test_with_width_one_it_equals_speculative_decoding_bit_for_bit(decode, sampler):
    for seed in range(2):
        for gamma in (1, 2, 5):
            models = {"draft": Random(4, seed), "target": Random(4, seed + 9)}
            how = dict(sampler=sampler, coins=Coins(seed), gamma=gamma)
            output, trace = decode(TREE, models, 30, width=1, **how)
            plain_output, plain_trace = decode(
                METHODS["speculative"], models, 30, **how
            )

            assert output == plain_output
            assert stats(trace) == stats(plain_trace)
            assert what_happened(trace) == what_happened(plain_trace)


def what_happened(trace) -> list[tuple]:
    """Returns each event's time, cache, tokens and outcome, without its name."""
    return [(e.ts, e.dur, e.kept, e.fed, e.tokens, e.outcome) for e in trace.events]


@pytest.mark.parametrize(
    "settings, says",
    [
        ({"width": 0}, "width is 0: give at least 1"),
        ({"budget": 0}, "budget is 0: give at least 1"),
    ],
)
@pytest.mark.parametrize("name", ["tree", "easyspec"])
def test_a_tree_without_nodes_is_refused(decode, name, settings, says):
    models = {"draft": Toy(0.5), "target": Toy()}
    with pytest.raises(SpeclibError, match=says):
        decode(METHODS[name], models, 4, gamma=2, **settings)


# -- costs -----------------------------------------------------------------------------
def test_a_level_takes_one_pass_whatever_its_width(decode):
    """With constant pass times, an iteration's time does not depend on the width."""
    latency = Latency.ratio(5, 10.0)
    for width in (1, 2, 4):
        models = {"draft": Random(5, 1), "target": Random(5, 2)}
        _, trace = decode(TREE, models, 20, gamma=3, width=width, latency=latency)
        passes = [event for event in trace.operations if event.is_scoring]
        trees = [event for event in trace.operations if event.op == "draft_tree"]
        assert {event.dur for event in passes} == {10.0}
        whole = trees[:-2]  # the last ones write the rest of the text
        assert len(whole) >= 3
        assert {(event.dur, event.pass_count) for event in whole} == {(6.0, 3)}


def test_a_level_is_charged_for_the_nodes_it_feeds(decode):
    """A draft pass takes 1 s for one token and 2 s for three.

    After a text of two tokens (1.5 s), two levels of three nodes each are fed, but not
    the third: 1.5 + 2 + 2.
    """
    clock = Latency(Curve(((1, 1.0), (3, 2.0))), Curve(((1, 1.0),)))
    world = Virtual({"draft": Random(5, 1), "target": Random(5, 2)}, clock)
    world.begin((1, 2), sampler=Sampler(1.0), coins=Coins(), limit=9)
    drafted, parents = world.wait(world.draft.draft_tree(world.text, 3, 3))
    (event,) = world.end().operations
    assert len(drafted) == 9
    assert event.dur == 5.5
    assert (event.kept, event.fed, event.drafts_fed) == (0, 8, 6)
    assert event.payload.parents == parents
    assert max(event.depths) == 2


def test_the_caches_keep_the_accepted_first_candidates(decode):
    """The first candidates of a draft that is always right pass.

    So the target is fed the bonus token and the next tree, and the draft is fed the
    last level and the bonus token.
    """
    words = tuple(range(1, 60))
    models = {"draft": Toy(1.0, 60, words=words), "target": Toy(None, 60, words=words)}
    _, trace = decode(TREE, models, 20, gamma=4, width=3)
    later = [e for e in trace.operations if e.round > 0]
    assert {e.fed - e.tested for e in later if e.is_scoring} == {1}
    assert {e.fed - e.drafts_fed for e in later if e.is_drafting} == {2}


# -- transformers ----------------------------------------------------------------------
@pytest.mark.parametrize(
    "sampler", [Sampler(), Sampler(1.0)], ids=["greedy", "sampled"]
)
def test_a_transformers_model_grows_the_same_tree_by_levels_and_by_paths(sampler):
    torch = pytest.importorskip("torch")
    from transformers import LlamaConfig, LlamaForCausalLM

    from speclib.models.hf import HFModel

    class Plain(HFModel):
        level = Model.level  # path by path

    torch.manual_seed(0)
    network = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=61,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=64,
        )
    ).double()
    for seed in range(4):
        by_levels = HFModel(network, 61)
        by_paths = Plain(network, 61)
        operation = DraftTree((3, 1, 4), 4, 5)
        request = DecodingRun(seed, Coins(seed), sampler)
        for _ in range(2):  # with an empty cache, then with a tree's
            tree, rows = perform(operation, by_levels, request).output
            expected_tree, expected_rows = perform(operation, by_paths, request).output
            (first_token, *_), _ = tree
            assert tree == expected_tree
            np.testing.assert_allclose(rows, expected_rows, atol=1e-12)
            assert by_levels.prefix.fed == [3, 1, 4, first_token]

        longer = (3, 1, 4, first_token, 5)
        np.testing.assert_allclose(
            by_levels.rows(longer, 0, Sampler(1.0)),
            by_paths.rows(longer, 0, Sampler(1.0)),
            atol=1e-12,
        )
