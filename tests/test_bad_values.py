"""Bad values given to the public API: one clear line each, at once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import pytest

import speclab
import speclib
from speclib.core.sampling import Sampler
from speclib.decoding.replay import Silent
from speclib.errors import BadCall, BadValue, SpeclibError, UnknownName
from speclib.trace.events import Trace
from speclib.trace.metrics import stats
from speclib.worlds.virtual import Virtual

SECONDS = 30.0  # a busy machine is slow, and five of these ran for over a minute
LONGEST = 600  # characters of a message, whatever folder the project lies in


def decode(prompt: Any = "x", **values: Any) -> object:
    """Decodes with toys on the virtual clock."""
    return speclib.decode(prompt, **{"pair": "toy", "world": "virtual"} | values)


def decode_dsi(**values: Any) -> object:
    return decode(method="dsi", **values)


def virtual(models: Any = None, latency: Any = None, **values: Any) -> Virtual:
    """A virtual world of models that cannot say anything."""
    if models is None:
        models = {"draft": Silent(3), "target": Silent(3)}
    return Virtual(models, latency or speclib.Latency.ratio(3), **values)


def decode_in_a_world_without_a_pair() -> object:
    return speclib.decode("x", world=virtual())


def open_toys(world: Any = "virtual", **values: Any) -> object:
    return speclib.open_world(world, speclib.load_pair("toy"), **values)


def open_named(pair: Any) -> object:
    return speclib.open_world("virtual", pair)


def start_toys(**values: Any) -> object:
    return speclib.Processes(speclib.load_pair("toy"), **values)


def toys(**of_the_target: Any) -> object:
    return speclib.pair({"model": "toy", **of_the_target}, "toy")


def rows_of_one_shape(count: Any) -> object:
    return speclib.load_pair("embedded/llama-7b-70b").with_fixed_rows(count)


def own_pair(**values: Any) -> object:
    return speclib.pair("zoo/target", "zoo/draft-good", **values)


def peer(name: Any = "transformers-plain", pair: Any = None, **values: Any) -> object:
    embedded = speclib.load_pair("embedded/llama-7b-70b")
    return speclab.External(name, pair or embedded, **values)


def replay(**values: Any) -> object:
    return speclib.replay(speclib.simulate(tokens=4).trace, **values)


def timeline(**values: Any) -> object:
    return speclib.timeline(speclib.simulate(tokens=4), **values)


def explorer(controls: Any) -> object:
    return speclab.explorer(speclib.simulate, controls)


def explorer_of(results: Any) -> object:
    return speclab.explorer(lambda **_: results)


def stored_explorer(first: Any) -> object:
    """An explorer of results that exist already."""
    return speclab.explorer({1: [speclib.simulate(tokens=4)]}, {"k": first})


def book(paper: Any = "pearl", **values: Any) -> object:
    return speclab.Book(paper, **values)


def show(item: Any) -> object:
    return book().show(item)


def chart(item: Any) -> object:
    return book().chart(item)


def book_timeline(item: Any) -> object:
    return book().timeline(item)


# A function, what it is called with, and words of the message.
BAD: list[tuple[Callable[..., object], dict[str, Any], str]] = [
    # decode
    (decode, {"prompt": [1, 2, 3]}, "the prompt has 1 as a message: give a str"),
    (decode, {"prompt": (0,)}, "the prompt has 0 as a message"),
    (decode, {"prompt": b"x"}, "the prompt is b'x'"),
    (decode, {"prompt": 5}, "the prompt is 5"),
    (decode, {"prompt": None}, "the prompt is None"),
    (decode, {"prompt": {"role": "user"}}, "the prompt is {'role': 'user'}"),
    (decode, {"prompt": [{"content": "x"}]}, "as a message"),
    (decode, {"max_new_tokens": "64"}, "max_new_tokens is '64': give a whole number"),
    (decode, {"max_new_tokens": 0}, "max_new_tokens is 0"),
    (decode, {"max_new_tokens": -1}, "max_new_tokens is -1"),
    (decode, {"max_new_tokens": 2.5}, "max_new_tokens is 2.5"),
    (decode, {"max_new_tokens": True}, "max_new_tokens is True"),
    (decode, {"max_new_tokens": None}, "max_new_tokens is None"),
    (decode, {"max_new_tokens": 10**30}, "exceeds the 16384 tokens"),
    (decode, {"temperature": "hot"}, "temperature is 'hot'"),
    (decode, {"temperature": None}, "temperature is None"),
    (decode, {"temperature": math.nan}, "temperature is nan"),
    (decode, {"temperature": -0.5}, "temperature is -0.5"),
    (decode, {"temperature": math.inf}, "temperature is inf"),
    (decode, {"top_k": math.nan}, "top_k is nan"),
    (decode, {"top_k": "3"}, "top_k is '3'"),
    (decode, {"top_k": 1.5}, "top_k is 1.5"),
    (decode, {"top_p": "most"}, "top_p is 'most'"),
    (decode, {"top_p": math.nan}, "top_p is nan"),
    (decode, {"top_p": 1.5}, "top_p is 1.5"),
    (decode, {"seed": -1}, "seed is -1: give a whole number of 0 or more"),
    (decode, {"seed": "x"}, "seed is 'x'"),
    (decode, {"seed": 0.5}, "seed is 0.5"),
    (decode, {"request": -1}, "request is -1"),
    (decode, {"request": None}, "request is None"),
    (decode, {"dtype": "int3"}, "unknown dtype 'int3'; known: auto, float32"),
    (decode, {"dtype": 32}, "dtype is 32"),
    (decode, {"cancel": "later"}, "cancel is 'later'"),
    (decode, {"cancel": 1}, "cancel is 1"),
    (decode, {"cancel": ""}, "cancel is '': give 'immediate' or 'after-op'"),
    (decode, {"ignore_eos": "no"}, "ignore_eos is 'no': give True or False"),
    (decode, {"on_commit": 3}, "on_commit is 3: give a function"),
    (decode, {"world": "virtul"}, "unknown world 'virtul'.*Did you mean 'virtual'"),
    (decode, {"world": 3}, "world is 3"),
    (decode, {"world": None}, "world is None"),
    (decode, {"pair": 3}, "pair is 3"),
    (decode, {"pair": None}, "no pair given"),
    (decode, {"pair": "toyy"}, "no pair 'toyy'.*Did you mean 'toy'"),
    (decode, {"method": "perl"}, "unknown method 'perl'.*Did you mean 'pearl'"),
    (decode, {"method": None}, "method is None"),
    (decode, {"method": ["pearl"]}, r"method is \['pearl'\]"),
    (decode, {"gama": 3}, "no parameter 'gama'.*Did you mean 'gamma'"),
    (decode, {"gamma": "5"}, "gamma is '5'"),
    (decode, {"gamma": None}, "gamma is None"),
    (decode, {"gamma": math.nan}, "gamma is nan"),
    (decode, {"gamma": True}, "gamma is True"),
    (decode, {"gamma": [3]}, r"gamma is \[3\]"),
    (decode, {"gamma": 100_000}, "gamma is 100000.*at most 1,000"),
    (decode_dsi, {"lookahead": "2"}, "lookahead is '2'"),
    (decode_dsi, {"lookahead": 10**9}, "lookahead is 1000000000"),
    (decode_dsi, {"servers": "many"}, "servers is 'many'"),
    (decode_dsi, {"servers": 10**9}, "servers is 1000000000"),
    (decode_dsi, {"test": "luck"}, "'luck'"),
    (decode_in_a_world_without_a_pair, {}, "this world has models but no pair"),
    (speclib.decode, {}, r"decode\(\): missing a required argument: 'prompt'"),
    # method settings
    (decode, {"method": "tree", "width": 1.5}, "width is 1.5"),
    (decode, {"method": "tree", "width": "2"}, "width is '2'"),
    (decode, {"method": "tree", "budget": math.nan}, "budget is nan"),
    (decode, {"method": "easyspec", "lp": 0.5}, "lp is 0.5"),
    (decode, {"method": "easyspec", "calibrate": "x"}, "calibrate is 'x': give True"),
    (decode, {"method": "easyspec", "calibrate": 1}, "calibrate is 1: give True"),
    (decode, {"method": "lookahead", "window": "5"}, "window is '5'"),
    (decode, {"method": "ouroboros", "phrases": 1.5}, "phrases is 1.5"),
    (decode, {"method": "duodecoding", "k": 1.5}, "k is 1.5"),
    (decode, {"method": "rest", "longest": "16"}, "longest is '16'"),
    (decode, {"method": "pearl", "without": 3}, "without is 3"),
    # simulate and compare
    (speclib.simulate, {"alhpa": 0.8}, r"'pearl' has no parameter 'alhpa'.*'alpha'\?"),
    (speclib.compare, {"method": "tree", "budgt": 3}, "'tree' has no .*'budget'"),
    (
        speclib.simulate,
        {"c": "5"},
        "c is '5': give a number of 0.0001 or more, up to 1,000,000",
    ),
    (speclib.simulate, {"c": 1e-300}, "c is 1e-300: give a number of 0.0001 or more"),
    (speclib.simulate, {"c": 1e300}, "c is 1e[+]300: give .* up to 1,000,000"),
    (speclib.simulate, {"c": 0}, "c is 0"),
    (speclib.simulate, {"c": -1}, "c is -1"),
    (speclib.simulate, {"c": math.nan}, "c is nan"),
    (speclib.simulate, {"c": None}, "c is None"),
    (
        speclib.simulate,
        {"alpha": 1.5},
        "alpha is 1.5: give a number of 0 or more, up to 1",
    ),
    (speclib.simulate, {"alpha": math.nan}, "alpha is nan"),
    (speclib.simulate, {"alpha": "0.8"}, "alpha is '0.8'"),
    (
        speclib.simulate,
        {"method": "lookahead", "alpha": 0.8},
        "'lookahead' has no draft model: leave out alpha",
    ),
    (speclib.simulate, {"tokens": 0}, "tokens is 0"),
    (speclib.simulate, {"tokens": "32"}, "tokens is '32'"),
    (speclib.simulate, {"tokens": 10**9}, "tokens is 1000000000"),
    (speclib.simulate, {"seed": -1}, "seed is -1"),
    (speclib.simulate, {"seed": 1.5}, "seed is 1.5"),
    (speclib.simulate, {"text": ""}, "fewer than two different words"),
    (speclib.simulate, {"text": "a a a"}, "fewer than two different words"),
    (speclib.simulate, {"text": 5}, "text is 5"),
    (speclib.simulate, {"cancel": "never"}, "cancel is 'never'"),
    (speclib.simulate, {"doubt": -1}, "doubt is -1"),
    (speclib.simulate, {"doubt": "some"}, "doubt is 'some'"),
    (speclib.simulate, {"fuzzy": 2}, "fuzzy is 2"),
    (speclib.simulate, {"latency": "nowhere"}, "no latency file 'nowhere'"),
    (speclib.simulate, {"latency": 3}, "latency is 3"),
    (speclib.simulate, {"latency": ""}, "no latency file ''"),
    (speclib.simulate, {"lost": {"gpu": 1.0}}, "no device 'gpu' to lose"),
    (speclib.simulate, {"lost": {"draft": "1"}}, r"lost\['draft'\] is '1'"),
    (speclib.simulate, {"lost": ["draft"]}, "lost is"),
    (speclib.simulate, {"method": 3}, "method is 3"),
    (speclib.simulate, {"servers": 3}, "no parameter 'servers'"),
    (speclib.compare, {"method": "perl"}, "unknown method 'perl'"),
    (speclib.compare, {"gamma": 0}, "gamma is 0"),
    (speclib.compare, {"alpha": "x"}, "alpha is 'x'"),
    (speclib.compare, {"method": None}, "method is None"),
    # pairs and latencies
    (speclib.load_pair, {"name": "toys"}, "no pair 'toys'.*Did you mean 'toy'"),
    (speclib.load_pair, {"name": 3}, "name is 3"),
    (speclib.load_pair, {"name": "x" * 5000}, "no pair 'xxx"),
    (speclib.load_pair, {"name": "\0"}, "no pair"),
    (
        speclib.pair,
        {"target": "toy"},
        r"pair\(\): missing a required argument: 'draft'",
    ),
    (speclib.pair, {"target": 3, "draft": "toy"}, "target is 3"),
    (speclib.pair, {"target": {}, "draft": "toy"}, "'target.model' is missing"),
    (speclib.pair, {"target": "toy", "draft": "zoo/target"}, "a toy only"),
    (toys, {"vocab": 9}, "vocab is 9 and the draft's 16"),
    (toys, {"vocab": 2}, "target.vocab is 2"),
    (toys, {"seed": -1}, "target.seed is -1"),
    (toys, {"alpha": 2}, "target.alpha is 2"),
    (toys, {"words": (99,)}, "words has 99"),
    (toys, {"context": 0}, "target.context is 0"),
    (toys, {"vocb": 16}, "unknown key 'target.vocb'.*Did you mean 'vocab'"),
    (toys, {"spread": "wide"}, "target.spread is 'wide'"),
    (own_pair, {"plac": {}}, "unknown key 'plac'.*Did you mean 'place'"),
    (own_pair, {"place": {"threads": 0}}, "place.threads is 0"),
    (own_pair, {"place": {"draft": ["gpu:0"]}}, "place.draft is"),
    (own_pair, {"place": {"draft": ["core:x"]}}, "give core:N, cpu or cuda:N"),
    (own_pair, {"name": 3}, "name is 3"),
    (speclib.load_pair, {"name": ""}, "no pair ''; of .* known the nearest are: "),
    (rows_of_one_shape, {"count": 10**9}, "count is 1000000000: .* up to 4,096"),
    (speclib.load_latency, {"name": "nowhere"}, "no latency file 'nowhere'; of .*All"),
    (speclib.load_latency, {"name": None}, "name is None"),
    (speclib.Latency.ratio, {"c": 0}, "c is 0: give a number of 0.0001 or more"),
    (speclib.Latency.ratio, {"c": "5"}, "c is '5'"),
    (speclib.Latency.ratio, {"c": math.nan}, "c is nan"),
    (speclib.Latency.ratio, {"c": 5, "target": -1}, "target is -1: .* above 0"),
    (speclib.Latency.ratio, {"c": 5, "target": math.inf}, "target is inf"),
    (speclib.Latency.ratio, {"c": 5, "target": "fast"}, "target is 'fast'"),
    (speclib.Latency.ratio(5).lengthened, {"share": -1}, "share is -1"),
    (speclib.Latency.ratio(5).sharing, {"stages": 1}, "stages is 1"),
    # worlds
    (open_toys, {"world": "virtua"}, "unknown world 'virtua'"),
    (open_toys, {"world": None}, "world is None"),
    (open_toys, {"servers": 0}, "servers is 0"),
    (open_toys, {"servers": "2"}, "servers is '2'"),
    (open_toys, {"dtype": "int3"}, "unknown dtype 'int3'"),
    (open_toys, {"latency": "nowhere"}, "no latency file 'nowhere'"),
    (open_toys, {"latency": ""}, "no latency file ''"),
    (open_toys, {"servers": 10**6}, "servers is 1000000: .* up to 1,000"),
    (open_toys, {"cancel": "later"}, "cancel is 'later'"),
    (open_toys, {"cancel": ""}, "cancel is ''"),
    (open_toys, {"speed": 3}, r"open_world\(\) has no argument 'speed'; known: world"),
    (open_named, {"pair": "toy"}, "pair is 'toy': give a Pair"),
    (speclib.Processes, {"pair": "toy"}, "pair is 'toy': give a Pair"),
    (speclib.Processes, {"pair": None}, "pair is None"),
    (start_toys, {"servers": 0}, "servers is 0"),
    (start_toys, {"servers": 1.5}, "servers is 1.5"),
    (start_toys, {"dtype": "int3"}, "unknown dtype 'int3'"),
    (start_toys, {"cancel": "later"}, "cancel is 'later'"),
    (start_toys, {"servers": 10**6}, "servers is 1000000: .* up to 1,000"),
    (start_toys, {"cancel": ""}, "cancel is ''"),
    (
        start_toys,
        {"start_timeout": 1e-9},
        "start_timeout is 1e-09: give a number of 0.001 or more",
    ),
    (start_toys, {"timeout": 1e-9}, "timeout is 1e-09: give a number of 0.001 or more"),
    (start_toys, {"timeout": 0}, "timeout is 0"),
    (start_toys, {"timeout": "long"}, "timeout is 'long'"),
    (start_toys, {"emulate": "pearl/llama2-7-70"}, "emulate is 'pearl/llama2-7-70'"),
    (start_toys, {"sever": 2}, "no argument 'sever'.*Did you mean 'servers'"),
    # peers
    (peer, {"name": "vllm"}, "unknown peer 'vllm'"),
    (peer, {"name": 3}, "name is 3"),
    (peer, {"pair": "toy"}, "pair is 'toy'"),
    (peer, {"threads": 0}, "threads is 0"),
    (peer, {"timeout": -1}, "timeout is -1"),
    (peer, {"gamma": 3}, "has no parameter 'gamma'"),
    # samplers, replays, views, papers
    (Sampler, {"temperature": "hot"}, "temperature is 'hot'"),
    (Sampler, {"top_k": math.nan}, "top_k is nan"),
    (Sampler, {"top_k": True}, "top_k is True"),
    (Sampler, {"top_p": None}, "top_p is None"),
    (replay, {"method": "perl"}, "no method 'perl'"),
    (replay, {"method": 3}, "method is 3"),
    (replay, {"latency": "pearl/llama2-7-70"}, "latency is 'pearl/llama2-7-70'"),
    (speclib.replay, {"trace": "a.json"}, "trace is 'a.json'"),
    (timeline, {"width": 1e9}, "width is 1000000000.0"),
    (timeline, {"width": 0}, "width is 0"),
    (timeline, {"width": "wide"}, "width is 'wide'"),
    (timeline, {"until": -1}, "until is -1"),
    (timeline, {"until": math.nan}, "until is nan"),
    (timeline, {"labels": ["a", "b"]}, "labels has 2 entries for 1 results"),
    (timeline, {"labels": 3}, "labels is 3"),
    (timeline, {"places": 3}, "places is 3"),
    (speclib.timeline, {}, "a timeline of nothing"),
    (explorer, {"controls": {"alpha": (0.5,)}}, "alpha"),
    (explorer, {"controls": {"speed": (0, 1, 0.1, 0.5)}}, "no parameter 'speed'"),
    (explorer, {"controls": 5}, "controls is 5"),
    (speclab.explorer, {"simulate": 5}, "simulate is 5"),
    (speclab.similarities, {"model": 5, "texts": "x"}, "model is 5"),
    (speclab.similarities, {"model": "zoo/target", "texts": "x", "lp": 0}, "lp is 0"),
    (speclab.similarities, {"model": "zoo/target", "texts": []}, "texts"),
    (explorer_of, {"results": 5}, "simulate gave 5: let it return a result"),
    (stored_explorer, {"first": 2}, "no results for k = 2; known: 1"),
    (speclab.sequences, {"shown": 3}, "int is neither"),
    (speclab.layers, {"layer": -1}, "layer is -1"),
    (speclab.layers, {"controls": {"n": (1, 2, 1, 1)}}, "no control 'n' here; known"),
    (speclab.regions, {"controls": 5}, "controls is 5"),
    (speclab.dots, {"rows": 3, "title": "t"}, "rows is 3"),
    (speclab.dots, {"rows": {"a": [1, "x"]}, "title": "t"}, r"rows\['a'\] is"),
    (speclab.heat, {"panels": {}, "title": "t"}, "give all the same number"),
    (speclab.heat, {"panels": {"a": {"b": ["x"]}}, "title": "t"}, "give numbers"),
    (speclab.curves, {"lines": {"a": {1: "x"}}, "title": "t"}, "give a number"),
    (speclab.steps, {"paper": "pearl", "item": "table-99"}, "has no 'table-99'"),
    (stats, {"trace": "a.json"}, "trace is 'a.json'"),
    (Trace.from_json, {"text": "{"}, "the text is no trace"),
    (Trace.from_json, {"text": "[]"}, "the text is no trace"),
    (Trace.from_json, {"text": 3}, "text is 3"),
    (virtual, {"models": {}}, "a world needs a 'draft' and a 'target'"),
    (virtual, {"models": 3}, "models is 3"),
    (virtual, {"latency": 3}, "latency is 3"),
    (virtual, {"cancel": "later"}, "cancel is 'later'"),
    (book, {"paper": "perl"}, "no paper 'perl'"),
    (book, {"paper": 3}, "paper is 3"),
    (book, {"minutes": -1}, "minutes is -1"),
    (show, {"item": "table-99"}, "pearl.* has no 'table-99'; known: "),
    (show, {"item": None}, "name is None"),
    (chart, {"item": "table-99"}, "has no 'table-99'"),
    (book_timeline, {"item": "table-99"}, "has no 'table-99'"),
]


def name_of(case: Any) -> str | None:
    """The start of a call, as its test's name."""
    if callable(case):
        return case.__qualname__.replace(".__init__", "")
    if isinstance(case, dict):
        return " ".join(f"{name}={value!r}"[:30] for name, value in case.items())
    return ""


