"""Cards of the embedded models, from what their training measured; checksums."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import torch

from speclib.atomic_files import write_atomically
from speclib.paths import DATA

from .fit import HEAD_DIM, Summary, ZooArchitecture, build
from .tokenizer import VOCABULARY

MODELS = DATA / "models"

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
ACCEPTANCE = (
    "Greedy, in float32, the first twelve shipped prompts of each task, up to 96 new "
    "tokens each: the share of positions along the target's own output where the "
    "draft's most likely token is the target's."
)
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
    """What is to be known of a checkpoint; the fields are those of `card.json`.

    shape: layers, width, heads and feed-forward width.
    command: what made it.
    runs: the fits' summaries, by what the card calls them.
    acceptance: by the teacher, for each task.
    teacher: the checkpoint that a draft was distilled from.
    by_place: of a draft that writes all tokens in one pass, how often the 1st, 2nd, ...
        is right where those before it are.
    """

    shape: list[int]
    architecture: str
    command: str
    runs: dict[str, Summary]
    acceptance: dict[str, float] = field(default_factory=dict)
    teacher: str | None = None
    by_place: list[float] = field(default_factory=list)

    def markdown(self, name: str) -> str:
        """The text of `card.md` of the checkpoint ``name``."""
        shape = [_table(self._facts(), ("shape", "value"))]
        if self.architecture == "qwen2":
            shape.append(QWEN2_TOKENIZER)
        measured = []
        if self.acceptance:
            how = f"By zoo/{self.teacher}, which it was distilled from. {ACCEPTANCE}"
            measured.append(_acceptance_section(how, self.acceptance))
        if self.by_place:
            places = {str(n): rate for n, rate in enumerate(self.by_place, 1)}
            table = _table(places, ("place", "right where those before it are"))
            measured.append(f"## In one pass\n\n{AT_ONCE}\n\n{table}")
        title = f"zoo/{name}"
        return _page(title, self.command, [UNITS, *shape], self.runs, measured)

    def _facts(self) -> dict[str, object]:
        """The rows of the first table."""
        layers, width, heads, ffn = self.shape
        with torch.device("meta"):
            sizes = ZooArchitecture(layers, width, heads, ffn, self.architecture)
            weights = build(sizes, seed=0).parameters()
        return {
            "architecture": self.architecture,
            "layers": layers,
            "width": width,
            "heads": heads,
            "feed-forward width": ffn,
            "head_dim": HEAD_DIM,
            "vocabulary": VOCABULARY,
            "parameters": f"{sum(weight.numel() for weight in weights):,}",
            "stored as": "bfloat16",
        }


@dataclass(frozen=True)
class HeadCard:
    """What is to be known of an EAGLE head; the fields are those of `eagle.json`.

    target: the checkpoint that it is of, and in whose folder it lies.
    parameters: its own.
    acceptance: of the first token of a draft, for each task.
    """

    target: str
    parameters: int
    command: str
    runs: dict[str, Summary]
    acceptance: dict[str, float]

    def markdown(self, name: str) -> str:
        """The text of `eagle.md` of the head of ``name``."""
        facts = {
            "layers": "fc, one decoder layer and a norm of the target's shape",
            "parameters": f"{self.parameters:,}",
            "stored as": "bfloat16",
        }
        return _page(
            f"The EAGLE head of zoo/{name}",
            self.command,
            [HEAD_UNITS, _table(facts, ("shape", "value"))],
            self.runs,
            [_acceptance_section(HEAD_ACCEPTANCE, self.acceptance)],
        )


def _page(
    title: str,
    command: str,
    about: list[str],
    runs: dict[str, Summary],
    measured: list[str],
) -> str:
    """A card in Markdown."""
    parts = [f"# {title}", f"Made by `{command}`.", TRAINING_TEXT, *about]
    for run, summary in runs.items():
        parts.append(f"## {run}\n\n" + _table(summary, ("figure", "value")))
    return "\n\n".join([*parts, *measured]) + "\n"


def _acceptance_section(how: str, acceptance: dict[str, float]) -> str:
    table = _table(acceptance, ("task", "accepted / tested"))
    return f"## Acceptance\n\n{how}\n\n{table}"


def _table(values: Mapping[str, object], head: tuple[str, str]) -> str:
    """A Markdown table of two columns."""
    rows = [head, ("---", "---"), *values.items()]
    return "\n".join(f"| {left} | {right} |" for left, right in rows)


def write(name: str, card: Card | HeadCard) -> None:
    """Writes a card's two files into the folder of the checkpoint ``name``."""
    stem = MODELS / name / ("card" if isinstance(card, Card) else "eagle")
    write_atomically(stem.with_suffix(".md"), card.markdown(name))
    write_atomically(stem.with_suffix(".json"), json_of(card))


def json_of(card: Card | HeadCard) -> str:
    """What a card says, as JSON, without what a checkpoint does not have."""
    row = asdict(card)
    said = {key: value for key, value in row.items() if value not in (None, [])}
    return json.dumps(said, indent=1, ensure_ascii=False) + "\n"


def read(name: str) -> Card:
    """The card of a checkpoint."""
    text = (MODELS / name / "card.json").read_text(encoding="utf-8")
    return Card(**json.loads(text))


def write_checksums() -> None:
    """Writes `data/models/SHA256SUMS` over all files of all checkpoints."""
    lines = []
    for path in sorted(MODELS.glob("*/*")):
        if path.is_file():
            name = path.relative_to(MODELS).as_posix()
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            lines.append(f"{digest}  {name}")
    write_atomically(MODELS / "SHA256SUMS", "\n".join(lines) + "\n")
