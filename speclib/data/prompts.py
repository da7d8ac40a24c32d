"""Prompts of every task: ours by name, and the official benchmark files from a folder.

The official formats are

- HumanEval: JSON lines with ``prompt`` and ``test``
- GSM8K: JSON lines with ``question`` and ``answer``
- MGSM: a question, a tab and its answer on each line
- MT-bench and Spec-Bench: JSON lines with ``question_id``, ``category`` and ``turns``

A HumanEval prompt is raw code, which the model continues (``Prompt.text``). Everything
else is a chat (``Prompt.messages``). ``Prompt.input`` is the one of the two that
``speclib.decode`` takes.

Knows neither how a chat becomes tokens (the tokenizer's chat template does) nor whether
an answer is right.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TextIO

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import from_json

from speclib.arguments import Whole, problems_in, shown
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
MATH_REASONING = "math_reasoning"  # Spec-Bench's GSM8K part; ours is the task gsm8k
OFFICIAL_FILES = {"humaneval": "HumanEval.jsonl.gz", "gsm8k": "gsm8k_test.jsonl"}
SPEC_BENCH_FILE = "spec_bench_question.jsonl"  # which has MT-bench's questions, too


# -- prompts ---------------------------------------------------------------------------
@dataclass(frozen=True)
class Prompt:
    """One prompt of ``task``: raw ``text`` for code, else the user's ``turns``.

    ``reference`` is the official answer where there is one. ``facts`` are the other
    official fields (of HumanEval ``entry_point`` and ``test``).
    """

    task: str
    id: str
    text: str | None = None
    turns: tuple[str, ...] = ()
    reference: str | None = None
    facts: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def messages(self) -> list[dict[str, str]]:
        """The chat up to the first question; empty for code."""
        return self.after()

    @property
    def input(self) -> str | list[dict[str, str]]:
        """What ``speclib.decode`` takes: the raw text, or the chat messages."""
        return self.text if self.text is not None else self.messages

    def after(self, *replies: str) -> list[dict[str, str]]:
        """The chat up to the question after ``replies``, which the model gave."""
        if self.text is not None:
            return []
        if len(replies) >= len(self.turns):
            raise BadValue(
                f"prompt {self.id} of {self.task} has {len(self.turns)} turn(s); "
                f"{len(replies)} replies leave none to ask: pass fewer replies"
            )
        messages = []
        for question, reply in zip(self.turns, replies, strict=False):
            messages.append({"role": "user", "content": question})
            messages.append({"role": "assistant", "content": reply})
        messages.append({"role": "user", "content": self.turns[len(replies)]})
        return messages


def tasks() -> tuple[str, ...]:
    """The names of all tasks with prompts of ours.

    ``mt_bench`` is its eight categories together.
    """
    mgsm = [f"mgsm_{language}" for language in LANGUAGES]
    return ("humaneval", "gsm8k", *mgsm, "mt_bench", *MT_BENCH, *SPEC_BENCH)


def load(
    name: str | os.PathLike[str],
    n: int | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> tuple[Prompt, ...]:
    """The first ``n`` prompts (None: all) of a task, or of an official file.

    ``folder`` holds the official files (HumanEval.jsonl.gz, gsm8k_test.jsonl,
    mgsm/mgsm_<lang>.tsv, spec_bench_question.jsonl); without it a task means ours.
    Raises SpeclibError for an unknown name, a missing file, a malformed line (with its
    number), or fewer than ``n`` prompts.
    """
    file = _find_file(name, folder)
    prompts = []
    for prompt in read(file.path):
        if file.categories is None or prompt.task in file.categories:
            prompts.append(prompt)
    if n is not None and not Whole(least=1, most=len(prompts)).allows(n):
        raise BadValue(
            f"asked for n={n} prompts of {name}, {file.path} holds {len(prompts)}: "
            f"choose 1 to {len(prompts)}"
        )
    return tuple(prompts[:n])


# -- files -----------------------------------------------------------------------------
class PromptFile(NamedTuple):
    """A file, and the categories of it that are wanted; None: all."""

    path: Path
    categories: tuple[str, ...] | None = None


def _find_file(
    name: str | os.PathLike[str], folder: str | os.PathLike[str] | None
) -> PromptFile:
    """The file of a task, or the file that ``name`` is the path of."""
    if str(name) in (*tasks(), MATH_REASONING):
        return locate(str(name), folder)
    path = Path(name)
    if not path.suffix and not path.exists():
        raise unknown_name(
            f"unknown task {str(name)!r}",
            name,
            tasks(),
            "Or give the path of a file in an official format",
        )
    return PromptFile(path)


def locate(task: str, folder: str | os.PathLike[str] | None) -> PromptFile:
    """The file of a task: ours, or the official one in ``folder``."""
    categories = MT_BENCH if task == "mt_bench" else (task,)
    if folder is not None:
        if task.startswith("mgsm"):
            return PromptFile(Path(folder) / "mgsm" / f"{task}.tsv")
        file_name = OFFICIAL_FILES.get(task, SPEC_BENCH_FILE)
        return PromptFile(Path(folder) / file_name, categories)

    if task == MATH_REASONING:
        raise BadValue(
            f"{task} is Spec-Bench's own file only: pass folder=, or use gsm8k"
        )
    if task in MT_BENCH:
        return PromptFile(FOLDER / "mt_bench.jsonl", categories)
    suffix = "tsv" if task.startswith("mgsm") else "jsonl"
    return PromptFile(FOLDER / f"{task}.{suffix}", categories)


def read(path: str | os.PathLike[str]) -> Iterator[Prompt]:
    """All prompts of a file.

    Its ending and the keys of each line say which format it is in.
    """
    path = Path(path)
    parse = _parse_tsv if path.suffix == ".tsv" else _parse_json
    is_empty = True
    for number, line in lines(path):
        if not line.strip():
            continue
        is_empty = False
        try:
            yield parse(path, number, line)
        except ValueError as error:
            raise BadValue(f"{path}, line {number}: {error}") from error
    if is_empty:
        raise BadValue(f"{path} holds no prompts: expected one per line")


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a text file, plain or gzipped, in UTF-8."""
    number = 0
    try:
        with _open_text(path) as file:
            for number, line in enumerate(file, 1):
                yield number, line.rstrip("\r\n")
    except (UnicodeDecodeError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise BadValue(
            f"{path}, after line {number}: cannot be read ({error}); expected "
            "UTF-8 text, gzipped if it ends in .gz: fetch it again"
        ) from error
    except OSError as error:
        raise BadValue(
            f"no prompt file {path} ({error.strerror}): our own prompts are in "
            f"{FOLDER}; download an official file, and give the folder it is in"
        ) from error


def _open_text(path: Path) -> TextIO:
    open_file: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    file: TextIO = open_file(path, "rt", encoding="utf-8")
    return file


# -- formats ---------------------------------------------------------------------------
def _parse_tsv(path: Path, number: int, line: str) -> Prompt:
    """One line of MGSM: the question, a tab, a number such as -1,234.5."""
    found = MGSM.fullmatch(line)
    if found is None:
        raise ValueError(f"expected 'question<tab>number', found {shown(line)}")
    question, answer = found.groups()
    name = f"{path.stem}/{number}"
    return Prompt(path.stem, name, turns=(question,), reference=answer)


def _parse_json(path: Path, number: int, line: str) -> Prompt:
    """One line of HumanEval, GSM8K, MT-bench or Spec-Bench."""
    try:
        entry = from_json(line)
    except ValueError as error:
        raise ValueError(f"not a JSON object ({error})") from error
    for key, entry_format in FORMATS.items():
        if isinstance(entry, dict) and key in entry:
            try:
                return entry_format.model_validate(entry).as_prompt(number)
            except ValidationError as error:
                raise ValueError(problems_in(error, entry_format)) from error
    raise ValueError(
        "expected the keys of HumanEval (task_id, prompt), GSM8K (question, answer) "
        f"or MT-bench (question_id, category, turns), found {shown(entry)}"
    )


class HumanEvalEntry(BaseModel):
    """A line of HumanEval."""

    task_id: str
    prompt: str
    canonical_solution: str
    test: str
    entry_point: str

    def as_prompt(self, number: int) -> Prompt:
        """The same as a prompt; ``number``: of its line."""
        return Prompt(
            "humaneval",
            self.task_id,
            text=self.prompt,
            reference=self.canonical_solution,
            facts={"entry_point": self.entry_point, "test": self.test},
        )


class Gsm8kEntry(BaseModel):
    """A line of GSM8K; its answer ends with "#### number"."""

    question: str
    answer: Annotated[str, Field(pattern="####")]

    def as_prompt(self, number: int) -> Prompt:
        """The same as a prompt; ``number``: of its line."""
        name = f"gsm8k/{number}"
        return Prompt("gsm8k", name, turns=(self.question,), reference=self.answer)


class DialogueEntry(BaseModel):
    """A line of MT-bench or Spec-Bench; it may have an answer for each turn."""

    question_id: int | str
    category: str
    turns: Annotated[tuple[str, ...], Field(min_length=1)]
    reference: Any = None

    def as_prompt(self, number: int) -> Prompt:
        """The same as a prompt; ``number``: of its line."""
        answers = self.reference
        first = answers[0] if isinstance(answers, list) and answers else answers
        return Prompt(
            self.category,
            str(self.question_id),
            turns=self.turns,
            reference=first or None,
        )


MGSM = re.compile(r"([^\t]+)\t(\s*-?[\d,]*\.?\d+\s*)")
FORMATS: dict[str, type[HumanEvalEntry | Gsm8kEntry | DialogueEntry]] = {
    "prompt": HumanEvalEntry,
    "question": Gsm8kEntry,
    "turns": DialogueEntry,
}
