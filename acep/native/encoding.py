"""Encode the batches of a stream: the columns of a batch become the words that the native core takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch, Column, column_of_values
from acep.events.computed_columns import computed_values
from acep.events.pushed_rows import Pushed, Words
from acep.native import _native
from acep.native.codes import Codes, derived_of
from acep.native.id_dictionary import IdDictionary
from acep.plan.computed import Computed
from acep.plan.derive import Derived
from acep.plan.schema import Kind, Schema

__all__ = ["Encoder"]

Ints = npt.NDArray[np.int64]


@dataclass
class Encoder:
    """The texts and text ids of a stream, and how far it has come.

    ``columns``: those that the core takes, in its order; ``computed``: those that the user's own functions
    give. ``span``: how long before the latest event all texts and ids are needed, in ticks; ``None``: only those that
    the core refers to.
    ``events``: how many were pushed, ``repeated`` of which had come before. ``clock``: the latest time seen.
    """

    codes: Codes
    core: _native.Session
    schema: Schema
    columns: Mapping[str, Derived | None]
    computed: Mapping[str, Computed]
    span: int | None
    id_texts: IdDictionary = field(default_factory=IdDictionary)
    events: int = 0
    repeated: int = 0
    clock: int | None = None

    @property
    def arrived(self) -> int:
        """Return how many events have come, each counted once."""
        return self.events - self.repeated

    @property
    def bytes(self) -> int:
        """Return the bytes of texts and ids."""
        return self.codes.bytes + self.id_texts.bytes

    def words(self, batch: Batch) -> Pushed:
        """Return the next batch in the form that the core takes; all earlier matches have been taken."""
        self.forget_unused(if_crowded=True)
        latest = int(batch.ts[-1])  # earlier than events before where a batch is matched again
        self.clock = latest if self.clock is None else max(latest, self.clock)
        ids = batch.ids
        if isinstance(ids, list):
            self.id_texts.add(self.events, ids, self.clock)
            ids = range(self.events, self.events + len(batch))
        self.events += len(batch)
        types: Any = None
        valid = None
        if batch.types is not None:
            codes, valid = self.codes.codes_of(batch.types, self.clock), batch.types.valid
            types = (np.ascontiguousarray(batch.types.values), codes) if len(codes) else np.zeros(len(batch), np.int64)
        columns = [self._column(batch, name, derived, self.clock) for name, derived in self.columns.items()]
        return batch.ts, types, valid, ids.start if isinstance(ids, range) else ids, columns

    def _column(self, batch: Batch, name: str, derived: Derived | None, now: int) -> Words:
        column = self._source_column(batch, derived.source if derived else name)
        return self.codes.words(derived_of(column, derived) if derived else column, now)

    def _source_column(self, batch: Batch, name: str) -> Column:
        """Return a column of a batch, or one that is computed from its columns."""
        schema = self.schema
        if name in self.computed and name not in batch.columns:
            computed = self.computed[name]
            values = computed_values(computed, lambda source: self._source_column(batch, source).to_list(), len(batch))
            return column_of_values(values, computed.kind)
        if name == schema.ts and name not in batch.columns:
            return Column(Kind.INT, batch.ts)
        if name == schema.type and name not in batch.columns:
            assert batch.types is not None
            return batch.types
        if name == schema.id and isinstance(batch.ids, list):
            return column_of_values(batch.ids, Kind.STRING)
        return batch.columns[name]

    def forget_unused(self, *, if_crowded: bool = False) -> None:
        """Forget the texts and ids that nothing refers to; ``if_crowded``: only where there are many beyond those kept
        the last time."""
        since = None if self.span is None or self.clock is None else self.clock - self.span
        if self.codes.crowded or not if_crowded:
            self.codes.keep(self.core.used_texts(self.codes.texts.capacity), since)
        if self.id_texts.crowded or (self.id_texts and not if_crowded):
            self.id_texts.keep(self.core.used_ids(), since)

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data."""
        return {**self.codes.dump(), "names": self.id_texts.dump(), "events": self.events, "clock": self.clock}

    def load(self, data: Any) -> None:
        """Restore :meth:`dump` in a new session. Raises :class:`ValueError`, :class:`TypeError` or :class:`KeyError`
        for other data."""
        self.codes.load(data)
        self.id_texts.load(data["names"])
        self.events = int(data["events"])
        self.clock = None if data["clock"] is None else int(data["clock"])
