"""EAGLE: the head's input and output, the offered tree, and the test.

Expected values come from transformers' hidden states, from the head recomputed without
a cache, from a search of all nodes, and from plain decoding.
"""

from __future__ import annotations

import os
import signal
from typing import NamedTuple

import numpy as np
import pytest

import speclib
from speclib.core.candidate_tree import CandidateTree, ancestry
from speclib.core.features import Features
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.models.toy import Random, Toy
from speclib.operations.draft_dynamic_tree import DraftDynamicTree
from speclib.operations.operation import DecodingRun, perform
from speclib.operations.score import ScoreTreeFeatures
from speclib.worlds.devices import DeviceLost
from speclib.worlds.processes import Processes
from speclib.worlds.virtual import Virtual

EAGLE = METHODS["eagle"]
TEXT = (5, 9, 2, 7, 11)
PLAIN = Sampler(1.0)
WIDTH = 32  # of the tiny networks


def request(run: int = 1, sampler: Sampler = PLAIN) -> DecodingRun:
    return DecodingRun(run, Coins(0), sampler)


# -- which nodes are offered -----------------------------------------------------------
class Node(NamedTuple):
    """A path of drafted tokens, and its probability according to the draft."""

    path: tuple[int, ...]
    chance: float


def nodes_found_by_search(model, text, levels: int, width: int) -> list[Node]:
    """Returns all nodes that EAGLE-2's expansion considers, found text by text."""
    nodes: list[Node] = []
    frontier = [Node((), 1.0)]
    for _ in range(levels):
        level = []
        for node in frontier:
            (row,) = model.rows(text + node.path, 0, PLAIN)
            likeliest = np.argsort(-row, kind="stable")[:width]
            for token in likeliest.tolist():
                level.append(Node((*node.path, token), node.chance * row[token]))
        nodes += level
        frontier = sorted(level, key=lambda node: -node.chance)[:width]
    return nodes


def paths_of(tokens, parents) -> set[tuple[int, ...]]:
    tokens = np.array(tokens)
    return {tuple(tokens[on_path].tolist()) for on_path in ancestry(parents)}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("levels, width, budget", [(3, 2, 5), (2, 4, 9), (4, 3, 40)])
def test_the_likeliest_of_all_nodes_are_offered(seed, levels, width, budget):
    operation = DraftDynamicTree((1, 2), levels, width, budget)
    (tokens, parents), chances = perform(operation, Random(6, seed), request()).output

    nodes = nodes_found_by_search(Random(6, seed), (1, 2), levels, width)
    best = sorted(nodes, key=lambda node: -node.chance)[:budget]
    assert paths_of(tokens, parents) == {node.path for node in best}
    assert sorted(chances) == pytest.approx(sorted(node.chance for node in best))
    assert all(parent < node for node, parent in enumerate(parents))


def test_a_token_of_probability_0_is_no_candidate():
    """Top-k 2 leaves two tokens at each position, however wide the tree may be."""
    operation = DraftDynamicTree((1, 2), 2, 5, 50)
    sampler = Sampler(1.0, top_k=2)
    (tokens, parents), _ = perform(operation, Random(6, 1), request(1, sampler)).output
    assert len(tokens) == 2 + 2 * 2
    tree = CandidateTree((), parents)
    for node in range(-1, len(tokens)):
        assert len(tree.children(node)) in (0, 2)


# -- features from the target ----------------------------------------------------------
def test_at_each_position_a_drafter_reads_the_feature_of_the_token_before():
    features = Features(2, np.array([[2.0], [3.0], [4.0]]))  # of tokens 2, 3, 4
    assert features.before(3, 6).tolist() == [[2.0], [3.0], [4.0]]
    assert features.before(5, 6).tolist() == [[4.0]]
    from_the_start = Features(0, np.array([[7.0], [8.0]]))
    assert from_the_start.before(0, 3).tolist() == [[0.0], [7.0], [8.0]]
    assert from_the_start.before(0, 1).tolist() == [[0.0]]


def test_a_path_has_the_features_of_its_nodes():
    """The features belong to tokens 3 and 4 of a text of five, and to nodes 0 to 3."""
    features = Features(3, np.arange(6.0)[:, None])
    along = features.of_path(5, [1, 3])
    assert along.start == 3
    assert along.values.ravel().tolist() == [0, 1, 3, 5]


