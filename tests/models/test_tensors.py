"""Tensor parallelism: ranks that share every layer compute what the whole network does, and what
transformers' own tensor parallelism does."""

from __future__ import annotations

import os
import signal
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
    pair_over_ranks,
)
from helpers.processes import all_ended, worker_processes  # noqa: E402

import speclib  # noqa: E402
from speclib import SpeclibError  # noqa: E402
from speclib.core.sampling import Coins  # noqa: E402
from speclib.models import factory  # noqa: E402
from speclib.models.hf import HFModel  # noqa: E402
from speclib.models.parallel.tensor_parallel import Tensors  # noqa: E402
from speclib.worlds.processes import Processes  # noqa: E402
from speclib.worlds.worker_process import Worker  # noqa: E402
from speclib.worlds.world import DeviceLost  # noqa: E402

TREE = (4, 6, 8, 3, 1), (-1, 0, -1, 2, 2)  # tokens and parents
FAMILIES = {
    "Llama": {"attention_bias": True, "mlp_bias": True},
    "Qwen2": {},
    "Qwen3": {},
}
SHAPE = (10, 64, 8, 96)  # of a dilated network


def spread(folder, size: int, family: str = "Llama", shape=None, **changes):
    """A pair whose target is spread over ``size`` ranks, in ``folder``."""
    pair = pair_over_ranks(folder, size, "tensors", "target")
    network(family, **changes).save_pretrained(folder)
    return pair.model_copy(
        update={"target": pair.target.model_copy(update={"shape": shape})}
    )


def passes(model) -> list[np.ndarray]:
    """Passes of every kind, with a rejection and a tree between them."""
    nodes, parents = TREE
    found = [
        model.rows(TEXT, 2, PLAIN),
        model.rows((*TEXT, 7), 0, PLAIN),
        model.tree((*TEXT, *nodes), parents, PLAIN),
        model.rows((*TEXT[:3], 8, 8), 1, PLAIN),
        model.rows(TEXT, 0, PLAIN),
        model.level((*TEXT, 1, 2), (-1, -1), 2, PLAIN),
        model.level((*TEXT, 1, 2, 3, 4), (-1, -1, 0, 1), 2, PLAIN),
    ]
    model.reset()
    return [*found, model.rows(TEXT, 1, PLAIN)]


@pytest.mark.parametrize(
    ("family", "size", "shape"),
    [
        ("Qwen3", 2, None),
        ("Llama", 2, SHAPE),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("Llama", 2, None),
                ("Qwen2", 2, None),
                ("Qwen2", 2, SHAPE),
                ("Llama", 4, SHAPE),
            )
        ),
    ],
)
def test_ranks_score_what_the_whole_network_scores(tmp_path, family, size, shape):
    more = {"vocab_size": 64} | FAMILIES[family]  # a head that can be cut
    if size == 4:
        more["num_key_value_heads"] = 4
    pair = spread(tmp_path, size, family, shape, **more)
    wanted = passes(HFModel(network(family, **more), factory.vocab(pair)))
    with Processes(pair, timeout=60) as world:
        world.begin(TEXT, sampler=PLAIN, coins=Coins(), limit=9)
        nodes, parents = TREE
        rows = [
            world.wait(world.target.score((*TEXT, 7), 3)),
            world.wait(world.target.score_tree(TEXT, nodes, parents)),
            world.wait(world.target.score((*TEXT[:3], 8, 8), 1)),
        ]
    np.testing.assert_allclose(rows[0], np.concatenate(wanted[:2]), atol=1e-5)
    np.testing.assert_allclose(rows[1], wanted[2], atol=1e-5)
    np.testing.assert_allclose(rows[2], wanted[3], atol=1e-5)


def share(pair, rank):
    """Starts a rank that answers with the rows of ``passes``, and with what it holds."""
    model = factory.build(pair, "target", rank=rank)
    return model if rank.number else partial(held, model)


def held(model, message, pipe):
    rows = passes(model)
    shapes = {
        name: tuple(weight.shape) for name, weight in model.network.named_parameters()
    }
    return rows, shapes, tuple(model.cache.layers[0].keys.shape)


