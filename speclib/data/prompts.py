"""Prompts of every task, ours by name and the official benchmark files from a folder.

The official formats are HumanEval (json lines with `prompt`, `test`), GSM8K (json lines with
`question`, `answer`), MGSM (tab-separated question and answer), MT-bench and Spec-Bench (json
lines with `question_id`, `category`, `turns`). A HumanEval prompt is raw code and the model
continues the function (`Prompt.text`); everything else is a chat (`Prompt.messages`).

`Prompt.input` is the one of the two that `speclib.decode` takes. This module does not know how a
chat becomes tokens (the tokenizer's chat template does) nor whether an answer is right.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from speclib.errors import SpeclibError
from speclib.paths import DATA

FOLDER = DATA / "prompts"
LANGUAGES = ("bn", "de", "en", "es", "fr", "ja", "ru", "sw", "te", "th", "zh")
MT_BENCH = (
    "writing",
    "roleplay",
    "reasoning",
    "math",
    "coding",
    "extraction",
    "stem",
    "humanities",
)
SPEC_BENCH = ("translation", "summarization", "qa", "rag")
MATH_REASONING = "math_reasoning"  # Spec-Bench's GSM8K part; ours is the task gsm8k


@dataclass(frozen=True)
class Prompt:
    """One prompt of `task`: raw `text` for code, else the user's `turns` in order.

    `reference` is the official answer where there is one; `facts` keeps the other official
    fields (HumanEval: `entry_point`, `test`).
    """

    task: str
    id: str
    text: str | None = None
    turns: tuple[str, ...] = ()
    reference: str | None = None
    facts: dict = field(default_factory=dict, compare=False)

    @property
    def messages(self) -> list[dict[str, str]]:
        """The chat up to the first question; empty for code."""
        return self.after()

    @property
    def input(self) -> str | list[dict[str, str]]:
        """What `speclib.decode` takes: the raw text, or the chat messages."""
        return self.text if self.text is not None else self.messages

    def after(self, *replies: str) -> list[dict[str, str]]:
        """The chat up to the question that follows `replies`, the model's earlier answers."""
        if self.text is not None:
            return []
        if len(replies) >= len(self.turns):
            raise SpeclibError(
                f"prompt {self.id} of {self.task} has {len(self.turns)} turn(s); "
                f"{len(replies)} replies leave none to ask: pass fewer replies"
            )
        said = [
            text for pair in zip(self.turns, replies, strict=False) for text in pair
        ]
        said.append(self.turns[len(replies)])
        roles = ("user", "assistant")
        return [{"role": roles[i % 2], "content": text} for i, text in enumerate(said)]


def tasks() -> tuple[str, ...]:
    """Names of all tasks with prompts of ours; `mt_bench` is its eight categories together."""
    mgsm = (f"mgsm_{language}" for language in LANGUAGES)
    return ("humaneval", "gsm8k", *mgsm, "mt_bench", *MT_BENCH, *SPEC_BENCH)


def load(
    name: str | os.PathLike,
    n: int | None = None,
    folder: str | os.PathLike | None = None,
) -> tuple[Prompt, ...]:
    """The first `n` prompts (all by default) of a task, or of a file in an official format.

    `folder` holds the official files (HumanEval.jsonl.gz, gsm8k_test.jsonl, mgsm/mgsm_<lang>.tsv,
    spec_bench_question.jsonl); without it a task name means ours. Raises SpeclibError for an
    unknown name, a missing file, a malformed line (with its number), or fewer than `n` prompts.
    """
    categories = None
    if str(name) in (*tasks(), MATH_REASONING):
        path, categories = locate(str(name), folder)
    else:
        path = Path(name)
        if not path.suffix and not path.exists():
            raise SpeclibError(
                f"unknown task {str(name)!r}: known are {', '.join(tasks())}; "
                "or pass the path of a file in an official format"
            )
    found = tuple(p for p in read(path) if categories is None or p.task in categories)
    if n is not None and not 1 <= n <= len(found):
        raise SpeclibError(
            f"asked for n={n} prompts of {name}, {path} holds {len(found)}: "
            f"choose 1 to {len(found)}"
        )
    return found[:n]


