"""Layer-parallel passes: exact, fuzzy, and on several ranks.

An exact pass is transformers' own. A fuzzy pass follows Algorithm 2, which
``helpers.layers_by_hand`` spells out. Several ranks compute what one rank computes.
"""

from __future__ import annotations

import os
import random
import signal
import time
from functools import partial

import numpy as np
import psutil
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helpers.checkpoints import (  # noqa: E402
    LAYERS,
    PLAIN,
    TEXT,
    VOCAB,
    network,
    pair_over_ranks,
)
from helpers.layers_by_hand import APART, GROUPS, ByHand  # noqa: E402
from helpers.patience import HANG, wait_until  # noqa: E402
from helpers.processes import all_ended, worker_processes  # noqa: E402

import speclib  # noqa: E402
from speclab.measure.fuzzy_states import STATES, compare_states  # noqa: E402
from speclib import SpeclibError  # noqa: E402
from speclib.core.sampling import Coins  # noqa: E402
from speclib.data.layer_groups import group_layers  # noqa: E402
from speclib.models.hf import HFModel  # noqa: E402
from speclib.models.open_pair import open_pair  # noqa: E402
from speclib.models.parallel.layer_parallel import Layered  # noqa: E402
from speclib.operations.draft_tree import DraftTree  # noqa: E402
from speclib.operations.operation import DecodingRun  # noqa: E402
from speclib.worlds.devices import DeviceFailed, DeviceLost  # noqa: E402
from speclib.worlds.processes import Processes  # noqa: E402
from speclib.worlds.virtual import Virtual  # noqa: E402
from speclib.worlds.worker import Worker  # noqa: E402

FAMILIES = ("Llama", "Qwen2", "Qwen3")
CALIBRATED, NOT_CALIBRATED = True, False


def layered(family="Llama", **changes):
    return Layered(network(family, **changes), VOCAB)


def plain(family="Llama"):
    return HFModel(network(family), VOCAB)


def softmax(logits):
    return torch.softmax(logits, -1).numpy()


