"""Pairs: a target, a draft, and the devices they run on, in files under ``data/pairs``.

A model is ``zoo/<name>`` (embedded), ``fetched/<name>`` (from `speclib fetch`),
``toy``, a folder, a hub id, or a .gguf. A ``shape`` dilates it: its logits stay the
same, at the cost of a larger architecture. ``like`` dilates it to the exact shape of a
published model. ``runtime`` is the library that computes it. This module describes
models; ``models.open_pair`` builds them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from speclib.arguments import Count, Seed, Share, Whole, checked, problems_in, shown
from speclib.core.settings import Role
from speclib.errors import BadValue
from speclib.paths import DATA, FETCHED

from .placement import Place
from .shapes import Dilation, load_shape
from .toml_files import names_under, read_toml, toml_path

# A pass over more tokens than this would cost more than it could ever save.
FixedRows: TypeAlias = Annotated[int, Whole(least=1, most=4096)]

# The initial number of slots of a cache; at least the default.
FirstRoom: TypeAlias = Annotated[int, Whole(least=256, most=1 << 20)]

EXTRA = ("llama_cpp", "gguf")  # what the extra llamacpp installs

OF_FETCHED = "fetched/"  # how a pair names a model from `speclib fetch`

# Settings of a ModelSpec that have an effect on only some kinds of model.
OF_TOYS = {"alpha", "vocab", "seed", "words", "context"}
OF_TORCH = {"like", "spread", "fixed_rows", "recorded", "first_room", "head"}
OF_WEIGHTS = OF_TORCH | {"shape", "quantization"}


def _as_text(value: object) -> object:
    """A path made absolute, so that it is not taken for a hub id, and "~" expanded."""
    if isinstance(value, Path):
        return str(value.expanduser().absolute())
    if isinstance(value, str) and value.startswith("~"):
        return os.path.expanduser(value)
    if isinstance(value, str) and value.startswith(OF_FETCHED):
        return str(FETCHED / value.removeprefix(OF_FETCHED))
    return value


# A path, a hub id, or another name of a model.
Name: TypeAlias = Annotated[str, Field(min_length=1), BeforeValidator(_as_text)]


class ModelSpec(BaseModel):
    """What a worker needs to know to build one model.

    model         see the top of this file
    shape         layers, width, heads and ffn of the architecture it is dilated to
    like          instead of a shape: the name of a file under data/shapes with the
                  shape it is dilated to
    runtime       "torch", "llamacpp" (on the CPU), or "auto": llama.cpp if the extra is
                  installed, else torch. A .gguf always runs in llama.cpp
    quantization  of the weights in llama.cpp; a .gguf keeps its own
    spread        how several places share the model: "blocks" of layers, one GPU after
                  another; "tensors", each layer computed by all (see
                  models.parallel.tensor_parallel); "layers", several layers at once
                  (see models.parallel.layer_parallel); "stages", blocks of layers in
                  processes, one place after another (see models.parallel.pipeline);
                  "replicas", a whole copy on each, which draft in turns (see
                  models.parallel.replicas)
    fixed_rows    how many tokens every pass is fed, even if fewer are new, so that the
                  same text gives the same bits in every method (see models.fixed_rows);
                  None: only the new tokens
    recorded      with fixed_rows on a GPU: a pass is recorded once and then repeated by
                  the GPU alone (see models.recorded_pass). Off by default: so far it
                  has been shown to be exact only on an H100 and an H200
    first_room    with fixed_rows: how many slots of the cache every pass reads, until a
                  text needs more; None: 256. When a text outgrows them, its passes are
                  recorded again, so choose a number that suits most texts. A multiple
                  of 8 suits the kernels
    head          for a draft: use the EAGLE head (see models.eagle_head) in the model's
                  folder instead of the model itself; the shape is the head's
    mask          for a draft trained to write all its tokens in one pass, like PARD's:
                  the id of the placeholder for a token that is not yet written (see
                  operations.propose)
    alpha, vocab, seed, words, context
                  for a toy, see Toy
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    model: Name
    shape: tuple[Count, Count, Count, Count] | None = None
    like: str | None = None
    runtime: Literal["torch", "llamacpp", "auto"] = "torch"
    quantization: Literal["F32", "F16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M"] = "F16"
    spread: Literal["blocks", "layers", "tensors", "stages", "replicas"] = "blocks"
    fixed_rows: FixedRows | None = None
    recorded: bool = False
    first_room: FirstRoom | None = None
    head: bool = False
    mask: Annotated[int, Whole(least=0)] | None = None
    alpha: Share | None = None
    vocab: Annotated[int, Whole(least=3)] = 16
    seed: Seed = 0
    words: tuple[Annotated[int, Whole(least=0)], ...] = ()
    context: Count = 1 << 14

    @model_validator(mode="after")
    def _refuse_idle_settings(self) -> Self:
        """Raises ValueError for settings without effect on this kind of model."""
        if self.is_toy:
            idle = OF_WEIGHTS
        elif self.is_gguf:
            idle = OF_TOYS | OF_WEIGHTS
            if self.runtime == "torch":  # refused only if given, see below
                idle = idle | {"runtime"}
        elif self.runtime == "torch":
            idle = OF_TOYS | {"quantization"}
        else:
            idle = OF_TOYS | OF_TORCH
        idle = idle & self.model_fields_set  # without the defaults
        if idle:
            raise ValueError(
                f"{', '.join(sorted(idle))} would have no effect on {self.model!r}: "
                "leave it out"
            )
        return self

    @model_validator(mode="after")
    def _refuse_contradictions(self) -> Self:
        """Raises ValueError for settings that contradict each other."""
        for name in ("recorded", "first_room"):
            if getattr(self, name) and self.fixed_rows is None:
                raise ValueError(
                    f"{name} for {self.model!r} needs fixed_rows: it works only with "
                    "passes of one shape; give fixed_rows, too, for example 16"
                )
        is_whole = self.spread == "blocks" and not self.head
        if self.fixed_rows is not None and not is_whole:
            raise ValueError(
                f"fixed_rows for {self.model!r}: only a whole checkpoint has passes "
                "of one shape; leave it out, or leave out spread and head"
            )
        if self.head and self.spread != "blocks":
            raise ValueError("head = true with a spread: a head runs in one place")
        if self.like is not None:
            if self.shape is not None or self.head:
                raise ValueError(
                    f"like is {self.like!r} with a shape or a head: give one of the two"
                )
            load_shape(self.like)  # fails here, and not later in a worker
        for word in self.words:
            if word >= self.vocab:
                raise ValueError(
                    f"words has {word}, but the vocab of {self.vocab} ends at "
                    f"{self.vocab - 1}: give a larger vocab"
                )
        return self

    @property
    def is_toy(self) -> bool:
        """Whether it is a toy without weights."""
        return self.model == "toy"

    @property
    def is_gguf(self) -> bool:
        """Whether it is a llama.cpp file."""
        return self.model.endswith(".gguf")

    @property
    def dilation(self) -> Dilation | None:
        """The shape it is dilated to; None if it is not dilated."""
        if self.like is not None:
            return load_shape(self.like).dilation
        if self.shape is not None:
            return Dilation(self.shape)
        return None

    @property
    def undilated(self) -> ModelSpec:
        """The same model without dilation, so at its original cost."""
        return self.model_copy(update={"shape": None, "like": None})

    @property
    def in_llamacpp(self) -> bool:
        """Whether llama.cpp computes it on this machine."""
        if self.is_gguf or self.runtime == "llamacpp":
            return True
        return self.runtime == "auto" and all(find_spec(package) for package in EXTRA)

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Only the fields that were given: defaults may not apply to every model."""
        given = self.model_fields_set
        return [(name, value) for name, value in self if name in given]


class Pair(BaseModel):
    """A target and a draft. A token id that both have must mean the same token in both.

    Either may have tokens that the other lacks: see ``models.vocabulary``.

    ``latency``: the latency file for virtual and emulated runs. ``stands_for``: the
    models of a paper, if the pair is a stand-in for them. ``datastore``: a text file,
    or a folder of them, that REST searches (see ``data.retrieval``); None: our own
    tasks.

    ``fitted``: whether `python -m speclab fit` may choose the draft's size, so that c
    on a machine equals the c of ``latency``. If it is the name of another pair, the
    draft has the size fitted for that pair.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    target: ModelSpec
    draft: ModelSpec
    place: Place = Place()
    latency: str | None = None
    stands_for: str = ""
    datastore: Name | None = None
    fitted: bool | str = False
    name: str = "unnamed"
    about: str = ""

    @model_validator(mode="after")
    def _check_toys(self) -> Self:
        """Raises ValueError for a toy with a wrong partner, or with a datastore."""
        if self.target.is_toy != self.draft.is_toy:
            raise ValueError(
                f"the target is {self.target.model!r} and the draft "
                f"{self.draft.model!r}: a toy makes a pair only with another toy"
            )
        if self.target.is_toy and self.target.vocab != self.draft.vocab:
            raise ValueError(
                f"the target's vocab is {self.target.vocab} and the draft's "
                f"{self.draft.vocab}: give both toys the same vocab"
            )
        if self.datastore is not None and self.target.is_toy:
            raise ValueError(
                f"datastore is {self.datastore!r}, but toys read no texts: leave it "
                "out, and REST searches the tokens that they have written"
            )
        return self

    @model_validator(mode="after")
    def _check_how_the_draft_writes(self) -> Self:
        """Raises ValueError unless only the draft has a mask or its target's head."""
        target, draft = self.target, self.draft
        if target.mask is not None or target.head:
            raise ValueError(
                "the target has a mask or head = true: only a draft can be a head, or "
                "write all its tokens in one pass; leave it out for the target"
            )
        if draft.head and draft.mask is not None:
            raise ValueError(
                f"the draft has mask = {draft.mask} and head = true: EAGLE's head "
                "writes one token at a time; leave out one of the two"
            )
        if draft.head and (draft.model != target.model or target.runtime != "torch"):
            raise ValueError(
                f"the draft is the head of {draft.model!r}, but the target is "
                f"{target.model!r} in {target.runtime}: a head drafts for its own "
                "model alone, in torch"
            )
        return self

    def with_draft_shape(self, shape: tuple[int, int, int, int]) -> Pair:
        """The same pair, with a draft of this shape: layers, width, heads and ffn."""
        draft = self.draft.model_copy(update={"shape": tuple(shape)})
        return self.model_copy(update={"draft": draft})

    def model(self, role: Role) -> ModelSpec:
        """The description of the model with this ``role``."""
        return self.draft if role == "draft" else self.target

    @checked
    def with_fixed_rows(
        self,
        count: FixedRows,
        draft: FixedRows | None = None,
        recorded: bool = False,
        first_room: FirstRoom | None = None,
    ) -> Pair:
        """The same pair, with a target that is fed ``count`` tokens in every pass.

        Then the greedy outputs of all methods are equal in bfloat16, too. ``draft``:
        how many tokens every draft pass is fed. None leaves the draft as it is: its
        rows may differ in the last bit, because its tokens are tested anyway. With 1,
        the draft reads a prompt token by token.

        ``recorded``: a GPU records these passes and repeats them without the CPU.
        Otherwise it waits for the CPU, which launches a pass kernel by kernel. If only
        one of the two models waits, c = t_target / t_draft says nothing about them.

        ``first_room``: how many tokens a text and one pass may have together before the
        passes of these models are recorded again; None: 256.
        """
        shape: dict[str, Any] = {"fixed_rows": count, "recorded": recorded}
        if first_room is not None:
            shape["first_room"] = first_room
        changed = {"target": self._changed(self.target, shape)}
        if draft is not None:
            shape = shape | {"fixed_rows": draft}
            changed["draft"] = self._changed(self.draft, shape)
        return self.model_copy(update=changed)

    def _changed(self, spec: ModelSpec, changes: dict[str, Any]) -> ModelSpec:
        """``spec`` with ``changes``; raises BadValue if they do not fit it."""
        settings = spec.model_dump(exclude_unset=True) | changes
        try:
            return ModelSpec.model_validate(settings)
        except ValidationError as error:
            raise BadValue(
                f"pair {self.name}: {problems_in(error, ModelSpec)}"
            ) from error


