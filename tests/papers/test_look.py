"""Every table says first what to look at, and what it says is true of the print.

What a sentence claims is computed again from the printed cells alone. Labels that it
names in quotes must be labels of its table.
"""

from __future__ import annotations

import re
from collections.abc import Callable

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


# -- what it says ----------------------------------------------------------------------
class Print(dict[tuple[str, str], float]):
    """The printed numbers of a table, by row and column."""

    def __init__(self, paper: str, item: str):
        super().__init__(numbers_of(load_item(paper, item)))

    def over(self, row: str, by: str) -> list[float]:
        """One row over another, wherever both have a number."""
        of_row = {c: x for (r, c), x in self.items() if r == row and (by, c) in self}
        assert of_row
        return [value / self[by, column] for column, value in of_row.items()]

    def best(self) -> dict[str, str]:
        """The row with the highest number, by column."""
        by_rank = sorted(self, key=self.__getitem__)
        return {column: row for row, column in by_rank}


def spread(values: list[float]) -> float:
    return max(values) / min(values)


# c of the pairs whose windows are printed, from the speeds of Table 10.
COST_RATIOS = {
    "codellama 7&34": 49.34 / 18.58,
    "codellama 7&70": 49.34 / 9.20,
    "deepseek 1.3&33": 63.20 / 17.37,
    "deepseek 6.7&33": 50.05 / 17.37,
}
PEARL, SD, AR = "PEARL (ours)", "Speculative Decoding", "Auto Regressive"
WITHOUT_POST, WITHOUT_PRE = "PEARL w/o post-verify", "PEARL w/o pre-verify"
GAIN = "Speedup DSI vs. SI"


def windows(table: Print) -> list[tuple[int, float]]:
    """The fastest window and c, pair by pair."""
    best = table.best().items()
    return [(int(row), COST_RATIOS[pair.lower().rstrip("b")]) for pair, row in best]


def above_the_listing(table: Print) -> int:
    """How many gains are above the listing's best SI over DSI's formula.

    Appendix D.1 charges lookahead drafts and a target pass per round, and counts the
    accepted drafts and one token. An expectation over rounds is near enough here: the
    exact one, of the last round too, is what the errata have.
    """
    above = 0
    for row in by_row(table):
        target = table[row, "Target Latency (ms)"]
        draft = table[row, "Drafter Latency (ms)"]
        p = table[row, "Acceptance Rate (%)"] / 100
        times = []
        for lookahead in (1, 5, 10):
            tokens = sum(p**count for count in range(lookahead + 1))
            times.append((lookahead * draft + target) * 50 / tokens)
        of_dsi = draft * p * 49 + target * ((1 - p) * 49 + 1)
        above += table[row, GAIN] > min(times) / of_dsi
    return above


def by_row(table: Print) -> dict[str, list[float]]:
    rows = dict.fromkeys(row for row, _ in table)
    return {r: [size for (row, _), size in table.items() if row == r] for r in rows}


def over_eagle(table: Print, target: str) -> list[float]:
    own, eagle = (f"{target} / {m} / throughput" for m in ("EasySpec", "EAGLE-2"))
    return [table[row, own] / table[row, eagle] for row in by_row(table)]


