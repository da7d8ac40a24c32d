"""A draft with fewer or more rows than its target: exact, or refused by name.

The target has eight rows more than the draft, or eight fewer. Expected values come from
the networks themselves or from transformers' ``generate``.
"""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helpers.checkpoints import (  # noqa: E402
    PLAIN,
    found,
    network,
    numbered_words,
    save_tokenizer,
    with_rows,
)
from helpers.snapshots import generate  # noqa: E402

import speclib  # noqa: E402
from speclab.peers.external import External  # noqa: E402
from speclib.core.sampling import Sampler  # noqa: E402
from speclib.errors import BadValue  # noqa: E402
from speclib.methods import METHODS, about, takes_gamma  # noqa: E402
from speclib.models import eagle_head, vocabulary  # noqa: E402
from speclib.models.dilate import dilate  # noqa: E402
from speclib.models.fixed_rows import FixedRows  # noqa: E402
from speclib.models.hf import HFModel  # noqa: E402
from speclib.models.open_pair import open_pair  # noqa: E402
from speclib.models.parallel.layer_parallel import Layered  # noqa: E402

FEW, MANY = 53, 61
BEYOND = 57  # a token without a row in the smaller model
STAND_IN = 3
TEXT = (5, BEYOND, 2, 60, 11)
TEXT_AS_FED = (5, STAND_IN, 2, STAND_IN, 11)
NODES, PARENTS = (4, BEYOND, 8), (-1, 0, -1)
LATENCY = "pearl/llama2-7-70"


def save(folder: Path, rows: int, **changes) -> str:
    """Saves a checkpoint with ``rows`` rows, and a tokenizer with ``rows`` words."""
    whole = network("Qwen3", layers=2, vocab_size=MANY, **changes)
    with_rows(whole, rows).save_pretrained(folder)
    save_tokenizer(folder, numbered_words(rows))
    return str(folder)


@pytest.fixture
def few(tmp_path) -> str:
    return save(tmp_path / "few", FEW)


@pytest.fixture
def many(tmp_path) -> str:
    return save(tmp_path / "many", MANY)


def probabilities(net, text, rows: int) -> np.ndarray:
    """Returns the distribution after ``text`` over the first ``rows`` rows."""
    with torch.inference_mode():
        logits = net(torch.tensor([list(text)])).logits[0, -1, :rows]
    return logits.softmax(-1).numpy()


# -- the rows of a pair ----------------------------------------------------------------
def test_a_pairs_vocabulary_is_its_targets(few, many):
    assert open_pair(speclib.pair(target=many, draft=few)).vocab == MANY
    assert open_pair(speclib.pair(target=few, draft=many)).vocab == FEW


def test_a_draft_gives_probability_0_to_tokens_without_a_row(few, many):
    draft = open_pair(speclib.pair(target=many, draft=few)).build("draft")
    text = TEXT_AS_FED
    (row,) = draft.rows(text, 0, PLAIN)
    assert row.shape == (MANY,)
    assert not row[FEW:].any()
    expected = probabilities(draft.network, text, FEW)
    np.testing.assert_allclose(row[:FEW], expected, atol=1e-6)
    for sampler in (Sampler(), Sampler(0.7, 58), Sampler(1.3, 0, 0.9)):
        (row,) = draft.rows(text, 0, sampler)
        assert row.sum() == pytest.approx(1)
        assert not row[FEW:].any()


def test_a_draft_with_more_rows_never_proposes_tokens_that_the_target_lacks(few, many):
    draft = open_pair(speclib.pair(target=few, draft=many)).build("draft")
    text = (5, 9, 2)
    (row,) = draft.rows(text, 0, PLAIN)
    assert row.sum() == pytest.approx(1)
    expected = probabilities(draft.network, text, FEW)
    np.testing.assert_allclose(row, expected, atol=1e-6)


def test_rows_that_dilation_added_are_never_written(tmp_path):
    """This includes a dilated model that was saved: transformers bans them, too."""
    large = dilate(network("Qwen3"), (10, 64, 8, 96), vocab=80)
    large.save_pretrained(tmp_path)
    assert large.config.vocab_size == 80
    assert found(tmp_path).vocab == MANY


# -- stand-ins that a draft is fed -----------------------------------------------------
def models(net) -> dict[str, HFModel]:
    """Returns every kind of single-process model that can be a draft."""
    head = eagle_head.fresh(net, 0).requires_grad_(False).eval()
    return {
        "whole": HFModel(net, MANY),
        "layered": Layered(net, MANY),
        "fixed rows": FixedRows(net, MANY, 4),
        "head": eagle_head.Head(head, MANY),
    }


@pytest.mark.parametrize("kind", ["whole", "layered", "fixed rows", "head"])
def test_a_draft_reads_a_stand_in_for_every_token_without_a_row(kind):
    net = network("Qwen3", layers=2, vocab_size=FEW)
    model, other = models(net)[kind], models(net)[kind]
    model.stand_in = STAND_IN

    nodes_as_fed = tuple(STAND_IN if node == BEYOND else node for node in NODES)
    passes = [
        (model.rows(TEXT, 2, PLAIN), other.rows(TEXT_AS_FED, 2, PLAIN)),
        (
            model.tree((*TEXT, *NODES), PARENTS, PLAIN),
            other.tree((*TEXT_AS_FED, *nodes_as_fed), PARENTS, PLAIN),
        ),
        (
            model.level((*TEXT, *NODES[:2]), (-1, 0), 1, PLAIN),
            other.level((*TEXT_AS_FED, *nodes_as_fed[:2]), (-1, 0), 1, PLAIN),
        ),
    ]
    for rows, expected in passes:
        np.testing.assert_allclose(rows, expected, atol=1e-6)
    assert tuple(model.prefix.fed[: len(TEXT)]) == TEXT  # the text's own tokens


