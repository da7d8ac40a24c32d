"""Tasks from frames: texts with slots, in `data/corpus/*.toml`.

A frame names the rows and lists its slots are drawn from; the answer speaks of the same slots as
the question, so it can be worked out from the prompt. Two slots from one list never coincide.
"""

from __future__ import annotations

import random

from .tasks import Task, data, say

FILES = ("writing", "knowledge", "reading")


def frames(category: str) -> list[tuple[str, dict]]:
    """All frames of a category as (file, frame)."""
    every = [(file, frame) for file in FILES for frame in data(file)["frames"]]
    return [(file, frame) for file, frame in every if frame["category"] == category]


def categories() -> list[str]:
    return sorted({frame["category"] for f in FILES for frame in data(f)["frames"]})


def draw(rng: random.Random, file: str, frame: dict) -> dict:
    """Values for all slots of a frame; `{Slot}` is `{slot}` with a capital first letter."""
    slots: dict = {}
    for prefix, name in frame.get("tables", {}).items():
        table = data(file)["tables"][name]
        taken = {slots.get(f"{p}_{table['columns'][0]}") for p in frame["tables"]}
        row = rng.choice([row for row in table["rows"] if row[0] not in taken])
        slots |= {
            f"{prefix}_{column}": v
            for column, v in zip(table["columns"], row, strict=True)
        }
    for slot, name in frame.get("lists", {}).items():
        slots[slot] = rng.choice(
            [v for v in data(file)["lists"][name] if v not in slots.values()]
        )
    for slot, (low, high) in frame.get("numbers", {}).items():
        slots[slot] = rng.randint(low, high)
    capitals = {
        k[0].upper() + k[1:]: v[:1].upper() + v[1:]
        for k, v in slots.items()
        if isinstance(v, str)
    }
    return capitals | slots


def task(rng: random.Random, category: str) -> Task:
    """One task of `category` from a frame drawn at random."""
    file, frame = rng.choice(frames(category))
    slots = draw(rng, file, frame)
    turns = tuple(
        (say(rng, q, slots), say(rng, a.strip(), slots)) for q, a in frame["turns"]
    )
    facts = {"answer": turns[0][1]} if len(turns) == 1 else {}
    return Task(category, turns, facts)
