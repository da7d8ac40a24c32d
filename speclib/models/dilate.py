"""Dilation: embed a small trained model in a larger architecture, without changing its function.

The dilated model returns the small one's logits (up to rounding) at the cost of the large shape:
every layer, head and channel is computed. So quality and speed are independent dials, and a model
of Llama-2-7B's exact shape runs without its weights. Width d -> D, head dimension h -> H, layers
n -> N. Doesn't know tokenizers, several devices, or how a sampler bans tokens.
- Width. The residual stream carries the small one in its first d channels, exact zeros behind. Its
  mean square is d/D of the small one's: RMSNorm with eps * d/D gives sqrt(D/d) times too much,
  which the norm's weight * sqrt(d/D) undoes.
- Heads. g small queries share a key, G large ones do: query i of key k goes to k*G + i. If g > G,
  each key is copied ceil(g/G) times: grouped queries fit where each has its own key (Llama-2-7B).
- Head dimension H = r*h. Channel t goes to r*t: rotary pair (j, j + h/2) becomes (r*j, r*j + H/2),
  which turns at the same rate, theta^(-2rj/rh). Attention divides by sqrt(H) instead of sqrt(h),
  so q, bias included, is scaled by sqrt(r).
- Qwen3 normalises q and k over H with the *layers'* eps. The mean square falls by r, eps by D/d:
  q_proj and k_proj times sqrt(r * d/D) restore their ratio, so q and k come out sqrt(r) too
  large. That is q's wanted factor; k_norm's weight takes k's away.
- Depth. Layer i becomes (i+1)*N//n - 1: evenly spread, so half the depth holds half the function,
  and the last stays last: no early exit sees the final logits. Added layers compute, then write 0.
- Noise. What reads the stream (q, k, v, gate, up, lm_head) is seeded noise where an exact zero
  before it (an empty channel) or behind it (o_proj, down_proj) hides it. Only what writes the
  stream is zero, stored densely: no sparsity or denormals make it cheaper.
"""

from __future__ import annotations

from bisect import bisect_left
from copy import deepcopy
from math import ceil, sqrt
from typing import NamedTuple

import torch

from speclib.errors import SpeclibError

FAMILIES = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
ROTARY = ("default", "linear", "llama3")  # rates that depend on j/h only
READS = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "lm_head")


class Shape(NamedTuple):
    """What dilation enlarges; the first four are the `shape` of a pair file."""

    layers: int
    width: int
    heads: int
    ffn: int
    kv_heads: int
    head_dim: int
    vocab: int

    @classmethod
    def of(cls, config) -> Shape:
        """The shape that a Llama, Qwen2 or Qwen3 config describes."""
        c, head_dim = config, config.hidden_size // config.num_attention_heads
        return cls(
            c.num_hidden_layers,
            c.hidden_size,
            c.num_attention_heads,
            c.intermediate_size,
            c.num_key_value_heads,
            getattr(c, "head_dim", None) or head_dim,
            c.vocab_size,
        )


