"""REST and its datastore, compared with a simple search and plain decoding."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import speclib
from speclib.core.sampling import Coins, Sampler
from speclib.data import prompts
from speclib.data import retrieval as stores
from speclib.data.latency import Latency
from speclib.data.pairs import Pair
from speclib.data.retrieval import Datastore
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.models.open_pair import open_pair
from speclib.models.toy import Random, Toy
from speclib.trace.metrics import stats
from speclib.worlds.enumerator import distance, outcomes, truth
from speclib.worlds.virtual import Virtual

WORDS = tuple(range(1, 60))  # all different, so a token has one position


def ran(
    documents,
    target,
    limit,
    *,
    prompt=(0,),
    sampler=None,
    eos=frozenset(),
    seed=0,
    **settings,
):
    """Runs REST with a datastore of ``documents``; returns the output and trace."""
    world = Virtual({"draft": target, "target": target}, Latency.ratio(3))
    world.datastore = Datastore(documents)
    world.begin(
        prompt, sampler=sampler or Sampler(), coins=Coins(seed), limit=limit, eos=eos
    )
    METHODS["rest"](world, **settings)
    return world.text[len(prompt) :], world.end()


def lookups(trace) -> list[tuple[int, ...]]:
    return [e.tokens for e in trace.events if e.op == "lookup"]


# -- the datastore ---------------------------------------------------------------------
documents = st.lists(st.lists(st.integers(0, 2), max_size=12), max_size=4)


@given(
    documents,
    st.lists(st.integers(0, 2), max_size=6),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_the_datastore_finds_the_same_continuations_as_a_search_of_every_position(
    texts, text, longest, length
):
    expected = []
    for size in range(1, min(longest, len(text)) + 1):
        continuations = continuations_by_search(texts, text[-size:], length)
        if any(continuations):
            expected = continuations

    continuations = Datastore(texts).after(tuple(text), longest, length)
    assert Counter(continuations) == Counter(expected)


def continuations_by_search(texts, end, length: int) -> list[tuple[int, ...]]:
    """Returns up to ``length`` tokens after every occurrence of ``end``."""
    continuations = []
    for text in texts:
        for start in range(len(text)):
            after = start + len(end)
            if text[start:after] == end:
                continuations.append(tuple(text[after : after + length]))
    return continuations


@given(st.lists(st.integers(-1, 2), max_size=30))
def test_suffixes_are_sorted_as_in_python(tokens):
    by_python = sorted(range(len(tokens)), key=lambda start: tokens[start:])
    assert stores.sorted_suffixes(tokens) == by_python


def test_of_very_many_occurrences_evenly_spaced_ones_are_returned():
    """Half of 1,000 occurrences of token 1 are returned, half of them followed by 2."""
    store = Datastore([(1, 2 + number % 2) for number in range(1000)])
    assert Counter(store.after((1,), 4, 3)) == {(2,): 250, (3,): 250}

    store = Datastore([(1, 2)] * 501)
    assert len(list(store.after((1,), 4, 3))) == 251


# -- the method ------------------------------------------------------------------------
@pytest.mark.parametrize("length", [1, 4, 10])
def test_with_the_targets_own_words_in_the_datastore_every_draft_is_accepted(length):
    """The first lookup uses the prompt's only token."""
    target = Toy(None, 60, 0, WORDS, 128)
    output, trace = ran([(9, 9), (0, *WORDS)], target, 3 * (length + 1), length=length)
    assert output == WORDS[: 3 * (length + 1)]
    assert [len(e.tokens) for e in trace.commits] == [length + 1] * 3
    counts = stats(trace)
    assert (counts.target_runs, counts.draft_runs) == (3, 0)
    assert (counts.accepted, counts.rejected) == (3 * length, 0)


def test_the_tree_contains_the_most_frequent_prefixes_heaviest_branch_first():
    """After 0 come 1 2 (three times), 1 3 and 4 5 (twice each), and 6 (once).

    The prefixes by weight are 1 (5), 12 (3), then 4, 13, 45 (2 each, shorter ones
    first), then 6.
    """
    texts = [(0, 1, 2)] * 3 + [(0, 1, 3)] * 2 + [(0, 4, 5)] * 2 + [(0, 6)]
    target = Toy(None, 60, 0, WORDS, 128)
    tree_of_nodes = {
        1: (1,),
        2: (1, 2),
        3: (1, 2, 4),
        4: (1, 2, 3, 4),
        9: (1, 2, 3, 4, 5, 6),
    }
    for nodes, tree in tree_of_nodes.items():
        _, trace = ran(texts, target, 3, nodes=nodes)
        assert lookups(trace)[0] == tree


def test_longer_suffixes_of_the_text_are_looked_up_first():
    """1 follows 8 0, but 7 usually follows 0 alone."""
    texts = [(8, 0, 1), (5, 0, 7), (6, 0, 7)]
    target = Toy(None, 60, 0, (9, *WORDS), 128)

    _, trace = ran(texts, target, 2, prompt=(8, 0))
    assert lookups(trace) == [(1,)]
    _, trace = ran(texts, target, 2, prompt=(8, 0), longest=1)
    assert lookups(trace) == [(7, 1)]


