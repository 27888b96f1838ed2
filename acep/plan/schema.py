"""What a plan must know of a stream: its columns, what they hold, and the length of a tick."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

__all__ = ["Kind", "Schema"]


class Kind(Enum):
    """What a column holds: timestamps are integers in ticks; ``NULL`` is a column of nothing but nulls."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    STRING = "string"
    TIMESTAMP = "timestamp"
    NULL = "null"


@dataclass(frozen=True)
class Schema:
    """The columns of a stream.

    ``kinds`` are (column, kind) pairs of every column that a predicate may use; ``ts``, ``type``,
    ``seq`` and ``id`` are column names (``type`` is ``None`` where the stream has no type
    column). ``tick_ns`` is the length of a tick of ``ts`` in nanoseconds, ``None`` for an integer
    ``ts`` of unknown unit. ``instants`` tells whether ``ts`` is a timestamp rather than an integer.
    """

    kinds: tuple[tuple[str, Kind], ...]
    ts: str = "ts"
    type: str | None = "type"
    seq: str | None = None
    id: str | None = None
    tick_ns: Fraction | None = None
    instants: bool = False

    def kind(self, name: str) -> Kind | None:
        """The kind of a column, or ``None`` if there is none of that name."""
        return dict(self.kinds).get(name)
