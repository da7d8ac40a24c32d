"""Cells that draft beyond the last token, as published code does that counts drafts."""

from __future__ import annotations

import pytest
from helpers.specs import virtual_spec

from speclab.experiment.cells.measured_prompt import PLAIN, Conditions, Setting
from speclab.experiment.cells.replayed_prompt import Replay
from speclab.experiment.cells.timed_passes import MachineTimes, TimedPasses
from speclab.experiment.run_cells import run_all
from speclib.data.latency import Latency
from speclib.data.pairs import load_pair
from speclib.models.open_pair import open_pair
from speclib.models.remembering import Memories

pytestmark = pytest.mark.usefixtures("own_cache")


def replay_of_toys() -> Replay:
    passes = TimedPasses(Latency.ratio(6, target=0.02), message=0.0)
    opened = open_pair(load_pair("toy"))
    return Replay(opened, MachineTimes(passes, passes), Memories())


@pytest.mark.parametrize("method", ["pearl", "duodecoding"])
def test_a_measured_prompt_with_the_tail_gives_the_tokens_that_were_asked_for(method):
    """Only what drafts beyond them adds to the published count is more."""
    replay = replay_of_toys()
    tails = []
    for tokens in range(16, 32):
        asked = Conditions("toy", None, tokens, 0.0, 0, True, with_tail=True)
        plain = replay.decode("a prompt", PLAIN, asked, 0)
        cut = replay.decode("a prompt", Setting(method, 6), asked, 0)
        assert (cut.tokens, cut.text) == (plain.tokens, plain.text)
        assert cut.stats.tokens == plain.stats.with_tail == tokens
        assert cut.trace.meta["limit"] == tokens
        tails.append(cut.stats.with_tail - tokens)

        without = replay.decode(
            "a prompt", Setting(method, 6), asked._replace(with_tail=False), 0
        )
        assert without.stats.with_tail == tokens
    assert 0 < max(tails) < 6


def test_a_cell_with_the_tail_commits_as_much_and_shares_its_baseline():
    cell, with_tail = virtual_spec(), virtual_spec(with_tail=True)
    results = run_all([cell, with_tail])
    assert with_tail.name != cell.name
    assert with_tail.baseline == cell.baseline
    for one, other in zip(results[cell].stats, results[with_tail].stats, strict=True):
        assert one.tokens == one.with_tail == other.tokens == cell.tokens
        assert one.drafted < other.drafted


def test_plain_decoding_has_no_tail():
    plain = virtual_spec("autoregressive", None, with_tail=True)
    (counts, *_) = run_all([plain])[plain].stats
    assert counts.with_tail == counts.tokens == plain.tokens
