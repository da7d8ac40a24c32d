"""Every number in the twelve findings follows from printed numbers.

Each test computes from printed numbers what the finding in ``data/audit`` states.
"""

from __future__ import annotations

import pytest
from helpers.outcome_errors import CLOSE, outcome_error

from speclab.audit.counted_tokens import CountedTokens, CountingLoop, count_tokens
from speclab.audit.dsi_table_1 import DsiRow, rows_of_table_1
from speclab.audit.items import load_audit
from speclab.mutants import MUTANTS
from speclab.mutants.engine_mistakes import ENGINE_MUTANTS
from speclab.papers.load_papers import load_paper

FINDINGS = {finding.id: finding for finding in load_audit().findings}


def finding_text(name: str) -> str:
    """Returns a finding's evidence and its consequence."""
    finding = FINDINGS[name]
    return " ".join(f"{finding.found} {finding.changes} {finding.answer}".split())


# -- DuoDecoding -----------------------------------------------------------------------
TASKS = ("MT-Bench", "Trans", "Sum", "QA", "Math", "RAG", "Code")
QA, RAG = 0.57, 0.54  # acceptance rates that printed speculative decoding implies


def duodecoding(item: str, row: str, column: str) -> float:
    return load_paper("duodecoding").printed(item, row, column)


def count(alpha: float, limit: int, budget: int, sequences: int = 1) -> CountedTokens:
    return count_tokens(CountingLoop(alpha, limit, budget, sequences))


@pytest.mark.parametrize("alpha", [0.6, 0.8])
def test_the_ratio_of_duodecodings_counted_to_tested_tokens(alpha):
    """For 128 tokens with one and two sequences, and for QA's and RAG's 32."""
    said = finding_text("duodecoding-count")
    for words, counted in (
        ("128 tokens by 1.21 (Vicuna 1.13)", count(alpha, 128, 24)),
        ("1.13)", count(alpha, 128, 16)),
        ("with two by 1.09 (1.06)", count(alpha, 128, 24, 2)),
        ("1.06)", count(alpha, 128, 16, 2)),
        ("and 1.48", count(QA, 32, 24, 2)),
        ("and 1.48", count(RAG, 32, 24, 2)),
    ):
        assert words in said
        assert f"{counted.over_tested:.2f}" in words
    for alpha_at_32 in (QA, RAG):
        assert f"by {count(alpha_at_32, 32, 24).over_tested:.1f};" in said


def test_speeds_of_duodecoding_by_tested_tokens():
    """At 32 tokens, RAG with one sequence is slower than plain decoding."""
    assert "QA's 3.18 is 1.03 to 2.15, and RAG's 2.32 is 0.75 to 1.57" in finding_text(
        "duodecoding-count"
    )
    by_tested = []
    for task, alpha in (("QA", QA), ("RAG", RAG)):
        printed = duodecoding("table-1", "Llama / DuoDec", f"{task} / speedup")
        for sequences in (1, 2):
            factor = count(alpha, 32, 24, sequences).over_tested
            by_tested.append(printed / factor)
    assert by_tested == pytest.approx([1.03, 2.15, 0.75, 1.57], abs=0.005)


def test_duodecodings_leads_within_the_counting_error():
    """Leads are over speculative decoding; at 32 tokens the ratio is 3.1."""
    assert "Eight of fourteen" in finding_text("duodecoding-count")
    within = 0
    for target, at_128 in (("Vicuna", 1.13), ("Llama", 1.21)):
        for task in TASKS:
            lead = duodecoding("table-1", f"{target} / DuoDec", f"{task} / speedup")
            lead /= duodecoding("table-1", f"{target} / SpS", f"{task} / speedup")
            if (target, task) in {("Llama", "QA"), ("Llama", "RAG")}:
                assert lead < 3.1
            elif lead < at_128:
                within += 1
            if (target, task) in {("Llama", "Trans"), ("Llama", "Math")}:
                assert lead == pytest.approx(1.43, abs=0.01)
    assert within == 8


