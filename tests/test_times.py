"""The table of times at the end of a run adds up, and names what is slow."""

from helpers.times import Spent, grade_of, table_of_times


def test_a_test_has_the_last_grade_by_which_it_is_marked():
    assert grade_of(["test_of_words", "tests"]) == "fast"
    assert grade_of(["slow"]) == "slow"
    assert grade_of(["slow", "thorough"]) == "thorough"


def test_seconds_are_added_by_folder_and_grade_and_the_slowest_file_comes_first():
    spent = [
        Spent("tests/core/test_tree.py", "fast", 10.0),
        Spent("tests/core/test_tree.py", "slow", 20.0),
        Spent("tests/worlds/test_cluster.py", "slow", 60.0),
        Spent("tests/worlds/test_cancel.py", "slow", 5.0),
    ]
    words = [line.split() for line in table_of_times(spent)]
    assert words[0] == ["seconds", "fast", "slow", "all"]
    assert words[1] == ["tests/worlds", "0", "65", "65"]
    assert words[2] == ["tests/core", "10", "20", "30"]
    assert words[3] == ["all", "10", "85", "95"]
    assert words[5] == ["tests/worlds/test_cluster.py", "60"]


def test_a_short_run_says_nothing():
    assert table_of_times([Spent("tests/core/test_tree.py", "fast", 59.0)]) == []
