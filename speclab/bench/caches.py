"""What a pass costs with our KV cache and with transformers' own, by length of text."""

from __future__ import annotations

from collections.abc import Iterator

from .bench_rows import BenchRow, Size, median_row

TEXT_LENGTHS = (128, 2_048, 16_384)  # tokens that are cached
LONG = 10_000  # from here on ours is to be faster; for shorter texts chance decides
FED = 6  # tokens of a pass: a draft of five, and the token before it


def passes(size: Size) -> Iterator[BenchRow]:
    """Seconds of a pass behind a text with our cache over those with transformers'."""
    from speclab.bench import cache_speed  # brings torch

    caches = cache_speed.TwoCaches()
    for length in TEXT_LENGTHS:
        ratios = []
        for seconds in caches.seconds(length, FED, size.passes):
            ratios.append(seconds.ours / seconds.theirs)
        yield median_row(
            f"pass of {FED} tokens behind {length:,}, our cache over transformers'",
            ratios,
            "ratio",
            note=f"Llama, {cache_speed.LAYERS} layers of width {cache_speed.WIDTH}",
            aim=1.0 if length > LONG else None,
            at_most=True,
        )
