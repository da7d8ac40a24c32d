"""Which cells of PEARL's tables are run, of which kind and on how much."""

from __future__ import annotations

import pytest
from helpers.tables import SMALL

from speclab.experiment.spec import FULL, QUICK, Profile, Spec
from speclab.papers.fill import fill
from speclab.papers.paper_schema import Paper
from speclab.papers.table_cells import cells_to_run
from speclib import machine
from speclib.errors import SpeclibError


def measured_specs(paper: Paper, item: str, profile: Profile = QUICK) -> set[Spec]:
    cells = cells_to_run(paper.table(item), profile, ("measured",))
    return {cell.spec for cell in cells}


def test_only_the_kinds_and_cells_a_table_has_are_run(pearl):
    assert cells_to_run(pearl.table("blog-figure-1"), QUICK) == []
    kinds = {cell.kind for cell in cells_to_run(pearl.table("table-7"), QUICK)}
    assert kinds == {"virtual", "measured"}

    printed = set()
    for cell in cells_to_run(pearl.table("table-14"), QUICK):
        if "bf16" not in cell.column:
            printed.add((cell.row, cell.column))
    assert len(printed) == 20  # no window that the paper did not try

    cells = cells_to_run(pearl.table("table-1"), QUICK)
    methods = {cell.spec.method for cell in cells}
    with_rates = {"autoregressive", "speculative", "assisted", "pearl"}
    assert methods == with_rates | {"ouroboros", "lookahead"}
    kinds = {cell.kind for cell in cells if cell.row == "Ouroboros"}
    assert kinds == {"measured"}  # what phrases come again only a text can say


def test_tables_share_their_measured_cells(pearl):
    table_1, table_4, table_7, table_15, figure_2a, figure_2b = (
        measured_specs(pearl, item)
        for item in (
            "table-1",
            "table-4",
            "table-7",
            "table-15",
            "figure-2a",
            "figure-2b",
        )
    )
    of_pearl = {spec for spec in table_1 if spec.method == "pearl"}
    assert table_15 < of_pearl
    assert figure_2a < table_7
    assert figure_2b < table_1
    assert {spec for spec in table_7 if spec.method == "pearl"} < of_pearl

    without_ablation = set()
    for spec in table_4:
        if spec.task == "humaneval" and not spec.settings:
            without_ablation.add(spec)
    assert without_ablation < of_pearl


def test_a_window_sweep_is_measured_on_half_the_prompts(pearl):
    def prompts(item: str, profile: Profile) -> set[int]:
        return {spec.requests for spec in measured_specs(pearl, item, profile)}

    for item in ("table-5", "table-6", "table-14"):
        assert prompts(item, FULL) == {16}
        assert prompts(item, QUICK) == {2}  # the fewest that have an interval
    assert prompts("table-1", FULL) == prompts("table-11", FULL) == {32}


@pytest.mark.parametrize(
    "item, column",
    [
        ("table-1", "Llama2 7&70B"),
        ("table-5", "CodeLlama 7&34"),
        ("table-14", "codellama 7&34B"),
    ],
)
def test_bfloat16_columns_stand_beside_float32_where_the_machine_computes_it(
    pearl, monkeypatch, item, column
):
    def dtypes(instructions: str) -> dict[str, str]:
        monkeypatch.setattr(machine, "cpuinfo", lambda name: instructions)
        cells = cells_to_run(pearl.table(item), QUICK, ("measured",))
        return {cell.column: cell.spec.dtype for cell in cells}

    with_bfloat16 = dtypes("avx2 amx_bf16")
    assert with_bfloat16[column] == "auto"
    assert with_bfloat16[f"{column}, bf16"] == "bfloat16"

    without_bfloat16 = dtypes("avx2")
    assert column in without_bfloat16
    assert f"{column}, bf16" not in without_bfloat16


def test_claims_look_for_no_print_in_the_engines_own_columns(pearl):
    for item in ("table-1", "table-5", "table-14"):
        for claim in fill(pearl.table(item), SMALL, kinds=()).claims:
            if claim.kind == "paper":
                assert "bf16" not in claim.note + claim.expected


@pytest.mark.parametrize(
    "settings, says",
    [
        ({"gamma": None}, "it lacks the setting 'gamma': give it one"),
        ({"method": "perl"}, "unknown method 'perl'; known: autoregressive"),
        ({"cancel": "maybe"}, "cancel: Input should be 'immediate' or 'after-op'"),
        ({"alpha": "gpt"}, "calibration.toml has no entry 'gpt'"),
        ({"max_new_tokens": "many"}, "'many'"),
        ({"stat": "{nobody}"}, "KeyError('nobody')"),
    ],
)
def test_a_setting_that_cannot_be_run_is_named_with_file_and_cell(
    pearl, settings, says
):
    """A setting of None stands for one that is missing."""
    table = pearl.table("table-5")
    row = {**table.row["2"], **settings}
    if row["gamma"] is None:
        del row["gamma"]
    broken = table.model_copy(update={"row": {**table.row, "2": row}})
    broken.join(pearl)
    with pytest.raises(SpeclibError) as error:
        cells_to_run(broken, QUICK, ("virtual",))
    message = str(error.value)
    assert message.startswith("data/papers/pearl/table-5.toml, cell ['2', 'CodeLlama")
    assert says in message
    assert "\n" not in message
