"""The clock of a watermark: how long a tick of event time is on it, and which ticks it has passed."""

from __future__ import annotations

from fractions import Fraction

from acep.engine.tables import InputSchema

__all__ = ["before", "passed", "tick_ms_of"]


def tick_ms_of(schema: InputSchema) -> tuple[int, int]:
    """The length of a tick on the watermark's clock, in milliseconds, as numerator and denominator."""
    length = Fraction(schema.tick_ns, 10**6) if schema.tick_ns is not None else Fraction(1)
    return length.numerator, length.denominator


def before(watermark_ms: int, tick_ms: tuple[int, int]) -> int | None:
    """Give the first tick that a watermark has not passed; ``None`` while there is no watermark.

    >>> before(1500, (1000, 1)), before(0, (1000, 1))
    (2, None)
    """
    return None if watermark_ms <= 0 else -(-watermark_ms * tick_ms[1] // tick_ms[0])


def passed(greatest: int | None, delay_ms: int, tick_ms: tuple[int, int]) -> int:
    """Give the watermark in milliseconds when ``greatest`` is the greatest tick that was seen, and 0 before the first.

    The time of the event is cut down to whole milliseconds, as Spark does it.

    >>> passed(1_999_999, 500, (1, 1000))
    1499
    """
    return 0 if greatest is None else greatest * tick_ms[0] // tick_ms[1] - delay_ms
