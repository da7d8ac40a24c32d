"""PEARL's audit: its numbers are those that a hand computes from the print.

Every expected value is worked out here from printed numbers, formulas of the text or
counts of lines, and from nothing that the audit computes.
"""

from __future__ import annotations

import pytest
from helpers.audit_items import (
    assert_arithmetic_by_hand,
    assert_each_arithmetic_is_by_hand,
    pieces,
    values_of_run,
)

from speclab.audit.item_schema import CodeRead, PrintedTwice, Run, Words
from speclab.audit.judge_items import judge_item
from speclab.audit.load_items import publication
from speclab.audit.printed import compare_words, work_out_conflict
from speclab.audit.runs import experiment
from speclab.papers.load_papers import load_paper

PEARL = publication("pearl")
ITEMS = {item.id: item for item in PEARL.items}
TEXTS = 164  # prompts of HumanEval, each of at most 1,024 tokens: Appendix C.1

# The quantities that each item's arithmetic must give, from the printed cells.
BY_HAND = {
    "pearl-table-2-pair": [
        {"table_2": 3.82, "speedup": 26.47 / 9.22},
        {"table_4": 2.87, "speedup": 26.47 / 9.22},
        {"table_2": 3.95, "speedup": 30.13 / 9.22},
        {"table_2": 3.95, "speedup": 35.02 / 9.00},
    ],
    "pearl-headline-by-passes": [
        {"speedup": 4.43, "most": TEXTS * 1028 / 39674},
        {"speedup": 4.43, "most": 163 * 1028 / (39674 - 1028)},
        {"speedup": 3.48, "most": TEXTS * 1027 / 45466 * (63.20 / 4) / 17.37},
        {"speedup": 2.48, "most": TEXTS * 1026 / 60340 * (49.34 / 3) / 18.58},
        {"speedup": 2.79, "most": TEXTS * 1026 / 58285 * (50.05 / 3) / 17.37},
        {"speedup": 3.29, "most": TEXTS * 1028 / 49744},
    ],
    "pearl-rounding-rule": [
        {"at_3": 2.35 * 18.58, "at_5": 44.93},
        {"at_5": 3.79 * 9.20, "at_6": 35.39},
        {"share_4": 29.65 / 9.20 / 4, "share_5": 40.72 / 9.20 / 5},
        {"share_4": 29.65 / 9.20 / 4, "share_5": 3.79 / 5},
    ],
    "pearl-mat-two-counts": [
        {"tokens_per_pass": TEXTS * 1024 / 60340, "accepted_by_sd": 5.27},
        {"tokens_per_pass": TEXTS * 1024 / 39674, "accepted_by_sd": 8.32},
        {"tokens_per_pass": TEXTS * 1024 / 45466, "accepted_by_sd": 7.23},
        {"tokens_per_pass": TEXTS * 1024 / 58285, "accepted_by_sd": 5.69},
    ],
    "pearl-table-1-from-speeds": [
        {"speedup": 32.53 / 9.22, "table_1": 3.29},
        {"speedup": 33.56 / 9.00, "table_1": 3.87},
    ],
    "pearl-table-17-gsm8k": [{"table_17": 24.28, "table_8": 24.28}],
    "pearl-ceiling-codellama": [
        {"ceiling": 3 / 0.0711, "speed": 46.06},
        {"ceiling": 4 / 0.0661 / 17.37, "speedup": 3.48},
    ],
    "pearl-shared-loss": [
        {"kept": 22.83 / 24.28},
        {"kept": 28.56 / 30.13},
        {"kept": 31.83 / 33.56},
        {"kept": 31.51 / 32.97},
    ],
    "pearl-table-4-bracket": [{"drop": 2.87 - 2.51, "printed_drop": 0.26}],
    "pearl-table-11-draft-length": [{"draft_length": 132054 / 44018, "best": 6}],
    "pearl-baseline-overhead": [
        {"step": 6.27 / 33.57, "passes": 6 / 49.34 + 1 / 18.58},
        {"step": 9.32 / 27.60, "passes": 10 / 49.34 + 1 / 9.20},
        {"step": TEXTS * 1024 / 60340 / 46.06, "passes": 3 / 49.34},
    ],
}

# What each says of a printed number and of where it is printed again.
PRINTED_TWICE = {
    "pearl-table-17-gsm8k": [
        (30.33, 26.47),
        (3.82, 32.97 / 9.00),
        (0.98, 31.51 / 32.97),
    ],
    "pearl-blog-averages": [(3.81, 3.82), (3.79, 4.43), (1.52, 3.48 / 2.32)],
}

