"""Writes the shipped prompts, `data/prompts`, in their official formats.

It is run by `python -m speclab.training prompts`.
"""

from __future__ import annotations

import json
from typing import Any

from speclab.training.tasks import corpus
from speclab.training.tasks.tasks import Task
from speclib.atomic_files import write_atomically

from .folders import PROMPTS

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


def write() -> None:
    """Writes `data/prompts`."""
    for name, text in files().items():
        write_atomically(PROMPTS / name, text)


def files() -> dict[str, str]:
    """The text of every file of `data/prompts`, by name."""
    texts = {
        "humaneval.jsonl": _humaneval(corpus.shipped("humaneval")),
        "gsm8k.jsonl": _gsm8k(corpus.shipped("gsm8k")),
    }
    for category in corpus.CATEGORIES:
        if category.startswith("mgsm"):
            texts[f"{category}.tsv"] = _mgsm(corpus.shipped(category))

    # Further prompts come last: those that were there keep their lines and numbers.
    mt_bench: list[Task] = []
    for category in MT_BENCH:
        mt_bench += corpus.shipped(category)[: corpus.FIRST]
    for category in MT_BENCH:
        mt_bench += corpus.shipped(category)[corpus.FIRST :]
    texts["mt_bench.jsonl"] = _dialogues(mt_bench, first_id=1)

    for number, category in enumerate(SPEC_BENCH, 1):
        tasks = corpus.shipped(category)
        texts[f"{category}.jsonl"] = _dialogues(tasks, first_id=1000 * number + 1)
    return texts


def _humaneval(tasks: list[Task]) -> str:
    lines = []
    for number, task in enumerate(tasks):
        prompt, solution = task.turns[0]
        row = {
            "task_id": f"speclib/{number}",
            "prompt": prompt,
            "entry_point": task.facts["entry_point"],
            "canonical_solution": solution,
            "test": task.facts["test"],
        }
        lines.append(_json_line(row))
    return "".join(lines)


def _gsm8k(tasks: list[Task]) -> str:
    lines = []
    for task in tasks:
        for question, answer in task.turns:
            lines.append(_json_line({"question": question, "answer": answer}))
    return "".join(lines)


def _mgsm(tasks: list[Task]) -> str:
    lines = []
    for task in tasks:
        question, _answer = task.turns[0]
        lines.append(f"{question}\t{task.facts['answer']}\n")
    return "".join(lines)


def _dialogues(tasks: list[Task], first_id: int) -> str:
    """MT-bench lines (two turns), or Spec-Bench lines (one turn and its reference)."""
    lines = []
    for question_id, task in enumerate(tasks, first_id):
        row: dict[str, Any] = {
            "question_id": question_id,
            "category": task.category,
            "turns": [question for question, _answer in task.turns],
        }
        if len(task.turns) == 1 or task.category in ("reasoning", "math"):
            row["reference"] = [answer for _question, answer in task.turns]
        lines.append(_json_line(row))
    return "".join(lines)


def _json_line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"
