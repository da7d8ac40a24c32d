"""Dilation: embeds a small trained model in a larger architecture with equal outputs.

The dilated model returns the small one's logits (up to rounding) at the cost of the
large shape: every layer, head and channel is computed. So quality and speed can be
chosen independently, and a model with Llama-2-7B's exact shape runs without its
weights. This module uses no tokenizer, no sampler and no second device.

In the notes below, width d becomes D, head dimension h becomes H, and n layers become
N.

- Width. The residual stream carries the small model's stream in its first d channels,
  and exact zeros in the others. Its mean square is d/D times the small one's. The
  output of RMSNorm with eps * d/D is therefore sqrt(D/d) times too large; multiplying
  the norm's weight by sqrt(d/D) corrects this.
- Heads. In the small model, g queries share a key; in the large one, G do. Query i of
  key k goes to k*G + i. If g > G, each key is copied ceil(g/G) times, so that grouped
  queries also fit an architecture in which each query has its own key (Llama-2-7B).
- Head dimension H = r*h. Channel t goes to r*t: the rotary pair (j, j + h/2) becomes
  (r*j, r*j + H/2), which rotates at the same rate, theta^(-2rj/rh). Attention divides
  by sqrt(H) instead of sqrt(h), so q, bias included, is scaled by sqrt(r).
- Qwen3 normalises q and k over H with the *layers'* eps. Their mean square falls by a
  factor of r, and eps by D/d. Scaling q_proj and k_proj by sqrt(r * d/D) restores the
  ratio of mean square and eps, and leaves q and k too large by sqrt(r). That is the
  factor that q needs; the weight of k_norm removes it from k.
- Depth. Layer i becomes layer (i+1)*N//n - 1. The layers are evenly spaced, so half of
  the large model contains half of the small one. The last layer stays last, so no early
  exit sees the final logits. Added layers compute, and then write 0.
- Noise. Weights that read the stream (q, k, v, gate, up, lm_head) are filled with
  seeded noise wherever an exact zero cancels it: before them (an empty channel) or
  after them (o_proj, down_proj). Only weights that write the stream are zero, and those
  zeros are stored densely, so neither sparsity nor denormals make the large model
  cheaper.

The residual stream and a layer's matrices. ``x`` marks the small model's own values,
and ``~`` noise. An added channel belongs to an added head, or to the added part of the
ffn::

                            D channels
                      |---- d ----|-- D - d --|
    stream            | x x x x x | 0 0 0 0 0 |

    reads the stream  | x x x x x | ~ ~ ~ ~ ~ |   the noise meets the stream's zeros
    (q, k, v,         | x x x x x | ~ ~ ~ ~ ~ |
    gate, up)         | ~ ~ ~ ~ ~ | ~ ~ ~ ~ ~ |   <- an added channel

    writes the stream | x x 0 |                   <- to the first d channels
    (o, down)         | x x 0 |
                      | 0 0 0 |                   <- to the D - d empty channels
                            ^
                            an added channel's column
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from math import ceil, sqrt
from typing import NamedTuple

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel

from speclib.errors import BadValue

FAMILIES = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
ROTARY = ("default", "linear", "llama3")  # their rates depend only on j/h
READERS = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "lm_head")
FRESH_DEVIATION = 0.02  # the standard deviation of a new model's weights


class Architecture(NamedTuple):
    """The sizes that dilation enlarges; the first four are a pair file's `shape`."""

    layers: int
    width: int
    heads: int
    ffn: int
    kv_heads: int
    head_dim: int
    vocab: int

    @classmethod
    def of(cls, config: PretrainedConfig) -> Architecture:
        """The sizes that a Llama, Qwen2 or Qwen3 config describes."""
        head_dim = getattr(config, "head_dim", None)
        if not head_dim:
            head_dim = config.hidden_size // config.num_attention_heads
        return cls(
            layers=config.num_hidden_layers,
            width=config.hidden_size,
            heads=config.num_attention_heads,
            ffn=config.intermediate_size,
            kv_heads=config.num_key_value_heads,
            head_dim=head_dim,
            vocab=config.vocab_size,
        )

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Layers, width, heads and ffn, as a pair file states them."""
        return (self.layers, self.width, self.heads, self.ffn)

    @property
    def queries_per_key(self) -> int:
        """The number of query heads that share one key and value head."""
        return self.heads // self.kv_heads


def dilate(
    model: PreTrainedModel,
    shape: Sequence[int],
    *,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    vocab: int | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    seed: int = 0,
) -> PreTrainedModel:
    """Makes a model of `shape` with the logits of `model`.

    model: a transformers LlamaForCausalLM, Qwen2ForCausalLM or Qwen3ForCausalLM, not
        quantised. It stays unchanged.
    shape: (layers, width, heads, ffn), none smaller than the model's own.
    kv_heads: by default, as many queries share a key as in the model.
    head_dim: by default, width / heads.
    vocab: added rows are zero, so their logits are 0, which can be the largest: **a
        sampler must ban all ids from config.real_vocab upwards**. transformers'
        generate does so, with suppress_tokens.
    dtype, device: by default, the model's. Each weight is made there directly, one at a
        time; on "meta", no values are made.
    seed: for the noise in weights that no output depends on.

    The result is a plain transformers model in eval mode, with untied weights; it stays
    one when it is saved and loaded. Its config also contains `real_vocab` and
    `dilated_from`, the small model's (layers, width, heads, ffn).

    Raises BadValue if the model is from another family or doesn't fit the shape.
    """
    check_family(model)
    config = dilated_config(
        model.config, shape, kv_heads=kv_heads, head_dim=head_dim, vocab=vocab
    )
    own_device = torch.device(device or model.device)
    large = empty_like(model, config, dtype or model.dtype, own_device)
    wholes = dict(large.named_parameters())
    for name, weight in dilated_weights(model, config, wholes, own_device, seed):
        set_weight(large, name, weight)

    large.generation_config = deepcopy(model.generation_config)
    _ban_added_words(large)
    large.requires_grad_(False)
    large.eval()
    return large


def check_family(model: nn.Module) -> None:
    """Raises BadValue for an architecture that cannot be dilated."""
    family = type(model).__name__
    if family not in FAMILIES:
        raise BadValue(f"model is a {family}; dilate one of {FAMILIES}")


def dilated_config(
    config: PretrainedConfig,
    shape: Sequence[int],
    *,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    vocab: int | None = None,
) -> PretrainedConfig:
    """The large model's transformers config; arguments and errors as in `dilate`."""
    small = Architecture.of(config)
    large = _complete(config, shape, kv_heads, head_dim, vocab)
    changes = {
        "num_hidden_layers": large.layers,
        "hidden_size": large.width,
        "intermediate_size": large.ffn,
        "num_attention_heads": large.heads,
        "num_key_value_heads": large.kv_heads,
        "head_dim": large.head_dim,
        "vocab_size": large.vocab,
        "tie_word_embeddings": False,
        "rms_norm_eps": config.rms_norm_eps * small.width / large.width,
        "real_vocab": getattr(config, "real_vocab", small.vocab),
        "dilated_from": getattr(config, "dilated_from", list(small.shape)),
    }

    small_kinds = getattr(config, "layer_types", None)
    if small_kinds:
        changes["layer_types"] = _layer_kinds(small_kinds, small, large)
    return type(config).from_dict(config.to_dict() | changes)


