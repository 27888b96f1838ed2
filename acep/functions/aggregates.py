"""Define the aggregates of queries and of MATCH_RECOGNIZE, each in one entry: names, types, nulls, values, engines.

An aggregate that can be written with others has an ``expression``, and needs nothing else: every engine runs it. One
that cannot has ``of_values`` and runs on the reference engine, until ``registers`` and ``completion`` say what the
native core has for it. docs/reference/language.md and docs/reference/sql.md describe the aggregates; a test holds that
they name each.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

__all__ = [
    "AGGREGATES",
    "COUNT_DISTINCT",
    "INT_LIMIT",
    "SCALE",
    "AggregateFunction",
    "Composition",
    "Running",
    "distinct_values",
    "names_in_queries",
    "present_values",
    "synonyms_in_queries",
]

INT_LIMIT = 2**63
COUNT_DISTINCT = "count distinct"
SCALE = -1
"""Stands for the decimals of the column in :attr:`AggregateFunction.completion`."""

Takes: TypeAlias = Literal["anything", "ordered", "number", "condition", "text"]
Gives: TypeAlias = Literal["integer", "float", "condition", "text", "argument", "list"]
Composition: TypeAlias = "str | tuple[str, Composition, Composition]"
"""An expression of aggregates of the same values: the name of one, or (operator, left, right)."""

Running: TypeAlias = "Callable[[Any, tuple[Any, ...]], Any]"


@dataclass(frozen=True)
class AggregateFunction:
    """An aggregate by its ``name``, of values that are ``takes``; its own value is ``gives`` (``"argument"``: of the
    type of the values). Nulls are left out unless it ``keeps_nulls``.

    In queries: ``where`` says whether partial matches have it (``"running"``), complete ones alone (``"matches"``), or
    clauses alone (``None``). ``synonyms`` are other names; with several arguments it is the function ``scalar``.
    ``of_values`` gives its value, of values that are units of 10**-scale. ``needs_float``: decimals are made doubles
    before. ``registers`` are the kinds of registers that hold it in partial matches; of two of them the value is the
    quotient. ``completion`` has operation and operand by which the native core computes it over a complete match, by
    the kind of column: ``"integer"``, ``"float"`` or ``"text"``. ``grows``: 1 if it never falls as events come before
    the first one, -1 if it never rises, else 0.

    In clauses: ``nodes`` are its names among sqlglot's nodes, ``sql_names`` names that sqlglot does not know.
    ``of_rows`` gives its value, of values, columns of keys and constant texts. ``running`` takes the texts, if any, and
    makes a function that takes the value and the keys of one more row, and gives the value of the rows so far. Where it
    does not ``counts_each`` of equal values, DISTINCT makes no difference. ``in_define``: DEFINE may have it.
    ``as_number``: the aggregate of 0 and 1 that DEFINE computes instead. ``search_code``: its number in the native
    search. ``n_arguments``; ``takes_order``: ORDER BY may stand inside.

    ``expression`` writes it with other aggregates; ``clause_expression`` does so in clauses alone, of values whose sum
    is no integer.
    """

    name: str
    takes: Takes
    gives: Gives
    where: Literal["running", "matches"] | None = None
    synonyms: tuple[str, ...] = ()
    scalar: str | None = None
    keeps_nulls: bool = False
    needs_float: bool = False
    of_values: Callable[[list[Any], int], Any] | None = None
    registers: tuple[str, ...] = ()
    completion: Mapping[str, tuple[str, int]] | None = None
    grows: int = 0
    nodes: tuple[str, ...] = ()
    sql_names: tuple[str, ...] = ()
    of_rows: Callable[[list[Any], list[list[Any]], tuple[str, ...]], Any] | None = None
    running: Callable[..., Running] | None = None
    counts_each: bool = True
    in_define: bool = False
    as_number: str | None = None
    search_code: int | None = None
    n_arguments: int = 1
    takes_order: bool = False
    expression: Composition | None = None
    clause_expression: Composition | None = None


def present_values(values: list[Any]) -> list[Any]:
    """Return the values that are not null."""
    return [value for value in values if value is not None]


def distinct_values(values: list[Any]) -> list[Any]:
    """Return the different values that are not null, each at its first place."""
    return [*dict.fromkeys(value for value in values if value is not None)]


# Values in queries: of the values that are not null, in order -------------------------------------


def _add_in_order(values: list[Any]) -> Any:
    """Return the sum from left to right, as the native core adds; null for none, and for inf and -inf together."""
    if not values:
        return None
    total = values[0]
    for value in values[1:]:
        total += value
    return None if total != total else total


def _total(values: list[Any]) -> Any:
    """Return the sum; null for integers beyond 64 bits."""
    total = _add_in_order(values)
    return None if isinstance(total, int) and not -INT_LIMIT <= total < INT_LIMIT else total


def _average(values: list[Any], scale: int) -> Any:
    total = _add_in_order(values)
    return None if total is None else total / (len(values) * 10**scale)


def _deviation(values: list[Any], freedom: int) -> float | None:
    """Return the square root of the sum of squared differences from the mean, divided by their number less ``freedom``.

    It goes twice over the differences from the first value, in doubles, as the native core does.
    """
    divisor = len(values) - freedom
    if divisor <= 0:
        return None
    differences = [float(value - values[0]) for value in values]
    total = squares = 0.0
    for difference in differences:
        total += difference
    mean = total / len(differences)
    for difference in differences:
        squares += (difference - mean) * (difference - mean)
    deviation = math.sqrt(squares / divisor)
    return None if deviation != deviation else deviation  # from infinities; NaN is null


# Values in clauses: of the values of rows, in order, with nulls -----------------------------------


def _row_average(values: list[Any], texts: tuple[str, ...]) -> Any:
    """Return the exact quotient, rounded once, of the sum of units of 10**-places; ``texts`` has the places."""
    return _average(present_values(values), int(texts[0]) if texts else 0)


def _row_variance(values: list[Any], freedom: int) -> float | None:
    import numpy as np  # a query without such an aggregate is parsed without NumPy

    numbers = present_values(values)
    if len(numbers) <= freedom:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        return _unless_nan(float(np.var(np.array(numbers, np.float64), ddof=freedom)))


def _unless_nan(number: float) -> float | None:
    """Return a number, or null for NaN, which comes of infinities."""
    return None if number != number else number


def _row_deviation(values: list[Any], freedom: int) -> float | None:
    variance = _row_variance(values, freedom)
    return None if variance is None else variance**0.5


def _row_median(values: list[Any]) -> float | None:
    import numpy as np

    numbers = present_values(values)
    with np.errstate(invalid="ignore", over="ignore"):
        return _unless_nan(float(np.median(numbers))) if numbers else None


def _value_by_key(values: list[Any], key_columns: list[list[Any]], is_least: bool) -> Any:
    pairs = [(key, -i, value) for i, (value, key) in enumerate(zip(values, key_columns[0], strict=True))
             if key is not None]  # fmt: skip
    if not pairs:
        return None
    best = min(pairs, key=lambda pair: (pair[0], -pair[1])) if is_least else max(pairs, key=lambda pair: pair[:2])
    return best[2]


# Values of the rows of a clause so far ------------------------------------------------------------


def _count_of_different() -> Running:
    different: set[Any] = set()

    def add(value: Any, _keys: tuple[Any, ...]) -> int:
        if value is not None:
            different.add(value)
        return len(different)

    return add


def _first_present() -> Running:
    first: Any = None

    def add(value: Any, _keys: tuple[Any, ...]) -> Any:
        nonlocal first
        first = value if first is None else first
        return first

    return add


def _value_by_key_so_far(is_least: bool) -> Running:
    best: tuple[Any, Any] | None = None

    def add(value: Any, keys: tuple[Any, ...]) -> Any:
        nonlocal best
        key = keys[0]
        if key is not None and (best is None or (key < best[0] if is_least else key > best[0])):
            best = key, value
        return None if best is None else best[1]

    return add


def _total_so_far() -> Running:
    total: Any = None

    def add(value: Any, _keys: tuple[Any, ...]) -> Any:
        nonlocal total
        if value is not None:
            total = value if total is None else total + value
        return None if total is None else _total([total])

    return add


def _average_so_far(places: str = "0") -> Running:
    total: Any = 0
    n_values = 0
    unit = 10 ** int(places)

    def add(value: Any, _keys: tuple[Any, ...]) -> float | None:
        nonlocal total, n_values
        if value is not None:
            total, n_values = total + value, n_values + 1
        return None if n_values == 0 or total != total else total / (n_values * unit)

    return add


def _median_so_far() -> Running:
    numbers: list[float] = []  # in order

    def add(value: Any, _keys: tuple[Any, ...]) -> float | None:
        if value is not None:
            insort(numbers, value)
        if not numbers:
            return None
        middle = len(numbers) // 2
        if len(numbers) % 2:
            return float(numbers[middle])
        return _unless_nan((numbers[middle - 1] + numbers[middle]) / 2)

    return add


_ENTRIES = (
    AggregateFunction(
        "count", "anything", "integer", "running",
        of_values=lambda values, scale: len(values), registers=("nonnull",), grows=1,
        nodes=("Count",), of_rows=lambda values, keys, texts: len(present_values(values)),
        in_define=True, search_code=4,
    ),
    AggregateFunction(
        COUNT_DISTINCT, "anything", "integer", "matches",
        of_values=lambda values, scale: len(set(values)), completion={"integer": ("distinct", 0)}, grows=1,
        running=_count_of_different,
    ),
    AggregateFunction(
        "sum", "number", "argument", "running",
        of_values=lambda values, scale: _total(values), registers=("sum",),
        completion={"integer": ("sum", 0), "float": ("add", 0)},
        nodes=("Sum",), of_rows=lambda values, keys, texts: _total(present_values(values)), in_define=True,
        search_code=5, running=_total_so_far,
    ),
    AggregateFunction(
        "avg", "number", "float", "running", ("average", "mean"),
        of_values=_average, registers=("sum", "nonnull"),
        completion={"integer": ("average", SCALE), "float": ("mean", SCALE)},
        nodes=("Avg",), in_define=True, clause_expression=("/", "sum", "count"),
        of_rows=lambda values, keys, texts: _row_average(values, texts), search_code=11,
        running=_average_so_far,
    ),
    AggregateFunction(
        "min", "ordered", "argument", "running", scalar="least", counts_each=False,
        of_values=lambda values, scale: min(values, default=None), registers=("min",), grows=-1,
        completion={"integer": ("minimum", 0), "float": ("minimum", 1), "text": ("minimum", 2)},
        nodes=("Min",), of_rows=lambda values, keys, texts: min(present_values(values), default=None),
        in_define=True, search_code=6,
    ),
    AggregateFunction(
        "max", "ordered", "argument", "running", scalar="greatest", counts_each=False,
        of_values=lambda values, scale: max(values, default=None), registers=("max",), grows=1,
        completion={"integer": ("maximum", 0), "float": ("maximum", 1), "text": ("maximum", 2)},
        nodes=("Max",), of_rows=lambda values, keys, texts: max(present_values(values), default=None),
        in_define=True, search_code=7,
    ),
    AggregateFunction(
        "first", "anything", "argument", "running", keeps_nulls=True,
        of_values=lambda values, scale: values[0] if values else None, registers=("nth",),
        completion={"integer": ("nth", 1)},
    ),
    AggregateFunction(
        "last", "anything", "argument", "running", keeps_nulls=True,
        of_values=lambda values, scale: values[-1] if values else None, registers=("last",),
        completion={"integer": ("last", 0)},
    ),
    AggregateFunction(
        "stddev", "number", "float", "matches", ("stddev_samp",), needs_float=True,
        of_values=lambda values, scale: _deviation(values, 1),
        completion={"integer": ("spread", 0), "float": ("spread", 2)},
        nodes=("Stddev", "StddevSamp"), of_rows=lambda values, keys, texts: _row_deviation(values, 1),
    ),
    AggregateFunction(
        "stddev_pop", "number", "float", "matches", needs_float=True,
        of_values=lambda values, scale: _deviation(values, 0),
        completion={"integer": ("spread", 1), "float": ("spread", 3)},
        nodes=("StddevPop",), of_rows=lambda values, keys, texts: _row_deviation(values, 0),
    ),
    AggregateFunction(
        "variance", "number", "float", needs_float=True,
        nodes=("Variance",), of_rows=lambda values, keys, texts: _row_variance(values, 1),
    ),
    AggregateFunction(
        "variance_pop", "number", "float", needs_float=True,
        nodes=("VariancePop",), of_rows=lambda values, keys, texts: _row_variance(values, 0),
    ),
    AggregateFunction(
        "median", "number", "float", needs_float=True,
        nodes=("Median",), of_rows=lambda values, keys, texts: _row_median(values),
        running=_median_so_far,
    ),
    AggregateFunction(
        "any_value", "ordered", "argument", nodes=("AnyValue",), sql_names=("ARBITRARY",), in_define=True,
        of_rows=lambda values, keys, texts: next(iter(present_values(values)), None),
        running=_first_present, counts_each=False,
    ),
    AggregateFunction(
        "max_by", "ordered", "argument", nodes=("ArgMax",), n_arguments=2, in_define=True,
        of_rows=lambda values, keys, texts: _value_by_key(values, keys, False),
        running=lambda: _value_by_key_so_far(False), counts_each=False,
    ),
    AggregateFunction(
        "min_by", "ordered", "argument", nodes=("ArgMin",), n_arguments=2, in_define=True,
        of_rows=lambda values, keys, texts: _value_by_key(values, keys, True),
        running=lambda: _value_by_key_so_far(True), counts_each=False,
    ),
    AggregateFunction(
        "string_agg", "text", "text", nodes=("GroupConcat",), sql_names=("LISTAGG",), in_define=True, takes_order=True,
        of_rows=lambda values, keys, texts: texts[0].join(present_values(values)) if present_values(values) else None,
    ),
    AggregateFunction("array_agg", "anything", "list", nodes=("ArrayAgg", "List"), takes_order=True),
    AggregateFunction("count_if", "condition", "integer", nodes=("CountIf",), as_number="count"),
    AggregateFunction("bool_or", "condition", "condition", nodes=("LogicalOr",), as_number="max", counts_each=False),
    AggregateFunction(
        "bool_and", "condition", "condition", nodes=("LogicalAnd",), sql_names=("EVERY",), as_number="min",
        counts_each=False,
    ),
)  # fmt: skip

AGGREGATES: dict[str, AggregateFunction] = {aggregate.name: aggregate for aggregate in _ENTRIES}
"""The aggregates by name."""


def names_in_queries() -> tuple[str, ...]:
    """Return the names that a query may call.

    >>> names_in_queries()[:4]
    ('count', 'sum', 'avg', 'min')
    """
    return tuple(name for name, aggregate in AGGREGATES.items() if aggregate.where and name != COUNT_DISTINCT)


def synonyms_in_queries() -> dict[str, str]:
    """Return the other names of aggregates in queries, each with the name that it stands for.

    >>> synonyms_in_queries()["mean"]
    'avg'
    """
    return {synonym: aggregate.name for aggregate in _ENTRIES if aggregate.where for synonym in aggregate.synonyms}
