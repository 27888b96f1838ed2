"""Keep the latest events of a stream in the form that the native core takes, so that they can be matched again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.pushed_rows import Pushed, rows_of, together

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
        held = [(values.copy(), None if known is None else known.copy()) for values, known in columns]
        own = None if types is None else types.astype(np.int64)
        self.open.append((ts.copy(), own, None if valid is None else valid.copy(), ids.copy(), held))

    def cut(self, before: int) -> None:
        """End the present piece, and drop the pieces that end before a time."""
        if self.open:
            self.pieces.append(together(self.open))
            self.open = []
        while self.pieces and int(self.pieces[0][0][-1]) < before:
            self.floor = int(self.pieces.popleft()[0][-1]) + 1

    def of(self, key: tuple[int, ...], first: int, last: int) -> Pushed | None:
        """Return the events of a partition (words of its attributes) with ``first <= ts <= last``, or ``None``."""
        found = [rows_of(piece, at) for piece, at in self._at(key, first, last)]
        return together(found) if found else None

    def count(self, key: tuple[int, ...], first: int, last: int) -> int:
        """Return how many events :meth:`of` would return."""
        return sum(len(at) for _, at in self._at(key, first, last))

    def _at(self, key: tuple[int, ...], first: int, last: int) -> Iterator[tuple[Pushed, npt.NDArray[np.intp]]]:
        for piece in self.pieces:
            ts = piece[0]
            if int(ts[-1]) < first or int(ts[0]) > last:
                continue
            here = (ts >= first) & (ts <= last)
            for place, word in zip(self.keys, key, strict=True):
                values, known = piece[4][place]
                here &= values == word
                if known is not None:
                    here &= known != 0
            at = np.flatnonzero(here)
            if len(at):
                yield piece, at

    def dump(self) -> dict[str, Any]:
        """Return the state as plain data with arrays."""
        return {
            "floor": self.floor,
            "pieces": [_plain(one) for one in self.pieces],
            "open": [_plain(one) for one in self.open],
        }

    def load(self, data: Mapping[str, Any], columns: int) -> None:
        """Restore :meth:`dump`, with so many ``columns``. Raises :class:`ValueError`, :class:`KeyError` or
        :class:`TypeError` for other data."""
        self.floor = None if data["floor"] is None else int(data["floor"])
        self.pieces = deque(_piece(one, columns) for one in data["pieces"])
        self.open = [_piece(one, columns) for one in data["open"]]


def _plain(piece: Pushed) -> list[Any]:
    ts, types, valid, ids, columns = piece
    return [ts, types, valid, ids, [list(column) for column in columns]]


def _piece(data: Any, width: int) -> Pushed:
    ts, types, valid, ids, columns = data
    held = [(values, known) for values, known in columns]
    words, truths = [ts, ids, *(v for v, _ in held)], [valid, *(known for _, known in held)]
    words += [] if types is None else [types]
    good = len(held) == width and len(ts) > 0 and all(one.dtype == np.int64 for one in words)
    good &= all(one is None or one.dtype == np.uint8 for one in truths)
    if not good or any(one is not None and one.shape != (len(ts),) for one in (*words, *truths)):
        raise ValueError("events")
    return ts, types, valid, ids, held