@checked
def load_pair(name: str) -> Pair:
    """Reads ``data/pairs/<name>.toml``.

    >>> speclib.load_pair("embedded/llama-7b-70b").target.model
    'zoo/target'
    """
    folder = DATA / "pairs"
    advice = "For your own models: speclib.pair(target=..., draft=...)"
    keys = read_toml(folder, name, f"no pair {shown(name)}", advice)
    path = toml_path(folder, name)
    if "name" in keys:
        raise BadValue(f"{path}: unknown key 'name': a pair is named after its file")
    try:
        return Pair(**keys, name=name)
    except ValidationError as error:
        raise BadValue(f"{path}: {problems_in(error, Pair)}") from error


def pair_of(pair: Pair | str | None) -> Pair:
    """The pair that a user named or described."""
    if pair is None:
        raise BadValue(
            "no pair given: give one, for example pair='embedded/llama-7b-70b' or "
            "speclib.pair(target=..., draft=...)"
        )
    return load_pair(pair) if isinstance(pair, str) else pair


def pairs() -> dict[str, str]:
    """Maps the name of each pair under data/pairs to what the pair can write.

    >>> speclib.pairs()["smollm2"].split(":")[0]
    'whatever you ask in English'
    """
    return {name: _writes(load_pair(name)) for name in names_under(DATA / "pairs")}


