"""llama.cpp behind the model interface.

The expected probabilities are torch's, for the same checkpoint. Total variation and
agreement cover every position of four shipped prompts.
"""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
for package in ("llama_cpp", "gguf"):
    pytest.importorskip(
        package, reason="the extra llamacpp is not installed: make llamacpp"
    )

from helpers.checkpoints import found  # noqa: E402
from helpers.llama_checkpoints import save_checkpoint  # noqa: E402

import speclib  # noqa: E402
from speclib import SpeclibError  # noqa: E402
from speclib.core.candidate_tree import paths  # noqa: E402
from speclib.core.sampling import Sampler  # noqa: E402
from speclib.data import prompts  # noqa: E402
from speclib.data.latency import Latency  # noqa: E402
from speclib.data.pairs import ModelSpec, Pair, Place  # noqa: E402
from speclib.decoding.text_request import encode  # noqa: E402
from speclib.models import hf  # noqa: E402
from speclib.models.checkpoint import find  # noqa: E402
from speclib.models.llamacpp import export  # noqa: E402
from speclib.models.llamacpp.quantised_model import LlamaCpp  # noqa: E402
from speclib.models.loading import Loading  # noqa: E402
from speclib.models.open_pair import open_pair  # noqa: E402
from speclib.operations.model import Stopped  # noqa: E402
from speclib.worlds.virtual import Virtual  # noqa: E402

DRAFT, SHAPE = "zoo/draft-poor", (4, 512, 8, 1280)
VOCAB, CONTEXT = 4096, 2048
SOFT, GREEDY = Sampler(temperature=1.0), Sampler()
DUO = speclib.load_pair("embedded/duo")
TASKS = ("humaneval", "gsm8k", "mgsm_te", "rag")
FLOAT16 = 5e-3  # total variation that another batch size causes in float16


def distance(p, q) -> np.ndarray:
    """Returns the total variation of each row."""
    return np.abs(p - q).sum(-1) / 2


def draft_in(quantization: str, shape=SHAPE) -> LlamaCpp:
    path = export.find_or_write(found(DRAFT), shape, quantization)
    return LlamaCpp(path, VOCAB, CONTEXT)


@pytest.fixture(scope="module")
def model():
    return draft_in("F16")


@pytest.fixture(scope="module")
def judge():
    """A second copy of the model, for passes with a fresh cache."""
    return draft_in("F16")


@pytest.fixture(scope="module")
def texts():
    return [encode(prompts.load(task)[0].input, open_pair(DUO), 64) for task in TASKS]


def rows_everywhere(model, texts) -> np.ndarray:
    """Returns the probabilities at every position of every text."""
    return np.concatenate([model.rows(text, len(text) - 1, SOFT) for text in texts])


@pytest.fixture(scope="module")
def expected(texts):
    """torch's probabilities in float32, at every position."""
    spec = ModelSpec(model=DRAFT)
    return rows_everywhere(hf.load(Loading(find(spec), VOCAB)), texts)


# -- the same probabilities ------------------------------------------------------------
@pytest.mark.parametrize("shape", [None, SHAPE], ids=["as trained", "dilated"])
def test_float16_probabilities_equal_torchs_within_a_hundredth(texts, expected, shape):
    rows = rows_everywhere(draft_in("F16", shape), texts)
    assert len(rows) > 300
    assert distance(rows, expected).max() < 1e-2
    assert (rows.argmax(-1) == expected.argmax(-1)).mean() > 0.99


@pytest.mark.parametrize(
    "quantization, mean, agreement",
    [
        ("Q5_K_M", 0.04, 0.94),
        ("Q4_K_M", 0.08, 0.9),
    ],
)
def test_a_quantised_draft_stays_close_and_usually_agrees(
    texts, expected, quantization, mean, agreement
):
    rows = rows_everywhere(draft_in(quantization), texts)
    assert distance(rows, expected).mean() < mean
    assert (rows.argmax(-1) == expected.argmax(-1)).mean() > agreement


KINDS = {
    "grouped queries": {},
    "tied": {"tie_word_embeddings": True},
    "every bias": {"attention_bias": True, "mlp_bias": True},
    "linear scaling": {
        "rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}
    },
    "llama3 scaling": {
        "rope_parameters": {
            "rope_type": "llama3",
            "factor": 8.0,
            "rope_theta": 10000.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        }
    },
}


@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
def test_every_kind_of_llama_checkpoint_keeps_its_probabilities(tmp_path, changes):
    folder, network = save_checkpoint(tmp_path / "m", **changes)
    export.write(found(folder), None, tmp_path / "m.gguf", "F32")
    text = tuple(np.random.default_rng(0).integers(0, 300, 200).tolist())
    with torch.inference_mode():
        logits = network(torch.tensor([text])).logits[0]
    rows = LlamaCpp(tmp_path / "m.gguf", 300, 256).rows(text, 199, SOFT)
    errors = distance(rows, torch.softmax(logits, -1).numpy())
    assert errors.max() < 1e-2  # the KV cache is in float16


