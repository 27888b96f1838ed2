"""What a plan must know of a stream: its columns, what they hold, and the length of a tick."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

__all__ = ["Kind", "Schema", "kinds_text"]


class Kind(Enum):
    """What a column holds: timestamps are integers in ticks, decimals integers of a known scale; ``NULL`` is a column
    of nothing but nulls."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    STRING = "string"
    TIMESTAMP = "timestamp"
    NULL = "null"


def kinds_text(kinds: Iterable[tuple[str, Kind | None]]) -> str:
    """Write columns with their kinds as fingerprints have them.

    States hold these fingerprints. So the text stays as it is, whatever the classes here are called.

    >>> kinds_text([("k", Kind.INT), ("other", None)])
    "[('k', <Kind.INT: 'int'>), ('other', None)]"
    """
    held = [(name, None if kind is None else f"<Kind.{kind.value.upper()}: {kind.value!r}>") for name, kind in kinds]
    return f"[{', '.join(f'({name!r}, {text})' for name, text in held)}]"


@dataclass(frozen=True)
class Schema:
    """The columns of a stream.

    ``kinds`` are (column, kind) pairs of every column that a predicate may use; ``ts``, ``type``,
    ``seq`` and ``id`` are column names (``type`` is ``None`` where the stream has no type
    column). ``tick_ns`` is the length of a tick of ``ts`` in nanoseconds, ``None`` for an integer
    ``ts`` of unknown unit. ``instants`` tells whether ``ts`` is a timestamp rather than an integer.
    ``scales`` are (column, scale) pairs of the decimals among the columns of kind ``INT``: such a column counts units
    of 10**-scale. ``unusable`` are (column, why) pairs of those that no predicate may use.
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

    def kind(self, name: str) -> Kind | None:
        """The kind of a column, or ``None`` if there is none of that name."""
        return dict(self.kinds).get(name)

    def scale(self, name: str) -> int | None:
        """The scale of a decimal column, or ``None`` if it is none."""
        return dict(self.scales).get(name)