def test_without_a_datastore_the_text_itself_is_looked_up(decode):
    """The text has period 3 after the prompt's 0.

    The first 1 2 3 cannot be found, but everything after the second 1 can.
    """
    models = {
        "draft": Toy(0.5, 50, 0, (1, 2, 3)),
        "target": Toy(None, 50, 0, (1, 2, 3)),
    }
    output, trace = decode(METHODS["rest"], models, 12, length=4)
    assert output == (1, 2, 3) * 4
    assert [len(e.tokens) for e in trace.commits] == [1, 1, 1, 1, 4, 4]


@pytest.mark.parametrize("sampler", [Sampler(), Sampler(1.0), Sampler(0.8, 2)], ids=str)
def test_with_any_datastore_the_tokens_equal_plain_decodings(decode, sampler):
    dice = np.random.default_rng(7)
    for seed in range(12):
        texts = [tuple(dice.integers(0, 3, 30).tolist()) for _ in range(5)]
        target = Random(3, seed)
        models = {"draft": target, "target": target}
        eos = frozenset({2} if seed % 2 else ())
        how = {"sampler": sampler, "coins": Coins(seed), "eos": eos}
        plain, _ = decode(METHODS["autoregressive"], models, 40, **how)
        settings = {
            "longest": 1 + seed % 4,
            "length": 1 + seed % 5,
            "nodes": 1 + 3 * (seed % 3),
        }
        output, _ = ran(
            texts, target, 40, sampler=sampler, seed=seed, eos=eos, **settings
        )
        assert output == plain, settings


def test_with_a_datastore_outputs_have_the_targets_distribution():
    def rest(world, **settings):
        world.datastore = Datastore([(0, 1, 2, 0, 0), (1, 1, 2), (2, 0, 1, 0)])
        METHODS["rest"](world, **settings)

    target = Random(3, 5, 4)
    for settings in ({}, {"longest": 1, "length": 2, "nodes": 3}):
        models = {"draft": Random(3, 1, 4), "target": target}
        chances = outcomes(rest, models, 3, **settings)
        assert sum(chances.values()) == pytest.approx(1, abs=1e-12)
        assert distance(chances, truth(target, 3)) < 1e-12


@pytest.mark.parametrize("name", ["longest", "length", "nodes"])
def test_an_impossible_setting_is_refused(name):
    with pytest.raises(SpeclibError, match=f"{name} is 0: give at least 1"):
        ran([], Random(3), 4, **{name: 0})


# -- an embedded pair's datastore ------------------------------------------------------
@pytest.fixture(scope="module")
def embedded_pair() -> Pair:
    """The embedded pair whose models stand in for a 7B and a 70B model."""
    pytest.importorskip("torch")
    from speclib.models import zoo

    if not (zoo.ZOO / "target" / "model.safetensors").exists():
        pytest.skip("the embedded models are not trained: make models")
    return speclib.load_pair("embedded/llama-7b-70b")


@pytest.mark.thorough
def test_an_embedded_pairs_datastore_was_not_trained_on(embedded_pair):
    """Its texts equal the trainer's documents, but lack the end token after code."""
    from speclab.training.tasks import corpus
    from speclab.training.tokenizer import EOS, Writer

    tokenizer = open_pair(embedded_pair).tokenizer
    writer = Writer(tokenizer)
    documents = set()
    for task in corpus.datastore_tasks():
        ids = stores.document(tokenizer, task.turns, task.raw)
        assert ids + [EOS] * task.raw == writer.document(task)[0]
        documents.add(tuple(ids))
    for task in islice(corpus.tasks(1), 500):
        assert tuple(stores.document(tokenizer, task.turns, task.raw)) not in documents
    own = open_pair(embedded_pair).datastore
    assert own.tokens == stores.held_out_text(tokenizer).tokens


def test_a_pair_that_names_texts_looks_them_up(embedded_pair, tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "one.txt").write_text("the first text", encoding="utf-8")
    (tmp_path / "deep" / "two.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / ".hidden").write_bytes(b"\xff")
    pair = embedded_pair.model_copy(update={"datastore": str(tmp_path)})
    opened = open_pair(pair)
    written = opened.tokenizer.decode([t for t in opened.datastore.tokens if t >= 0])
    assert written == "x = 1\nthe first text"


def test_missing_files_and_files_without_text_are_named(embedded_pair, tmp_path):
    def store(path):
        pair = embedded_pair.model_copy(update={"datastore": str(path)})
        return open_pair(pair).datastore

    with pytest.raises(SpeclibError, match="nowhere.*has no files.*give the path"):
        store(tmp_path / "nowhere")
    with pytest.raises(SpeclibError, match="which has no files"):
        store(tmp_path)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff")
    with pytest.raises(SpeclibError, match="picture.png.*UTF-8.*move it elsewhere"):
        _ = store(tmp_path).tokens


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_on_the_embedded_pair_drafts_are_accepted_and_outputs_equal_plain_decodings(
    embedded_pair, temperature
):
    prompt = prompts.load("humaneval")[0].input
    with speclib.open_world("virtual", embedded_pair) as world:
        how = {"world": world, "temperature": temperature, "max_new_tokens": 96}
        plain = speclib.decode(prompt, method="autoregressive", seed=3, **how)
        result = speclib.decode(prompt, method="rest", seed=3, **how)
    assert result.tokens == plain.tokens
    assert result.stats.accepted > 0
    assert result.stats.target_runs < plain.stats.target_runs
