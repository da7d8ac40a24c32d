"""Layer-parallel passes: an exact one is transformers' own, a fuzzy one follows Algorithm 2 as
written down here without any module of theirs, and several ranks compute what one does."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from functools import partial
from math import sqrt

import numpy as np
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
from helpers.processes import all_ended, worker_processes  # noqa: E402

import speclib  # noqa: E402
from speclib import SpeclibError  # noqa: E402
from speclib.core.sampling import Coins  # noqa: E402
from speclib.models import factory  # noqa: E402
from speclib.models.hf import HFModel  # noqa: E402
from speclib.models.parallel.layer_parallel import STATES, Layered, similarities  # noqa: E402
from speclib.operations.draft_tree import DraftTree  # noqa: E402
from speclib.operations.operation import Request  # noqa: E402
from speclib.theory.layer_groups import group_layers  # noqa: E402
from speclib.worlds.processes import Processes  # noqa: E402
from speclib.worlds.worker_process import Worker  # noqa: E402
from speclib.worlds.world import DeviceLost  # noqa: E402

FAMILIES = ("Llama", "Qwen2", "Qwen3")


# -- Algorithm 2 by hand --------------------------------------------------------------------------
class ByHand:
    """Passes over a network's weights in float64 with a list of keys and values per layer."""

    def __init__(self, net):
        self.w = {name: w.detach().double() for name, w in net.named_parameters()}
        self.w.setdefault("lm_head.weight", self.w["model.embed_tokens.weight"])
        self.config, self.cache = net.config, [([], []) for _ in range(LAYERS)]
        self.reads = [None] * LAYERS  # what each attention read last

    def normed(self, x, name):
        return (
            x
            / torch.sqrt((x * x).mean(-1, keepdim=True) + self.config.rms_norm_eps)
            * self.w[f"{name}.weight"]
        )

    def linear(self, x, name):
        return x @ self.w[f"{name}.weight"].T + self.w.get(f"{name}.bias", 0.0)

    def turned(self, x, position):
        """x: [heads, 8]; channels j and j + 4 turn together, at theta^(-2j/8)."""
        rates = self.config.rope_parameters["rope_theta"] ** (
            -torch.arange(4.0).double() / 4
        )
        cos, sin = torch.cos(position * rates), torch.sin(position * rates)
        a, b = x[:, :4], x[:, 4:]
        return torch.cat((a * cos - b * sin, b * cos + a * sin), 1)

    def attention(self, i, h):
        """Of layer i, over rows h, one after the other, each of which sees itself."""
        part, (keys, values), out = f"model.layers.{i}.self_attn", self.cache[i], []
        for x in self.normed(h, f"model.layers.{i}.input_layernorm"):
            q, k, v = (self.linear(x, f"{part}.{c}_proj").view(-1, 8) for c in "qkv")
            if self.config.model_type == "qwen3":
                q, k = (
                    self.normed(q, f"{part}.q_norm"),
                    self.normed(k, f"{part}.k_norm"),
                )
            keys.append(self.turned(k, len(keys)))
            values.append(v)
            q = self.turned(q, len(keys) - 1)
            heads = []
            for head in range(4):
                k, v = (torch.stack(kept)[:, head // 2] for kept in (keys, values))
                heads.append(torch.softmax(k @ q[head] / sqrt(8), 0) @ v)
            out.append(self.linear(torch.cat(heads), f"{part}.o_proj"))
        self.reads[i] = h
        return torch.stack(out)

    def passed(self, ids, groups):
        """Feeds ``ids``; the logits after each."""
        h = self.w["model.embed_tokens.weight"][list(ids)]
        for group in groups:
            said = [self.attention(i, h) for i in group]  # all of them read the same h
            for i, a in zip(group, said, strict=True):
                layer, h = f"model.layers.{i}", h + a
                x = self.normed(h, f"{layer}.post_attention_layernorm")
                gate = self.linear(x, f"{layer}.mlp.gate_proj")
                x = gate * torch.sigmoid(gate) * self.linear(x, f"{layer}.mlp.up_proj")
                h = h + self.linear(x, f"{layer}.mlp.down_proj")
        return self.linear(self.normed(h, "model.norm"), "lm_head")


APART = [[i] for i in range(LAYERS)]
IN = {
    2: [[0], [1, 2], [3, 4], [5, 6], [7], [8]],
    3: [[0], [1, 2, 3], [4, 5, 6], [7], [8]],
    4: [[0], [1, 2, 3], [4, 5, 6, 7], [8]],
}


def softmax(logits):
    return torch.softmax(logits, -1).numpy()


@pytest.mark.parametrize("lp", IN)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_fuzzy_pass_is_algorithm_2_on_the_keys_that_were_cached(family, lp):
    net = network(family)
    model, hand = Layered(net, VOCAB), ByHand(net)
    text = (5, 9, 2, 7, 11)
    with model.drafting(lp, True):
        have, want = model.rows(text, 2, PLAIN), softmax(hand.passed(text, APART)[-3:])
        np.testing.assert_allclose(have, want, atol=5e-6)
        for token in (3, 8, 1):
            text += (token,)
            want, have = (
                softmax(hand.passed((token,), IN[lp])),
                model.rows(text, 0, PLAIN),
            )
            np.testing.assert_allclose(have, want, atol=5e-6)
    exact = softmax(ByHand(net).passed(text, APART)[-1:])
    assert np.abs(have - exact).max() > 1e-3  # or the case would show nothing


def test_without_calibration_every_pass_after_the_prompt_is_fuzzy_and_stays():
    net = network()
    model, hand, text = Layered(net, VOCAB), ByHand(net), (5, 9, 2)
    with model.drafting(4, False):
        model.rows(text, 0, PLAIN)
    hand.passed(text, APART)
    for news in ((7,), (8, 1), (3,)):  # an operation each
        text += news
        want = softmax(hand.passed(news, IN[4])[-1:])
        with model.drafting(4, False):
            np.testing.assert_allclose(model.rows(text, 0, PLAIN), want, atol=5e-6)
    assert model.prefix.count == len(text) and model.exact == 3


@pytest.mark.parametrize("family", FAMILIES)
def test_with_one_layer_at_once_it_is_the_plain_model_bit_for_bit(family):
    plain, model = HFModel(network(family), VOCAB), Layered(network(family), VOCAB)
    dice, text = random.Random(1), [1]
    for _ in range(40):
        text = text[: dice.randint(1, len(text))] + [
            dice.randrange(VOCAB) for _ in range(4)
        ]
        last = dice.randrange(4)
        with model.drafting(1, dice.random() < 0.5):
            theirs, ours = (m.rows(tuple(text), last, PLAIN) for m in (plain, model))
        assert np.array_equal(theirs, ours)
        assert (model.prefix.fed, model.prefix.count) == (
            plain.prefix.fed,
            plain.prefix.count,
        )
    tree = (*text, 4, 5, 6), (-1, 0, -1), PLAIN
    assert np.array_equal(plain.tree(*tree), model.tree(*tree))
    levels = ((*text, 4), (-1,), 1, PLAIN), ((*text, 4, 5, 6), (-1, 0, 0), 2, PLAIN)
    with model.drafting(1, True):
        for m in (plain, model):
            m.rows(text, 0, PLAIN)
        assert all(np.array_equal(plain.level(*at), model.level(*at)) for at in levels)


def test_calibration_forgets_what_fuzzy_passes_cached_of_accepted_tokens_too():
    model, text, fed = Layered(network(), VOCAB), (5, 9, 2), 3
    for accepted in (0, 1, 2, 3):
        fresh, before = HFModel(network(), VOCAB), model.prefix.count
        with model.drafting(4, True):
            np.testing.assert_allclose(
                model.rows(text, 0, PLAIN), fresh.rows(text, 0, PLAIN), atol=2e-6
            )
            assert (
                model.prefix.count - before == fed
            )  # all that came since the last one
            drafted = text
            for token in (7, 8, 9):
                drafted += (token,)
                model.rows(drafted, 0, PLAIN)
        assert tuple(model.prefix.fed) == text  # and it is forgotten at once
        text, fed = drafted[: len(text) + accepted] + (30 + accepted,), accepted + 1


@pytest.mark.parametrize("calibrate", [True, False])
def test_whoever_does_not_draft_reads_exact_keys_alone(calibrate):
    model, plain, text = Layered(network(), VOCAB), HFModel(network(), VOCAB), (5, 9, 2)
    for news in ((7,), (1, 4), (8,)):
        with model.drafting(4, calibrate):
            model.rows(text, 0, PLAIN)
            model.rows(text + news, 0, PLAIN)  # fuzzy
        text += news
        rows = model.rows(text, 1, PLAIN), plain.rows(text, 1, PLAIN)
        np.testing.assert_allclose(*rows, atol=2e-6)
        with model.drafting(4, calibrate):
            model.rows((*text, 6), 0, PLAIN)
        tree = (*text, 6, 3, 5), (-1, 0, 0), PLAIN
        np.testing.assert_allclose(model.tree(*tree), plain.tree(*tree), atol=2e-6)


def test_other_groups_read_nothing_that_was_cached_in_groups():
    """Or on several ranks some would lack the keys of layers that are theirs now."""
    model, fresh, text = (
        Layered(network(), VOCAB),
        Layered(network(), VOCAB),
        (5, 9, 2, 7, 1),
    )
    for lp, fed in ((4, 3), (4, 4), (2, 5)):
        with model.drafting(lp, False):
            found = model.rows(text[:fed], 0, PLAIN)
    with fresh.drafting(2, False):
        fresh.rows(text[:3], 0, PLAIN)
        np.testing.assert_allclose(found, fresh.rows(text, 0, PLAIN), atol=2e-6)


def test_a_level_of_a_tree_is_fuzzy_as_its_paths_are():
    tree, line, text = Layered(network(), VOCAB), Layered(network(), VOCAB), (5, 9, 2)
    with tree.drafting(3, True), line.drafting(3, True):
        for model in (tree, line):
            model.rows(text, 0, PLAIN)
        tree.level((*text, 7, 8), (-1, -1), 2, PLAIN)
        rows = tree.level((*text, 7, 8, 4, 6), (-1, -1, 1, 0), 2, PLAIN)
        for row, path in zip(rows, ((8, 4), (7, 6)), strict=True):
            line.rows((*text, path[0]), 0, PLAIN)
            np.testing.assert_allclose(
                row, line.rows((*text, *path), 0, PLAIN)[0], atol=2e-6
            )


# -- groups ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("layers", "lp", "printed"),
    [
        (32, 2, [*range(1, 31, 2), 31]),
        (32, 3, [*range(1, 31, 3), 31]),
        (32, 4, [1, *range(4, 28, 4), 28, 31]),
        (32, 5, [1, *range(4, 29, 5), 29, 31]),
        (28, 4, [1, *range(4, 24, 4), 24, 27]),
    ],
)
def test_groups_begin_where_table_6_has_them(layers, lp, printed):
    assert [group.start for group in group_layers(layers, lp)] == [0, *printed]


def test_groups_hold_every_layer_once_and_no_more_than_lp():
    for layers in range(1, 20):
        for lp in range(1, 8):
            groups = group_layers(layers, lp)
            assert [i for group in groups for i in group] == list(range(layers))
            assert all(1 <= len(group) <= lp for group in groups)
            assert len(groups[0]) == len(groups[-1]) == 1


@pytest.mark.parametrize(
    ("family", "changes", "named"),
    [
        ("Mistral", {}, "of other layers"),
        (
            "Qwen2",
            {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 4},
            "full_attention, sliding_attention",
        ),
    ],
)
def test_what_cannot_share_an_input_is_refused_by_name(family, changes, named):
    net = network(family, **changes)
    for refused in (lambda: Layered(net, VOCAB), lambda: similarities(net, (1, 2), 2)):
        with pytest.raises(
            SpeclibError, match=rf"{family}ForCausalLM.*\({named}\).*Qwen3"
        ):
            refused()


# -- similarities ---------------------------------------------------------------------------------
def test_similarities_compare_what_each_attention_reads_and_says():
    net, ids = network(), (5, 9, 2, 7, 11, 3)
    found = similarities(net, ids, 3)
    exact, stale = ByHand(net), ByHand(net)
    exact.passed(ids, APART)
    stale.passed(ids, IN[3])
    want = [
        torch.cosine_similarity(a, b, dim=-1).mean().item()
        for a, b in zip(exact.reads, stale.reads, strict=True)
    ]
    np.testing.assert_allclose(found["h"], want, atol=1e-5)
    keys = [
        [
            torch.cosine_similarity(torch.stack(a), torch.stack(b), dim=-1)
            .mean()
            .item()
            for a, b in zip(ours, theirs, strict=True)
        ]
        for ours, theirs in zip(exact.cache, stale.cache, strict=True)
    ]
    np.testing.assert_allclose(
        list(zip(found["k"], found["v"], strict=True)), keys, atol=1e-5
    )
    assert tuple(found) == STATES and all(
        len(layers) == LAYERS for layers in found.values()
    )
    for state in STATES:
        assert found[state][:2] == pytest.approx(
            [1, 1]
        )  # they read what they always do
        assert max(found[state][2:]) < 0.9999


def test_similarities_of_texts_are_of_their_positions_together(tmp_path):
    pair, texts = pair_over_ranks(tmp_path, 1), ["w5 w9 w2 w7", "w11 w3 w8 w8 w1 w4"]
    ids = [[5, 9, 2, 7], [11, 3, 8, 8, 1, 4]]
    shares = [similarities(network(), line, 3) for line in ids]
    for model in (pair, str(tmp_path)):
        found = speclib.similarities(model, texts, lp=3)
        for state in STATES:
            wanted = (
                4 * np.array(shares[0][state]) + 6 * np.array(shares[1][state])
            ) / 10
            np.testing.assert_allclose(found[state], wanted, atol=1e-6)
    alone = speclib.similarities(pair, texts[0], lp=3)
    np.testing.assert_allclose(alone["h"], shares[0]["h"], atol=1e-6)


def test_a_network_is_its_own_again_after_a_fuzzy_pass():
    net, ids = network(), torch.tensor([[5, 9, 2]])
    with torch.inference_mode():
        before = net(ids).logits
        similarities(net, (5, 9, 2), 4)
        assert torch.equal(net(ids).logits, before)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            {"model": "toy", "spread": "layers"},
            "spread is 'layers', but 'toy' is not torch's",
        ),
        (
            {"model": "a", "spread": "tensors", "runtime": "llamacpp"},
            "spread is 'tensors', but 'a'",
        ),
        ({"model": "a.gguf", "spread": "tensors"}, "spread beside 'a.gguf'"),
        ({"model": "a", "spread": "rings"}, "'blocks', 'layers' or 'tensors'"),
    ],
)
def test_a_spread_that_cannot_be_is_refused(model, said):
    with pytest.raises(SpeclibError, match=said):
        speclib.pair(target="zoo/target", draft=model)


