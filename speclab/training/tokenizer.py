"""The embedded models' tokenizer, and batches of token ids for training.

The tokenizer is a byte-level BPE in which every digit is a token, with one chat
template. A dialogue is written
`<|bos|><|user|>question<|assistant|>answer<|eos|><|user|>...`. Code is `<|bos|>`
followed by the raw text. Plain text is encoded with `<|bos|>` in front, as in Llama's
tokenizer.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

from speclab.training.tasks import code, corpus
from speclab.training.tasks.tasks import Task
from speclib.atomic_files import whole_files, write_atomically

VOCABULARY = 4096
SPECIAL = ["<|pad|>", "<|bos|>", "<|eos|>", "<|user|>", "<|assistant|>"]
PAD, BOS, EOS, USER, ASSISTANT = range(len(SPECIAL))  # their ids
# Combining marks (Thai, Bengali and Telugu vowels) stay with letters; digits are split.
PIECE = r" ?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s+"
# Without a limit, whole sentences of Thai, Japanese or Chinese could become tokens,
# because these languages are written without spaces.
LONGEST = 18
# Questions are random, so learning to predict them would not help.
PROMPT_WEIGHT = 0.2
LIBRARY_SHARE = 0.03  # the share of documents that are real code
LIBRARY_CHARACTERS = 1_500_000
TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}"
    "{% if message.role == 'user' %}"
    "<|user|>{{ message.content }}"
    "{% elif message.role == 'assistant' %}"
    "<|assistant|>{{ message.content }}{{ eos_token }}"
    "{% else %}"
    "{{ raise_exception('only the roles user and assistant are known') }}"
    "{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


class Document(NamedTuple):
    """The ids of a text, and the weight of each in the loss."""

    ids: list[int]
    weights: list[float]


def train(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Trains a tokenizer with VOCABULARY tokens on `texts`."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECE), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=LONGEST,
    )
    bpe.train_from_iterator(texts, trainer)
    bpe.post_processor = processors.TemplateProcessing(
        single=f"{SPECIAL[BOS]} $A",
        pair=f"{SPECIAL[BOS]} $A $B",
        special_tokens=[(SPECIAL[BOS], BOS)],
    )

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        bos_token=SPECIAL[BOS],
        eos_token=SPECIAL[EOS],
        pad_token=SPECIAL[PAD],
        extra_special_tokens=[SPECIAL[USER], SPECIAL[ASSISTANT]],
        model_max_length=2048,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def save(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Writes the tokenizer's files, without spaces: that halves the largest file."""
    with whole_files(folder) as part:
        tokenizer.save_pretrained(part)
        path = part / "tokenizer.json"
        content = json.loads(path.read_text(encoding="utf-8"))
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        write_atomically(path, f"{text}\n")


class Writer:
    """Turns tasks into token ids, each with its weight in the loss."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        self.bpe = tokenizer.backend_tokenizer

    def ids(self, text: str) -> list[int]:
        """The ids of a text, without special tokens."""
        return self.bpe.encode(text, add_special_tokens=False).ids

    def _question(self, task: Task, text: str) -> list[int]:
        """The ids of a question; a dialogue adds the special tokens around it."""
        question = self.ids(text)
        if task.raw:
            return question
        return [USER, *question, ASSISTANT]

    def prompt(self, task: Task) -> list[int]:
        """The ids of a model's input: everything before the first answer."""
        question, _answer = task.turns[0]
        return [BOS, *self._question(task, question)]

    def document(self, task: Task) -> Document:
        """All ids of a task; answers have weight 1, everything else PROMPT_WEIGHT."""
        ids = [BOS]
        weights = [PROMPT_WEIGHT]
        for question, answer in task.turns:
            question_ids = self._question(task, question)
            answer_ids = [*self.ids(answer), EOS]
            ids += question_ids + answer_ids
            weights += [PROMPT_WEIGHT] * len(question_ids)
            weights += [1.0] * len(answer_ids)
        return Document(ids, weights)

    def plain(self, text: str) -> Document:
        """All ids of a text that is not a task; every weight is 1."""
        ids = [BOS, *self.ids(text), EOS]
        return Document(ids, [1.0] * len(ids))


def texts(tasks: Iterator[Task], count: int) -> Iterator[str]:
    """The texts of `count` tasks, for training a tokenizer."""
    for _ in range(count):
        for question, answer in next(tasks).turns:
            yield question
            yield answer


def documents(
    writer: Writer, seed: int, weight: dict[str, int] = corpus.WEIGHT
) -> Iterator[Document]:
    """An endless stream of tasks, with an occasional piece of real code.

    weight: the relative frequency of each category (see `corpus.tasks`).
    """
    rng = random.Random(seed + 1)
    tasks = corpus.tasks(seed, weight)
    pieces = code.library(rng, LIBRARY_CHARACTERS)
    while True:
        if rng.random() < LIBRARY_SHARE:
            yield writer.plain(rng.choice(pieces))
        else:
            yield writer.document(next(tasks))


def batches(
    stream: Iterator[Document], size: int, length: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Endless batches: ids [size, length] int64 and weights [size, length] float32.

    Every row begins with a new document, so position 0 always begins a text. A document
    that does not fit is cut at the end of its row.
    """
    while True:
        rows = [_row(stream, length) for _ in range(size)]
        ids = torch.tensor([row.ids for row in rows])
        weights = torch.tensor([row.weights for row in rows])
        yield ids, weights


def _row(stream: Iterator[Document], length: int) -> Document:
    """Consecutive documents, cut to `length` tokens."""
    ids: list[int] = []
    weights: list[float] = []
    while len(ids) < length:
        document = next(stream)
        ids += document.ids
        weights += document.weights
    return Document(ids[:length], weights[:length])
