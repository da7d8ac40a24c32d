"""With tensor parallelism, ranks that share every layer act as the whole network.

They also agree with transformers' own tensor parallelism.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helpers.checkpoints import (  # noqa: E402
    PLAIN,
    TEXT,
    VOCAB,
    network,
    numbered_words,
    pair_over_ranks,
    save_tokenizer,
)
from helpers.processes import all_ended, worker_processes  # noqa: E402
from helpers.ranks_in_threads import RankInThread, Table  # noqa: E402

import speclib  # noqa: E402
from speclib import SpeclibError  # noqa: E402
from speclib.core.sampling import Coins, Sampler  # noqa: E402
from speclib.methods.dsi import dsi  # noqa: E402
from speclib.models.hf import HFModel  # noqa: E402
from speclib.models.open_pair import open_pair  # noqa: E402
from speclib.models.parallel.ranks import backend_between  # noqa: E402
from speclib.models.parallel.tensor_parallel import Tensors  # noqa: E402
from speclib.worlds.devices import DeviceFailed  # noqa: E402
from speclib.worlds.processes import Processes  # noqa: E402
from speclib.worlds.worker import Worker  # noqa: E402

NODES = (4, 6, 8, 3, 1)
PARENTS = (-1, 0, -1, 2, 2)
BIASES = {
    "Llama": {"attention_bias": True, "mlp_bias": True},
    "Qwen2": {},
    "Qwen3": {},
}
SHAPE = (10, 64, 8, 96)  # a dilated network's


def spread_target(folder, size, family="Llama", shape=None, **changes):
    """Makes a pair whose target, in ``folder``, is spread over ``size`` ranks."""
    pair = pair_over_ranks(folder, size, "tensors", "target")
    network(family, **changes).save_pretrained(folder)
    return with_model(pair, "target", shape=shape)


def with_model(pair, role, **changes):
    """Returns ``pair`` with changes to the model of ``role``."""
    model = pair.model(role).model_copy(update=changes)
    return pair.model_copy(update={role: model})


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.thorough)


def passes(model) -> list[np.ndarray]:
    """Returns rows from every kind of pass, with a rejection and a tree in between."""
    rows = [
        model.rows(TEXT, 2, PLAIN),
        model.rows((*TEXT, 7), 0, PLAIN),
        model.tree((*TEXT, *NODES), PARENTS, PLAIN),
        model.rows((*TEXT[:3], 8, 8), 1, PLAIN),
        model.rows(TEXT, 0, PLAIN),
        model.level((*TEXT, 1, 2), (-1, -1), 2, PLAIN),
        model.level((*TEXT, 1, 2, 3, 4), (-1, -1, 0, 1), 2, PLAIN),
    ]
    model.reset()
    rows.append(model.rows(TEXT, 1, PLAIN))
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(
    "family, size, shape",
    [
        ("Qwen3", 2, None),
        ("Llama", 2, SHAPE),
        slow("Llama", 2, None),
        slow("Qwen2", 2, None),
        slow("Qwen2", 2, SHAPE),
        slow("Llama", 4, SHAPE),
    ],
)
def test_ranks_give_the_whole_networks_probabilities(tmp_path, family, size, shape):
    changes = {"vocab_size": 64} | BIASES[family]  # a head that ranks can divide
    if size == 4:
        changes["num_key_value_heads"] = 4
    pair = spread_target(tmp_path, size, family, shape, **changes)
    with Processes(pair, timeout=60) as world:
        world.begin(TEXT, sampler=PLAIN, coins=Coins(), limit=9)
        three_rows = world.wait(world.target.score((*TEXT, 7), 3))
        tree_rows = world.wait(world.target.score_tree(TEXT, NODES, PARENTS))
        rows_after_rejection = world.wait(world.target.score((*TEXT[:3], 8, 8), 1))

    whole = HFModel(network(family, **changes), open_pair(pair).vocab)
    expected = passes(whole)
    np.testing.assert_allclose(three_rows, np.concatenate(expected[:2]), atol=1e-5)
    np.testing.assert_allclose(tree_rows, expected[2], atol=1e-5)
    np.testing.assert_allclose(rows_after_rejection, expected[3], atol=1e-5)


# -- a rank's memory -------------------------------------------------------------------
def start_rank(pair, rank):
    """Starts a rank that answers with the rows of ``passes`` and its holdings."""
    model = open_pair(pair).build("target", rank=rank)
    return model if rank.number else partial(rows_and_holdings, model)


def rows_and_holdings(model, message, pipe):
    rows = passes(model)
    shapes = {}
    for name, weight in model.model.network.named_parameters():
        shapes[name] = tuple(weight.shape)
    return rows, shapes, tuple(model.model.cache.layers[0].keys.shape)


def test_a_rank_holds_exactly_its_share_of_weights_heads_keys_and_values(tmp_path):
    pair = spread_target(tmp_path, 2, **BIASES["Llama"])
    worker = Worker("ranks", pair, start_rank, ranks=2)
    try:
        assert worker.receive(60) is None
        worker.pipe.send("passes")
        rows, shapes, keys = worker.receive(60)
    finally:
        worker.stop()

    whole = HFModel(network(**BIASES["Llama"]), VOCAB)
    for ours, expected in zip(rows, passes(whole), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-5)
    assert keys == (1, 1, len(TEXT), 8)  # one of two heads
    layer = "model.layers.3"
    assert shapes[f"{layer}.self_attn.k_proj.weight"] == (8, 32)
    assert shapes[f"{layer}.self_attn.v_proj.weight"] == (8, 32)
    assert shapes[f"{layer}.self_attn.q_proj.weight"] == (16, 32)
    assert shapes[f"{layer}.self_attn.o_proj.weight"] == (32, 16)
    assert shapes[f"{layer}.mlp.up_proj.bias"] == (24,)
    assert shapes[f"{layer}.mlp.down_proj.weight"] == (32, 24)
    assert shapes["lm_head.weight"] == (31, 32)  # 61 rows and one of padding


# -- widths that do not divide ---------------------------------------------------------
UNEVEN = {  # 5 groups of query heads, 47 channels, 61 rows: all prime
    "Llama": {
        "layers": 4,
        "hidden_size": 40,
        "num_attention_heads": 10,
        "num_key_value_heads": 5,
        "intermediate_size": 47,
        **BIASES["Llama"],
    },
    "Qwen3": {
        "layers": 4,
        "num_attention_heads": 5,
        "num_key_value_heads": 5,
        "intermediate_size": 47,
    },
}


def in_threads(make_network, size, answer) -> list:
    """Runs ``answer`` on ``size`` ranks, which are threads; returns their results.

    make_network: makes the whole network, once for each rank.
    """
    table = Table(size)
    models = []
    for number in range(size):
        model = Tensors(make_network(), VOCAB, number, size)
        model.ranks = RankInThread(table, number)
        models.append(model)

    with ThreadPoolExecutor(size) as threads:
        return list(threads.map(answer, models))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("family", UNEVEN)
def test_widths_that_do_not_divide_are_padded_and_change_nothing(family, size):
    def whole_network():
        return network(family, dtype=torch.float64, **UNEVEN[family])

    expected = passes(HFModel(whole_network(), VOCAB))
    for rows in in_threads(whole_network, size, passes):
        for ours, theirs in zip(rows, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-13)
            np.testing.assert_array_equal(ours.argmax(-1), theirs.argmax(-1))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_ranks_hold_every_weight_once_and_pad_with_zeros(size):
    whole = network(**UNEVEN["Llama"])
    expected_sum = {}
    for name, weight in whole.named_parameters():
        expected_sum[name] = weight.abs().sum().item()

    rank_sums = {}
    shapes = []
    for number in range(size):
        own = Tensors(network(**UNEVEN["Llama"]), VOCAB, number, size).network
        shapes.append({name: weight.shape for name, weight in own.named_parameters()})
        for name, weight in own.named_parameters():
            rank_sums.setdefault(name, []).append(weight.abs().sum().item())

    layer = "model.layers.3"
    for shape in shapes:
        heads = -(-5 // size)  # key and value heads, rounded up
        assert shape[f"{layer}.self_attn.k_proj.weight"] == (8 * heads, 40)
        assert shape[f"{layer}.self_attn.q_proj.weight"] == (16 * heads, 40)
        assert shape[f"{layer}.self_attn.o_proj.weight"] == (40, 16 * heads)
        assert shape[f"{layer}.mlp.up_proj.weight"] == (-(-47 // size), 40)
        assert shape["lm_head.weight"] == (-(-61 // size), 40)
        assert shape["model.norm.weight"] == (40,)
    for name, sums in rank_sums.items():
        is_copied = "norm" in name or "embed" in name
        held = sums[0] if is_copied else sum(sums)
        assert held == pytest.approx(expected_sum[name], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, slow(3)])
def test_a_target_that_its_ranks_do_not_divide_evenly_decodes_as_a_single_one(
    tmp_path, monkeypatch, size
):
    save_tokenizer(tmp_path, numbered_words())
    network(**UNEVEN["Llama"]).save_pretrained(tmp_path)
    monkeypatch.setattr("speclib.data.pairs.DATA", tmp_path)
    (tmp_path / "pairs").mkdir()
    tokens = []
    for places in (["cpu"], ["cpu"] * size):
        name = f"ranks-{len(places)}"
        (tmp_path / "pairs" / f"{name}.toml").write_text(
            f"target = {{model = '{tmp_path}', spread = 'tensors'}}\n"
            f"draft = {{model = '{tmp_path}'}}\n"
            f"place = {{target = {places}, draft = ['cpu'], threads = 1}}\n"
        )
        result = speclib.decode(
            "w5 w9 w2",
            pair=speclib.load_pair(name),
            method="pearl",
            gamma=3,
            max_new_tokens=24,
            ignore_eos=True,
            dtype="float64",
            world="processes",
        )
        tokens.append(result.tokens)
    assert tokens[0] == tokens[1]
    assert len(tokens[1]) == 24


# -- compared with transformers --------------------------------------------------------
def start_rank_of_transformers(pair, rank):
    """Starts a rank of transformers' tensor parallelism, which answers with logits."""
    folder = pair.target.model
    torch.distributed.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meeting",
        rank=rank.number,
        world_size=rank.size,
    )
    os.environ["RANK"] = os.environ["LOCAL_RANK"] = str(rank.number)
    os.environ["WORLD_SIZE"] = str(rank.size)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, tp_plan="auto")
    with torch.inference_mode():
        logits = model.eval()(torch.tensor([TEXT])).logits[0]
    return lambda *_: logits.numpy()