@pytest.mark.parametrize(
    ("family", "kind"), [*zip(FAMILIES, [Layered] * 3, strict=True), ("Gemma", HFModel)]
)
def test_a_draft_can_share_inputs_wherever_its_layers_can_without_being_told(
    tmp_path, family, kind
):
    network(family).save_pretrained(tmp_path)
    one = speclib.pair(target=str(tmp_path), draft=str(tmp_path))
    assert type(factory.build(one, "draft")) is kind
    assert type(factory.build(one, "target")) is HFModel
    ask = DraftTree(TEXT, 4, 2, lp=4).run
    request = Request(1, Coins(), PLAIN)
    if kind is HFModel:
        with pytest.raises(SpeclibError, match="lp is 4, but this draft cannot"):
            ask(factory.build(one, "draft"), request)
    else:
        tokens, rows = ask(factory.build(one, "draft"), request)
        told, wanted = ask(Layered(network(family), VOCAB), request)
        assert tokens == told and np.abs(rows - wanted).max() < 1e-6


# -- real ranks -----------------------------------------------------------------------------------
@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.slow)])
def world(request, tmp_path_factory):
    pair = pair_over_ranks(tmp_path_factory.mktemp("model"), request.param)
    with Processes(pair, timeout=60) as opened:
        yield opened


