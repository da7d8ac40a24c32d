"""Several methods on one prompt, and how results print."""

import math
import subprocess
import sys
import warnings
from dataclasses import replace

import pytest

import speclib
from speclib.decoding.auto_settings import requested_settings
from speclib.errors import BadValue

ON_TOYS = {"prompt": "x", "pair": "toy", "world": "virtual", "max_new_tokens": 12}


def test_real_methods_take_turns_with_plain_decoding_and_write_its_tokens():
    plain, turns, pearl, tree = speclib.compare("pearl", "tree", gamma=3, **ON_TOYS)
    names = [each.trace.meta["method"] for each in (plain, turns, pearl, tree)]
    assert names == ["autoregressive", "speculative", "pearl", "tree"]
    assert plain.tokens == turns.tokens == pearl.tokens == tree.tokens
    assert math.isnan(plain.speedup)
    speed = pearl.stats.decode_speed / plain.stats.decode_speed
    assert pearl.speedup == pytest.approx(speed)
    assert pearl.baseline.trace.meta["method"] == "autoregressive"
    with pytest.raises(BadValue, match="a pair without a prompt"):
        speclib.compare(pair="toy")
    with pytest.raises(BadValue, match="unknown method 'perl'"):
        speclib.compare("perl", **ON_TOYS)


def test_a_result_prints_as_one_line_with_its_speed():
    _, fast = speclib.compare("speculative", c=5, alpha=1.0, gamma=5)
    assert "\n" not in repr(fast)
    assert "times as fast as plain decoding: 'A small model runs" in repr(fast)
    _, slow = speclib.compare("speculative", c=1, alpha=0.0, gamma=5)
    assert "0.18 times as fast as plain decoding, so slower" in repr(slow)
    picture = speclib.timeline(slow.baseline, slow).picture()
    assert "slower: 0.1" in picture


def test_a_result_says_if_its_prompt_cost_what_the_method_gained():
    """At 1.81 times the speed after the first commit it may still end later."""
    _, fast = speclib.compare("speculative", c=5, alpha=1.0, gamma=5)
    own = fast.stats.seconds - fast.stats.ttft
    late = replace(fast, stats=replace(fast.stats, seconds=90 + own, ttft=90.0))
    assert late.speedup == pytest.approx(fast.speedup)
    assert f"; slower with prefill: {90 + own:.1f} s against" in repr(late)
    assert "with the prompt" not in repr(fast)
    plain = fast.baseline.stats.seconds
    hardly = replace(fast.stats, ttft=plain + 0.001 - own, seconds=plain + 0.001)
    assert "with the prompt" not in repr(replace(fast, stats=hardly))
    at_once = replace(fast.stats, ttft=fast.stats.seconds, seconds=fast.stats.seconds)
    assert "which gives no speed" in repr(replace(fast, stats=at_once))


def test_a_results_text_is_marked_where_the_target_wrote_it():
    """A character of two tokens stays whole, and an end token has no text."""
    result = speclib.decode("x", pair="toy", world="virtual", max_new_tokens=3)
    first, second, third = dict.fromkeys(result.tokens)
    pieces = {first: "\N{REPLACEMENT CHARACTER}", second: " <b>", third: "<|end|>"}
    text = "é <b>"
    for accepted, shown in (({0, 1, 2}, "é &lt;b&gt;"), (set(), "<u>é &lt;b&gt;</u>")):
        trace = replace(result.trace)
        before = trace.prompt_length
        places = {place + before for place in accepted}
        trace.draft_positions = lambda became, places=places: places
        marked = replace(result, text=text, pieces=pieces, trace=trace)
        assert f'pre-wrap">{shown}</div>' in marked._repr_html_()


def test_a_race_prints_the_text_and_each_methods_speed(tmp_path):
    picture = tmp_path / "race.svg"
    asked = ["race", "toy", "--raw", "--tokens", "8", "--save", picture]
    asked += ["--pair", "toy", "--method", "prompt_lookup"]
    command = [sys.executable, "-m", "speclib", *map(str, asked)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    for line in ("Plain decoding: 8 tokens", "Prompt lookup: 8 tokens", "wrote the"):
        assert line in ended.stdout
    assert picture.read_text().startswith("<svg")


# -- models to which wide passes cost more than they save ------------------------------
def check(method: str, draft: str = "its/own.gguf", place: str = "core:1", **settings):
    pair = speclib.pair("some/model", draft, place={"target": [place]})
    requested_settings(method, "auto", settings).check_pair(pair)


@pytest.mark.parametrize(
    "method, advice",
    [
        ("tree", "width=1"),
        ("rest", "nodes=8"),
    ],
)
def test_a_method_with_wide_passes_gets_a_warning_with_advice(method, advice):
    with pytest.warns(UserWarning, match=f"be slower than plain .*Try {advice}"):
        check(method)


@pytest.mark.parametrize(
    "method, how",
    [
        ("tree", {"width": 1}),
        ("tree", {"draft": "some/draft"}),
        ("lookahead", {"place": "cuda:0"}),
    ],
)
def test_no_method_gets_a_warning_without_a_reason(method, how):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(method, **how)


def test_layer_parallelism_is_refused_before_the_start_if_llamacpp_drafts():
    with pytest.raises(BadValue, match="which llama.cpp cannot do .* give lp=1"):
        check("easyspec")