@pytest.mark.parametrize("family", ["Qwen3", slow("Llama"), slow("Qwen2")])
def test_transformers_tensor_parallelism_gives_the_same_logits(tmp_path, family):
    pair = spread_target(tmp_path, 2, family, vocab_size=64, **BIASES[family])
    worker = Worker("theirs", pair, start_rank_of_transformers, ranks=2)
    try:
        assert worker.receive(60) is None
        worker.pipe.send("logits")
        logits = worker.receive(60)
    finally:
        worker.stop()

    with Processes(pair, timeout=60) as world:
        world.begin(TEXT, sampler=PLAIN, coins=Coins(), limit=9)
        rows = world.wait(world.target.score(TEXT, len(TEXT) - 1))
    expected = torch.softmax(torch.tensor(logits), -1).numpy()
    np.testing.assert_allclose(rows, expected, atol=1e-5)


# -- errors ----------------------------------------------------------------------------
def test_too_few_channels_for_the_ranks_are_refused_by_name():
    narrow = network(num_key_value_heads=4, intermediate_size=3)
    message = "3 channels in its MLPs, too few for 4 ranks"
    with pytest.raises(SpeclibError, match=message):
        Tensors(narrow, VOCAB, 0, 4)


def test_an_unknown_plan_is_refused_with_the_known_ones():
    config = transformers.Phi3Config(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        pad_token_id=0,
    )
    with pytest.raises(SpeclibError, match="Phi3ForCausalLM has .*known: colwise"):
        Tensors(transformers.Phi3ForCausalLM(config), VOCAB, 0, 2)