def begin(world):
    world.begin(TEXT, sampler=PLAIN, coins=Coins(3), limit=40)


def tree(world, text, calibrate: bool = True, lp: int = 4):
    drafted, parents = world.wait(
        world.draft.draft_tree(text, 4, 3, lp=lp, calibrate=calibrate)
    )
    return [d.token for d in drafted], parents, np.stack([d.q for d in drafted])


@pytest.mark.parametrize("calibrate", [True, False])
def test_ranks_draft_what_one_process_drafts(world, calibrate):
    alone = speclib.Virtual(
        {"draft": Layered(network(), VOCAB), "target": HFModel(network(), VOCAB)},
        speclib.Latency.ratio(2),
    )
    for opened in (world, alone):
        begin(opened)
    texts = [
        (TEXT, 4),
        ((*TEXT, 1), 4),
        ((*TEXT, 1, 2), 2),
        ((*TEXT, 1, 2, 3), 4),
        (TEXT, 1),
    ]
    for text, lp in texts:
        ours, theirs = (tree(w, text, calibrate, lp) for w in (world, alone))
        assert ours[:2] == theirs[:2]
        np.testing.assert_allclose(ours[2], theirs[2], atol=1e-6)
    traces = [opened.end() for opened in (world, alone)]
    assert (
        len({tuple((e.kept, e.fed) for e in trace.operations) for trace in traces}) == 1
    )


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("busy", [False, True])
def test_a_rank_that_dies_is_named_and_none_is_left(world, number, busy):
    begin(world)
    tree(world, TEXT)
    processes, began = worker_processes(world, "draft"), time.monotonic()
    future = world.draft.draft_tree(TEXT, 100, 3, lp=4) if busy else None
    if busy:
        time.sleep(0.3)
        assert not future.done
    os.kill(processes[number].pid, signal.SIGKILL)
    with pytest.raises(DeviceLost, match=f"'draft'.*rank {number}"):
        world.wait(future or world.draft.draft_tree(TEXT, 100, 3, lp=4))
    assert time.monotonic() - began < 20
    assert all_ended(processes)
    begin(world)  # others took their place
    assert tree(world, TEXT)[0]


