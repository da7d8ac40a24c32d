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

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from .errors import SpeclibError
from .paths import DATA

EXTRA = ("llama_cpp", "gguf")                # what the extra llamacpp installs


class ModelSpec(BaseModel):
    """What a worker needs to build one model; ``alpha`` and what follows are a toy's.

    ``runtime``: "torch", "llamacpp" (its weights then in ``quantization``; on the CPU), or "auto":
    llama.cpp where the extra is installed, else torch. A .gguf is llama.cpp's, quantised as it is.
    ``layer_parallel``: layers that a draft runs at once, its places then ranks (models.layered).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    model: str
    shape: tuple[int, int, int, int] | None = None
    runtime: Literal["torch", "llamacpp", "auto"] = "torch"
    quantization: Literal["F32", "F16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M"] = "F16"
    layer_parallel: int = Field(1, ge=1)
    alpha: float | None = None
    vocab: int = 16
    seed: int = 0
    words: tuple[int, ...] = ()
    context: int = 1 << 14

    @model_validator(mode="after")
    def _fits_a_gguf(self):
        given = {"shape", "quantization", "runtime"} & self.model_fields_set
        given -= {"runtime"} if self.runtime != "torch" else set()
        if self.is_gguf and given:
            raise ValueError(f"{', '.join(sorted(given))} beside {self.model!r}: a .gguf has its "
                             "shape and quantization, and llama.cpp alone runs it; leave that out, "
                             "or give the checkpoint that it was made of")
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


class Place(BaseModel):
    """Places per role: ``core:N`` (pinned), ``cpu``, ``cuda:N``, or alternatives, of which the
    first that there is counts: ``cuda:0|core:1``; CPU threads per device.
    ``servers``: those of target-2, target-3, ...; left out, they take the cores after the target's,
    and begin again with the first when there are no more."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    draft: tuple[str, ...] = ("cpu",)
    target: tuple[str, ...] = ("cpu",)
    servers: tuple[tuple[str, ...], ...] = ()
    threads: int = 1

    def of(self, role: str, index: int = 0) -> tuple[str, ...]:
        """The places of the ``index``-th device of ``role``."""
        if role == "draft" or index == 0:
            return tuple(map(_there, getattr(self, role)))
        if index <= len(self.servers):
            return tuple(map(_there, self.servers[index - 1]))
        first = self.of("target")
        if any(p.startswith("cuda") for p in first):
            raise SpeclibError(f"target-{index + 1} has no place: place.servers names "
                               f"{len(self.servers)} besides the target's {first}; give "
                               "each further target GPUs of its own, [[\"cuda:2\"], ...]")
        cores = [int(p.removeprefix("core:")) for p in first if p.startswith("core:")]
        return tuple(f"core:{c + index * len(cores)}" for c in cores) or first


def _there(place: str) -> str:
    """The first alternative of ``place`` that this machine has; nobody asks for the last."""
    *others, last = place.split("|")
    return next((p for p in others if not p.startswith("cuda") or _has(p)), last)


def _has(gpu: str) -> bool:
    from .models.gpus import count
    return int(gpu.removeprefix("cuda:")) < count()


class Pair(BaseModel):
    """A target and a draft of one vocabulary. ``latency`` names the file for virtual runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))
    target: ModelSpec
    draft: ModelSpec
    place: Place = Place()
    latency: str | None = None
    stands_for: str = ""
    name: str = "unnamed"
    about: str = ""

    def build(self, role: Literal["draft", "target"], dtype: str = "auto", dilated: bool = True,
              packed: bool = True, index: int = 0, **rank):
        """The model of ``role``'s ``index``-th device; ``dilated=False`` gives the same logits at
        the cost it was trained at, ``packed=False`` torch's own linear layers. ``dtype``: auto
        (float32), float32, float64, bfloat16, float16. All three are torch's: in llama.cpp the
        quantised weights are those of the shape, which it keeps. ``rank``: see layered.load."""
        spec = getattr(self, role)
        if spec.is_toy:
            from .models.toy import Toy
            return Toy(spec.alpha if role == "draft" else None, spec.vocab, spec.seed, spec.words,
                       spec.context)
        if spec.in_llamacpp:
            from .models.llamacpp import load
            return load(spec, self.place.of(role, index), self.place.threads, self.vocab,
                        self.context)
        from .models.hf import load
        if spec.layer_parallel > 1:
            from .models.layered import load
        return load(spec if dilated else spec.model_copy(update={"shape": None}), dtype,
                    self.place.of(role, index), self.vocab, packed, **rank)

    def runtime(self, role: Literal["draft", "target"]) -> str:
        """What computes the model of ``role`` here: "toy", "torch", or "llama.cpp Q5_K_M"."""
        spec = getattr(self, role)
        if spec.is_toy or not spec.in_llamacpp:
            return "toy" if spec.is_toy else "torch"
        if not spec.is_gguf:
            return f"llama.cpp {spec.quantization}"
        from .models.ggufs import described
        return f"llama.cpp {described(spec.model).quantization}"

    @cached_property
    def tokenizer(self):
        """The target's tokenizer, checked against the draft's."""
        if self.target.is_toy:
            from .models.toy import ToyTokenizer
            return ToyTokenizer(self.target.vocab)
        from .models.zoo import shared_tokenizer
        return shared_tokenizer(self.target.model, self.draft.model)

    @property
    def datastore(self):
        """What REST looks up: our training text in this pair's tokens. None: a toy's own text."""
        from .datastore import training_text
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
        from .models.zoo import limits
        both = limits(self.target.model), limits(self.draft.model)
        return min(v for v, _ in both), min(c for _, c in both)


def load_pair(name: str) -> Pair:
    """Reads ``data/pairs/<name>.toml``."""
    path = DATA / "pairs" / f"{name}.toml"
    if not path.exists():
        known = sorted(str(p.relative_to(DATA / "pairs").with_suffix(""))
                       for p in (DATA / "pairs").rglob("*.toml"))
        raise SpeclibError(f"no pair {name!r} under {DATA / 'pairs'}; known: {', '.join(known)}. "
                           "For models of your own: speclib.pair(target=..., draft=...)")
    try:
        return Pair(**tomllib.loads(path.read_text()), name=name)
    except (ValidationError, tomllib.TOMLDecodeError) as error:
        raise SpeclibError(f"{path}: {error}") from error


def pair(target: str, draft: str, *, name: str | None = None, **settings) -> Pair:
    """A pair of your own: folders or hub ids of one tokenizer. ``settings``: place, latency."""
    return Pair(target=ModelSpec(model=target), draft=ModelSpec(model=draft),
                name=name or f"{draft}+{target}", **settings)