@pytest.mark.parametrize(
    "named, expected",
    [
        ({"unk_token": "w9", "eos_token": "w4"}, 9),
        ({"eos_token": "w4"}, 4),
        ({}, 0),
        ({"unk_token": "w55", "eos_token": "w4"}, 4),  # it has no row for w55
    ],
)
def test_the_stand_in_is_the_unknown_token_or_else_the_end_token(
    tmp_path, named, expected
):
    model = save(tmp_path, FEW)
    save_tokenizer(tmp_path, numbered_words(MANY))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for name, word in named.items():
        setattr(tokenizer, name, word)
    tokenizer.save_pretrained(tmp_path)
    named_tokens = found(model).named_tokens
    assert vocabulary.stand_in(named_tokens, FEW) == expected


def test_a_prompt_with_a_token_that_the_target_lacks_is_refused(few, many):
    save_tokenizer(Path(few), numbered_words(MANY))
    pair = speclib.pair(target=few, draft=many, latency=LATENCY)
    with pytest.raises(BadValue, match="'w57'.* token 57 .*few'.* rows for 53 tokens"):
        speclib.decode("w5 w57", pair=pair, world="virtual", method="autoregressive")


# -- tokenizers ------------------------------------------------------------------------
def test_a_difference_after_a_gap_in_the_vocabulary_is_found(few, many):
    """Both have 52 tokens; the draft's last token has the id 52."""
    words = numbered_words(FEW)
    save_tokenizer(Path(many), words)
    vocabulary_of_draft = {word: token for token, word in enumerate(words)}
    del vocabulary_of_draft["w7"], vocabulary_of_draft["w52"]
    save_tokenizer(Path(few), vocabulary_of_draft | {"odd": 52})
    with pytest.raises(BadValue, match="id 52 is 'w52' and 'odd'"):
        assert open_pair(speclib.pair(target=many, draft=few)).tokenizer


# -- compared with transformers --------------------------------------------------------
ROWS_OF_QWEN = 4096
ADDED = 8
NEW_TOKENS = 24


@pytest.fixture(scope="module")
def qwen(tmp_path_factory) -> dict[int, str]:
    """Row count -> checkpoint; the one with added tokens often writes them."""
    folder = tmp_path_factory.mktemp("qwen")
    plain = network("Qwen3", layers=2, vocab_size=ROWS_OF_QWEN)
    larger = with_rows(plain, ROWS_OF_QWEN + ADDED, deviation=0.4)
    folders = {}
    for net in (plain, larger):
        rows = net.config.vocab_size
        net.save_pretrained(folder / str(rows))
        save_tokenizer(folder / str(rows), numbered_words(rows))
        folders[rows] = str(folder / str(rows))
    return folders


@cache
def written_by_transformers(model: str, prompt: tuple[int, ...]) -> list[int]:
    net = transformers.AutoModelForCausalLM.from_pretrained(model)
    return generate(net, prompt, NEW_TOKENS)


@pytest.fixture(scope="module")
def built(qwen) -> dict[str, HFModel]:
    """The models of a pair whose target has added tokens."""
    few, many = qwen.values()
    pair = speclib.pair(target=many, draft=few)
    return {role: open_pair(pair).build(role) for role in ("draft", "target")}


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_method_writes_tokens_that_the_draft_has_no_row_for(
    qwen, built, decode, method
):
    prompt = (5, 4100, 2, 4098)
    _few, many = qwen.values()
    expected = written_by_transformers(many, prompt)
    beyond = [token for token in expected if token >= ROWS_OF_QWEN]
    assert 3 < len(beyond) < NEW_TOKENS - 3

    settings = dict(about(method).variants[0])
    if takes_gamma(method):
        settings["gamma"] = 3
    written, _ = decode(METHODS[method], built, NEW_TOKENS, prompt=prompt, **settings)
    assert list(written) == expected


@pytest.mark.slow
def test_real_processes_and_peers_write_tokens_that_the_draft_lacks_too(qwen):
    for few, many in itertools.permutations(qwen.values()):
        pair = speclib.pair(target=many, draft=few)
        expected = written_by_transformers(many, (5, 9, 2, 7))
        with speclib.Processes(pair) as world:
            for method in ("pearl", "tree", "ouroboros"):
                result = speclib.decode(
                    "w5 w9 w2 w7",
                    world=world,
                    method=method,
                    gamma=3,
                    max_new_tokens=NEW_TOKENS,
                )
                assert list(result.tokens) == expected
        with External("transformers-assisted", pair) as peer:
            answer = peer.decode("w5 w9 w2 w7", max_new_tokens=NEW_TOKENS)
            assert list(answer.tokens) == expected


@pytest.mark.slow
@pytest.mark.parametrize("spread", ["tensors", "stages", "layers", "replicas"])
def test_every_rank_of_a_draft_reads_stand_ins(qwen, spread):
    few, many = qwen.values()
    pair = speclib.pair(
        target=many,
        draft={"model": few, "spread": spread},
        place={"draft": ["cpu", "cpu"], "target": ["cpu"]},
    )
    expected = written_by_transformers(many, (5, 4100, 2, 4098))
    with speclib.Processes(pair) as world:
        result = speclib.decode(
            "w5 w4100 w2 w4098",
            world=world,
            method="tree",
            gamma=2,
            max_new_tokens=NEW_TOKENS,
        )
    assert list(result.tokens) == expected