def run_with(draft, target, change=lambda features: features, limit=20, **settings):
    """Runs EAGLE; ``change`` is applied to the target's features."""

    class Changing(Virtual):
        def wait(self, future):
            value = super().wait(future)
            if isinstance(future.op, ScoreTreeFeatures):
                return value._replace(features=change(value.features))
            return value

    world = Changing({"draft": draft, "target": target}, Latency.ratio(3))
    world.begin((0,), sampler=Sampler(), coins=Coins(0), limit=limit)
    EAGLE(world, **settings)
    return world


def test_a_toy_head_detects_mixed_up_features():
    """Every test of EAGLE with toys relies on this check of the text's features."""
    settings = {"gamma": 3, "width": 2, "budget": 5}
    assert run_with(Toy(0.7), Toy(), **settings).text

    def shifted(features):
        return features._replace(values=np.roll(features.values, 1, axis=0))

    with pytest.raises(SpeclibError, match="features were mixed up"):
        run_with(Toy(0.7), Toy(), shifted, **settings)


def test_a_cancelled_drafting_can_be_repeated():
    models = {"draft": Toy(0.7), "target": Toy()}
    world = Virtual(models, Latency.ratio(3), cancel="immediate")
    world.begin((0, 4, 5), sampler=Sampler(), coins=Coins(0), limit=9)
    scored = world.wait(world.target.score_tree_features((0, 4, 5), (), ()))
    text = (0, 4, 5, int(scored.rows[0].argmax()))
    ask = (text, 3, 2, 5, scored.features)
    unwanted = world.draft.draft_dynamic_tree(*ask)
    world.cancel(unwanted)
    again = world.wait(world.draft.draft_dynamic_tree(*ask))
    alone = perform(DraftDynamicTree(text, 3, 2, 5), Toy(0.7), request(1, Sampler()))
    assert again.tokens == alone.output.small[0]


def test_the_first_round_has_no_draft_and_every_later_one_has_both():
    world = run_with(Toy(0.8), Toy(), gamma=3, width=2, budget=5)
    rounds: dict[int, list[str]] = {}
    for event in world.end().operations:
        rounds.setdefault(event.round, []).append(event.op)
    first, *further = rounds.values()
    assert first == ["score_tree_features"]
    assert further
    for names in further:
        assert names == ["draft_dynamic_tree", "score_tree_features"]


def test_passes_count_even_if_no_node_of_their_level_is_offered():
    """Five tokens are equally likely: nodes of level 1 have 0.2, of level 2 0.04."""

    class Even(Random):
        def rows(self, text, last, sampler):
            return np.full_like(super().rows(text, last, sampler), 1 / self.vocab)

    world = Virtual({"draft": Even(5), "target": Random(5)}, Latency.ratio(3))
    world.begin((0,), sampler=PLAIN, coins=Coins(0), limit=9)
    tree = world.wait(world.draft.draft_dynamic_tree((0,), 3, 2, 3))
    assert tree.parents == (-1, 0, -1)
    (event,) = world.end().operations
    assert event.pass_count == 3
    assert event.dur == pytest.approx(3 * 1 / 3)


@pytest.mark.parametrize("device", ["draft", "target"])
def test_a_lost_device_ends_the_request_and_its_replacement_gets_every_feature(device):
    pair = speclib.load_pair("toy")
    how = {"method": "eagle", "gamma": 3, "width": 2, "budget": 5}
    wanted = speclib.decode("x", pair=pair, world="virtual", **how).tokens

    with Processes(pair) as world:

        def kill(tokens) -> None:
            for process in world.processes.get(device, ()):
                os.kill(process, signal.SIGKILL)

        with pytest.raises(DeviceLost, match=device):
            speclib.decode("x", world=world, on_commit=kill, **how)
        assert speclib.decode("x", world=world, **how).tokens == wanted


# -- pairs -----------------------------------------------------------------------------
HEAD = {"model": "zoo/target", "head": True}


@pytest.mark.parametrize(
    "target, draft, says",
    [
        (HEAD, HEAD, "only a draft can be a head"),
        ("zoo/draft-good", HEAD, "drafts for its own model alone"),
        ({"model": "zoo/target", "runtime": "llamacpp"}, HEAD, "alone, in torch"),
        ("zoo/target", HEAD | {"spread": "layers"}, "a head runs in one place"),
        (
            "toy",
            {"model": "toy", "head": True},
            "head would have no effect on 'toy'",
        ),
    ],
)
def test_a_head_is_a_draft_for_its_own_target_in_torch(target, draft, says):
    with pytest.raises(ValueError, match=says):
        speclib.pair(target, draft)


