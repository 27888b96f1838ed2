"""Turn matches, bundles and match points into records that JSON can hold."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Collection
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from acep.events.durations import iso_duration
from acep.events.times import moment_text

if TYPE_CHECKING:
    from acep.matches.matches import Bundle, Match, Point

__all__ = ["group_record", "json_line", "json_text", "match_record", "plain"]

# Characters that a terminal acts upon and JSON need not escape: controls, ends of lines of Unicode, and those that turn
# the direction of writing.
_ACTED_UPON = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def match_record(match: Match, *, query: str | None = None, zoned: Collection[str] = ()) -> dict[str, Any]:
    """Return a match as what JSON can hold; ``values`` only if the query has RETURN, ``query`` only if given.

    ``zoned`` names the times that have a zone (``start``, ``key.x``, ``values.x``), as values that are no datetime
    do not show it.

    >>> from acep.matches.matches import Match
    >>> print(json_line(match_record(Match({"symbol": "AAPL"}, 1, 9, 0, {"a": (0, 3), "b": (7,)}, 9))))
    {"key": {"symbol": "AAPL"}, "start": 1, "end": 9, "error": 0, "bindings": {"a": [0, 3], "b": [7]}, "bundle": 9}
    """
    record: dict[str, Any] = {} if query is None else {"query": query}
    record["key"] = {name: plain(value, f"key.{name}" in zoned) for name, value in match.key.items()}
    record["start"] = plain(match.start, "start" in zoned)
    record["end"] = plain(match.end, "start" in zoned)
    record["error"] = match.error
    record["bindings"] = {var: list(ids) for var, ids in match.bindings.items()}
    record["bundle"] = plain(match.bundle, "start" in zoned)
    if match.values:
        record["values"] = {name: plain(value, f"values.{name}" in zoned) for name, value in match.values.items()}
    return record


def group_record(group: Bundle | Point, *, zoned: Collection[str] = ()) -> dict[str, Any]:
    """Return a bundle or a match point as what JSON can hold.

    >>> from acep.matches.matches import Bundle
    >>> json_line(group_record(Bundle({}, 5, 9, 3, 0.5)))
    '{"key": {}, "start": 5, "end": 9, "matches": 3, "best": 0.5}'
    """
    # Matches that were not counted are left out.
    fields_of_group = ((field.name, getattr(group, field.name)) for field in fields(group))
    record = {name: plain(value, "start" in zoned) for name, value in fields_of_group if value is not None}
    record["key"] = {name: plain(value, f"key.{name}" in zoned) for name, value in group.key.items()}
    return record


def json_line(record: dict[str, Any]) -> str:
    """Return a record as one line of JSON, without the end of the line."""
    return json_text(record)


def json_text(value: Any) -> str:
    r"""Return a value as JSON, with escapes for the characters that a terminal acts upon.

    >>> print(json_text("a\x9b31m\u202e"))
    "a\u009b31m\u202e"
    """
    text = json.dumps(value, ensure_ascii=False)
    if text.isascii() and "\x7f" not in text:
        return text
    return _ACTED_UPON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def plain(value: Any, zoned: bool = False) -> Any:
    """Return a value as JSON holds it: times (in UTC, with ``Z``, if they have a zone) and durations as ISO 8601,
    decimals as texts, and so are infinite numbers; NaN as null. ``zoned``: a time without a zone of its own is in UTC.

    >>> plain(Fraction(1, 2)), plain(float("inf")), plain(dt.date(2024, 1, 2)), plain(dt.timedelta(minutes=90))
    (0.5, 'Infinity', '2024-01-02', 'PT1H30M')
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list):
        return [plain(inner, zoned) for inner in value]
    if isinstance(value, dict):
        return {name: plain(inner, zoned) for name, inner in value.items()}
    if isinstance(value, float):
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return None if math.isnan(value) else value
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    if isinstance(value, dt.timedelta | np.timedelta64):
        return iso_duration(value)
    return moment_text(value) + ("Z" if zoned else "")  # numpy.datetime64
