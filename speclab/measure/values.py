"""Measures a pair's layer similarity, cache transport and acceptance by position."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from speclab.runs.values import Value, ValuesStep, append_values, read_all_values
from speclab.traces.acceptance import acceptance
from speclib.data.pairs import load_pair
from speclib.decoding.decode import decode
from speclib.models.open_pair import open_pair

from .layer_similarity import similarities
from .measurement import Measurement, commit_of_code, in_words, now
from .moved_cache import measure_transport
from .task_prompts import Turn, load_prompts

At = tuple[int, str, float]  # number of a text or repeat, what it refers to, value


def layer_similarity(
    pair: str, numbers: Sequence[int], task: str, length: int, lp: int
) -> Iterator[At]:
    """The similarity of a draft's fuzzy and exact states, text by text.

    lp      maximum number of layers per group (see ``similarities``)
    length  each text is the task's prompts, joined and cut to this many tokens
    """
    opened = open_pair(load_pair(pair))
    texts = load_prompts(task, length, numbers[-1] + 1, opened.tokenizer)
    for number in numbers:
        text = texts[number]
        assert isinstance(text, str)  # because it has a given length
        for state, by_layer in similarities(opened.pair, text, lp).items():
            for layer, similarity in enumerate(by_layer):
                yield number, f"{state}, layer {layer}", similarity


def cache_transport(
    pair: str, numbers: Sequence[int], lengths: tuple[int, ...]
) -> Iterator[At]:
    """How long moving a draft's KV cache to another replica takes, in seconds.

    ``lengths``: the numbers of cached tokens.
    """
    seconds = measure_transport(load_pair(pair), lengths, len(numbers))
    for length, repeats in seconds.items():
        for number, repeat in zip(numbers, repeats, strict=True):
            yield number, f"{length} tokens", repeat


def acceptance_by_place(
    pair: str, numbers: Sequence[int], task: str, gamma: int, tokens: int
) -> Iterator[At]:
    """The share of tested drafts accepted, by position in the window, text by text.

    Runs greedy speculative decoding with the models in the shapes of their training.
    """
    opened = open_pair(load_pair(pair))
    texts = load_prompts(task, None, numbers[-1] + 1, opened.tokenizer)
    for number in numbers:
        if isinstance(texts[number], Turn):  # a later turn needs the target's replies
            continue
        run = decode(
            texts[number],
            pair=opened.pair,
            world="virtual",
            method="speculative",
            gamma=gamma,
            max_new_tokens=tokens,
        )
        counts = acceptance(run)
        for place, tested in enumerate(counts.tested):
            if tested:
                yield number, f"place {place + 1}", counts.accepted[place] / tested


MEASURED: dict[str, Callable[..., Iterator[At]]] = {
    "layer similarity": layer_similarity,
    "cache transport": cache_transport,
    "acceptance by place": acceptance_by_place,
}


def measure_values(step: ValuesStep, measurement: Measurement) -> str | None:
    """Measures a step's missing values and appends them; if it fails, returns why."""
    name = measurement.machine, *step.name
    done = set()
    for value in read_all_values():
        if (value.machine, value.what, value.pair, value.settings) == name:
            done.add(value.n)
    numbers = [number for number in range(step.n) if number not in done]
    if not numbers:
        return None
    measurement.say(f"{step.what} of {step.pair}")
    try:
        measured = MEASURED[step.what](step.pair, numbers, **dict(step.settings))
        values = [
            Value(*name, at, number, value, now(), commit_of_code())
            for number, at, value in measured
        ]
    except Exception as error:
        return in_words(error)
    append_values(values)
    return None
