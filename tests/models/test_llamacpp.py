"""llama.cpp behind the model interface: torch's own probabilities of the same checkpoint are the
expected values. Total variation and agreement are over every position of four shipped prompts."""

import os
import random
import subprocess
import sys
import textwrap
from multiprocessing import get_context
from pathlib import Path

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

import speclib  # noqa: E402
from speclib import SpeclibError  # noqa: E402
from speclib.core.sampling import Sampler  # noqa: E402
from speclib.data import prompts  # noqa: E402
from speclib.data.latency import Latency  # noqa: E402
from speclib.data.pairs import ModelSpec, Pair, Place  # noqa: E402
from speclib.decoding.encode import encode  # noqa: E402
from speclib.models import factory, gpus, hf  # noqa: E402
from speclib.models.llamacpp import export  # noqa: E402
from speclib.models.llamacpp.gguf import describe  # noqa: E402
from speclib.models.llamacpp.model import LlamaCpp  # noqa: E402
from speclib.operations.operation import Stopped  # noqa: E402
from speclib.worlds.virtual import Virtual  # noqa: E402

DRAFT, SHAPE = "zoo/draft-poor", (4, 512, 8, 1280)
SOFT, GREEDY = Sampler(temperature=1.0), Sampler()
DUO = speclib.load_pair("embedded/duo")
TASKS = ("humaneval", "gsm8k", "mgsm_te", "rag")


def distance(p, q) -> np.ndarray:
    """Total variation, row by row."""
    return np.abs(p - q).sum(-1) / 2


def gguf(quantization: str, shape=SHAPE) -> LlamaCpp:
    return LlamaCpp(export.find_or_write(DRAFT, shape, quantization), 4096, 2048)


@pytest.fixture(scope="module")
def half():
    return gguf("F16")


@pytest.fixture(scope="module")
def texts():
    return [encode(prompts.load(task)[0].input, DUO, 64) for task in TASKS]


@pytest.fixture(scope="module")
def wanted(texts):
    """torch's probabilities in float32, at every position."""
    model = hf.load(ModelSpec(model=DRAFT), "float32", ("cpu",), 4096)
    return [model.rows(text, len(text) - 1, SOFT) for text in texts]


def errors(model, texts, wanted):
    """(total variation, whether the likeliest token is the same) at every position."""
    have = [model.rows(text, len(text) - 1, SOFT) for text in texts]
    far = np.concatenate([distance(a, b) for a, b in zip(have, wanted, strict=True)])
    same = np.concatenate(
        [a.argmax(-1) == b.argmax(-1) for a, b in zip(have, wanted, strict=True)]
    )
    return far, same


# -- the same probabilities -----------------------------------------------------------------------
@pytest.mark.parametrize("shape", [None, SHAPE], ids=["as trained", "dilated"])
def test_float16_probabilities_are_torchs_within_a_hundredth(texts, wanted, shape):
    far, same = errors(gguf("F16", shape), texts, wanted)
    assert len(far) > 300 and far.max() < 1e-2 and same.mean() > 0.99


@pytest.mark.parametrize(
    "quantization, mean, agree",
    [
        ("Q8_0", 0.01, 0.98),
        ("Q6_K", 0.02, 0.97),
        ("Q5_K_M", 0.04, 0.94),
        ("Q4_K_M", 0.08, 0.9),
    ],
)
def test_a_quantised_draft_stays_near_and_says_mostly_the_same(
    texts, wanted, quantization, mean, agree
):
    far, same = errors(gguf(quantization), texts, wanted)
    assert far.mean() < mean and same.mean() > agree


def test_quantising_takes_room_away():
    sizes = [
        export.find_or_write(DRAFT, SHAPE, q).stat().st_size
        for q in ("F32", "F16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M")
    ]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > 5 * sizes[-1]


