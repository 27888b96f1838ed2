"""Define the schema of a stream for plans: its columns, their kinds, and the length of a tick."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property

__all__ = ["Kind", "Schema", "TimeOf", "kinds_text"]


class Kind(Enum):
    """The kind of a column. Timestamps are integers in ticks, decimals are integers of a known scale. ``NULL`` is a
    column that contains only nulls."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    STRING = "string"
    TIMESTAMP = "timestamp"
    NULL = "null"


_RESULT_KINDS = {"text": Kind.STRING, "integer": Kind.INT, "condition": Kind.BOOL}


def kinds_text(kinds: Iterable[tuple[str, Kind | None]]) -> str:
    """Write columns with their kinds in the format of fingerprints.

    Stored states contain these fingerprints, so the text must not change, even if classes are renamed.

    >>> kinds_text([("k", Kind.INT), ("other", None)])
    "[('k', <Kind.INT: 'int'>), ('other', None)]"
    """
    column_texts = [
        (name, None if kind is None else f"<Kind.{kind.value.upper()}: {kind.value!r}>") for name, kind in kinds
    ]
    return f"[{', '.join(f'({name!r}, {text})' for name, text in column_texts)}]"


@dataclass(frozen=True)
class TimeOf:
    """The source ``columns`` of a time, duration or decimal among the values of RETURN. If ``plain``, it is an
    unchanged value of the first of them. Decimals are described only if they are plain. A ``duration`` is in ticks. It,
    or a computed time, may be no whole number of them (not ``is_whole``)."""

    columns: tuple[str, ...]
    plain: bool
    duration: bool = False
    is_whole: bool = True


@dataclass(frozen=True)
class Schema:
    """The columns of a stream.

    ``kinds`` are (column, kind) pairs of every column that a predicate may use; ``ts``, ``type``,
    ``seq`` and ``id`` are column names (``type`` is ``None`` if the stream has no type
    column). ``tick_ns`` is the length of a tick of ``ts`` in nanoseconds, ``None`` for an integer
    ``ts`` of unknown unit. ``instants`` is true if ``ts`` is a timestamp rather than an integer.
    ``scales`` are (column, scale) pairs of the decimals among the columns of kind ``INT``: such a column counts units
    of 10**-scale. ``unusable`` are (column, reason) pairs of columns that no predicate may use. ``durations`` are
    columns that hold durations, in ticks.
    """

    kinds: tuple[tuple[str, Kind], ...]
    ts: str = "ts"
    type: str | None = "type"
    seq: str | None = None
    id: str | None = None
    tick_ns: Fraction | None = None
    instants: bool = False
    scales: tuple[tuple[str, int], ...] = ()
    unusable: tuple[tuple[str, str], ...] = ()
    durations: tuple[str, ...] = ()

    def kind(self, name: str) -> Kind | None:
        """Return the kind of a column or of a function of one that is a key, ``None`` if there is no such column."""
        kind = self._kinds.get(name)
        if kind is not None or not name.endswith(")"):
            return kind
        from acep.pattern.key_calls import key_call  # few queries have such keys

        call = key_call(name)
        return None if call is None or self.kind(call.name) is not Kind.STRING else _RESULT_KINDS[call.gives]

    def column_name(self, name: str) -> str:
        """Return the column that an attribute of this name is. Without columns of these names, ``ts`` is the time
        column and ``type`` the column of types.

        >>> Schema((), ts="time").column_name("ts"), Schema((("ts", Kind.INT),), ts="time").column_name("ts")
        ('time', 'ts')
        """
        return name if name in self._kinds else {"ts": self.ts, "type": self.type or name}.get(name, name)

    @cached_property
    def _kinds(self) -> dict[str, Kind]:
        return dict(self.kinds)

    @cached_property
    def _scales(self) -> dict[str, int]:
        return dict(self.scales)

    def engine_kind(self, name: str) -> Kind:
        """Return the kind of the values of a column as engines hold them: integers for the time column ``ts``."""
        return self.kind(name) or (Kind.STRING if name == self.type else Kind.INT)

    def ordered_categories(self, name: str) -> str | None:  # noqa: ARG002 - they are known of tables
        """Return the column of categories in an order of their own that a name means; ``None`` if it means another."""
        return None

    def counts_ticks(self, name: str) -> bool | None:
        """Return whether a column holds durations, in ticks; ``None``: it is not known."""
        if name in self.durations:
            return True
        return None if self.kind(name) in (Kind.INT, Kind.FLOAT) else False

    def scale(self, name: str) -> int | None:
        """Return the scale of a decimal column, or ``None`` for other columns."""
        return self._scales.get(name) if self.scales else None

    def of_matches(self, derived: Schema, origins: Sequence[tuple[str, TimeOf, Schema]]) -> Schema:  # noqa: ARG002
        """Return the schema ``derived`` of matches of this stream, with what is known of the types of its columns;
        ``origins`` are names of columns that hold times, durations or decimals, with the values that these are and the
        schemas of these."""
        return derived
