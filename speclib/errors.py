"""The errors that a caller can mend.

All of them are SpeclibErrors. Each is also what Python calls such a mistake, so
``except ValueError`` catches a bad value without knowing speclib.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from speclib import paths


class SpeclibError(Exception):
    """A mistake the caller can mend.

    Its message names the thing, its value and the next step.
    """


class BadValue(SpeclibError, ValueError):
    """A value that is wrong, in a call or in a file."""


class UnknownName(BadValue, LookupError):
    """A name that stands for nothing; the message lists the names that do."""


class BadCall(SpeclibError, TypeError):
    """A call with an argument that is missing, or that the function does not have."""


class MissingExtra(SpeclibError, ImportError):
    """A library that is not installed; the message says how to install it."""


class NoProcesses(SpeclibError, ImportError):
    """Worker processes, which this Python cannot start; the message says what can."""


# Libraries that come with an extra of ours: import names, by extra.
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
    """Whether a library can be imported; it is not imported by this."""
    try:
        spec = find_spec(library)
    except (ImportError, ValueError):  # somebody has hidden it
        return False
    return spec is not None and spec.origin is not None  # no folder of that name


# What worker processes are made of. Windows lacks the first, a browser all of them.
OF_PROCESSES = ("fcntl", "_multiprocessing", "multiprocessing")


def can_start_processes() -> bool:
    """Whether this Python has what worker processes are made of."""
    return all(is_installed(module) for module in OF_PROCESSES)


def explained(what: str, error: ModuleNotFoundError) -> SpeclibError | None:
    """The error for ``what`` needs a module that is not here, and what helps.

    ``error`` says which module; None if it comes neither with Python nor with an extra
    of ours::

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
                extra = "lab"  # which has it, and what else the workbench needs
            return MissingExtra(
                f"{what} needs {library}, which is not installed: "
                f"{how_to_install(extra)}"
            )
    return None


def how_to_install(extra: str) -> str:
    """What installs an extra of ours: in a checkout `make`, elsewhere pip.

    In a checkout it names no project of the package index, which may have another one
    of our name.
    """
    if paths.IS_CHECKOUT:
        command = "`make cluster`" if extra == "cluster" else "`make setup`"
        in_checkout = f"`pip install -e '.[{extra}]'`"
        return f"{command} installs it, or, in the checkout, {in_checkout}"

    from importlib.metadata import packages_distributions  # only a mistake needs it

    package = paths.PACKAGE.name
    name_on_index = packages_distributions().get(package, [package])[0]
    return f"`pip install '{name_on_index}[{extra}]'` installs it"


@contextmanager
def naming_extras(what: str) -> Iterator[None]:
    """In here what ``what`` lacks is named: a library, with its extra, or processes.

    Also a decorator. Raises MissingExtra or NoProcesses in place of
    ModuleNotFoundError.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        explanation = explained(what, error)
        if explanation is None:
            raise
        raise explanation from error


LONGEST_LIST = 400  # characters of known names; of more, the nearest are told
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

    Where there are very many names it tells the nearest.
    """
    known = list(known)
    all_names = ", ".join(known) or "none"
    if len(all_names) <= LONGEST_LIST:
        sentences = [f"{problem}; known: {all_names}"]
    else:
        nearest_few = ", ".join(nearest_names(name, known))
        sentences = [f"{problem}; of {len(known)} known the nearest are: {nearest_few}"]

    nearest = nearest_name(name, known)
    if nearest is not None:
        sentences.append(f"Did you mean {nearest!r}?")
    if advice:
        sentences.append(advice)
    return UnknownName(_joined(sentences))


def nearest_name(name: object, known: Iterable[str]) -> str | None:
    """The known name most like ``name``, whatever its case; None if none is like it."""
    like_it = nearest_names(name, known, count=1, least_alike=0.6)
    return like_it[0] if like_it else None


def nearest_names(
    name: object, known: Iterable[str], count: int = NEAREST, least_alike: float = 0.0
) -> list[str]:
    """The ``count`` known names most like ``name``, the nearest first.

    ``least_alike``: from 0 to 1; upper case is lower.
    """
    from difflib import get_close_matches  # only a mistake needs it

    by_lower_case = {word.lower(): word for word in known}
    matches = get_close_matches(str(name).lower(), by_lower_case, count, least_alike)
    return [by_lower_case[match] for match in matches]


def _joined(sentences: list[str]) -> str:
    """Sentences as one line, with a full stop between those that have no mark."""
    line = sentences[0]
    for sentence in sentences[1:]:
        ending = "" if line.endswith("?") else "."
        line = f"{line}{ending} {sentence}"
    return line
