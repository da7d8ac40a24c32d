"""Cards of the embedded models, from what their training measured; checksums."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from speclib.atomic_files import write_atomically

from .fit import HEAD_DIM, Summary, ZooArchitecture
from .folders import MODELS
from .tokenizer import VOCABULARY

TRAINING_TEXT = """\
Generated task text (`data/corpus`, `speclib/data/training_tasks`): functions in
HumanEval's format, arithmetic stories in eleven languages, MT-bench's eight categories
in two turns, translation, summarisation, question answering and answering from
passages; and three per cent of documents from the Python standard library's source. No
prompt of `data/prompts` is among it."""
UNITS = """\
All seeds follow from `--seed` (0 if not given). Losses are in nats per token, means of
the last 50 steps, questions weighted 0.2 and answers 1; a draft's loss is its
divergence from the target plus half the cross-entropy against the target's most likely
token."""
HEAD_UNITS = """\
All seeds follow from `--seed` (0 if not given). Losses are means of the last 50 steps,
questions weighted 0.2 and answers 1: smooth L1 between the features that the head
predicts and the target's own, plus a tenth of the cross-entropy between what the
target's LM head makes of both, in nats."""
HEAD_ACCEPTANCE = """\
By the target. Greedy, in float32, the first twelve shipped prompts of each task, up to
96 new tokens each: the share of positions along the target's own output where the
head's most likely token is the target's, when the head reads the target's own features.
That is the first token of a draft; those after it are drafted from the head's own
features, and fewer of them are accepted."""
AT_ONCE = """\
It writes all tokens of a window in one pass, too: behind the text it is fed a token
<|pad|> (id 0, `mask = 0` in a pair) for each but the last. Greedy, in float32, along
the target's own output on the first two shipped prompts of each task."""
QWEN2_TOKENIZER = """\
The tokenizer is the target's. Of transformers, `PreTrainedTokenizerFast` loads it;
`AutoTokenizer` keeps the tokens but cuts words as Qwen2's own does."""


