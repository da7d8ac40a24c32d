"""Pairs: a target, a draft, and where they are computed. Files under ``data/pairs``.

A model is ``zoo/<name>`` (embedded), ``fetched/<name>`` (which `speclib fetch` brings),
``toy``, a folder, a hub id, or a .gguf. A ``shape`` dilates it: the same logits at the
compute of a larger architecture. ``like`` does so with the exact shape of a published
model. ``runtime`` says what computes it. This describes; ``models.open_pair`` builds.
"""

from __future__ import annotations

import os
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

# A pass of more rows than this would cost more than it could ever save.
FixedRows: TypeAlias = Annotated[int, Whole(least=1, most=4096)]

# How many slots a cache has at first: no fewer than without this setting.
FirstRoom: TypeAlias = Annotated[int, Whole(least=256, most=1 << 20)]

EXTRA = ("llama_cpp", "gguf")  # what the extra llamacpp installs

OF_FETCHED = "fetched/"  # how a pair names a model that `speclib fetch` brings

# Settings of a ModelSpec that say something to some kinds of model alone.
OF_TOYS = {"alpha", "vocab", "seed", "words", "context"}
OF_TORCH = {"like", "spread", "fixed_rows", "recorded", "first_room", "head"}
OF_WEIGHTS = OF_TORCH | {"shape", "quantization"}


def _as_text(value: object) -> object:
    """A path as text, absolute, so that it is no hub id; "~" is the user's folder."""
    if isinstance(value, Path):
        return str(value.expanduser().absolute())
    if isinstance(value, str) and value.startswith("~"):
        return os.path.expanduser(value)
    if isinstance(value, str) and value.startswith(OF_FETCHED):
        return str(FETCHED / value.removeprefix(OF_FETCHED))
    return value


# A path, or what stands for a model without being one.
Name: TypeAlias = Annotated[str, Field(min_length=1), BeforeValidator(_as_text)]


