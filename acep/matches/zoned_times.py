"""Say which times of matches have a zone: those that Python's datetime does not reach do not say it themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from acep.events.tables import time_types
from acep.events.times import value_text
from acep.plan.schema import Schema

__all__ = ["has_far_time", "zoned_names", "zoned_text"]


def zoned_names(schema: Schema, keys: Sequence[str], values: Mapping[str, pa.DataType | None]) -> frozenset[str]:
    """Return the names of the times that have a zone: ``start`` (and so all times of events), ``key.x``, ``values.x``.
    ``values`` are the types of the times of RETURN."""
    types = time_types(schema)
    named = {"start": types[schema.ts], **{f"key.{key}": types.get(key) for key in keys}}
    named |= {f"values.{name}": value_type for name, value_type in values.items()}
    return frozenset(name for name, time_type in named.items() if getattr(time_type, "tz", None) is not None)


def has_far_time(values: Iterable[Any]) -> bool:
    """Return whether a value is a time that no datetime holds.

    >>> has_far_time([1, np.datetime64(0, "s")]), has_far_time(["x"])
    (True, False)
    """
    return any(isinstance(value, np.datetime64) for value in values)


def zoned_text(value: Any, name: str, zoned: Collection[str]) -> str:
    """Return a value as text for people to read, a time of a ``zoned`` name in UTC, marked by ``Z``.

    >>> zoned_text(np.datetime64("0000-01-01T00:00:00"), "start", {"start"}), zoned_text(7, "key.x", ())
    ('0000-01-01 00:00:00Z', '7')
    """
    mark = "Z" if name in zoned and isinstance(value, np.datetime64) else ""
    return f"{value_text(value)}{mark}"