def _layer_kinds(
    small_kinds: Sequence[str], small: Architecture, large: Architecture
) -> list[str]:
    """The kind of attention of each large layer, taken from the next real layer."""
    depths = _depths(small, large)
    kinds = []
    for layer in range(large.layers):
        next_real_layer = bisect_left(depths, layer)
        kinds.append(small_kinds[next_real_layer])
    return kinds


def _complete(
    config: PretrainedConfig,
    shape: Sequence[int],
    kv_heads: int | None,
    head_dim: int | None,
    vocab: int | None,
) -> Architecture:
    """Completes `shape` with defaults; raises BadValue if the model doesn't fit."""
    are_sizes = all(isinstance(size, int) and size > 0 for size in shape)
    _demand(
        len(shape) == 4 and are_sizes,
        f"shape is {shape}; give four positive integers: layers, width, heads, ffn",
    )
    layers, width, heads, ffn = shape
    small = Architecture.of(config)
    group = small.queries_per_key
    _demand(
        heads % (kv_heads or group) == 0,
        f"{heads} heads don't divide into kv_heads {kv_heads} (the model has {group} "
        f"heads per key); pass a divisor of {heads} as kv_heads",
    )
    _demand(
        head_dim or width % heads == 0,
        f"width {width} is not a multiple of {heads} heads; "
        "change one of them or give head_dim",
    )

    large = Architecture(
        layers=layers,
        width=width,
        heads=heads,
        ffn=ffn,
        kv_heads=kv_heads or heads // group,
        head_dim=head_dim or width // heads,
        vocab=vocab or small.vocab,
    )
    _check_it_fits(small, large, config.rope_parameters["rope_type"])
    return large