# -- Algorithm 2 by hand ---------------------------------------------------------------
@pytest.mark.parametrize("lp", GROUPS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_fuzzy_pass_is_algorithm_2_on_the_cached_keys(family, lp):
    model, by_hand = layered(family), ByHand(network(family))
    text = (5, 9, 2, 7, 11)
    with model.drafting(lp, CALIBRATED):
        rows = model.rows(text, 2, PLAIN)
        expected = softmax(by_hand.feed(text, APART)[-3:])
        np.testing.assert_allclose(rows, expected, atol=5e-6)

        for token in (3, 8, 1):
            text += (token,)
            rows = model.rows(text, 0, PLAIN)
            expected = softmax(by_hand.feed((token,), GROUPS[lp]))
            np.testing.assert_allclose(rows, expected, atol=5e-6)

    exact = softmax(ByHand(network(family)).feed(text, APART)[-1:])
    assert np.abs(rows - exact).max() > 1e-3  # the case tells the two apart


def test_without_calibration_every_pass_after_the_prompt_is_fuzzy_and_stays_cached():
    model, by_hand = layered(), ByHand(network())
    text = (5, 9, 2)
    with model.drafting(4, NOT_CALIBRATED):
        model.rows(text, 0, PLAIN)
    by_hand.feed(text, APART)

    for new_tokens in ((7,), (8, 1), (3,)):  # one operation each
        text += new_tokens
        expected = softmax(by_hand.feed(new_tokens, GROUPS[4])[-1:])
        with model.drafting(4, NOT_CALIBRATED):
            rows = model.rows(text, 0, PLAIN)
        np.testing.assert_allclose(rows, expected, atol=5e-6)
    assert model.prefix.count == len(text)
    assert model.exact == 3


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_one_layer_at_a_time_equals_the_plain_model_bit_for_bit(family):
    reference, model = plain(family), layered(family)
    dice, text = random.Random(1), [1]
    for _ in range(40):
        text = text[: dice.randint(1, len(text))]
        text = text + [dice.randrange(VOCAB) for _ in range(4)]
        last = dice.randrange(4)
        with model.drafting(1, calibrate=dice.random() < 0.5):
            expected = reference.rows(tuple(text), last, PLAIN)
            assert np.array_equal(expected, model.rows(tuple(text), last, PLAIN))
        assert model.prefix.fed == reference.prefix.fed
        assert model.prefix.count == reference.prefix.count

    tree = (*text, 4, 5, 6), (-1, 0, -1), PLAIN
    assert np.array_equal(reference.tree(*tree), model.tree(*tree))

    levels = (
        ((*text, 4), (-1,), 1, PLAIN),
        ((*text, 4, 5, 6), (-1, 0, 0), 2, PLAIN),
    )
    with model.drafting(1, CALIBRATED):
        reference.rows(text, 0, PLAIN)
        model.rows(text, 0, PLAIN)
        for level in levels:
            assert np.array_equal(reference.level(*level), model.level(*level))


# -- what stays cached -----------------------------------------------------------------
def test_calibration_drops_the_fuzzy_cache_even_of_accepted_tokens():
    model, text = layered(), (5, 9, 2)
    new_tokens = 3
    for accepted in (0, 1, 2, 3):
        fed_before = model.prefix.count
        with model.drafting(4, CALIBRATED):
            rows = model.rows(text, 0, PLAIN)
            expected = plain().rows(text, 0, PLAIN)
            np.testing.assert_allclose(rows, expected, atol=2e-6)
            # The first pass feeds everything since the last operation.
            assert model.prefix.count - fed_before == new_tokens

            drafted = text
            for token in (7, 8, 9):
                drafted += (token,)
                model.rows(drafted, 0, PLAIN)
        assert tuple(model.prefix.fed) == text  # drafts leave at once

        text = drafted[: len(text) + accepted] + (30 + accepted,)
        new_tokens = accepted + 1


@pytest.mark.parametrize("calibrate", [True, False])
def test_passes_that_do_not_draft_read_only_exact_keys(calibrate):
    model, reference, text = layered(), plain(), (5, 9, 2)
    for new_tokens in ((7,), (1, 4), (8,)):
        with model.drafting(4, calibrate):
            model.rows(text, 0, PLAIN)
            model.rows(text + new_tokens, 0, PLAIN)  # fuzzy
        text += new_tokens
        rows = model.rows(text, 1, PLAIN)
        np.testing.assert_allclose(rows, reference.rows(text, 1, PLAIN), atol=2e-6)

        with model.drafting(4, calibrate):
            model.rows((*text, 6), 0, PLAIN)
        tree = (*text, 6, 3, 5), (-1, 0, 0), PLAIN
        np.testing.assert_allclose(model.tree(*tree), reference.tree(*tree), atol=2e-6)


def test_a_change_of_groups_discards_what_the_old_groups_cached():
    """Otherwise some of several ranks would lack the keys of their new layers."""
    model, fresh = layered(), layered()
    text = (5, 9, 2, 7, 1)
    for lp, length in ((4, 3), (4, 4), (2, 5)):
        with model.drafting(lp, NOT_CALIBRATED):
            rows = model.rows(text[:length], 0, PLAIN)

    with fresh.drafting(2, NOT_CALIBRATED):
        fresh.rows(text[:3], 0, PLAIN)
        np.testing.assert_allclose(rows, fresh.rows(text, 0, PLAIN), atol=2e-6)


def test_a_tree_drafted_by_levels_is_as_fuzzy_as_its_paths():
    tree, line = layered(), layered()
    text = (5, 9, 2)
    with tree.drafting(3, CALIBRATED), line.drafting(3, CALIBRATED):
        tree.rows(text, 0, PLAIN)
        line.rows(text, 0, PLAIN)
        tree.level((*text, 7, 8), (-1, -1), 2, PLAIN)
        rows = tree.level((*text, 7, 8, 4, 6), (-1, -1, 1, 0), 2, PLAIN)
        for row, (first, second) in zip(rows, ((8, 4), (7, 6)), strict=True):
            line.rows((*text, first), 0, PLAIN)
            expected = line.rows((*text, first, second), 0, PLAIN)[0]
            np.testing.assert_allclose(row, expected, atol=2e-6)


# -- groups ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "layers, lp, printed",
    [
        (32, 2, [*range(1, 31, 2), 31]),
        (32, 4, [1, *range(4, 28, 4), 28, 31]),
        (28, 4, [1, *range(4, 24, 4), 24, 27]),
    ],
)
def test_groups_begin_where_table_6_says(layers, lp, printed):
    starts = [group.start for group in group_layers(layers, lp)]
    assert starts == [0, *printed]


