"""The number formats in which a model can be computed. Imports no torch."""

from __future__ import annotations

from speclib.errors import unknown_name

TORCH_NAMES = {
    "auto": "float32",
    "float32": "float32",
    "float64": "float64",
    "bfloat16": "bfloat16",
    "float16": "float16",
}  # what a caller may ask for -> torch's name of it


def check_dtype(dtype: str) -> None:
    """Raises SpeclibError for a number format that is not known."""
    if dtype not in TORCH_NAMES:
        raise unknown_name(f"unknown dtype {dtype!r}", dtype, TORCH_NAMES)
