"""Which cells of the papers' tables are run, of which kind and on how many prompts."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import pytest

from speclab.papers.load_papers import load_paper
from speclab.papers.table_cells import TableCell, cells_to_run
from speclab.runs.spec import Spec
from speclib.data.pairs import load_pair
from speclib.errors import SpeclibError


def cells_of(paper: str, *items: str, kind: str = "measured") -> list[TableCell]:
    tables = load_paper(paper).tables
    return [cell for item in items for cell in cells_to_run(tables[item], (kind,))]


def measured_specs(item: str) -> set[Spec]:
    return {cell.spec for cell in cells_of("pearl", item)}


# -- PEARL -----------------------------------------------------------------------------
def test_only_the_kinds_and_cells_a_table_has_are_run(pearl):
    assert cells_to_run(pearl.table("blog-figure-1")) == []
    kinds = {cell.kind for cell in cells_to_run(pearl.table("table-7"))}
    assert kinds == {"virtual", "measured"}
    cells = cells_to_run(pearl.table("table-14"))
    printed = {cell[:2] for cell in cells}
    assert len(printed) == 20  # no window that the paper did not try

    cells = cells_to_run(pearl.table("table-1"))
    methods = {cell.spec.method for cell in cells}
    with_rates = {"autoregressive", "speculative", "assisted", "pearl"}
    assert methods == with_rates | {"ouroboros", "lookahead"}
    kinds = {cell.kind for cell in cells if cell.row == "Ouroboros"}
    assert kinds == {"measured"}  # only a real text repeats phrases


def test_a_window_sweep_is_measured_on_half_the_prompts():
    for item, prompts in (("table-5", 16), ("table-14", 16), ("table-1", 32)):
        assert {spec.requests for spec in measured_specs(item)} == {prompts}


@pytest.mark.parametrize(
    "settings, says",
    [
        ({"gamma": None}, "it lacks the setting 'gamma': add it"),
        ({"cancel": "maybe"}, "cancel: Input should be 'immediate' or 'after-op'"),
        ({"stat": "{nobody}"}, "KeyError('nobody')"),
    ],
)
def test_a_setting_that_cannot_be_run_is_named_with_file_and_cell(
    pearl, settings, says
):
    """A setting of None means a missing one."""
    table = pearl.table("table-5")
    row = {**table.row["2"], **settings}
    row = {name: value for name, value in row.items() if value is not None}
    broken = table.model_copy(update={"row": {**table.row, "2": row}})
    broken.join(pearl)
    with pytest.raises(SpeclibError) as error:
        cells_to_run(broken, ("virtual",))
    message = str(error.value)
    assert message.startswith("data/papers/pearl/table-5.toml, cell ['2', 'CodeLlama")
    assert says in message
    assert "\n" not in message


@pytest.mark.parametrize("key", ["pearl", "duodecoding", "easyspec", "dsi", "ssd"])
def test_every_item_that_the_paper_names_is_measured(key):
    paper = load_paper(key)
    measured = {item for item in paper.tables if cells_of(key, item)}
    scripts = {
        item for item, table in paper.tables.items() if "script" in table.settings
    }
    assert measured <= set(paper.facts["fill"]["measured"]) <= measured | scripts


# -- DSI -------------------------------------------------------------------------------
def test_dsis_table_1_asks_for_the_protocol():
    cells = cells_of("dsi", "table-1", kind="virtual")
    spec = next(c.spec for c in cells if c.column == "Speedup DSI vs. SI")
    assert spec.tokens == 50
    assert spec.over == ("speculative", (1, 5, 10))
    assert dict(spec.settings) == {"lookahead": (1, 5, 10), "servers": (1, 7)}
    assert len(spec.choices) == 6


# -- DuoDecoding -----------------------------------------------------------------------


@pytest.mark.parametrize("item", ["table-1", "figure-3"])
def test_duodecodings_texts_have_the_lengths_in_its_scripts(item):
    """cmds/*_llama.sh end QA and RAG at 32 tokens, cmds/*_vicuna.sh no task."""
    lengths = defaultdict(set)  # by target, and by whether the task is QA or RAG
    for cell in cells_of("duodecoding", item, kind="virtual"):
        label = cell.row if item == "table-1" else cell.column
        target = "Vicuna" if label.startswith("Vicuna") else "Llama"
        *_, task = cell.column.removesuffix(" / speedup").split(" / ")
        if task not in ("average", "TPS", "Avg."):
            lengths[target, task in ("QA", "RAG")].add(cell.spec.tokens)
    assert lengths.pop(("Llama", True)) == {32}
    assert list(lengths.values()) == [{128}] * 3
    tasks = load_paper("duodecoding").facts["tasks"]
    for task in ("qa", "rag"):
        facts = tasks[task]["max_new_tokens"]
        assert facts == {"Llama-2-7b": 32, "Vicuna-7b-v1.5": 128}


def test_an_accounting_is_a_setting_of_a_cell():
    cells = {cell[:2]: cell for cell in cells_of("duodecoding", "extra-2")}
    committed = cells["Math", "committed, k = 1"]
    assert committed.stat == "speedup"
    assert not committed.spec.ignore_eos
    assert not committed.spec.with_tail
    published = cells["Math", "as published, k = 1"]
    assert published.stat == "published_speedup"
    assert published.spec.ignore_eos
    assert published.spec.with_tail
    assert not published.spec.plain_decoding.with_tail
    for cell in cells_of("duodecoding", "table-3", kind="virtual"):  # whole rounds
        assert (cell.stat, cell.spec.with_tail) == ("decode_speed", True)


# -- EasySpec --------------------------------------------------------------------------
def test_a_setting_of_one_kind_applies_to_that_kind_only():
    table = load_paper("easyspec").table("table-2")
    cell = "Llama-3 / T=0.8 / HumanEval", "EasySpec / total"
    of_all_kinds = table.settings_of(*cell)
    measured = table.settings_of(*cell, "measured")
    assert (of_all_kinds["width"], measured["width"]) == (1, 8)
    assert table.settings_of(*cell, "virtual")["width"] == 1
    assert measured["pair"] == "embedded/easyspec"
    assert not {"pair", "measured"} & of_all_kinds.keys()


def test_easyspecs_speed_uses_dilated_models_and_its_acceptance_undilated_ones():
    cells = cells_of("easyspec", "table-2", "table-4", "figure-4")
    of_acceptance = {"accepted_share", "accepted_of_levels"}
    assert of_acceptance < {cell.stat for cell in cells}
    for cell in cells:
        pair = load_pair(cell.spec.pair)
        is_undilated = cell.stat in of_acceptance
        assert (pair.target.shape is None) == is_undilated, cell
        assert (pair.draft.shape is None) == is_undilated, cell


def test_eagle_drafts_as_many_levels_and_nodes_as_easyspec():
    """Its share is of the drafted levels, because its first round drafts none."""
    cells = cells_of("easyspec", "table-4")
    tasks = {"MT", "TL", "SUM", "QA", "MR", "RAG"}
    rows = {(cell.row, cell.spec.method) for cell in cells}
    assert rows == set(product(tasks, ("eagle", "easyspec")))
    assert {cell.stat for cell in cells} >= {"decode_speed", "speed_variance"}
    for cell in cells:
        settings = dict(cell.spec.settings)
        assert (cell.spec.gamma, settings["width"]) == (5, 8)
        if cell.spec.method == "eagle":
            assert settings["budget"] == 5 * 8
            assert cell.stat != "accepted_share"
            pair = load_pair(cell.spec.pair)
            assert pair.draft.head
            assert pair.draft.model == pair.target.model
