"""Facts from a checkpoint's configuration, known before its weights are read.

They suffice to reject a model that no method can run. Every method rolls back after a
rejection, and some verify a tree of drafts. So a model must cache keys and values for
each token of a text, and must accept position ids::

    runs        full attention      a token sees all tokens before it
                sliding attention   it sees itself and the ``window`` - 1 before it
                both                Gemma and others alternate from layer to layer

    is refused  states              Mamba: one state for the whole text, which cannot
                                    be rolled back to an earlier token
                shared caches       a layer reads keys that another layer has cached
                no positions        ALiBi: distances are counted along the cache, where
                                    the nodes of a tree lie side by side
                encoder, decoder    T5: the text is read by another network

In a multimodal checkpoint, the part that writes text has its own configuration.

Importing this module imports neither torch nor transformers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speclib.errors import BadValue

if TYPE_CHECKING:
    from transformers import PretrainedConfig

# The kinds of attention that allow a rollback, by transformers' names.
FULL = "full_attention"
SLIDING = "sliding_attention"

ALIBI = ("bloom", "mpt")  # architectures that always use ALiBi
ADVICE = (
    "Give a text decoder with attention in all its layers, such as a Llama, Qwen, "
    "Mistral or Gemma"
)


# -- models that no method can run -----------------------------------------------------
def check_config(model: str, config: PretrainedConfig) -> None:
    """Raises BadValue, naming the model and the reason, if no method can run it."""
    _check_it_writes_text(model, config)
    text = config.get_text_config(decoder=True)
    if isinstance(text, dict):  # not parsed: the architecture has no such part
        raise refusal(model, config, "its text_config is from another architecture")
    _check_attention(model, text)


def _check_it_writes_text(model: str, config: PretrainedConfig) -> None:
    """Raises BadValue unless transformers has a single network that writes text."""
    from transformers.models.auto import modeling_auto

    if config.is_encoder_decoder:
        raise refusal(
            model, config, "it reads a text with one network and writes with another"
        )
    if config.model_type not in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise refusal(model, config, "transformers has no text-only network for it")


def _check_attention(model: str, config: PretrainedConfig) -> None:
    """Raises BadValue for layers that don't cache every token, or ignore positions."""
    for kind in attention_windows(config):
        if kind not in (FULL, SLIDING):
            raise refusal(
                model,
                config,
                f"it has layers of {kind!r}, whose cache cannot be rolled back to an "
                "earlier token",
            )
    if _shares_caches(config):
        raise refusal(
            model, config, "some of its layers read the cache of another layer"
        )
    if "local" in (getattr(config, "attention_layers", None) or ()):
        raise refusal(model, config, "its local layers count a window along the cache")
    if config.model_type in ALIBI or getattr(config, "alibi", False):
        raise refusal(
            model, config, "it has no positions: it counts distances along the cache"
        )


def _shares_caches(config: PretrainedConfig) -> bool:
    """Whether some layers read another layer's cache, according to transformers."""
    try:
        modes = getattr(config, "kv_sharing_modes", None) or ()
    except ValueError:  # some layers read a cache that no layer fills
        return True
    layers = getattr(config, "num_kv_shared_layers", None) or 0  # before 5.23
    return "reuse" in modes or layers > 0


def refusal(model: str, config: PretrainedConfig, reason: str) -> BadValue:
    """The error for a ``model`` that no method can run, with the reason and advice."""
    return BadValue(
        f"model {model!r} ({config.model_type}) cannot be used: {reason}. {ADVICE}"
    )


# -- facts from a configuration --------------------------------------------------------
def attention_windows(config: PretrainedConfig) -> dict[str, int | None]:
    """Maps each kind of attention to the number of tokens that a token sees.

    The token itself counts; None means all tokens before it. ``config``: the
    configuration of a model's text part. If it lists no kinds, all layers have the
    configuration's window, if any.
    """
    window = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None)
    if not kinds:
        kinds = [FULL if window is None else SLIDING]

    windows: dict[str, int | None] = {}
    for kind in kinds:
        windows[kind] = window if kind == SLIDING else None
    return windows


def layer_windows(config: PretrainedConfig) -> list[int | None]:
    """The window of each layer, in order."""
    windows = attention_windows(config)
    kinds = getattr(config, "layer_types", None)
    if not kinds:
        layers: int = config.num_hidden_layers
        return list(windows.values()) * layers
    return [windows[kind] for kind in kinds]


def real_rows(config: PretrainedConfig) -> int:
    """The number of tokens that a model can read and write.

    ``config``: the configuration of a model's text part. Tokens that dilation added do
    not count: their weights are zeros, and a logit of 0 may be the largest.

    Raises AttributeError if the configuration does not state the number.
    """
    real: int | None = getattr(config, "real_vocab", None)
    rows: int = config.vocab_size
    return rows if real is None else min(real, rows)


def longest_text(config: PretrainedConfig) -> int:
    """The longest text, in tokens, for which the model's KV cache stays valid.

    ``config``: the configuration of a model's text part. With "longrope", this is the
    length before its extension: in a longer text, all positions rotate at other rates,
    which makes every cached key wrong.

    Raises AttributeError if the configuration does not state the length.
    """
    extended: int = config.max_position_embeddings
    return _length_before_longrope(config) or extended


def _length_before_longrope(config: PretrainedConfig) -> int | None:
    """The longest text before "longrope" extends it; None if it does not."""
    extended: int = config.max_position_embeddings
    for rotation in _rotations(config):
        before: int | None = rotation.get("original_max_position_embeddings")
        if rotation.get("rope_type") == "longrope" and before and before < extended:
            return before
    return None


def _rotations(config: PretrainedConfig) -> list[dict[str, Any]]:
    """The settings of rotary embeddings: one set, or one per kind of attention."""
    settings = getattr(config, "rope_parameters", None) or {}
    of_kinds = [value for value in settings.values() if isinstance(value, dict)]
    return of_kinds or [settings]
