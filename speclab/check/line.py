"""Test cases for a rule that tests drafts in a line.

Such a rule is called as ``rule(drafted, q, p, coin)``:

    drafted   a list of gamma tokens
    q         [gamma, V], the draft's rows (distributions), from which the drafts were
              drawn or chosen
    p         [gamma + 1, V], the target's rows; the last row follows all drafts
    coin      coin() returns a new random number in [0, 1)

and returns the committed tokens: the accepted drafts and one more token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from speclab.check.case import (
    Array,
    Case,
    Model,
    chances,
    drawn_from,
    model_of,
    random_models,
)
from speclib.core.sampling import Row, Tokens


@dataclass(frozen=True)
class LineCase(Case[Tokens]):
    """A draft and a target model, and a draft length."""

    gamma: int

    @property
    def longest(self) -> int:
        return self.gamma + 1

    def proposals(self) -> Iterator[tuple[Tokens, float]]:
        """Every possible draft, with its probability."""
        for tokens in product(range(self.vocab), repeat=self.gamma):
            probability = 1.0
            for position, token in enumerate(tokens):
                probability *= float(self._chances(tokens[:position])[token])
            if probability > 0:
                yield tokens, probability

    def sample(self, random: np.random.Generator) -> Tokens:
        drafted: Tokens = ()
        for _ in range(self.gamma):
            drafted += (drawn_from(self._chances(drafted), random),)
        return drafted

    def _chances(self, tokens: Tokens) -> Row:
        """The probability that each token is drafted after ``tokens``."""
        return chances(self.draft[tokens], self.choice)

    def tokens_of(self, proposal: Tokens) -> Tokens:
        return proposal

    def arguments(self, proposal: Tokens, array: Array) -> tuple[Any, ...]:
        q, p = self.q_rows(proposal), self.p_rows(proposal)
        return list(proposal), array(np.stack(q)), array(np.stack(p))

    def q_rows(self, drafted: Tokens) -> list[Row]:
        """The draft's distribution at each drafted token."""
        return [self.draft[drafted[:position]] for position in range(self.gamma)]

    def p_rows(self, drafted: Tokens) -> list[Row]:
        """The target's distribution at each drafted token, and after the last one."""
        return [self.target[drafted[:position]] for position in range(self.gamma + 1)]

    def best_rates(self) -> dict[str, float]:
        return {
            "token by token": self.most_tokens,
            "by whole blocks": self.most_tokens_of_a_block,
        }

    @cached_property
    def most_tokens(self) -> float:
        """The most tokens per pass, on average, if drafts are tested one by one.

        Each draft is then accepted with probability sum(min(p, q)).
        """
        return 1.0 + self._accepted_after(())

    def _accepted_after(self, tokens: Tokens) -> float:
        """The mean number of drafts accepted after ``tokens``."""
        if len(tokens) == self.gamma:
            return 0.0
        shared = np.minimum(self._chances(tokens), self.target[tokens])
        mean = 0.0
        for token in range(self.vocab):
            mean += float(shared[token]) * (1 + self._accepted_after((*tokens, token)))
        return mean

    @cached_property
    def most_tokens_of_a_block(self) -> float:
        """The most tokens per pass, on average, of any lossless rule.

        A rule that sees all drafts before it decides can accept a prefix as often as
        both models allow: at most as often as the draft proposes it, and at most as
        often as the prefix without its last token is accepted and the target would then
        write that token.

        Source: Sun et al. 2024, "Block Verification Accelerates Speculative Decoding".
        """
        return 1.0 + self._accepted_in_a_block((), 1.0, 1.0)

    def _accepted_in_a_block(
        self, tokens: Tokens, accepted: float, proposed: float
    ) -> float:
        """The mean number of drafts accepted after ``tokens``.

        ``tokens`` are proposed with probability ``proposed``, and accepted with
        probability ``accepted``, which is not larger.
        """
        if len(tokens) == self.gamma:
            return 0.0
        mean = 0.0
        for token in range(self.vocab):
            proposed_too = proposed * float(self._chances(tokens)[token])
            accepted_too = accepted * float(self.target[tokens][token])
            both = min(proposed_too, accepted_too)
            if both > 0:
                longer = (*tokens, token)
                mean += both + self._accepted_in_a_block(longer, both, proposed_too)
        return mean


# -- the cases, smallest first ---------------------------------------------------------
def line_case(
    name: str,
    gamma: int,
    draft: Mapping[Tokens, tuple[float, ...]],
    target: Mapping[Tokens, tuple[float, ...]],
) -> LineCase:
    """A case with explicit models."""
    return LineCase(name, model_of(draft), model_of(target), gamma)


def random_line(
    name: str, vocab: int, gamma: int, seed: int, steepness: int = 1
) -> LineCase:
    """A case with random models; a higher ``steepness`` makes some tokens very rare."""
    parts = 100 if steepness == 1 else 1000
    draft, target = random_models(vocab, gamma, seed, steepness, parts)
    return LineCase(name, draft, target, gamma)


