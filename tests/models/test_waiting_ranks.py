"""How ranks wait for each other: on the host, or on their GPUs.

NCCL needs two GPUs. What the leader does while it waits for its GPU is tested with a
GPU that stands in for one, and with real pipes.
"""

from __future__ import annotations

from multiprocessing import Pipe

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch import distributed  # noqa: E402

from speclib.core.kv_prefix import Prefix  # noqa: E402
from speclib.errors import SpeclibError  # noqa: E402
from speclib.models.loading import Rank, RankLost  # noqa: E402
from speclib.models.parallel.layer_parallel import Layered  # noqa: E402
from speclib.models.parallel.pipeline import Pipeline  # noqa: E402
from speclib.models.parallel.ranks import (  # noqa: E402
    Leading,
    Ranks,
    backend_between,
)
from speclib.models.parallel.replicas import Replica  # noqa: E402
from speclib.models.parallel.tensor_parallel import Tensors  # noqa: E402
from speclib.worlds.performer import Failure, attempt  # noqa: E402


def test_ranks_that_take_turns_meet_on_the_host_though_each_has_a_gpu():
    gpus = ["GPU-1f0c", "GPU-77ab"]
    assert backend_between(gpus, Pipeline.take_turns) == "gloo"
    assert backend_between(gpus, Replica.take_turns) == "gloo"
    assert backend_between(gpus, Tensors.take_turns) == "nccl"
    assert backend_between(gpus, Layered.take_turns) == "nccl"


@pytest.fixture
def lonely_rank():
    """The only rank of a process group of gloo's."""
    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    yield Ranks(Rank(0, 1, 10.0), store, torch.device("cpu"))
    distributed.destroy_process_group()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_ranks_say_comes_back_to_where_it_was(lonely_rank, dtype):
    """Seen here: that the caller's own tensor has the result. Devices need a GPU."""
    tensor = torch.arange(6, dtype=dtype).reshape(2, 3)
    expected = tensor.clone()
    for result in (
        lonely_rank.sum(tensor),
        lonely_rank.send(tensor, 0),
        lonely_rank.gather(tensor)[0],
    ):
        assert torch.equal(result, expected)
    assert torch.equal(tensor, expected)


# -- while the leader's GPU computes ---------------------------------------------------
class NoModel:
    """Replaces a leader's model; it can be emptied."""

    vocab = context = 1
    prefix = Prefix()

    def reset(self):
        pass


def leader_of(ranks, patience=10.0):
    """A leader of ``ranks`` ranks without a model, and the far ends of its pipes."""
    links = [Pipe() for _ in range(1, ranks)]
    own_ends = tuple(own for own, _ in links)
    leader = Leading(NoModel(), Rank(0, ranks, patience, own_ends))
    return leader, [other for _, other in links]


def done_after(looks):
    """A GPU that has computed its pass after ``looks`` queries."""
    asked = iter(range(looks))
    return lambda: next(asked, None) is None


def test_a_rank_that_fails_in_a_pass_is_named_though_the_gpu_never_ends_without_a_gpu():
    leader, (first, second) = leader_of(3)
    first.send(None)
    second.send(Failure("OutOfMemoryError: CUDA out of memory"))
    with pytest.raises(SpeclibError, match="rank 2 of 3 failed: .*CUDA out") as raised:
        leader.watch_ranks_until(lambda: False)
    assert not isinstance(raised.value, RankLost)


def test_a_rank_that_ends_or_misses_another_in_a_pass_is_named_without_a_gpu():
    leader, (only,) = leader_of(2)
    only.close()
    with pytest.raises(RankLost, match="rank 1 of 2 ended"):
        leader.watch_ranks_until(lambda: False)

    leader, (only,) = leader_of(2)
    only.send(Failure("the ranks lost each other"))
    with pytest.raises(SpeclibError, match="rank 1 of 2 failed: the ranks lost"):
        leader.watch_ranks_until(lambda: False)


def test_an_answer_that_was_read_early_is_not_waited_for_again_without_a_gpu():
    leader, (early, late) = leader_of(3)
    early.send(None)
    leader.watch_ranks_until(done_after(3))
    late.send(None)
    leader.reset()

    leader.rank = leader.rank._replace(patience=0.0)
    with pytest.raises(RankLost, match="rank 1 of 3 hung"):  # each had one answer
        leader.reset()


def test_a_pass_that_never_ends_is_given_up_without_a_gpu():
    leader, _ = leader_of(2, patience=0.01)
    with pytest.raises(RankLost, match="pass is 0.01 s late.*timeout=..."):
        leader.watch_ranks_until(lambda: False)


# -- the next order --------------------------------------------------------------------
def test_a_rank_that_is_late_or_gone_when_an_order_is_due_is_lost():
    leader, (only,) = leader_of(2, patience=0.01)
    with pytest.raises(RankLost, match="rank 1 of 2 hung"):
        leader.reset()
    only.close()
    with pytest.raises(RankLost, match="rank 1 of 2 ended"):
        leader.reset()


def test_a_rank_that_raised_when_an_order_is_due_is_not_lost():
    leader, (only,) = leader_of(2)
    only.send(Failure("IndexError: index out of range in self"))
    with pytest.raises(SpeclibError, match="rank 1 of 2 failed: Index") as raised:
        leader.reset()
    assert not isinstance(raised.value, RankLost)


def test_a_lost_rank_is_told_to_the_controller_and_other_errors_are_none():
    def raise_it(error):
        raise error

    assert attempt(raise_it, RankLost("rank 1 of 2 ended")).has_lost_rank
    assert not attempt(raise_it, SpeclibError("rank 1 of 2 failed")).has_lost_rank
