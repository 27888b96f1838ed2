"""Convert between ticks of event time and the milliseconds of a watermark."""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import DataError, QueryError
from acep.events.tables import InputSchema
from acep.pattern.times import read_duration

__all__ = [
    "END_MS",
    "begin_after",
    "check_delay_text",
    "delay_ms_of",
    "first_end_tick",
    "first_open_tick",
    "first_tick_after",
    "tick_ms_of",
    "tick_that_decides",
    "watermark_of",
]

END_MS = 253402214400000
"""9999-12-31 00:00 UTC in milliseconds since 1970: this time marks the end of a stream and is no event."""
_PART = re.compile(r"\s*([\d.]+)\s*([^\W\d]+)\s*")


def tick_ms_of(schema: InputSchema) -> tuple[int, int]:
    """Return the length of a tick on the watermark's clock, in milliseconds, as numerator and denominator."""
    length = Fraction(schema.tick_ns, 10**6) if schema.tick_ns is not None else Fraction(1)
    return length.numerator, length.denominator


def first_open_tick(watermark_ms: int, tick_ms: tuple[int, int]) -> int | None:
    """Return the first tick that a watermark has not passed; ``None`` while there is no watermark.

    >>> first_open_tick(1500, (1000, 1)), first_open_tick(0, (1000, 1))
    (2, None)
    """
    return None if watermark_ms <= 0 else -(-watermark_ms * tick_ms[1] // tick_ms[0])


def watermark_of(greatest: int | None, delay_ms: int, tick_ms: tuple[int, int]) -> int:
    """Return the watermark in milliseconds if ``greatest`` is the greatest tick seen, and 0 before the first event.

    The event time is rounded down to whole milliseconds, as Spark does.

    >>> watermark_of(1_999_999, 500, (1, 1000))
    1499
    """
    return 0 if greatest is None else greatest * tick_ms[0] // tick_ms[1] - delay_ms


def first_tick_after(greatest_ms: int, tick_ms: tuple[int, int]) -> int:
    """Return the first tick in a later millisecond than the greatest time so far.

    >>> first_tick_after(1500, (1000, 1)), first_tick_after(1500, (1, 1000))
    (2, 1501000)
    """
    return -(-(greatest_ms + 1) * tick_ms[1] // tick_ms[0])


def tick_that_decides(tick: int, delay_ms: int, tick_ms: tuple[int, int]) -> int:
    """Return the least newest time, in ticks, that makes all events up to ``tick`` final, by a watermark of this delay.
    It counts whole milliseconds, so all events of the millisecond of ``tick`` become final.

    >>> tick_that_decides(7, 2000, (1000, 1)), tick_that_decides(1_500_999, 0, (1, 1000))
    (10, 1501000)
    >>> first_open_tick(watermark_of(10, 2000, (1000, 1)), (1000, 1))
    8
    """
    passed_ms = tick * tick_ms[0] // tick_ms[1] + 1
    return -(-(passed_ms + delay_ms) * tick_ms[1] // tick_ms[0])


def begin_after(greatest: int | None, tick_ms: tuple[int, int]) -> int | None:
    """Return the tick from which on a new version of a query holds, if ``greatest`` is the greatest tick seen: the
    first one in a later millisecond. ``None``: from the beginning, as nothing was seen.

    >>> begin_after(1_500_999, (1, 1000)), begin_after(None, (1, 1))
    (1501000, None)
    """
    return None if greatest is None else first_tick_after(watermark_of(greatest, 0, tick_ms), tick_ms)


def first_end_tick(arrow_type: pa.DataType, schema: InputSchema) -> int:
    """Return the first tick that marks the end of a stream, for a time column of this Arrow type.

    >>> first_end_tick(pa.int8(), InputSchema((), tick_ns=None))
    127
    """
    if pa.types.is_integer(arrow_type):
        return int(np.iinfo(arrow_type.to_pandas_dtype()).max)
    assert schema.tick_ns is not None
    return min(int(END_MS * 10**6 / schema.tick_ns), 2**63 - 1)


def delay_ms_of(watermark: Any, schema: InputSchema, option: str = "watermark") -> int:
    """Convert a delay to milliseconds: a text such as "10 minutes" or "1 h 30 min", as in WITHIN, a timedelta, or ticks
    of an integer ``ts``. Error messages use the name ``option``.

    Raises :class:`DataError` if it is no delay, or if the length of a tick is not known.

    >>> delay_ms_of("1.5 s", InputSchema((), tick_ns=Fraction(1000), instants=True))
    1500
    >>> delay_ms_of("1 h 30 min", InputSchema((), tick_ns=Fraction(1000), instants=True))
    5400000
    """
    if isinstance(watermark, dt.timedelta):
        return -int(-watermark // dt.timedelta(milliseconds=1))
    if isinstance(watermark, bool) or not isinstance(watermark, int | str):
        raise DataError(
            f"{option}= takes a text or a number of ticks, not {type(watermark).__name__}", code="option_invalid"
        )
    if isinstance(watermark, str):
        check_delay_text(watermark, schema, option)
        parts = _PART.findall(watermark)
        if not parts or _PART.sub("", watermark):
            raise DataError(
                f"{option}={watermark!r} is no span of time", hint=f'write {option}="10 minutes"', code="option_invalid"
            )
        try:
            return -int(-read_duration(parts) // 10**6)
        except QueryError as error:
            raise DataError(
                f"{option}={watermark!r}: {error.message}", hint=error.hint, code="option_invalid"
            ) from None
    if watermark < 0:
        raise DataError(f"watermark={watermark} is negative", code="option_invalid")
    if watermark and schema.instants:
        raise DataError(
            f"watermark={watermark} needs a unit of time, as `{schema.ts}` is a timestamp",
            hint='write "10 minutes"',
            code="option_invalid",
        )
    return -int(-watermark * Fraction(*tick_ms_of(schema)) // 1)


def check_delay_text(watermark: str, schema: InputSchema, option: str = "watermark") -> None:
    """Raise :class:`DataError` for a delay without a unit, or if the length of a tick is not known."""
    if not re.search(r"[a-zA-Z]", watermark):
        raise DataError(
            f"{option}={watermark!r} has no unit of time", hint=f'write {option}="10 minutes"', code="option_invalid"
        )
    if not schema.instants and schema.tick_ns is None:
        raise DataError(
            f"{option}={watermark!r} needs to know how long a tick of the integer `{schema.ts}` is",
            hint=f'name the unit (unit="s"), or give it in ticks: {option}=600',
            code="option_invalid",
        )