@pytest.mark.parametrize("call, values, says", BAD, ids=name_of)
def test_a_bad_value_is_one_clear_line_at_once(call, values, says):
    begun = time.perf_counter()
    with pytest.raises(SpeclibError, match=says) as caught:
        call(**values)
    message = str(caught.value)
    assert time.perf_counter() - begun < SECONDS
    assert "\n" not in message
    assert len(message) < LONGEST
    assert isinstance(caught.value, ValueError | LookupError | TypeError)


def test_python_s_own_handlers_understand_the_errors():
    with pytest.raises(ValueError, match="alpha is 2"):
        speclib.simulate(alpha=2)
    with pytest.raises(LookupError, match="unknown method 'perl'"):
        speclib.simulate("perl")
    with pytest.raises(
        TypeError, match=r"decode\(\): missing a required argument: 'prompt'"
    ):
        speclib.decode()
    assert issubclass(UnknownName, BadValue)
    assert issubclass(BadCall, SpeclibError)


def test_numbers_of_numpy_are_numbers():
    import numpy as np

    result = speclib.simulate(
        c=np.float32(5), alpha=np.float64(0.5), tokens=np.int64(8), seed=np.int32(1)
    )
    assert result.tokens == speclib.simulate(c=5, alpha=0.5, tokens=8, seed=1).tokens
