"""Read intervals of several units of time, such as '1 02:30' DAY TO MINUTE."""

from __future__ import annotations

import re

from acep.pattern.sql.scanner import exact_number
from acep.pattern.times import UNITS

__all__ = ["are_span_units", "span_ns"]

_SPAN_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND")
_LIMITS = {"HOUR": 24, "MINUTE": 60, "SECOND": 60}


def are_span_units(first: str, last: str) -> bool:
    """Return whether an interval may go from the first unit down to the last one.

    >>> are_span_units("DAY", "MINUTE"), are_span_units("SECOND", "HOUR")
    (True, False)
    """
    is_known = first in _SPAN_UNITS and last in _SPAN_UNITS
    return is_known and _SPAN_UNITS.index(first) < _SPAN_UNITS.index(last)


def span_ns(text: str, first: str, last: str) -> int | None:
    """Return the nanoseconds of an interval from one unit to another; ``None`` if the text has not these units.

    >>> span_ns("-1:30", "HOUR", "MINUTE") == -90 * 60 * 10**9, span_ns("1:60", "HOUR", "MINUTE")
    (True, None)
    """
    units = _SPAN_UNITS[_SPAN_UNITS.index(first) : _SPAN_UNITS.index(last) + 1]
    fields = re.fullmatch(r"([+-]?)(\d{1,18}(?:[ :]\d{1,18})*)(\.\d{1,400})?", text)
    if fields is None or (fields.group(3) and last != "SECOND"):
        return None
    numbers = [int(number) for number in re.split("[ :]", fields.group(2))]
    is_spaced = re.findall(r"[ :]", text) == [" " if name == "DAY" else ":" for name in units[:-1]]
    if not is_spaced or any(n >= _LIMITS[unit] for n, unit in zip(numbers[1:], units[1:], strict=True)):
        return None
    total = sum(n * UNITS[unit.lower()] for n, unit in zip(numbers, units, strict=True))
    total += int(exact_number("0" + (fields.group(3) or ".0")) * UNITS["second"])
    return -total if fields.group(1) == "-" else total
