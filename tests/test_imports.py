"""Importing stays light; and rules that pyproject.toml's import contracts cannot state.

``lint-imports`` (make lint) checks which package may import which.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module, invalidate_caches
from pathlib import Path

import pytest

import speclab
import speclib
from speclib.errors import is_installed

ROOT = Path(speclib.__file__).parents[1]
PACKAGES = ("speclib", "speclab")


def module_name(path: Path) -> str:
    """Returns "speclib.methods.pearl" for speclib/methods/pearl.py."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


FILES = {
    module_name(path): path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}
HEAVY = {
    "accelerate",
    "gguf",
    "llama_cpp",
    "ray",
    "safetensors",
    "tokenizers",
    "torch",
    "transformers",
}


@cache
def syntax_tree(name: str) -> ast.Module:
    return ast.parse(FILES[name].read_text(encoding="utf-8"))


def imported_modules(nodes: Iterable[ast.AST], package: list[str]) -> set[str]:
    """Returns absolute names of imported modules and of the names imported from them.

    ``package`` has the parts of the package's name at which relative imports start.
    """
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join([*base, node.module] if node.module else base)
            names.add(module)
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


@cache
def imports_anywhere(name: str) -> frozenset[str]:
    """Returns what a module imports, at its top or inside functions."""
    package = name.split(".")[:-1]
    return frozenset(imported_modules(ast.walk(syntax_tree(name)), package))


@cache
def imports_at_the_top(name: str) -> frozenset[str]:
    """Returns what a module imports when it is imported itself."""
    package = name.split(".")[:-1]
    return frozenset(imported_modules(syntax_tree(name).body, package))


def modules_within(package: str) -> list[str]:
    return [name for name in FILES if name.startswith(f"{package}.")]


# -- rules beyond the contracts --------------------------------------------------------
KNOWN_TO_METHODS = {
    "__future__",
    "collections",
    "dataclasses",
    "functools",
    "heapq",
    "itertools",
    "math",
    "numpy",
    "speclib",
    "typing",
}


METHOD_PAGES = set(modules_within("speclib.methods")) - {"speclib.methods.__init__"}


@pytest.mark.parametrize("name", sorted(METHOD_PAGES))
def test_a_method_imports_nothing_about_time_chance_or_devices(name):
    """A contract lists forbidden imports; this test lists all allowed ones."""
    packages = {module.split(".")[0] for module in imports_anywhere(name)}
    assert packages - KNOWN_TO_METHODS == set(), f"{name} imports what it must not know"

    source = FILES[name].read_text()
    assert "np.random" not in source
    assert "numpy.random" not in source


def test_ray_is_imported_only_for_clusters_and_only_when_one_is_opened():
    """Other modules import what needs Ray in the function that opens a cluster."""
    for name in FILES:
        if "cluster" in name:
            continue
        packages = {module.split(".")[0] for module in imports_anywhere(name)}
        assert "ray" not in packages, name
        at_the_top = {m for m in imports_at_the_top(name) if "worlds.cluster" in m}
        assert not at_the_top, name


# -- doors -----------------------------------------------------------------------------
ROOMS = sorted(
    f"{package}.{folder.name}"
    for package in PACKAGES
    for folder in (ROOT / package).iterdir()
    if (folder / "__init__.py").is_file()
)


def modules_from_elsewhere(room: str) -> set[str]:
    """Returns modules in ``room`` that outside files import or a package exports."""
    inside = set(modules_within(room))
    asked_for = {
        module
        for package in (speclib, speclab)
        for module in package._MODULE_OF_NAME.values()
    }
    for name in FILES:
        if name not in inside:
            asked_for |= imports_anywhere(name)
    return {module.removeprefix(f"{room}.") for module in asked_for & inside}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_entered_by_its_door_and_the_door_is_no_wider(room):
    """A room's ``DOOR`` lists the modules that others may import; the rest is private.

    A door lists modules, not their contents, so importing stays light, and a cell's key
    depends only on the modules that the cell runs.
    """
    door = getattr(import_module(room), "DOOR", ())
    assert sorted(modules_from_elsewhere(room)) == list(door)


# -- weight ----------------------------------------------------------------------------
LABS_OWN = {"pandas", "plotly", "scipy", "IPython", "ipywidgets"}


@pytest.mark.parametrize(
    "line, more",
    [
        ("import speclib", {"pydantic"}),
        ("import speclab", {"pydantic"}),
        ("import speclib.worlds.virtual, speclib.worlds.enumerator", {"pydantic"}),
        ("from speclib import METHODS, Latency, SpeclibError", {"pydantic"}),
        ("from speclib import decode, decode_batch, load_pair, replay, Processes", {}),
    ],
)
def test_importing_is_light(line, more):
    heavy = sorted(HEAVY | LABS_OWN | set(more))
    code = f"{line}\nimport sys\nprint([m for m in {heavy} if m in sys.modules])"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"


def test_every_public_name_exists_and_the_error_for_an_unknown_one_lists_them():
    expected = {"decode", "load_pair", "pair", "timeline", "Processes", "METHODS"}
    assert expected <= set(dir(speclib))
    with pytest.raises(AttributeError, match="'nothing'; known: METHODS"):
        _ = speclib.nothing

    assert {"Book", "plan", "explorer"} <= set(dir(speclab))
    with pytest.raises(AttributeError, match="'nothing'; known: External"):
        _ = speclab.nothing


def test_the_error_for_an_engines_name_in_the_workbench_says_where_it_is():
    says = "speclab.simulate is speclib.simulate: `import speclib`"
    with pytest.raises(AttributeError, match=says):
        _ = speclab.simulate