def dilate(
    model,
    shape,
    *,
    kv_heads=None,
    head_dim=None,
    vocab=None,
    dtype=None,
    device=None,
    seed=0,
):
    """A model of `shape` with the logits of `model` (not changed), in eval mode, untied.

    model: a transformers LlamaForCausalLM, Qwen2ForCausalLM or Qwen3ForCausalLM, not quantised.
    shape: (layers, width, heads, ffn), none smaller than the model's own.
    kv_heads: default: as many queries per key as the model. head_dim: default width / heads.
    vocab: rows added are zero, so their logits are 0, which can be the largest: **a sampler must
        ban the ids from config.real_vocab on**. transformers' generate does, by suppress_tokens.
    dtype, device: default: the model's; allocated there directly, on "meta" not at all.
    The result is a plain transformers model, also after save and load; its config also has
    `real_vocab` and `dilated_from`, the small model's (layers, width, heads, ffn).
    Raises SpeclibError if the model is of another family or doesn't fit into the shape.
    """
    if type(model).__name__ not in FAMILIES:
        raise SpeclibError(
            f"model is a {type(model).__name__}; dilate one of {FAMILIES}"
        )
    config = dilated_config(
        model.config, shape, kv_heads=kv_heads, head_dim=head_dim, vocab=vocab
    )
    large = _allocate(
        model, config, dtype or model.dtype, torch.device(device or model.device)
    )
    with torch.no_grad():
        _fill(large, Shape.of(config).head_dim // Shape.of(model.config).head_dim, seed)
        _embed(large, model)
    large.generation_config = generation = deepcopy(model.generation_config)
    if unreal := range(config.real_vocab, config.vocab_size):
        generation.suppress_tokens = sorted(
            {*(generation.suppress_tokens or ()), *unreal}
        )
    return large.requires_grad_(False).eval()


def dilated_config(config, shape, *, kv_heads=None, head_dim=None, vocab=None):
    """The large model's transformers config; arguments and errors as in `dilate`."""
    small, large = Shape.of(config), _complete(config, shape, kv_heads, head_dim, vocab)
    sizes = dict(
        num_hidden_layers=large.layers,
        hidden_size=large.width,
        intermediate_size=large.ffn,
        num_attention_heads=large.heads,
        num_key_value_heads=large.kv_heads,
        head_dim=large.head_dim,
        vocab_size=large.vocab,
        tie_word_embeddings=False,
        rms_norm_eps=config.rms_norm_eps * small.width / large.width,
        real_vocab=getattr(config, "real_vocab", small.vocab),
        dilated_from=getattr(config, "dilated_from", list(small[:4])),
    )
    if kinds := getattr(
        config, "layer_types", None
    ):  # an added layer attends as the next real one
        sizes["layer_types"] = [
            kinds[bisect_left(_depths(small, large), layer)]
            for layer in range(large.layers)
        ]
    return type(config).from_dict(config.to_dict() | sizes)


def _complete(config, shape, kv_heads, head_dim, vocab) -> Shape:
    """`shape` with its defaults filled in, if the model fits."""

    def demand(holds, message):
        if not holds:
            raise SpeclibError(message)

    small, rotary = Shape.of(config), config.rope_parameters["rope_type"]
    demand(
        len(shape) == 4 and all(isinstance(size, int) and size > 0 for size in shape),
        f"shape is {shape}; give four positive integers: layers, width, heads, ffn",
    )
    (layers, width, heads, ffn), group = shape, small.heads // small.kv_heads
    demand(
        not heads % (kv_heads or group),
        f"{heads} heads don't divide into kv_heads {kv_heads} "
        f"(the model has {group} heads to a key); pass a divisor of {heads} as kv_heads",
    )
    demand(
        head_dim or not width % heads,
        f"width {width} is no multiple of {heads} heads; change one of them or pass head_dim",
    )
    large = Shape(
        layers,
        width,
        heads,
        ffn,
        kv_heads or heads // group,
        head_dim or width // heads,
        vocab or small.vocab,
    )
    for name in ("layers", "width", "heads", "ffn", "vocab"):
        wanted, least = getattr(large, name), getattr(small, name)
        demand(wanted >= least, f"{name} is {wanted}; the model needs at least {least}")
    demand(
        not large.head_dim % small.head_dim,
        f"head_dim is {large.head_dim}, no multiple of the "
        f"model's {small.head_dim}; change width or heads, or pass head_dim",
    )
    least = small.kv_heads * _copies(small, large)
    demand(
        large.kv_heads >= least,
        f"kv_heads is {large.kv_heads}; with {heads} heads the model needs at least {least}",
    )
    demand(
        rotary in ROTARY or large.head_dim == small.head_dim,
        f"rope_type {rotary!r} turns "
        f"with head_dim; keep head_dim at {small.head_dim} (it would be {large.head_dim})",
    )
    return large


def _depths(small: Shape, large: Shape) -> list[int]:
    """The place of each of the small model's layers."""
    return [(i + 1) * large.layers // small.layers - 1 for i in range(small.layers)]


def _copies(small: Shape, large: Shape) -> int:
    """How often each key is needed so that its queries find room."""
    return ceil(small.heads // small.kv_heads / (large.heads // large.kv_heads))


def _allocate(model, config, dtype, device):
    """The large model, uninitialised: born on meta, since transformers' initialising is slow."""
    with torch.device("meta"):
        large = type(model)._from_config(
            config, dtype=dtype, attn_implementation=model.config._attn_implementation
        )
    large.to_empty(device=device)
    # rotary rates are computed, not stored, so to_empty lost them; they stay float32
    large.model.rotary_emb = type(large.model.rotary_emb)(config).to(device)
    return large


def _fill(large, ratio, seed):
    """Noise in what reads the residual stream, zeros in what writes it, ones in the norms."""
    spread = 0.02 * sqrt(3)  # uniform, with the standard deviation of a fresh model
    coins = (
        None
        if large.device.type == "meta"
        else torch.Generator(large.device).manual_seed(seed)
    )
    for name, weight in large.named_parameters():
        module = name.split(".")[-2]
        if module in READS:
            weight.uniform_(-spread, spread, generator=coins)
        else:
            weight.fill_(1.0 if "norm" in module else 0.0)
        if module in ("q_proj", "k_proj"):
            weight.unflatten(0, (-1, ratio))[:, 1:] = (
                0.0  # the channels between r*t and r*(t+1)
            )
    large.lm_head.weight[large.config.real_vocab :] = 0.0


def _embed(large, model):
    """Write every weight of the small model to its place, rounded once."""
    shapes = Shape.of(model.config), Shape.of(large.config)
    places, depths = (
        _places(*shapes, model.config.model_type == "qwen3"),
        _depths(*shapes),
    )
    for name, theirs in model.named_parameters(
        remove_duplicate=False
    ):  # lm_head, even if tied
        path = name.split(".")
        if "layers" in path:
            path[2] = str(depths[int(path[2])])
        mine, (rows, columns, scale) = (
            large.get_parameter(".".join(path)),
            places[path[-2]],
        )
        wide = torch.promote_types(theirs.dtype, mine.dtype)
        mine[(rows, columns)[: mine.dim()]] = (
            theirs.to(mine.device, wide).mul(scale).to(mine.dtype)
        )


def _places(small: Shape, large: Shape, normed: bool) -> dict:
    """module -> (rows, columns, scale) in the large model; a bias or norm has rows only."""
    ratio, shrink = large.head_dim // small.head_dim, sqrt(small.width / large.width)
    group, room = small.heads // small.kv_heads, large.heads // large.kv_heads
    query, copies = torch.arange(small.heads), _copies(small, large)
    query = (
        query // group * copies + query % group // room
    ) * room + query % group % room
    key = (
        torch.arange(small.kv_heads * copies).view(-1, copies).T
    )  # one write fills all copies
    channels = torch.arange(small.head_dim) * ratio
    queries, keys = (
        (head[..., None] * large.head_dim + channels).flatten(-2)
        for head in (query, key)
    )
    stream, words, ffn = slice(small.width), slice(small.vocab), slice(small.ffn)
    norm, read, write = (stream, None, shrink), (ffn, stream, 1.0), (stream, ffn, 1.0)
    return {
        "embed_tokens": (words, stream, 1.0),
        "lm_head": (words, stream, 1.0),
        "norm": norm,
        "input_layernorm": norm,
        "post_attention_layernorm": norm,
        "q_proj": (queries, stream, sqrt(ratio) * (shrink if normed else 1.0)),
        "k_proj": (keys, stream, sqrt(ratio) * shrink if normed else 1.0),
        "v_proj": (keys, stream, 1.0),
        "o_proj": (stream, queries, 1.0),
        "q_norm": (channels, None, 1.0),
        "k_norm": (channels, None, 1 / sqrt(ratio)),
        "gate_proj": read,
        "up_proj": read,
        "down_proj": write,
    }