def test_heads_that_ranks_cannot_share_are_refused_with_a_reason(tmp_path):
    pair = spread_target(tmp_path, 2, num_key_value_heads=1)
    with pytest.raises(
        SpeclibError, match="1 key and value heads, too few for 2 ranks"
    ):
        Processes(pair)


# -- in whole runs ---------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(
    "method, settings",
    [("easyspec", {"width": 3, "lp": 4}), slow("speculative", {})],
    ids=["easyspec", "speculative"],
)
def test_a_target_and_a_draft_on_the_same_ranks_write_what_the_target_would(
    tmp_path, method, settings
):
    pair = spread_target(tmp_path, 2, num_key_value_heads=4)
    pair = with_model(pair, "draft", spread="layers")
    place = pair.place.model_copy(update={"draft": ("cpu", "cpu")})
    pair = pair.model_copy(update={"place": place})
    in_one_process = with_model(pair, "target", spread="blocks")

    request = {"prompt": "w5 w9 w2", "max_new_tokens": 24, "ignore_eos": True}
    plain = speclib.decode(method="autoregressive", pair=in_one_process, **request)
    ours = speclib.decode(method=method, pair=pair, gamma=4, **request, **settings)
    assert ours.tokens == plain.tokens
    assert len(ours.tokens) == 24


@pytest.mark.parametrize(
    "devices, backend",
    [
        (["cpu", "cpu"], "gloo"),
        (["GPU-1f0c", "GPU-77ab"], "nccl"),
        (["GPU-1f0c", "GPU-77ab", "GPU-1f0c"], "gloo"),
        (["GPU-1f0c", "cpu"], "gloo"),
    ],
)
def test_ranks_use_nccl_only_if_each_has_its_own_gpu(devices, backend):
    assert backend_between(devices) == backend


def test_a_drafter_on_ranks_that_raises_ends_dsi_and_is_not_a_lost_device(tmp_path):
    """Its weights are NaN, which shows in the first row that it returns."""
    target = tmp_path / "target"
    network("Llama").save_pretrained(target)
    save_tokenizer(target, numbered_words())
    pair = with_model(
        pair_over_ranks(tmp_path, 2, "tensors", "draft"), "target", model=str(target)
    )
    unsound = network("Llama")
    unsound.model.norm.weight.data[0] = torch.nan
    unsound.save_pretrained(tmp_path)

    with Processes(pair, timeout=20) as world:
        for _ in range(2):  # its ranks are replaced and raise again
            # Without drafts, the target must not reach the end of the text before that.
            world.begin(TEXT, sampler=Sampler(), coins=Coins(), limit=60)
            processes = worker_processes(world, "draft")
            with pytest.raises(DeviceFailed, match="'draft' failed in propose.*NaN"):
                dsi(world, lookahead=2)
            assert all_ended(processes)
