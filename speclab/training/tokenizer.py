"""The zoo's tokenizer: byte-level BPE, every digit its own token, one chat template.

A dialogue is written `<|bos|><|user|>question<|assistant|>answer<|eos|><|user|>...`.
Code is `<|bos|>` and the raw text. Encoding a plain text puts `<|bos|>` in front, as
Llama's tokenizer does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

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

from speclab.training.tasks.tasks import Task
from speclib.atomic_files import whole_files, write_atomically
from speclib.errors import BadValue

VOCABULARY = 4096
PAD = "<|pad|>"
BOS = "<|bos|>"
EOS = "<|eos|>"
USER = "<|user|>"
ASSISTANT = "<|assistant|>"
SPECIAL = [PAD, BOS, EOS, USER, ASSISTANT]
# Marks belong to their letters (Thai, Bengali and Telugu vowels), digits stand alone.
PIECE = r" ?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s+"
# Thai, Japanese and Chinese have no spaces: without a limit sentences become tokens.
LONGEST = 18
# Questions are drawn at random: to learn to predict them would not help.
PROMPT_WEIGHT = 0.2
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
    """A tokenizer of VOCABULARY tokens learnt from `texts`."""
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
        single=f"{BOS} $A",
        pair=f"{BOS} $A $B",
        special_tokens=[(BOS, SPECIAL.index(BOS))],
    )

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        extra_special_tokens=[USER, ASSISTANT],
        model_max_length=2048,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def save(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Writes the tokenizer's files; the large one without blanks, at half the size."""
    with whole_files(folder) as part:
        tokenizer.save_pretrained(part)
        path = part / "tokenizer.json"
        content = json.loads(path.read_text(encoding="utf-8"))
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        write_atomically(path, f"{text}\n")


class Writer:
    """Turns tasks into token ids with a loss weight for each."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        self.bpe = tokenizer.backend_tokenizer
        self.bos = self._special_id(BOS)
        self.eos = self._special_id(EOS)
        self.user = self._special_id(USER)
        self.assistant = self._special_id(ASSISTANT)

    def _special_id(self, name: str) -> int:
        token_id = self.bpe.token_to_id(name)
        if token_id is None:
            raise BadValue(
                f"the tokenizer has no token {name}: give the one of zoo/target, or "
                "train one with `python -m speclab.training target`"
            )
        return token_id

    def ids(self, text: str) -> list[int]:
        """The ids of a text alone, without any special token."""
        return self.bpe.encode(text, add_special_tokens=False).ids

    def _question(self, task: Task, text: str) -> list[int]:
        """The ids of a question, between its marks if the task is a dialogue."""
        question = self.ids(text)
        if task.raw:
            return question
        return [self.user, *question, self.assistant]

    def prompt(self, task: Task) -> list[int]:
        """The ids a model is given: everything before the first answer."""
        question, _answer = task.turns[0]
        return [self.bos, *self._question(task, question)]

    def document(self, task: Task) -> Document:
        """All ids of a task; answers weigh 1, the rest PROMPT_WEIGHT."""
        ids = [self.bos]
        weights = [PROMPT_WEIGHT]
        for question, answer in task.turns:
            question_ids = self._question(task, question)
            answer_ids = [*self.ids(answer), self.eos]
            ids += question_ids + answer_ids
            weights += [PROMPT_WEIGHT] * len(question_ids)
            weights += [1.0] * len(answer_ids)
        return Document(ids, weights)

    def plain(self, text: str) -> Document:
        """A text of its own, all of which weighs 1."""
        ids = [self.bos, *self.ids(text), self.eos]
        return Document(ids, [1.0] * len(ids))


def texts(tasks: Iterator[Task], count: int) -> Iterator[str]:
    """The texts of `count` tasks, for training a tokenizer."""
    for _ in range(count):
        for question, answer in next(tasks).turns:
            yield question
            yield answer
