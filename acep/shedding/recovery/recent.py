"""Keep the latest events of a stream in the form that the native core takes, so that they can be matched again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.pushed_rows import Pushed, join_pushed, rows_of

__all__ = ["Recent"]


@dataclass
class Recent:
    """Events in stream order, in pieces that :meth:`cut` ends. ``keys``: the positions of the partition attributes
    among the columns. All events with ``ts >= floor`` are kept (``None``: all events)."""

    keys: Sequence[int]
    floor: int | None = None
    pieces: deque[Pushed] = field(default_factory=deque)
    open: list[Pushed] = field(default_factory=list)

    def add(self, rows: Pushed) -> None:
        """Add a copy of more events."""
        ts, types, valid, ids, columns = rows
        if isinstance(types, tuple):
            types = types[1][types[0]]
        if ids is None or isinstance(ids, int):
            ids = np.arange(ids or 0, (ids or 0) + len(ts))
        copies = [(values.copy(), None if validity is None else validity.copy()) for values, validity in columns]
        type_codes = None if types is None else types.astype(np.int64)
        self.open.append((ts.copy(), type_codes, None if valid is None else valid.copy(), ids.copy(), copies))

    def cut(self, time: int) -> None:
        """End the present piece, and drop the pieces that end before a time."""
        if self.open:
            self.pieces.append(join_pushed(self.open))
            self.open = []
        while self.pieces and int(self.pieces[0][0][-1]) < time:
            self.floor = int(self.pieces.popleft()[0][-1]) + 1

    def events_of(self, key: tuple[int, ...], first: int, last: int) -> Pushed | None:
        """Return the events of a partition (words of its attributes) with ``first <= ts <= last``, or ``None``."""
        parts = [rows_of(piece, rows) for piece, rows in self._rows_of(key, first, last)]
        return join_pushed(parts) if parts else None

    def count(self, key: tuple[int, ...], first: int, last: int) -> int:
        """Return how many events :meth:`events_of` would return."""
        return sum(len(rows) for _, rows in self._rows_of(key, first, last))

    def _rows_of(self, key: tuple[int, ...], first: int, last: int) -> Iterator[tuple[Pushed, npt.NDArray[np.intp]]]:
        for piece in self.pieces:
            ts = piece[0]
            if int(ts[-1]) < first or int(ts[0]) > last:
                continue
            selected = (ts >= first) & (ts <= last)
            for position, word in zip(self.keys, key, strict=True):
                values, validity = piece[4][position]
                selected &= values == word
                if validity is not None:
                    selected &= validity != 0
            rows = np.flatnonzero(selected)
            if len(rows):
                yield piece, rows

    def dump(self) -> dict[str, Any]:
        """Return the state as plain data with arrays."""
        return {
            "floor": self.floor,
            "pieces": [_plain(piece) for piece in self.pieces],
            "open": [_plain(piece) for piece in self.open],
        }

    def load(self, data: Mapping[str, Any], columns: int) -> None:
        """Restore :meth:`dump`, with so many ``columns``. Raises :class:`ValueError`, :class:`KeyError` or
        :class:`TypeError` for other data."""
        self.floor = None if data["floor"] is None else int(data["floor"])
        self.pieces = deque(_piece(piece, columns) for piece in data["pieces"])
        self.open = [_piece(piece, columns) for piece in data["open"]]


def _plain(piece: Pushed) -> list[Any]:
    ts, types, valid, ids, columns = piece
    return [ts, types, valid, ids, [list(column) for column in columns]]


def _piece(data: Any, width: int) -> Pushed:
    ts, types, valid, ids, columns = data
    columns_held = [(values, validity) for values, validity in columns]
    words, truths = [ts, ids, *(v for v, _ in columns_held)], [valid, *(validity for _, validity in columns_held)]
    words += [] if types is None else [types]
    good = len(columns_held) == width and len(ts) > 0 and all(array.dtype == np.int64 for array in words)
    good &= all(array is None or array.dtype == np.uint8 for array in truths)
    if not good or any(array is not None and array.shape != (len(ts),) for array in (*words, *truths)):
        raise ValueError("events")
    return ts, types, valid, ids, columns_held