class ModelSpec(BaseModel):
    """What a worker needs to know to build one model.

    model         see the top of this file
    shape         layers, width, heads and ffn of the architecture it is dilated to
    like          instead of a shape: the name of a file under data/shapes, to whose
                  shape it is dilated
    runtime       "torch", "llamacpp" (on the CPU), or "auto": llama.cpp where the
                  extra is installed, else torch. A .gguf is always llama.cpp's
    quantization  of the weights in llama.cpp; a .gguf is quantised as it is
    spread        what several places share: "blocks" of layers, one GPU after the
                  other; "tensors", all of them computing each layer (see
                  models.parallel.tensor_parallel); "layers", several layers at once
                  (see models.parallel.layer_parallel); "stages", blocks of layers in
                  processes, one place after the other (see models.parallel.pipeline);
                  "replicas", all of it on each, where it drafts in turns (see
                  models.parallel.replicas)
    fixed_rows    how many tokens every pass feeds, however few are new: then the same
                  text has the same bits in every method (see models.fixed_rows);
                  None: as many as are new
    recorded      of fixed_rows on a GPU: a pass is recorded once and then repeated by
                  the GPU alone (see models.recorded_pass). It is asked for by name: an
                  H100 and an H200 have shown that it is exact there, no other GPU has
    first_room    of fixed_rows: how many slots of the cache every pass looks at, until
                  a text needs more; None: 256. Where a text outgrows them, its passes
                  are recorded anew, so give as many as most texts will have. A multiple
                  of 8 suits the kernels
    head          of a draft: not the model itself, but its EAGLE head (see
                  models.eagle_head), which lies in its folder; the shape is the head's
    mask          of a draft that has learnt to write all its tokens in one pass: the
                  token (its id) that stands for each of them until it is written, as
                  PARD's (see operations.propose)
    alpha, vocab, seed, words, context
                  are a toy's, see Toy
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
    def _check_that_all_counts(self) -> Self:
        """What would have no effect on such a model is not said of it."""
        if self.is_toy:
            idle = OF_WEIGHTS
        elif self.is_gguf:
            idle = OF_TOYS | OF_WEIGHTS
            if self.runtime == "torch":  # that is not only the default
                idle = idle | {"runtime"}
        elif self.runtime == "torch":
            idle = OF_TOYS | {"quantization"}
        else:
            idle = OF_TOYS | OF_TORCH
        idle = idle & self.model_fields_set
        if idle:
            raise ValueError(
                f"{', '.join(sorted(idle))} beside {self.model!r} would have no "
                "effect: leave it out"
            )
        return self

    @model_validator(mode="after")
    def _check_that_all_fits(self) -> Self:
        """What is said of a model goes together."""
        for name in ("recorded", "first_room"):
            if getattr(self, name) and self.fixed_rows is None:
                raise ValueError(
                    f"{name} beside {self.model!r} without fixed_rows: only passes of "
                    "one shape have it; give fixed_rows, too, such as 16"
                )
        is_whole = self.spread == "blocks" and not self.head
        if self.fixed_rows is not None and not is_whole:
            raise ValueError(
                f"fixed_rows beside {self.model!r}: only a whole checkpoint has passes "
                "of one shape; leave it out, or leave out spread and head"
            )
        if self.head and self.spread != "blocks":
            raise ValueError("head = true beside a spread: a head is in one place")
        if self.like is not None:
            if self.shape is not None or self.head:
                raise ValueError(
                    f"like is {self.like!r} beside a shape or a head: give one of them"
                )
            load_shape(self.like)  # or it would be missed in a worker
        for word in self.words:
            if word >= self.vocab:
                raise ValueError(
                    f"words has {word}, but the vocab of {self.vocab} ends at "
                    f"{self.vocab - 1}: give a larger vocab"
                )
        return self

    @property
    def is_toy(self) -> bool:
        """Whether it is a toy, which has no weights."""
        return self.model == "toy"

    @property
    def is_gguf(self) -> bool:
        """Whether it is a file of llama.cpp's."""
        return self.model.endswith(".gguf")

    @property
    def dilation(self) -> Dilation | None:
        """What it is dilated to; None if it is computed as it is."""
        if self.like is not None:
            return load_shape(self.like).dilation
        if self.shape is not None:
            return Dilation(self.shape)
        return None

    @property
    def undilated(self) -> ModelSpec:
        """The same model at the cost that it was trained at."""
        return self.model_copy(update={"shape": None, "like": None})

    @property
    def in_llamacpp(self) -> bool:
        """Whether llama.cpp computes it on this machine."""
        if self.is_gguf or self.runtime == "llamacpp":
            return True
        return self.runtime == "auto" and all(find_spec(package) for package in EXTRA)


