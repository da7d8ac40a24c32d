"""The arguments of public functions, checked at the door.

``checked`` lets pydantic test what a function is called with and turns its findings
into one line: the argument, its value, and what to give instead. Pydantic is imported
when a checked function is called for the first time, so that ``import speclib`` stays
light.

    @checked
    def simulate(method: str, *, tokens: Count = 32, alpha: Share = 0.9): ...

    simulate("pearl", tokens="64")
    # BadValue: tokens is '64': give a whole number of 1 or more

Only values are tested, never changed. Knows nothing of what they are for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from inspect import Parameter, signature
from math import inf, isfinite
from numbers import Integral, Real
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeAlias, TypeVar

from speclib.errors import BadCall, BadValue, SpeclibError, unknown_name

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")

LONGEST_VALUE = 60  # characters of a wrong value that a message shows


# -- kinds of number -------------------------------------------------------------------
@dataclass(frozen=True)
class Whole:
    """A whole number from ``least`` to ``most``: Python's or numpy's, but no bool."""

    least: int | None = None
    most: int | None = None

    def allows(self, value: object) -> bool:
        """Whether ``value`` is such a number."""
        if isinstance(value, bool) or not isinstance(value, Integral):
            return False
        number = int(value)
        if self.least is not None and number < self.least:
            return False
        return self.most is None or number <= self.most

    @property
    def advice(self) -> str:
        """What to give, in words."""
        if self.least is not None and self.most is not None:
            return f"give a whole number from {self.least:,} to {self.most:,}"
        if self.least is not None:
            return f"give a whole number of {self.least} or more"
        return "give a whole number"

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return _schema_of(self)


@dataclass(frozen=True)
class Number:
    """A number from ``least``, or above ``above``, to ``most``.

    It must be finite, unless ``finite`` is false; NaN is in no range.
    """

    least: float | None = None
    above: float | None = None
    most: float | None = None
    finite: bool = True

    def allows(self, value: object) -> bool:
        """Whether ``value`` is such a number."""
        if isinstance(value, bool) or not isinstance(value, Real):
            return False
        try:
            number = float(value)
        except OverflowError:  # a whole number of hundreds of digits
            number = inf
        if self.finite and not isfinite(number):
            return False
        if self.least is not None and not number >= self.least:
            return False
        if self.above is not None and not number > self.above:
            return False
        return self.most is None or number <= self.most

    @property
    def advice(self) -> str:
        """What to give, in words."""
        upper = "" if self.most is None else f", up to {in_words(self.most)}"
        if self.least is not None:
            return f"give {self.least:g} or more{upper}"
        if self.above is not None:
            return f"give a number above {self.above:g}{upper}"
        return f"give a number{upper}"

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return _schema_of(self)


@dataclass(frozen=True)
class Numbers:
    """A collection of numbers, finite or not."""

    def allows(self, value: object) -> bool:
        """Whether ``value`` is such a collection."""
        if isinstance(value, str | bytes | Mapping) or not isinstance(
            value, Collection
        ):
            return False
        return all(Number(finite=False).allows(entry) for entry in value)

    advice = "give numbers"

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return _schema_of(self)


@dataclass(frozen=True)
class Shares:
    """A share, or a sequence of some."""

    def allows(self, value: object) -> bool:
        """Whether ``value`` is one, or has at least one and nothing else."""
        one = Number(least=0, most=1)
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            return one.allows(value)
        return len(value) > 0 and all(one.allows(entry) for entry in value)

    advice = "give 0 or more, up to 1; or one such number or more, in a list"

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return _schema_of(self)


def in_words(number: float) -> str:
    """A limit as people write it: 1,000,000 and not 1e+06."""
    return f"{int(number):,}" if number == int(number) else f"{number:g}"


def _schema_of(kind: Whole | Number | Numbers | Shares) -> Any:
    """What pydantic asks of an annotation: here, a function that tests the value."""
    from pydantic_core import core_schema

    def test(value: object) -> object:
        if not kind.allows(value):
            raise ValueError(kind.advice)
        return value

    return core_schema.no_info_plain_validator_function(test)


Count: TypeAlias = Annotated[int, Whole(least=1)]
Seed: TypeAlias = Annotated[int, Whole(least=0)]
Share: TypeAlias = Annotated[float, Number(least=0, most=1)]
ShareOrShares: TypeAlias = Annotated[float | Sequence[float], Shares()]
Seconds: TypeAlias = Annotated[float, Number(above=0)]
# How long to wait for another process: no message comes sooner.
Patience: TypeAlias = Annotated[float, Number(least=0.001)]
# c = t_target / t_draft: far beyond what any two models have, on either side.
Ratio: TypeAlias = Annotated[float, Number(least=0.0001, most=1_000_000)]
AnyNumber: TypeAlias = Annotated[float, Number(finite=False)]
AnyNumbers: TypeAlias = Annotated[Sequence[float], Numbers()]


# -- the door --------------------------------------------------------------------------
def checked(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Tests a function's arguments by their annotations before it runs.

    Raises BadValue for a value that its annotation excludes, and BadCall for an
    argument that is missing or that the function does not have.
    """

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        _test(function, args, kwargs)
        return function(*args, **kwargs)

    return call


