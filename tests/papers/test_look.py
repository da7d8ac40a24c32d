"""Every table says first what to look at, and what it says is true of the print.

Most sentences say what a claim of the table says, too, which ``test_verdicts`` judges.
What the others say is computed here from the printed cells alone.
"""

from __future__ import annotations

import re

import pytest
from helpers.printed import DATA, load_item, numbers_of

from speclab.papers.load_papers import load_paper
from speclab.papers.paper_schema import Table

FOLDERS = sorted(path.parent for path in DATA.glob("papers/*/paper.toml"))
OWN_PAPER = DATA / "lessons" / "own_paper"


def all_tables() -> list[Table]:
    tables = list(load_paper("mine", OWN_PAPER).tables.values())
    for folder in FOLDERS:
        tables += load_paper(folder.name).tables.values()
    return tables


# -- its form --------------------------------------------------------------------------
@pytest.mark.parametrize(
    "table", all_tables(), ids=lambda table: f"{table.paper.key} {table.item}"
)
def test_it_names_labels_says_more_than_the_title_and_a_paragraph_follows(table):
    labels = [*table.row_labels, *table.column_labels]
    for named in re.findall(r'"([^"]+)"', table.look):
        assert [label for label in labels if named in label], named
    assert table.look.count('"') % 2 == 0

    look, title = table.look.lower(), table.title.lower()
    assert look.rstrip(".") not in title
    assert title not in look

    opening = table.about.strip().partition("\n\n")[0]  # stands above the numbers
    assert not opening.startswith(("- ", "Before trusting"))
    assert opening.endswith((".", "?", ".)"))


# -- what it says, where no claim of the table says the same ---------------------------
class Print(dict[tuple[str, str], float]):
    """The printed numbers of a table, by row and column."""

    def __init__(self, paper: str, item: str):
        super().__init__(numbers_of(load_item(paper, item)))
        self.rows = dict.fromkeys(row for row, _ in self)

    def over(self, row: str, by: str) -> list[float]:
        """One row over another, wherever both have a number."""
        of_row = {c: x for (r, c), x in self.items() if r == row and (by, c) in self}
        assert of_row
        return [value / self[by, column] for column, value in of_row.items()]


SD = "Speculative Decoding"


def test_pearl_table_3_the_quotient_varies_less_than_either_row():
    table, pearl, plain = Print("pearl", "table-3"), "PEARL (ours)", "Auto Regressive"
    pairs = [(pearl, SD), (pearl, plain), (SD, plain)]
    quotients = [table.over(*pair) for pair in pairs]
    spreads = [max(values) / min(values) for values in quotients]
    assert spreads[0] < min(spreads[1:])


def test_pearl_table_13_gains_more_with_llama_3_1():
    table = Print("pearl", "table-13")
    for method in (SD, "Ours"):
        new, old = (f"{p} / {method}" for p in ("Llama 3.1 8B&70B", "Llama 2 7B&70B"))
        assert min(table.over(new, old)) > 1


def test_pearl_table_17_loses_a_few_per_cent_on_every_task():
    for pair in ("Llama 2", "Llama 3.1"):
        shares = Print("pearl", "table-17").over(f"{pair} (RC)", pair)
        assert 0.94 <= min(shares) <= max(shares) <= 0.97


def test_pearl_blog_figure_1_has_another_number_for_gsm8k():
    row, on_page = "up to, over Auto Regressive", Print("pearl", "blog-figure-1")
    in_english = Print("pearl", "table-12")["Ours", "English (GSM8K)"]
    assert on_page[row, "GSM8K"] == pytest.approx(in_english, abs=0.0101)
    assert on_page[row, "HumanEval"] < max(Print("pearl", "table-1").values())


def test_duodecoding_figure_3_is_sooner_than_speculative_decoding():
    numbers = Print("duodecoding", "figure-3")
    assert numbers["DuoDecoding", "average, highest"] < numbers[SD, "lowest"]


def test_easyspec_table_1_large_models_gain_and_small_ones_lose():
    numbers = Print("easyspec", "table-1")
    gain = {row: numbers[row, "TP=2"] / numbers[row, "TP=1"] for row in numbers.rows}
    assert min(gain["L3-70B"], gain["Q2-72B"]) > 1.5
    assert all(0.9 < gain[model] < 1 for model in ("L3-8B", "Q2-7B"))


def test_easyspec_table_3_fuzzy_drafts_lose_a_hundredth_at_most():
    numbers = Print("easyspec", "table-3")
    for row in numbers.rows:
        lost = numbers[row, "+tree / alpha"] - numbers[row, "EasySpec / alpha"]
        assert 0 <= lost < 0.0101


def test_easyspec_figure_2_has_three_sequences_per_pass():
    numbers = Print("easyspec", "figure-2")
    passes = numbers["of the figure", "forward passes"]
    assert numbers["of the figure", "draft token sequences"] == 3 * passes
