"""The errors that a caller can fix.

All of them are SpeclibErrors. Each is also a built-in exception for that kind of
mistake, so ``except ValueError`` catches a bad value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from speclib import paths


class SpeclibError(Exception):
    """A mistake that the caller can fix.

    Its message names the thing, its value and the next step.
    """


class BadValue(SpeclibError, ValueError):
    """A wrong value in a call or in a file."""


class UnknownName(BadValue, LookupError):
    """An unknown name; the message lists the known ones."""


class BadCall(SpeclibError, TypeError):
    """A call with a missing or an unknown argument."""


class MissingExtra(SpeclibError, ImportError):
    """A library that is not installed; the message says how to install it."""


class NoProcesses(SpeclibError, ImportError):
    """This Python cannot start worker processes; the message says what does work."""


# The import names of the libraries that each of our extras installs.
EXTRAS = {
    "cluster": {"ray"},
    "models": {
        "torch",
        "transformers",
        "accelerate",
        "safetensors",
        "tokenizers",
        "gguf",
    },
    "timeline": {
        "anywidget",
        "ipywidgets",
        "traitlets",
        "fontTools",
        "font_source_sans_pro",
        "resvg_py",
    },
    "notebooks": {"nbformat", "nbclient", "nbconvert", "papermill"},
    "lab": {
        "filelock",
        "jinja2",
        "mistune",
        "pandas",
        "plotly",
        "rich",
        "scipy",
        "tqdm",
        "typer",
    },
}


def is_installed(library: str) -> bool:
    """Whether a library can be imported; does not import it."""
    try:
        spec = find_spec(library)
    except (ImportError, ValueError):  # the import is blocked
        return False
    return spec is not None and spec.origin is not None  # None: just a folder


# The modules that worker processes need. Windows lacks the first, a browser all three.
OF_PROCESSES = ("fcntl", "_multiprocessing", "multiprocessing")


def can_start_processes() -> bool:
    """Whether this Python can start worker processes."""
    return all(is_installed(module) for module in OF_PROCESSES)


def explained(what: str, error: ModuleNotFoundError) -> SpeclibError | None:
    """The error that says which missing module ``what`` needs, and how to install it.

    ``error`` names the module. Returns None unless worker processes need the module or
    one of our extras installs it::

        speclib.Cluster needs ray, which is not installed: `make cluster` installs it,
        or, in the checkout, `pip install -e '.[cluster]'`

    """
    if error.name in OF_PROCESSES:
        return NoProcesses(
            f"{what} needs worker processes, and this Python has no {error.name!r} to "
            'start them with: on Windows use WSL; anywhere, world="virtual" and '
            "speclib.simulate run without them"
        )
    library = (error.name or "").split(".")[0]
    for extra, libraries in EXTRAS.items():
        if library in libraries:
            if what.startswith("speclab") and extra == "timeline":
                extra = "lab"  # includes "timeline" and everything speclab needs
            return MissingExtra(
                f"{what} needs {library}, which is not installed: "
                f"{how_to_install(extra)}"
            )
    return None


def how_to_install(extra: str) -> str:
    """The command that installs one of our extras: `make` in a checkout, else pip.

    In a checkout it never names a project on the package index, because another project
    may have our name there.
    """
    if paths.IS_CHECKOUT:
        command = "`make cluster`" if extra == "cluster" else "`make setup`"
        in_checkout = f"`pip install -e '.[{extra}]'`"
        return f"{command} installs it, or, in the checkout, {in_checkout}"

    from importlib.metadata import packages_distributions  # needed for errors only

    package = paths.PACKAGE.name
    name_on_index = packages_distributions().get(package, [package])[0]
    return f"`pip install '{name_on_index}[{extra}]'` installs it"


@contextmanager
def naming_extras(what: str) -> Iterator[None]:
    """Raises MissingExtra or NoProcesses instead of ModuleNotFoundError.

    The message says that ``what`` needs the library, and which extra installs it. Works
    as a context manager and as a decorator.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        explanation = explained(what, error)
        if explanation is None:
            raise
        raise explanation from error


LONGEST_LIST = 400  # characters; if a list is longer, only the nearest names are shown
NEAREST = 3


def unknown_name(
    problem: str,
    name: object,
    known: Iterable[str],
    advice: str = "",
) -> UnknownName:
    """The error for a ``name`` that is not among the ``known`` ones.

    ``problem`` says what is wrong, as in "unknown method 'perl'". The message then
    lists the known names, suggests the one nearest to ``name`` and ends with
    ``advice``::

        unknown method 'perl'; known: autoregressive, pearl. Did you mean 'pearl'?

    If the list is too long, the message contains only the nearest names.
    """
    known = list(known)
    all_names = ", ".join(known) or "none"
    if len(all_names) <= LONGEST_LIST:
        sentences = [f"{problem}; known: {all_names}"]
    else:
        nearest_few = ", ".join(nearest_names(name, known))
        sentences = [f"{problem}; the nearest of {len(known)} known: {nearest_few}"]

    nearest = nearest_name(name, known)
    if nearest is not None:
        sentences.append(f"Did you mean {nearest!r}?")
    if advice:
        sentences.append(advice)
    return UnknownName(_joined(sentences))


def nearest_name(name: object, known: Iterable[str]) -> str | None:
    """The known name most like ``name``, ignoring case; None if none is similar."""
    matches = nearest_names(name, known, count=1, least_alike=0.6)
    return matches[0] if matches else None


def nearest_names(
    name: object, known: Iterable[str], count: int = NEAREST, least_alike: float = 0.0
) -> list[str]:
    """The ``count`` known names most like ``name``, nearest first, ignoring case.

    ``least_alike``: the least similarity, from 0 to 1, that a name must have.
    """
    from difflib import get_close_matches  # needed for errors only

    by_lower_case = {word.lower(): word for word in known}
    matches = get_close_matches(str(name).lower(), by_lower_case, count, least_alike)
    return [by_lower_case[match] for match in matches]


def _joined(sentences: list[str]) -> str:
    """Joins sentences into one line, adding full stops where they are missing."""
    line = sentences[0]
    for sentence in sentences[1:]:
        ending = "" if line.endswith("?") else "."
        line = f"{line}{ending} {sentence}"
    return line
