"""transformers' own ``generate``, watched from outside: what it decoded, when, in how many passes.

Hooks on the networks count forward passes, a streamer times what is verified. Knows no method of
ours; greedy only.
"""

from __future__ import annotations

import time

import torch
from transformers import GenerationConfig
from transformers.generation.streamers import BaseStreamer

from speclib.trace.metrics import Stats

from .hf import HFModel


class Watch(BaseStreamer):
    """One request: the draft's passes, the candidates of each of the target's, and the tokens that
    followed, with their time. ``prompt``: its length."""

    def __init__(self, prompt: int):
        self.drafts, self.cached, self.candidates, self.commits = 0, prompt - 1, [], []
        self.start = time.perf_counter()

    def draft_pass(self, *_) -> None:
        self.drafts += 1

    def target_pass(self, network, args, inputs) -> None:
        """Fed: the text's tokens that are not cached (all but one later on), then candidates."""
        fed = inputs["input_ids"][0]
        self.candidates.append(fed[1 + (self.cached if not self.candidates else 0) :])

    def put(self, value) -> None:
        self.commits.append(
            (time.perf_counter() - self.start, value.flatten().tolist())
        )

    def end(self) -> None: ...

    def stats(self) -> Stats:
        """As of our own traces: a candidate is tested where a token was committed."""
        (ttft, first), *_ = commits = self.commits[1:]  # the prompt is put first
        candidates = [c.tolist() for c in self.candidates]
        tested = [
            x == y
            for c, (_, said) in zip(candidates, commits, strict=True)
            for x, y in zip(c, said, strict=False)
        ]
        return Stats(
            requests=1,
            tokens=sum(len(said) for _, said in commits),
            first_tokens=len(first),
            seconds=commits[-1][0],
            ttft=ttft,
            rounds=len(commits),
            drafted=sum(map(len, candidates)),
            accepted=tested.count(True),
            rejected=tested.count(False),
            draft_runs=self.drafts,
            target_runs=len(candidates),
        )


class Transformers:
    """``generate`` with ``target``; with ``draft`` it is assisted generation. ``settings``: of the
    drafting, by their names in GenerationConfig. ``vocab``: rows that may be sampled."""

    def __init__(
        self,
        target: HFModel,
        draft: HFModel | None,
        eos: frozenset[int],
        settings: dict,
    ):
        self.target, self.draft = target.network, draft and draft.network
        networks = [n for n in (self.target, self.draft) if n is not None]
        widest = max(n.get_output_embeddings().out_features for n in networks)
        end = sorted(eos)
        for network in networks:
            network.config.vocab_size = (
                target.vocab
            )  # or two widths pass for two tokenizers
            network.generation_config = (
                GenerationConfig(  # of the checkpoint's own: nothing
                    do_sample=False,
                    eos_token_id=end or None,
                    pad_token_id=end[0] if end else 0,
                    suppress_tokens=list(range(target.vocab, widest)) or None,
                    **(settings if network is networks[-1] else {}),
                )
            )

    def __call__(
        self, request: tuple[tuple[int, ...], int]
    ) -> tuple[tuple[int, ...], Stats]:
        """(prompt's ids, limit) -> the new tokens, cut as plain decoding cuts, and counts."""
        prompt, limit = request
        ids = torch.tensor([prompt], device=self.target.device)
        watch = Watch(len(prompt))
        hooks = [
            self.target.register_forward_pre_hook(watch.target_pass, with_kwargs=True)
        ]
        if self.draft is not None:
            hooks.append(self.draft.register_forward_pre_hook(watch.draft_pass))
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
        return tuple(text[0, len(prompt) :].tolist()), watch.stats()
