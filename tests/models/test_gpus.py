"""What is settled for GPUs, as far as it can be seen without one.

That it helps on a GPU, no test here says.
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
    """It is on, as torch has it, and is left so."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(True)
    yield
    torch.backends.cuda.enable_cudnn_sdp(before)


def on_a_gpu_by_its_word(network):
    """A network that says that it is on a GPU; its weights are where they were."""
    claimed = {"device": torch.device("cuda:0")}
    network.__class__ = type("Claimed", (type(network),), claimed)
    return network


@pytest.mark.parametrize("asked, is_on", [(None, False), ("0", False), ("1", True)])
def test_a_model_on_a_gpu_turns_cudnns_attention_off_unless_it_is_asked_for(
    asked, is_on, cudnn_attention, monkeypatch
):
    if asked is None:
        monkeypatch.delenv(gpus.CUDNN_ATTENTION, raising=False)
    else:
        monkeypatch.setenv(gpus.CUDNN_ATTENTION, asked)
    HFModel(
        on_a_gpu_by_its_word(snapshots.random_network("LlamaConfig")), snapshots.VOCAB
    )
    assert torch.backends.cuda.cudnn_sdp_enabled() == is_on


# -- what workers begin with -----------------------------------------------------------
def test_gpus_are_numbered_as_nvidia_smi_numbers_them_unless_the_user_says_how(
    monkeypatch,
):
    monkeypatch.delenv(gpus.ORDER, raising=False)
    monkeypatch.setenv(gpus.NVML_CHECK, "0")
    worker.serving()
    assert os.environ[gpus.ORDER] == "PCI_BUS_ID"
    assert os.environ[gpus.NVML_CHECK] == "0"
    monkeypatch.setenv(gpus.ORDER, "FASTEST_FIRST")
    gpus.prepare_environment()
    assert os.environ[gpus.ORDER] == "FASTEST_FIRST"


# -- recorded passes are asked for by name ---------------------------------------------


def test_a_first_room_is_that_of_the_models_with_fixed_rows():
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


def test_what_cannot_be_recorded_is_refused_by_name():
    with pytest.raises(SpeclibError, match="recorded for .* needs fixed_rows"):
        speclib.pair({"model": "zoo/target", "recorded": True}, "zoo/draft-good")
    pair = speclib.load_pair(PAIR).with_fixed_rows(16, recorded=True)
    with pytest.raises(
        BadValue, match="'zoo/target' on the CPU: only a GPU can record"
    ):
        open_pair(pair).build("target", dilated=False)


# -- the first request -----------------------------------------------------------------
def lengths_fed(network):
    """How many tokens each pass feeds from now on, in a list that grows."""
    fed = []

    def note(module, args, kwargs):
        fed.append(kwargs["input_ids"].shape[1])

    network.register_forward_pre_hook(note, with_kwargs=True)
    return fed


def test_a_model_that_warms_up_computes_passes_of_each_kind_and_forgets_them():
    """As on a GPU: a prompt, plain decoding's one token, and some drafts."""
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


def test_a_model_with_fixed_rows_warms_up_with_one_pass_as_all_have_one_shape():
    network = snapshots.random_network("LlamaConfig")
    model = FixedRows(network, snapshots.VOCAB, 8)
    fed = lengths_fed(network)
    model.warms_up = True
    model.prepare()
    assert fed == [8]
    assert not model.prefix.fed
    assert model.cached == 0


@pytest.mark.parametrize("role", ["target", "draft"])
def test_on_a_cpu_nothing_is_warmed_up_and_on_a_gpu_every_model_is(role, monkeypatch):
    """The GPU's is a network that only says that it is on one."""
    asked = []
    monkeypatch.setattr(HFModel, "rows", lambda *args: asked.append(args))
    pair = speclib.load_pair(PAIR)
    model = open_pair(pair).build(role, dilated=False)
    assert not model.warms_up
    assert not asked

    monkeypatch.setattr(HFModel, "wait_for_device", lambda _: None)
    loaders = {"target": hf, "draft": layer_parallel}
    network = on_a_gpu_by_its_word(snapshots.random_network("LlamaConfig"))
    monkeypatch.setattr(loaders[role], "network", lambda *_: network)
    assert open_pair(pair).build(role, dilated=False).warms_up
    assert len(asked) == 3


# -- greedy rows -----------------------------------------------------------------------
@pytest.fixture(scope="module")
def world_of_rows():
    """A world whose models give whole rows."""
    with speclib.open_world("virtual", speclib.load_pair(PAIR), servers=2) as world:
        yield world


@pytest.fixture(scope="module")
def world_of_tokens_alone():
    """A world whose models give tokens alone where rows are greedy, as on a GPU."""
    with speclib.open_world("virtual", speclib.load_pair(PAIR), servers=2) as world:
        for model in world.models.values():
            assert not model.copies_tokens_only
            model.copies_tokens_only = True
        yield world


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", others_thorough(name for name in speclib.METHODS if name != "eagle")
)
def test_with_tokens_alone_of_greedy_rows_a_method_writes_the_same(
    method, world_of_rows, world_of_tokens_alone
):
    """As models on GPUs give them, here from a CPU."""
    options = {"method": method, "max_new_tokens": 16}
    plain = speclib.decode("def add(a, b):", world=world_of_rows, **options)
    alone = speclib.decode("def add(a, b):", world=world_of_tokens_alone, **options)

    assert alone.tokens == plain.tokens
    assert alone.stats.accepted == plain.stats.accepted
