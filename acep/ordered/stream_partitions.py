"""Number the partitions of a stream, with what is known of each: where its kept events begin, and its newest bundle."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.matches.found_columns import FoundColumns
from acep.ordered.next_events import with_room
from acep.pattern.expressions import Value

__all__ = ["StreamPartitions"]

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]
Key = tuple[Value, ...]


class StreamPartitions:
    """The partitions so far, each with a code. By code: ``sizes`` are the positions of the next events,
    ``begins`` those of the first ones that are kept. ``bundles``: the newest bundle, and the place of its last match
    point."""

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self.code_of: dict[Key, int] = {}
        self.sizes, self.begins = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.bundles: dict[int, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self.keys)

    def codes(self, keys: Sequence[Key]) -> Ints:
        """Return the codes of partitions, which are new where they are not known."""
        codes = [self.code_of.setdefault(key, len(self.code_of)) for key in keys]
        if len(self.code_of) > len(self.keys):
            self.keys = [*self.code_of]
            room: Any = with_room
            self.sizes, self.begins = (room(array, len(self.keys), 0) for array in (self.sizes, self.begins))
        return np.array(codes, np.int64)

    def chain(self, matches: FoundColumns, codes: Ints, places: Ints, span: int | None) -> None:
        """Let the first matches of each partition go on with its newest bundle, and note the last one. ``codes``: the
        partitions of matches, those of each one after another; ``places``: those of their match points."""
        begins = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
        of_groups, edges = codes[begins].tolist(), [*begins.tolist(), len(codes)]
        bundles, points = matches.bundle.tolist(), places.tolist()
        for code, (begin, end) in zip(of_groups, pairwise(edges), strict=True):
            newest = self.bundles.get(code)
            if newest is not None and (span is None or points[begin] - newest[1] <= span):
                first = bundles[begin]
                size = next((i for i in range(begin, end) if bundles[i] != first), end) - begin
                bundles[begin : begin + size] = [newest[0]] * size
            self.bundles[code] = bundles[end - 1], points[end - 1]
        matches.bundle[:] = bundles

    def without_idle(self, ts: int | None, span: int | None, *, keeps_sizes: bool) -> tuple[Bits, StreamPartitions]:
        """Return which partitions stay, and these with new codes: the others are as new ones are. None of their events
        is kept, and no match can go on with their newest bundle, as no event comes before ``ts`` (``None``: the window
        counts events). ``keeps_sizes``: the positions of events are their ids, so that all stay."""
        size = len(self)
        stays = np.full(size, keeps_sizes) | (self.begins[:size] < self.sizes[:size])
        for code, (_, place) in self.bundles.items():
            following = int(self.sizes[code]) if ts is None else ts
            stays[code] |= span is None or following - place <= span
        partitions = StreamPartitions()
        codes = np.flatnonzero(stays)
        partitions.codes([self.keys[code] for code in codes.tolist()])
        partitions.sizes[: len(codes)], partitions.begins[: len(codes)] = self.sizes[codes], self.begins[codes]
        numbers = np.cumsum(stays) - 1
        partitions.bundles = {int(numbers[code]): newest for code, newest in self.bundles.items() if stays[code]}
        return stays, partitions

    def dump(self) -> Any:
        """Return the state as plain data."""
        size = len(self)
        return {
            "keys": [list(key) for key in self.keys],
            "sizes": self.sizes[:size],
            "begins": self.begins[:size],
            "bundles": [[code, *newest] for code, newest in self.bundles.items()],
        }

    @classmethod
    def from_state(cls, data: Any, width: int) -> StreamPartitions:
        """Restore the state of :meth:`dump`; keys have ``width`` values. Raises :class:`ValueError`,
        :class:`LookupError` or :class:`TypeError` for other data."""
        partitions = cls()
        keys = [tuple(key) for key in data["keys"]]
        if len(set(keys)) < len(keys) or any(len(key) != width for key in keys):
            raise ValueError("keys")
        partitions.codes(keys)
        for name in ("sizes", "begins"):
            words = data[name]
            if words.dtype != np.int64 or words.shape != (len(keys),) or (words < 0).any():
                raise ValueError(name)
            getattr(partitions, name)[: len(keys)] = words
        bundles = {int(code): (int(bundle), int(place)) for code, bundle, place in data["bundles"]}
        if any(not 0 <= code < len(keys) for code in bundles):
            raise ValueError("bundles")
        partitions.bundles = bundles
        return partitions
