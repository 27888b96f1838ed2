"""Estimate the recall of match points under bundle recovery, which may find points of shadow-sampled units late."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from acep.learning.estimation.recall import COLUMNS, EXACT, FOUND_SHEDDING
from acep.storage.plain_data import from_json, to_plain

if TYPE_CHECKING:
    from acep.shedding.native_protocol import NativeCore

__all__ = ["Reconciliation"]

Ints = npt.NDArray[np.int64]
Key = tuple[int, ...]

NONE = np.iinfo(np.int64).min + 1
WHEN, KIND = COLUMNS.index("ts"), COLUMNS.index("kind")


@dataclass
class Reconciliation:
    """Rows of :class:`acep.learning.estimation.recall.SampledUnits`, held until it is known which points were
    recovered.

    That is ``lag`` ticks later, or when the stream has ``ended``. ``table``: the number of the partition table;
    ``width``: the words of a key. ``keys``: the partition key of each row; ``recovered``: keys with their recovered
    match points, ascending.
    """

    table: int
    width: int
    lag: int
    ended: bool = False
    rows: Ints = field(default_factory=lambda: np.zeros((0, len(COLUMNS)), np.int64))
    keys: list[Key] = field(default_factory=list)
    recovered: deque[tuple[Key, Ints]] = field(default_factory=deque)

    def note(self, core: NativeCore, points: Ints) -> None:
        """Add rows from a flat array, before the core forgets partitions."""
        rows = points.reshape(-1, len(COLUMNS))
        if len(rows):
            self.rows = np.concatenate([self.rows, rows])
            self.keys += self._keys(core, rows)

    def add_recovered(self, key: Key, points: Ints) -> None:
        """Add the match points of a recovered bundle."""
        if len(points):
            self.recovered.append((key, np.unique(points)))

    def release(self, clock: int) -> tuple[Ints, int]:
        """Remove and return the rows that are decided by now, with the time up to which all are."""
        time = clock if self.ended else clock - self.lag
        ready = self.rows[:, WHEN] <= time
        rows = self._mark(self.rows[ready], [key for key, is_ready in zip(self.keys, ready, strict=True) if is_ready])
        self.keys = [key for key, is_ready in zip(self.keys, ready, strict=True) if not is_ready]
        self.rows = self.rows[~ready]
        self.recovered = deque((key, points) for key, points in self.recovered if int(points[-1]) > time)
        return rows.ravel(), time

    def so_far(self, core: NativeCore, points: Ints, clock: int) -> tuple[Ints, int]:
        """Do the same as :meth:`note` and then :meth:`release`, without changing anything."""
        other = Reconciliation(self.table, self.width, self.lag, self.ended, self.rows, list(self.keys), self.recovered)
        other.note(core, points)
        return other.release(clock)

    def _keys(self, core: NativeCore, rows: Ints) -> list[Key]:
        if self.width == 0:
            return [()] * len(rows)
        numbers, words = core.numbers(self.table), core.keys(self.table).reshape(-1, self.width)
        index = np.minimum(np.searchsorted(numbers, rows[:, 0]), max(len(numbers) - 1, 0))
        is_known = numbers[index] == rows[:, 0] if len(numbers) else np.zeros(len(rows), np.bool_)
        return [tuple(words[k].tolist()) if has_key else self._none for k, has_key in zip(index, is_known, strict=True)]

    @property
    def _none(self) -> Key:
        """Return the stand-in for the key of a partition that no longer exists; no point is recovered there."""
        return (NONE,) * self.width

    def _mark(self, rows: Ints, keys: list[Key]) -> Ints:
        """Return the rows, with recovered points marked as kept."""
        if not len(rows) or not self.recovered:
            return rows
        points_by_key: dict[Key, list[Ints]] = {}
        for key, points in self.recovered:
            points_by_key.setdefault(key, []).append(points)
        marked = rows.copy()
        rows_by_key: dict[Key, list[int]] = {}
        for row, key in enumerate(keys):
            if key in points_by_key and key != self._none and rows[row, KIND] == EXACT:
                rows_by_key.setdefault(key, []).append(row)
        for key, key_rows in rows_by_key.items():
            row_index = np.array(key_rows, np.intp)
            marked[row_index[np.isin(rows[row_index, WHEN], np.concatenate(points_by_key[key]))], KIND] = FOUND_SHEDDING
        return marked

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data."""
        keys = np.array(self.keys, np.int64).reshape(len(self.keys), self.width)
        recovered = [[list(key), points] for key, points in self.recovered]
        return {
            "rows": to_plain(self.rows),
            "keys": to_plain(keys),
            "recovered": to_plain(recovered),
            "ended": self.ended,
        }

    def load(self, data: Any) -> None:
        """Restore :meth:`dump`. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for other data."""
        rows, keys = from_json(data["rows"]), from_json(data["keys"])
        if rows.ndim != 2 or rows.shape[1] != len(COLUMNS) or len(keys) != len(rows) or keys.ndim != 2:
            raise ValueError("rows of points")
        self.rows, self.keys = rows, [tuple(key) for key in keys.tolist()]
        self.recovered = deque()
        for key, points in from_json(data["recovered"]):
            if points.ndim != 1 or not len(points) or points.dtype != np.int64:
                raise ValueError("match points")
            self.recovered.append((tuple(int(word) for word in key), points))
        self.ended = data["ended"] is True
