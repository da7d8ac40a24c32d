"""The exact shapes of published models, in files under ``data/shapes``.

A file contains the values of a ``config.json`` that determine the number of weights and
the size of the KV cache, and the hub ids of the models with this shape. That is enough
to compute a model's memory, and to dilate an embedded model to that shape. This module
uses no weights and no library that loads them.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from speclib.arguments import Count, checked, problems_in, shown
from speclib.errors import BadValue
from speclib.paths import DATA

from .toml_files import names_under, read_toml, toml_path

Size = bool | Count


class Dilation(NamedTuple):
    """The sizes a model is dilated to: arguments of ``models.dilate.dilate``.

    shape: layers, width, heads and ffn. None: the default of ``dilate``.
    """

    shape: tuple[int, int, int, int]
    kv_heads: int | None = None
    head_dim: int | None = None
    vocab: int | None = None


class PublishedModel(BaseModel):
    """A model on the hub: what may differ between models of one shape.

    context: the longest text that it accepts, in tokens.
    gated: whether a user must accept a licence on the hub first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    context: Count
    gated: bool = False


class Shape(BaseModel):
    """The sizes of an architecture.

    model_type, config: as in transformers' config.json.
    models: the hub ids of the models that have these sizes.
    source: where the sizes are printed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    model_type: str
    config: dict[str, Size]
    models: Annotated[dict[str, PublishedModel], Field(min_length=1)]
    source: str
    about: str = ""
    name: str = ""

    @property
    def dilation(self) -> Dilation:
        """The dilation that gives an embedded model this shape.

        Raises BadValue for an architecture that dilation does not support.
        """
        layers = self._size("num_hidden_layers")
        width = self._size("hidden_size")
        heads = self._size("num_attention_heads")
        ffn = self._size("intermediate_size")
        return Dilation(
            shape=(layers, width, heads, ffn),
            kv_heads=self._size("num_key_value_heads"),
            head_dim=width // heads,
            vocab=self._size("vocab_size"),
        )

    def _size(self, name: str) -> int:
        if name not in self.config:
            raise BadValue(
                f"no model can be dilated to {self.name!r}, which is a "
                f"{self.model_type} and has no {name}: use the shape of a Llama or "
                "Qwen2"
            )
        return int(self.config[name])


@checked
def load_shape(name: str) -> Shape:
    """Reads ``data/shapes/<name>.toml``."""
    folder = DATA / "shapes"
    keys = read_toml(folder, name, f"no shape {shown(name)} under {folder}")
    try:
        return Shape.model_validate({**keys, "name": name})
    except ValidationError as error:
        path = toml_path(folder, name)
        raise BadValue(f"{path}: {problems_in(error, Shape)}") from error


def shape_of(model: str) -> Shape | None:
    """The shape of the model with this hub id; None if no file lists it."""
    return _shapes_by_model().get(model)


@cache
def _shapes_by_model() -> dict[str, Shape]:
    by_model = {}
    for name in names_under(DATA / "shapes"):
        shape = load_shape(name)
        for model in shape.models:
            by_model[model] = shape
    return by_model


def published_config(model: str) -> tuple[str, dict[str, Any]] | None:
    """transformers' model type and configuration for a hub id; None if unknown."""
    shape = shape_of(model)
    if shape is None:
        return None
    context = {"max_position_embeddings": shape.models[model].context}
    return shape.model_type, context | shape.config