TINY = {
    "vocab_size": 300,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-3,
    "bos_token_id": None,
    "eos_token_id": None,
}
KINDS = {
    "grouped queries": {},
    "tied": {"tie_word_embeddings": True},
    "every bias": {"attention_bias": True, "mlp_bias": True},
    "heads wider than the stream": {"head_dim": 32},
    "slow rotation": {
        "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}
    },
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


def checkpoint(folder, kind=transformers.LlamaForCausalLM, words=None, **changes):
    """A random model whose every weight matters, with a byte-level BPE; ``words``: other names."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    torch.manual_seed(1)
    net = kind(kind.config_class(**TINY | changes)).eval()
    for name, weight in net.requires_grad_(False).named_parameters():
        weight.uniform_(0.5, 1.5) if "norm" in name else weight.normal_(0, 0.15)
    net.save_pretrained(folder)
    names = words or [*sorted(pre_tokenizers.ByteLevel.alphabet()), "th", "he"]
    bpe = Tokenizer(
        models.BPE({w: i for i, w in enumerate(names)}, [("t", "h"), ("h", "e")])
    )
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(), decoders.ByteLevel()
    transformers.PreTrainedTokenizerFast(tokenizer_object=bpe).save_pretrained(folder)
    return str(folder), net


@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
def test_every_kind_of_llama_checkpoint_keeps_its_probabilities(tmp_path, changes):
    folder, net = checkpoint(tmp_path / "m", **changes)
    export.write(folder, None, tmp_path / "m.gguf", "F32")
    text = tuple(np.random.default_rng(0).integers(0, 300, 200).tolist())
    with torch.inference_mode():
        wanted = torch.softmax(net(torch.tensor([text])).logits[0], -1).numpy()
    far = distance(
        LlamaCpp(tmp_path / "m.gguf", 300, 256).rows(text, 199, SOFT), wanted
    )
    assert far.max() < 1e-2  # the KV cache is in float16


# -- one cache, several sequences -----------------------------------------------------------------
@pytest.fixture(scope="module")
def other():
    """The same once more: the judge with a fresh cache."""
    return gguf("F16")


@settings(max_examples=12)
@given(seed=st.integers(0, 10**6))
def test_the_cache_never_matters(half, other, seed):
    """Whatever was asked before (rollbacks, branches, in any order), the rows are those of a fresh
    cache; 5e-3 is what other batch sizes do in float16."""
    dice, text = random.Random(seed), (1, 5, 9)
    half.reset()
    for _ in range(10):
        if dice.random() < 0.5:
            text = text[: dice.randint(1, len(text))]
        text += tuple(dice.randrange(5, 4096) for _ in range(dice.randint(0, 9)))
        if dice.random() < 0.6:
            first, *more = (
                (t,) for t in dice.sample(range(5, 4096), dice.randint(1, 5))
            )
            if dice.random() < 0.5:  # the first one's token was looked at
                half.rows(text + first, 0, GREEDY)
                first += (dice.randrange(5, 4096),)
            text += dice.choice(
                half.continued(text, (first, *more), dice.randint(2, 5))
            )
        last = dice.randrange(min(len(text), 5))
        rows = half.rows(text, last, SOFT)
        other.reset()
        assert distance(other.rows(text, last, SOFT), rows).max() < 5e-3
        assert half.prefix.fed == list(text)


def test_sequences_go_on_as_each_would_alone(half, texts):
    """Every token is the likeliest after what is before it, up to float16's rounding."""
    for text in texts:
        half.reset()
        ranked = np.argsort(-half.rows(text, 0, SOFT)[0])
        starts = ((int(ranked[0]), int(ranked[3])), *((int(t),) for t in ranked[1:5]))
        half.rows(text + starts[0][:1], 0, GREEDY)
        sequences = half.continued(text, starts, 8)
        assert [s[: len(b)] for s, b in zip(sequences, starts, strict=True)] == list(
            starts
        )
        for sequence, start in zip(sequences, starts, strict=True):
            half.reset()
            rows = half.rows(text + sequence, len(sequence), SOFT)[len(start) : -1]
            chosen = rows[np.arange(len(rows)), list(sequence[len(start) :])]
            assert len(sequence) == 8 and (rows.max(-1) - chosen).max() < 5e-3


def test_sequences_share_their_beginning_and_the_cache_serves_the_one_that_goes_on(
    half, texts
):
    half.reset()
    text = texts[0]
    half.rows(text, 0, GREEDY)
    before = half.prefix.count
    sequences = half.continued(text, ((7,), (8,), (9,)), 5)
    assert half.prefix.count - before == 3 * 4  # no sequence feeds its last token
    for sequence in reversed(sequences):
        assert half.prefix.keep(text + sequence) == len(text) + 4
    before = half.prefix.count
    half.rows(text + sequences[1], 0, GREEDY)
    assert half.prefix.count - before == 1
    assert half.prefix.keep(text + sequences[2]) == len(text)


def test_a_stopped_pass_leaves_what_was_fed_and_the_next_one_is_right(half, texts):
    half.reset()
    answers = iter([False, True])
    half.stopped = lambda: next(answers)
    long = texts[0] * 8  # two passes
    with pytest.raises(Stopped):
        half.rows(long, 0, SOFT)
    half.stopped = bool
    assert 0 < len(half.prefix.fed) < len(long)
    rows = half.rows(long, 2, SOFT)
    half.reset()
    assert distance(half.rows(long, 2, SOFT), rows).max() < 5e-3


def test_a_long_text_is_fed_in_several_passes(half):
    text = tuple(np.random.default_rng(3).integers(5, 4096, 1500).tolist())
    half.reset()
    rows = half.rows(text, 999, SOFT)  # rows of two passes
    half.reset()
    half.rows(text[:700], 0, SOFT)
    assert distance(half.rows(text[:800], 9, SOFT), rows[290:300]).max() < 5e-3


# -- losslessness ---------------------------------------------------------------------------------
METHODS = [
    ("speculative", {"gamma": 4}),
    ("pearl", {"gamma": 5}),
    ("duodecoding", {"gamma": 12}),
    ("duodecoding", {"gamma": 6, "k": 3}),
]


@pytest.fixture(scope="module")
def virtual():
    models = {
        role: factory.build(DUO, role, dilated=False) for role in ("draft", "target")
    }
    with Virtual(models, Latency.ratio(24)) as world:
        world.pair = DUO
        yield world


def cheap(pair: Pair) -> Pair:
    """Its target as trained, on a core."""
    return pair.model_copy(
        update={
            "target": pair.target.model_copy(update={"shape": None}),
            "place": Place(draft=("core:0",), target=("core:1",)),
        }
    )


@pytest.mark.parametrize("task", ["gsm8k", "rag"])
@pytest.mark.parametrize("method, how", METHODS)
def test_greedy_output_is_plain_decodings_own(virtual, method, how, task):
    text = prompts.load(task)[1].input
    plain = speclib.decode(
        text, world=virtual, method="autoregressive", max_new_tokens=40
    )
    ours = speclib.decode(text, world=virtual, method=method, max_new_tokens=40, **how)
    assert ours.tokens == plain.tokens and ours.stats.accepted > 5


def test_output_in_real_processes_is_that_of_the_virtual_clock(virtual):
    """Greedy it is plain decoding's; drawn, it has the same coins and the same drafts."""
    text = prompts.load("gsm8k")[2].input
    with speclib.Processes(cheap(DUO)) as world:
        for temperature in (0.0, 0.9):
            same = {"temperature": temperature, "seed": 3, "max_new_tokens": 24}
            plain = speclib.decode(text, world=virtual, method="autoregressive", **same)
            for method, how in METHODS:
                ours = speclib.decode(text, world=world, method=method, **same, **how)
                twin = speclib.decode(text, world=virtual, method=method, **same, **how)
                assert ours.tokens == twin.tokens
                if not temperature or method == "duodecoding":
                    assert ours.tokens == plain.tokens


@pytest.mark.slow
@pytest.mark.parametrize("method, how", METHODS[:3])
def test_drawn_tokens_are_distributed_as_the_targets(virtual, method, how):
    """The first two tokens of 400 requests against the target's own chances, hot enough that four
    tokens are likely: chi-squared; the chance of failing is 1e-6."""
    from scipy.stats import chi2

    text, hot = prompts.load("writing")[0].input, {"temperature": 4.0, "top_k": 4}
    ids, sampler = encode(text, DUO, 8), Sampler(**hot)
    counts: dict[tuple[int, ...], int] = {}
    for request in range(400):
        said = speclib.decode(
            text,
            world=virtual,
            method=method,
            max_new_tokens=2,
            request=request,
            **hot,
            **how,
        ).tokens
        counts[said] = counts.get(said, 0) + 1
    target = virtual.models["target"]
    first = target.rows(ids, 0, sampler)[0]
    chances = {
        (int(a), int(b)): float(first[a] * p)
        for a in np.flatnonzero(first)
        for b, p in enumerate(target.rows((*ids, int(a)), 0, sampler)[0])
        if p > 0
    }
    assert set(counts) <= set(chances) and len(chances) == 16
    common = [pair for pair, chance in chances.items() if 400 * chance > 5]
    found = [(counts.get(pair, 0), 400 * chances[pair]) for pair in common]
    assert len(found) > 5
    assert sum((o - e) ** 2 / e for o, e in found) < chi2.isf(1e-6, len(found))


# -- files ----------------------------------------------------------------------------------------
def write_again(cache):
    export.CACHE = Path(cache)
    path = export.find_or_write(DRAFT, None, "Q8_0")
    return path.name, path.read_bytes()


@pytest.mark.slow
def test_workers_that_write_at_the_same_time_leave_one_whole_file(tmp_path):
    with get_context("spawn").Pool(2) as pool:
        first, second = pool.map(write_again, [str(tmp_path)] * 2)
    assert first == second
    assert [p.name for p in (tmp_path / "gguf").iterdir()] == [first[0]]


def test_a_file_is_found_by_its_content(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "CACHE", tmp_path / "cache")
    folder, _ = checkpoint(tmp_path / "m")
    first = export.find_or_write(folder, None, "F16")
    stamp = first.stat().st_mtime_ns
    assert export.find_or_write(folder, None, "F16").stat().st_mtime_ns == stamp
    assert export.find_or_write(folder, None, "F32") != first
    assert export.find_or_write(folder, (4, 128, 8, 96), "F16") != first
    checkpoint(tmp_path / "m", tie_word_embeddings=True)
    assert export.find_or_write(folder, None, "F16") != first


def test_a_gguf_has_the_checkpoints_tokens_context_and_special_ids():
    card = describe(export.find_or_write(DRAFT, SHAPE, "Q5_K_M"))
    own = factory.tokenizer(DUO)
    assert list(card.tokens) == own.convert_ids_to_tokens(range(4096))
    assert card.context == 2048 and card.quantization == "Q5_K - Medium"


def test_nothing_is_printed(capfd):
    model = gguf("Q8_0")
    model.rows((1, 2, 3), 0, GREEDY)
    with pytest.raises(SpeclibError):
        model.rows((1, 5000), 0, GREEDY)
    assert capfd.readouterr() == ("", "")


# -- pairs ----------------------------------------------------------------------------------------
def pair_with(draft: ModelSpec) -> Pair:
    return Pair(target=ModelSpec(model="zoo/target"), draft=draft, name="own")


def test_a_pair_says_what_runs_its_models():
    path = str(export.find_or_write(DRAFT, SHAPE, "Q8_0"))
    own = pair_with(ModelSpec(model=path))
    torch_duo = speclib.load_pair("embedded/duo-torch")
    assert factory.runtime(DUO, "draft") == "llama.cpp Q5_K_M"
    assert factory.runtime(DUO, "target") == "torch"
    assert factory.runtime(own, "draft") == "llama.cpp Q8_0"
    assert factory.runtime(torch_duo, "draft") == "torch"
    assert factory.runtime(speclib.load_pair("toy"), "draft") == "toy"


def test_a_gguf_by_its_path_is_a_draft(texts):
    path = str(export.find_or_write(DRAFT, SHAPE, "F16"))
    own = pair_with(ModelSpec(model=path))
    assert (factory.vocab(own), factory.context(own)) == (4096, 2048)
    assert len(factory.tokenizer(own)) == 4096
    assert isinstance(factory.build(own, "draft"), LlamaCpp)


def test_without_the_extra_auto_is_torch_and_llamacpp_says_how_to_install_it():
    code = """
        import sys
        sys.modules["llama_cpp"] = None
        import speclib
        from speclib.models import factory
        duo = speclib.load_pair("embedded/duo")
        print(factory.runtime(duo, "draft"), type(factory.build(duo, "draft")).__name__)
        must = duo.model_copy(update={"draft": duo.draft.model_copy(update={
            "runtime": "llamacpp"})})
        try:
            factory.build(must, "draft")
        except speclib.SpeclibError as error:
            print(error)
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    first, second = ran.stdout.strip().split("\n")
    assert first == "torch Layered"
    assert (
        "make llamacpp" in second
        and "six minutes" in second
        and 'runtime = "torch"' in second
    )


def test_of_alternative_places_the_first_that_there_is_counts(monkeypatch):
    pair = DUO.model_copy(
        update={"place": Place(target=("cuda:1|core:1",), draft=("core:0",))}
    )
    monkeypatch.setattr(gpus, "count", lambda: 2)
    place = factory.place(pair)
    assert place.of("target") == ("cuda:1",)
    monkeypatch.setattr(gpus, "count", lambda: 1)
    place = factory.place(pair)
    assert place.of("target") == ("core:1",) and place.of("target", 1) == ("core:2",)
    assert place.of("draft") == ("core:0",)


# -- errors ---------------------------------------------------------------------------------------
def test_a_gguf_of_another_tokenizer_is_refused_with_the_first_difference(
    tmp_path, half
):
    folder, _ = checkpoint(tmp_path / "m")
    export.write(folder, None, tmp_path / "other.gguf")
    own = pair_with(ModelSpec(model=str(tmp_path / "other.gguf")))
    with pytest.raises(
        SpeclibError, match=r"different tokenizers: id 0 is '<\|pad\|>' and '!'"
    ):
        factory.tokenizer(own)


def test_a_truncated_gguf_says_so(tmp_path):
    whole = export.find_or_write(DRAFT, None, "F16").read_bytes()
    for size in (len(whole) - 1, len(whole) // 2, 4000, 5):
        (tmp_path / "short.gguf").write_bytes(whole[:size])
        own = pair_with(ModelSpec(model=str(tmp_path / "short.gguf")))
        with pytest.raises(
            SpeclibError, match="cannot load .*short.gguf: .+truncated or damaged"
        ):
            LlamaCpp(tmp_path / "short.gguf", 4096, 2048)
        with pytest.raises(SpeclibError, match="short.gguf"):
            factory.tokenizer(own)


def test_what_is_no_gguf_is_named(tmp_path):
    with pytest.raises(SpeclibError, match="there is no file .*none.gguf"):
        LlamaCpp(tmp_path / "none.gguf", 16, 16)
    (tmp_path / "odd.gguf").write_bytes(b"PK\3\4 something else")
    with pytest.raises(SpeclibError, match="odd.gguf is no GGUF: it begins with b'PK"):
        LlamaCpp(tmp_path / "odd.gguf", 16, 16)


def test_a_text_longer_than_the_context_is_refused():
    model = LlamaCpp(export.find_or_write(DRAFT, None, "F16"), 4096, 64)
    model.rows((1,) * 64, 0, GREEDY)
    with pytest.raises(SpeclibError, match="65 tokens does not fit the context of 64"):
        model.rows((1,) * 65, 0, GREEDY)


def test_an_unknown_token_is_an_error_and_leaves_an_empty_cache(half):
    half.rows((1, 2, 3), 0, GREEDY)
    with pytest.raises(SpeclibError, match="code -1: .*invalid token"):
        half.rows((1, 2, 5000), 0, GREEDY)
    assert half.prefix.fed == []
    assert half.rows((1, 2, 4), 0, SOFT).sum() == pytest.approx(1, abs=1e-5)


def test_nan_logits_are_an_error_not_a_token(tmp_path):
    folder, net = checkpoint(tmp_path / "m")
    net.lm_head.weight.data[3] = float("nan")
    net.save_pretrained(folder)
    export.write(folder, None, tmp_path / "m.gguf", "F32")
    with pytest.raises(SpeclibError, match="m.gguf contain NaN"):
        LlamaCpp(tmp_path / "m.gguf", 300, 64).rows((1, 2), 0, GREEDY)


def test_k_quants_want_multiples_of_256_and_say_what_is_not():
    with pytest.raises(
        SpeclibError, match="blocks of 256 weights, and width .* is 192: .*Q8_0"
    ):
        export.find_or_write(DRAFT, None, "Q5_K_M")
    with pytest.raises(SpeclibError, match="and ffn .* is 1184"):
        export.find_or_write(DRAFT, (4, 512, 8, 1184), "Q4_K_M")


def test_what_the_exporter_does_not_write_is_refused(tmp_path):
    folder, _ = checkpoint(tmp_path / "qwen", transformers.Qwen2ForCausalLM)
    with pytest.raises(SpeclibError, match="is a Qwen2ForCausalLM.*convert_hf_to_gguf"):
        export.find_or_write(folder, None, "F16")
    folder, _ = checkpoint(tmp_path / "words")
    from tokenizers import Tokenizer, models

    words = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(folder)
    with pytest.raises(SpeclibError, match="no byte-level BPE.*convert_hf_to_gguf"):
        export.find_or_write(folder, None, "F16")
    with pytest.raises(SpeclibError, match="'some/hub-id' is no folder"):
        export.find_or_write("some/hub-id", None, "F16")


def test_llama_cpp_runs_on_the_cpu_and_says_so():
    draft = ModelSpec(model=DRAFT, runtime="llamacpp")
    own = pair_with(draft).model_copy(update={"place": Place(draft=("cuda:0",))})
    with pytest.raises(
        SpeclibError, match="on the CPU here, but its place is .*cuda:0"
    ):
        factory.build(own, "draft")


@pytest.mark.parametrize(
    "more", [{"shape": SHAPE}, {"quantization": "F16"}, {"runtime": "torch"}]
)
def test_a_gguf_is_as_it_is(more):
    with pytest.raises(ValueError, match=f"{[*more][0]} beside 'x.gguf'"):
        ModelSpec(model="x.gguf", **more)


def test_a_gguf_is_no_target():
    path = str(export.find_or_write(DRAFT, None, "F16"))
    own = Pair(target=ModelSpec(model=path), draft=ModelSpec(model="zoo/target"))
    with pytest.raises(SpeclibError, match="let the target be a checkpoint"):
        factory.tokenizer(own)
