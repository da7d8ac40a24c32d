"""Models that remember what they said after each text, and are asked for it once.

Methods and windows that are compared write the same texts. Run on the simulated clock,
where a pass costs no time of this machine's, each of them would compute the same rows
again. Here the first one does, and the next finds them::

    text                    the model is asked   next time
    a b c                   yes                  remembered
    a b c d, a b c e        for d and e          remembered, in any order, line or tree

What is said is the model's own, from a pass of another shape perhaps: its last digits
may differ, so that two tokens which are equally likely may change places. A cache is
counted as the model would keep it, so that a run's trace is the same too.

Knows no method, no world and no clock.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from speclib.core.candidate_tree import last_paths, paths, stem
from speclib.core.sampling import Row, Rows, Sampler, Tokens
from speclib.core.settings import ROLES, Role
from speclib.operations.model import Model, shaped

from .open_pair import OpenPair
from .uncached import Uncached

ANY_TOKEN = 0
NO_TREE: tuple[Tokens, Tokens] = ((), ())  # text and parents


class SaysLogits(Protocol):
    """A model of which the logits of its last pass, [rows, vocab], can be read."""

    @property
    def logits(self) -> Rows: ...


class AsTheyAre(Sampler):
    """Makes no probabilities: whoever remembers logits has no use for them."""

    @property
    def greedy(self) -> bool:
        return False

    def __call__(self, logits: Rows, texts: object = None) -> Rows:
        return logits


AS_THEY_ARE = AsTheyAre()


class Memory:
    """What ``model`` has said, by the text that it was said after.

    The nodes of a tree that is drafted level by level stay in the model's cache until
    it is asked for something else.
    """

    def __init__(self, model: Model):
        self.model = model
        self.forget()

    def forget(self) -> None:
        """Forgets all texts."""
        self.model.reset()  # what it has cached, nobody has seen it read
        self.leave_tree()
        self.logits_after: dict[Tokens, Row] = {}
        self.feature_of: dict[Tokens, np.ndarray] = {}  # of a text's last token

    def logits(self, text: Tokens, first: int) -> Rows:
        """Logits [len(text) - first + 1, vocab] after text[:first] ... text."""
        unknown = [
            end
            for end in range(first, len(text) + 1)
            if text[:end] not in self.logits_after
        ]
        if unknown:
            asked = text[: unknown[-1]]
            self.leave_tree()
            self.model.rows(asked, unknown[-1] - unknown[0], AS_THEY_ARE)
            read = tuple(asked[:end] for end in range(unknown[0], unknown[-1] + 1))
            self._note(read, self._texts_fed(asked, ()))
        return np.stack(
            [self.logits_after[text[:end]] for end in range(first, len(text) + 1)]
        )

    def logits_of_tree(self, text: Tokens, parents: Sequence[int]) -> Rows:
        """Logits [len(parents) + 1, vocab] after the bare text and each node's path."""
        bare_text = text[: len(text) - len(parents)]
        read = (bare_text, *last_paths(text, parents, len(parents)))
        if any(path not in self.logits_after for path in read):
            self.leave_tree()
            self.model.tree(text, parents, AS_THEY_ARE)
            self._note(read, self._texts_fed(text, parents))
        return np.stack([self.logits_after[path] for path in read])

    def logits_of_level(self, text: Tokens, parents: Sequence[int], new: int) -> Rows:
        """Logits [new, vocab] after the paths to a tree's last ``new`` nodes."""
        read = last_paths(text, parents, new)
        if any(path not in self.logits_after for path in read):
            self._feed_level(text, parents)
        return np.stack([self.logits_after[path] for path in read])

    def _feed_level(self, text: Tokens, parents: Sequence[int]) -> None:
        """Has the model read what its cache lacks of a tree, as one level."""
        cached = self._count_nodes_cached(text, parents)
        if cached is None:
            bare_text = text[: len(text) - len(parents)]
            self.model.rows(bare_text, 0, AS_THEY_ARE)
            cached = 0
        fed = len(parents) - cached
        self.leave_tree()  # for good, should the pass fail
        self.model.level(text, parents, fed, AS_THEY_ARE)
        self._tree = text, tuple(parents)
        read = last_paths(text, parents, fed)
        self._note(read, read)

    def _count_nodes_cached(self, text: Tokens, parents: Sequence[int]) -> int | None:
        """How many first nodes of a tree need not be fed; None: nor is its text cached.

        It may be the tree that was fed last with a level more. Of another one only the
        stem may be cached, as a text is, and what the model said there be remembered.
        """
        bare = len(text) - len(parents)
        cached_text, cached_parents = self._tree
        nodes = len(cached_parents)
        is_same_tree = cached_text == text[: bare + nodes] and cached_parents == tuple(
            parents[:nodes]
        )
        if nodes and is_same_tree:
            return nodes

        line = text[: bare + stem(parents)]
        cached = self._count_cached_of(line)
        if cached < bare:
            return None
        for end in range(bare + 1, cached + 1):
            if line[:end] not in self.logits_after:
                return end - 1 - bare
        return cached - bare

    def _count_cached_of(self, line: Tokens) -> int:
        """How many first tokens of ``line`` the model has cached by exact passes."""
        model: Any = self.model
        cached: int = model.prefix.keep((*line, ANY_TOKEN))
        return min(cached, getattr(model, "exact", cached))

    def leave_tree(self) -> None:
        """Counts on no node in the model's cache any more."""
        self._tree = NO_TREE

    def read_ahead(self, text: Tokens, written: Tokens, n: int) -> None:
        """Reads on greedily where the model would leave what is ``written``.

        So it does where that ends. Each way that leads off has ``n`` tokens. All of
        them grow by one in each pass, as a tree on ``text``::

            text -- a -- b -- c -- d -- z   written: a b c d
                    |         +-- x -- x    the model says x after a b c,
                    +-- y -- y              and y after a
        """
        rows = self.logits(text + written, len(text))
        leaves = []  # the node before each leaf, and its token
        for node, row in enumerate(rows, start=-1):
            likeliest = int(row.argmax())
            if written[node + 1 : node + 2] != (likeliest,):
                leaves.append((node, likeliest))

        tokens, parents = list(written), list(range(-1, len(written) - 1))
        for _ in range(min(n, self.model.context - len(text + written))):
            first = len(tokens)
            for parent, token in leaves:
                tokens.append(token)
                parents.append(parent)
            tree = text + tuple(tokens)
            logits = self.logits_of_level(tree, parents, len(leaves))
            leaves = list(enumerate(logits.argmax(-1).tolist(), first))

    def _texts_fed(self, text: Tokens, parents: Sequence[int]) -> list[Tokens]:
        """The texts that end with each token which the last pass may have fed."""
        start = len(text) - len(parents)
        texts = [text[: end + 1] for end in range(start)]
        texts += [tuple(path) for path in paths(text, parents)[1:]]
        return texts

    def _note(self, read: Sequence[Tokens], fed: Sequence[Tokens]) -> None:
        """Remembers the last pass: rows after ``read``, features of ``fed``."""
        model: SaysLogits = self.model  # type: ignore[assignment]
        for path, logits in zip(read, model.logits, strict=True):
            self.logits_after.setdefault(path, logits.copy())

        features = self.model.features_fed()
        if features is not None:
            for path, feature in zip(fed[-len(features) :], features, strict=True):
                self.feature_of.setdefault(path, feature)


