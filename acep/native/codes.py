"""Number texts, to convert columns to the 64-bit words of the native core and back (dictionary encoding)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column, column_of_values
from acep.events.pushed_rows import Words
from acep.native import _native
from acep.pattern.expressions import Value
from acep.plan.derive import Derived
from acep.plan.schema import Kind

__all__ = ["FEW", "Codes", "derived_of", "words_of"]

FEW = 10_000  # texts and ids are released only if there are this many more than twice the number kept the last time
FREE = np.iinfo(np.int64).min  # time of a code that is not in use
NEGATIVE_ZERO = np.iinfo(np.int64).min  # as the bits of a double

Ints = npt.NDArray[np.int64]


class Codes:
    """The texts of a stream by their codes. ``texts``: the table in the native core; ``pinned``: the codes of texts
    that stay for good; ``seen``: for each code, the latest time of a batch that had it; ``n_kept``: the number of texts
    after the last release."""

    def __init__(self) -> None:
        self.texts = _native.Texts()
        self.pinned = set[int]()
        self.n_kept = 0
        self.seen = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def bytes(self) -> int:
        """Return the bytes that the texts and their times take."""
        return self.texts.bytes + int(self.seen.nbytes)

    def constant(self, text: str) -> int:
        """Return the code of a text of a query, which is kept for good."""
        code = self.texts.intern(text)
        self.pinned.add(code)
        return code

    def constants(self, texts: Sequence[str]) -> Ints:
        """Return the codes of texts of a query, which are kept for good."""
        return words_of([self.constant(text) for text in texts])

    def words(self, column: Column, now: int) -> Words:
        """Return a column as words, from a batch up to the time ``now``."""
        values: Any = column.values
        if column.kind is Kind.STRING:
            codes = self.codes_of(column, now)
            values = codes[values] if len(codes) else np.zeros(len(values), np.int64)
        elif column.kind is Kind.FLOAT:
            bits = values.view(np.int64)
            # Keys are compared by their bits, and -0.0 equals 0.0.
            values = (values + 0.0).view(np.int64) if (bits == NEGATIVE_ZERO).any() else bits
        return np.ascontiguousarray(values), column.valid

    def codes_of(self, column: Column, now: int) -> Ints:
        """Return the codes of a column's texts, and mark them as in use at the time ``now``."""
        texts: Sequence[str] = column.texts or ()
        used_places: Any = slice(None)
        if len(texts) > len(column.values):  # a dictionary shared by many batches
            is_used = np.zeros(len(texts), np.bool_)
            is_used[column.values] = True
            used_places = np.flatnonzero(is_used)
            texts = [texts[place] for place in used_places.tolist()]
        codes = np.zeros(len(column.texts or ()), np.int64)
        codes[used_places] = used_codes = self.texts.intern_all(texts)
        if self.texts.capacity > len(self.seen):
            self.seen = np.concatenate([self.seen, np.full(self.texts.capacity, FREE)])
        self.seen[used_codes] = now
        return codes

    def column(self, words: Ints, kind: Kind, valid: npt.NDArray[np.uint8] | None = None) -> Column:
        """Return words of the native core as a column."""
        words = np.ascontiguousarray(words)
        if valid is not None:
            valid = None if valid.all() else np.ascontiguousarray(valid)
            words = words if valid is None else np.where(valid == 0, 0, words)
        if kind is Kind.FLOAT:
            return Column(kind, words.view(np.float64), valid)
        if kind is not Kind.STRING:
            return Column(kind, words, valid)
        if len(words) and (words == words[0]).all():
            return Column(kind, np.zeros(len(words), np.int64), valid, self.texts.texts_of(words[:1]))
        begins = np.flatnonzero(np.append(True, words[1:] != words[:-1])[: len(words)])  # matches come key by key
        codes, places = self._number_words(words[begins])
        if len(begins) != len(words):
            places = np.repeat(places, np.diff(np.append(begins, len(words))))
        return Column(kind, places, valid, self.texts.texts_of(codes))

    def _number_words(self, words: Ints) -> tuple[Ints, Ints]:
        """Return the distinct words, rising, and the place of each word among them."""
        capacity = self.texts.capacity
        if capacity > 4 * len(words) or not len(words) or int(words.min()) < 0 or int(words.max()) >= capacity:
            codes, places = np.unique(words, return_inverse=True)
            return codes, places.astype(np.int64)
        # Codes are numbers from 0 on, so that nothing has to be sorted.
        places = np.zeros(capacity, np.int64)
        places[words] = 1
        codes = np.flatnonzero(places)
        places[codes] = np.arange(len(codes))
        return codes, places[words]

    @property
    def crowded(self) -> bool:
        """Return whether there are many texts beyond those that were kept the last time."""
        return len(self.texts) > 2 * self.n_kept + FEW

    def keep(self, used: npt.NDArray[np.uint8], since: int | None) -> None:
        """Keep only the texts that are ``used`` (by code), those seen since a time, if one is given, and the constants
        of queries."""
        stays = used != 0
        stays[list(self.pinned)] = True
        seen = np.concatenate([self.seen, np.full(len(stays), FREE)])[: len(stays)]
        if since is not None:
            stays |= seen >= max(since, FREE + 1)
        self.texts.keep(stays.astype(np.uint8))
        self.seen = np.where(stays, seen, FREE)[: self.texts.capacity]
        self.n_kept = len(self.texts)

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data."""
        codes = range(self.texts.capacity)
        texts = [self.texts.text(code) if self.texts.known(code) else None for code in codes]
        seen = np.concatenate([self.seen, np.zeros(len(texts), np.int64)])[: len(texts)]
        return {"texts": texts, "seen": seen.tolist(), "kept": self.n_kept}

    def load(self, data: Any) -> None:
        """Restore :meth:`dump` in a new session. Raises :class:`ValueError`, :class:`TypeError` or :class:`KeyError`
        for other data."""
        texts = data["texts"]
        for code, text in enumerate(texts):
            if self.texts.intern(f"\0{code}" if text is None else text) != code:
                raise ValueError("texts")
        self.texts.release(words_of([code for code, text in enumerate(texts) if text is None]))
        seen = words_of(data["seen"])
        self.seen = np.concatenate([seen, np.zeros(max(0, len(texts) - len(seen)), np.int64)])
        self.n_kept = int(data["kept"])


def derived_of(column: Column, derived: Derived) -> Column:
    """Return a derived column, computed once for each distinct value."""
    places: npt.NDArray[Any] = column.values
    distinct: list[Value] = [*(column.texts or ())]
    if column.kind is Kind.STRING:
        places = places.astype(np.intp)
    elif column.kind is not Kind.NULL:  # a null column has no values
        sorted_values: Any
        sorted_values, places = np.unique(column.values, return_inverse=True)
        distinct = Column(column.kind, sorted_values).to_list()
    if column.valid is not None:
        places = np.where(column.valid == 0, len(distinct), places)
    results = derived.values_of([*distinct, None])
    return column_of_values(results, derived.kind).take(places)


def words_of(values: Sequence[int]) -> Ints:
    """Return integers as words of the native core."""
    return np.array(values, np.int64)
