"""A long run shows nothing at first, then plain lines."""

from __future__ import annotations

from speclab.progress import Progress


def test_progress_is_silent_for_two_seconds_then_plain_lines(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr("speclab.progress.time.monotonic", lambda: now[0])
    with Progress("cells", 3) as bar:
        bar.step("one")
        assert capsys.readouterr().out == ""
        now[0] = 3.0
        bar.step("two")
        bar.grow(1)
        bar.step("three")
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["cells: 2 of 3, 3 s  two", "cells: 3 of 4, 3 s  done"]