def test_a_folder_with_a_librarys_name_is_not_the_library(tmp_path, monkeypatch):
    """Ray's folder is /tmp/ray, and scripts are run in /tmp."""
    (tmp_path / "typst_like").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert not is_installed("typst_like")
    (tmp_path / "typst_like" / "__init__.py").touch()
    invalidate_caches()
    assert is_installed("typst_like")


WITH_THE_BASE_ALONE = """
import sys
allowed = {"numpy", "psutil", "pydantic", "pydantic_core", "annotated_types",
           "typing_extensions", "typing_inspection", "speclib", "speclab"}

class NothingElse:  # as in an environment with only the base install
    def find_spec(self, name, path=None, target=None):
        library = name.split(".")[0]
        if library in allowed or library in sys.stdlib_module_names:
            return None
        if library.startswith("_"):
            return None
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NothingElse())

import speclib

assert "Cluster" not in dir(speclib)
assert speclib.simulate("pearl", c=8, alpha=0.8).tokens
assert speclib.decode("x", pair="toy", world="virtual", max_new_tokens=4).tokens
assert speclib.load_latency("LATENCY")

import speclab
from speclab.papers.numbers import t_quantile

assert speclab.load_paper("pearl").tables
pair = speclib.load_pair("embedded/llama-7b-70b")
for ask, extra in (
    (lambda: speclib.Cluster, "cluster"),
    (lambda: speclib.decode("x", pair="toy", world="cluster"), "cluster"),
    (lambda: speclib.timeline, "timeline"),
    (lambda: speclab.explorer, "lab"),
    (lambda: speclab.plan, "lab"),
    (lambda: t_quantile(3), "lab"),
    (lambda: speclib.decode("x", pair=pair), "models"),
    (lambda: speclib.open_world("virtual", pair), "models"),
):
    try:
        ask()
        raise AssertionError(extra)
    except speclib.errors.MissingExtra as error:
        assert f".[{extra}]" in str(error), error

from speclab.__main__ import main
main()
"""


def test_the_engine_needs_three_libraries_and_the_rest_names_what_it_needs():
    latency = sorted((ROOT / "data" / "latency").rglob("*.toml"))[0]
    name = latency.relative_to(ROOT / "data" / "latency").with_suffix("").as_posix()
    code = WITH_THE_BASE_ALONE.replace("LATENCY", name)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.startswith("error: speclab needs typer"), ended.stderr


AS_ON_WINDOWS = """
import multiprocessing.context
import signal
import sys

class Missing:  # modules that Python has only on other systems
    names = {"fcntl", "resource", "termios", "pwd", "grp"}

    def find_spec(self, name, path=None, target=None):
        if name in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in Missing.names & set(sys.modules):
    del sys.modules[name]
sys.meta_path.insert(0, Missing())
for way in ("fork", "forkserver"):
    del multiprocessing.context._concrete_contexts[way]
del signal.pthread_sigmask

import speclib
from speclib import *

of_processes = ("Processes", "ProcessBatch")
for name in (*of_processes, "Cluster"):
    assert name not in dir(speclib), name
for name in dir(speclib):
    assert getattr(speclib, name) is not None

def batch(world):
    return decode_batch(["x", "y"], pair="toy", world=world, max_new_tokens=2)

for ask in (
    *(lambda name=name: getattr(speclib, name) for name in of_processes),
    lambda: exec("from speclib import Processes"),
    lambda: batch("processes"),
    lambda: batch("emulated"),
):
    try:
        raise AssertionError(ask())
    except speclib.SpeclibError as error:
        assert isinstance(error, ImportError)
        assert "on Windows use WSL" in str(error), error
        assert 'world="virtual"' in str(error), error

assert decode("x", pair="toy", world="virtual", max_new_tokens=4).tokens
assert len(batch("virtual").results) == 2
"""


def test_on_windows_only_working_names_are_listed_and_the_others_mention_wsl():
    code = [sys.executable, "-c", AS_ON_WINDOWS]
    ended = subprocess.run(code, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


AS_IN_A_BROWSER = """
import sys

class Missing:  # modules that Python in a browser lacks or that are missing there
    names = {"multiprocessing", "_multiprocessing", "psutil", "torch", "transformers",
             "fcntl", "resource", "termios", "pwd", "grp", "resvg_py", "scipy", "ray"}

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in list(sys.modules):
    if name.split(".")[0] in Missing.names:
        del sys.modules[name]
sys.meta_path.insert(0, Missing())

import speclib
from speclib import *

plain = simulate("autoregressive", tokens=20)
assert abs(plain.stats.seconds - 2.0) < 1e-9  # 20 passes of 0.1 s
for method in METHODS:
    assert simulate(method, tokens=20).tokens == plain.tokens, method
assert len(compare("dsi", c=5, alpha=0.8)) == 3
assert decode("x", pair="toy", world="virtual", max_new_tokens=4).tokens
try:
    decode("x", pair="toy", world="processes")
    raise AssertionError("it has no processes")
except speclib.SpeclibError as error:
    assert 'world="virtual"' in str(error), error

import speclab

assert "PEARL" in speclab.load_paper("pearl").title
path = timeline(*compare("pearl", c=5, alpha=0.8, tokens=12)).save(sys.argv[1])
assert path.read_text().startswith("<svg")
"""


def test_simulations_printed_tables_and_timelines_need_no_processes(tmp_path):
    pytest.importorskip("anywidget")
    code = [sys.executable, "-c", AS_IN_A_BROWSER, tmp_path / "run.svg"]
    ended = subprocess.run(code, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
