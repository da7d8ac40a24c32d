"""What is stored of plans: it is read back as it was, and counted by hand."""

from __future__ import annotations

import pytest

from speclab.planning.hits import Hit, describe, read_hits, records, write_hits


def hit(first: str, fastest: str, measured: float, best: float) -> Hit:
    return Hit(
        "toy",
        "humaneval",
        "here",
        4,
        5.5,
        first,
        2.5,
        measured,
        1.5,
        2.75,
        fastest,
        best,
    )


def test_hits_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "plan.csv"
    assert read_hits(path) == []
    hits = [hit("pearl, gamma 5", "dsi", 2.0, 2.5), hit("dsi", "dsi", 2.5, 2.5)]
    write_hits(path, hits)
    assert read_hits(path) == hits


def test_wins_and_losses_are_those_of_the_rows():
    """2.0 for 2.5 is 20 % slower; with a win beside it that is 10 % in the mean.

    The interval of 2.0 reaches to 2.75.
    """
    hits = [hit("pearl", "dsi", 2.0, 2.5), hit("dsi", "dsi", 2.5, 2.5)]
    far = hit("pearl", "rest", 2.0, 4.0)._replace(task="gsm8k")
    humaneval, gsm8k, of_all = records([*hits, far])
    assert humaneval == ("humaneval", 2, 1, 1, pytest.approx(0.1), pytest.approx(0.2))
    assert gsm8k == ("gsm8k", 1, 0, 0, 0.5, 0.5)
    assert of_all == ("all", 3, 1, 1, pytest.approx(0.7 / 3), 0.5)

    text = describe(humaneval)
    assert "in 1 of 2 plans" in text
    assert "In 1 of the others" in text
    assert "10.0% slower than the fastest in the mean, and 20.0% at most" in text