class Remembering(Uncached):
    """A device's model that says what is in ``memory``, and has it read the rest.

    Several devices with one model may share a memory; each counts a cache of its own.
    Fuzzy passes (EasySpec) are not remembered, since what they say hangs on more than a
    text: the model itself computes them. Not calibrated, they read what those before
    them in the same request have cached, so the model begins such a request anew, and
    must not be asked for anything else meanwhile.
    """

    def __init__(self, memory: Memory):
        self.memory = memory
        self.vocab = memory.model.vocab
        self.context = memory.model.context
        self._is_fuzzy = False
        self.reset()

    def reset(self) -> None:
        """Counts an empty cache, as at the beginning of a request."""
        super().reset()
        self._is_new = True  # no fuzzy pass of the request has been asked for

    def rows(self, text: Sequence[int], last: int, sampler: Sampler) -> Rows:
        """Distributions [last + 1, vocab] after text[:-last] ... text."""
        self._feed(text, last)
        if self._is_fuzzy:
            return self.memory.model.rows(text, last, sampler)

        logits = self.memory.logits(tuple(text), len(text) - last)
        return self._shaped(logits, sampler, text)

    def chances(self) -> Row:
        """The probabilities [vocab] of what follows the last text, at temperature 1."""
        if self._is_fuzzy:
            return self.memory.model.chances()
        row: Row = Sampler(1.0)(self._last_logits)[0]
        return row

    def tree(
        self, text: Sequence[int], parents: Sequence[int], sampler: Sampler
    ) -> Rows:
        """The rows [len(parents) + 1, vocab] of a scored tree, counted as one pass."""
        if self._will_refuse(text):
            return super().tree(text, parents, sampler)
        self._pass(text, len(parents))
        self.cut(len(text) - len(parents) + stem(parents))
        logits = self.memory.logits_of_tree(tuple(text), parents)
        _, kept, _ = self._last_pass
        self._last_pass = (text, kept, parents)
        return self._shaped(logits, sampler, text, parents)

    def _will_refuse(self, text: Sequence[int]) -> bool:
        """Whether a tree may be too long or stopped, and is to be read path by path."""
        return len(text) > self.context or self.stopped()

    def _shaped(
        self,
        logits: Rows,
        sampler: Sampler,
        text: Sequence[int],
        parents: Sequence[int] | None = None,
    ) -> Rows:
        self._last_logits = logits[-1:]
        return shaped(logits, sampler, text, parents)

    def level(
        self, text: Sequence[int], parents: Sequence[int], new: int, sampler: Sampler
    ) -> Rows:
        """The rows [new, vocab] of a tree's last level, counted as one pass."""
        if self._is_fuzzy:
            rows = self.memory.model.level(text, parents, new, sampler)
            self.sharing = self._lp  # the exact pass is the one before the first level
            self._count_level(text, parents, new)
            return rows
        if self._will_refuse(text):
            return super().level(text, parents, new, sampler)

        logits = self.memory.logits_of_level(tuple(text), parents, new)
        self.sharing = 1
        self._count_level(text, parents, new)
        self._last_pass = (text, len(text) - new, parents)
        if sampler.greedy:
            sampler = replace(sampler, temperature=1.0)
        return self._shaped(logits, sampler, text, parents)

    @contextmanager
    def drafting(self, lp: int, calibrate: bool) -> Iterator[None]:
        """As of Model. With ``lp`` above 1 the model itself drafts."""
        with super().drafting(lp, calibrate):
            if lp == 1:
                yield
                return
            self.memory.leave_tree()
            if self._is_new and not calibrate:
                self.memory.model.reset()
            self._is_new = False
            with self.memory.model.drafting(lp, calibrate):
                self._is_fuzzy = True
                try:
                    yield
                finally:
                    self._is_fuzzy = False

    def features_fed(self) -> np.ndarray | None:
        """Those of the tokens that the last pass fed; None where the model has none."""
        if not self.memory.feature_of:
            return None
        fed = self._texts_fed()
        return np.stack([self.memory.feature_of[tuple(path)] for path in fed])