def test_groups_contain_every_layer_once_and_at_most_lp_layers():
    for layers in range(1, 20):
        for lp in range(1, 8):
            groups = group_layers(layers, lp)
            in_order = []
            for group in groups:
                in_order += group
                assert 1 <= len(group) <= lp
            assert in_order == list(range(layers))
            assert len(groups[0]) == len(groups[-1]) == 1


MIXED = {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 4}


@pytest.mark.parametrize("family, changes", [("Mistral", {}), ("Qwen2", MIXED)])
def test_a_network_whose_layers_cannot_share_an_input_is_refused_by_name(
    family, changes
):
    message = rf"{family}ForCausalLM.*cannot run several .* with one kind of attention"
    with pytest.raises(SpeclibError, match=message):
        compare_states(network(family, **changes), (1, 2), 2)


# -- similarities ----------------------------------------------------------------------
def cosine(exact, stale):
    """Returns the mean cosine similarity of two states along their channels."""
    return torch.cosine_similarity(exact, stale, dim=-1).mean().item()


def test_similarities_compare_each_attentions_inputs_keys_and_values():
    ids = (5, 9, 2, 7, 11, 3)
    result = compare_states(network(), ids, 3)
    exact, stale = ByHand(network()), ByHand(network())
    exact.feed(ids, APART)
    stale.feed(ids, GROUPS[3])

    inputs = [cosine(*pair) for pair in zip(exact.read, stale.read, strict=True)]
    np.testing.assert_allclose(result["h"], inputs, atol=1e-5)
    for state, exact_states, stale_states in (
        ("k", exact.keys, stale.keys),
        ("v", exact.values, stale.values),
    ):
        expected = []
        for ours, theirs in zip(exact_states, stale_states, strict=True):
            expected.append(cosine(torch.stack(ours), torch.stack(theirs)))
        np.testing.assert_allclose(result[state], expected, atol=1e-5)

    assert tuple(result) == STATES
    for layers in result.values():
        assert len(layers) == LAYERS
        assert layers[:2] == pytest.approx([1, 1])  # their inputs are exact
        assert max(layers[2:]) < 0.9999


# -- which drafts can share inputs -----------------------------------------------------
@pytest.mark.parametrize(
    "family, kind",
    [
        ("Llama", Layered),
        ("Qwen2", Layered),
        ("Qwen3", Layered),
        ("Gemma", HFModel),
    ],
)
def test_a_draft_whose_layers_can_share_inputs_does_so_by_default(
    tmp_path, family, kind
):
    network(family).save_pretrained(tmp_path)
    pair = speclib.pair(target=str(tmp_path), draft=str(tmp_path))
    draft = open_pair(pair).build("draft")
    assert type(draft) is kind
    assert type(open_pair(pair).build("target")) is HFModel

    operation = DraftTree(TEXT, 4, 2, lp=4)
    request = DecodingRun(1, Coins(), PLAIN)
    if kind is HFModel:
        with pytest.raises(SpeclibError, match="lp is 4, but this draft cannot"):
            operation.run(draft, request)
    else:
        tree, rows = operation.run(draft, request)
        expected_tree, expected_rows = operation.run(layered(family), request)
        assert tree == expected_tree
        assert np.abs(rows - expected_rows).max() < 1e-6


# -- real ranks ------------------------------------------------------------------------
@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.thorough)])
def world(request, tmp_path_factory):
    pair = pair_over_ranks(tmp_path_factory.mktemp("model"), request.param)
    with Processes(pair, timeout=60) as opened:
        yield opened


def begin(world):
    world.begin(TEXT, sampler=PLAIN, coins=Coins(3), limit=40)


def draft_tree(world, text, calibrate=True, lp=4):
    """Returns the tokens, parents and q rows of a drafted tree."""
    future = world.draft.draft_tree(text, 4, 3, lp=lp, calibrate=calibrate)
    drafted, parents = world.wait(future)
    tokens = [node.token for node in drafted]
    return tokens, parents, np.stack([node.q for node in drafted])


