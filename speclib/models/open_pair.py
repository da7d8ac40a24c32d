"""An open pair: its models' files, what the two models share, and how to build them.

    Pair (a description)  ->  OpenPair (opened once)  ->  a world  ->  a method

A ``Pair`` is a description read from a file. An open pair has two checkpoints, a
tokenizer, limits, a datastore, and models on the devices of this machine. Each of these
is read once, on first use. Heavy libraries (torch, transformers, llama.cpp) are
imported only when needed. This module does not depend on worlds or methods.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from speclib.core.settings import ROLES, Role
from speclib.data.pairs import ModelSpec, Pair
from speclib.data.placement import Place
from speclib.data.retrieval import Datastore, held_out_text, own_text
from speclib.errors import BadValue
from speclib.operations.model import Model

from . import gpus, vocabulary
from .checkpoint import Checkpoint, find
from .generation_config import GenerationSettings
from .loading import Loading, Rank, check_dtype
from .toy import Toy, ToyTokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from .batched import Feed, SharedNetwork
    from .llamacpp.gguf import Card

LOSSLESS = ("auto", "float32", "float64")


class OpenPair:
    """A ``pair``, with access to its models' files.

    Its members raise BadValue if the pair cannot work, for example because its
    vocabularies differ, or because no method can run one of its models.
    """

    def __init__(self, pair: Pair):
        self.pair = pair
        self.is_toy = pair.target.is_toy

    # -- the two models' files ---------------------------------------------------------
    @cached_property
    def target(self) -> Checkpoint:
        """The target's files; a toy has none."""
        spec = self.pair.target
        if spec.is_gguf:
            raise BadValue(
                f"the target {spec.model} is a GGUF file, and torch needs a "
                f"checkpoint: `python -m speclib fetch {spec.model}` makes the folder "
                f"{spec.model.removesuffix('.gguf')} from it. A draft may be a .gguf"
            )
        return find(spec)

    @cached_property
    def draft(self) -> Checkpoint | Card:
        """The draft's files; a toy has none."""
        spec = self.pair.draft
        if not spec.is_gguf:
            return find(spec)
        from .llamacpp.gguf import describe

        return describe(spec.model)

    def files(self, role: Role) -> Checkpoint | Card:
        """The files of one of the two models."""
        return self.draft if role == "draft" else self.target

    # -- what both models share --------------------------------------------------------
    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerBase | ToyTokenizer:
        """The target's tokenizer; raises BadValue if the draft's differs."""
        if self.is_toy:
            return ToyTokenizer(self.pair.target.vocab)
        target, draft = self.target, self.draft
        if target.model != draft.model:
            _check_same_words(target, draft)
        return target.tokenizer

    @cached_property
    def vocab(self) -> int:
        """The length of each distribution in the pair: the target's vocabulary size.

        Every method can therefore write any token that the target can. A draft may have
        more tokens or fewer: see ``vocabulary``. Raises BadValue if the pair's mask
        token is not in the draft's vocabulary.
        """
        if self.is_toy:
            return self.pair.target.vocab
        mask = self.pair.draft.mask
        if mask is not None and mask >= self.draft.vocab:
            raise BadValue(
                f"draft.mask is {mask}, but {self.pair.draft.model!r} has a vocabulary "
                f"of {self.draft.vocab:,} tokens: give the id of the token that it was "
                "trained to read as a mask"
            )
        return self.target.vocab

    @cached_property
    def context(self) -> int:
        """The longest text, in tokens, that both models accept."""
        if self.is_toy:
            return min(self.pair.target.context, self.pair.draft.context)
        return min(self.target.context, self.draft.context)

    @property
    def end_tokens(self) -> frozenset[int]:
        """The target's end tokens; each ends a text. A toy has none."""
        return frozenset() if self.is_toy else self.target.end_tokens

    @property
    def generation_settings(self) -> GenerationSettings:
        """The settings in the target's generation_config.json; empty for a toy."""
        return GenerationSettings() if self.is_toy else self.target.generation_settings

    @cached_property
    def datastore(self) -> Datastore | None:
        """The texts that REST searches: the pair's, or else our held-out tasks.

        None for toys: the text written so far is searched. Raises BadValue if texts are
        missing.
        """
        if self.is_toy:
            return None
        if self.pair.datastore is not None:
            return own_text(self.tokenizer, self.pair.datastore)
        return held_out_text(self.tokenizer)

    # -- where the models run, and in which library ------------------------------------
    @cached_property
    def place(self) -> Place:
        """Where the pair runs: the first of its listed places that this machine has."""
        place = self.pair.place
        if not place.has_alternatives:
            return place  # so that torch does not have to count the GPUs
        return place.on_machine_with(gpus.count())

    def ranks(self, role: Role, index: int = 0) -> int:
        """The number of processes that together run the model of a ``role`` device."""
        if self.pair.model(role).spread == "blocks":
            return 1
        return len(self.place.of(role, index))

    def runtime(self, role: Role) -> str:
        """The library that runs a model: "toy", "torch" or, say, "llama.cpp Q5_K_M"."""
        spec = self.pair.model(role)
        if spec.is_toy:
            return "toy"
        if not spec.in_llamacpp:
            return "torch"
        files = self.files(role)
        kept = spec if isinstance(files, Checkpoint) else files
        return f"llama.cpp {kept.quantization}"

    def set_threads(self) -> None:
        """Sets how many threads torch uses in this process to run the models.

        By default, it uses one per core, and each waits for the others in a busy loop.
        If another program occupies a core, a forward pass of a small model then takes
        more than ten times as long (see docs/decisions.md). A pair that sets threads
        per device gets at most that number; other pairs get torch's default. Call this
        after loading the models, since loading them imports torch.
        """
        if "torch" not in sys.modules or self.is_toy:
            return
        threads = default_torch_threads()
        if "threads" in self.pair.place.model_fields_set:
            threads = min(self.pair.place.threads, threads)
        sys.modules["torch"].set_num_threads(threads)

    # -- models ------------------------------------------------------------------------
    def build(
        self,
        role: Role,
        dtype: str = "auto",
        *,
        dilated: bool = True,
        packed: bool = True,
        index: int = 0,
        rank: Rank | None = None,
    ) -> Any:
        """Builds the model of the ``index``-th device of ``role``.

        Returns a Model. On any ``rank`` but the first, it returns a Following, which
        obeys the first.

        ``dtype``: auto (float32), float32, float64, bfloat16 or float16.
        ``dilated=False`` builds the model as trained, which is faster and has the same
        logits. ``packed=False`` keeps torch's own linear layers. These three apply to
        torch only: llama.cpp keeps its quantised weights and their shape, and a toy has
        no weights. ``rank``: the Rank whose part is built; None builds the whole model
        in this process.
        """
        check_dtype(dtype)
        spec = self.pair.model(role)
        if spec.is_toy:
            return _toy(spec, role)
        files = self.files(role)
        places = self.place.of(role, index)
        model: Any
        if spec.in_llamacpp:
            from .llamacpp.quantised_model import load_quantised

            threads = self.pair.place.threads
            model = load_quantised(files, places, threads, self.vocab, self.context)
        else:
            assert isinstance(files, Checkpoint)
            checkpoint = files if dilated else files.undilated
            loading = Loading(checkpoint, self.vocab, dtype, places, packed, rank)
            model = _load(loading, role)

        if role == "draft" and files.vocab < self.vocab:
            own = model if rank is None else model.model  # within Leading or Following
            own.stand_in = vocabulary.stand_in(files.named_tokens, files.vocab)
        return model

    def build_seats(
        self,
        role: Role,
        seats: int,
        dtype: str,
        *,
        dilated: bool,
        ask: Callable[[SharedNetwork, Feed], Any],
    ) -> list[Model]:
        """Builds models that share their weights, one for each of ``seats`` requests.

        ``ask(network, feed)`` returns the logits of a forward pass of the shared
        network. Raises BadValue as ``check_seats`` does.
        """
        self.check_seats(dtype)
        if self.is_toy:
            return [self.build(role, dtype) for _ in range(seats)]
        from . import batched

        model = self.build(role, dtype, dilated=dilated)
        return batched.over_seats(model, seats, ask)

    def check_seats(self, dtype: str) -> None:
        """Raises BadValue for a pair that cannot serve several requests at once.

        Each model must run in torch, in one place. In a reduced-precision dtype, all of
        the target's passes must have the same shape; otherwise a text would depend on
        the other requests.
        """
        check_dtype(dtype)
        if self.is_toy:
            return
        if dtype not in LOSSLESS and self.pair.target.fixed_rows is None:
            raise BadValue(
                f"dtype is {dtype!r}: its logits depend on the shape of a forward "
                "pass, which changes with the other requests. Give 'float32', or a "
                "pair with passes of one shape: load_pair(name).with_fixed_rows(16)"
            )
        for role in ROLES:
            spec = self.pair.model(role)
            is_spread = self.ranks(role) > 1
            if spec.in_llamacpp or spec.head or spec.recorded or is_spread:
                raise BadValue(
                    f"the {role} of pair {self.pair.name!r} serves one request at a "
                    "time: for several, give models that run in torch on one place "
                    "each, without EAGLE heads or recorded passes"
                )