@pytest.mark.parametrize("alpha", [0.6, 0.7, 0.8])
def test_table_2_of_duodecoding_by_tested_tokens(alpha):
    said = finding_text("duodecoding-ablations")
    for words, task in (
        ("translation 108, 109, 107", "Trans"),
        ("Math 123, 125, 118", "Math"),
        ("code 73, 77, 76", "Code"),
        ("MT-bench 81, 94, 96", "MT"),
    ):
        assert words in said
        expected = [float(number) for number in words.split(" ", 1)[1].split(", ")]
        tested = []
        for sequences in (1, 2, 3):
            printed = duodecoding("table-2", f"Static {sequences}", task)
            tested.append(printed / count(alpha, 128, 24, sequences).over_tested)
        assert tested == pytest.approx(expected, abs=0.7)
        assert tested[1] > tested[0]


def test_table_3_of_duodecoding_compared_with_the_count():
    """Budgets of 24 and 22 correspond to the printed c and c - 2."""
    assert "adds 1.9 %; Table 3 prints 1.3 to 3.0 %" in finding_text(
        "duodecoding-ablations"
    )
    more, less = count(0.8, 128, 24), count(0.8, 128, 22)
    by_the_count = (more.counted / more.passes) / (less.counted / less.passes)
    assert by_the_count == pytest.approx(1.019, abs=0.0005)
    gains = []
    for task in ("MT", "Trans", "Math", "Code"):
        gain = duodecoding("table-3", "c", task) / duodecoding("table-3", "c-2", task)
        gains.append(round(100 * (gain - 1), 1))
    assert (min(gains), max(gains)) == (1.3, 3.0)


def test_the_first_token_of_speculative_decoding_with_two_draft_passes():
    """With five, the paper prints 1.5 to 1.7 times plain decoding's."""
    assert "1.20 to 1.28" in finding_text("duodecoding-budget")
    times = []
    for end in ("lowest", "highest"):
        printed = duodecoding("figure-3", "Speculative Decoding", end)
        times.append(1 + (printed - 1) * 2 / 5)
    assert times == pytest.approx([1.20, 1.28])
    lowest = duodecoding("figure-3", "DuoDecoding", "average, lowest")
    assert max(times) < lowest == 1.3


# -- PEARL -----------------------------------------------------------------------------
def pearl(item: str, row: str, column: str) -> float:
    return load_paper("pearl").printed(item, row, column)


def plain(model: str) -> float:
    return pearl("table-10", model, "speed (tok/s)")


def test_pearls_table_2_uses_the_pair_of_table_12():
    said = finding_text("pearl-table-2-pair")
    rows = {
        "Auto Regressive": "Auto Regressive",
        "Speculative Decoding": "Speculative Decoding",
        "PEARL (ours)": "Ours",
    }
    table_12 = load_paper("pearl").table("table-12")
    for row, same in rows.items():
        for column in table_12.column_labels:
            assert pearl("table-2", row, column) == pearl("table-12", same, column)
    on_gsm8k = pearl("table-6", "5", "GSM8K") / plain("Llama-2-70B")
    on_mgsm = pearl("table-17", "Llama 2", "MGSM") / plain("Llama-2-70B")
    assert (round(on_gsm8k, 2), round(on_mgsm, 2)) == (2.87, 3.27)
    assert "2.87 on GSM8K and 3.27 on MGSM" in said
    for row in ("Ouroboros", "Lookahead Decoding", "Assisted Generation"):
        assert pearl("table-2", row, "Avg.") < 3.27


