"""EasySpec: its loop, which is that of tree speculative decoding, and its costs.

test_layered.py tests the drafter itself. Expected values come from the printed tables,
from arithmetic, and from the exact enumerator.
"""

from __future__ import annotations

import tomllib
from itertools import pairwise

import numpy as np
import pytest
from helpers.watched_world import WatchedWorld

import speclib
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency, load_latency
from speclib.errors import SpeclibError
from speclib.methods import METHODS
from speclib.models.toy import Random, Toy
from speclib.operations.draft_tree import DraftTree
from speclib.operations.model import Model
from speclib.operations.operation import DecodingRun, perform
from speclib.paths import DATA
from speclib.worlds.enumerator import distance, outcomes, truth
from speclib.worlds.virtual import Virtual

EASY, TREE = METHODS["easyspec"], METHODS["tree"]
HOT = Sampler(1.0)


def models(seed: int = 0, draft=Random) -> dict:
    return {"draft": draft(4, seed), "target": Random(4, seed + 9)}


class Plain(Random):
    """A draft whose layers cannot share an input."""

    drafting = Model.drafting  # one layer after the other


# -- the loop --------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("sampler", [Sampler(), HOT], ids=["greedy", "sampled"])
@pytest.mark.parametrize("calibrate", [True, False])
@pytest.mark.parametrize("draft", [Random, Plain], ids=["fuzzy beyond lp=1", "plain"])
def test_with_only_exact_passes_it_equals_tree_speculative_decoding_bit_for_bit(
    decode, sampler, calibrate, draft
):
    for seed in range(5):
        how = dict(sampler=sampler, coins=Coins(seed), gamma=3, width=3)
        expected, expected_trace = decode(TREE, models(seed), 30, **how)
        output, trace = decode(
            EASY, models(seed, draft), 30, lp=1, calibrate=calibrate, **how
        )
        assert output == expected
        assert trace.events == expected_trace.events


def test_a_draft_whose_layers_cannot_share_an_input_is_refused(decode):
    with pytest.raises(
        SpeclibError, match='lp is 4, but.*spread = "layers"; or give lp=1'
    ):
        decode(EASY, models(0, Plain), 30, gamma=3, lp=4)


def test_an_lp_below_1_is_refused(decode):
    with pytest.raises(SpeclibError, match="lp is 0: give at least 1"):
        decode(EASY, models(), 4, gamma=2, lp=0)


# -- calibration -----------------------------------------------------------------------
def test_with_calibration_the_first_pass_feeds_all_since_the_last_exact_pass(decode):
    """The first pass keeps exactly the text that the previous first pass had read.

    Without calibration, an accepted first candidate stays cached, too.
    """
    how = dict(gamma=3, width=2, sampler=HOT, prompt=(0, 1))
    for calibrate in (True, False):
        saved = 0
        for seed in range(5):
            _, trace = decode(
                EASY, models(seed), 40, coins=Coins(seed), calibrate=calibrate, **how
            )
            draftings = [e for e in trace.operations if e.op == "draft_tree"]
            for before, after in pairwise(draftings):
                assert after.kept >= before.text_length
                saved += after.kept - before.text_length
        assert (saved == 0) == calibrate


@pytest.mark.parametrize("calibrate", [True, False])
def test_a_toys_passes_are_fuzzy_except_the_first_of_an_operation_or_text(calibrate):
    """Drafts two trees, each a single path, and compares them with an exact model."""
    draft, twin = Random(5, 3), Random(5, 3)
    text = (0, 1)
    are_exact = []  # for each tree, whether its rows are exact
    for _ in range(2):
        operation = DraftTree(text, 3, 1, None, 4, calibrate)
        (tokens, _), rows = perform(
            operation, draft, DecodingRun(1, Coins(2), HOT)
        ).output
        are_exact.append([])
        for index, row in enumerate(rows):
            exact_row = twin.rows(text + tokens[:index], 0, HOT)[0]
            are_exact[-1].append(bool((row == exact_row).all()))
        text += tokens[:2] + (4,)
    assert are_exact == [[True, False, False], [calibrate, False, False]]

    # After drafting, every pass is exact.
    assert (draft.rows(text, 0, HOT) == twin.rows(text, 0, HOT)).all()