def open_pair(pair: Pair | OpenPair) -> OpenPair:
    """Opens ``pair``; if it is already an OpenPair, returns it unchanged."""
    return pair if isinstance(pair, OpenPair) else OpenPair(pair)


def _check_same_words(target: Checkpoint, draft: Checkpoint | Card) -> None:
    """Raises BadValue if any id stands for different words in the two models."""
    words, draft_words = target.words, draft.words
    for token in sorted(words.keys() & draft_words.keys()):
        if words[token] != draft_words[token]:
            raise BadValue(
                f"target {target.model!r} and draft {draft.model!r} have different "
                f"tokenizers: id {token} is {words[token]!r} and "
                f"{draft_words[token]!r}. Speculative decoding needs one vocabulary: "
                "choose models from one family"
            )


@cache
def default_torch_threads() -> int:
    """torch's default number of threads, as it was before we changed it."""
    threads: int = sys.modules["torch"].get_num_threads()
    return threads


def _toy(spec: ModelSpec, role: Role) -> Toy:
    alpha = spec.alpha if role == "draft" else None  # a target agrees with itself
    return Toy(alpha, spec.vocab, spec.seed, spec.words, spec.context)


def _load(loading: Loading, role: Role) -> Any:
    """Loads a checkpoint into torch in the way that its pair specifies."""
    spec = loading.checkpoint.spec
    if spec.head:
        from . import eagle_head

        return eagle_head.load(loading)
    if spec.fixed_rows is not None:
        from . import fixed_rows

        return fixed_rows.load(loading)

    # A draft in one process is loaded layer-parallel, so that its layers can share an
    # input.
    if spec.spread == "layers" or (role == "draft" and spec.spread == "blocks"):
        from .parallel import layer_parallel

        return layer_parallel.load(loading)
    if loading.rank is None:
        from . import hf

        return hf.load(loading)
    from .parallel import pipeline, replicas, tensor_parallel

    ways = {
        "tensors": tensor_parallel.load,
        "stages": pipeline.load,
        "replicas": replicas.load,
    }
    return ways[spec.spread](loading)
