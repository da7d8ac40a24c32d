"""The audit's experiments: their quantities against hands, formulas and torch."""

from __future__ import annotations

import pytest
from helpers.audit_items import values_of_run
from helpers.printed import load_folder

from speclab.audit.runs import RUNS, run_experiment
from speclab.audit.runs.number_formats import to_bfloat16
from speclab.audit.runs.walks import Near
from speclib.core.sampling import Sampler
from speclib.errors import SpeclibError
from speclib.models.toy import Random

DSI = load_folder("papers/dsi")


def test_unverified_tokens_by_hand():
    """PEARL at gamma = c = 5, all drafts right, 10 tokens.

    After pass 1 there are 1 committed token and 4 drafts, after pass 2 there are 6 and
    4: ten, and the published loop ends. All ten are committed after pass 3.
    """
    values = values_of_run(
        "unverified tokens", 2, method="pearl", c=5.0, gamma=5, alpha=1.0, tokens=10
    )

    assert values["published over committed"] == pytest.approx((10 / 2) / (10 / 3))


def test_a_simulated_number_has_an_interval_that_narrows_with_requests():
    settings = {"method": "pearl", "c": 4.0, "alpha": 0.8, "tokens": 32}
    few = run_experiment("unverified tokens", 10, settings)["published over committed"]
    many = run_experiment("unverified tokens", 160, settings)[
        "published over committed"
    ]

    assert few.low < few.value < few.high
    assert many.high - many.low < (few.high - few.low) / 2


def test_two_counts_of_both_methods_are_those_of_their_formulas():
    """SD's count per pass is what it was calibrated with, Table 7's 5.27."""
    settings = {"latency": "pearl/codellama-7-34", "alpha": "codellama-7-34"}
    quantities = run_experiment("two counts", 10, {**settings, "tokens": 1024})
    per_pass = quantities["speculative decoding, per target pass"]
    # The last round of a text is cut, which takes less than 2 % here.
    assert per_pass.value == pytest.approx(5.27, rel=0.02)

    # Both methods test the same drafts, so runs end as often.
    pearl = quantities["PEARL, between rejections"]
    speculative = quantities["speculative decoding, between rejections"]
    assert pearl.low < speculative.high
    assert speculative.low < pearl.high
    # At gamma 3 no pass accepts more than three drafts.
    assert quantities["PEARL, per target pass"].high <= 3


def test_counts_of_passes_by_hand():
    """CodeLlama 7&34B: 44,018 passes for 164 texts of 1,024 tokens."""
    values = values_of_run(
        "tokens per pass", row="Codellama 7B&34B", alpha="codellama-7-34"
    )
    full_length = 164 * 1024 / 44018
    half_length = full_length / 2

    assert values["by counts, texts of full length"] == pytest.approx(full_length)
    assert values["by counts, texts of half that length"] == pytest.approx(half_length)
    # 1 + a + a^2 + a^3 lies between 3 and 4 for the rates of Table 7.
    assert 3.5 < values["by Table 7's acceptance"] < 4


@pytest.mark.parametrize(
    "row, column, gamma, passes, ratio, printed",
    [
        ("Deepseek 1.3B&33B", "DeepSeek 1.3B&33B", 4, 35125, 45466 / 35125, 29.65),
        ("Deepseek 6.7B&33B", "DeepSeek 6.7B&33B", 3, 42991, 58285 / 42991, 39.90),
    ],
)
def test_the_length_by_counts_gives_the_printed_ratio_of_passes(
    row, column, gamma, passes, ratio, printed
):
    """Tokens per pass: of SD 1 + a + ... + a^gamma, of PEARL by its chain of steps."""
    values = values_of_run("length by counts", row=row, column=column)
    assert values["draft length"] == gamma
    assert values["length by Table 7"] == printed

    # The baseline's texts of full length: 1 + a + ... + a^gamma tokens a pass.
    length = values["length by the baseline's counts"]
    alpha = length / (1 + length)
    per_pass = sum(alpha**i for i in range(gamma + 1))
    assert per_pass == pytest.approx(164 * 1024 / passes, rel=1e-5)

    length = values["length by both counts"]
    alpha = length / (1 + length)
    per_post_verify = sum(alpha**i for i in range(gamma))
    share_of_pre_verify = (1 - alpha**gamma) / (1 + alpha - alpha**gamma)
    share_of_post_verify = 1 - share_of_pre_verify
    per_step = share_of_pre_verify + share_of_post_verify * per_post_verify
    # A step of pre-verify commits one token, whether it passes or is replaced.
    assert (1 + alpha * per_post_verify) / per_step == pytest.approx(ratio, rel=1e-4)


