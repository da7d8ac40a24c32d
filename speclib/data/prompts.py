"""The prompts of all tasks, from our own files or from the official benchmark files.

The official formats are

- HumanEval: JSON lines with ``prompt`` and ``test``
- GSM8K: JSON lines with ``question`` and ``answer``
- MGSM: a question, a tab and its answer on each line
- MT-bench and Spec-Bench: JSON lines with ``question_id``, ``category`` and ``turns``

A HumanEval prompt is raw code, which the model continues (``Prompt.text``). Everything
else is a chat. ``Prompt.input`` is what to pass to ``speclib.decode``.

This module knows neither how a chat becomes tokens (that is the tokenizer's chat
template's job) nor whether an answer is right.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from speclib.errors import BadValue, unknown_name
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
MATH_REASONING = "math_reasoning"  # Spec-Bench's GSM8K part; we have no prompts for it
OFFICIAL_FILES = {"humaneval": "HumanEval.jsonl.gz", "gsm8k": "gsm8k_test.jsonl"}
SPEC_BENCH_FILE = "spec_bench_question.jsonl"  # contains MT-bench's questions, too


@dataclass(frozen=True)
class Prompt:
    """One prompt of ``task``: raw ``text`` for code, else the user's ``turns``.

    ``reference`` is the official answer, if any. ``facts`` are the other official
    fields (HumanEval's ``entry_point`` and ``test``).
    """

    task: str
    id: str
    text: str | None = None
    turns: tuple[str, ...] = ()
    reference: str | None = None
    facts: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def input(self) -> str | list[dict[str, str]]:
        """What to pass to ``speclib.decode``: raw text, or a chat's first question."""
        return self.text if self.text is not None else self.after()

    def after(self, *replies: str) -> list[dict[str, str]]:
        """The chat up to the question after the model's ``replies``."""
        messages = []
        for question, reply in zip(self.turns, replies, strict=False):
            messages.append({"role": "user", "content": question})
            messages.append({"role": "assistant", "content": reply})
        messages.append({"role": "user", "content": self.turns[len(replies)]})
        return messages


def tasks() -> tuple[str, ...]:
    """The names of all tasks that we have prompts for.

    ``mt_bench`` contains the prompts of its eight categories.
    """
    mgsm = [f"mgsm_{language}" for language in LANGUAGES]
    return ("humaneval", "gsm8k", *mgsm, "mt_bench", *MT_BENCH, *SPEC_BENCH)


def load(
    task: str, n: int | None = None, folder: str | os.PathLike[str] | None = None
) -> tuple[Prompt, ...]:
    """The first ``n`` prompts (None: all) of a task.

    ``folder`` contains the official files (HumanEval.jsonl.gz, gsm8k_test.jsonl,
    mgsm/mgsm_<lang>.tsv, spec_bench_question.jsonl); without it, our own are read.
    Raises SpeclibError for an unknown name, a missing file, a malformed line (with its
    number), or fewer than ``n`` prompts.
    """
    path = path_of(task, folder)
    categories = MT_BENCH if task == "mt_bench" else (task,)
    prompts = [prompt for prompt in _read(path) if prompt.task in categories]
    wanted = len(prompts) if n is None else n
    if not 1 <= wanted <= len(prompts):
        raise BadValue(
            f"asked for n={wanted} prompts of {task}, but {path} has {len(prompts)}: "
            f"choose 1 to {len(prompts)}"
        )
    return tuple(prompts[:wanted])


# -- files -----------------------------------------------------------------------------
def path_of(task: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """The file of a task: our own, or the official one in ``folder``."""
    if task not in (*tasks(), MATH_REASONING):
        raise unknown_name(f"unknown task {task!r}", task, tasks())
    is_mgsm = task.startswith("mgsm")
    if folder is not None:
        if is_mgsm:
            return Path(folder) / "mgsm" / f"{task}.tsv"
        return Path(folder) / OFFICIAL_FILES.get(task, SPEC_BENCH_FILE)
    if task in MT_BENCH:
        return FOLDER / "mt_bench.jsonl"
    return FOLDER / (f"{task}.tsv" if is_mgsm else f"{task}.jsonl")


def _read(path: Path) -> Iterator[Prompt]:
    """All prompts of a file; its extension determines the format."""
    open_file: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    number = 0
    try:
        with open_file(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                if path.suffix == ".tsv":
                    yield _prompt_of_tsv(path, number, line)
                else:
                    yield _prompt_of_json(number, json.loads(line))
    except FileNotFoundError as error:
        raise BadValue(
            f"no prompt file {path}: our own prompts are in {FOLDER}; download an "
            "official file, and give the folder it is in"
        ) from error
    except Exception as error:  # a file may be damaged in any way
        raise BadValue(
            f"{path}, near line {number}: expected a prompt of HumanEval, GSM8K, "
            f"MGSM or MT-bench in UTF-8, gzipped if the name ends in .gz ({error!r}): "
            "fetch the file again"
        ) from error


def _prompt_of_tsv(path: Path, number: int, line: str) -> Prompt:
    """One line of MGSM: the question, a tab, a number such as -1,234.5."""
    question, answer = line.rstrip("\n").split("\t")
    float(answer.replace(",", ""))  # raises ValueError if it is not a number
    name = f"{path.stem}/{number}"
    return Prompt(path.stem, name, turns=(question,), reference=answer)


def _prompt_of_json(number: int, entry: dict[str, Any]) -> Prompt:
    """One line of HumanEval, GSM8K, MT-bench or Spec-Bench."""
    if "prompt" in entry:
        return Prompt(
            "humaneval",
            entry["task_id"],
            text=entry["prompt"],
            reference=entry["canonical_solution"],
            facts={"entry_point": entry["entry_point"], "test": entry["test"]},
        )
    if "question" in entry:
        name, turns = f"gsm8k/{number}", (entry["question"],)
        return Prompt("gsm8k", name, turns=turns, reference=entry["answer"])

    answers = entry.get("reference")  # one, or one for each turn
    first = answers[0] if isinstance(answers, list) and answers else answers
    return Prompt(
        entry["category"],
        str(entry["question_id"]),
        turns=tuple(entry["turns"]),
        reference=first or None,
    )
