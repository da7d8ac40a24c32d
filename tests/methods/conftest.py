"""What tests of several methods share: the embedded pair, and plain decoding on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import speclib
from speclib.data import prompts
from speclib.data.pairs import Pair
from speclib.worlds.virtual import Virtual

AFTER_CODE = {"max_new_tokens": 96, "seed": 3}


@pytest.fixture(scope="session")
def embedded_pair() -> Pair:
    """The embedded pair whose models are a 7B and a 70B one's stand-ins."""
    pytest.importorskip("torch")
    from speclib.models import zoo

    if not (zoo.ZOO / "target" / "model.safetensors").exists():
        pytest.skip("the embedded models are not trained: make models")
    return speclib.load_pair("embedded/llama-7b-70b")


@pytest.fixture(scope="session")
def embedded_world(embedded_pair) -> Iterator[Virtual]:
    """A world of it on the virtual clock, open for all tests of a process."""
    with speclib.open_world("virtual", embedded_pair) as world:
        yield world


@pytest.fixture(scope="session")
def assert_fewer_passes_write_plain_decodings_text(
    embedded_world,
) -> Callable[[str, float], None]:
    """assert_...(method, temperature): after a prompt of humaneval, on that pair."""

    def assert_so(method: str, temperature: float) -> None:
        prompt = prompts.load("humaneval")[0].input
        settings = {**AFTER_CODE, "world": embedded_world, "temperature": temperature}
        plain = speclib.decode(prompt, method="autoregressive", **settings)
        result = speclib.decode(prompt, method=method, **settings)

        assert result.tokens == plain.tokens
        assert result.stats.accepted > 0
        assert result.stats.target_runs < plain.stats.target_runs

    return assert_so