def test_pearls_tables_print_speeds_of_several_runs():
    said = finding_text("pearl-mixed-runs")
    assert "Table 4 has 3.79 and 2.35, and Table 1 has 4.43 and 2.48" in said
    assert pearl("table-4", "PEARL", "CodeLlama 7B&70B") == 3.79
    assert pearl("table-4", "PEARL", "CodeLlama 7B&34B") == 2.35
    assert pearl("table-1", "PEARL (ours)", "CodeLlama 7&70B") == 4.43
    assert pearl("table-1", "PEARL (ours)", "CodeLlama 7&34B") == 2.48

    assert "3.73, not 3.87, and 3.53, not 3.29" in said
    llama_3 = pearl("table-17", "Llama 3.1", "Humaneval") / plain("Llama-3.1-70B")
    llama_2 = pearl("table-17", "Llama 2", "Humaneval") / plain("Llama-2-70B")
    assert (round(llama_3, 2), round(llama_2, 2)) == (3.73, 3.53)
    assert pearl("table-1", "PEARL (ours)", "Llama3.1 8&70B") == 3.87
    assert pearl("table-1", "PEARL (ours)", "Llama2 7&70B") == 3.29

    assert "4 to 17 %" in said
    differences = (4.43 / 3.79, 2.48 / 2.35, 3.87 / llama_3, llama_2 / 3.29)
    assert (min(differences), max(differences)) == pytest.approx((1.04, 1.17), abs=0.01)


def test_the_passes_of_table_11_allow_less_than_the_headline():
    """164 prompts have at most 1,024 tokens plus four from a last block of five."""
    assert "39,674 passes allow at most 4.25" in finding_text("pearl-mixed-runs")
    passes = pearl("table-11", "Codellama 7B&70B", "Target Model (PEARL)")
    assert passes == 39_674
    assert 164 * (1024 + 4) / passes == pytest.approx(4.25, abs=0.005)


def test_with_table_4s_numbers_other_windows_are_best():
    assert "are 5 and 6, not 3 and 5" in finding_text("pearl-mixed-runs")
    for column, model, ablation, rounded, best in (
        ("CodeLlama 7&34", "Codellama-34B", "CodeLlama 7B&34B", "3", "5"),
        ("CodeLlama 7&70", "Codellama-70B", "CodeLlama 7B&70B", "5", "6"),
    ):
        speeds = {}
        for window in load_paper("pearl").table("table-5").row_labels:
            speed = pearl("table-5", window, column)
            if speed is not None:
                speeds[window] = speed
        assert max(speeds, key=speeds.__getitem__) == rounded
        speeds[rounded] = pearl("table-4", "PEARL", ablation) * plain(model)
        assert max(speeds, key=speeds.__getitem__) == best


def test_tokens_per_pass_at_the_equal_windows_of_table_11():
    said = finding_text("pearl-accepted-tokens")
    rows = (
        "Codellama 7B&34B",
        "Codellama 7B&70B",
        "Deepseek 1.3B&33B",
        "Deepseek 6.7B&33B",
    )
    for method, words in (
        ("SD", "3.82, 5.53, 4.78 and 3.91"),
        ("PEARL", "PEARL 2.78, 4.23, 3.69 and 2.88"),
    ):
        per_pass = []
        for row in rows:
            passes = pearl("table-11", row, f"Target Model ({method})")
            per_pass.append(f"{164 * 1024 / passes:.2f}")
            drafts = pearl("table-11", row, f"Draft Model ({method})")
            other = pearl("table-11", row, "Draft Model (SD)")
            of_other = pearl("table-11", row, "Target Model (SD)")
            assert drafts / passes == other / of_other  # the windows are equal
        first, second, third, fourth = per_pass
        assert words in said
        assert words.endswith(f"{first}, {second}, {third} and {fourth}")
    printed = [pearl("table-7", "Ours", row) for row in PEARL_PAIRS]
    baseline = [pearl("table-7", "Speculative Decoding", row) for row in PEARL_PAIRS]
    assert (round(min(printed)), round(max(printed))) == (27, 40)
    assert "27 to 40, against 5 to 8" in FINDINGS["pearl-accepted-tokens"].claimed
    assert (round(min(baseline)), round(max(baseline))) == (5, 8)


PEARL_PAIRS = (
    "CodeLlama 7B&34B",
    "CodeLlama 7B&70B",
    "DeepSeek 1.3B&33B",
    "DeepSeek 6.7B&33B",
)


