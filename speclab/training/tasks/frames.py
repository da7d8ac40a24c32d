"""Generates tasks from frames, which are texts with slots in ``data/corpus/*.toml``.

A frame names the tables and lists that fill its slots. Question and answer use the same
slots, so the prompt determines the answer. Two slots from one list always differ.

A table may contain ``held_out_rows``, and a file ``held_out_lists``. In tasks that
training must not draw, they replace the other rows and lists.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from speclab.training.tasks.tasks import Task, data, fill_template

FILES = ("writing", "knowledge", "reading")


class Frame(NamedTuple):
    """A frame, and the file that contains its tables and lists."""

    file: str
    keys: dict[str, Any]


def all_frames() -> list[Frame]:
    """The frames of all files."""
    frames = []
    for file in FILES:
        for keys in data(file)["frames"]:
            frames.append(Frame(file, keys))
    return frames


def categories() -> list[str]:
    """The categories for which there are frames."""
    return sorted({frame.keys["category"] for frame in all_frames()})


def draw(rng: random.Random, frame: Frame, held_out: bool = False) -> dict[str, Any]:
    """Draws values for all slots of a frame.

    ``held_out``: from its held-out rows and lists, where there are any. ``{Slot}`` is
    ``{slot}`` with a capital first letter.
    """
    slots: dict[str, Any] = {}
    _draw_rows(rng, frame, slots, held_out)
    _draw_words(rng, frame, slots, held_out)
    for slot, (low, high) in frame.keys.get("numbers", {}).items():
        slots[slot] = rng.randint(low, high)

    capitalised = {}
    for slot, value in slots.items():
        if isinstance(value, str):
            capitalised[_capitalise(slot)] = _capitalise(value)
    return {**capitalised, **slots}


def _draw_rows(
    rng: random.Random, frame: Frame, slots: dict[str, Any], held_out: bool
) -> None:
    """Draws a row of every table into slots <prefix>_<column>, never the same twice."""
    tables = frame.keys.get("tables", {})
    for prefix, name in tables.items():
        table = data(frame.file)["tables"][name]
        rows = table["rows"]
        if held_out:
            rows = table.get("held_out_rows", rows)
        first_column = table["columns"][0]
        taken = {slots.get(f"{other}_{first_column}") for other in tables}
        free_rows = [row for row in rows if row[0] not in taken]
        row = rng.choice(free_rows)
        for column, value in zip(table["columns"], row, strict=True):
            slots[f"{prefix}_{column}"] = value


def _draw_words(
    rng: random.Random, frame: Frame, slots: dict[str, Any], held_out: bool
) -> None:
    """Draws a word from every list, without repeating another slot's word."""
    for slot, name in frame.keys.get("lists", {}).items():
        words = data(frame.file)["lists"][name]
        if held_out:
            words = data(frame.file).get("held_out_lists", {}).get(name, words)
        taken = list(slots.values())
        slots[slot] = rng.choice([word for word in words if word not in taken])


def _capitalise(text: str) -> str:
    """``text`` with a capital first letter and otherwise unchanged."""
    return text[:1].upper() + text[1:]


def task(rng: random.Random, category: str, held_out: bool = False) -> Task:
    """A task of ``category``, from a frame drawn at random.

    ``held_out``: use rows and lists that training never draws from, if the frame has
    any.
    """
    frames = [frame for frame in all_frames() if frame.keys["category"] == category]
    frame = rng.choice(frames)
    slots = draw(rng, frame, held_out)

    turns = []
    for question, answer in frame.keys["turns"]:
        asked = fill_template(rng, question, slots)
        answered = fill_template(rng, answer.strip(), slots)
        turns.append((asked, answered))
    facts = {"answer": turns[0][1]} if len(turns) == 1 else {}
    return Task(category, tuple(turns), facts)