def test_a_tie_and_a_late_block_by_hand():
    """One server, lookahead 5, c = 5, all drafts right, 15 tokens, in target passes.

    The first pass is on the bare text and gives a token; meanwhile the block of five is
    written. At a tie the second pass takes all of it: its five drafts and one token
    more. Just below c the block comes a little after the pass has ended. The 15 tokens
    are three whole blocks: a last block that is cut would come early. Committed after
    each pass: 1, 6, 11, 15, and just below c 1, 2, 6, 11, 15.
    """
    quantities = run_experiment(
        "ties of DSI", 3, {"c": 5.0, "alpha": 1.0, "tokens": 15}
    )
    assert quantities["at c over just above"].value == pytest.approx(1, abs=0.01)
    assert quantities["at c"].value == pytest.approx(4, abs=0.01)
    assert quantities["just below"].value == pytest.approx(5, abs=0.01)


def test_bfloat16_is_torchs():
    torch = pytest.importorskip("torch")
    numbers = [*range(0, 40_000, 7), 12345, 255, 256, 257, 65_535]
    as_bfloat16 = torch.tensor(numbers).to(torch.bfloat16)

    assert [to_bfloat16(number) for number in numbers] == as_bfloat16.tolist()
    assert to_bfloat16(12345) == 12352


@pytest.mark.parametrize("vocab", [256, 1000])
def test_the_share_of_ids_that_bfloat16_keeps_is_torchs(vocab):
    """Eight binary digits hold every number below 256, and not all above it."""
    torch = pytest.importorskip("torch")
    ids = torch.arange(vocab)
    unchanged = int((ids.to(torch.bfloat16).to(ids.dtype) == ids).sum())
    assert (unchanged == vocab) == (vocab == 256)

    quantities = values_of_run("ids in bfloat16", token=255, vocab=vocab)

    assert quantities["share of ids that stay"] == unchanged / vocab


def test_dsi_over_si_by_rules_is_what_the_errata_of_table_1_say():
    values = values_of_run("DSI over SI by rules")
    printed = []
    for _, column, speedup in DSI["table-1"]["cells"]:
        if column == "Speedup DSI vs. SI":
            printed.append(speedup)
    assert values["printed, lowest"] == min(printed) == 1.29
    assert values["printed, highest"] == max(printed) == 1.92

    errata = DSI["table-1"]["errata"]
    ceilings = [entry for entry in errata if entry["kind"] == "ceiling"]
    assert values["rows printed above the listing"] == len(ceilings) == 9
    highest = max(entry["computed"] for entry in ceilings)
    assert values["listing, highest"] == pytest.approx(highest, abs=5e-4)
    assert values["simulator, highest"] > values["listing, highest"]


def test_plain_decoding_on_all_devices_by_hand():
    """Reading is divided by the devices; 12 microseconds join each layer's parts."""
    values = values_of_run(
        "PEARL on its devices", latency="pearl/llama2-7-70", column="Llama2 7&70B"
    )
    on_one = 1 / 9.22
    reading = 68.98e9 * 2 / 1.7e12
    on_four = on_one - reading + reading / 4 + 80 * 12e-6

    assert values["devices"] == 4
    assert values["printed speed-up"] == 3.29
    assert values["plain decoding on all devices"] == pytest.approx(on_one / on_four)

    row = "Starcoder-15B / Starcoder-168M / HumanEval"
    values = values_of_run(
        "DSI on its devices", latency="dsi/starcoder-15b-humaneval", row=row
    )
    reading = 15.52e9 * 2 / 1.7e12
    on_eight = 0.0206 - reading + reading / 8 + 40 * 12e-6

    assert values["devices"] == 8
    assert values["plain decoding on all devices"] == pytest.approx(0.0206 / on_eight)

    drafts = 0.93 * 49
    targets = 0.07 * 49 + 1
    seconds = drafts * 0.0068 + targets * 0.0206
    assert values["DSI over plain decoding"] == pytest.approx(50 * 0.0206 / seconds)


def test_an_unknown_run_or_setting_is_named():
    with pytest.raises(SpeclibError, match="no run 'planted'.*planted mistake"):
        run_experiment("planted", 2, {})
    with pytest.raises(SpeclibError, match="no planted mistake 'coin'"):
        run_experiment("planted mistake", 2, {"mistake": "coin"})
    with pytest.raises(SpeclibError, match="run 'two counts' with"):
        run_experiment("two counts", 2, {"gamma": 3})
    assert len(RUNS) > 10


def test_a_draft_that_is_close_has_nine_parts_of_its_rows_from_the_target():
    target = Random(3, 20)
    draft = Near(target, 10, 0.9)
    text = (0, 2, 1)
    sampler = Sampler(1.0)
    own_rows = Random(3, 10).rows(text, 2, sampler)
    target_rows = Random(3, 20).rows(text, 2, sampler)

    rows = draft.rows(text, 2, sampler)

    assert rows == pytest.approx(0.9 * target_rows + 0.1 * own_rows)
    assert rows.sum(1) == pytest.approx(1)