# -- one cache, several sequences ------------------------------------------------------
@pytest.mark.slow
@settings(max_examples=12)
@given(seed=st.integers(0, 10**6))
def test_rows_never_depend_on_the_cache(model, judge, seed):
    """Rows equal a fresh cache's after any rollbacks and parallel sequences."""
    dice, text = random.Random(seed), (1, 5, 9)
    model.reset()
    for _ in range(10):
        if dice.random() < 0.5:
            text = text[: dice.randint(1, len(text))]
        text += tuple(dice.randrange(5, VOCAB) for _ in range(dice.randint(0, 9)))
        if dice.random() < 0.6:
            text += dice.choice(draft_some_sequences(model, text, dice))

        last = dice.randrange(min(len(text), 5))
        rows = model.rows(text, last, SOFT)
        judge.reset()
        assert distance(judge.rows(text, last, SOFT), rows).max() < FLOAT16
        assert model.prefix.fed == list(text)


def draft_some_sequences(model, text, dice):
    """Drafts sequences after ``text`` with random first tokens."""
    first, *others = ((t,) for t in dice.sample(range(5, VOCAB), dice.randint(1, 5)))
    if dice.random() < 0.5:  # the first token's row was needed
        model.rows(text + first, 0, GREEDY)
        first += (dice.randrange(5, VOCAB),)
    return model.continued(text, (first, *others), dice.randint(2, 5))


def test_several_sequences_continue_as_each_would_alone(model, texts):
    """Every token is the likeliest after its prefix, up to float16 rounding."""
    for text in texts:
        model.reset()
        ranked = np.argsort(-model.rows(text, 0, SOFT)[0]).tolist()
        starts = ((ranked[0], ranked[3]), *((token,) for token in ranked[1:5]))
        model.rows(text + starts[0][:1], 0, GREEDY)
        sequences = model.continued(text, starts, 8)

        for sequence, start in zip(sequences, starts, strict=True):
            assert len(sequence) == 8
            assert sequence[: len(start)] == start
            model.reset()
            rows = model.rows(text + sequence, len(sequence), SOFT)[len(start) : -1]
            chosen = rows[np.arange(len(rows)), list(sequence[len(start) :])]
            assert (rows.max(-1) - chosen).max() < FLOAT16


def test_sequences_share_a_prefix_and_the_chosen_one_finds_itself_cached(model, texts):
    model.reset()
    text = texts[0]
    model.rows(text, 0, GREEDY)
    fed_before = model.prefix.count
    sequences = model.continued(text, ((7,), (8,), (9,)), 5)
    # No sequence feeds its last token.
    assert model.prefix.count - fed_before == 3 * 4
    for sequence in reversed(sequences):
        assert model.prefix.keep(text + sequence) == len(text) + 4

    fed_before = model.prefix.count
    model.rows(text + sequences[1], 0, GREEDY)
    assert model.prefix.count - fed_before == 1
    assert model.prefix.keep(text + sequences[2]) == len(text)


TREE = (-1, 0, 1, 0, -1, 4, 4, 6)  # each node's parent; four paths


def paths_alone(judge, text, parents) -> np.ndarray:
    """Returns a tree's rows, with a fresh cache for each path."""
    rows = []
    for path in paths(text, parents):
        judge.reset()
        rows.append(judge.rows(path, 0, SOFT)[0])
    return np.array(rows)


@pytest.mark.parametrize("cached", [0, 5, 9], ids="cached {}".format)
def test_one_pass_over_a_tree_gives_the_rows_of_each_path_alone(model, judge, cached):
    model.reset()
    nodes = tuple(range(100, 100 + len(TREE)))
    text = tuple(range(5, 15)) + nodes
    if cached:
        model.rows(text[:cached], 0, GREEDY)
    fed_before = model.prefix.count
    rows = model.tree(text, TREE, SOFT)
    assert model.prefix.count - fed_before == len(text) - cached
    assert distance(rows, paths_alone(judge, text, TREE)).max() < FLOAT16

    chosen = text[:10] + (nodes[4], nodes[6], nodes[7])
    assert model.prefix.keep(chosen + (7,)) == len(chosen)  # the whole path is cached


def test_a_tree_that_grows_by_levels_feeds_each_node_once(model, judge):
    """The levels of TREE have two, four and two nodes, numbered as they grow."""
    text, levels = tuple(range(5, 15)), ((-1, -1), (0, 0, 1, 1), (2, 5))
    model.reset()
    model.rows(text, 0, GREEDY)
    fed_before, parents = model.prefix.count, ()
    for level in levels:
        parents += level
        text += tuple(range(200 + len(parents), 200 + len(parents) + len(level)))
        rows = model.level(text, parents, len(level), GREEDY)
        expected = paths_alone(judge, text, parents)[-len(level) :]
        assert distance(rows, expected).max() < FLOAT16
    assert model.prefix.count - fed_before == len(parents)


