"""Settings for GPUs, as far as they can be tested without one.

Whether they help on a GPU is not tested here.
"""

from __future__ import annotations

import os

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from helpers import snapshots  # noqa: E402
from helpers.each_operation import others_thorough  # noqa: E402

import speclib  # noqa: E402
from speclib.core.sampling import Sampler  # noqa: E402
from speclib.errors import BadValue, SpeclibError  # noqa: E402
from speclib.models import gpus, hf  # noqa: E402
from speclib.models.fixed_rows import FixedRows  # noqa: E402
from speclib.models.hf import HFModel  # noqa: E402
from speclib.models.open_pair import open_pair  # noqa: E402
from speclib.models.parallel import layer_parallel  # noqa: E402
from speclib.worlds import worker  # noqa: E402

PAIR = "embedded/llama-7b-70b"


# -- attention -------------------------------------------------------------------------
@pytest.fixture
def cudnn_attention():
    """cuDNN's attention is on, as in torch, and is restored afterwards."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(True)
    yield
    torch.backends.cuda.enable_cudnn_sdp(before)


def claiming_a_gpu(network):
    """Makes a network claim to be on a GPU; its weights stay on the CPU."""
    claimed = {"device": torch.device("cuda:0")}
    network.__class__ = type("Claimed", (type(network),), claimed)
    return network


@pytest.mark.parametrize("asked, is_on", [(None, False), ("0", False), ("1", True)])
def test_a_model_on_a_gpu_turns_cudnns_attention_off_unless_requested(
    asked, is_on, cudnn_attention, monkeypatch
):
    if asked is None:
        monkeypatch.delenv(gpus.CUDNN_ATTENTION, raising=False)
    else:
        monkeypatch.setenv(gpus.CUDNN_ATTENTION, asked)
    HFModel(claiming_a_gpu(snapshots.random_network("LlamaConfig")), snapshots.VOCAB)
    assert torch.backends.cuda.cudnn_sdp_enabled() == is_on


# -- the workers' environment ----------------------------------------------------------
def test_gpus_are_numbered_as_in_nvidia_smi_unless_the_user_decides(monkeypatch):
    monkeypatch.delenv(gpus.ORDER, raising=False)
    monkeypatch.setenv(gpus.NVML_CHECK, "0")
    worker.serving()
    assert os.environ[gpus.ORDER] == "PCI_BUS_ID"
    assert os.environ[gpus.NVML_CHECK] == "0"
    monkeypatch.setenv(gpus.ORDER, "FASTEST_FIRST")
    gpus.prepare_environment()
    assert os.environ[gpus.ORDER] == "FASTEST_FIRST"


# -- recorded passes -------------------------------------------------------------------


def test_first_room_sets_the_room_of_models_with_fixed_rows():
    pair = speclib.load_pair(PAIR)
    roomy = pair.with_fixed_rows(16, draft=8, first_room=1024)
    for role in ("draft", "target"):
        assert open_pair(roomy).build(role, dilated=False).room == 1024
    fixed = pair.with_fixed_rows(16)
    assert open_pair(fixed).build("target", dilated=False).room == 256
    with pytest.raises(BadValue, match="first_room"):
        pair.with_fixed_rows(16, first_room=255)
    with pytest.raises(SpeclibError, match="first_room for .* needs fixed_rows"):
        speclib.pair({"model": "zoo/target", "first_room": 512}, "zoo/draft-good")


def test_a_model_that_cannot_be_recorded_is_refused_by_name():
    with pytest.raises(SpeclibError, match="recorded for .* needs fixed_rows"):
        speclib.pair({"model": "zoo/target", "recorded": True}, "zoo/draft-good")
    pair = speclib.load_pair(PAIR).with_fixed_rows(16, recorded=True)
    with pytest.raises(
        BadValue, match="'zoo/target' on the CPU: only a GPU can record"
    ):
        open_pair(pair).build("target", dilated=False)


# -- the first request -----------------------------------------------------------------
def lengths_fed(network):
    """Returns a list to which every pass from now on adds its token count."""
    fed = []

    def note(module, args, kwargs):
        fed.append(kwargs["input_ids"].shape[1])

    network.register_forward_pre_hook(note, with_kwargs=True)
    return fed


def test_a_model_warms_up_with_passes_of_each_kind_and_empties_its_cache():
    """They are fed a prompt, one token as in plain decoding, and some drafts."""
    networks = [snapshots.random_network("LlamaConfig") for _ in range(2)]
    warm, cold = (HFModel(network, snapshots.VOCAB) for network in networks)
    fed = lengths_fed(networks[0])
    warm.warms_up = True
    warm.prepare()
    assert fed == [16, 1, 5]
    assert not warm.prefix.fed
    assert warm.cache.get_seq_length() == 0
    text, sampler = snapshots.prompt(20), Sampler(temperature=1.0)
    rows = warm.rows(text, 3, sampler)
    assert (rows == cold.rows(text, 3, sampler)).all()


def test_a_model_with_fixed_rows_warms_up_with_a_single_pass():
    network = snapshots.random_network("LlamaConfig")
    model = FixedRows(network, snapshots.VOCAB, 8)
    fed = lengths_fed(network)
    model.warms_up = True
    model.prepare()
    assert fed == [8]
    assert not model.prefix.fed
    assert model.cached == 0


@pytest.mark.parametrize("role", ["target", "draft"])
def test_every_model_is_warmed_up_on_a_gpu_and_none_on_a_cpu(role, monkeypatch):
    """Instead of using a GPU, a network claims to be on one."""
    asked = []
    monkeypatch.setattr(HFModel, "rows", lambda *args: asked.append(args))
    pair = speclib.load_pair(PAIR)
    model = open_pair(pair).build(role, dilated=False)
    assert not model.warms_up
    assert not asked

    monkeypatch.setattr(HFModel, "wait_for_device", lambda _: None)
    loaders = {"target": hf, "draft": layer_parallel}
    network = claiming_a_gpu(snapshots.random_network("LlamaConfig"))
    monkeypatch.setattr(loaders[role], "network", lambda *_: network)
    assert open_pair(pair).build(role, dilated=False).warms_up
    assert len(asked) == 3


# -- greedy rows -----------------------------------------------------------------------
@pytest.fixture(scope="module")
def world_of_rows():
    """A world whose models return whole rows."""
    with speclib.open_world("virtual", speclib.load_pair(PAIR), servers=2) as world:
        yield world


@pytest.fixture(scope="module")
def world_of_tokens_alone():
    """A world whose models return only tokens if sampling is greedy, as on a GPU."""
    with speclib.open_world("virtual", speclib.load_pair(PAIR), servers=2) as world:
        for model in world.models.values():
            assert not model.copies_tokens_only
            model.copies_tokens_only = True
        yield world


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", others_thorough(name for name in speclib.METHODS if name != "eagle")
)
def test_a_method_writes_the_same_if_models_return_only_greedy_tokens(
    method, world_of_rows, world_of_tokens_alone
):
    """Models on GPUs return only tokens; here, a CPU does."""
    options = {"method": method, "max_new_tokens": 16}
    plain = speclib.decode("def add(a, b):", world=world_of_rows, **options)
    alone = speclib.decode("def add(a, b):", world=world_of_tokens_alone, **options)

    assert alone.tokens == plain.tokens
    assert alone.stats.accepted == plain.stats.accepted
