"""Define what an entry says of a scalar function: names, types, nulls, values, engines, SQL, and an example."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

__all__ = ["MOST_ARGUMENTS", "Example", "Fixed", "Formula", "Gives", "ScalarFunction", "Takes"]

MOST_ARGUMENTS = 64
"""The greatest number of arguments of a function that takes any number of them."""

Takes: TypeAlias = Literal["text", "integer", "number", "length", "time", "condition", "value"]
Gives: TypeAlias = Literal["text", "integer", "float", "condition", "argument"]
Formula: TypeAlias = "str | int | float | tuple[Any, ...]"
"""An expression of functions: the name of an argument, a number, or (operator or name of a function, formulas...)."""


@dataclass(frozen=True)
class Example:
    """A ``call`` with attributes of ``a``, the ``values`` of these by name, and its own value ``gives``."""

    call: str
    values: Mapping[str, Any]
    gives: Any


@dataclass(frozen=True)
class Fixed:
    """An argument that is a constant of the query: what it is in ``words``, its ``type``, and its ``check``.

    ``check`` takes the values of all constants of the call, and raises :class:`QueryError` without a place. SQL takes
    other values as well, and checks constants if ``is_checked_in_sql``; where the function fails the value is null.
    """

    words: str
    type: type
    check: Callable[..., None]
    is_checked_in_sql: bool = True


@dataclass(frozen=True)
class ScalarFunction:
    """A scalar function by its ``name``. A blank in it keeps it from queries: SQL alone has it then.

    ``takes`` has the kinds of the arguments, of which those from ``required`` on may be missing; with ``repeats`` the
    last one comes up to :data:`MOST_ARGUMENTS` times. ``"length"`` is a number or a duration, and ``"value"`` anything,
    of one kind with the other arguments. ``gives`` is the kind of the result; ``"argument"``: that of the first one.

    ``sentence`` says in the table of docs/reference/language.md what it is, and ``example`` shows it.

    ``of_values`` gives the value; ``ArithmeticError`` and ``ValueError`` are null. The value is null if an argument is,
    unless it ``takes_nulls``. A time comes in ticks, with the nanoseconds of a tick behind it. ``of_texts`` gives the
    values of many texts at once, where all other arguments are constants. ``fixed`` are the arguments, by place, that
    are constants. ``of_one_attribute``: it is slow unless it is computed once for each distinct text of an attribute,
    and a query has it in no other way.

    ``formula`` writes it with other functions, over ``arguments``, and then it needs nothing else: all engines run it.

    ``operations`` are those of block programs (:class:`acep.plan.lower.bytecode_words.Op`) by the kind of the first
    argument, ``"integer"`` or ``"float"``. ``""`` is the argument itself; without ``"integer"`` integers become
    floats; ``"pair"`` is the choice between two values. ``filling`` stands for a last argument that is missing, and
    ``part`` is the number of a part of times. A function without operations is computed in Python where it depends on
    one attribute of one event, and on the reference engine elsewhere.

    ``of_decimals``: of a decimal it is computed in its ``"units"``, by an exact function of the ``"places"``, or with
    ``"digits"`` that count from the last place; else the decimal is made a double.

    ``synonyms`` are other names in queries. In SQL, ``nodes`` are its names among sqlglot's nodes, each with the
    parts that are the arguments (``*`` before a list of them), and ``sql_names`` are names that sqlglot knows
    otherwise than we do, so that it has to leave them alone.
    """

    name: str
    takes: tuple[Takes, ...]
    gives: Gives
    sentence: str
    example: Example
    of_values: Callable[..., Any] | None = None
    required: int | None = None
    repeats: bool = False
    takes_nulls: bool = False
    of_texts: Callable[..., Sequence[Any]] | None = None
    fixed: Mapping[int, Fixed] = field(default_factory=lambda: MappingProxyType({}))
    of_one_attribute: bool = False
    formula: Formula | None = None
    arguments: tuple[str, ...] = ()
    operations: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    filling: int | None = None
    part: int | None = None
    of_decimals: Literal["units", "places", "digits"] | None = None
    synonyms: tuple[str, ...] = ()
    nodes: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    sql_names: tuple[str, ...] = ()

    @property
    def counts(self) -> tuple[int, int]:
        """Return the least and the greatest number of arguments."""
        n_required = len(self.takes) if self.required is None else self.required
        return n_required, MOST_ARGUMENTS if self.repeats else len(self.takes)

    @property
    def is_choice(self) -> bool:
        """Return whether it gives one of its arguments, which may be of any kind."""
        return self.takes[0] == "value" and self.gives == "argument"

    @property
    def is_in_queries(self) -> bool:
        """Return whether a query may call it."""
        return " " not in self.name

    def kind_at(self, place: int) -> Takes:
        """Return the kind of the argument at a place, from 0."""
        return self.takes[min(place, len(self.takes) - 1)]
