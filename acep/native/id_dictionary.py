"""Number event ids that are texts: the native core uses the numbers, which are translated back here."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["IdDictionary"]

FEW = 10_000  # ids are released only if there are this many more than twice the number kept the last time
TEXT = 57  # bytes of a Python text besides its letters

Ints = npt.NDArray[np.int64]
Objects = npt.NDArray[np.object_]


@dataclass(frozen=True)
class Piece:
    """Ascending numbers with their texts, the latest time of these events, and the bytes that all of it takes."""

    numbers: Ints
    texts: Objects
    latest: int
    size: int

    @classmethod
    def from_texts(cls, numbers: Ints, texts: Objects, latest: int) -> Piece:
        return cls(numbers, texts, latest, sum(map(len, texts)) + (16 + TEXT) * len(texts))

    def __add__(self, later: Piece) -> Piece:
        numbers, texts = (
            np.concatenate([getattr(piece, name) for piece in (self, later)]) for name in ("numbers", "texts")
        )
        return Piece(numbers, texts, later.latest, self.size + later.size)


@dataclass
class IdDictionary:
    """Numbers and their texts. A piece less than twice as long as the next one is merged with it, so pieces are few,
    however small the batches are, and no text is moved often. ``n_kept``: how many numbers there were after the last
    release."""

    pieces: deque[Piece] = field(default_factory=deque)
    n_kept: int = 0

    def __len__(self) -> int:
        return sum(len(piece.numbers) for piece in self.pieces)

    @property
    def crowded(self) -> bool:
        """Return whether there are many numbers beyond those that were kept the last time."""
        return len(self) > 2 * self.n_kept + FEW

    @property
    def bytes(self) -> int:
        """Return the bytes that numbers and texts take."""
        return sum(piece.size for piece in self.pieces)

    def add(self, first: int, texts: Sequence[str], latest: int) -> None:
        """Add the texts of the numbers from ``first`` on, of events up to the time ``latest``."""
        if not len(texts):
            return
        piece = Piece.from_texts(np.arange(first, first + len(texts)), np.array(texts, dtype=object), latest)
        while self.pieces and len(self.pieces[-1].numbers) < 2 * len(piece.numbers):
            piece = self.pieces.pop() + piece
        self.pieces.append(piece)

    def texts_of(self, numbers: Ints) -> Objects:
        """Return the texts of known numbers.

        >>> names = IdDictionary()
        >>> for first in range(7):
        ...     names.add(first, ["abcdefg"[first]], latest=first)
        >>> "".join(names.texts_of(np.array([6, 0, 3, 4]))), len(names.pieces)
        ('gade', 3)
        """
        texts = np.empty(len(numbers), dtype=object)
        last_numbers = np.array([piece.numbers[-1] for piece in self.pieces], np.int64)
        piece_indexes = np.searchsorted(last_numbers, numbers)
        for index in np.unique(piece_indexes).tolist():
            in_piece, piece = piece_indexes == index, self.pieces[index]
            texts[in_piece] = piece.texts[np.searchsorted(piece.numbers, numbers[in_piece])]
        return texts

    def keep(self, numbers: Ints, since: int | None) -> None:
        """Remove all numbers but these, and those of events since a time, if one is given."""
        pieces = deque[Piece]()
        for piece in self.pieces:
            stays = np.isin(piece.numbers, numbers)
            if since is not None and piece.latest >= since:
                stays[:] = True
            if stays.any():
                pieces.append(Piece.from_texts(piece.numbers[stays], piece.texts[stays], piece.latest))
        self.pieces, self.n_kept = pieces, sum(len(piece.numbers) for piece in pieces)

    def dump(self) -> list[Any]:
        """Return the state as JSON-like data."""
        return [[_pack(piece.numbers), piece.texts.tolist(), piece.latest] for piece in self.pieces]

    def load(self, data: Any) -> None:
        """Restore :meth:`dump`. Raises :class:`ValueError` or :class:`TypeError` for other data."""
        for packed_numbers, texts, latest in data:
            numbers = (
                np.arange(packed_numbers, packed_numbers + len(texts))
                if isinstance(packed_numbers, int)
                else np.array(packed_numbers, np.int64)
            )
            if len(numbers) != len(texts):
                raise ValueError("names")
            self.pieces.append(
                Piece.from_texts(numbers, np.array([str(text) for text in texts], dtype=object), int(latest))
            )


def _pack(numbers: Ints) -> int | list[int]:
    """Return ascending numbers, or only the first one where they are consecutive."""
    is_consecutive = len(numbers) > 0 and int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1
    return int(numbers[0]) if is_consecutive else numbers.tolist()