def certain(choices: Mapping[Tokens, int], vocab: int) -> Model:
    """A deterministic model: one token has probability 1 after each text."""
    return {text: np.eye(vocab)[token] for text, token in choices.items()}


TWO_TOKENS = line_case(
    "two tokens, one of them drafted",
    gamma=1,
    draft={(): (0.5, 0.5), (0,): (0.5, 0.5), (1,): (0.5, 0.5)},
    target={(): (0.8, 0.2), (0,): (0.3, 0.7), (1,): (0.9, 0.1)},
)
NEVER = line_case(
    "a token that the target never writes",
    gamma=1,
    draft={
        (): (0.3, 0.3, 0.4),
        (0,): (0.3, 0.3, 0.4),
        (1,): (0.2, 0.5, 0.3),
        (2,): (0.1, 0.1, 0.8),
    },
    target={
        (): (0.6, 0.4, 0.0),
        (0,): (0.0, 0.5, 0.5),
        (1,): (1.0, 0.0, 0.0),
        (2,): (0.2, 0.3, 0.5),
    },
)
GREEDY = line_case(
    "greedy: each model is certain of its token",
    gamma=1,
    draft={(): (0.0, 1.0), (0,): (1.0, 0.0), (1,): (1.0, 0.0)},
    target={(): (1.0, 0.0), (0,): (0.0, 1.0), (1,): (0.0, 1.0)},
)
LIKED_ALIKE = line_case(
    "a token that both models find equally likely, among others",
    gamma=1,
    draft={
        (): (0.5, 0.3, 0.2),
        (0,): (0.3, 0.3, 0.4),
        (1,): (0.2, 0.5, 0.3),
        (2,): (0.1, 0.1, 0.8),
    },
    target={
        (): (0.5, 0.2, 0.3),
        (0,): (0.3, 0.3, 0.4),
        (1,): (0.6, 0.3, 0.1),
        (2,): (0.2, 0.3, 0.5),
    },
)
AFTER_ONE = [(), *((token,) for token in range(5))]
WIDE_RESIDUAL = line_case(
    "five tokens, with a draft that prefers one of them",
    gamma=1,
    draft=dict.fromkeys(AFTER_ONE, (0.6, 0.1, 0.1, 0.1, 0.1)),
    target=dict.fromkeys(AFTER_ONE, (0.1, 0.27, 0.25, 0.23, 0.15)),
)
CASES = (
    TWO_TOKENS,
    GREEDY,
    random_line("three tokens, one of them drafted", 3, 1, seed=1),
    NEVER,
    random_line("two tokens, two drafted", 2, 2, seed=2),
    random_line("three tokens, two drafted", 3, 2, seed=3),
    random_line("two tokens, three drafted", 2, 3, seed=4),
    LIKED_ALIKE,
    random_line("two tokens, five drafted", 2, 5, seed=5),
    # Here several tokens are left after a rejection, or some are very rare.
    WIDE_RESIDUAL,
    random_line("five tokens, one of them drafted", 5, 1, seed=6, steepness=3),
    random_line("four tokens, two drafted", 4, 2, seed=7, steepness=3),
)

# If 0 is always drafted, the ratio test writes it in 0.6 / 0.8 = 75 % of all texts.
# Source: huggingface/transformers, issue 32867.
LIKELIEST_DRAFTED = line_case(
    "two tokens, with a draft that prefers one of them",
    gamma=1,
    draft={(): (0.8, 0.2), (0,): (0.5, 0.5), (1,): (0.5, 0.5)},
    target={(): (0.6, 0.4), (0,): (0.3, 0.7), (1,): (0.9, 0.1)},
)

# For greedy decoding only: deterministic models that agree on 0, 1, 2 or 3 drafts. Each
# token comes first in some case, so a rule that always returns the same token fails.
CERTAIN_TARGET = {(): 0, (0,): 1, (0, 1): 0, (0, 1, 0): 1}


def _certain_line(vocab: int, first: int, agreed: int) -> LineCase:
    """Three drafts; the target agrees with the first ``agreed`` of them.

    ``first`` is added to every token of ``CERTAIN_TARGET``.
    """
    gamma = 3
    target = dict.fromkeys(_texts(vocab, gamma), first)
    for text, token in CERTAIN_TARGET.items():
        target[tuple((each + first) % vocab for each in text)] = (token + first) % vocab
    draft = dict(target)
    for text, token in target.items():
        if len(text) == agreed:
            draft[text] = (token + 1) % vocab
    name = f"greedy: {first} comes first; the target agrees with {agreed} of 3 drafts"
    return LineCase(name, certain(draft, vocab), certain(target, vocab), gamma)


def _texts(vocab: int, longest: int) -> Iterator[Tokens]:
    """All texts of up to ``longest`` tokens."""
    for length in range(longest + 1):
        yield from product(range(vocab), repeat=length)


GREEDY_CASES = (
    GREEDY,
    *(_certain_line(2, first, agreed) for first in range(2) for agreed in range(4)),
    *(_certain_line(3, first, agreed) for first in range(3) for agreed in range(4)),
)
