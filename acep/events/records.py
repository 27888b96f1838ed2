"""Define events as columns of Python values, which the reference runtime takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acep.pattern.expressions import Value
from acep.plan.schema import Schema

__all__ = ["Events", "Id"]

Id = int | str


@dataclass(frozen=True)
class Events:
    """Events of one stream, in stream order, as columns of equal length n.

    ``ts``: n ticks. ``types``: n event types. ``ids``: n event ids, or ``None`` for positions within the partition.
    ``columns``: n values for each attribute that a plan reads (``Plan.columns``), timestamps as ticks, NaN as ``None``.
    ``order``: n tie breakers within a timestamp (``seq``), used only to detect a batch out of order.
    """

    ts: list[int]
    types: list[str | None]
    ids: list[Id] | None
    columns: dict[str, list[Value]]
    order: list[int] | None = None

    def __len__(self) -> int:
        return len(self.ts)

    def values(self, name: str, schema: Schema) -> Sequence[Value]:
        """Return the values of a column, which may also be the time or the type column of the schema."""
        if name == schema.ts:
            return self.ts
        return self.types if name == schema.type else self.columns[name]