# -- the accuracy of fuzzy toys --------------------------------------------------------
def test_the_more_layers_share_an_input_the_less_often_a_fuzzy_toy_is_right():
    """Rounds have an exact first level and a fuzzy second level.

    The second is right with probability 0.8 * 0.9^(lp - 1). There are at least 500
    rounds; the tolerance is 4 standard errors (about 1 seed in 2,500 would fail).
    """
    for lp in (1, 2, 5):
        toys = {"draft": Toy(0.8, seed=lp, fuzzy=0.9), "target": Toy(seed=lp)}
        world = Virtual(toys, Latency.ratio(3))
        world.begin((0,), sampler=Sampler(), coins=Coins(), limit=1500)
        EASY(world, 2, lp, 1)

        first_hits = []
        second_hits = []  # tested only if the first was right
        draftings = [e for e in world.end().operations if e.op == "draft_tree"]
        for drafting in draftings[:-1]:  # the last may write a single token
            first, second = drafting.outcome
            first_hits.append(first == "accepted")
            if first == "accepted":
                second_hits.append(second == "accepted")

        assert len(second_hits) > 400
        second_chance = 0.8 * 0.9 ** (lp - 1)
        for hits, chance in ((first_hits, 0.8), (second_hits, second_chance)):
            error = (chance * (1 - chance) / len(hits)) ** 0.5
            assert abs(np.mean(hits) - chance) < 4 * error


def test_a_fuzzy_toys_overlap_with_the_target_falls_like_its_agreement():
    draft = Toy(0.8, fuzzy=0.9)
    operation = DraftTree((0, 1), 2, 1, None, 3)
    _, rows = perform(operation, draft, DecodingRun(1, Coins(), HOT)).output

    (target_row,) = Toy().rows((0, 1, 2), 0, HOT)
    overlap = np.minimum(target_row, rows[1]).sum()
    assert overlap == pytest.approx(0.8 * 0.9**2)


# -- losslessness ----------------------------------------------------------------------
def error(method, tokens: int, vocab: int = 2, sampler=HOT, **settings) -> float:
    pair = {
        "draft": Random(vocab, 10, 1 + tokens),
        "target": Random(vocab, 20, 1 + tokens),
    }
    chances = outcomes(method, pair, tokens, sampler=sampler, **settings)
    return distance(chances, truth(pair["target"], tokens, sampler=sampler))


@pytest.mark.slow
@pytest.mark.parametrize("lp", [1, 2, 4])
@pytest.mark.parametrize("calibrate", [True, False])
def test_a_fuzzy_drafter_loses_nothing(lp, calibrate):
    how = {"lp": lp, "calibrate": calibrate}
    for sampler in (Sampler(), HOT):
        assert error(EASY, 4, sampler=sampler, gamma=2, width=2, **how) < 1e-12
        assert error(EASY, 4, sampler=sampler, gamma=3, width=1, **how) < 1e-12


@pytest.mark.parametrize("calibrate", [True, False])
def test_a_layer_parallel_network_loses_nothing(calibrate):
    """Enumerates three tokens from a vocabulary of two, with a real cache.

    Rows are float32.
    """
    pytest.importorskip("torch")
    from helpers.checkpoints import network

    from speclib.models.parallel.layer_parallel import Layered

    target = Random(2, 20, 4)
    pair = {"draft": Layered(network(layers=5), 2), "target": target}
    settings = {"gamma": 2, "width": 2, "lp": 3, "calibrate": calibrate}
    chances = outcomes(EASY, pair, 3, **settings)
    assert distance(chances, truth(target, 3)) < 1e-6


@pytest.mark.parametrize("calibrate", [True, False])
def test_a_layer_parallel_networks_cache_matches_its_operations_accounts(calibrate):
    pytest.importorskip("torch")
    from helpers.checkpoints import VOCAB, network

    from speclib.models.parallel.layer_parallel import Layered

    for lp in (1, 4):
        pair = {"draft": Layered(network(), VOCAB), "target": Random(VOCAB, 1)}
        world = WatchedWorld(pair, Latency.ratio(3))
        world.begin((3, 14, 15), sampler=HOT, coins=Coins(), limit=20)
        EASY(world, 3, lp, 3, calibrate=calibrate)
        assert world.checked == len(world.end().operations) > 8