# What the sentences say, as true or false of the print.
SAID: dict[str, Callable[[Print], object]] = {
    # Six drafts outlast a verification.
    "pearl figure-2a": lambda t: sorted(t.values()) == [2, 3],
    # Seven tokens in four steps.
    "pearl figure-3": lambda t: (
        sum(x for (_, name), x in t.items() if name == "committed") == 7
        and len(by_row(t)) == 4
    ),
    "pearl table-1": lambda t: (
        min(t.over(PEARL, SD)) > 1 and len(t.over(PEARL, SD)) == 6
    ),
    # The quotient varies less than either row.
    "pearl table-3": lambda t: (
        spread(t.over(PEARL, SD)) < min(spread(t.over(r, AR)) for r in (PEARL, SD))
    ),
    # Leaving out post-verify costs more.
    "pearl table-4": lambda t: (
        max(t.over(WITHOUT_POST, WITHOUT_PRE)) < 1
        and max(t.over(WITHOUT_PRE, "PEARL")) < 1
    ),
    # Fastest at c; speculative decoding at twice c.
    "pearl table-5": lambda t: all(best == round(c) for best, c in windows(t)),
    "pearl table-6": lambda t: set(t.best().values()) == {"5"},
    "pearl table-14": lambda t: all(1.7 < best / c < 2.3 for best, c in windows(t)),
    "pearl table-11": lambda t: all(
        runs > t[row, column.replace("PEARL", "SD")]
        for (row, column), runs in t.items()
        if column.endswith("(PEARL)")
    ),
    # Llama 3.1 gains more.
    "pearl table-13": lambda t: all(
        min(t.over(f"Llama 3.1 8B&70B / {m}", f"Llama 2 7B&70B / {m}")) > 1
        for m in (SD, "Ours")
    ),
    # Draft and target differ by less than a twentieth.
    "pearl table-15": lambda t: all(0.95 < x <= 1 for x in t.over("draft", "target")),
    # Eight times the tokens take less than a quarter more.
    "pearl table-16": lambda t: (
        1 < t["empirical time cost", "1024"] / t["empirical time cost", "128"] < 1.25
    ),
    # Little is lost where GPUs are shared.
    "pearl table-17": lambda t: all(
        0.94 <= share <= 0.97
        for pair in ("Llama 2", "Llama 3.1")
        for share in t.over(f"{pair} (RC)", pair)
    ),
    "pearl table-18": lambda t: all(
        0.9 <= share <= 1
        for pair in ("llama 2", "llama 3.1")
        for share in t.over(f"{pair} (RC)", pair)
    ),
    "pearl theorem-2": lambda t: t["0.0", "E(accepted tokens)"] == 2,
    "dsi table-1": lambda t: above_the_listing(t) == 9,
    "dsi section-5": lambda t: (
        (t["14.29 %", "target servers"], t["14.29 %", "GPUs in all"]) == (7, 8)
    ),
    "duodecoding table-2": lambda t: list(t.best().values()).count("Dynamic") == 3,
    # c is fastest, and no budget loses more than 3 %.
    "duodecoding table-3": lambda t: (
        set(t.best().values()) == {"c"}
        and min(min(t.over(r, "c")) for r in ("c-2", "c-1", "c+1", "c+2")) > 0.97
    ),
    # Most and many needed several.
    "duodecoding table-4": lambda t: (
        t[">1", ">1"] / t["Total", ">1"] > 0.5
        and 0.3 < t[">1", "=1"] / t["Total", "=1"] < 0.5
    ),
    # Sooner than speculative decoding, later than plain decoding.
    "duodecoding figure-3": lambda t: (
        1
        < t["DuoDecoding", "average, lowest"]
        < t["DuoDecoding", "average, highest"]
        < t[SD, "lowest"]
    ),
    # Large models gain and small ones lose.
    "easyspec table-1": lambda t: all(
        low < t[model, "TP=2"] / t[model, "TP=1"] < high
        for models, low, high in (
            (("L3-70B", "Q2-72B"), 1.5, 2),
            (("L3-8B", "Q2-7B"), 0.9, 1),
        )
        for model in models
    ),
    # Fuzzy drafts lose a hundredth at most.
    "easyspec table-3": lambda t: all(
        0 <= t[row, "+tree / alpha"] - t[row, "EasySpec / alpha"] < 0.0101
        for row in ("Q2.5-Coder-32B / HumanEval", "Q2-Math-72B / MATH")
    ),
    # Far ahead with Llama 3.3, level with Llama 3.
    "easyspec table-4": lambda t: (
        all(0.88 < x < 1.12 for x in over_eagle(t, "Llama-3"))
        and min(over_eagle(t, "Llama-3.3")) > 1.2
    ),
    # Queries and keys are nearer than their input.
    "easyspec table-5": lambda t: all(
        min(t[size, "q"], t[size, "k"]) > t[size, "h"] for size in "234"
    ),
    # Both ends stand alone, and no group is above the LP size.
    "easyspec table-6": lambda t: all(
        sizes[0] == sizes[-1] == 1 and max(sizes) == int(row.rpartition(" ")[2])
        for row, sizes in by_row(t).items()
    ),
    # Three sequences per pass.
    "easyspec figure-2": lambda t: (
        t["of the figure", "draft token sequences"]
        == 3 * t["of the figure", "forward passes"]
    ),
}


@pytest.mark.parametrize("item", SAID)
def test_what_it_says_is_true_of_the_print(item):
    assert SAID[item](Print(*item.split()))


def test_pearl_tables_2_and_12_are_the_same():
    of_llama_2, of_llama_3 = Print("pearl", "table-2"), Print("pearl", "table-12")
    for (row, column), value in of_llama_3.items():
        assert of_llama_2[row.replace("Ours", PEARL), column] == value
    assert len(of_llama_3) == 36


def test_pearl_table_9_step_6_commits_five_tokens_and_rejects_none():
    step_6 = load_item("pearl", "table-9")["steps"][6]
    assert "rejected" not in step_6
    assert len(step_6["committed"]) == 5
    assert step_6["committed"][-1] == step_6["draft"][0]


def test_pearl_blog_figure_1_quotes_llama_3_1():
    row = "up to, over Auto Regressive"
    on_page, table_1 = Print("pearl", "blog-figure-1"), Print("pearl", "table-1")
    table_12, table_13 = Print("pearl", "table-12"), Print("pearl", "table-13")
    assert on_page[row, "HumanEval"] == table_1[PEARL, "Llama3.1 8&70B"]
    assert on_page[row, "HumanEval"] < max(table_1.values())
    in_english = table_12["Ours", "English (GSM8K)"]
    assert on_page[row, "GSM8K"] == pytest.approx(in_english, abs=0.0101)
    assert on_page[row, "MT-bench"] == table_13["Llama 3.1 8B&70B / Ours", "Avg."]
    assert on_page[row, "MGSM"] == table_12["Ours", "Avg."]
