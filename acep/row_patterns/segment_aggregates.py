"""Compute aggregates over segments of rows: of each match, or of each match up to a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column, column_of_values
from acep.functions.aggregates import AGGREGATES, COUNT_DISTINCT, INT_LIMIT, Running, distinct_values
from acep.plan.ordered.row_references import RowAggregate
from acep.plan.schema import Kind
from acep.row_patterns.sorted_rows import order_places, ranks_of

__all__ = ["aggregate_values"]

Ints = npt.NDArray[np.int64]
Valid = npt.NDArray[np.uint8]

_SURE_LIMIT = 2.0**62


def aggregate_values(reference: RowAggregate, columns: list[Column], lows: Ints, highs: Ints) -> Column:
    """Return an aggregate of the values of ``columns`` in each segment ``[low, high)``; nulls are left out.

    Segments of one match begin at the same place, and matches follow one another. A sum of integers beyond 64 bits, and
    one of inf and -inf, is null.
    """
    aggregate = IN_NUMPY.get(reference.function)
    if aggregate is None or reference.is_distinct:
        return _in_python(reference, columns, lows, highs)
    column = columns[0]
    valid = np.ones(len(column), np.uint8) if column.valid is None else column.valid
    counts = _segment_sums(valid.astype(np.int64), lows, highs)
    return aggregate(Segments(column, valid, counts, lows, highs, int(reference.texts[0]) if reference.texts else 0))


@dataclass(frozen=True)
class Segments:
    """The segments ``[low, high)`` of a column, and the ``counts`` of the values in each that are not null. An average
    is of units of ``10**-places``."""

    column: Column
    valid: Valid
    counts: Ints
    lows: Ints
    highs: Ints
    places: int

    @property
    def are_present(self) -> Valid:
        """Return which segments have a value."""
        return (self.counts > 0).astype(np.uint8)


def _count_values(segments: Segments) -> Column:
    return Column(Kind.INT, segments.counts)


def _count_true(segments: Segments) -> Column:
    values = segments.column.values.astype(np.int64) * segments.valid
    return Column(Kind.INT, _segment_sums(values, segments.lows, segments.highs))


def _total(segments: Segments) -> Column:
    if segments.column.kind is Kind.FLOAT:
        return _column_of_doubles(_float_sums(segments), segments)
    return _column_of_totals(_totals(segments), segments.column.kind, segments.are_present)


def _mean(segments: Segments) -> Column:
    if segments.column.kind is Kind.FLOAT:
        return _column_of_doubles(_float_sums(segments) / np.maximum(segments.counts, 1), segments)
    means = _quotients(_totals(segments), segments.counts, segments.places)
    return Column(Kind.FLOAT, means, segments.are_present)


def _minimum(segments: Segments) -> Column:
    return _extreme(segments, is_least=True)


def _maximum(segments: Segments) -> Column:
    return _extreme(segments, is_least=False)


def _extreme(segments: Segments, *, is_least: bool) -> Column:
    column, present = segments.column, segments.are_present
    best = _extremes(column, segments.valid, segments.lows, segments.highs, is_least)
    return Column(column.kind, np.where(present == 0, best.dtype.type(0), best), present, column.texts)


IN_NUMPY: dict[str, Callable[[Segments], Column]] = {
    "count": _count_values,
    "count_if": _count_true,
    "sum": _total,
    "avg": _mean,
    "min": _minimum,
    "bool_and": _minimum,
    "max": _maximum,
    "bool_or": _maximum,
}
"""The aggregates that NumPy computes over all segments at once."""


def _segment_sums(values: Ints, lows: Ints, highs: Ints) -> Ints:
    """Return sums of integers over segments, by differences."""
    totals = np.concatenate([[0], np.cumsum(values)]).astype(np.int64)
    return totals[highs] - totals[lows]


def _float_sums(segments: Segments) -> npt.NDArray[np.float64]:
    """Return the sums of doubles over segments; NaN for those of inf and -inf."""
    values = np.where(segments.valid == 0, 0.0, segments.column.values)
    with np.errstate(invalid="ignore", over="ignore"):
        sums: npt.NDArray[np.float64] = _over_segments(values, segments.lows, segments.highs, np.add, 0.0)
    return sums


def _column_of_doubles(results: npt.NDArray[np.float64], segments: Segments) -> Column:
    """Return results over segments as a column; NaN is null."""
    present = segments.are_present & ~np.isnan(results)
    return Column(Kind.FLOAT, np.where(present == 0, 0.0, results), present)


def _totals(segments: Segments) -> npt.NDArray[Any]:
    """Return the exact sums over segments: integers of NumPy, or of Python if they may be beyond 64 bits."""
    values = np.where(segments.valid == 0, 0, segments.column.values).astype(np.int64)
    if float(np.abs(values.astype(np.float64)).sum()) < _SURE_LIMIT:
        return _segment_sums(values, segments.lows, segments.highs)
    sums_before: npt.NDArray[Any] = np.array([0, *accumulate(values.tolist())], object)
    totals: npt.NDArray[Any] = sums_before[segments.highs] - sums_before[segments.lows]
    return totals


def _quotients(totals: npt.NDArray[Any], counts: Ints, places: int) -> npt.NDArray[np.float64]:
    """Return totals of units of 10**-places divided by counts, each rounded once; 0 for a count of 0."""
    if totals.dtype == np.int64 and not places and np.abs(totals).max(initial=0) <= 2**53:
        return totals / np.maximum(counts, 1)
    divisors = [max(count, 1) * 10**places for count in counts.tolist()]
    quotients = [total / divisor for total, divisor in zip(totals.tolist(), divisors, strict=True)]
    return np.array(quotients, np.float64)


def _column_of_totals(totals: npt.NDArray[Any], kind: Kind, present: Valid) -> Column:
    """Return sums as a column; those beyond 64 bits are null."""
    if totals.dtype == np.int64:
        return Column(kind, totals, present)
    fits = (totals >= -INT_LIMIT) & (totals < INT_LIMIT)
    return Column(kind, np.where(fits, totals, 0).astype(np.int64), present & fits.astype(np.uint8))


def _extremes(column: Column, valid: Valid, lows: Ints, highs: Ints, is_least: bool) -> Any:
    if column.kind is Kind.STRING:
        ranks = ranks_of(column)
        codes = dict(zip(ranks.tolist(), column.values.tolist(), strict=True))
        best = _extremes(Column(Kind.INT, ranks), valid, lows, highs, is_least)
        return np.array([codes.get(rank, 0) for rank in best.tolist()], np.int64)
    if column.kind is Kind.FLOAT:
        neutral: Any = np.inf if is_least else -np.inf
    else:
        neutral = np.int64(2**63 - 1) if is_least else np.int64(-(2**63))
    values = np.where(valid == 0, neutral, column.values)
    return _over_segments(values, lows, highs, np.minimum if is_least else np.maximum, neutral)


def _over_segments(values: Any, lows: Ints, highs: Ints, operation: np.ufunc, neutral: Any) -> Any:
    """Return an operation over each segment; ``neutral`` for an empty one."""
    results = np.full(len(lows), neutral, values.dtype)
    full = np.flatnonzero(highs > lows)
    if not len(full):
        return results
    starts, ends = lows[full], highs[full]
    if np.all(starts[1:] >= ends[:-1]):  # segments that do not overlap: one for each match
        # Each index is followed by the end of its segment, whose own result is thrown away.
        bounds = np.stack([starts, ends], axis=1).ravel()
        padded = np.append(values, neutral)
        results[full] = operation.reduceat(padded, bounds)[::2]
        return results
    groups = np.flatnonzero(np.append(True, starts[1:] != starts[:-1]))
    for begin, end in zip(groups.tolist(), np.append(groups[1:], len(full)).tolist(), strict=True):
        start = int(starts[begin])
        running = operation.accumulate(values[start : int(ends[begin:end].max())])
        results[full[begin:end]] = running[ends[begin:end] - start - 1]
    return results


def _in_python(reference: RowAggregate, columns: list[Column], lows: Ints, highs: Ints) -> Column:
    """Return aggregates that NumPy has no operation for, segment by segment; equal ones in a row are computed once, as
    each row of a match has that of all its rows."""
    is_new = np.append(True, (lows[1:] != lows[:-1]) | (highs[1:] != highs[:-1]))[: len(lows)]
    results = _of_each_segment(reference, columns, lows[is_new], highs[is_new])
    return results.take(np.cumsum(is_new) - 1)


def _of_each_segment(reference: RowAggregate, columns: list[Column], lows: Ints, highs: Ints) -> Column:
    entry = AGGREGATES[reference.function]
    function = entry.of_rows
    assert function is not None
    if reference.order:
        # Each segment becomes rows of its own, in order.
        sizes = highs - lows
        numbers = np.repeat(np.arange(len(sizes)), sizes)
        rows = np.arange(len(numbers)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(lows, sizes)
        rows = rows[order_places(numbers, [column.take(rows) for column in columns[1:]], reference.order)]
        columns, highs = [columns[0].take(rows)], np.cumsum(sizes)
        lows = highs - sizes
    values = [column.to_list() for column in columns]
    if reference.is_distinct and reference.function == "count":
        entry = AGGREGATES[COUNT_DISTINCT]
    if entry.running is not None and not (reference.is_distinct and len(values) > 1):
        begin = partial(entry.running, *reference.texts)
        if reference.is_distinct and entry.name != COUNT_DISTINCT:
            begin = partial(_of_different, begin)
        results = _in_one_pass(begin, values, lows, highs)
    else:
        results = []
        for low, high in zip(lows.tolist(), highs.tolist(), strict=True):
            segment = [column[low:high] for column in values]
            results.append(function(distinct_values(segment[0]) if reference.is_distinct else segment[0],
                                    segment[1:], reference.texts))  # fmt: skip
    kind = {"integer": Kind.INT, "float": Kind.FLOAT, "text": Kind.STRING}.get(entry.gives, columns[0].kind)
    return column_of_values(results, kind)


def _of_different(begin: Callable[[], Running]) -> Running:
    """Return an aggregate so far that takes each value once."""
    add, different = begin(), set[Any]()

    def add_different(value: Any, keys: tuple[Any, ...]) -> Any:
        is_new = value not in different
        different.add(value)
        return add(value if is_new else None, keys)

    return add_different


def _in_one_pass(begin: Callable[[], Running], columns: list[list[Any]], lows: Ints, highs: Ints) -> list[Any]:
    """Return an aggregate of each segment. A segment that begins where the one before begins, and ends no earlier, goes
    on with its values.

    >>> count = AGGREGATES[COUNT_DISTINCT].running
    >>> _in_one_pass(count, [[1, 2, None, 1, 3]], np.array([0, 0, 0, 3]), np.array([1, 3, 4, 5]))
    [1, 2, 2, 2]
    """
    results: list[Any] = []
    add, start, end = begin(), 0, 0
    of_none = add(None, (None,) * len(columns))
    so_far = of_none
    for low, high in zip(lows.tolist(), highs.tolist(), strict=True):
        if low != start or high < end:
            add, start, end, so_far = begin(), low, low, of_none
        for value, *keys in zip(*(column[end:high] for column in columns), strict=True):
            so_far = add(value, tuple(keys))
        end = high
        results.append(so_far)
    return results
