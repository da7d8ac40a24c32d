"""The zoo's tokenizer: byte-level BPE, every digit its own token, one chat template.

A dialogue is written `<|bos|><|user|>question<|assistant|>answer<|eos|><|user|>...`; code is
`<|bos|>` and the raw text. Encoding a plain text puts `<|bos|>` in front, as Llama's does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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

from speclib.data.training_tasks.tasks import Task

VOCABULARY = 4096
BOS, EOS, USER, ASSISTANT, PAD = (
    "<|bos|>",
    "<|eos|>",
    "<|user|>",
    "<|assistant|>",
    "<|pad|>",
)
SPECIAL = [PAD, BOS, EOS, USER, ASSISTANT]
# Marks belong to their letters (Thai, Bengali and Telugu vowels), digits stand alone.
PIECE = r" ?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s+"
# Thai, Japanese and Chinese have no spaces: without a limit whole sentences become tokens.
LONGEST = 18
PROMPT_WEIGHT = (
    0.2  # questions are drawn at random: learning to predict them helps nobody
)
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message.role == 'user' %}" + USER + "{{ message.content }}"
    "{% elif message.role == 'assistant' %}"
    + ASSISTANT
    + "{{ message.content }}{{ eos_token }}"
    "{% else %}{{ raise_exception('only the roles user and assistant are known') }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}" + ASSISTANT + "{% endif %}"
)


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
    bpe.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=SPECIAL,
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            max_token_length=LONGEST,
        ),
    )
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


class Writer:
    """Turns tasks into token ids with a loss weight for each."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        self.bpe = tokenizer.backend_tokenizer
        self.bos, self.eos, self.user, self.assistant = (
            self.bpe.token_to_id(name) for name in (BOS, EOS, USER, ASSISTANT)
        )

    def ids(self, text: str) -> list[int]:
        return self.bpe.encode(text, add_special_tokens=False).ids

    def prompt(self, task: Task) -> list[int]:
        """The ids a model is given: everything before the first answer."""
        question = self.ids(task.turns[0][0])
        return [
            self.bos,
            *(question if task.raw else [self.user, *question, self.assistant]),
        ]

    def document(self, task: Task) -> tuple[list[int], list[float]]:
        """All ids of a task and their weights: 1 for answers, PROMPT_WEIGHT for the rest."""
        ids, weights = [self.bos], [PROMPT_WEIGHT]
        for question, answer in task.turns:
            asked = self.ids(question)
            asked = asked if task.raw else [self.user, *asked, self.assistant]
            said = [*self.ids(answer), self.eos]
            ids += asked + said
            weights += [PROMPT_WEIGHT] * len(asked) + [1.0] * len(said)
        return ids, weights

    def plain(self, text: str) -> tuple[list[int], list[float]]:
        ids = [self.bos, *self.ids(text), self.eos]
        return ids, [1.0] * len(ids)


def texts(tasks: Iterator[Task], count: int) -> Iterator[str]:
    """The texts of `count` tasks, for training a tokenizer."""
    for _ in range(count):
        for question, answer in next(tasks).turns:
            yield question
            yield answer
