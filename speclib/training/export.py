"""Writes the shipped prompts in the official formats: `data/prompts`.

python -m speclib.training prompts
"""

from __future__ import annotations

import json

from speclib.data.training_tasks import corpus
from speclib.data.training_tasks.tasks import Task

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


def line(row: dict) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def humaneval(tasks: list[Task]) -> str:
    rows = []
    for number, task in enumerate(tasks):
        prompt, solution = task.turns[0]
        rows.append(
            line(
                {
                    "task_id": f"speclib/{number}",
                    "prompt": prompt,
                    "entry_point": task.facts["entry_point"],
                    "canonical_solution": solution,
                    "test": task.facts["test"],
                }
            )
        )
    return "".join(rows)


def gsm8k(tasks: list[Task]) -> str:
    rows = [{"question": q, "answer": a} for task in tasks for q, a in task.turns]
    return "".join(map(line, rows))


def mgsm(tasks: list[Task]) -> str:
    return "".join(f"{task.turns[0][0]}\t{task.facts['answer']}\n" for task in tasks)


def dialogues(tasks: list[Task], first: int) -> str:
    """MT-bench lines (two turns), or Spec-Bench lines (one turn and its reference)."""
    rows = []
    for number, task in enumerate(tasks, first):
        row = {
            "question_id": number,
            "category": task.category,
            "turns": [question for question, _ in task.turns],
        }
        if len(task.turns) == 1 or task.category in ("reasoning", "math"):
            row["reference"] = [answer for _, answer in task.turns]
        rows.append(line(row))
    return "".join(rows)


def files() -> dict[str, str]:
    """The text of every file of `data/prompts`, by name."""
    made = {"humaneval.jsonl": humaneval(corpus.shipped("humaneval"))}
    made["gsm8k.jsonl"] = gsm8k(corpus.shipped("gsm8k"))
    for name in corpus.CATEGORIES:
        if name.startswith("mgsm"):
            made[f"{name}.tsv"] = mgsm(corpus.shipped(name))
    every = [task for category in MT_BENCH for task in corpus.shipped(category)]
    made["mt_bench.jsonl"] = dialogues(every, 1)
    for number, category in enumerate(SPEC_BENCH, 1):
        made[f"{category}.jsonl"] = dialogues(
            corpus.shipped(category), 1000 * number + 1
        )
    return made


def write() -> None:
    """Write `data/prompts`."""
    PROMPTS.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (PROMPTS / name).write_text(text, encoding="utf-8")