def real_pair() -> str:
    """The name of a pair that writes real text, if fetched; else an embedded one."""
    return "smollm2" if (FETCHED / "smollm2").is_dir() else "embedded/llama-7b-70b"


def _writes(pair: Pair) -> str:
    """What a pair can write, and how to get its models."""
    model = pair.target.model
    if pair.target.is_toy:
        return "numbers: it has no weights"
    if model.startswith("zoo/"):
        return "simple text for the tasks it was trained on; its models are embedded"
    fetched = Path(model)
    if fetched.parent == FETCHED:
        how = "fetched" if fetched.is_dir() else f"speclib fetch {fetched.name}"
        return f"whatever you ask in English: a small language model; {how}"
    return f"whatever {model} writes; the model is on the hub"


@checked
def pair(
    target: str | Path | dict[str, Any],
    draft: str | Path | dict[str, Any],
    *,
    name: str | None = None,
    **settings: Any,
) -> Pair:
    """Describes a pair of your own models.

    >>> own = speclib.pair("path/of/a/target", {"model": "a/draft", "mask": 128256})
    >>> own.draft.mask
    128256

    ``target`` and ``draft``: folders (str or Path), hub ids, or dicts with the keys of
    a model in a pair file, such as {"model": ..., "spread": "tensors"}. One tokenizer
    may have tokens that the other lacks; an id that both have must mean the same in
    both. ``settings``: the other keys of a pair file, such as ``place`` and
    ``latency``.
    """
    target_keys = target if isinstance(target, dict) else {"model": target}
    draft_keys = draft if isinstance(draft, dict) else {"model": draft}
    if name is None:
        name = f"{draft_keys.get('model')}+{target_keys.get('model')}"
    keys = {"target": target_keys, "draft": draft_keys, "name": name, **settings}
    try:
        return Pair.model_validate(keys)
    except ValidationError as error:
        raise BadValue(f"pair {name}: {problems_in(error, Pair)}") from error
