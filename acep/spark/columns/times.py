"""Convert times on Spark: the event time column of the watermark, its clock in ticks, and the end of a stream.

A watermark needs a timestamp. A timestamp column is used as it is; dates and timestamps without zone are read as UTC;
an integer of known unit counts from 1970; an integer of unknown unit is treated as milliseconds since 1970.
"""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from acep.errors import DataError
from acep.events.tables import InputSchema
from acep.spark.columns.fields import quote_name
from acep.streaming.job import Job
from acep.streaming.punctuation_rows import PUNCTUATION
from acep.streaming.times import END_MS

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

__all__ = [
    "DELAY_KEY",
    "end_column",
    "end_of_stream",
    "event_time",
    "first_end_tick",
    "is_punctuation",
    "latest_tick",
    "step_of",
    "ticks_of_row",
    "time_at_tick",
]

# Spark marks an event time column by this key in the column's metadata.
DELAY_KEY = "spark.watermarkDelayMs"

END = dt.datetime(9999, 12, 31)
# For integers of unknown unit: Spark's timestamps reach to 9.2e15 ms.
FAR_MS = 9 * 10**15
WIDEST = 4 * 10**15

DAY_NS = 86_400 * 10**9
INTEGERS = {"byte": 8, "short": 16, "integer": 32, "long": 64}


def _last_integer(column_type: DataType) -> int:
    return int(2 ** (INTEGERS[column_type.typeName()] - 1) - 1)


def first_end_tick(column_type: DataType, schema: InputSchema) -> int:
    """Return the first tick that marks the end of a stream: 9999-12-31, or the greatest integer of the type."""
    if column_type.typeName() in INTEGERS:
        return _last_integer(column_type)
    assert schema.tick_ns is not None
    return int(END_MS * 10**6 / schema.tick_ns)


def end_of_stream(column_type: DataType) -> Any:
    """Return the ``ts`` of the row that ends a stream, for a column of this type. Raises :class:`DataError` for a type
    without times."""
    name = column_type.typeName()
    if name in INTEGERS:
        return _last_integer(column_type)
    if name == "date":
        return END.date()
    if name not in ("timestamp", "timestamp_ntz"):
        raise DataError(
            f"a stream cannot end in a column of type {column_type.simpleString()}",
            hint="name the time column: ts=",
            code="option_invalid",
        )
    return END if name == "timestamp_ntz" else END.replace(tzinfo=dt.UTC)


def end_column(column_type: DataType) -> Column:
    """Return the ``ts`` of the row that ends a stream as a column, independent of the session's time zone."""
    from pyspark.sql import functions as sf

    end = end_of_stream(column_type)
    return sf.lit(str(end) if column_type.typeName() == "timestamp_ntz" else end).cast(column_type)


def step_of(column_type: DataType, schema: InputSchema) -> int:
    """Return how many ticks there are from one value of a time column to the next: a day for dates.

    >>> from pyspark.sql.types import DateType
    >>> step_of(DateType(), InputSchema((), tick_ns=Fraction(10**9)))
    86400
    """
    if column_type.typeName() != "date":
        return 1
    assert schema.tick_ns is not None
    return int(DAY_NS / schema.tick_ns)


def time_at_tick(tick: int, column_type: DataType, schema: InputSchema) -> Column:
    """Return a time, given in ticks, as a column of this type, independent of the session's time zone."""
    from pyspark.sql import functions as sf

    kind = column_type.typeName()
    if kind == "date":
        return sf.date_from_unix_date(sf.lit(tick // step_of(column_type, schema)))
    if kind == "timestamp":
        return sf.timestamp_micros(sf.lit(tick))
    if kind == "timestamp_ntz":
        text = str(dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=tick))
        return sf.lit(text).cast(column_type)
    return sf.lit(tick).cast(column_type)


def event_time(name: str, column_type: DataType, schema: InputSchema) -> Column:
    """Return a timestamp column for the watermark, from the time column of this name."""
    from pyspark.sql import functions as sf

    column = sf.col(quote_name(name))
    kind = column_type.typeName()
    if kind == "timestamp":
        return column
    if kind == "date":
        return sf.timestamp_seconds(sf.unix_date(column).cast("long") * sf.lit(86400))
    if kind == "timestamp_ntz":
        # Converted through text, so that the session's time zone (and its summer time) does not affect the result.
        return sf.concat(column.cast("string"), sf.lit("Z")).cast("timestamp")
    ticks = column.cast("long")
    if schema.tick_ns is None:
        wide = sf.abs(ticks) > sf.lit(WIDEST)
        complaint = sf.raise_error(sf.lit(f"an integer `{name}` beyond 4e15 needs unit= on a stream"))
        inside = sf.when(wide, complaint.cast("timestamp")).otherwise(sf.timestamp_millis(ticks))
        end = FAR_MS
    else:
        micros = Fraction(schema.tick_ns, 1000)
        microseconds = ticks * sf.lit(micros.numerator)
        if micros < 1:
            # Integer division: `/` would use a double and lose the last digits.
            microseconds = sf.expr(f"cast({quote_name(name)} as bigint) div {micros.denominator}")
        inside = sf.timestamp_micros(microseconds)
        end = END_MS
    return sf.when(ticks == sf.lit(_last_integer(column_type)), sf.timestamp_millis(sf.lit(end))).otherwise(inside)


def ticks_of_row(name: str, column_type: DataType, schema: InputSchema) -> Column:
    """Return the time of a row in ticks, from the time column of this name."""
    from pyspark.sql import functions as sf

    kind = column_type.typeName()
    if kind == "date":
        return sf.unix_date(sf.col(quote_name(name))).cast("long") * sf.lit(step_of(column_type, schema))
    if kind in ("timestamp", "timestamp_ntz"):
        return sf.unix_micros(event_time(name, column_type, schema))
    return sf.col(quote_name(name)).cast("long")


def is_punctuation(columns: StructType, schema: InputSchema) -> Column | None:
    """Return whether a row with these columns is a punctuation: its time counts, and it is no event. ``None``: there is
    no column of types, or it holds nulls only."""
    from pyspark.sql import functions as sf

    if schema.type is None or columns[schema.type].dataType.typeName() not in ("string", "char", "varchar"):
        return None
    return sf.coalesce(sf.col(quote_name(schema.type)) == sf.lit(PUNCTUATION), sf.lit(False))


def latest_tick(job: Job) -> Column | None:
    """Return the greatest tick of an event in a micro-batch, as on the workers; ``None`` without a bound."""
    from pyspark.sql import functions as sf

    if job.latest is None or job.latest.ahead is None:
        return None if job.latest is None else sf.lit(job.latest.tick)
    last = f"(unix_millis(current_timestamp()) + {job.latest.ahead}L) * {job.tick_ms[1]}L"
    return sf.expr(f"({last}) div {job.tick_ms[0]}L")