def test_a_tree_may_have_more_paths_than_llamacpp_has_sequences(model, judge):
    text = tuple(range(5, 300))
    model.reset()
    rows = model.tree(text, (-1,) * 280, GREEDY)
    assert rows.argmax(-1)[[0, 140, 280]].tolist() == [
        judge.rows(text[:15] + end, 0, GREEDY).argmax()
        for end in ((), text[154:155], text[294:])
    ]


def test_a_stopped_pass_keeps_what_was_fed_and_the_next_pass_is_right(model, texts):
    model.reset()
    answers = iter([False, True])
    model.stopped = lambda: next(answers)
    long = texts[0] * 8  # two passes
    with pytest.raises(Stopped):
        model.rows(long, 0, SOFT)
    model.stopped = bool
    assert 0 < len(model.prefix.fed) < len(long)

    rows = model.rows(long, 2, SOFT)
    model.reset()
    assert distance(model.rows(long, 2, SOFT), rows).max() < FLOAT16


@pytest.mark.slow
def test_a_long_text_is_fed_in_several_passes(model):
    text = tuple(np.random.default_rng(3).integers(5, VOCAB, 1500).tolist())
    model.reset()
    rows = model.rows(text, 999, SOFT)  # rows from two passes
    model.reset()
    model.rows(text[:700], 0, SOFT)
    ten_rows = model.rows(text[:800], 9, SOFT)
    assert distance(ten_rows, rows[290:300]).max() < FLOAT16


# -- losslessness ----------------------------------------------------------------------
METHODS = [
    ("speculative", {"gamma": 4}),
    ("pearl", {"gamma": 5}),
    ("duodecoding", {"gamma": 12}),
    ("duodecoding", {"gamma": 6, "k": 3}),
]


@pytest.fixture(scope="module")
def virtual():
    models = {
        "draft": open_pair(DUO).build("draft", dilated=False),
        "target": open_pair(DUO).build("target", dilated=False),
    }
    with Virtual(models, Latency.ratio(24)) as world:
        world.opened = open_pair(DUO)
        yield world


def as_trained_on_cores(pair: Pair) -> Pair:
    """Makes ``pair`` cheap to run: an undilated target, and one core for each model."""
    changes = {
        "target": pair.target.model_copy(update={"shape": None}),
        "place": Place(draft=("core:0",), target=("core:1",)),
    }
    return pair.model_copy(update=changes)


@pytest.mark.slow
@pytest.mark.parametrize("method, options", METHODS)
def test_greedy_output_is_plain_decodings_own(virtual, method, options):
    request = {"prompt": prompts.load("gsm8k")[1].input, "max_new_tokens": 40}
    plain = speclib.decode(world=virtual, method="autoregressive", **request)
    ours = speclib.decode(world=virtual, method=method, **request, **options)
    assert ours.tokens == plain.tokens
    assert ours.stats.accepted > 5


@pytest.mark.slow
def test_real_processes_write_what_the_virtual_clock_writes(virtual):
    """Greedy output equals plain decoding's; sampling uses equal coins and drafts."""
    request = {
        "prompt": prompts.load("gsm8k")[2].input,
        "seed": 3,
        "max_new_tokens": 16,
    }
    with speclib.Processes(as_trained_on_cores(DUO)) as world:
        for temperature in (0.0, 0.9):
            request["temperature"] = temperature
            plain = speclib.decode(world=virtual, method="autoregressive", **request)
            for method, options in (METHODS[1], METHODS[-1]):
                how = {"method": method, **request, **options}
                real = speclib.decode(world=world, **how)
                simulated = speclib.decode(world=virtual, **how)
                assert real.tokens == simulated.tokens
                if temperature == 0 or method == "duodecoding":
                    assert real.tokens == plain.tokens


# -- errors ----------------------------------------------------------------------------


def test_an_unknown_token_is_an_error_and_leaves_an_empty_cache(model):
    model.rows((1, 2, 3), 0, GREEDY)
    with pytest.raises(SpeclibError, match="code -1: .*invalid token"):
        model.rows((1, 2, 5000), 0, GREEDY)
    assert model.prefix.fed == []
    assert model.rows((1, 2, 4), 0, SOFT).sum() == pytest.approx(1, abs=1e-5)


def test_nan_logits_are_an_error_not_a_token(tmp_path):
    folder, network = save_checkpoint(tmp_path / "m")
    network.lm_head.weight.data[3] = float("nan")
    network.save_pretrained(folder)
    export.write(found(folder), None, tmp_path / "m.gguf", "F32")
    with pytest.raises(SpeclibError, match="m.gguf contain NaN"):
        LlamaCpp(tmp_path / "m.gguf", 300, 64).rows((1, 2), 0, GREEDY)