# -- real networks ---------------------------------------------------------------------
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from helpers.checkpoints import network  # noqa: E402

from speclab.training.distil import save_head  # noqa: E402
from speclib.data import prompts  # noqa: E402
from speclib.models import eagle_head, hf, zoo  # noqa: E402
from speclib.models.dilate import dilate  # noqa: E402

VOCAB = 61
NODES, PARENTS = (3, 8, 1, 4), (-1, 0, -1, 2)


@pytest.fixture(scope="module")
def target_network():
    return network(layers=3)


@pytest.fixture(scope="module")
def head(target_network):
    """A head in which every weight matters."""
    made = eagle_head.fresh(target_network, 0)
    torch.manual_seed(2)
    for name, weight in made.named_parameters():
        if weight.requires_grad and "norm" not in name:
            torch.nn.init.normal_(weight, 0, 0.2)
    return made.requires_grad_(False).eval()


def hidden_states(net, text) -> np.ndarray:
    """Returns transformers' last hidden states of ``text``."""
    output = net(torch.tensor([text]), output_hidden_states=True)
    return output.hidden_states[-1][0].detach().numpy()


def features_of(model, text, tree=((), ())) -> Features:
    tokens, parents = tree
    operation = ScoreTreeFeatures((*text, *tokens), parents)
    done = perform(operation, model, request())
    assert done.output is not None
    return Features(done.kept, done.output.small[1])


def test_features_are_transformers_last_hidden_states(target_network):
    model = hf.HFModel(target_network, VOCAB)
    first = features_of(model, TEXT[:3])
    assert first.start == 0
    np.testing.assert_allclose(
        first.values, hidden_states(target_network, TEXT[:3]), atol=1e-5
    )

    # Cached tokens are not fed again; a node's feature depends on its path.
    tree = features_of(model, TEXT, (NODES, PARENTS))
    assert (tree.start, tree.end) == (3, len(TEXT) + len(NODES))
    of_text = hidden_states(target_network, TEXT)
    np.testing.assert_allclose(tree.values[:2], of_text[3:], atol=1e-5)
    for node, on_path in enumerate(ancestry(PARENTS)):
        path = (*TEXT, *np.array(NODES)[on_path].tolist())
        wanted = hidden_states(target_network, path)[-1]
        np.testing.assert_allclose(tree.values[2 + node], wanted, atol=1e-5)


def chain_by_hand(head, target_network, text, path) -> list[np.ndarray]:
    """Returns the head's rows after ``text`` and each token of ``path``, uncached.

    The head reads the text's tokens with the target's features, and the path's tokens
    with the features that it has predicted itself.
    """
    incoming = torch.zeros(1, WIDTH)
    of_text = torch.tensor(hidden_states(target_network, text))
    incoming = torch.cat((incoming, of_text[:-1]))
    rows = []
    for end in range(len(path) + 1):
        ids = torch.tensor((*text, *path[:end]))
        embedded = target_network.get_input_embeddings()(ids)
        joined = torch.cat((embedded, incoming), -1) @ head.fc.weight.T
        predicted = head.network.model(inputs_embeds=joined[None]).last_hidden_state[0]
        rows.append(target_network.lm_head(predicted[-1]).softmax(-1).numpy())
        incoming = torch.cat((incoming, predicted[-1:]))
    return rows


@pytest.mark.parametrize("packed", [False, True])
def test_a_head_reads_its_targets_features_and_then_its_own(
    target_network, head, packed
):
    target = hf.HFModel(target_network, VOCAB)
    model = eagle_head.Head(head, VOCAB)
    with torch.inference_mode(), model.reading(TEXT, features_of(target, TEXT)):
        first = model.rows(TEXT, 0, PLAIN)
        level_1 = model.level((*TEXT, 3, 1), (-1, -1), 2, PLAIN)
        level_2 = model.level((*TEXT, 3, 1, 8, 4), (-1, -1, 0, 1), 2, PLAIN)
    with torch.inference_mode():
        by_hand = chain_by_hand(head, target_network, TEXT, (3, 8))
        other = chain_by_hand(head, target_network, TEXT, (1, 4))
    np.testing.assert_allclose(first[0], by_hand[0], atol=1e-6)
    np.testing.assert_allclose(level_1, [by_hand[1], other[1]], atol=1e-6)
    np.testing.assert_allclose(level_2, [by_hand[2], other[2]], atol=1e-6)


