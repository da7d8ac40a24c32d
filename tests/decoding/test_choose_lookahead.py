"""DSI's automatic lookahead: near the best one, whatever c and the acceptance rate."""

from __future__ import annotations

from math import ceil

import pytest

import speclib
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.decoding import choose_lookahead as module
from speclib.decoding.choose_lookahead import choose_lookahead
from speclib.methods import METHODS
from speclib.models.toy import BOS, Toy
from speclib.worlds.devices import device_names
from speclib.worlds.virtual import Virtual

TOKENS = 80


def seconds(c, servers, lookahead, alpha, cancel, seed) -> float:
    """What DSI takes for ``TOKENS`` tokens; all passes of a model last equally long."""
    models = {}
    for name in device_names(servers):
        agrees = alpha if name == "draft" else None
        models[name] = Toy(agrees, vocab=5, seed=seed, context=TOKENS + 1)
    world = Virtual(models, Latency.ratio(c), cancel=cancel)
    world.begin((BOS,), sampler=Sampler(), coins=Coins(seed), limit=TOKENS)
    METHODS["dsi"](world, lookahead=lookahead, servers=servers)
    return world.now


def mean_seconds(c, servers, lookahead, alpha, cancel) -> float:
    return sum(seconds(c, servers, lookahead, alpha, cancel, s) for s in (7, 8)) / 2


def chosen(c, servers, cancel="immediate") -> int:
    return choose_lookahead(c, ceil(c / servers), servers, cancel)


@pytest.mark.slow
@pytest.mark.parametrize("cancel", ["immediate", "after-op"])
@pytest.mark.parametrize("alpha", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("c", [3.3, 5.36, 10.4])
def test_with_one_server_it_is_near_the_best_of_all_lookaheads(c, alpha, cancel):
    """Tried on other drafts than those it was chosen with, and on even passes."""
    times = {}
    for lookahead in (1, 2, 3, 4, 5, 6, 8, 10, 11):
        if lookahead <= ceil(c):
            times[lookahead] = mean_seconds(c, 1, lookahead, alpha, cancel)
    assert times[chosen(c, 1, cancel)] <= 1.1 * min(times.values())


@pytest.mark.parametrize("cancel", ["immediate", "after-op"])
@pytest.mark.parametrize("c", [5.36, 7.5, 10.4])
def test_with_one_server_it_is_faster_than_the_paper_s_formula(c, cancel):
    formula = mean_seconds(c, 1, ceil(c), 0.8, cancel)
    assert 1.1 * mean_seconds(c, 1, chosen(c, 1, cancel), 0.8, cancel) < formula


@pytest.mark.thorough
@pytest.mark.parametrize("cancel", ["immediate", "after-op"])
@pytest.mark.parametrize("alpha", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("servers", [2, 3])
@pytest.mark.parametrize("c", [3.3, 5.36, 10.4])
def test_with_some_servers_it_is_never_much_worse_than_the_paper_s_formula(
    c, servers, alpha, cancel
):
    formula = mean_seconds(c, servers, ceil(c / servers), alpha, cancel)
    lookahead = chosen(c, servers, cancel)
    assert mean_seconds(c, servers, lookahead, alpha, cancel) <= 1.1 * formula


@pytest.mark.parametrize("c, servers", [(1.0, 1), (2.0, 2), (6.9, 7), (0.4, 1)])
def test_where_servers_are_enough_it_is_the_paper_s_and_nothing_is_tried(
    c, servers, monkeypatch
):
    monkeypatch.delattr(module, "simulated_seconds")
    assert chosen(c, servers) == ceil(c / servers) == 1


@pytest.mark.slow
@pytest.mark.parametrize("servers", [1, 2, 3, 5])
@pytest.mark.parametrize("c", [1.5, 4.0, 9.7, 15.0])
def test_it_is_never_longer_than_the_paper_s_and_always_the_same(c, servers):
    first = chosen(c, servers)
    choose_lookahead.cache_clear()
    assert 1 <= chosen(c, servers) == first <= ceil(c / servers)


def test_decode_and_simulate_choose_the_same_for_the_same_c_and_servers():
    pair = speclib.load_pair("toy").model_copy(update={"latency": "dsi/c-10"})
    decoded = speclib.decode("x", pair=pair, world="virtual", method="dsi", servers=1)
    simulated = speclib.simulate("dsi", c=10, servers=1)
    lookaheads = {run.trace.meta["lookahead"] for run in (decoded, simulated)}
    assert lookaheads == {chosen(10.0, 1)}
