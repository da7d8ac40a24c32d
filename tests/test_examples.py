"""The examples in public names' docstrings run, with the output shown."""

from __future__ import annotations

from doctest import DocTestFinder, DocTestRunner

import pytest

import speclib

# Names that are no functions, worlds of worker processes, and names that need a screen.
WITHOUT_EXAMPLE = {
    "METHODS",
    "SpeclibError",
    "Processes",
    "ProcessBatch",
    "Cluster",
    "timeline",
}
OF_MODELS = {"decode_batch"}  # examples that need torch


@pytest.mark.parametrize("name", sorted(set(speclib.__all__) - WITHOUT_EXAMPLE))
def test_the_example_of_a_public_name_runs(name):
    if name in OF_MODELS:
        pytest.importorskip("torch")
    value = getattr(speclib, name)
    finder = DocTestFinder(recurse=False)
    (example,) = finder.find(value, name, globs={"speclib": speclib})
    assert example.examples, f"the docstring of speclib.{name} has no example"
    assert DocTestRunner().run(example).failed == 0
