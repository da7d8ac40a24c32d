"""Runs transformers' own ``generate``, and watches it from outside.

We record what ``generate`` decodes, when, and in how many passes: hooks on the networks
count forward passes, and a streamer times verified tokens. Decoding is always greedy.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import torch
from transformers import GenerationConfig, PreTrainedModel
from transformers.generation.streamers import BaseStreamer

from speclib.models.hf import HFModel
from speclib.trace.metrics import Stats


class Commit(NamedTuple):
    """Tokens that ``generate`` committed together, ``seconds`` after the request."""

    seconds: float
    tokens: list[int]


class Generated(NamedTuple):
    """The new tokens of one request, with the same counts as a speclib trace."""

    tokens: tuple[int, ...]
    stats: Stats


class Watch(BaseStreamer):
    """Watches one request whose prompt has ``prompt_length`` tokens.

    draft_passes: forward passes of the draft.
    candidates: for each target pass, the drafted tokens that it tested.
    commits: the tokens that each target pass added, with their time. The first commit
        is the prompt, which transformers also passes on.
    """

    def __init__(self, prompt_length: int):
        self.prompt_length = prompt_length
        self.draft_passes = 0
        self.candidates: list[torch.Tensor] = []
        self.commits: list[Commit] = []
        self.start = time.perf_counter()

    def count_draft_pass(self, *_: object) -> None:
        """Hook before each pass of the draft."""
        self.draft_passes += 1

    def keep_candidates(
        self, network: PreTrainedModel, args: tuple[object, ...], inputs: dict[str, Any]
    ) -> None:
        """Hook before each target pass, called with the pass's input.

        The input is the text's uncached tokens, then the candidates. The uncached
        tokens are the whole prompt in the first pass, and then only the last token.
        """
        fed = inputs["input_ids"][0]
        text_tokens = 1 if self.candidates else self.prompt_length
        self.candidates.append(fed[text_tokens:])

    def put(self, value: torch.Tensor) -> None:
        """Called by ``generate`` with each batch of committed tokens."""
        seconds = time.perf_counter() - self.start
        self.commits.append(Commit(seconds, value.flatten().tolist()))

    def end(self) -> None:
        """Called by ``generate`` at its end."""

    def stats(self) -> Stats:
        """The request's counts, once ``generate`` has returned.

        A candidate counts as tested if a token was committed at its position.
        """
        commits = self.commits[1:]  # without the prompt
        drafted = accepted = rejected = committed = 0
        for tensor, commit in zip(self.candidates, commits, strict=True):
            candidates = tensor.tolist()
            drafted += len(candidates)
            committed += len(commit.tokens)
            for candidate, token in zip(candidates, commit.tokens, strict=False):
                if candidate == token:
                    accepted += 1
                else:
                    rejected += 1

        return Stats(
            requests=1,
            tokens=committed,
            first_tokens=len(commits[0].tokens),
            seconds=commits[-1].seconds,
            ttft=commits[0].seconds,
            rounds=len(commits),
            drafted=drafted,
            accepted=accepted,
            rejected=rejected,
            draft_runs=self.draft_passes,
            target_runs=len(self.candidates),
        )


class Transformers:
    """``generate`` with a target; with a draft, it is assisted generation.

    eos: ids of the tokens that end a text.
    settings: for drafting, by their names in GenerationConfig.
    rules: the target's own settings, see ``GenerationSettings``.
    """

    def __init__(
        self,
        target: HFModel,
        draft: HFModel | None,
        eos: frozenset[int],
        settings: dict[str, Any],
        rules: dict[str, Any],
    ):
        self.target = target.network
        self.draft = None if draft is None else draft.network

        networks = [self.target]
        if self.draft is not None:
            networks.append(self.draft)
        widest = max(n.get_output_embeddings().out_features for n in networks)
        beyond_vocab = list(range(target.vocab, widest))
        for network in networks:
            # If the widths differed, transformers would assume two tokenizers.
            network.config.get_text_config(decoder=True).vocab_size = target.vocab
            drafts = network is networks[-1]
            network.generation_config = _greedy_config(
                eos,
                beyond_vocab,
                settings if drafts else {},
                rules if network is self.target else {},
            )
        if draft is not None and draft.stand_in is not None:
            _feed_known_tokens(draft, draft.stand_in)

    def __call__(self, request: tuple[tuple[int, ...], int]) -> Generated:
        """Decodes one request: the prompt's ids, and the maximum number of new tokens.

        The new tokens end where plain decoding would end.
        """
        prompt, limit = request
        ids = torch.tensor([prompt], device=self.target.device)
        watch = Watch(len(prompt))
        hooks = self._attach(watch)
        try:
            text = self.target.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                streamer=watch,
                max_new_tokens=limit,
                assistant_model=self.draft,
            )
        finally:
            for hook in hooks:
                hook.remove()
        new_tokens = text[0, len(prompt) :].tolist()
        return Generated(tuple(new_tokens), watch.stats())

    def _attach(self, watch: Watch) -> list[torch.utils.hooks.RemovableHandle]:
        """Attaches ``watch`` to the passes of both networks. Returns the hooks."""
        hooks = [
            self.target.register_forward_pre_hook(
                watch.keep_candidates, with_kwargs=True
            )
        ]
        if self.draft is not None:
            hooks.append(self.draft.register_forward_pre_hook(watch.count_draft_pass))
        return hooks


def _feed_known_tokens(draft: HFModel, stand_in: int) -> None:
    """Makes the draft read ``stand_in`` for tokens that its embedding lacks.

    transformers feeds every token of the target to the draft, and would fail at these.
    """

    def known(module: torch.nn.Module, inputs: tuple[torch.Tensor]) -> torch.Tensor:
        (tokens,) = inputs
        return tokens.masked_fill(tokens >= draft.own_rows, stand_in)

    draft.network.get_input_embeddings().register_forward_pre_hook(known)


def _greedy_config(
    eos: frozenset[int],
    beyond_vocab: list[int],
    settings: dict[str, Any],
    rules: dict[str, Any],
) -> GenerationConfig:
    """Greedy decoding with ``settings`` and ``rules``, and nothing else."""
    end = sorted(eos)
    banned = [*beyond_vocab, *rules.get("suppress_tokens", ())]
    return GenerationConfig(
        do_sample=False,
        eos_token_id=end or None,
        pad_token_id=end[0] if end else 0,
        **settings,
        **rules | {"suppress_tokens": banned or None},
    )
