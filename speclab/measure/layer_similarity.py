"""Computes the similarity of fuzzy and exact states, for any model.

Torch is only imported for the computation, in ``fuzzy_states``.
"""

from __future__ import annotations

from collections.abc import Iterable

from speclib.arguments import Count, checked
from speclib.data.pairs import ModelSpec, Pair
from speclib.errors import BadValue

Similarities = dict[str, list[float]]  # state -> its similarity in each layer


@checked
def similarities(
    model: Pair | str,
    texts: str | Iterable[str],
    lp: Count = 4,
    dtype: str = "auto",
    device: str | None = None,
) -> Similarities:
    """Compare exact and fuzzy states of a model by cosine similarity, layer by layer.

    model   a pair, whose draft is used as it was trained (layers added by dilation
            would tell nothing); or zoo/<name>, a folder, or the hub id of a Llama,
            Qwen2 or Qwen3 model
    texts   one text or several; similarities are averaged over all positions
    lp      maximum number of layers per group
    device  where to compute, for example "cpu" or "cuda:0"; None: the first place of
            the pair's draft, or the CPU

    Returns one value per layer for each state: {"h", "q", "k", "v", "Attn output":
    [...]} (see ``fuzzy_states.compare_states``).

    Source: EasySpec, Table 5.
    """
    texts = [texts] if isinstance(texts, str) else list(texts)
    if len(texts) == 0:
        raise BadValue("texts is empty: give at least one text")

    from speclib.models.checkpoint import find
    from speclib.models.hf import network
    from speclib.models.loading import Loading
    from speclib.models.open_pair import open_pair

    from .fuzzy_states import compare_states

    if isinstance(model, str):
        name, default_device = model, "cpu"
    else:
        name, default_device = model.draft.model, open_pair(model).place.of("draft")[0]

    checkpoint = find(ModelSpec(model=name))
    place = device or default_device
    model_network = network(Loading(checkpoint, checkpoint.vocab, dtype, (place,)))
    token_ids = [checkpoint.tokenizer.encode(text) for text in texts]
    by_text = [compare_states(model_network, ids, lp) for ids in token_ids]
    return _average_over_positions(by_text, [len(ids) for ids in token_ids])


def _average_over_positions(
    by_text: list[Similarities], lengths: list[int]
) -> Similarities:
    """The mean of several texts' similarities, weighted by length."""
    averages: Similarities = {}
    for state, layers in by_text[0].items():
        averages[state] = []
        for layer in range(len(layers)):
            weighted = sum(
                length * similarity[state][layer]
                for length, similarity in zip(lengths, by_text, strict=True)
            )
            averages[state].append(weighted / sum(lengths))
    return averages