@pytest.mark.parametrize("calibrate", [True, False])
def test_ranks_draft_what_one_process_drafts(world, calibrate):
    alone = Virtual({"draft": layered(), "target": plain()}, speclib.Latency.ratio(2))
    begin(world)
    begin(alone)
    texts = [
        (TEXT, 4),
        ((*TEXT, 1), 4),
        ((*TEXT, 1, 2), 2),
        ((*TEXT, 1, 2, 3), 4),
        (TEXT, 1),
    ]
    for text, lp in texts:
        tokens, parents, rows = draft_tree(world, text, calibrate, lp)
        expected = draft_tree(alone, text, calibrate, lp)
        assert (tokens, parents) == expected[:2]
        np.testing.assert_allclose(rows, expected[2], atol=1e-6)

    counts = [[(e.kept, e.fed) for e in w.end().operations] for w in (world, alone)]
    assert counts[0] == counts[1]


def seconds_computed(process) -> float:
    """Returns the CPU time that a process has used so far."""
    times = psutil.Process(process.pid).cpu_times()
    return times.user + times.system


@pytest.mark.slow
@pytest.mark.parametrize("number, busy", [(0, False), (1, True)])
def test_a_rank_that_dies_is_named_and_all_ranks_end(world, number, busy):
    begin(world)
    draft_tree(world, TEXT)
    processes = worker_processes(world, "draft")
    future = None
    if busy:
        spent_before = seconds_computed(processes[number])
        future = world.draft.draft_tree(TEXT, 1000, 3, lp=4)
        enough = spent_before + 0.1
        assert wait_until(lambda: seconds_computed(processes[number]) >= enough)
        assert not future.done

    os.kill(processes[number].pid, signal.SIGKILL)
    # The message says that the rank ended, which is noticed without a timeout.
    with pytest.raises(DeviceLost, match=f"'draft'.*rank {number}.* ended") as raised:
        world.wait(future or world.draft.draft_tree(TEXT, 100, 3, lp=4))
    assert "hung" not in str(raised.value)
    assert "no answer" not in str(raised.value)
    assert all_ended(processes)

    begin(world)  # new ranks replaced them
    assert draft_tree(world, TEXT)[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "number, message",
    [
        pytest.param(0, "no answer from rank 0 in 6 s", marks=pytest.mark.thorough),
        (1, "rank 1 of 2 hung"),
    ],
)
def test_a_rank_that_hangs_is_named_in_time(tmp_path, number, message):
    with Processes(pair_over_ranks(tmp_path, 2), timeout=6) as world:
        begin(world)
        draft_tree(world, TEXT)
        processes = worker_processes(world, "draft")
        began = time.monotonic()
        os.kill(processes[number].pid, signal.SIGSTOP)
        with pytest.raises(DeviceLost, match=f"'draft'.*{message}"):
            draft_tree(world, TEXT)
        assert time.monotonic() - began < HANG
        assert all_ended(processes)

        begin(world)
        assert draft_tree(world, TEXT)[0]


def test_a_pass_that_fails_on_the_ranks_says_why(world):
    begin(world)
    with pytest.raises(DeviceFailed, match="'draft' failed in .*index"):
        draft_tree(world, (*TEXT, VOCAB + 7))
    begin(world)
    assert draft_tree(world, TEXT)[0]


def start_failing_rank(pair, rank):
    """Starts a rank; the third of four fails in its second pass."""
    model = open_pair(pair).build("draft", rank=rank)
    if rank.number == 0:
        return partial(draft_three_tokens, model)
    if rank.number == 2:
        fails = iter([False, True])

        def fail_in_the_second_pass(*_):
            if next(fails):
                raise ZeroDivisionError

        model.model.network.register_forward_pre_hook(fail_in_the_second_pass)
    return model


def draft_three_tokens(model, message, pipe):
    with model.drafting(4, CALIBRATED):
        return [model.rows(TEXT[:end], 0, PLAIN).shape for end in (3, 4, 5)]


def test_the_rank_that_fails_is_the_one_blamed(tmp_path):
    pair = pair_over_ranks(tmp_path, 4)
    worker = Worker("ranks", pair, start_failing_rank, ranks=4)
    try:
        assert worker.receive(60) is None  # it is ready
        worker.pipe.send("draft")
        failure = worker.receive(20)
        assert "rank 2 of 4 failed: ZeroDivisionError" in failure.cause
        assert not failure.has_lost_rank
    finally:
        worker.stop()
    assert all_ended(worker.processes)


def test_a_draft_whose_layers_cannot_be_shared_is_refused_before_it_is_used(tmp_path):
    pair = pair_over_ranks(tmp_path, 2)
    network("Mistral").save_pretrained(tmp_path)
    with pytest.raises(DeviceLost, match="'draft' could not build.*MistralForCausalLM"):
        Processes(pair)
