"""``python -m speclab check`` checks a rule from a user's file."""

from __future__ import annotations

import subprocess
import sys

import pytest

from speclab.__main__ import main

RULES = """
from helper import one_more
from speclib import draw

def right(drafted, q, p, coin):
    return [draw(p[0], coin())]

def wrong(drafted, q, p, coin):
    return [drafted[0]]

def raises(drafted, q, p, coin):
    return [1 / 0]

def of_a_sure_draft(drafted, q, p, coin):
    return [drafted[0]] if coin() < p[0][drafted[0]] else [1 - drafted[0]]

"""


@pytest.fixture
def rules(tmp_path):
    (tmp_path / "rules.py").write_text(RULES)
    (tmp_path / "helper.py").write_text("one_more = 1\n")
    return tmp_path / "rules.py"


def run(*words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "speclab", "check", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "name, code, says",
    [
        ("right", 0, "Lossless."),
        ("wrong", 1, "Not lossless."),
        ("raises", 2, "ZeroDivisionError in your line `return [1 / 0]`"),
    ],
)
def test_a_rule_in_a_file_is_checked_and_the_exit_code_is_the_verdict(
    rules, name, code, says
):
    ran = run(f"{rules}:{name}")
    assert (ran.returncode, ran.stderr) == (code, "")
    assert says in ran.stdout


def test_how_drafts_were_chosen_is_an_option(rules):
    two_tokens = f"{rules}:of_a_sure_draft", "--vocab", "2", "--gamma", "1"
    assert run(*two_tokens, "--drawn", "argmax").returncode == 0
    assert run(f"{rules}:wrong", "--drawn", "argmax").returncode == 1
    ran = run(f"{rules}:right", "--drawn", "nonsense")
    assert ran.returncode == 2
    assert ran.stderr == "error: drawn is 'nonsense': give 'q', 'argmax' or 'top-k'\n"


def test_options_are_checks_arguments_and_a_method_is_given_by_name(rules):
    assert (
        "8 tokens, 1 drafted"
        in run(f"{rules}:right", "--gamma", "1", "--vocab", "8").stdout
    )
    assert run("autoregressive").stdout.startswith("Lossless.")
    assert run(f"{rules}:right", "--array", "list", "--shape", "line").returncode == 0


@pytest.mark.parametrize(
    "words, says",
    [
        (("nowhere.py:rule",), "no file nowhere.py"),
        (("pearls",), "no method 'pearls'; known: "),
        (("rules.py",), "the rule is 'rules.py': write path/to/file.py:function"),
        (("RULES:rihgt",), "no 'rihgt' in"),
        (("RULES:right", "--shape", "lin"), "no shape 'lin'"),
    ],
)
def test_the_error_for_a_mistake_is_one_line_that_says_what_to_give(
    rules, words, says, monkeypatch, capsys
):
    words = [word.replace("RULES", str(rules)) for word in words]
    monkeypatch.setattr(sys, "argv", ["speclab", "check", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert says in line


@pytest.mark.parametrize(
    "top", ["raise SystemExit(0)", "import argparse; argparse.ArgumentParser().exit()"]
)
def test_a_file_that_exits_is_not_reported_as_a_lossless_rule(tmp_path, top):
    """Exit code 0 is a verdict, which the file must not be able to set."""
    (tmp_path / "script.py").write_text(f"{top}\n")
    ran = run(f"{tmp_path / 'script.py'}:rule")
    assert ran.returncode == 2
    assert "raises SystemExit" in ran.stderr


def test_a_file_does_not_see_our_arguments(tmp_path):
    rule = "def right(drafted, q, p, coin):\n    return [draw(p[0], coin())]\n"
    top = "import sys\nfrom speclib import draw\nassert len(sys.argv) == 1\n"
    (tmp_path / "script.py").write_text(top + rule)
    assert run(f"{tmp_path / 'script.py'}:right", "--gamma", "1").returncode == 0