# The verdicts that print, arithmetic and the lines of code give: no chance in any.
VERDICTS = {
    "pearl-table-2-pair": "not supported",
    "pearl-headline-by-passes": "not supported",
    "pearl-rounding-rule": "open",
    "pearl-table-1-from-speeds": "not supported",
    "pearl-table-4-full-method": "not supported",
    "pearl-table-17-gsm8k": "not supported",
    "pearl-ceiling-codellama": "not supported",
    "pearl-table-7-and-11": "open",
    "pearl-mat-two-counts": "not supported",
    "pearl-headlines": "supported",
    "pearl-over-sd-everywhere": "supported",
    "pearl-range-over-sd": "supported",
    "pearl-ablation-order": "supported",
    "pearl-shared-languages": "supported",
    "pearl-shared-loss": "not supported",
    "pearl-table-4-bracket": "not supported",
    "pearl-text-says-2.75": "not supported",
    "pearl-twelve-languages": "not supported",
    "pearl-blog-averages": "supported",
    "pearl-best-lengths": "supported",
    "pearl-passes": "supported",
    "pearl-communication": "supported",
    "pearl-is-fastest": "supported",
    "pearl-theorem-1": "supported",
    "pearl-theorem-2": "open",
    "pearl-table-9": "supported",
    "pearl-figure-3": "supported",
    "pearl-table-11-draft-length": "not supported",
    "pearl-baseline-at-its-best": "open",
    "pearl-baselines-elsewhere": "open",
    "pearl-text-lengths": "not supported",
    "pearl-code-no-end-token": "open",
    "pearl-code-float-ids": "open",
    "pearl-code-without-post-verify-starts": "not supported",
    "pearl-code-shared-devices-start": "not supported",
    "pearl-code-comparison-starts": "not supported",
    "pearl-code-dropped-prompts": "open",
}


# -- the print, by hand ----------------------------------------------------------------
@pytest.mark.parametrize("name", BY_HAND)
def test_the_arithmetic_of_an_item_is_that_of_a_hand(name):
    assert_arithmetic_by_hand(ITEMS[name], "pearl", BY_HAND)


def test_every_arithmetic_has_numbers_by_hand():
    assert_each_arithmetic_is_by_hand(ITEMS, BY_HAND)


@pytest.mark.parametrize("name", PRINTED_TWICE)
def test_a_number_that_is_printed_twice_is_shown_beside_the_other(name):
    evidence = pieces(ITEMS[name], PrintedTwice)
    assert len(evidence) == len(PRINTED_TWICE[name])
    for piece, (printed, other) in zip(evidence, PRINTED_TWICE[name], strict=True):
        worked = work_out_conflict(piece, "pearl")
        again = worked.quantities.get("quotient", worked.quantities["elsewhere"])
        assert worked.quantities["printed"].value == printed
        assert again.value == pytest.approx(other)
        assert worked.answer == "no"


def test_with_table_4s_number_the_accepted_share_of_a_block_falls_with_the_window():
    """CodeLlama 7&70B: a step is the longer one of Table 10's passes."""
    printed = {2: 16.28, 3: 23.14, 4: 29.65, 5: 40.72, 6: 35.39}
    with_table_4 = printed | {5: 3.79 * 9.20}

    def shares(speeds: dict[int, float]) -> list[float]:
        shares = []
        for window, speed in speeds.items():
            step = max(window / 49.34, 1 / 9.20)
            shares.append(round(speed * step / window, 2))
        return shares

    assert shares(with_table_4) == [0.88, 0.84, 0.81, 0.76, 0.72]
    assert shares(printed) == [0.88, 0.84, 0.81, 0.89, 0.72]


def test_the_gpu_of_the_paper_is_that_of_its_facts():
    (words,) = pieces(ITEMS["pearl-blog-averages"], Words)
    assert words.other[1] in load_paper("pearl").facts["hardware"]
    assert compare_words(words).answer == "no"


# -- formulas, by hand -----------------------------------------------------------------
def test_a_run_has_two_tokens_at_acceptance_one_half():
    """Half of the runs have 0 accepted drafts, a quarter 1, and so on: 1 on average."""
    values = values_of_run("tokens of a run", alpha=0.5)
    assert values["accepted drafts"] == pytest.approx(1)
    assert values["accepted drafts and the target's token"] == pytest.approx(2)
    # Where the first has passed, 1 more follows on average: 1 + 1, and the target's.
    passed = values["the same, where the first draft has passed"]
    assert passed == pytest.approx(3)
    assert values["by the theorem"] == 1 / (1 - 0.5) + 1


