"""Models that remember what they said: the same runs, and each text is read once."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

import speclib
from speclib.core.candidate_tree import paths
from speclib.core.sampling import Sampler
from speclib.data import prompts
from speclib.decoding.decode import decode, open_world
from speclib.methods import METHODS, takes_gamma
from speclib.models.remembering import Memories, Memory, Remembering
from speclib.models.toy import Random

PAIR = "embedded/llama-7b-70b"
HEAD = "embedded/eagle"
PLAIN = Sampler(1.0)


class Asked(Random):
    """Says what was read, and how often."""

    def __init__(self, *settings: int):
        super().__init__(*settings)
        self.reads: Counter[tuple[int, ...]] = Counter()

    def rows(self, text, last, sampler):
        for end in range(len(text) - last, len(text) + 1):
            self.reads[tuple(text[:end])] += 1
        probabilities = super().rows(text, last, PLAIN)
        self.logits = probabilities  # as numbers that a sampler takes for logits
        return probabilities


def test_each_text_is_read_once_by_whoever_asks():
    model = Asked(5, 1)
    memory = Memory(model)
    first, second = Remembering(memory), Remembering(memory)
    whole = first.rows((1, 2, 3), 2, PLAIN)
    assert (second.rows((1, 2), 1, PLAIN) == whole[:2]).all()
    longer = second.rows((1, 2, 3, 4), 3, PLAIN)
    assert (longer[:3] == whole).all()
    assert set(model.reads.values()) == {1}


def test_each_device_counts_a_cache_of_its_own():
    memory = Memory(Asked(5, 1))
    first, second = Remembering(memory), Remembering(memory)
    first.rows((1, 2, 3), 0, PLAIN)
    assert (first.prefix.fed, second.prefix.fed) == ([1, 2, 3], [])
    second.rows((1, 2), 0, PLAIN)
    first.cut(1)
    assert (first.prefix.fed, second.prefix.fed) == ([1], [1, 2])


# -- real models -----------------------------------------------------------------------
def traces_in(world, method, temperature):
    """Traces of a few prompts by a method."""
    settings = {"gamma": 3} if takes_gamma(method) else {}
    traces = []
    for number, prompt in enumerate(prompts.load("humaneval", 2)):
        result = decode(
            prompt.input,
            world=world,
            method=method,
            max_new_tokens=24,
            temperature=temperature,
            request=number,
            **settings,
        )
        traces.append(result.trace)
    return traces


def but_for_last_digits(trace):
    """A trace, and its payloads, whose probabilities may differ in the last digits."""
    payloads = [rounded(event.payload) for event in trace.events]
    events = [event._replace(payload=None) for event in trace.events]
    return replace(trace, events=events), payloads


def rounded(value):
    if isinstance(value, float):
        return pytest.approx(value, abs=2e-6)
    if isinstance(value, tuple):
        return [rounded(each) for each in value]
    if is_dataclass(value):
        return {each.name: rounded(getattr(value, each.name)) for each in fields(value)}
    return value


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_runs_as_with_models_that_remember_nothing(method, temperature):
    """Token for token and pass for pass, when texts are new and when they are not."""
    pytest.importorskip("torch")
    pair = speclib.load_pair(HEAD if method == "eagle" else PAIR)
    with open_world("virtual", pair) as world:
        expected = list(map(but_for_last_digits, traces_in(world, method, temperature)))
        world.models = Memories().models(world.opened, world.models)
        for _ in range(2):
            traces = traces_in(world, method, temperature)
            assert list(map(but_for_last_digits, traces)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("method", ["pearl", "dsi", "tree", "easyspec"])
def test_what_one_method_read_serves_the_next(method):
    """After plain decoding every text on the way is known: only drafts are new."""
    pytest.importorskip("torch")
    with open_world("virtual", speclib.load_pair(PAIR)) as world:
        world.models = Memories().models(world.opened, world.models)
        traces_in(world, method, 0.0)
        memory = world.models["target"].memory
        known = len(memory.logits_after)
        traces_in(world, "autoregressive", 0.0)
        assert len(memory.logits_after) <= known + 2  # at most the end of each text


class Level(Asked):
    """Feeds a level's nodes alone, as models with a cache do."""

    def level(self, text, parents, new, sampler):
        self.fed = new
        rows = [self.rows(path, 0, sampler) for path in paths(text, parents)[-new:]]
        self.logits = np.concatenate(rows)
        return self.logits


def test_a_node_that_is_cached_but_was_not_asked_for_is_fed_again():
    """After (1, 2, 3) only the last row was wanted; then 3 is a tree's first node."""
    memory = Memory(Level(5, 1))
    memory.logits((1, 2), 2)
    memory.logits((1, 2, 3, 4), 4)
    rows = memory.logits_of_level((1, 2, 3, 4), (-1, -1), 2)
    alone = Memory(Level(5, 1)).logits((1, 2, 3), 3)
    assert (rows[0] == alone[0]).all()
    assert memory.model.fed == 2


def test_what_fuzzy_passes_have_cached_is_not_read_by_exact_ones():
    """EasySpec without calibration leaves such keys behind the exact ones."""
    memory = Memory(Level(5, 1))
    memory.logits((1, 2, 3, 4), 1)
    memory.logits_of_level((1, 2, 3, 4, 0), (-1, 0, 1), 1)
    assert memory.model.fed == 1

    memory.forget()
    memory.logits((1, 2, 3, 4), 1)
    memory.model.exact = 2
    memory.logits_of_level((1, 2, 3, 4, 0), (-1, 0, 1), 1)
    assert memory.model.fed == 3
