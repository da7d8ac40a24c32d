"""Checks the arguments of public functions.

``checked`` has pydantic validate a function's arguments and turns its findings into
one line: the argument, its value, and what to give instead. Pydantic is imported on
first use, so that ``import speclib`` stays light.

    @checked
    def simulate(method: str, *, tokens: Count = 32, alpha: Share = 0.9): ...

    simulate("pearl", tokens="64")
    # BadValue: tokens is '64': give a whole number of 1 or more

Values are tested but never changed. This module does not know what they are for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from inspect import Parameter, signature
from numbers import Integral, Real
from sys import float_info
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    ParamSpec,
    TypeAlias,
    TypeVar,
)

from speclib.errors import BadCall, BadValue, unknown_name

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")

LONGEST_VALUE = 60  # characters of a wrong value that a message shows
LARGEST = float_info.max  # the largest finite number


# -- kinds of number -------------------------------------------------------------------
@dataclass(frozen=True)
class Number:
    """A range of numbers: from ``least``, or above ``above``, up to ``most``.

    It accepts Python's and numpy's numbers, but not bools. NaN is in no range.
    """

    least: float = -LARGEST
    most: float = LARGEST
    above: float | None = None

    kind: ClassVar[Any] = Real
    in_words = "a number"

    def allows(self, value: Any) -> bool:
        """Whether ``value`` is a number in this range."""
        if isinstance(value, bool) or not isinstance(value, self.kind):
            return False
        is_above = self.above is None or value > self.above
        return bool(is_above and self.least <= value <= self.most)

    @property
    def advice(self) -> str:
        """What the caller should give instead, in words."""
        words = f"give {self.in_words}"
        if self.above is not None:
            words += f" above {self.above:,}"
        elif self.least != -LARGEST:
            words += f" of {self.least:,} or more"
        return words if self.most == LARGEST else f"{words}, up to {self.most:,}"

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Pydantic's hook for an annotation: here, a test of the value."""
        from pydantic_core import core_schema

        def test(value: object) -> object:
            if not self.allows(value):
                raise ValueError(self.advice)
            return value

        return core_schema.no_info_plain_validator_function(test)


@dataclass(frozen=True)
class Whole(Number):
    """A whole number."""

    kind: ClassVar[Any] = Integral
    in_words = "a whole number"


@dataclass(frozen=True)
class AnyOfThem(Number):
    """Any number, finite or not."""

    def allows(self, value: Any) -> bool:
        """Whether ``value`` is a number."""
        return isinstance(value, Real) and not isinstance(value, bool)


Count: TypeAlias = Annotated[int, Whole(least=1)]
Seed: TypeAlias = Annotated[int, Whole(least=0)]
Share: TypeAlias = Annotated[float, Number(least=0, most=1)]
Seconds: TypeAlias = Annotated[float, Number(above=0)]
# How long to wait for another process, in seconds; at least the time of a message.
Patience: TypeAlias = Annotated[float, Number(least=0.001)]
# c = t_target / t_draft; the range is far wider than any two real models need.
Ratio: TypeAlias = Annotated[float, Number(least=0.0001, most=1_000_000)]
AnyNumber: TypeAlias = Annotated[float, AnyOfThem()]


# -- checking a call -------------------------------------------------------------------
def checked(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Checks a function's arguments against their annotations before it runs.

    Raises BadValue for a value that its annotation does not allow, and BadCall for a
    missing or unknown argument.
    """

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        _test(function, args, kwargs)
        return function(*args, **kwargs)

    return call


def _test(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raises an error if ``function`` must not be called with these arguments."""
    from pydantic import ValidationError

    called = f"{function.__qualname__.removesuffix('.__init__')}()"
    parameters = signature(function).parameters
    takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values())
    for name in kwargs:
        if name not in parameters and not takes_any:
            known = [name for name in parameters if name != "self"]
            raise BadCall(
                str(unknown_name(f"{called} has no argument {name!r}", name, known))
            )
    try:
        signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise BadCall(f"{called}: {error}") from None

    try:
        _validator(function)(*args, **kwargs)
    except ValidationError as error:
        by_argument: dict[str, list[ErrorDetails]] = {}
        for detail in error.errors():
            place = detail["loc"][0]  # pydantic numbers positional arguments
            name = place if isinstance(place, str) else list(parameters)[place]
            by_argument.setdefault(name, []).append(detail)
        problems = [_problem(name, details) for name, details in by_argument.items()]
        raise BadValue("; ".join(problems)) from None


@cache
def _validator(function: Callable[..., Any]) -> Callable[..., None]:
    """A function that takes the same arguments and only validates them, strictly."""
    from pydantic import ConfigDict, validate_call

    @wraps(function)
    def nothing(*args: Any, **kwargs: Any) -> None:
        """Does nothing: pydantic has validated the arguments by then."""

    return validate_call(config=ConfigDict(strict=True, arbitrary_types_allowed=True))(
        nothing
    )


# -- what pydantic finds, in one line --------------------------------------------------
def _problem(name: str, details: list[ErrorDetails]) -> str:
    """Says what is wrong with one argument: its value, and what to give instead.

    There are several ``details`` if the argument may be of several types.
    """
    first = details[0]
    inside = ""
    if len(details) == 1:
        inside = "".join(f"[{part!r}]" for part in first["loc"][1:])
    kinds = dict.fromkeys(_advice(detail).removeprefix("give ") for detail in details)
    return f"{name}{inside} is {shown(first['input'])}: give {', or '.join(kinds)}"


def problems_in(error: ValidationError, model: type[BaseModel]) -> str:
    """Says what is wrong with the fields of a pydantic ``model``, in one line."""
    return "; ".join(_field_problem(detail, model) for detail in error.errors())


def _field_problem(detail: ErrorDetails, model: type[BaseModel]) -> str:
    *path, name = detail["loc"] or ("",)
    where = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        for part in path:
            inner: Any = model.model_fields[str(part)].annotation
            model = inner
        return str(unknown_name(f"unknown key {where!r}", name, model.model_fields))
    if detail["type"] == "missing":
        return f"the key {where!r} is missing"
    if isinstance(detail["input"], dict) and detail["type"] == "value_error":
        # The fields contradict each other; the message names them.
        return f"{where}: {_advice(detail)}" if where else _advice(detail)
    return f"{where} is {shown(detail['input'])}: {_advice(detail)}"


# Pydantic's words for a type, and ours.
PLAIN_WORDS = {
    "a valid boolean": "True or False",
    "a valid string": "a text",
    "callable": "a function",
    "a valid dictionary or instance of": "a",
    "an instance of": "a",
}


def _advice(detail: ErrorDetails) -> str:
    words = detail["msg"].removeprefix("Value error, ")
    for pydantics, plain in PLAIN_WORDS.items():
        words = words.replace(f"Input should be {pydantics}", f"give {plain}")
    return words.replace("Input should be ", "give ")


def shown(value: object) -> str:
    """The value's ``repr``, cut if it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."