def test_a_window_of_c_is_the_best_for_whole_c():
    """c = 2, worked out by hand at acceptance 0.5, in draft passes.

    A block of 1, 2 or 3 gives 1, 1.5 or 1.75 tokens in post-verify. A step gives 1 for
    a window of 1; 1.5 / (1 - 0.25 + 0.5) = 1.2 for 2; 1.75 / (1 - 0.125 + 0.5) for 3.
    It lasts 2, 2 and 3.
    """
    speeds = {1: 1 / 2, 2: 1.2 / 2, 3: 1.75 / 1.375 / 3}
    assert max(speeds, key=speeds.__getitem__) == 2
    values = values_of_run("whole cost ratios", largest=6)
    assert values["speed at c over the best, at worst"] == pytest.approx(1)


def test_the_best_window_between_two_whole_numbers_may_be_the_higher_one():
    """CodeLlama 7&70B: c is 49.34 / 9.20, and nearly every draft is accepted."""
    settings = {"latency": "pearl/codellama-7-70", "alpha": "codellama-7-70"}
    values = values_of_run("rounded cost ratio", **settings)
    assert values["c"] == pytest.approx(49.34 / 9.20, rel=1e-3)
    assert values["c rounded"] == 5
    assert values["best window"] == 6
    assert 0.97 < values["speed at c rounded over the best"] < 1


@pytest.mark.parametrize(
    "row, column, share",
    [
        ("Codellama 7B&34B", "CodeLlama 7B&34B", 0.25),
        ("Codellama 7B&70B", "CodeLlama 7B&70B", 0.17),
        ("Deepseek 1.3B&33B", "DeepSeek 1.3B&33B", 0.43),
        ("Deepseek 6.7B&33B", "DeepSeek 6.7B&33B", 0.44),
    ],
)
def test_unfinished_runs_explain_the_passes(row, column, share):
    """A run of any length takes pre-verify, and a pass for each block it gets through.

    With chances alpha = L / (L + 1) these are 1 + alpha / (1 - alpha^gamma) on average.
    """
    values = values_of_run("unfinished runs", row=row, column=column)
    printed = load_paper("pearl").printed
    length = printed("table-7", "Ours", column)
    passes = printed("table-11", row, "Target Model (PEARL)")
    gamma = round(printed("table-11", row, "Draft Model (PEARL)") / passes)

    tokens = TEXTS * 1024
    alpha = length / (length + 1)
    passes_per_run = 1 + alpha / (1 - alpha**gamma)
    finished = tokens / (length + 1) * passes_per_run
    by_hand = (finished - passes) / (finished - tokens / gamma)

    unfinished = values["share of tokens after the last rejection"]
    assert unfinished == pytest.approx(by_hand, rel=1e-6)
    assert round(unfinished, 2) == share


@pytest.mark.parametrize("item, steps", [("table-9", 8), ("figure-3", 4)])
def test_all_printed_steps_are_taken_as_printed(item, steps):
    values = values_of_run("printed steps", item=item)
    assert values["printed steps"] == steps
    assert values["steps that commit the printed tokens"] == steps


# -- verdicts --------------------------------------------------------------------------
@pytest.mark.parametrize("name", VERDICTS)
def test_print_arithmetic_and_code_give_this_verdict(name):
    assert judge_item(ITEMS[name], "pearl", requests=2).verdict == VERDICTS[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, verdict",
    [
        ("pearl-lossless", "supported"),
        ("pearl-algorithm-2", "not supported"),
        ("pearl-code-untested-draft", "not supported"),
        ("pearl-code-repeated-coin", "not supported"),
    ],
)
def test_every_outcome_of_the_coins_gives_this_verdict(name, verdict):
    assert judge_item(ITEMS[name], "pearl", requests=2).verdict == verdict


def test_no_verdict_rests_on_the_simulated_clock():
    """Whatever the clock says is shown beside other evidence."""
    for name, item in ITEMS.items():
        for piece in pieces(item, Run):
            if piece.decides:
                assert experiment(piece.run).basis != "clock", name


def test_what_only_we_ask_is_no_statement_of_the_authors():
    ours = {name for name, item in ITEMS.items() if item.whose == "ours"}
    assert ours == {
        "pearl-baseline-overhead",
        "pearl-drops-above-c",
        "pearl-same-devices",
    }


def test_all_code_was_read_at_one_commit():
    assert PEARL.code["pearl"].commit.startswith("5a6f369")
    for name, item in ITEMS.items():
        for piece in pieces(item, CodeRead):
            assert piece.code == "pearl"
            assert piece.reads.endswith("."), name
