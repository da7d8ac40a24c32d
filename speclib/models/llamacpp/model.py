"""llama.cpp models behind the interface of HFModel: a draft for CPUs, quantised, from a GGUF file.

Several sequences share one KV cache: where they begin alike they have the same cells, and one pass
feeds all of them. Whichever the next text goes on with is the one that stays. Runs on the CPU, by
llama.cpp's low-level calls: its own ``Llama.eval`` keeps no row unless it keeps all of them.
"""

from __future__ import annotations

import weakref
from pathlib import Path

import numpy as np

from speclib.core.kv_prefix import Prefix
from speclib.core.sampling import Sampler
from speclib.errors import SpeclibError
from speclib.operations.operation import Stopped

from .gguf import api, opened, said

BATCH = 512  # tokens fed between two looks at ``stopped``
SEQUENCES = 32  # drafted side by side, at most


class Branches(Prefix):
    """The sequences in one cache, by llama.cpp's numbers of them; ``fed`` is the one in use."""

    def __init__(self):
        self.at, self.sequences = 0, {}
        super().__init__()

    @property
    def fed(self) -> list[int]:
        return self.sequences[self.at]

    @fed.setter
    def fed(self, tokens: list[int]) -> None:
        self.sequences[self.at] = tokens

    def keep(self, text, last: int = 0) -> int:
        """As Prefix; the sequence that serves ``text`` best is in use from now on."""
        serves = {}
        for sequence in self.sequences:
            self.at = sequence
            serves[sequence] = super().keep(text, last)
        self.at = max(serves, key=serves.get)
        return serves[self.at]

    def cut(self, length: int) -> None:
        for tokens in self.sequences.values():
            del tokens[length:]

    def feed(self, sequence: int, token: int) -> None:
        self.sequences[sequence].append(token)
        self.count += 1