def test_after_a_tree_the_head_reads_the_accepted_tokens_again(target_network, head):
    """Drafted nodes leave the cache; the next tree equals one from an empty cache."""
    target, model = hf.HFModel(target_network, VOCAB), eagle_head.Head(head, VOCAB)
    ask = request(5)
    features = features_of(target, TEXT)
    perform(DraftDynamicTree(TEXT, 3, 2, 6, features), model, ask)
    assert model.prefix.fed == list(TEXT)
    assert model.cache.get_seq_length() == len(TEXT)

    longer = (*TEXT, 3, 8)
    new = features_of(target, longer)
    assert new.start == len(TEXT)
    old = Features(len(TEXT) - 1, hidden_states(target_network, longer)[4:])
    done = perform(DraftDynamicTree(longer, 3, 2, 6, old), model, ask)
    whole = Features(0, hidden_states(target_network, longer))
    fresh = eagle_head.Head(head, VOCAB)
    again = perform(DraftDynamicTree(longer, 3, 2, 6, whole), fresh, ask)
    assert (done.kept, again.kept) == (len(TEXT), 0)
    assert done.output.small == again.output.small
    np.testing.assert_allclose(done.output.rows, again.output.rows, atol=1e-6)


@pytest.mark.parametrize("passes", range(3))
def test_a_stopped_drafting_does_not_affect_the_next(target_network, head, passes):
    """Drafting stops before its first, second or third pass, and is then repeated."""
    features = features_of(hf.HFModel(target_network, VOCAB), TEXT)
    operation = DraftDynamicTree(TEXT, 3, 2, 6, features)
    wanted = perform(operation, eagle_head.Head(head, VOCAB), request()).output

    model = eagle_head.Head(head, VOCAB)
    answers = iter([False] * passes + [True])
    model.stopped = lambda: next(answers)
    assert perform(operation, model, request()).output is None
    assert model.prefix.fed == list(TEXT)[: len(TEXT) if passes else 0]

    model.stopped = bool
    again = perform(operation, model, request()).output
    assert again.small == wanted.small
    np.testing.assert_allclose(again.rows, wanted.rows, atol=1e-6)


def test_a_cache_without_features_is_not_reused_with_features(target_network, head):
    target, model = hf.HFModel(target_network, VOCAB), eagle_head.Head(head, VOCAB)
    model.rows(TEXT, 0, PLAIN)
    features = features_of(target, TEXT)
    with model.reading(TEXT, features):
        rows = model.rows(TEXT, 0, PLAIN)
    with torch.inference_mode():
        (by_hand,) = chain_by_hand(head, target_network, TEXT, ())
    np.testing.assert_allclose(rows[0], by_hand, atol=1e-6)


def test_a_dilated_head_reads_its_dilated_target_and_predicts_the_same(
    target_network, head
):
    shape = (1, 96, 12, 80)
    large_target = hf.HFModel(dilate(target_network, (5, 96, 12, 80)), VOCAB)
    large = eagle_head.Head(eagle_head.dilated(head, shape), VOCAB)
    target, small = hf.HFModel(target_network, VOCAB), eagle_head.Head(head, VOCAB)
    trees = []
    for model, reads in ((small, target), (large, large_target)):
        operation = DraftDynamicTree(TEXT, 3, 3, 9, features_of(reads, TEXT))
        trees.append(perform(operation, model, request()).output)
    assert trees[0].small == trees[1].small
    np.testing.assert_allclose(trees[0].rows, trees[1].rows, atol=1e-5)

    with pytest.raises(SpeclibError, match="have 96 channels, but the head reads 32"):
        operation = DraftDynamicTree(TEXT, 3, 3, 9, Features(0, np.zeros((5, 96))))
        perform(operation, eagle_head.Head(head, VOCAB), request())


# -- the stored head -------------------------------------------------------------------
def test_a_stored_head_has_only_its_own_weights(tmp_path, target_network, head):
    save_head(head, tmp_path)
    again = eagle_head.read(target_network, tmp_path)
    assert again.state_dict().keys() == head.state_dict().keys()
    for name, weight in head.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], weight, atol=2e-2, rtol=0)

    own = sum(weight.numel() for weight in head.parameters())
    own -= 2 * target_network.lm_head.weight.numel()
    size = (tmp_path / eagle_head.FILE).stat().st_size
    assert 2 * own <= size <= 2 * own + 4096


