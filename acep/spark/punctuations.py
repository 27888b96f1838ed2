"""Create the rows that move the time of a stream: one ends it, others decide everything up to a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acep.errors import DataError
from acep.events.tables import InputSchema
from acep.spark.columns.fields import all_columns, input_schema, path_of
from acep.spark.columns.letter_case import ignores_case, resolve_roles
from acep.spark.columns.times import DELAY_KEY, end_column, first_end_tick, step_of, time_at_tick
from acep.spark.matching import frame_of
from acep.spark.session import get_session, needs_pyspark
from acep.streaming.latest_time import tick_of_moment
from acep.streaming.punctuation_rows import PUNCTUATION
from acep.streaming.times import delay_ms_of, tick_ms_of, tick_that_decides

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

__all__ = ["punctuation"]

MOMENT = 'until="2026-05-01 23:59:59"'


def punctuation(
    df: Any, *, ts: str = "ts", until: Any = None, watermark: Any = None, type: str | None = "type", unit: Any = None
) -> DataFrame:
    """Create a DataFrame of one row with the columns of ``df`` that moves the time of a stream, once it is written to
    the source of the stream. The row is no event.

    Without ``until`` it ends the stream: the watermark passes all events, so that all remaining matches are final, and
    after it every event is late. Its ``ts`` is 9999-12-31, or the greatest integer of the column's type; all other
    columns are null.

    With ``until`` everything up to that time, itself included, is decided, and the stream goes on: an event up to
    ``until`` that comes later is late. It is a date or a datetime, a text of one (``"2026-05-01 23:59:59"``), in UTC
    unless it has a zone, or ticks of an integer ``ts``; a date alone is its midnight. The row has the least time that
    does so, ``until`` and the delay of the watermark and one millisecond, or the next tick of ``ts`` if that is longer.
    So where times are finer than milliseconds, all events of the millisecond of ``until`` are decided.

    ``watermark``: the delay, the same as that of :func:`acep.spark.match`; it is left out if ``df`` has a watermark on
    ``ts``. ``unit``: the length of a tick of an integer ``ts``, as there. ``type`` names the column of types, which has
    the text ``acep.punctuation``: a row of that type is an event for no query, and ``latest=`` does not bound it. All
    other columns are null. With ``type=None``, where there are no types, all columns but ``ts`` are null. Such a row is
    an event without a type: use it for queries with partition attributes only, where events without a key match
    nothing.

    ``ts`` and ``type`` may be fields of a struct (``dev.at``). Raises :class:`DataError` if ``ts`` is no column of
    times or integers, if ``type`` is no column of texts, if there is no watermark, and if ``until`` is before 1970 or
    so late that the row would end the stream.
    """
    needs_pyspark()
    frame = frame_of(df)
    if ignores_case(frame.sparkSession):
        roles = resolve_roles(frame.schema, {"ts": ts, "type": type}, typed=False)
        ts, type = roles["ts"], roles.get("type", type)
    path, time_field = path_of(frame.schema, ts, "ts")
    if until is None:
        if watermark is not None:
            raise DataError("watermark= is for a row that moves time up to until=", hint=MOMENT, code="option_invalid")
        return _row_of(frame, {path: end_column(time_field.dataType)})
    from pyspark.sql import functions as sf

    end_column(time_field.dataType)  # raises for a type without times
    schema = input_schema(all_columns(frame.schema), ts=ts, type=None, unit=unit)
    tick = _tick_until(until, _delay_ms(time_field, watermark, schema), schema)
    step = step_of(time_field.dataType, schema)
    tick = -(-tick // step) * step
    if tick >= first_end_tick(time_field.dataType, schema):
        raise DataError(
            f"until={until!r} is so late that the row would end the stream", hint=MOMENT, code="option_invalid"
        )
    values = {path: time_at_tick(tick, time_field.dataType, schema)}
    if type is not None:
        type_path, type_field = _type_field(frame, type)
        values[type_path] = sf.lit(PUNCTUATION).cast(type_field.dataType)
    return _row_of(frame, values)


def _tick_until(until: Any, delay_ms: int, schema: InputSchema) -> int:
    """Return the time, in ticks, of a row that decides everything up to ``until``. Raises :class:`DataError` if that is
    no time, or before 1970."""
    tick = tick_of_moment(until, schema, "until", MOMENT)
    if tick is None:
        raise DataError(f"until={until!r} is no time", hint=MOMENT, code="option_invalid")
    if tick < 0:
        raise DataError(
            f"until={until!r} is before 1970, and a stream holds its events until then",
            hint="choose a time from 1970, or tick 0, on",
            code="option_invalid",
        )
    return tick_that_decides(tick, delay_ms, tick_ms_of(schema))


def _delay_ms(time_field: StructField, watermark: Any, schema: InputSchema) -> int:
    """Return the delay of the watermark in milliseconds. Raises :class:`DataError` for none or two."""
    own_delay = (time_field.metadata or {}).get(DELAY_KEY)
    if watermark is None and own_delay is not None:
        return int(own_delay)
    if watermark is None:
        raise DataError(
            "until= needs the delay of the watermark",
            hint='give what match has: watermark="10 minutes"',
            code="option_invalid",
        )
    if own_delay is not None:
        raise DataError(f"`{schema.ts}` has a watermark already", hint="leave watermark= out", code="option_invalid")
    return delay_ms_of(watermark, schema)


def _type_field(frame: DataFrame, name: str) -> tuple[tuple[str, ...], StructField]:
    """Return the path to the column of types, and its field. Raises :class:`DataError` if there is none of texts."""
    hint = 'name it: type="kind"; type=None if there is none, for queries with partition attributes only'
    try:
        path, field = path_of(frame.schema, name)
    except DataError as error:
        raise DataError(error.message, hint=hint, code="data_column") from None
    if field.dataType.typeName() != "string":
        raise DataError(
            f"the type column `{name}` is {field.dataType.simpleString()}, and a row that moves time has a text there",
            hint=hint,
            code="data_type",
        )
    return path, field


def _row_of(frame: DataFrame, values: dict[tuple[str, ...], Column]) -> DataFrame:
    """Return a DataFrame of one row with the columns of ``frame``, null but for the ``values`` at their paths."""
    from pyspark.sql import functions as sf
    from pyspark.sql.types import StructType

    def part(field: StructField, path: tuple[str, ...]) -> Column:
        if path in values:
            return values[path].alias(field.name)
        is_around = any(value_path[: len(path)] == path for value_path in values)
        if is_around and isinstance(field.dataType, StructType):
            return sf.struct(*[part(inner, (*path, inner.name)) for inner in field.dataType.fields]).alias(field.name)
        return sf.lit(None).cast(field.dataType).alias(field.name)

    return get_session(frame).range(1).select([part(field, (field.name,)) for field in frame.schema.fields])
