"""Cards of the embedded models and their checksums, written from what a run measured."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from .fit import Shape
from .folders import MODELS

DATA = """Generated task text (`data/corpus`, `speclib/models/training`): functions in HumanEval's
format, arithmetic stories in eleven languages, MT-bench's eight categories in two turns,
translation, summarisation, question answering and answering from passages; and three per cent of
documents from the Python standard library's source. No prompt of `data/prompts` is among it."""
UNITS = """All seeds follow from `--seed` (0 if not given). Losses are in nats per token, means of
the last 50 steps, questions weighted 0.2 and answers 1; a draft's loss is its divergence from the
target plus half the cross-entropy against the target's most likely token."""

TOKENIZER = {
    "qwen2": """The tokenizer is the target's. Of transformers, `PreTrainedTokenizerFast`
loads it; `AutoTokenizer` keeps the tokens but cuts words as Qwen2's own does."""
}


def parameters(shape: Shape, vocabulary: int) -> int:
    """Parameters of a network of this shape with tied embeddings."""
    w, inner = shape.width, shape.heads * 64
    biases = 3 * inner if shape.family == "qwen2" else 0
    layer = 4 * w * inner + biases + 3 * w * shape.ffn + 2 * w
    return vocabulary * w + w + shape.layers * layer


def table(values: dict[str, object], head: tuple[str, str]) -> str:
    rows = [head, ("---", "---"), *((key, str(value)) for key, value in values.items())]
    return "\n".join(f"| {left} | {right} |" for left, right in rows)


def write(
    name: str,
    title: str,
    shape: Shape,
    vocabulary: int,
    runs: dict[str, dict],
    command: str,
    acceptance: dict[str, float] | None = None,
    teacher: str | None = None,
) -> None:
    """Write `card.md` and `card.json` of the checkpoint `name`. `runs`: the fits' summaries;
    `teacher`: the checkpoint a draft was distilled from, which `acceptance` is by."""
    facts = {
        "architecture": shape.family,
        "layers": shape.layers,
        "width": shape.width,
        "heads": shape.heads,
        "feed-forward width": shape.ffn,
        "head_dim": 64,
        "vocabulary": vocabulary,
        "parameters": f"{parameters(shape, vocabulary):,}",
        "stored as": "bfloat16",
    }
    parts = [
        f"# {title}",
        f"Made by `{command}`.",
        DATA,
        UNITS,
        table(facts, ("shape", "value")),
    ]
    parts += [TOKENIZER[shape.family]] if shape.family in TOKENIZER else []
    for run, values in runs.items():
        parts.append(f"## {run}\n\n" + table(values, ("figure", "value")))
    if acceptance:
        parts.append(
            f"## Acceptance\n\nBy zoo/{teacher}, which it was distilled from. Greedy, in "
            "float32, twelve shipped prompts per task, up to 96 new tokens each: the "
            "share of positions along the target's own output where the draft's most "
            "likely token is the target's.\n\n"
            + table(acceptance, ("task", "accepted / tested"))
        )
    (MODELS / name / "card.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    row = {
        "shape": [shape.layers, shape.width, shape.heads, shape.ffn],
        "architecture": shape.family,
        "command": command,
        "runs": runs,
        "acceptance": acceptance or {},
        **({"teacher": teacher} if teacher else {}),
    }
    text = json.dumps(row, indent=1, ensure_ascii=False) + "\n"
    (MODELS / name / "card.json").write_text(text, encoding="utf-8")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def checksums() -> None:
    """Write `data/models/SHA256SUMS` over all files of all checkpoints."""
    files = sorted(path for path in MODELS.glob("*/*") if path.is_file())
    lines = [f"{digest(path)}  {path.relative_to(MODELS).as_posix()}" for path in files]
    (MODELS / "SHA256SUMS").write_text("\n".join(lines) + "\n")


def run_of(name: str) -> dict:
    """The card of a checkpoint as data."""
    return json.loads(Path(MODELS / name / "card.json").read_text(encoding="utf-8"))
