"""Pairs: a target, a draft, and how they are placed. Files under ``data/pairs``.

A model is ``zoo/<name>`` (embedded), ``toy``, a folder, a hub id, or a .gguf; ``shape = [layers,
width, heads, ffn]`` dilates it: the same logits at the compute of a larger architecture.
``runtime`` says what computes it. Building a model imports torch; describing one does not.
"""

from __future__ import annotations

import tomllib
from functools import cached_property
from importlib.util import find_spec
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from speclib.errors import SpeclibError
from speclib.paths import DATA

from .placement import Place

EXTRA = ("llama_cpp", "gguf")  # what the extra llamacpp installs


class ModelSpec(BaseModel):
    """What a worker needs to build one model; ``alpha`` and what follows are a toy's.

    ``runtime``: "torch", "llamacpp" (its weights then in ``quantization``; on the CPU), or "auto":
    llama.cpp where the extra is installed, else torch. A .gguf is llama.cpp's, quantised as it is.
    ``spread``: what several places share: "blocks" of layers, one GPU after the other; "tensors",
    all computing each layer (models.tensors); "layers", several at once (models.layered).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    model: str
    shape: tuple[int, int, int, int] | None = None
    runtime: Literal["torch", "llamacpp", "auto"] = "torch"
    quantization: Literal["F32", "F16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M"] = "F16"
    spread: Literal["blocks", "layers", "tensors"] = "blocks"
    alpha: float | None = None
    vocab: int = 16
    seed: int = 0
    words: tuple[int, ...] = ()
    context: int = 1 << 14

    @model_validator(mode="after")
    def _fits_a_gguf(self):
        if self.spread != "blocks" and (self.is_toy or self.runtime != "torch"):
            raise ValueError(
                f"spread is {self.spread!r}, but {self.model!r} is not torch's to "
                'compute: leave it out, or give a checkpoint and runtime "torch"'
            )
        given = {"shape", "quantization", "runtime", "spread"} & self.model_fields_set
        given -= {"runtime"} if self.runtime != "torch" else set()
        if self.is_gguf and given:
            raise ValueError(
                f"{', '.join(sorted(given))} beside {self.model!r}: a .gguf has its "
                "shape and quantization, and llama.cpp alone runs it; leave that out, "
                "or give the checkpoint that it was made of"
            )
        return self

    @property
    def is_toy(self) -> bool:
        return self.model == "toy"

    @property
    def is_gguf(self) -> bool:
        return self.model.endswith(".gguf")

    @property
    def in_llamacpp(self) -> bool:
        """Whether llama.cpp computes it, here and now."""
        auto = self.runtime == "auto" and all(map(find_spec, EXTRA))
        return self.is_gguf or self.runtime == "llamacpp" or auto


class Pair(BaseModel):
    """A target and a draft of one vocabulary. ``latency`` names the file for virtual runs."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", ignored_types=(cached_property,)
    )
    target: ModelSpec
    draft: ModelSpec
    place: Place = Place()
    latency: str | None = None
    stands_for: str = ""
    name: str = "unnamed"
    about: str = ""

    def build(
        self,
        role: Literal["draft", "target"],
        dtype: str = "auto",
        dilated: bool = True,
        packed: bool = True,
        index: int = 0,
        rank=None,
    ):
        """The model of ``role``'s ``index``-th device; ``dilated=False`` gives the same logits at
        the cost it was trained at, ``packed=False`` torch's own linear layers. ``dtype``: auto
        (float32), float32, float64, bfloat16, float16. All three are torch's: in llama.cpp the
        quantised weights are those of the shape, which it keeps. ``rank``: a worker.Rank, whose
        part is wanted; None: the whole, in this process."""
        spec = getattr(self, role)
        if spec.is_toy:
            from speclib.models.toy import Toy

            return Toy(
                spec.alpha if role == "draft" else None,
                spec.vocab,
                spec.seed,
                spec.words,
                spec.context,
            )
        if spec.in_llamacpp:
            from speclib.models.llamacpp.model import load

            return load(
                spec,
                self.place.of(role, index),
                self.place.threads,
                self.vocab,
                self.context,
            )
        spec = spec if dilated else spec.model_copy(update={"shape": None})
        what = dtype, self.place.of(role, index), self.vocab, packed
        if spec.spread == "layers" or (role, spec.spread) == ("draft", "blocks"):
            from speclib.models.parallel.layer_parallel import load

            return load(spec, *what, rank)
        if rank is None:
            from speclib.models.hf import load

            return load(spec, *what)
        from speclib.models.parallel.tensor_parallel import load

        return load(spec, *what, rank)

    def ranks(self, role: Literal["draft", "target"], index: int = 0) -> int:
        """How many processes compute its model together."""
        alone = getattr(self, role).spread == "blocks"
        return 1 if alone else len(self.place.of(role, index))

    def runtime(self, role: Literal["draft", "target"]) -> str:
        """What computes the model of ``role`` here: "toy", "torch", or "llama.cpp Q5_K_M"."""
        spec = getattr(self, role)
        if spec.is_toy or not spec.in_llamacpp:
            return "toy" if spec.is_toy else "torch"
        if not spec.is_gguf:
            return f"llama.cpp {spec.quantization}"
        from speclib.models.llamacpp.gguf import described

        return f"llama.cpp {described(spec.model).quantization}"

    @cached_property
    def tokenizer(self):
        """The target's tokenizer, checked against the draft's."""
        if self.target.is_toy:
            from speclib.models.toy import ToyTokenizer

            return ToyTokenizer(self.target.vocab)
        from speclib.models.zoo import shared_tokenizer

        return shared_tokenizer(self.target.model, self.draft.model)

    @property
    def datastore(self):
        """What REST looks up: our training text in this pair's tokens. None: a toy's own text."""
        from .retrieval import training_text

        return None if self.target.is_toy else training_text(self.tokenizer)

    @property
    def vocab(self) -> int:
        """Rows both models have: extra rows of a wider head are never sampled."""
        return self._limits[0]

    @property
    def context(self) -> int:
        """The longest text, in tokens, that both models accept."""
        return self._limits[1]

    @cached_property
    def _limits(self) -> tuple[int, int]:
        if self.target.is_toy:
            return self.target.vocab, self.target.context
        from speclib.models.zoo import limits

        both = limits(self.target.model), limits(self.draft.model)
        return min(v for v, _ in both), min(c for _, c in both)