class Pair(BaseModel):
    """A target and a draft, whose common tokens mean the same.

    Either may have more tokens than the other: see ``models.vocabulary``.

    ``latency`` names the file of durations for virtual and emulated runs.
    ``stands_for`` says which models of a paper the pair stands for. ``datastore`` is a
    text file, or a folder of them, that REST looks up (see ``data.retrieval``); None:
    tasks of ours.

    ``fitted``: `python -m speclab fit` may size the draft for a machine, so that c is
    that of ``latency``. The name of a pair: the draft has that one's size.
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
        """Toys are a pair only among themselves, with one vocabulary and no texts."""
        if self.target.is_toy != self.draft.is_toy:
            raise ValueError(
                f"the target is {self.target.model!r} and the draft "
                f"{self.draft.model!r}: a toy makes a pair with a toy only"
            )
        if self.target.is_toy and self.target.vocab != self.draft.vocab:
            raise ValueError(
                f"the target's vocab is {self.target.vocab} and the draft's "
                f"{self.draft.vocab}: give both toys the same"
            )
        if self.datastore is not None and self.target.is_toy:
            raise ValueError(
                f"datastore is {self.datastore!r} beside toys, which read no texts: "
                "leave it out, and REST looks up what they have written"
            )
        return self

    @model_validator(mode="after")
    def _check_how_the_draft_writes(self) -> Self:
        """With masks or with a head, and a head for the target that it has learnt."""
        target, draft = self.target, self.draft
        if target.mask is not None or target.head:
            raise ValueError(
                "the target has a mask or head = true: only a draft can be a head, or "
                "write all its tokens in one pass; leave it out there"
            )
        if draft.head and draft.mask is not None:
            raise ValueError(
                f"the draft has mask = {draft.mask} and head = true: EAGLE's head "
                "writes one token after the other; leave out one of the two"
            )
        if draft.head and (draft.model != target.model or target.runtime != "torch"):
            raise ValueError(
                f"the draft is the head of {draft.model!r}, but the target is "
                f"{target.model!r} in {target.runtime}: a head drafts for its own "
                "model alone, in torch"
            )
        return self

    def with_draft_shape(self, shape: tuple[int, int, int, int]) -> Pair:
        """The same with a draft of this shape: layers, width, heads and ffn."""
        draft = self.draft.model_copy(update={"shape": tuple(shape)})
        return self.model_copy(update={"draft": draft})

    def model(self, role: Role) -> ModelSpec:
        """What describes the model of ``role``."""
        return self.draft if role == "draft" else self.target

    @checked
    def with_fixed_rows(
        self,
        count: FixedRows,
        draft: FixedRows | None = None,
        recorded: bool = False,
        first_room: FirstRoom | None = None,
    ) -> Pair:
        """The same, with a target that is fed ``count`` tokens in every pass.

        Then greedy outputs of all methods are equal in bfloat16, too. ``draft``: how
        many tokens every pass of the draft is fed; None leaves it as it is, for what it
        writes may differ in a last bit, and is tested anyway. With 1 a prompt is read
        token by token.

        ``recorded``: a GPU records these passes and repeats them alone. Without that
        it waits for the CPU, which launches a pass kernel by kernel; and if only one of
        the two models waits, c = t_target / t_draft says nothing of the models.

        ``first_room``: how many tokens a text and one pass more may have before passes
        of these models are recorded anew; None: 256.
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
        """``spec`` with ``changes``; raises BadValue where they do not fit it."""
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
    advice = "For models of your own: speclib.pair(target=..., draft=...)"
    keys = read_toml(folder, name, f"no pair {shown(name)}", advice)
    path = toml_path(folder, name)
    if "name" in keys:
        raise BadValue(f"{path}: unknown key 'name': a pair is called as its file is")
    try:
        return Pair(**keys, name=name)
    except ValidationError as error:
        raise BadValue(f"{path}: {problems_in(error, Pair)}") from error


def pair_of(pair: Pair | str | None) -> Pair:
    """The pair that a user named or described."""
    if pair is None:
        raise BadValue(
            "no pair given: pair='embedded/llama-7b-70b', for instance, or "
            "speclib.pair(target=..., draft=...)"
        )
    return load_pair(pair) if isinstance(pair, str) else pair


def pairs() -> dict[str, str]:
    """The name of each pair under data/pairs -> what it can write.

    >>> speclib.pairs()["smollm2"].split(":")[0]
    'whatever you ask in English'
    """
    return {name: _writes(load_pair(name)) for name in names_under(DATA / "pairs")}


def real_pair() -> str:
    """The name of a pair that writes real text, if it is here; else an embedded one."""
    return "smollm2" if (FETCHED / "smollm2").is_dir() else "embedded/llama-7b-70b"


def _writes(pair: Pair) -> str:
    """What a pair can write, and what it needs for that."""
    model = pair.target.model
    if pair.target.is_toy:
        return "numbers: it has no weights"
    if model.startswith("zoo/"):
        return "simple text of the tasks that it has learnt; its models are embedded"
    fetched = Path(model)
    if fetched.parent == FETCHED:
        how = "it is here" if fetched.is_dir() else f"speclib fetch {fetched.name}"
        return f"whatever you ask in English: a small language model; {how}"
    return f"what {model} writes, which the hub has"


@checked
def pair(
    target: str | Path | dict[str, Any],
    draft: str | Path | dict[str, Any],
    *,
    name: str | None = None,
    **settings: Any,
) -> Pair:
    """A pair of your own.

    >>> own = speclib.pair("path/of/a/target", {"model": "a/draft", "mask": 128256})
    >>> own.draft.mask
    128256

    ``target`` and ``draft``: folders, as texts or Paths, or hub ids, or dicts of all
    that a pair file may say of a model, as {"model": ..., "spread": "tensors"}. Of
    their tokenizers one may have tokens that the other lacks; an id that both have
    means the same in both.
    ``settings``: what else a pair has, as ``place`` and ``latency``.
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