def locate(
    task: str, folder: str | os.PathLike | None
) -> tuple[Path, tuple[str, ...] | None]:
    """The file of a task, and the categories to keep of it (None: all)."""
    categories = MT_BENCH if task == "mt_bench" else (task,)
    if folder is None:
        if task == MATH_REASONING:
            raise SpeclibError(
                f"{task} is Spec-Bench's own file only: pass folder=, or use gsm8k"
            )
        name = f"{task}.tsv" if task.startswith("mgsm") else f"{task}.jsonl"
        return FOLDER / ("mt_bench.jsonl" if task in MT_BENCH else name), categories
    if task.startswith("mgsm"):
        return Path(folder) / "mgsm" / f"{task}.tsv", None
    name = {"humaneval": "HumanEval.jsonl.gz", "gsm8k": "gsm8k_test.jsonl"}
    return Path(folder) / name.get(task, "spec_bench_question.jsonl"), categories


def read(path: str | os.PathLike) -> Iterator[Prompt]:
    """All prompts of a file; the format follows from its ending and from the keys of each line."""
    path = Path(path)
    parse = parse_tsv if path.suffix == ".tsv" else parse_json
    empty = True
    for number, line in lines(path):
        if not line.strip():
            continue
        empty = False
        try:
            yield parse(path, number, line)
        except ValueError as error:
            raise SpeclibError(f"{path}, line {number}: {error}") from error
    if empty:
        raise SpeclibError(f"{path} holds no prompts: expected one per line")


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file, plain or gzipped, in UTF-8."""
    number = 0
    try:
        with (gzip.open if path.suffix == ".gz" else open)(
            path, "rt", encoding="utf-8"
        ) as file:
            for number, line in enumerate(file, 1):
                yield number, line.rstrip("\r\n")
    except FileNotFoundError as error:
        raise SpeclibError(
            f"no prompt file {path}: ours are in {FOLDER}, `make data` fetches the "
            "official ones"
        ) from error
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError) as error:
        raise SpeclibError(
            f"{path}, after line {number}: cannot be read ({error}); expected "
            "UTF-8 text, gzipped if it ends in .gz: fetch it again"
        ) from error


def parse_tsv(path: Path, number: int, line: str) -> Prompt:
    """One MGSM line: the question, a tab, the answer as a number."""
    fields = line.split("\t")
    if len(fields) != 2 or not fields[0]:
        raise ValueError(
            f"expected 'question<tab>number', found {len(fields)} field(s)"
        )
    digits = fields[1].strip().replace(",", "").replace("-", "", 1).replace(".", "", 1)
    if not digits.isdigit():
        raise ValueError(f"expected a number after the tab, found {fields[1]!r}")
    return Prompt(
        path.stem, f"{path.stem}/{number}", turns=(fields[0],), reference=fields[1]
    )


def parse_json(path: Path, number: int, line: str) -> Prompt:
    """One line of HumanEval, GSM8K, MT-bench or Spec-Bench."""
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"not a JSON object ({error.msg} at column {error.colno})"
        ) from error
    if not isinstance(row, dict):
        raise ValueError(f"expected a JSON object, found {type(row).__name__}")
    if "prompt" in row or "task_id" in row:
        texts(row, "task_id", "prompt", "canonical_solution", "test", "entry_point")
        facts = {key: row[key] for key in ("entry_point", "test")}
        return Prompt(
            "humaneval",
            row["task_id"],
            text=row["prompt"],
            reference=row["canonical_solution"],
            facts=facts,
        )
    if "question" in row:
        texts(row, "question", "answer")
        if "####" not in row["answer"]:
            raise ValueError("expected an answer that ends with '#### number'")
        return Prompt(
            "gsm8k",
            f"gsm8k/{number}",
            turns=(row["question"],),
            reference=row["answer"],
        )
    if "turns" in row:
        return parse_dialogue(row)
    raise ValueError(
        f"expected the keys of HumanEval (task_id, prompt), GSM8K (question, answer) "
        f"or MT-bench (question_id, category, turns), found {sorted(row)}"
    )


def parse_dialogue(row: dict) -> Prompt:
    """One line of MT-bench or Spec-Bench."""
    texts(row, "category")
    turns = row["turns"]
    if (
        not isinstance(turns, list)
        or not turns
        or not all(isinstance(t, str) for t in turns)
    ):
        raise ValueError(
            f"expected 'turns' to be a list of texts, found {str(turns)[:60]!r}"
        )
    if "question_id" not in row:
        raise ValueError("expected the key 'question_id'")
    reference = row.get("reference") or [None]
    reference = reference if isinstance(reference, str) else reference[0]
    return Prompt(
        row["category"],
        str(row["question_id"]),
        turns=tuple(turns),
        reference=reference,
    )


def texts(row: dict, *keys: str) -> None:
    """Check that every key is there and holds a text."""
    for key in keys:
        if not isinstance(row.get(key), str):
            found = f"{type(row[key]).__name__}" if key in row else "no such key"
            raise ValueError(f"expected {key!r} to be a text, found {found}")
