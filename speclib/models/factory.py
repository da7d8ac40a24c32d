"""Builds what a pair describes: its models, and what they share.

A ``Pair`` is a description that was read from a file. Here it becomes models, a
tokenizer, limits and a datastore, on the places that this machine has. What is heavy
(torch, transformers, llama.cpp) is imported only when it is needed. Knows no world and
no method.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from speclib.core.settings import Role
from speclib.data.pairs import ModelSpec, Pair
from speclib.data.placement import Place
from speclib.data.retrieval import Datastore, training_text

from . import configuration, gpus, vocabulary
from .dtypes import check_dtype
from .file_states import State, state_of
from .toy import Toy, ToyTokenizer
from .vocabulary import limits, shared_tokenizer
from .zoo import locate

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from speclib.models.rank import Rank
    from speclib.operations.operation import HasReplicas, Model

    from .eagle_head import Head
    from .fixed_rows import FixedRows
    from .hf import HFModel
    from .llamacpp.model import LlamaCpp
    from .parallel.layer_parallel import Layered, LeadingDrafter
    from .parallel.pipeline import Pipeline
    from .parallel.replicas import LeadingReplica, Replica
    from .parallel.tensor_parallel import Tensors

    # The type checker sees to it that all of them answer as a Model does.
    ANSWER_AS_A_MODEL: tuple[type[Model], ...] = (
        Toy,
        HFModel,
        FixedRows,
        Head,
        Layered,
        Tensors,
        Pipeline,
        Replica,
        LeadingDrafter,
        LlamaCpp,
    )
    TAKES_TURNS: type[HasReplicas] = LeadingReplica


def place(pair: Pair) -> Place:
    """Where ``pair`` is computed here: of alternatives, the first that there is."""
    if not pair.place.has_alternatives:
        return pair.place  # nobody needs to ask torch how many GPUs there are
    return pair.place.on_machine_with(gpus.count())


def ranks(pair: Pair, role: Role, index: int = 0) -> int:
    """How many processes compute the model of one device of ``role`` together."""
    if pair.model(role).spread == "blocks":
        return 1
    return len(place(pair).of(role, index))


def runtime(pair: Pair, role: Role) -> str:
    """What computes a model here: "toy", "torch" or, say, "llama.cpp Q5_K_M"."""
    spec = pair.model(role)
    if spec.is_toy:
        return "toy"
    if not spec.in_llamacpp:
        return "torch"
    if not spec.is_gguf:
        return f"llama.cpp {spec.quantization}"
    from .llamacpp.gguf import describe

    return f"llama.cpp {describe(spec.model).quantization}"


def set_threads(pair: Pair) -> None:
    """Sets how many threads torch takes in this process to compute ``pair``'s models.

    By itself it takes one for each core, and each waits for the others in a loop that
    keeps its core busy. Where another program has a core, a pass of a small model then
    takes more than ten times as long (docs/log/2026-11-25.md). A pair that says how
    many threads a device has gets no more of them, and any other pair as many as torch
    took at first. Call it when the models are loaded, since they bring torch.
    """
    if "torch" not in sys.modules or pair.target.is_toy:
        return
    threads = own_threads_of_torch()
    if "threads" in pair.place.model_fields_set:
        threads = min(pair.place.threads, threads)
    sys.modules["torch"].set_num_threads(threads)


@cache
def own_threads_of_torch() -> int:
    """How many threads torch took before anybody here set them."""
    threads: int = sys.modules["torch"].get_num_threads()
    return threads


# -- models ----------------------------------------------------------------------------
def build(
    pair: Pair,
    role: Role,
    dtype: str = "auto",
    *,
    dilated: bool = True,
    packed: bool = True,
    index: int = 0,
    rank: Rank | None = None,
) -> Any:
    """Builds the model of the ``index``-th device of ``role``.

    Returns a Model. On any ``rank`` but the first it returns a Following, which obeys
    the first.

    ``dtype``: auto (float32), float32, float64, bfloat16 or float16. ``dilated=False``
    gives the same logits at the cost that the model was trained at. ``packed=False``
    leaves torch's own linear layers. These three are torch's: in llama.cpp the
    quantised weights are those of the shape, which it keeps, and a toy has none.
    ``rank``: the worker.Rank whose part is wanted; None builds the whole model in this
    process.
    """
    check_dtype(dtype)
    model = _build(pair, role, dtype, dilated, packed, index, rank)
    if role == "draft":
        own = model if rank is None else model.model  # Leading or Following has it
        own.stand_in = _stand_in(pair)
    return model


def _stand_in(pair: Pair) -> int | None:
    """What the draft is fed for a token without a row; None: it has all rows."""
    if pair.target.is_toy:
        return None
    draft = pair.draft.model
    if limits(draft).vocab >= vocab(pair):
        return None
    return vocabulary.stand_in(draft)


def _build(
    pair: Pair,
    role: Role,
    dtype: str,
    dilated: bool,
    packed: bool,
    index: int,
    rank: Rank | None,
) -> Any:
    """As ``build``, without a draft's stand-in."""
    spec = pair.model(role)
    places = place(pair).of(role, index)
    if spec.is_toy:
        return _toy(spec, role)
    if spec.in_llamacpp:
        from .llamacpp import model

        return model.load(spec, places, pair.place.threads, vocab(pair), context(pair))
    if not dilated:
        spec = spec.undilated
    if spec.head:
        from . import eagle_head

        return eagle_head.load(spec, dtype, places, vocab(pair), packed)

    if spec.fixed_rows is not None:
        from . import fixed_rows

        return fixed_rows.load(spec, dtype, places, vocab(pair), packed)

    # A draft in one piece can give one input to several of its layers: it is loaded so.
    if spec.spread == "layers" or (role == "draft" and spec.spread == "blocks"):
        from .parallel import layer_parallel

        return layer_parallel.load(spec, dtype, places, vocab(pair), packed, rank)
    if rank is None:
        from . import hf

        return hf.load(spec, dtype, places, vocab(pair), packed)

    from .parallel import pipeline, replicas, tensor_parallel

    load_part = {
        "tensors": tensor_parallel.load,
        "stages": pipeline.load,
        "replicas": replicas.load,
    }[spec.spread]
    return load_part(spec, dtype, places, vocab(pair), packed, rank)