@dataclass(frozen=True)
class Card:
    """What is to be known of the checkpoint `name`.

    command: what made it.
    runs: the fits' summaries, by what the card calls them.
    teacher: the checkpoint that a draft was distilled from.
    acceptance: by the teacher, for each task.
    by_place: of a draft that writes all tokens in one pass, how often the 1st, 2nd, ...
        is right where those before it are.
    """

    name: str
    architecture: ZooArchitecture
    command: str
    runs: dict[str, Summary]
    acceptance: dict[str, float] = field(default_factory=dict)
    teacher: str | None = None
    by_place: list[float] = field(default_factory=list)

    def markdown(self) -> str:
        """The text of `card.md`."""
        parts = [
            f"# zoo/{self.name}",
            f"Made by `{self.command}`.",
            TRAINING_TEXT,
            UNITS,
            _table(_facts(self.architecture), ("shape", "value")),
        ]
        if self.architecture.family == "qwen2":
            parts.append(QWEN2_TOKENIZER)
        for run, summary in self.runs.items():
            parts.append(f"## {run}\n\n" + _table(summary, ("figure", "value")))
        if self.acceptance:
            parts.append(self._acceptance_section())
        if self.by_place:
            places = {str(n): rate for n, rate in enumerate(self.by_place, 1)}
            table = _table(places, ("place", "right where those before it are"))
            parts.append(f"## In one pass\n\n{AT_ONCE}\n\n{table}")
        return "\n\n".join(parts) + "\n"

    def _acceptance_section(self) -> str:
        return (
            f"## Acceptance\n\nBy zoo/{self.teacher}, which it was distilled from. "
            "Greedy, in float32, the first twelve shipped prompts of each task, up to "
            "96 new tokens each: the share of positions along the target's own output "
            "where the draft's most likely token is the target's.\n\n"
            + _table(self.acceptance, ("task", "accepted / tested"))
        )

    def json(self) -> str:
        """The text of `card.json`."""
        sizes = self.architecture
        row: dict[str, Any] = {
            "shape": [sizes.layers, sizes.width, sizes.heads, sizes.ffn],
            "architecture": sizes.family,
            "command": self.command,
            "runs": self.runs,
            "acceptance": self.acceptance,
        }
        if self.teacher:
            row["teacher"] = self.teacher
        if self.by_place:
            row["by_place"] = self.by_place
        return json.dumps(row, indent=1, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class HeadCard:
    """What is to be known of an EAGLE head.

    target: the checkpoint that it is of, and in whose folder it lies.
    parameters: those of its own.
    command, runs: as of ``Card``.
    acceptance: of the first token of a draft, for each task.
    """

    target: str
    parameters: int
    command: str
    runs: dict[str, Summary]
    acceptance: dict[str, float]

    def markdown(self) -> str:
        """The text of `eagle.md`."""
        facts = {
            "layers": "fc, one decoder layer and a norm of the target's shape",
            "parameters": f"{self.parameters:,}",
            "stored as": "bfloat16",
        }
        parts = [
            f"# The EAGLE head of zoo/{self.target}",
            f"Made by `{self.command}`.",
            TRAINING_TEXT,
            HEAD_UNITS,
            _table(facts, ("shape", "value")),
        ]
        for run, summary in self.runs.items():
            parts.append(f"## {run}\n\n" + _table(summary, ("figure", "value")))
        acceptance = _table(self.acceptance, ("task", "accepted / tested"))
        parts.append(f"## Acceptance\n\n{HEAD_ACCEPTANCE}\n\n{acceptance}")
        return "\n\n".join(parts) + "\n"

    def json(self) -> str:
        """The text of `eagle.json`."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"


def write_head(card: HeadCard) -> None:
    """Writes `eagle.md` and `eagle.json` into the folder of the head's target."""
    folder = MODELS / card.target
    write_atomically(folder / "eagle.md", card.markdown())
    write_atomically(folder / "eagle.json", card.json())


def write(card: Card) -> None:
    """Writes `card.md` and `card.json` into the checkpoint's folder."""
    folder = MODELS / card.name
    write_atomically(folder / "card.md", card.markdown())
    write_atomically(folder / "card.json", card.json())


def read(name: str) -> dict[str, Any]:
    """The `card.json` of a checkpoint, as data."""
    text = (MODELS / name / "card.json").read_text(encoding="utf-8")
    card: dict[str, Any] = json.loads(text)
    return card


def parameters(architecture: ZooArchitecture) -> int:
    """How many parameters a network of this architecture has, its embeddings tied."""
    width = architecture.width
    heads_width = architecture.heads * HEAD_DIM
    attention = 4 * width * heads_width  # q, k, v and o
    if architecture.family == "qwen2":
        attention += 3 * heads_width  # the biases of q, k and v
    mlp = 3 * width * architecture.ffn
    norms = 2 * width
    layers = architecture.layers * (attention + mlp + norms)
    return VOCABULARY * width + width + layers


def _facts(architecture: ZooArchitecture) -> dict[str, object]:
    """The rows of a card's first table."""
    return {
        "architecture": architecture.family,
        "layers": architecture.layers,
        "width": architecture.width,
        "heads": architecture.heads,
        "feed-forward width": architecture.ffn,
        "head_dim": HEAD_DIM,
        "vocabulary": VOCABULARY,
        "parameters": f"{parameters(architecture):,}",
        "stored as": "bfloat16",
    }


def _table(values: Mapping[str, object], head: tuple[str, str]) -> str:
    """A Markdown table of two columns."""
    rows = [head, ("---", "---"), *values.items()]
    return "\n".join(f"| {left} | {right} |" for left, right in rows)


def write_checksums() -> None:
    """Writes `data/models/SHA256SUMS` over all files of all checkpoints."""
    lines = []
    for path in sorted(MODELS.glob("*/*")):
        if path.is_file():
            name = path.relative_to(MODELS).as_posix()
            lines.append(f"{_digest(path)}  {name}")
    write_atomically(MODELS / "SHA256SUMS", "\n".join(lines) + "\n")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
