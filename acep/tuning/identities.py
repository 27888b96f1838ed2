"""Tell matches apart by the events that they bind, so that the matches of two queries can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.matches.found_columns import FoundColumns
from acep.matches.records import Found
from acep.pattern.tree import Query
from acep.runtime.options import StreamOptions
from acep.tables.table_stream import TableStream

__all__ = ["MAX_COMPARED", "MatchIdentities", "identities_of"]

MAX_COMPARED = 200_000
"""The most matches that are compared."""

PART = 1024
PRIMES = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class MatchIdentities:
    """The matches of a query: a hash of each, uint64[n] in rising order; and the ``longest`` of them from its first to
    its last event, in ticks."""

    hashes: Words
    longest: int

    def count_shared(self, identities: MatchIdentities) -> int:
        """Return how many matches are those of another query, too."""
        return len(np.intersect1d(self.hashes, identities.hashes, assume_unique=True))


def identities_of(table: pa.Table, query: Query, columns: Mapping[str, Any], engine: str) -> MatchIdentities:
    """Match a table, and return the identities of its matches.

    >>> import acep
    >>> table = pa.table({"ts": [1, 2, 3], "type": ["a", "b", "b"]})
    >>> columns = {"ts": "ts", "type": "type", "seq": None, "id": None, "unit": None}
    >>> both = identities_of(table, acep.parse("PATTERN SEQ(a p, b q) WITHIN 5"), columns, "auto")
    >>> last = identities_of(table, acep.parse("PATTERN SEQ(a p, b q) WHERE q.ts > 2 WITHIN 5"), columns, "reference")
    >>> len(both.hashes), both.longest, both.count_shared(last)
    (2, 2, 1)
    """
    stream = TableStream(query, StreamOptions(**{**columns, "id": None}, engine=engine))
    stream.prepare(table.schema)
    assert stream.stream is not None
    parts, longest = [np.zeros(0, np.uint64)], 0
    for part in stream.batch(table).parts(PART):
        (matches,) = stream.stream.push(part)
        parts.append(_hashes(matches))
        longest = max(longest, _longest(matches))
    (matches,) = stream.stream.finish()
    parts.append(_hashes(matches))
    return MatchIdentities(np.unique(np.concatenate(parts)), max(longest, _longest(matches)))


def _hashes(matches: Sequence[Found]) -> Words:
    """Return a hash of the events of each match with the names of their variables, uint64[n]."""
    if not len(matches):
        return np.zeros(0, np.uint64)
    if isinstance(matches, FoundColumns):
        ids, variables, offsets = matches.ids, matches.vars, matches.offsets
        names = [_word(name) for name in matches.variables]
    else:
        trails = [match.trail for match in matches]
        ids = np.array([identity for trail in trails for identity, _ in trail], np.int64)
        distinct = [*dict.fromkeys(variable for trail in trails for _, variable in trail)]
        names = [_word(name) for name in distinct]
        variables = np.array([distinct.index(variable) for trail in trails for _, variable in trail], np.int64)
        offsets = np.cumsum([0, *map(len, trails)])
    words = np.asarray(ids, np.int64).astype(np.uint64) * np.uint64(PRIMES[0]) ^ np.array(names, np.uint64)[variables]
    return np.add.reduceat(_mix_bits(words), offsets[:-1])


def _word(name: str) -> int:
    """Return a number for a name: the same in each process."""
    number = len(name)
    for letter in name:
        number = (number * PRIMES[1] + ord(letter)) % 2**64
    return number


def _mix_bits(words: Words) -> Words:
    """Return each word with its bits mixed, so that sums of a few tell sets of words apart."""
    with np.errstate(over="ignore"):
        words = (words ^ words >> np.uint64(33)) * np.uint64(PRIMES[1])
        words = (words ^ words >> np.uint64(29)) * np.uint64(PRIMES[2])
    return words ^ words >> np.uint64(32)


def _longest(matches: Sequence[Found]) -> int:
    if isinstance(matches, FoundColumns):
        return int((matches.end - matches.start).max()) if len(matches) else 0
    return max((match.end - match.start for match in matches), default=0)