def test_the_error_of_an_untested_draft():
    assert "total variation of 0.49" in finding_text("pearl-untested-draft")
    mistaken, _, settings, tokens = MUTANTS["untested first draft"]
    assert tokens == 3
    assert outcome_error(mistaken, settings) == pytest.approx(0.49, abs=0.005)
    assert "(0.05 with a close draft)" in finding_text("pearl-untested-draft")
    close = outcome_error(mistaken, settings, share=CLOSE)
    assert close == pytest.approx(0.05, abs=0.005)


# -- DSI -------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def table_1() -> list[DsiRow]:
    return list(rows_of_table_1())


def test_dsi_over_si_by_the_papers_formulas(table_1):
    said = finding_text("dsi-table-1-size")
    tuned = [min(row.by_the_formulas()) for row in table_1]
    worst = [max(row.by_the_formulas()) for row in table_1]
    assert (min(tuned), max(tuned)) == pytest.approx((1.25, 1.45), abs=0.005)
    assert "give 1.25 to 1.45" in said
    assert "25 to 45 %" in said
    assert max(worst) == pytest.approx(1.91, abs=0.005)
    assert "1.91 at its worst" in said
    above = 0
    for row, best in zip(table_1, tuned, strict=True):
        above += row.printed - 0.005 > best
    assert (above, len(table_1)) == (9, 10)


@pytest.mark.slow
def test_two_rules_of_the_simulator_add_to_the_speed_up(table_1):
    assert "28 to 98 %" in finding_text("dsi-table-1-size")
    added = [row.worth_of("bonus", "restart_pass") for row in table_1]
    assert (min(added), max(added)) == pytest.approx((1.28, 1.98), abs=0.005)


# -- EasySpec --------------------------------------------------------------------------
def test_variances_of_easyspec_and_eagle_2():
    said = finding_text("easyspec-stability")
    printed = load_paper("easyspec").printed
    more_by_share = {}
    larger = {}
    for target in ("Llama-3", "Llama-3.3"):
        shares = []
        larger[target] = 0
        for task in ("MT", "TL", "SUM", "QA", "MR", "RAG"):
            of_method = {}
            variances = {}
            for method in ("EasySpec", "EAGLE-2"):
                name = f"{target} / {method}"
                variance = printed("table-4", task, f"{name} / variance")
                speed = printed("table-4", task, f"{name} / throughput")
                variances[method] = variance
                of_method[method] = variance / speed**2
            larger[target] += variances["EasySpec"] > variances["EAGLE-2"]
            shares.append(
                round(100 * (1 - of_method["EasySpec"] / of_method["EAGLE-2"]))
            )
        more_by_share[target] = (min(shares), max(shares))
    assert larger == {"Llama-3": 0, "Llama-3.3": 6}
    assert more_by_share == {"Llama-3": (52, 80), "Llama-3.3": (8, 40)}
    assert "by 52 to 80 % with Llama-3, by 8 to 40 % with Llama-3.3" in said


# -- code from 2026 --------------------------------------------------------------------
def test_tokens_per_prompt_of_nano_pearl():
    """The tokens in bench_summary.md, lines 135, 9 and 10, divided by 128 prompts."""
    assert "671 tokens a prompt" in finding_text("nano-pearl-lengths")
    assert "395 on HumanEval" in finding_text("nano-pearl-lengths")
    per_prompt = [round(tokens / 128) for tokens in (85_927, 50_620, 25_600)]
    assert per_prompt == [671, 395, 200]


def test_the_error_of_specbranchs_rule():
    assert "total variation of 0.93" in finding_text("specbranch-sampling")
    assert "(0.62 with a close draft)" in finding_text("specbranch-sampling")
    mistaken, _, settings, _ = ENGINE_MUTANTS["branch by the target"]
    assert outcome_error(mistaken, settings) == pytest.approx(0.93, abs=0.005)
    close = outcome_error(mistaken, settings, share=CLOSE)
    assert close == pytest.approx(0.62, abs=0.005)