class Memories:
    """The models of pairs, undilated, each of which is built and asked once.

    Pairs that share a model share what it has said: a stand-in of one paper's pair is
    another one's at another cost.
    """

    def __init__(self) -> None:
        self._memories: dict[Hashable, Memory] = {}

    def models(self, opened: OpenPair, devices: Iterable[str]) -> dict[str, Model]:
        """A model that remembers for each of a pair's devices.

        Toys do not remember, since asking them costs nothing. Nor does a draft that
        reads its target's features (EAGLE's head): what it says hangs on these, too.
        """
        models: dict[str, Model] = {}
        for name in devices:
            role: Role = "draft" if name == "draft" else "target"
            models[name] = self._model(opened, role)
        return models

    def write(
        self, opened: OpenPair, prompts: Sequence[Tokens], max_new_tokens: int
    ) -> list[Tokens]:
        """What the target writes greedily after prompts, all of them at once.

        It may be another text where two tokens are equally likely, see ``many_texts``.
        """
        from .many_texts import write_greedily

        target = self._memory(opened, "target").model
        return write_greedily(target, prompts, max_new_tokens, opened.end_tokens)

    def read(
        self,
        opened: OpenPair,
        prompt: Tokens,
        text: Tokens,
        ahead: int = 0,
    ) -> None:
        """Has both models read ``text`` after ``prompt`` in one pass.

        If the target writes it, this is all that plain decoding will ask for, and most
        of what a draft will be asked for. If not, it was read in vain. Where the draft
        would write something else, and where the text ends, it reads on for ``ahead``
        tokens.
        """
        for role in ROLES:
            memory = self._memory(opened, role)
            if not reads_features(memory.model):
                memory.logits(prompt + text[:-1], len(prompt))
                if role == "draft" and ahead:
                    memory.read_ahead(prompt, text, ahead)

    def forget(self) -> None:
        """Forgets all texts, as before a prompt that begins otherwise."""
        for memory in self._memories.values():
            memory.forget()

    def _model(self, opened: OpenPair, role: Role) -> Model:
        if opened.is_toy:
            toy: Model = opened.build(role)
            return toy
        memory = self._memory(opened, role)
        return memory.model if reads_features(memory.model) else Remembering(memory)

    def _memory(self, opened: OpenPair, role: Role) -> Memory:
        spec = opened.pair.model(role)
        key = (role, str(spec.undilated), opened.runtime(role), opened.vocab)
        if key not in self._memories:
            self._memories[key] = Memory(_small(opened.build(role, dilated=False)))
        return self._memories[key]


def _small(model: Model) -> Model:
    """A model as small as it was trained, whose passes are shortened where they can."""
    network = getattr(model, "network", None)
    if network is not None and not reads_features(model):
        from .short_passes import shorten

        shorten(network)
    return model


def reads_features(model: Model) -> bool:
    """Whether what a draft says hangs on its target's features, too."""
    return type(model).reading is not Model.reading