def _toy(spec: ModelSpec, role: Role) -> Toy:
    alpha = spec.alpha if role == "draft" else None  # a target agrees with itself
    return Toy(alpha, spec.vocab, spec.seed, spec.words, spec.context)


# -- what both models share ------------------------------------------------------------
def tokenizer(pair: Pair) -> PreTrainedTokenizerBase | ToyTokenizer:
    """The target's tokenizer; raises BadValue if the draft has another one."""
    if pair.target.is_toy:
        return _toy_tokenizer(pair.target.vocab)
    return shared_tokenizer(pair.target.model, pair.draft.model)


@cache
def _toy_tokenizer(vocab: int) -> ToyTokenizer:
    return ToyTokenizer(vocab)


def vocab(pair: Pair) -> int:
    """How many rows all distributions of the pair have: the target's own.

    So plain decoding can write whatever the target can. A draft may have more rows or
    fewer: see ``vocabulary``.
    """
    if pair.target.is_toy:
        return pair.target.vocab
    return limits(pair.target.model).vocab


def context(pair: Pair) -> int:
    """The longest text, in tokens, that both models accept."""
    if pair.target.is_toy:
        return min(pair.target.context, pair.draft.context)
    _, target_length = limits(pair.target.model)
    _, draft_length = limits(pair.draft.model)
    return min(target_length, draft_length)


def end_tokens(pair: Pair) -> frozenset[int]:
    """The tokens of which any one ends a text: the target's. A toy has none."""
    if pair.target.is_toy:
        return frozenset()
    return configuration.end_tokens(pair.target.model)


def files(pair: Pair) -> tuple[State, ...]:
    """The state of the models' files: it changes when somebody changes one of them."""
    if pair.target.is_toy:
        return ()
    models = (pair.target.model, pair.draft.model)
    return tuple(state_of(locate(model)) for model in models)


def datastore(pair: Pair) -> Datastore | None:
    """What REST looks up: our training text in the tokens of ``pair``.

    None for toys: there REST looks up their own text.
    """
    if pair.target.is_toy:
        return None
    return training_text(tokenizer(pair))
