"""Writes the files that accompany the embedded models: cards and checksums.

A card is JSON. ``data/models/README.md`` explains its figures.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, TypeAlias

from speclib.atomic_files import write_atomically
from speclib.paths import DATA

MODELS = DATA / "models"
MODEL, HEAD = "card.json", "eagle.json"  # the cards of a model and of its EAGLE head

Card: TypeAlias = dict[str, Any]


def write(name: str, card: Card, file: str = MODEL) -> None:
    """Writes a card into the folder of the checkpoint ``name``."""
    text = json.dumps(card, indent=1, ensure_ascii=False) + "\n"
    write_atomically(MODELS / name / file, text)


def read(name: str) -> Card:
    """The card of a checkpoint."""
    card: Card = json.loads((MODELS / name / MODEL).read_text(encoding="utf-8"))
    return card


def write_checksums() -> None:
    """Writes `data/models/SHA256SUMS` over all files of all checkpoints."""
    lines = []
    for path in sorted(MODELS.glob("*/*")):
        if path.is_file():
            name = path.relative_to(MODELS).as_posix()
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            lines.append(f"{digest}  {name}")
    write_atomically(MODELS / "SHA256SUMS", "\n".join(lines) + "\n")
