"""The errors that a caller can mend.

All of them are SpeclibErrors. Each is also what Python calls such a mistake, so
``except ValueError`` catches a bad value without knowing speclib.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from speclib import installed


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


# Libraries that come with an extra of ours: import name -> (name in words, extra, what
# installs it in a checkout).
EXTRAS = {
    "ray": ("Ray", "cluster", "`make cluster`"),
    "torch": ("PyTorch", "models", "`make setup`"),
    "transformers": ("transformers", "models", "`make setup`"),
    "accelerate": ("accelerate", "models", "`make setup`"),
    "safetensors": ("safetensors", "models", "`make setup`"),
    "tokenizers": ("tokenizers", "models", "`make setup`"),
    "anywidget": ("anywidget", "timeline", "`make setup`"),
    "ipywidgets": ("ipywidgets", "timeline", "`make setup`"),
    "traitlets": ("traitlets", "timeline", "`make setup`"),
    "fontTools": ("fontTools", "timeline", "`make setup`"),
    "font_source_sans_pro": ("a font", "timeline", "`make setup`"),
    "resvg_py": ("resvg", "timeline", "`make setup`"),
    "nbformat": ("nbformat", "notebooks", "`make setup`"),
    "nbclient": ("nbclient", "notebooks", "`make setup`"),
    "nbconvert": ("nbconvert", "notebooks", "`make setup`"),
    "papermill": ("papermill", "notebooks", "`make setup`"),
    "filelock": ("filelock", "lab", "`make setup`"),
    "jinja2": ("Jinja", "lab", "`make setup`"),
    "mistune": ("mistune", "lab", "`make setup`"),
    "pandas": ("pandas", "lab", "`make setup`"),
    "plotly": ("plotly", "lab", "`make setup`"),
    "rich": ("rich", "lab", "`make setup`"),
    "scipy": ("SciPy", "lab", "`make setup`"),
    "tqdm": ("tqdm", "lab", "`make setup`"),
    "typer": ("typer", "lab", "`make setup`"),
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

    ``error`` says which module; None where nothing is known of it.
    """
    if error.name in OF_PROCESSES:
        return NoProcesses(
            f"{what} needs worker processes, and this Python has no {error.name!r} to "
            'start them with: on Windows use WSL; anywhere, world="virtual" and '
            "speclib.simulate run without them"
        )
    return missing_extra(what, error)


def missing_extra(what: str, error: ModuleNotFoundError) -> MissingExtra | None:
    """The error for ``what`` needs a library that comes with an extra of ours.

    ``error`` says which library could not be imported; None where it is another one::

        speclib.Cluster needs Ray, which is not installed: `make cluster` installs it,
        or, in the checkout, `pip install -e '.[cluster]'`

    """
    library = (error.name or "").split(".")[0]
    if library not in EXTRAS:
        return None
    in_words, extra, command = EXTRAS[library]
    if what.startswith("speclab") and extra == "timeline":
        extra = "lab"  # which has it, and what else the workbench needs
    return MissingExtra(
        f"{what} needs {in_words}, which is not installed: "
        f"{how_to_install(extra, command)}"
    )


def how_to_install(extra: str, command: str = "`make setup`") -> str:
    """What installs an extra of ours: in a checkout a ``command``, elsewhere pip.

    In a checkout it names no project of the package index, which may have another one
    of our name.
    """
    if installed.IS_CHECKOUT:
        in_checkout = f"`pip install -e '.[{extra}]'`"
        return f"{command} installs it, or, in the checkout, {in_checkout}"
    return f"`pip install '{installed.name_on_index()}[{extra}]'` installs it"


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
    where_all_are: str = "",
) -> UnknownName:
    """The error for a ``name`` that is not among the ``known`` ones.

    ``problem`` says what is wrong, as in "unknown method 'perl'". The message then
    lists the known names, suggests the one nearest to ``name`` and ends with
    ``advice``::

        unknown method 'perl'; known: autoregressive, pearl. Did you mean 'pearl'?

    Where there are very many names it tells the nearest, and ``where_all_are``.
    """
    known = list(known)
    all_names = ", ".join(known) or "none"
    are_listed = len(all_names) <= LONGEST_LIST
    if are_listed:
        sentences = [f"{problem}; known: {all_names}"]
    else:
        nearest_few = ", ".join(nearest_names(name, known))
        sentences = [f"{problem}; of {len(known)} known the nearest are: {nearest_few}"]

    nearest = nearest_name(name, known)
    if nearest is not None:
        sentences.append(f"Did you mean {nearest!r}?")
    if where_all_are and not are_listed:
        sentences.append(where_all_are)
    if advice:
        sentences.append(advice)
    return UnknownName(_joined(sentences))


def nearest_name(name: object, known: Iterable[str]) -> str | None:
    """The known name most like ``name``, whatever its case; None if none is like it."""
    like_it = _most_like(name, known, count=1, least_alike=0.6)
    return like_it[0] if like_it else None


def nearest_names(name: object, known: Iterable[str]) -> list[str]:
    """The few known names most like ``name``, the nearest first, however unlike it."""
    return _most_like(name, known, count=NEAREST, least_alike=0.0)


def _most_like(
    name: object, known: Iterable[str], count: int, least_alike: float
) -> list[str]:
    """Known names in the order of their likeness, from 0 to 1; upper case is lower."""
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