@pytest.mark.parametrize(
    ("number", "named"),
    [
        pytest.param(0, "no answer of rank 0 in 6 s", marks=pytest.mark.slow),
        (1, "rank 1 of 2 hung"),
    ],
)
def test_a_rank_that_hangs_is_named_in_time(tmp_path, number, named):
    with Processes(pair_over_ranks(tmp_path, 2), timeout=6) as world:
        begin(world)
        tree(world, TEXT)
        processes, began = worker_processes(world, "draft"), time.monotonic()
        os.kill(processes[number].pid, signal.SIGSTOP)
        with pytest.raises(DeviceLost, match=f"'draft'.*{named}"):
            tree(world, TEXT)
        assert time.monotonic() - began < 20
        assert all_ended(processes)
        begin(world)
        assert tree(world, TEXT)[0]


def test_a_pass_that_fails_on_the_ranks_says_why(world):
    begin(world)
    with pytest.raises(DeviceLost, match="IndexError|index"):
        tree(world, (*TEXT, VOCAB + 7))
    begin(world)
    assert tree(world, TEXT)[0]


def broken(pair, rank):
    """Starts a rank; of four the third fails in its second pass."""
    model = factory.build(pair, "draft", rank=rank)
    if rank.number == 2:
        passes = [False, True]
        model.model.network.register_forward_pre_hook(
            lambda *_: 1 / (not passes.pop(0)) and None
        )
    return model if rank.number else partial(drafted, model)


