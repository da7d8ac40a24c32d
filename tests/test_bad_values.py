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


def book(paper: Any = "pearl", **values: Any) -> object:
    return speclab.Book(paper, **values)


def show(item: Any) -> object:
    return book().show(item)


def book_timeline(item: Any) -> object:
    return book().timeline(item)


# A function, what it is called with, and words of the message.
BAD: list[tuple[Callable[..., object], dict[str, Any], str]] = [
    # decode
    (decode, {"prompt": [1, 2, 3]}, "the prompt is .1, 2, 3.: give a str"),
    (decode, {"prompt": b"x"}, "the prompt is b'x'"),
    (decode, {"prompt": ""}, "the prompt '' is empty: give at least one token"),
    (decode, {"prompt": [{"content": "x"}]}, "the prompt is .*give a str"),
    (decode, {"prompt": [{"role": "user", "content": "hi"}]}, "no chat template"),
    (decode, {"max_new_tokens": "64"}, "max_new_tokens is '64': give a whole number"),
    (decode, {"max_new_tokens": 0}, "max_new_tokens is 0"),
    (decode, {"max_new_tokens": True}, "max_new_tokens is True"),
    (decode, {"max_new_tokens": 10**30}, "exceeds the 16384 tokens"),
    (decode, {"temperature": "hot"}, "temperature is 'hot'"),
    (decode, {"temperature": math.nan}, "temperature is nan"),
    (decode, {"temperature": -0.5}, "temperature is -0.5: .* of 0 or more"),
    (decode, {"top_k": 1.5}, "top_k is 1.5"),
    (decode, {"top_k": -1}, "top_k is -1"),
    (decode, {"top_p": 0.0}, "top_p is 0.0"),
    (decode, {"top_p": 1.5}, "top_p is 1.5"),
    (decode, {"repetition_penalty": 0}, "repetition_penalty is 0: .* above 0"),
    (decode, {"presence_penalty": math.nan}, "presence_penalty is nan"),
    (decode, {"frequency_penalty": "1"}, "frequency_penalty is '1'"),
    (decode, {"seed": -1}, "seed is -1: give a whole number of 0 or more"),
    (decode, {"request": None}, "request is None"),
    (decode, {"dtype": "int3"}, "unknown dtype 'int3'; known: auto, float32"),
    (decode, {"cancel": ""}, "cancel is '': give 'immediate' or 'after-op'"),
    (decode, {"ignore_eos": "no"}, "ignore_eos is 'no': give True or False"),
    (decode, {"on_commit": 3}, "on_commit is 3: give a function"),
    (decode, {"world": "virtul"}, "unknown world 'virtul'.*Did you mean 'virtual'"),
    (decode, {"world": None}, "world is None"),
    (decode, {"pair": 3}, "pair is 3"),
    (decode, {"pair": None}, "no pair given"),
    (decode, {"pair": "toyy"}, "no pair 'toyy'.*Did you mean 'toy'"),
    (decode, {"method": "perl"}, "unknown method 'perl'.*Did you mean 'pearl'"),
    (decode, {"method": ["pearl"]}, r"method is \['pearl'\]"),
    (decode, {"gama": 3}, "no parameter 'gama'; known: gamma.*Did you mean 'gamma'"),
    (decode, {"gamma": "5"}, "gamma is '5': .*'auto'"),
    (decode, {"gamma": 0}, "gamma is 0: .* of 1 or more"),
    (decode, {"gamma": 2.5}, "gamma is 2.5"),
    (decode, {"gamma": 100_000}, "gamma is 100000.*at most 1,000"),
    (decode, {"method": "autoregressive", "gamma": 3}, "'autoregressive' has no gamma"),
    (decode_dsi, {"lookahead": "2"}, "lookahead is '2'"),
    (decode_dsi, {"servers": True}, "servers is True"),
    (decode_dsi, {"servers": 10**9}, "servers is 1000000000"),
    (decode_dsi, {"test": "luck"}, "'luck'"),
    (decode_in_a_world_without_a_pair, {}, "this world has models but no pair"),
    (speclib.decode, {}, r"decode\(\): missing a required argument: 'prompt'"),
    # method settings
    (decode, {"method": "tree", "width": 1.5}, "width is 1.5"),
    (decode, {"method": "easyspec", "calibrate": 1}, "calibrate is 1: give True"),
    (decode, {"method": "lookahead", "window": "5"}, "window is '5'"),
    (decode, {"method": "duodecoding", "k": 0}, "k is 0: give at least 1"),
    (decode, {"method": "pearl", "without": 3}, "without is 3: .*'pre-verify'"),
    # simulate and compare
    (speclib.simulate, {"alhpa": 0.8}, r"'pearl' has no parameter 'alhpa'.*'alpha'\?"),
    (
        speclib.simulate,
        {"c": "5"},
        "c is '5': give a number of 0.0001 or more, up to 1,000,000",
    ),
    (speclib.simulate, {"c": 1e300}, "c is 1e[+]300: give .* up to 1,000,000"),
    (speclib.simulate, {"c": math.nan}, "c is nan"),
    (speclib.simulate, {"alpha": 1.5}, "alpha is 1.5: .* of 0 or more, up to 1"),
    (
        speclib.simulate,
        {"method": "lookahead", "alpha": 0.8},
        "'lookahead' has no draft model: leave out alpha",
    ),
    (speclib.simulate, {"tokens": 10**9}, "tokens is 1000000000"),
    (speclib.simulate, {"text": "a a a"}, "fewer than two different words"),
    (speclib.simulate, {"doubt": -1}, "doubt is -1: give a number of 0"),
    (speclib.simulate, {"fuzzy": 2}, "fuzzy is 2"),
    (speclib.simulate, {"latency": "nowhere"}, "no latency file 'nowhere'"),
    (speclib.simulate, {"latency": 3}, "latency is 3"),
    (speclib.simulate, {"lost": {"gpu": 1.0}}, "no device 'gpu' to lose; known: draft"),
    (speclib.simulate, {"lost": {"draft": "1"}}, r"lost\['draft'\] is '1'"),
    (speclib.simulate, {"servers": 3}, "no parameter 'servers'"),
    (speclib.compare, {"method": "perl"}, "unknown method 'perl'"),
    (speclib.compare, {"method": "tree", "budgt": 3}, "'tree' has no .*'budget'"),
    (speclib.compare, {"gamma": 0}, "gamma is 0"),
    # pairs and latencies
    (speclib.load_pair, {"name": "toys"}, "no pair 'toys'.*Did you mean 'toy'"),
    (speclib.load_pair, {"name": 3}, "name is 3"),
    (speclib.load_pair, {"name": "x" * 5000}, "no pair 'xxx"),
    (speclib.load_pair, {"name": "\0"}, "no pair"),
    (speclib.pair, {"target": "toy"}, r"pair\(\): missing .* argument: 'draft'"),
    (speclib.pair, {"target": {}, "draft": "toy"}, "'target.model' is missing"),
    (speclib.pair, {"target": "toy", "draft": "zoo/target"}, "only with another toy"),
    (toys, {"vocab": 9}, "vocab is 9 and the draft's 16"),
    (toys, {"alpha": 2}, "target.alpha is 2"),
    (toys, {"words": (99,)}, "words has 99"),
    (toys, {"vocb": 16}, "unknown key 'target.vocb'.*Did you mean 'vocab'"),
    (toys, {"spread": "wide"}, "target.spread is 'wide'"),
    (own_pair, {"plac": {}}, "unknown key 'plac'.*Did you mean 'place'"),
    (own_pair, {"place": {"threads": 0}}, "place.threads is 0"),
    (own_pair, {"place": {"draft": ["core:x"]}}, "give core:N, cpu or cuda:N"),
    (rows_of_one_shape, {"count": 10**9}, "count is 1000000000: .* up to 4,096"),
    (
        speclib.load_latency,
        {"name": "nowhere"},
        "no latency file 'nowhere'; the nearest",
    ),
    (speclib.Latency.ratio, {"c": 5, "target": -1}, "target is -1: .* above 0"),
    (speclib.Latency.ratio, {"c": 5, "target": math.inf}, "target is inf"),
    (speclib.Latency.ratio(5).lengthened, {"share": -1}, "share is -1"),
    (speclib.Latency.ratio(5).sharing, {"stages": 1}, "stages is 1"),
    # worlds
    (open_toys, {"world": "virtua"}, "unknown world 'virtua'"),
    (open_toys, {"servers": 0}, "servers is 0"),
    (open_toys, {"servers": 10**6}, "servers is 1000000: .* up to 1,000"),
    (open_toys, {"dtype": "int3"}, "unknown dtype 'int3'"),
    (open_toys, {"latency": "nowhere"}, "no latency file 'nowhere'"),
    (open_toys, {"cancel": "later"}, "cancel is 'later'"),
    (open_toys, {"speed": 3}, r"open_world\(\) has no argument 'speed'; known: world"),
    (open_named, {"pair": "toy"}, "pair is 'toy': give a Pair"),
    (speclib.Processes, {"pair": "toy"}, "pair is 'toy': give a Pair"),
    (start_toys, {"servers": 1.5}, "servers is 1.5"),
    (start_toys, {"dtype": "int3"}, "unknown dtype 'int3'"),
    (start_toys, {"cancel": "later"}, "cancel is 'later'"),
    (start_toys, {"timeout": 0}, "timeout is 0: give a number of 0.001 or more"),
    (start_toys, {"emulate": "pearl/llama2-7-70"}, "emulate is 'pearl/llama2-7-70'"),
    (start_toys, {"sever": 2}, "no argument 'sever'.*Did you mean 'servers'"),
    (virtual, {"models": {}}, "a world needs a 'draft' and a 'target'"),
    (virtual, {"latency": 3}, "latency is 3"),
    # peers
    (peer, {"name": "vllm"}, "unknown peer 'vllm'; known: transformers-plain"),
    (peer, {"pair": speclib.load_pair("toy")}, "needs real models; pair 'toy' is a"),
    (peer, {"threads": 0}, "threads is 0"),
    (peer, {"dtype": "int3"}, "'int3'"),
    (peer, {"gamma": 3}, "has no parameter 'gamma'; known: none"),
    # samplers, replays, views, papers
    (Sampler, {"top_k": True}, "top_k is True"),
    (replay, {"method": "perl"}, "no method 'perl'"),
    (replay, {"latency": "pearl/llama2-7-70"}, "latency is 'pearl/llama2-7-70'"),
    (speclib.replay, {"trace": "a.json"}, "trace is 'a.json'"),
    (timeline, {"width": 10}, "width is 10"),
    (timeline, {"until": 0}, "until is 0"),
    (timeline, {"labels": ["a", "b"]}, "labels has 2 entries for 1 results"),
    (timeline, {"places": 3}, "places is 3"),
    (speclib.timeline, {}, "no results to show"),
    (explorer, {"controls": {"alpha": (0.5,)}}, "alpha"),
    (explorer, {"controls": {"speed": (0, 1, 0.1, 0.5)}}, "no parameter 'speed'"),
    (speclab.explorer, {"simulate": 5}, "simulate is 5"),
    (explorer_of, {"results": 5}, "simulate returned 5: let it return a result"),
    (speclab.similarities, {"model": "zoo/target", "texts": "x", "lp": 0}, "lp is 0"),
    (speclab.similarities, {"model": "zoo/target", "texts": []}, "texts"),
    (speclab.sequences, {"shown": 3}, "int is neither"),
    (speclab.layers, {"layer": -1}, "layer is -1"),
    (speclab.regions, {"controls": 5}, "controls is 5"),
    (speclab.curves, {"lines": {"a": {1: "x"}}, "title": "t"}, "give a number"),
    (stats, {"trace": "a.json"}, "trace is 'a.json'"),
    (Trace.from_json, {"text": "[]"}, "the text is not a trace"),
    (book, {"paper": "perl"}, "no paper 'perl'"),
    (book, {"minutes": -1}, "minutes is -1"),
    (show, {"item": "table-99"}, "pearl.* has no 'table-99'; known: "),
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
