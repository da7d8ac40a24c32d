"""The audit's table of losslessness: each mistake's exact error, by enumeration.

The mistakes come from published code or a listing, and are planted into the methods.
The methods' own tests show that they are exact without them.
"""

from __future__ import annotations

from functools import partial

import pytest
from helpers.outcome_errors import CLOSE, NearTarget, outcome_error

from speclab.audit.items import load_audit
from speclab.mutants import AS_PUBLISHED, MUTANTS
from speclab.mutants.engine_mistakes import (
    BLOCK,
    ENGINE_MUTANTS,
    chances_by_products,
)
from speclib.core.sampling import Coins, Sampler
from speclib.data.latency import Latency
from speclib.decoding.simulate import CONTEXT, script_of
from speclib.methods import METHODS
from speclib.models.toy import BOS, Random, Toy
from speclib.trace.metrics import stats
from speclib.worlds.virtual import Virtual

ROWS = {row.id: row for row in load_audit().lossless}
EXACT = 1e-12

MISTAKES = [
    ("lossless-pearl", MUTANTS["repeated coin"]),
    ("lossless-pearl-ablation", MUTANTS["untested first draft"]),
    ("lossless-easyspec", MUTANTS["EasySpec's Algorithm 3 as printed"]),
    ("lossless-rest", MUTANTS["a draw per branch"]),
    ("lossless-nano-pearl", ENGINE_MUTANTS["untested end"]),
    ("lossless-ssd", ENGINE_MUTANTS["random drafts kept"]),
    ("lossless-specbranch", ENGINE_MUTANTS["branch by the target"]),
    (
        "lossless-ascend-products",
        ENGINE_MUTANTS["block by products, certain drafts"],
    ),
    ("lossless-ascend-option", ENGINE_MUTANTS["block by products"]),
    ("lossless-ascend-7808", ENGINE_MUTANTS["block one row behind"]),
]


@pytest.mark.slow
@pytest.mark.parametrize("row, mutant", MISTAKES)
def test_a_planted_mistake_has_the_error_in_the_table(row, mutant):
    unrelated = outcome_error(mutant.mistaken, mutant.settings, tokens=mutant.tokens)
    close = outcome_error(
        mutant.mistaken, mutant.settings, share=CLOSE, tokens=mutant.tokens
    )
    said = ROWS[row].off
    digits = 4 if close < 0.001 else 3
    assert said == f"{unrelated:.3f} ({close:.{digits}f})"


@pytest.mark.slow
def test_greedy_text_of_specbranchs_rule_is_exact_and_an_untested_end_is_not():
    """A greedy text has only one outcome, so many drafts are tried."""
    errors = {}
    for name in ("branch by the target", "untested end"):
        mutant = ENGINE_MUTANTS[name]
        greedy = partial(
            outcome_error, mutant.mistaken, mutant.settings, tokens=mutant.tokens
        )
        seeds = range(1000, 1060)  # some agree with the target for a few tokens
        errors[name] = max(greedy(temperature=0.0, draft_seed=seed) for seed in seeds)
    assert errors["branch by the target"] < EXACT
    assert errors["untested end"] == pytest.approx(1)


def test_a_block_of_certain_drafts_by_hand():
    """The sum is 0.512 (1 + 0.66943 + 0.22407), with ln 0.512 = -0.66943."""
    passes = chances_by_products([0.8, 0.8**2, 0.8**3])[BLOCK]
    assert passes == pytest.approx(0.96948, abs=2e-5)
    notes = " ".join(ROWS["lossless-ascend-products"].notes.split())
    assert "probability 0.8 are accepted with 0.97, not 0.51" in notes


def test_no_token_is_ssds_random_draft_more_often_than_the_table_says():
    """Uniform numbers in bfloat16 have 256 values, and the first largest one wins.

    Token k is the draft if its number is the largest value and no earlier one is.
    """
    chances = [255**token / 256 ** (token + 1) for token in (0, 1, 279)]
    assert max(chances) == pytest.approx(0.0039, abs=5e-5)
    notes = " ".join(ROWS["lossless-ssd"].notes.split())
    assert "0.0039 per miss with 128,256" in notes


@pytest.mark.slow
def test_random_drafts_of_torch_in_bfloat16_have_small_ids():
    """All 40 ids are below 8,192, where a uniform draft would be 1 time in 16.

    An id is higher with probability (255 / 256) ^ 8192: 1 seed in 10 ^ 12 would fail.
    """
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    numbers = torch.empty((40, 128_256), dtype=torch.bfloat16).uniform_()
    assert int(numbers.argmax(dim=-1).max()) < 8_192


@pytest.mark.slow
def test_lookahead_decoding_as_published_takes_more_passes_for_the_same_text():
    settings = {"window": 3, "ngram": 3, "guesses": 2}
    assert outcome_error(AS_PUBLISHED["lookahead"], settings) < EXACT
    assert "28 instead of 24" in ROWS["lossless-lookahead"].notes
    passes = []
    for method in (AS_PUBLISHED["lookahead"], METHODS["lookahead"]):
        script = script_of("one two three four five six seven eight")
        writer = Toy(None, len(script.words), 0, script.ids, CONTEXT)
        models = {"draft": writer, "target": writer}
        world = Virtual(models, Latency.ratio(c=1.0, target=1.0))
        world.begin((BOS,), sampler=Sampler(), coins=Coins(0), limit=96)
        method(world)
        passes.append(stats(world.end()).target_runs)
    assert passes == [28, 24]


def test_a_close_drafts_rows_are_nine_tenths_the_targets():
    target = Random(3, 20)
    draft = NearTarget(target, 10, 0.9)
    text = (0, 2, 1)
    sampler = Sampler(1.0)
    own_rows = Random(3, 10).rows(text, 2, sampler)
    target_rows = Random(3, 20).rows(text, 2, sampler)

    rows = draft.rows(text, 2, sampler)

    assert rows == pytest.approx(0.9 * target_rows + 0.1 * own_rows)
    assert rows.sum(1) == pytest.approx(1)
