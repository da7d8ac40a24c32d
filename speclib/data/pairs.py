"""Pairs: a target, a draft, and how they are placed. Files under ``data/pairs``.

A model is ``zoo/<name>`` (embedded), ``toy``, a folder, a hub id, or a .gguf; ``shape = [layers,
width, heads, ffn]`` dilates it: the same logits at the compute of a larger architecture.
``runtime`` says what computes it. This describes; ``models.factory`` builds.
"""

from __future__ import annotations

import tomllib
from importlib.util import find_spec
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from speclib.errors import SpeclibError
from speclib.paths import DATA

from .placement import Place

Role = Literal["draft", "target"]
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

    model_config = ConfigDict(frozen=True, extra="forbid")
    target: ModelSpec
    draft: ModelSpec
    place: Place = Place()
    latency: str | None = None
    stands_for: str = ""
    name: str = "unnamed"
    about: str = ""

    def model(self, role: Role) -> ModelSpec:
        """What describes the model of ``role``."""
        return self.draft if role == "draft" else self.target


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