class LlamaCpp:
    """The GGUF ``path``; ``vocab``: rows that may be sampled; ``context``: the longest text.
    ``stopped()`` is asked before each pass; where it says yes, Stopped is raised."""

    def __init__(self, path: str | Path, vocab: int, context: int, threads: int = 1):
        self.path, self.vocab, self.context, self.stopped = path, vocab, context, bool
        model = opened(path)
        params = api.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = context, BATCH, BATCH
        params.n_threads = params.n_threads_batch = threads
        params.n_seq_max, params.kv_unified, params.no_perf = SEQUENCES, True, True
        said.clear()
        self._context = api.llama_init_from_model(model, params)
        if not self._context:
            api.llama_model_free(model)
            raise SpeclibError(
                f"llama.cpp has no room for {context} tokens of {path}: "
                f"{'; '.join(said)}; free memory, or take a smaller model"
            )
        self._slots = api.llama_batch_init(BATCH, 0, 1)
        for i in range(BATCH):
            self._slots.n_seq_id[i] = 1
        weakref.finalize(self, _free, self._slots, self._context, model)
        self._rows = api.llama_vocab_n_tokens(api.llama_model_get_vocab(model))
        self._memory = api.llama_get_memory(self._context)
        self.reset()

    def reset(self) -> None:
        self.prefix = Branches()
        api.llama_memory_clear(self._memory, False)

    def cut(self, length: int) -> None:
        """Keeps the first ``length`` tokens of every sequence."""
        api.llama_memory_seq_rm(self._memory, -1, length, -1)
        self.prefix.cut(length)

    def rows(self, text, last: int, sampler: Sampler) -> np.ndarray:
        """Distributions [last + 1, V] (float32) after text[:-last] ... text."""
        kept = self._only(text, last)
        self.logits = self._feed([(self.prefix.at, text[kept:], last + 1)])
        return sampler(self.logits)

    def chances(self) -> np.ndarray:
        """The probabilities [V] of what follows the last text, at temperature 1."""
        return Sampler(1.0)(self.logits[-1:])[0]

    def continued(self, text, starts, n: int) -> tuple[tuple[int, ...], ...]:
        """See branch.continued; here a pass feeds the next token of every sequence."""
        if len(starts) > SEQUENCES:
            raise SpeclibError(
                f"{len(starts)} sequences at once: {SEQUENCES} is the most here"
            )
        text = tuple(text)
        kept = self._only(text + tuple(starts[0]), 0)
        if kept < len(text):
            self._feed([(self.prefix.at, text[kept:], 0)])
        first = self.prefix.at
        free = (s for s in range(SEQUENCES) if s != first)
        drafts = dict(zip((first, *free), map(list, starts), strict=False))
        for sequence in drafts:
            if sequence != first:
                api.llama_memory_seq_cp(self._memory, first, sequence, 0, len(text))
                self.prefix.sequences[sequence] = list(text)
        while going := [s for s, tokens in drafts.items() if len(tokens) < n]:
            news = [
                (s, drafts[s][len(self.prefix.sequences[s]) - len(text) :], 1)
                for s in going
            ]
            for s, row in zip(going, self._feed(news), strict=True):
                drafts[s].append(int(row.argmax()))
        return tuple(map(tuple, drafts.values()))

    def _only(self, text, last: int) -> int:
        """Leaves the sequence that serves ``text`` best alone in the cache, cut to what serves."""
        if len(text) > self.context:
            raise SpeclibError(
                f"a text of {len(text)} tokens does not fit the context of "
                f"{self.context} of {self.path}: ask for fewer tokens"
            )
        kept = self.prefix.keep(text, last)
        for sequence in [s for s in self.prefix.sequences if s != self.prefix.at]:
            api.llama_memory_seq_rm(self._memory, sequence, -1, -1)
            del self.prefix.sequences[sequence]
        self.cut(kept)
        return kept

    def _feed(self, news) -> np.ndarray:
        """Feeds ``news``, each (sequence, the tokens that follow in it, of how many of these the
        rows are wanted), together; returns the logits [wanted in all, V]."""
        queue = [
            (token, len(self.prefix.sequences[s]) + i, s, i >= len(tokens) - wanted)
            for s, tokens, wanted in news
            for i, token in enumerate(tokens)
        ]
        try:
            found = [
                self._passed(queue[i : i + BATCH]) for i in range(0, len(queue), BATCH)
            ]
        except Stopped:
            raise  # between passes: the cache is as it says
        except BaseException:
            self.reset()  # what is in the cache is not known now
            raise
        return np.concatenate(found)

    def _passed(self, queue) -> np.ndarray:
        """One pass over ``queue``: (token, position, sequence, whether its row is wanted)."""
        if self.stopped():
            raise Stopped
        slots = self._slots
        slots.n_tokens = len(queue)
        for i, (token, position, sequence, wanted) in enumerate(queue):
            slots.token[i], slots.pos[i], slots.logits[i] = token, position, wanted
            slots.seq_id[i][0] = sequence
        said.clear()
        code = api.llama_decode(self._context, slots)
        if code:
            raise SpeclibError(
                f"llama.cpp ended a pass of {self.path} with code {code}: "
                f"{'; '.join(said) or 'no room in its cache for so many tokens'}"
            )
        for token, _, sequence, _ in queue:
            self.prefix.feed(sequence, token)
        size = sum(wanted for *_, wanted in queue), self._rows
        if not size[0]:
            return np.empty((0, self.vocab), np.float32)
        logits = np.ctypeslib.as_array(api.llama_get_logits(self._context), size)[
            :, : self.vocab
        ]
        if np.isnan(logits).any():
            raise SpeclibError(
                f"the logits of {self.path} contain NaN: its weights are unsound, "
                'or too large for its quantization; try runtime = "torch"'
            )
        return logits.copy()  # llama.cpp overwrites them with the next pass


def _free(slots, context, model) -> None:
    api.llama_batch_free(slots)
    api.llama_free(context)
    api.llama_model_free(model)


def load(
    spec, places: tuple[str, ...], threads: int, vocab: int, context: int
) -> LlamaCpp:
    """Builds ``spec`` (a ModelSpec) for the CPU: a .gguf, or a checkpoint written as one."""
    if any(p.startswith("cuda") for p in places):
        raise SpeclibError(
            f"model {spec.model!r} runs in llama.cpp, on the CPU here, but its "
            f'place is {places}: give core:N or cpu, or runtime = "torch"'
        )
    if spec.is_gguf:
        return LlamaCpp(spec.model, vocab, context, threads)
    from .export import exported

    return LlamaCpp(
        exported(spec.model, spec.shape, spec.quantization), vocab, context, threads
    )