@pytest.mark.parametrize(
    "layers, damage, says",
    [
        (3, "missing", "the EAGLE head .* is missing"),
        (3, "lacking", "not the EAGLE head.*'fc.weight'"),
        (3, "more", "not the EAGLE head.*'other'"),
        (3, "wide", r"not the EAGLE head.*'fc.weight', \(3, 3\)"),
        (3, "cut short", "eagle.safetensors, of .* bytes, is truncated"),
    ],
)
def test_an_incomplete_or_damaged_head_is_refused(
    tmp_path, target_network, head, layers, damage, says
):
    from safetensors.torch import load_file, save_file

    if damage != "missing":
        save_head(head, tmp_path)
        weights = load_file(tmp_path / eagle_head.FILE)
        if damage == "lacking":
            del weights["fc.weight"]
        elif damage == "more":
            weights["other"] = torch.zeros(2)
        else:
            weights["fc.weight"] = torch.zeros(3, 3)
        save_file(weights, tmp_path / eagle_head.FILE)
    if damage == "cut short":
        path = tmp_path / eagle_head.FILE
        path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(SpeclibError, match=says) as caught:
        eagle_head.read(target_network, tmp_path)
    assert "\n" not in str(caught.value)


# -- the zoo's head --------------------------------------------------------------------
NARROW = speclib.load_pair("embedded/eagle-narrow")
needs_the_head = pytest.mark.skipif(
    not (zoo.ZOO / "target" / eagle_head.FILE).exists(),
    reason="the zoo's head is not trained: make models",
)


@pytest.fixture(scope="module")
def zoo_world():
    with speclib.open_world("virtual", NARROW) as world:
        yield world


@needs_the_head
@pytest.mark.slow
@pytest.mark.parametrize(
    "task, gamma",
    [
        ("humaneval", 1),
        ("humaneval", 6),
        ("mgsm_te", 6),
        ("qa", 6),
        pytest.param("mgsm_te", 1, marks=pytest.mark.thorough),
        pytest.param("qa", 1, marks=pytest.mark.thorough),
    ],
)
def test_greedy_output_is_plain_decodings_own(zoo_world, task, gamma):
    how = {"world": zoo_world, "max_new_tokens": 32}
    prompt = prompts.load(task)[0].input
    plain = speclib.decode(prompt, method="autoregressive", **how)
    for settings in ({}, {"width": 1, "budget": 6}):
        result = speclib.decode(prompt, method="eagle", gamma=gamma, **how, **settings)
        assert result.tokens == plain.tokens


@pytest.fixture(scope="module")
def zoo_workers():
    with Processes(NARROW) as world:
        yield world


@needs_the_head
@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_workers_write_what_the_virtual_clock_writes(
    zoo_world, zoo_workers, temperature
):
    how = {"method": "eagle", "gamma": 4, "max_new_tokens": 24}
    how |= {"temperature": temperature, "seed": 3}
    prompt = prompts.load("stem")[0].input
    wanted = speclib.decode(prompt, world=zoo_world, **how)
    result = speclib.decode(prompt, world=zoo_workers, **how)
    assert result.tokens == wanted.tokens
    assert result.stats.accepted == wanted.stats.accepted


@needs_the_head
@pytest.mark.slow
def test_a_head_drafts_for_a_dilated_target_on_two_ranks(zoo_world):
    how = {"method": "eagle", "gamma": 4, "max_new_tokens": 16}
    prompt = prompts.load("stem")[0].input
    wanted = speclib.decode(prompt, world=zoo_world, **how)
    with Processes(speclib.load_pair("embedded/eagle")) as world:
        result = speclib.decode(prompt, world=world, **how)
    assert result.tokens == wanted.tokens
    assert result.stats.accepted == wanted.stats.accepted


@needs_the_head
@pytest.mark.slow
def test_a_head_without_features_is_a_poor_draft_but_a_valid_one(zoo_world):
    """Any method can use it, but its drafts with features are accepted more often."""
    how = {"world": zoo_world, "max_new_tokens": 32}
    prompt = prompts.load("stem")[0].input
    plain = speclib.decode(prompt, method="autoregressive", **how)
    without = speclib.decode(prompt, method="speculative", gamma=2, **how)
    line = {"width": 1, "budget": 2}
    with_features = speclib.decode(prompt, method="eagle", gamma=2, **line, **how)
    assert without.tokens == with_features.tokens == plain.tokens
    assert with_features.stats.acceptance_rate > without.stats.acceptance_rate
