"""Models in llama.cpp, with the interface of HFModel: quantised drafts for CPUs.

Several sequences share one KV cache, and one pass feeds all of them. They share the
cells of a common prefix, so every path of a tree can be a sequence. The sequence with
the longest prefix in common with the next text is kept::

    cells of the cache     t0 t1 t2 -+- a  b  c      sequence 0
                                     +- d -+- e      sequence 1
                                           +- f      sequence 2

    the next text          t0 t1 t2     d  e  x      sequence 1 is best: its d and e
                                                     stay, and only x is fed

The model runs on the CPU. It is called through llama.cpp's low-level functions, since
``Llama.eval`` keeps either all rows or none.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from speclib.core.candidate_tree import depths, paths
from speclib.core.kv_prefix import Prefix
from speclib.core.sampling import Row, Rows, Sampler
from speclib.core.text import AnyText
from speclib.errors import BadValue, SpeclibError
from speclib.models.checkpoint import Checkpoint
from speclib.models.vocabulary import known_tokens
from speclib.operations.model import Model, Stopped, shaped

from .gguf import Card, api, latest_errors, open_model

BATCH = 512  # tokens fed between two calls of ``stopped``
SEQUENCES = 256  # the most that llama.cpp allows


class Sequences(Prefix):
    """The sequences in one cache, numbered as in llama.cpp.

    tokens: the tokens of each sequence, by number.
    current: the number of the sequence in use, whose tokens are ``fed``.
    """

    def __init__(self) -> None:
        self.current = 0
        self.tokens: dict[int, list[int]] = {}
        super().__init__()

    @property
    def fed(self) -> list[int]:
        """The tokens of the sequence in use."""
        return self.tokens[self.current]

    @fed.setter
    def fed(self, tokens: list[int]) -> None:
        self.tokens[self.current] = tokens

    def keep(self, text: Sequence[int], last: int = 0) -> int:
        """As in Prefix; switches to the sequence that shares the most with ``text``."""
        serving = {}
        for sequence in self.tokens:
            self.current = sequence
            self.doubt(0)  # what is known applies to another sequence
            serving[sequence] = super().keep(text, last)
        self.doubt(0)
        self.current = max(serving, key=serving.__getitem__)
        return serving[self.current]

    def cut(self, length: int) -> None:
        """Keeps the first ``length`` tokens of every sequence."""
        self.doubt(length)
        for tokens in self.tokens.values():
            del tokens[length:]

    def feed(self, slot: Slot) -> None:
        """Records that the token of ``slot`` was fed to its sequences."""
        for sequence in slot.sequences:
            self.tokens[sequence].append(slot.token)
        self.count += 1

    def free(self) -> Iterator[int]:
        """The unused sequence numbers."""
        return (number for number in range(SEQUENCES) if number not in self.tokens)

    def holding(self, text: Sequence[int]) -> int | None:
        """The number of a sequence that begins with ``text``, or None."""
        wanted = list(text)
        for sequence, tokens in self.tokens.items():
            if tokens[: len(wanted)] == wanted:
                return sequence
        return None


class Slot(NamedTuple):
    """One token of a pass, its sequences, and whether its row is wanted."""

    token: int
    position: int
    sequences: Sequence[int]
    is_wanted: bool


class LlamaCpp(Model):
    """The model in the GGUF file ``path``.

    vocab, stand_in: as in HFModel.
    context: the longest text, in tokens.
    threads: CPU threads.

    Each pass first calls ``stopped()``, and raises Stopped if it returns true.
    """

    stand_in: int | None = None

    def __init__(self, path: str | Path, vocab: int, context: int, threads: int = 1):
        self.path = path
        self.vocab = vocab
        self.context = context

        model = open_model(path)
        self._context = self._open_context(model, threads)
        self._batch = api.llama_batch_init(BATCH, 0, SEQUENCES)
        weakref.finalize(self, _free, self._batch, self._context, model)

        self._all_rows = api.llama_vocab_n_tokens(api.llama_model_get_vocab(model))
        self.own_rows = min(vocab, self._all_rows)
        self._memory = api.llama_get_memory(self._context)
        self.reset()

    def _open_context(self, model: Any, threads: int) -> Any:
        """Opens llama.cpp's context; frees ``model`` if memory is short."""
        params = api.llama_context_default_params()
        params.n_ctx = max(self.context, SEQUENCES)  # with fewer, llama.cpp aborts
        params.n_batch = BATCH
        params.n_ubatch = BATCH
        params.n_threads = threads
        params.n_threads_batch = threads
        params.n_seq_max = SEQUENCES
        params.kv_unified = True
        params.no_perf = True
        latest_errors.clear()
        context = api.llama_init_from_model(model, params)
        if not context:
            api.llama_model_free(model)
            raise SpeclibError(
                f"llama.cpp lacks memory for {self.context} tokens of {self.path}: "
                f"{'; '.join(latest_errors)}; free memory, or use a smaller model"
            )
        return context

    def reset(self) -> None:
        """Empties the cache."""
        self._sequences = Sequences()
        self.prefix: Prefix = self._sequences
        api.llama_memory_clear(self._memory, False)

    def cut(self, length: int) -> None:
        """Keeps the first ``length`` tokens of every sequence."""
        api.llama_memory_seq_rm(self._memory, -1, length, -1)
        self._sequences.cut(length)

    def rows(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """Distributions [last + 1, vocab] (float32) after text[:-last] ... text."""
        kept = self._keep_one_sequence(text, last)
        new = self._slots(self._sequences.current, text[kept:], wanted=last + 1)
        self.logits = self._feed(new)
        return shaped(self.logits, sampler, text)

    def chances(self) -> Row:
        """The probabilities [vocab] after the last text, at temperature 1."""
        chances: Row = Sampler(1.0)(self.logits[-1:])[0]
        return chances

    # -- trees and sequences -----------------------------------------------------------
    def tree(
        self, text: Sequence[int], parents: Sequence[int], sampler: Sampler
    ) -> Rows:
        """As in ``Model``, in one pass."""
        if not self._has_room(text, len(parents)):
            return super().tree(text, parents, sampler)
        start = len(text) - len(parents)
        # Text that is not cached becomes a line of nodes before the tree.
        line = start - self._keep_one_sequence(text[:start], 0)
        nodes = [*range(-1, line - 1), *(line + parent for parent in parents)]
        self.logits = self._feed_tree(text, nodes, wanted=len(parents) + 1)
        return shaped(self.logits, sampler, text, parents)

    def level(
        self, text: Sequence[int], parents: Sequence[int], new: int, sampler: Sampler
    ) -> Rows:
        """As in ``Model``, in one pass."""
        if not self._has_room(text, new):
            return super().level(text, parents, new, sampler)
        if sampler.greedy:
            sampler = replace(sampler, temperature=1.0)
        self.logits = self._feed_tree(text, parents, wanted=new)
        return shaped(self.logits, sampler, text, parents)

    def _has_room(self, text: Sequence[int], paths: int) -> bool:
        """Whether a tree that adds this number of ``paths`` fits into the cache."""
        sequences = len(self._sequences.tokens) + paths
        return len(text) <= self.context and sequences <= SEQUENCES

    def _feed_tree(
        self, text: Sequence[int], parents: Sequence[int], wanted: int
    ) -> Rows:
        """Feeds the last ``wanted`` nodes of a tree, and ancestors that are not cached.

        text, parents: as in ``tree``; the text before the tree is cached. Returns the
        logits [wanted, vocab] of the wanted nodes.
        """
        path_of = paths(text, parents)
        depth_of_node = depths(parents)
        start = len(text) - len(parents)
        free = self._sequences.free()
        slots = []
        # Each path is a sequence. Every node from its end upwards belongs to it.
        sequences: dict[int, list[int]] = defaultdict(list)
        for node in reversed(range(-1, len(parents))):
            is_wanted = node >= len(parents) - wanted
            if is_wanted and node not in sequences:
                sequences[node].append(next(free))
            if node not in sequences:
                continue
            if not is_wanted and self._branch_off(path_of[node + 1], sequences[node]):
                continue
            position = start + depth_of_node[node]
            token = text[start + node]
            slots.append(Slot(token, position, sequences[node], is_wanted))
            sequences[parents[node]] += sequences[node]
        self._sequences.current = slots[0].sequences[0]
        return self._feed(slots[::-1])

    def _branch_off(self, path: AnyText, numbers: Sequence[int]) -> bool:
        """Starts sequences ``numbers`` with the cells of ``path``.

        If the sequence that had these cells ends there, drops it. Returns False if no
        sequence in the cache begins with ``path``.
        """
        source = self._sequences.holding(path)
        if source is None:
            return False
        self._copy(source, numbers, len(path))
        if len(self._sequences.tokens[source]) == len(path):
            self._drop(source)
        return True

    def _copy(self, source: int, numbers: Sequence[int], length: int) -> None:
        """Starts sequences with the first ``length`` cells of ``source``."""
        tokens = self._sequences.tokens
        for number in numbers:
            api.llama_memory_seq_cp(self._memory, source, number, 0, length)
            tokens[number] = tokens[source][:length]

    def _drop(self, sequence: int) -> None:
        """Removes a sequence from the cache."""
        api.llama_memory_seq_rm(self._memory, sequence, -1, -1)
        del self._sequences.tokens[sequence]

    def continued(
        self, text: Sequence[int], starts: Sequence[Sequence[int]], n: int
    ) -> tuple[tuple[int, ...], ...]:
        """Continues each of ``starts`` greedily until it has ``n`` tokens.

        As in ``Model``; here a pass feeds the next token of every sequence. The first
        start uses the current sequence, which may already hold some of its tokens.
        """
        if len(starts) > SEQUENCES:
            raise BadValue(
                f"{len(starts)} sequences at once: llama.cpp takes at most {SEQUENCES}"
            )
        text = tuple(text)
        kept = self._keep_one_sequence(text + tuple(starts[0]), 0)
        first = self._sequences.current
        if kept < len(text):
            self._feed(self._slots(first, text[kept:], wanted=0))
        others = list(islice(self._sequences.free(), len(starts) - 1))
        self._copy(first, others, len(text))
        drafts = {
            number: list(start)
            for number, start in zip([first, *others], starts, strict=True)
        }

        while True:
            unfinished = [s for s, tokens in drafts.items() if len(tokens) < n]
            if not unfinished:
                break
            new = []
            for sequence in unfinished:
                drafted_in_cache = len(self._sequences.tokens[sequence]) - len(text)
                tokens = drafts[sequence][drafted_in_cache:]
                new += self._slots(sequence, tokens, wanted=1)
            rows = self._feed(new)
            for sequence, row in zip(unfinished, rows, strict=True):
                drafts[sequence].append(int(row.argmax()))
        return tuple(tuple(tokens) for tokens in drafts.values())

    # -- passes ------------------------------------------------------------------------
    def _keep_one_sequence(self, text: Sequence[int], last: int) -> int:
        """Keeps only the sequence with the longest prefix in common with ``text``.

        Cuts it to that prefix, and returns the prefix's length.
        """
        if len(text) > self.context:
            raise BadValue(
                f"a text of {len(text)} tokens does not fit the context of "
                f"{self.context} of {self.path}: ask for fewer tokens"
            )
        kept = self._sequences.keep(text, last)
        for sequence in list(self._sequences.tokens):
            if sequence != self._sequences.current:
                self._drop(sequence)
        self.cut(kept)
        return kept

    def _slots(self, sequence: int, tokens: Sequence[int], wanted: int) -> list[Slot]:
        """Makes slots for a sequence's ``tokens``; the last ``wanted`` need rows."""
        cached = len(self._sequences.tokens[sequence])
        first_wanted = len(tokens) - wanted
        slots = []
        for number, token in enumerate(tokens):
            slots.append(
                Slot(token, cached + number, [sequence], number >= first_wanted)
            )
        return slots

    def _feed(self, slots: Sequence[Slot]) -> Rows:
        """Feeds tokens to their sequences; returns logits [wanted rows, vocab]."""
        logits = []
        try:
            for start in range(0, len(slots), BATCH):
                logits.append(self._pass(slots[start : start + BATCH]))
        except Stopped:
            raise  # it stopped between two passes, so cache and prefix agree
        except BaseException:
            self.reset()  # the cache's content is now unknown
            raise
        return np.concatenate(logits)

    def _pass(self, slots: Sequence[Slot]) -> Rows:
        """Feeds up to BATCH tokens in a pass; returns logits [wanted rows, vocab]."""
        if self.stopped():
            raise Stopped
        self._fill_batch(slots)
        latest_errors.clear()
        code = api.llama_decode(self._context, self._batch)
        if code:
            reason = "; ".join(latest_errors)
            reason = reason or "its cache has too few cells for these tokens"
            raise SpeclibError(
                f"llama.cpp ended a pass of {self.path} with code {code}: {reason}"
            )
        for slot in slots:
            self._sequences.feed(slot)
        return self._logits(sum(slot.is_wanted for slot in slots))

    def _fill_batch(self, slots: Sequence[Slot]) -> None:
        """Writes ``slots`` to llama.cpp's batch."""
        batch = self._batch
        batch.n_tokens = len(slots)
        tokens = [slot.token for slot in slots]
        if self.stand_in is not None:
            tokens = known_tokens(tokens, self.own_rows, self.stand_in)
        for number, slot in enumerate(slots):
            batch.token[number] = tokens[number]
            batch.pos[number] = slot.position
            batch.logits[number] = slot.is_wanted
            batch.n_seq_id[number] = len(slot.sequences)
            for index, sequence in enumerate(slot.sequences):
                batch.seq_id[number][index] = sequence

    def _logits(self, wanted: int) -> np.ndarray:
        """Copies the last pass's logits [wanted, vocab] before they are overwritten.

        A token that the model has no row for has probability 0.
        """
        if wanted == 0:
            return np.empty((0, self.vocab), np.float32)
        pointer = api.llama_get_logits(self._context)
        all_rows = np.ctypeslib.as_array(pointer, (wanted, self._all_rows))
        own_logits = all_rows[:, : self.own_rows]
        if np.isnan(own_logits.max(-1)).any():  # max of a row with NaN is NaN
            raise SpeclibError(
                f"the logits of {self.path} contain NaN: its weights are damaged, "
                'or too large for its quantization; try runtime = "torch"'
            )
        logits = np.full((wanted, self.vocab), -np.inf, np.float32)
        logits[:, : self.own_rows] = own_logits
        return logits


def _free(batch: Any, context: Any, model: Any) -> None:
    """Frees llama.cpp's memory for one model."""
    api.llama_batch_free(batch)
    api.llama_free(context)
    api.llama_model_free(model)


def load_quantised(
    files: Checkpoint | Card,
    places: tuple[str, ...],
    threads: int,
    vocab: int,
    context: int,
) -> LlamaCpp:
    """Builds a model for the CPU, from a .gguf file or a checkpoint exported to one.

    Raises SpeclibError if one of its ``places`` is a GPU.
    """
    if any(place.startswith("cuda") for place in places):
        raise BadValue(
            f"model {files.model!r} runs in llama.cpp, here on the CPU, but its "
            f'place is {places}: give core:N or cpu, or runtime = "torch"'
        )
    if not isinstance(files, Checkpoint):
        return LlamaCpp(files.model, vocab, context, threads)
    from .export import find_or_write

    path = find_or_write(files, files.spec.shape, files.spec.quantization)
    return LlamaCpp(path, vocab, context, threads)