def _test(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raises what is wrong with a call of ``function``."""
    from pydantic import ValidationError

    try:
        _validator(function)(*args, **kwargs)
    except ValidationError as error:
        raise one_line(error, function) from None


@cache
def _validator(function: Callable[..., Any]) -> Callable[..., None]:
    """A function with the same arguments that only validates them, strictly."""
    from pydantic import ConfigDict, validate_call

    @wraps(function)
    def nothing(*args: Any, **kwargs: Any) -> None:
        """Has nothing to do once its arguments are valid."""

    return validate_call(config=ConfigDict(strict=True, arbitrary_types_allowed=True))(
        nothing
    )


# -- what pydantic finds, in one line --------------------------------------------------
CALL_PROBLEMS = {
    "missing_argument": "lacks the argument",
    "missing_keyword_only_argument": "lacks the argument",
    "missing_positional_only_argument": "lacks the argument",
    "unexpected_keyword_argument": "has no argument",
    "unexpected_positional_argument": "takes fewer arguments without a name",
    "multiple_argument_values": "was given twice the argument",
}
ADVICE = {
    "bool_type": "give True or False",
    "callable_type": "give a function",
    "dict_type": "give a dict",
    "dataclass_type": "give a {class_name}",
    "dataclass_exact_type": "give a {class_name}",
    "int_type": "give a whole number",
    "is_instance_of": "give a {class}",
    "mapping_type": "give a dict",
    "model_type": "give a {class_name}",
    "string_type": "give a text",
}


def one_line(error: ValidationError, function: Callable[..., Any]) -> SpeclibError:
    """The error of a wrong call: BadCall if its arguments do not fit, else BadValue."""
    by_argument: dict[str, list[ErrorDetails]] = {}
    for detail in error.errors():
        if detail["type"] in CALL_PROBLEMS:
            return BadCall(_call_problem(detail, function))
        name = _argument_name(detail["loc"][0], function)
        by_argument.setdefault(name, []).append(detail)

    problems = [describe(name, details) for name, details in by_argument.items()]
    return BadValue("; ".join(problems))


def _argument_name(given: int | str, function: Callable[..., Any]) -> str:
    """The name of an argument; pydantic counts those that were given without one."""
    if isinstance(given, str):
        return given
    names: list[str] = []
    for name, parameter in signature(function).parameters.items():
        if parameter.kind is Parameter.VAR_POSITIONAL:
            return name if given >= len(names) else names[given]
        names.append(name)
    return names[min(given, len(names) - 1)]


def _call_problem(detail: ErrorDetails, function: Callable[..., Any]) -> str:
    """What is wrong with the arguments themselves, as in "f() has no argument 'x'"."""
    called = function.__qualname__.removesuffix(".__init__")
    problem = f"{called}() {CALL_PROBLEMS[detail['type']]}"
    if detail["type"] == "unexpected_positional_argument":
        return f"{problem}: {shown(detail['input'])}"

    name = detail["loc"][0]
    known = [name for name in signature(function).parameters if name != "self"]
    if detail["type"] != "unexpected_keyword_argument":
        return f"{problem} {name!r}"
    return str(unknown_name(f"{problem} {name!r}", name, known))


def describe(name: str, details: list[ErrorDetails]) -> str:
    """What is wrong with one argument: its value, and what to give.

    Several details are those of the alternatives that it may be, of which it is none.
    """
    first = details[0]
    if len(details) == 1:
        inside = "".join(f"[{part!r}]" for part in first["loc"][1:])
        return f"{name}{inside} is {shown(first['input'])}: {_advice(first)}"
    kinds = dict.fromkeys(_advice(detail).removeprefix("give ") for detail in details)
    return f"{name} is {shown(first['input'])}: give {', or '.join(kinds)}"


def problems_in(error: ValidationError, model: type[BaseModel]) -> str:
    """What is wrong with the fields of a pydantic ``model``, in one line."""
    return "; ".join(_field_problem(detail, model) for detail in error.errors())


def _field_problem(detail: ErrorDetails, model: type[BaseModel]) -> str:
    *path, name = detail["loc"] or ("",)
    where = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        known = _fields_at(model, path)
        return str(unknown_name(f"unknown key {where!r}", name, known))
    if detail["type"] == "missing":
        return f"the key {where!r} is missing"
    if isinstance(detail["input"], dict) and detail["type"] == "value_error":
        # Fields that do not go together; the message names them.
        return f"{where}: {_advice(detail)}" if where else _advice(detail)
    return f"{where} is {shown(detail['input'])}: {_advice(detail)}"


def _fields_at(model: type[BaseModel], path: list[int | str]) -> list[str]:
    """The fields of ``model``, or of the model that lies at ``path`` in it."""
    for name in path:
        inner: Any = model.model_fields[str(name)].annotation
        model = inner
    return list(model.model_fields)


def _advice(detail: ErrorDetails) -> str:
    if detail["type"] in ADVICE:
        return ADVICE[detail["type"]].format_map(detail.get("ctx", {}))
    advice = detail["msg"].removeprefix("Value error, ")
    return advice.replace("Input should be ", "give ")


def shown(value: object) -> str:
    """A value as Python writes it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."
