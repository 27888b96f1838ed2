"""Keep punctuations with a condition: nothing more of some key, or of some type, will come up to a time.

AFA 2010, appendix F.2, calls them predicated punctuations. A condition names values of some columns, a type, or both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError, QueryError
from acep.events.batch import Column
from acep.events.columns import column_of
from acep.events.fields import fields_of
from acep.events.tables import attribute_tick
from acep.pattern.expressions import Value
from acep.plan.schema import Schema

__all__ = ["BEGINNING", "Key", "Punctuations", "distinct", "key_values", "type_names"]

Ints = npt.NDArray[np.int64]
Key = tuple[Value, ...]

BEGINNING = -(2**62)
"""A time before all others."""
END = 2**63 - 1  # the last time
SPARE = 16  # entries that the final time has passed, beyond as many as there are others, before they are removed


class Punctuations:
    """The punctuations of a stream. An entry has the names and values of its columns, its type (``None``: any), and
    the time before which all events that fit are final.

    Entries that the final time of the whole stream has passed are removed, so that at most two entries, and a few, are
    kept for each condition that still says more.

    >>> said = Punctuations()
    >>> said.add({"k": 7}, None, before=5)
    >>> said.add({}, ["A"], before=3)
    >>> said.final(("k",), (7,), ["A", "B"]), said.final(("k",), (8,), ["A"]), said.final(("k",), (8,), ["A", "B"])
    (5, 3, None)
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[tuple[str, ...], Key, str | None], int] = {}
        self._forms: set[tuple[tuple[str, ...], bool]] = set()  # names of entries, and whether they have a type
        self._most = SPARE

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def latest(self) -> int | None:
        """Return the latest time of all entries; ``None``: there are none."""
        return max(self._entries.values(), default=None)

    def add(self, key: Mapping[str, Value], types: Iterable[str] | None, before: int, final: int | None = None) -> None:
        """Record that no event before a time will come that has the values of ``key`` and one of ``types`` (``None``:
        any type). ``final`` is the time before which no event at all will come."""
        names = tuple(sorted(key))
        values = tuple(key[name] for name in names)
        for event_type in (None,) if types is None else types:
            entry = (names, values, event_type)
            self._entries[entry] = max(min(before, END), self._entries.get(entry, BEGINNING))
            self._forms.add((names, event_type is not None))
        if len(self._entries) > self._most:
            if final is not None:
                self._entries = {entry: time for entry, time in self._entries.items() if time > final}
                self._forms = {(names, event_type is not None) for names, _, event_type in self._entries}
            self._most = 2 * len(self._entries) + SPARE

    def final(self, names: Sequence[str], key: Key, types: Collection[str | None] | None) -> int | None:
        """Return the time before which all events are final that have the values ``key`` of the columns ``names``, and
        one of ``types`` (``None``: any type). ``None``: no entry says so."""
        places = {name: place for place, name in enumerate(names)}
        final_time, forms = BEGINNING, list[tuple[tuple[str, ...], Key]]()
        for form, typed in self._forms:
            if not all(name in places for name in form):
                continue
            values = tuple(key[places[name]] for name in form)
            if typed:
                forms.append((form, values))
            else:
                final_time = max(final_time, self._entries.get((form, values, None), BEGINNING))
        if types is not None and forms:
            # No entry has the type ``None`` here, which is that of an event without a type.
            times = [
                max(
                    BEGINNING if event_type is None else self._entries.get((*form, event_type), BEGINNING)
                    for form in forms
                )
                for event_type in types
            ]
            final_time = max(final_time, min(times, default=BEGINNING))
        return None if final_time == BEGINNING else final_time

    def dump(self, final: int | None) -> list[Any]:
        """Return the entries that say more than ``final`` does as JSON-like data."""
        entries = [(*entry, time) for entry, time in self._entries.items() if final is None or time > final]
        return [[list(names), list(values), event_type, time] for names, values, event_type, time in entries]

    def load(self, data: Any) -> None:
        """Add the entries of :meth:`dump`. Raises :class:`ValueError` or :class:`TypeError` for other data."""
        for names, values, event_type, time in data:
            texts = [*names] if event_type is None else [*names, event_type]
            if not all(isinstance(text, str) for text in texts) or not isinstance(time, int):
                raise ValueError("a punctuation")
            self.add(dict(zip(names, values, strict=True)), None if event_type is None else [event_type], time)


def distinct(columns: Sequence[Column], size: int) -> tuple[Ints, list[Key]]:
    """Return the number of each of ``size`` rows among the distinct rows, int64[size], and the values of these.

    >>> from acep.plan.schema import Kind
    >>> numbers, texts = Column(Kind.INT, np.array([5, 3, 5])), Column(Kind.STRING, np.zeros(3, int), None, ["x"])
    >>> codes, rows = distinct([numbers, texts], 3)
    >>> codes.tolist(), rows
    ([1, 0, 1], [(3, 'x'), (5, 'x')])
    """
    codes = np.zeros(size, np.int64)
    if not size:
        return codes, []
    for column in columns:
        _, column_codes = np.unique(column.values, return_inverse=True)
        if column.valid is not None:
            column_codes = np.where(column.valid == 0, column_codes.max() + 1, column_codes)
        _, codes = np.unique(codes * (int(column_codes.max()) + 1) + column_codes, return_inverse=True)
    _, first = np.unique(codes, return_index=True)
    if not columns:
        return codes, [()]
    return codes.astype(np.int64), list(zip(*(column.take(first).to_list() for column in columns), strict=True))


def key_values(key: Any, allowed_names: Sequence[str], arrow: pa.Schema, schema: Schema) -> dict[str, Value]:
    """Return the values of a condition as engines hold them. ``allowed_names``: the columns that it may
    name.

    Raises :class:`QueryError` for other columns, :class:`DataError` for values that do not fit their column.
    """
    if not isinstance(key, Mapping) or not key:
        raise QueryError(
            f"key={key!r} names no columns with their values", hint='key={"user": "ann"}', code="option_invalid"
        )
    condition: dict[str, Value] = {}
    for name, value in key.items():
        if name not in allowed_names:
            listed = ", ".join(f"`{column}`" for column in allowed_names)
            hint = f"key= may name {listed}" if allowed_names else "the queries have none; leave key= out"
            raise QueryError(f"`{name}` is no partition attribute of the queries", hint=hint, code="option_invalid")
        data_type, kind = fields_of(arrow)[name], schema.engine_kind(name)
        try:
            values = pa.chunked_array([pa.array([value], data_type)])
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise DataError(
                f"{value!r} is no value of column `{name}`, which is {data_type}", code="data_type"
            ) from None
        (condition[name],) = column_of(name, values, kind, attribute_tick(schema) or 1, schema.scale(name)).to_list()
        if condition[name] is None:
            raise DataError(
                f"column `{name}` is null in no partition", hint="key= names a value that is not null", code="data_null"
            )
    return condition


def type_names(type: Any, schema: Schema) -> list[str]:
    """Return the types of a condition, which are given as one or several texts. Raises :class:`QueryError` for anything
    else, and for a stream without types."""
    names = [type] if isinstance(type, str) else list(type) if isinstance(type, Iterable) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise QueryError(
            f"type={type!r} names no event types", hint='type="A", or type=["A", "B"]', code="option_invalid"
        )
    if schema.type is None:
        raise QueryError("the stream has no type column", hint="leave type= out of advance()", code="query_type")
    return names
