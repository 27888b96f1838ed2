"""Find the events around a match in a table: those of its key, and the rows that it binds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep.errors import DataError
from acep.events.fields import fields_of, named_column
from acep.matches.matches import Match
from acep.plots.time_axis import Floats, Ints, moment, moments

__all__ = ["Bools", "Series", "is_numeric", "of_key", "series_of", "surroundings"]

Bools = npt.NDArray[np.bool_]

GREATEST = 1e300  # beyond, differences of two values would overflow


@dataclass(frozen=True)
class Series:
    """Events around a match: their ``times`` (see :func:`acep.plots.time_axis.moments`; ``calendar`` and ``zone`` are
    about these), ``values`` (NaN: none), which of them are ``usable`` for the line, and the rows that are bound to each
    variable."""

    calendar: bool
    zone: bool
    times: Ints
    values: Floats
    usable: Bools
    rows: dict[str, Ints]


def series_of(table: pa.Table, match: Match, value: str, *, ts: str, id: str | None, usable: Bools) -> Series:
    """Return the events of a table around a match. Raises as :func:`match_over_series` does."""
    rows, values = _bound_rows(table, match, id), _numbers(table, value)
    calendar, times = moments(ts, named_column(table, ts))
    _same_events(match, rows, times, calendar=calendar)
    bound_rows = np.concatenate([*rows.values(), np.empty(0, np.int64)])
    if not usable[bound_rows].all():
        hint = "give the events that were matched, in the same order or with id="
        raise DataError("the bound events do not have the key of the match", hint=hint, code="option_invalid")
    zone = getattr(named_column(table, ts).type, "tz", None) is not None
    return Series(calendar, zone, times, values, usable, rows)


def surroundings(match: Match, context: float) -> tuple[int, int]:
    """Return the times between which events are shown; those of a match that takes no time are its own.

    >>> surroundings(Match({}, 10, 20, 0, {"a": (0,)}, 20), 0.5)
    (5, 25)
    """
    first, last = moment(match.start)[1], moment(match.end)[1]
    free = round(min(context, 1e6) * (last - first))
    return max(first - free, -(2**63)), min(last + free, 2**63 - 1)


def is_numeric(dtype: pa.DataType) -> bool:
    """Return whether a column of this type can be drawn as a line.

    >>> is_numeric(pa.float32()), is_numeric(pa.bool_())
    (True, False)
    """
    return bool(pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype))


def of_key(table: pa.Table, key: Mapping[str, Any]) -> Bools:
    """Return which rows have the values of a key. Raises :class:`DataError` if a column is missing or does not fit."""
    has_key = np.ones(table.num_rows, bool)
    for name, value in key.items():
        column = named_column(table, name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_string_view(column.type):  # which older versions of Arrow do not compare
            column = column.cast(pa.large_string())
        try:
            scalar = pa.scalar(value, column.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise DataError(
                f"column `{name}` is {column.type}, and the key of the match is {value!r}", code="data_type"
            ) from None
        has_key &= pc.fill_null(pc.equal(column, scalar), False).to_numpy()
    return has_key


def _numbers(table: pa.Table, name: str) -> Floats:
    """Return the values of a column as floats, NaN for null and for what no axis can have."""
    column = named_column(table, name)
    if not is_numeric(column.type):
        numeric = [column_name for column_name, dtype in fields_of(table.schema).items() if is_numeric(dtype)]
        hint = f"such as {', '.join(numeric[:3])}" if numeric else None
        raise DataError(
            f"column `{name}` is {column.type}, and a column of numbers is drawn", hint=hint, code="data_type"
        )
    values: Floats = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
    values[np.abs(values) > GREATEST] = np.nan
    return values


@dataclass(frozen=True)
class _Rows:
    """How rows are found by the ids of events: by the column of ids, or by their number."""

    ids: pa.ChunkedArray | None
    size: int

    def row_numbers(self, ids: tuple[Any, ...]) -> Ints:
        if self.ids is None:
            is_valid = all(isinstance(event_id, int) and 0 <= event_id < self.size for event_id in ids)
            missing = None if is_valid else next(o for o in ids if not isinstance(o, int) or not 0 <= o < self.size)
            rows = np.array(ids if is_valid else [], np.int64)
        else:
            try:
                positions = pc.index_in(pa.array(ids, self.ids.type), value_set=self.ids)
            except (pa.ArrowException, TypeError, OverflowError):
                raise DataError(
                    f"the ids of the events are {self.ids.type}, and the match binds {ids[0]!r}", code="option_invalid"
                ) from None
            missing = ids[positions.to_pylist().index(None)] if positions.null_count else None
            rows = positions.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        if missing is not None:
            hint = "give the events that were matched, and the id= that was given to acep.match"
            raise DataError(
                f"the match binds the event {missing!r}, which is not among the events",
                hint=hint,
                code="option_invalid",
            )
        return rows


def _bound_rows(table: pa.Table, match: Match, id: str | None) -> dict[str, Ints]:
    ids = None if id is None else named_column(table, id)
    if ids is not None and pa.types.is_dictionary(ids.type):
        ids = ids.cast(ids.type.value_type)
    rows = _Rows(ids, table.num_rows)
    return {variable: rows.row_numbers(ids_bound) for variable, ids_bound in match.bindings.items() if ids_bound}


def _same_events(match: Match, rows: dict[str, Ints], times: Ints, *, calendar: bool) -> None:
    """Raise :class:`DataError` if the times of the first and the last bound event are not those of the match."""
    (is_calendar, start), (_, end) = moment(match.start), moment(match.end)
    bound = times[np.concatenate([*rows.values(), np.empty(0, np.int64)])]
    if is_calendar is not calendar or not len(bound) or (int(bound.min()), int(bound.max())) != (start, end):
        hint = "give the events that were matched, in the same order or with id=, and the same ts="
        raise DataError("the times of the bound events are not those of the match", hint=hint, code="option_invalid")
