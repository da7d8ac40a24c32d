"""How near fuzzy states are to exact ones, of any model. Knows no torch: see ``models.layered``."""

from __future__ import annotations

from collections.abc import Iterable

from speclib.data.pairs import ModelSpec, Pair


def similarities(
    model: Pair | str,
    texts: str | Iterable[str],
    lp: int = 4,
    dtype: str = "auto",
    device: str | None = None,
) -> dict[str, list[float]]:
    """Cosine similarity of exact and fuzzy states at ``lp`` layers to a group, per layer, averaged
    over the positions of ``texts``: {"h", "q", "k", "v", "Attn output": [one per layer]} (see
    models.layered). ``model``: of a pair the draft, as it was trained (a dilated one's added layers
    say nothing); or zoo/<name>, a folder, a hub id of a Llama, Qwen2 or Qwen3. ``device``: where it
    is computed, "cpu" or "cuda:0"; None: the first place of the pair's draft, or the CPU.

    Source: EasySpec, Table 5.
    """
    from speclib.models import factory
    from speclib.models.hf import network
    from speclib.models.parallel.layer_parallel import similarities as of_ids
    from speclib.models.zoo import tokenizer

    name = model if isinstance(model, str) else model.draft.model
    here = "cpu" if isinstance(model, str) else factory.place(model).of("draft")[0]
    words, built = (
        tokenizer(name),
        network(ModelSpec(model=name), dtype, (device or here,)),
    )
    lines = [
        words.encode(text) for text in ([texts] if isinstance(texts, str) else texts)
    ]
    found = [of_ids(built, ids, lp) for ids in lines]
    whole = sum(map(len, lines))
    return {
        state: [
            sum(
                len(ids) * one[state][layer]
                for ids, one in zip(lines, found, strict=True)
            )
            / whole
            for layer in range(len(found[0][state]))
        ]
        for state in found[0]
    }