def test_a_rank_holds_its_share_of_weights_heads_keys_and_values_and_no_more(tmp_path):
    pair = spread(tmp_path, 2, **FAMILIES["Llama"])
    worker = Worker("ranks", pair, share, ranks=2)
    try:
        assert worker.receive(60) is None
        worker.pipe.send("passes")
        rows, shapes, keys = worker.receive(60)
    finally:
        worker.stop()
    for ours, theirs in zip(
        rows, passes(HFModel(network(**FAMILIES["Llama"]), VOCAB)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert keys == (1, 1, len(TEXT), 8)  # one of two heads
    layer = "model.layers.3."
    assert {shapes[f"{layer}self_attn.{x}_proj.weight"] for x in "kv"} == {(8, 32)}
    assert shapes[f"{layer}self_attn.q_proj.weight"] == (16, 32)
    assert shapes[f"{layer}self_attn.o_proj.weight"] == (32, 16)
    assert shapes[f"{layer}mlp.up_proj.bias"] == (24,)
    assert shapes[f"{layer}mlp.down_proj.weight"] == (32, 24)
    assert shapes["lm_head.weight"] == (VOCAB, 32)  # 61 rows cannot be shared alike


def theirs(pair, rank):
    """Starts a rank of transformers' own tensor parallelism."""
    folder, at = pair.target.model, f"{pair.target.model}/meeting"
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{at}", rank=rank.number, world_size=rank.size
    )
    os.environ |= {
        "RANK": str(rank.number),
        "LOCAL_RANK": str(rank.number),
        "WORLD_SIZE": str(rank.size),
    }
    built = transformers.AutoModelForCausalLM.from_pretrained(
        folder, tp_plan="auto"
    ).eval()
    with torch.inference_mode():
        logits = built(torch.tensor([TEXT])).logits[0]
    return lambda *_: logits.numpy()


@pytest.mark.parametrize(
    "family",
    [
        "Qwen3",
        *(
            pytest.param(family, marks=pytest.mark.slow)
            for family in ("Llama", "Qwen2")
        ),
    ],
)
def test_transformers_own_tensor_parallelism_says_the_same(tmp_path, family):
    pair = spread(tmp_path, 2, family, vocab_size=64, **FAMILIES[family])
    worker = Worker("theirs", pair, theirs, ranks=2)
    try:
        assert worker.receive(60) is None
        worker.pipe.send("logits")
        wanted = torch.softmax(torch.tensor(worker.receive(60)), -1).numpy()
    finally:
        worker.stop()
    with Processes(pair, timeout=60) as world:
        world.begin(TEXT, sampler=PLAIN, coins=Coins(), limit=9)
        rows = world.wait(world.target.score(TEXT, len(TEXT) - 1))
    np.testing.assert_allclose(rows, wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "size", "said"),
    [
        (
            {"num_attention_heads": 3, "num_key_value_heads": 3, "hidden_size": 24},
            2,
            "3 attention heads, which 2 ranks",
        ),
        ({"num_key_value_heads": 1}, 2, "1 key and value heads, which 2 ranks"),
        (
            {"intermediate_size": 50},
            4,
            "key and value heads|50 channels in its MLPs, which 4 ranks",
        ),
    ],
)
def test_what_ranks_cannot_share_alike_is_refused_by_name(changes, size, said):
    with pytest.raises(SpeclibError, match=said):
        Tensors(network(**changes), VOCAB, 0, size)


def test_a_plan_that_is_not_known_is_refused_with_what_is():
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


def test_heads_that_ranks_cannot_share_end_the_start_with_the_reason(tmp_path):
    with pytest.raises(
        DeviceLost, match="'target' could not build.*1 key and value heads"
    ):
        Processes(spread(tmp_path, 2, num_key_value_heads=1))


@pytest.mark.parametrize(
    "method", ["easyspec", pytest.param("speculative", marks=pytest.mark.slow)]
)
def test_a_target_and_a_draft_on_the_same_ranks_write_what_the_target_would(
    tmp_path, method
):
    pair = spread(tmp_path, 2, num_key_value_heads=4)
    pair = pair.model_copy(
        update={
            "draft": pair.draft.model_copy(update={"spread": "layers"}),
            "place": pair.place.model_copy(update={"draft": ("cpu", "cpu")}),
        }
    )
    how = {"max_new_tokens": 24, "ignore_eos": True, "pair": pair}
    settings = {"width": 3, "lp": 4} if method == "easyspec" else {}
    one = pair.model_copy(
        update={"target": pair.target.model_copy(update={"spread": "blocks"})}
    )
    plain = speclib.decode("w5 w9 w2", method="autoregressive", **how | {"pair": one})
    ours = speclib.decode("w5 w9 w2", method=method, gamma=4, **how, **settings)
    assert ours.tokens == plain.tokens and len(ours.tokens) == 24


def test_a_rank_of_a_target_that_dies_is_named_and_none_is_left(tmp_path):
    with Processes(spread(tmp_path, 2), timeout=20) as world:
        for _ in range(2):  # others take their place
            world.begin(TEXT, sampler=PLAIN, coins=Coins(), limit=9)
            world.wait(world.target.score(TEXT))
            processes = worker_processes(world, "target")
            os.kill(processes[1].pid, signal.SIGKILL)
            with pytest.raises(DeviceLost, match="'target'.*rank 1"):
                world.wait(world.target.score((*TEXT, 1)))
            assert all_ended(processes)