def load_pair(name: str) -> Pair:
    """Reads ``data/pairs/<name>.toml``."""
    path = DATA / "pairs" / f"{name}.toml"
    if not path.exists():
        known = sorted(
            str(p.relative_to(DATA / "pairs").with_suffix(""))
            for p in (DATA / "pairs").rglob("*.toml")
        )
        raise SpeclibError(
            f"no pair {name!r} under {DATA / 'pairs'}; known: {', '.join(known)}. "
            "For models of your own: speclib.pair(target=..., draft=...)"
        )
    try:
        return Pair(**tomllib.loads(path.read_text()), name=name)
    except (ValidationError, tomllib.TOMLDecodeError) as error:
        raise SpeclibError(f"{path}: {error}") from error


def pair(
    target: str | dict, draft: str | dict, *, name: str | None = None, **settings
) -> Pair:
    """A pair of your own: folders or hub ids of one tokenizer, or dicts of all that a pair file may
    say of a model, {"model": ..., "spread": "tensors"}. ``settings``: place, latency."""
    target, draft = ({"model": m} if isinstance(m, str) else m for m in (target, draft))
    name = name or f"{draft.get('model')}+{target.get('model')}"
    try:
        return Pair(target=target, draft=draft, name=name, **settings)
    except ValidationError as error:
        raise SpeclibError(f"{name}: {error}") from error