def test_a_text_drafted_on_two_ranks_equals_plain_decodings(tmp_path):
    """Draft and target are one network: exact drafts all pass, fuzzy ones do not."""
    pytest.importorskip("torch")
    from helpers.checkpoints import network, numbered_words, save_tokenizer

    from speclib.data.pairs import Pair
    from speclib.worlds.processes import Processes

    save_tokenizer(tmp_path, numbered_words())
    net = network()
    net.model.embed_tokens.weight.mul_(3)  # otherwise it repeats one word
    net.save_pretrained(tmp_path)
    model = {"model": str(tmp_path)}
    pair = Pair(
        target=model,
        draft=model | {"spread": "layers"},
        place={"draft": ["cpu", "cpu"], "target": ["cpu"]},
    )
    with Processes(pair) as world:
        how = dict(pair=pair, world=world, max_new_tokens=24)
        plain = speclib.decode("w3 w14 w15", method="autoregressive", **how)
        for lp, passes in ((1, True), (4, False)):
            easy = speclib.decode(
                "w3 w14 w15", method="easyspec", gamma=3, width=1, lp=lp, **how
            )
            assert easy.tokens == plain.tokens
            assert (easy.stats.acceptance_rate == 1) == passes


# -- the clock -------------------------------------------------------------------------
CLOCKS = {"Llama-3": "easyspec/llama3-8-70-tp8", "Qwen2": "easyspec/qwen2-7-72-tp8"}


def drafting(
    clock: Latency, n: int, lp: int | None, calibrate: bool = True, kept: int = 9
) -> float:
    """Returns how long drafting n tokens after ten takes, with ``kept`` cached."""
    operation = DraftTree((0,) * 10, n, 1, None, lp, calibrate)
    fed = 10 - kept + n - 1
    return clock.seconds("draft", operation, kept, fed)


def test_calibration_costs_the_difference_between_an_exact_and_a_fuzzy_pass():
    clock = load_latency(CLOCKS["Llama-3"])
    exact = clock.draft(1)
    fuzzy = clock.fuzzy.curve(1)
    calibrated = drafting(clock, 5, 4)
    not_calibrated = drafting(clock, 5, 4, calibrate=False)
    nothing_cached = drafting(clock, 5, 4, calibrate=False, kept=0)
    assert calibrated == pytest.approx(exact + 4 * fuzzy)
    assert not_calibrated == pytest.approx(5 * fuzzy)
    assert nothing_cached == pytest.approx(exact + 4 * fuzzy)

    # Every pass is exact if no layers share an input, and on one device.
    one_device = load_latency("easyspec/llama3-8-70-tp1")
    assert drafting(clock, 5, None) == drafting(clock, 5, 1) == pytest.approx(5 * exact)
    assert drafting(one_device, 5, 4) == pytest.approx(5 * exact)


@pytest.mark.parametrize("family", CLOCKS)
def test_iterations_take_table_2s_times_except_for_its_slower_verification(family):
    """100 tokens take 100 / (1 + 5 alpha) iterations, with the printed alpha.

    Drafting agrees within 3 %. The total is 3 to 8 % less than printed, because the
    printed verification is slower than Table 1's pass.
    """
    path = DATA / "papers" / "easyspec" / "table-2.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    cells = {(row, column): value for row, column, value in table["cells"]}
    printed_rows = [row for row, column in cells if column == "EasySpec / d"]
    rows = [row for row in printed_rows if row.startswith(family)]
    assert len(rows) == 10

    run = speclib.simulate(
        "easyspec", gamma=5, width=1, latency=CLOCKS[family], tokens=6, alpha=1
    )
    draft_seconds, target_seconds = (event.dur for event in run.trace.operations)
    for row in rows:
        iterations = 100 / (1 + 5 * cells[row, "EasySpec / alpha"])
        drafting_seconds = iterations * draft_seconds
        seconds = iterations * (draft_seconds + target_seconds)
        printed = cells[row, "EasySpec / d"]
        assert drafting_seconds == pytest.approx(printed, rel=0.03)
        assert 0.92 < seconds / cells[row, "EasySpec / total"] < 0.97


def test_a_tree_has_no_more_nodes_than_the_budget(decode):
    models = {"draft": Toy(0.5, doubt=0.5), "target": Toy()}
    _, trace = decode(EASY, models, 20, gamma=3, width=4, budget=5)
    sizes = [len(e.tokens) for e in trace.operations if e.is_drafting]
    assert max(sizes) == 5