def _check_it_fits(small: Architecture, large: Architecture, rope_type: str) -> None:
    """Raises BadValue if `small` doesn't fit into `large`."""
    for name in ("layers", "width", "heads", "ffn", "vocab"):
        size, least = getattr(large, name), getattr(small, name)
        _demand(size >= least, f"{name} is {size}; the model needs at least {least}")

    _demand(
        large.head_dim % small.head_dim == 0,
        f"head_dim is {large.head_dim}, not a multiple of the model's "
        f"{small.head_dim}; change width or heads, or give head_dim",
    )
    least_keys = small.kv_heads * _copies(small, large)
    _demand(
        large.kv_heads >= least_keys,
        f"kv_heads is {large.kv_heads}; with {large.heads} heads the model needs "
        f"at least {least_keys}",
    )
    _demand(
        rope_type in ROTARY or large.head_dim == small.head_dim,
        f"the rates of rope_type {rope_type!r} depend on head_dim; keep head_dim at "
        f"{small.head_dim} (it would be {large.head_dim})",
    )


def _demand(holds: object, message: str) -> None:
    if not holds:
        raise BadValue(message)


def _depths(small: Architecture, large: Architecture) -> list[int]:
    """The large layer that each small layer becomes; 3 layers in 7: 1, 3, 6."""
    depths = []
    for layer in range(small.layers):
        depths.append((layer + 1) * large.layers // small.layers - 1)
    return depths


def _copies(small: Architecture, large: Architecture) -> int:
    """The number of copies of each key that are needed to serve all its queries."""
    return ceil(small.queries_per_key / large.queries_per_key)


def _head_ratio(small: PretrainedConfig, large: PretrainedConfig) -> int:
    """The ratio r of a large head's dimension to a small head's."""
    return Architecture.of(large).head_dim // Architecture.of(small).head_dim


def empty_like(
    model: PreTrainedModel,
    config: PretrainedConfig,
    dtype: torch.dtype,
    device: torch.device,
) -> PreTrainedModel:
    """Makes the large model with weights on "meta", where they have no values.

    device: where its weights will be, and where its computed buffers are already.
    """
    attention = model.config._attn_implementation
    with torch.device("meta"):
        large: PreTrainedModel = type(model)._from_config(
            config, dtype=dtype, attn_implementation=attention
        )

    # Rotary rates are computed, not stored, and stay in float32.
    large.model.rotary_emb = type(large.model.rotary_emb)(config).to(device)
    return large


def dilated_weights(
    model: PreTrainedModel,
    config: PretrainedConfig,
    wholes: Mapping[str, torch.Tensor],
    device: torch.device,
    seed: int = 0,
    buffer: torch.Tensor | None = None,
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yields the name and values of every weight of a large model, one at a time.

    model: the small model.
    config: the large model's, from `dilated_config`.
    wholes: the large model's parameters by name, from `empty_like`; only their shapes
        and dtype matter.
    buffer: a vector as long as the largest weight, which every weight overwrites; None:
        each weight gets its own memory.

    The noise is drawn in the order of `wholes`.
    """
    generator = None
    if device.type != "meta":
        generator = torch.Generator(device).manual_seed(seed)
    ratio = _head_ratio(model.config, config)
    sources = _sources(model, config)

    for name, empty in wholes.items():
        if buffer is None:
            weight = torch.empty(empty.shape, dtype=empty.dtype, device=device)
        else:
            weight = buffer[: empty.numel()].view(empty.shape)
        _fill(name, weight, ratio, generator)
        if name == "lm_head.weight":
            weight[config.real_vocab :] = 0.0
        if name in sources:
            sources[name].write(weight)
        yield name, weight


def set_weight(network: nn.Module, name: str, weight: torch.Tensor) -> None:
    """Makes ``weight`` the network's parameter called ``name``."""
    owner, _, last = name.rpartition(".")
    parameter = nn.Parameter(weight, requires_grad=False)
    setattr(network.get_submodule(owner), last, parameter)


def _fill(
    name: str, weight: torch.Tensor, ratio: int, generator: torch.Generator | None
) -> None:
    """Fills weights that read the stream with noise, others with 0, norms with 1."""
    bound = FRESH_DEVIATION * sqrt(3)  # uniform noise then has that deviation
    module = name.split(".")[-2]
    if module in READERS:
        weight.uniform_(-bound, bound, generator=generator)
    elif "norm" in module:
        weight.fill_(1.0)
    else:
        weight.fill_(0.0)

    # Channels between r*t and r*(t+1) must not contribute to a query's product with a
    # key.
    if module in ("q_proj", "k_proj"):
        weight.unflatten(0, (-1, ratio))[:, 1:] = 0.0


class Destination(NamedTuple):
    """The indices of a small weight in the large one, and its scale factor.

    rows, columns: the indices in the large weight for the small one's rows and columns.
        A bias or a norm has rows only.
    """

    rows: torch.Tensor | slice
    columns: torch.Tensor | slice | None
    scale: float


class Source(NamedTuple):
    """A weight of the small model, and its destination in the large model's weight."""

    weight: torch.Tensor
    destination: Destination

    def write(self, target: torch.Tensor) -> None:
        """Writes it to its destination in ``target``, rounded once."""
        exact_dtype = torch.promote_types(self.weight.dtype, target.dtype)
        rows, columns, scale = self.destination
        scaled = self.weight.to(target.device, exact_dtype).mul(scale)
        region = (rows, columns)[: target.dim()]  # or rows only
        target[region] = scaled.to(target.dtype)


def _sources(model: PreTrainedModel, config: PretrainedConfig) -> dict[str, Source]:
    """Maps each large weight to its source; weights of added layers have none."""
    small_sizes = Architecture.of(model.config)
    large_sizes = Architecture.of(config)
    depths = _depths(small_sizes, large_sizes)
    normalises_queries = model.config.model_type == "qwen3"
    destinations = _destinations(small_sizes, large_sizes, normalises_queries)

    # remove_duplicate=False includes lm_head even if it is tied.
    sources = {}
    for name, weight in model.named_parameters(remove_duplicate=False):
        path = name.split(".")  # model.layers.<number>.self_attn.q_proj.weight
        destination = destinations[path[-2]]
        if "layers" in path:
            path[2] = str(depths[int(path[2])])
        sources[".".join(path)] = Source(weight.detach(), destination)
    return sources


def _destinations(
    small: Architecture, large: Architecture, normalises_queries: bool
) -> dict[str, Destination]:
    """Maps each module name to the destination of its weights.

    normalises_queries: the model has Qwen3's norms of q and k.
    """
    ratio = large.head_dim // small.head_dim
    shrink = sqrt(small.width / large.width)  # undoes RMSNorm's excess
    q_scale, k_scale = sqrt(ratio), 1.0
    if normalises_queries:
        q_scale = k_scale = sqrt(ratio) * shrink

    # Attention heads, as rows of q, k and v and as columns of o.
    query_heads = _query_heads(small, large)
    key_heads = _key_heads(small, large)
    channels = torch.arange(small.head_dim) * ratio
    queries = _rows_of_heads(query_heads, channels, large.head_dim)
    keys = _rows_of_heads(key_heads, channels, large.head_dim)

    # Everything else keeps its index.
    stream = slice(small.width)
    words = slice(small.vocab)
    ffn = slice(small.ffn)
    norm = Destination(stream, None, shrink)
    return {
        "embed_tokens": Destination(words, stream, 1.0),
        "lm_head": Destination(words, stream, 1.0),
        "norm": norm,
        "input_layernorm": norm,
        "post_attention_layernorm": norm,
        "q_proj": Destination(queries, stream, q_scale),
        "k_proj": Destination(keys, stream, k_scale),
        "v_proj": Destination(keys, stream, 1.0),
        "o_proj": Destination(stream, queries, 1.0),
        "q_norm": Destination(channels, None, 1.0),
        "k_norm": Destination(channels, None, 1 / sqrt(ratio)),
        "gate_proj": Destination(ffn, stream, 1.0),
        "up_proj": Destination(ffn, stream, 1.0),
        "down_proj": Destination(stream, ffn, 1.0),
    }


def _query_heads(small: Architecture, large: Architecture) -> torch.Tensor:
    """The large head that each small query becomes, [small.heads].

    Two small keys with g = 2 queries each, in a large model whose keys serve G = 4::

        small query   0  1 | 2  3            small key   0 | 1
        large query   0  1  .  . | 4  5  .  .      large key   0 | 1

    The same four queries if each large key serves one, G = 1. Every key is copied::

        small query   0 | 1 | 2 | 3          small key   0 | 1
        large query   0 | 1 | 2 | 3          large key   0 | 0 | 1 | 1
    """
    small_group, large_group = small.queries_per_key, large.queries_per_key
    copies = _copies(small, large)

    query = torch.arange(small.heads)
    key = query // small_group
    number_in_group = query % small_group
    copy_of_key = number_in_group // large_group  # the first copies are filled first
    slot = number_in_group % large_group
    large_key = key * copies + copy_of_key
    return large_key * large_group + slot


def _key_heads(small: Architecture, large: Architecture) -> torch.Tensor:
    """The large keys that are copies of each small key, [copies, small.kv_heads].

    Row c holds the c-th copy of every key; one assignment writes all rows.
    """
    copies = _copies(small, large)
    return torch.arange(small.kv_heads * copies).view(-1, copies).T


def _rows_of_heads(
    heads: torch.Tensor, channels: torch.Tensor, head_dim: int
) -> torch.Tensor:
    """The rows of a large projection that compute the ``channels`` of ``heads``.

    heads: large heads, [..., n]; channels: numbers within a head, [h]; head_dim: H.
    Returns [..., n * h]. Head 1 with H = 4 and channels 0, 2 takes rows 4 and 6::

        row         0   1   2   3 | 4   5   6   7
        head        0             | 1
        channel     0   .   1   . | 0   .   1   .     r = 2, h = 2
    """
    return (heads[..., None] * head_dim + channels).flatten(-2)


def _ban_added_words(large: PreTrainedModel) -> None:
    """Makes transformers' generate ban the tokens that dilation added."""
    added = range(large.config.real_vocab, large.config.vocab_size)
    if not added:
        return
    generation = large.generation_config
    banned = set(generation.suppress_tokens or ())
    generation.suppress_tokens = sorted(banned.union(added))
