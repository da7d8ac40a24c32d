"""Who may import whom, and what stays light: read from the sources."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import speclib

ROOT = Path(speclib.__file__).parent
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted(ROOT.rglob("*.py"))
    if "__pycache__" not in path.parts
}
HEAVY = {
    "torch",
    "transformers",
    "accelerate",
    "safetensors",
    "tokenizers",
    "llama_cpp",
    "gguf",
}


def imports(name: str, lazy: bool = True) -> set[str]:
    """Absolute names of the modules ``name`` imports; ``lazy``: inside functions too."""
    tree, package = (
        ast.parse(FILES[name].read_text()),
        ["speclib", *name.split(".")][:-1],
    )
    nodes = ast.walk(tree) if lazy else tree.body
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join(base + ([node.module] if node.module else []))
            found |= {
                f"{module}.{a.name}" if node.module is None else module
                for a in node.names
            }
    return found


def own(name: str, **kind) -> set[str]:
    return {
        m.removeprefix("speclib.")
        for m in imports(name, **kind)
        if m.startswith("speclib")
    }


def within(package: str) -> list[str]:
    return [name for name in FILES if name.startswith(f"{package}.")]


# -- direction ------------------------------------------------------------------------------------
ALLOWED = {
    "errors": set(),
    "paths": set(),
    "tokens": {"errors"},
    "trace": {"errors"},
    "rounds": {"trace"},
    "metrics": {"trace", "rounds"},
    "latency": {"errors", "paths", "models.grouping"},
    "operations": {"errors", "tokens"},
    "branch": {"tokens", "operations"},
    "tree": {"tokens", "operations"},
    "grow": {"errors", "tokens", "operations", "tree"},
    "devices": {"errors", "operations", "branch", "tree", "grow"},
    "world": {"errors", "tokens", "trace", "operations", "devices"},
    "virtual": {"errors", "tokens", "trace", "operations", "world", "latency"},
    "worker": {"errors", "operations"},
    "exact": {"errors", "tokens", "latency", "virtual"},
}


@pytest.mark.parametrize("name", ALLOWED)
def test_the_core_imports_downwards_only(name):
    assert own(name) <= ALLOWED[name]


@pytest.mark.parametrize(
    "name", [n for n in within("methods") if not n.endswith("__init__")]
)
def test_a_method_knows_tokens_and_the_world_but_no_time_chance_device_or_model(name):
    assert own(name) <= {
        "errors",
        "tokens",
        "operations",
        "tree",
        "world",
        "methods",
    } | set(within("methods"))
    other = {m.split(".")[0] for m in imports(name)} - {"speclib", "__future__"}
    assert other <= {
        "collections",
        "dataclasses",
        "functools",
        "heapq",
        "itertools",
        "math",
        "numpy",
        "typing",
    }
    source = FILES[name].read_text()
    assert "np.random" not in source and "numpy.random" not in source


@pytest.mark.parametrize("name", within("models"))
def test_models_know_no_world_method_or_view(name):
    above = {
        "world",
        "virtual",
        "processes",
        "decoding",
        "methods",
        "experiment",
        "papers",
        "views",
    }
    assert not {m.split(".")[0] for m in own(name)} & above


@pytest.mark.parametrize("name", within("views"))
def test_views_read_traces_and_rows_only(name):
    below = {
        "world",
        "virtual",
        "processes",
        "worker",
        "models",
        "methods",
        "tokens",
        "exact",
        "operations",
        "latency",
        "pairs",
        "decoding",
        "whatif",
    }
    assert not {m.split(".")[0] for m in own(name)} & below


def test_torch_is_imported_under_models_only():
    """At the top of a file, or inside a function, nowhere else."""
    users = {name for name in FILES if {m.split(".")[0] for m in imports(name)} & HEAVY}
    assert {name for name in users if not name.startswith("models.")} == set()


def test_worlds_and_pairs_reach_models_inside_functions_only():
    """So that describing a pair, or a virtual run of toys, costs no import of torch."""
    for name in (
        "pairs",
        "places",
        "processes",
        "decoding",
        "worker",
        "virtual",
        "spawn",
        "external",
    ):
        assert not {m for m in own(name, lazy=False) if m.startswith("models.")}


# -- weight ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "line",
    [
        "import speclib",
        "import speclib.worlds.virtual, speclib.worlds.enumerator",
        "from speclib import METHODS, Virtual, Latency, stats",
    ],
)
def test_importing_is_light(line):
    heavy = sorted(
        HEAVY | {"pandas", "plotly", "scipy", "IPython", "ipywidgets", "pydantic"}
    )
    code = f"{line}\nimport sys\nprint([m for m in {heavy} if m in sys.modules])"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"


def test_every_public_name_is_there_and_an_unknown_one_lists_them():
    assert {"decode", "load_pair", "pair", "timeline", "Processes", "METHODS"} <= set(
        dir(speclib)
    )
    with pytest.raises(AttributeError, match="'nothing'; known: METHODS"):
        _ = speclib.nothing


@pytest.mark.parametrize("name", FILES)
def test_a_file_says_what_it_is(name):
    if FILES[name].read_text().strip():
        assert ast.get_docstring(ast.parse(FILES[name].read_text()))