def drafted(model, message, pipe):
    with model.drafting(4, True):
        return [model.rows(TEXT[:end], 0, PLAIN).shape for end in (3, 4, 5)]


def test_one_rank_that_fails_is_the_one_that_is_blamed(tmp_path):
    worker = Worker("ranks", pair_over_ranks(tmp_path, 4), broken, ranks=4)
    try:
        assert worker.receive(60) is None  # it is ready
        worker.pipe.send("draft")
        assert "rank 2 of 4 failed: ZeroDivisionError" in worker.receive(20).cause
    finally:
        worker.stop()
    assert all_ended(worker.processes)


def test_closing_leaves_no_rank(tmp_path):
    with Processes(pair_over_ranks(tmp_path, 2)) as world:
        processes = worker_processes(world, "draft")
        assert len(processes) == 2 and all(p.is_alive() for p in processes)
    assert all_ended(processes)
    assert not [p for p in multiprocessing.active_children() if p in processes]


def test_a_draft_whose_layers_cannot_be_shared_is_refused_before_it_is_used(tmp_path):
    pair = pair_over_ranks(tmp_path, 2)
    network("Mistral").save_pretrained(tmp_path)
    with pytest.raises(DeviceLost, match="'draft' could not build.*MistralForCausalLM"):
        Processes(pair)


def test_the_bench_times_passes_and_meetings_on_real_ranks(tmp_path, monkeypatch):
    from speclib.bench import layered
    from speclib.bench.rows import Size

    monkeypatch.setattr(layered, "load_pair", lambda name: pair_over_ranks(tmp_path, 2))
    monkeypatch.setattr(layered, "CONTEXTS", (20,))
    monkeypatch.setattr(layered, "SHAPE", (10, 64, 8, 96))
    faster, than_exact, waiting = layered.drafting(Size(repeats=2, passes=3))
    assert faster.value > 0 and than_exact.value > 0 and 0 < waiting.value < 1
    assert (
        "2 ranks over exact on one" in than_exact.name and "20 tokens" in waiting.name
    )
