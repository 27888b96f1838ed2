"""Show the live partial matches of a query to a user: a list of records that converts to an Arrow or pandas table.

They are gathered in acep/native/src/session/partial_matches.cpp and acep/runtime/live_partials.py.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from acep.display import fields_text
from acep.errors import check_installed
from acep.events.records import Id
from acep.events.tables import ticks_to_input
from acep.matches.matches import Matches
from acep.matches.partials.partial_columns import NONE, PartialColumns
from acep.matches.partials.shown_partials import partial_line, partial_page, partials_page, partials_text
from acep.matches.zoned_times import has_far_time

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PartialMatch", "PartialMatches"]

LATEST = 2**63 - 1  # the largest time
NUMBERS = ("sequences", "utility")


@dataclass(frozen=True, repr=False)
class PartialMatch:
    """A partial match: a run that is not complete yet. ``str(partial)`` is one line.

    ``query``: the name of the query; that of a single query is "". ``state``: the state of the automaton, as ``acep
    explain`` names it: its number and the variable that was bound last. ``key``: the partition attributes. ``start``,
    ``end``: the times of the first and the last event that is bound. ``until``: the last time at which it can be
    completed, the end of its window; ``None`` without a window of time. ``error``: the total weight of what is missing
    so far. ``bindings``: the event ids of each variable, in stream order. ``sequences``: for how many sequences of
    bound events it stands (``None``: more than 2^63 - 1); the other fields are those of one that began last.
    ``utility``: its utility bucket under a budget, 0 if nothing more is expected of it; ``None``: it has none, as there
    is no budget, or it has sufficed so far.
    """

    query: str
    state: str
    key: dict[str, Any]
    start: Any
    end: Any
    until: Any
    error: int | float
    bindings: dict[str, tuple[Id, ...]]
    sequences: int | None = 1
    utility: int | None = None
    _zoned: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __repr__(self) -> str:
        return fields_text(self)

    def __str__(self) -> str:
        return partial_line(self)

    def _repr_html_(self) -> str:
        return partial_page(self)


class PartialMatches(Sequence[PartialMatch]):
    """The live partial matches of one query, those last that were extended last: a read-only list of
    :class:`PartialMatch`; a slice is again ``PartialMatches``.

    ``total`` is how many there are, if not all are listed (``None``: more than 2^63 - 1). ``query`` is the name of the
    query.
    """

    def __init__(
        self, columns: PartialColumns, like: Matches, names: Sequence[str], *, query: str = "", span: int | None = None
    ) -> None:
        """Hold partial matches. ``like`` are matches of the query, ``names`` those of its states. ``span``: the length
        of its window in ticks, if that is one of time."""
        self._columns = columns
        self._like = like.with_found(columns.records)
        self._names = names
        self._span = span
        self.query = query

    @property
    def total(self) -> int | None:
        """Return how many partial matches there are, also of a slice."""
        return None if self._columns.total == NONE else self._columns.total

    def __len__(self) -> int:
        return len(self._columns)

    def __iter__(self) -> Iterator[PartialMatch]:
        return map(self._partial, range(len(self)))

    @overload
    def __getitem__(self, index: int) -> PartialMatch: ...
    @overload
    def __getitem__(self, index: slice) -> PartialMatches: ...
    def __getitem__(self, index: int | slice) -> PartialMatch | PartialMatches:
        if isinstance(index, slice):
            rows = np.arange(len(self))[index]
            return PartialMatches(self._columns.take(rows), self._like, self._names, query=self.query, span=self._span)
        return self._partial(range(len(self))[operator.index(index)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartialMatches | list) and len(self) == len(other) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def _partial(self, row: int) -> PartialMatch:
        match = self._like[row]
        numbers = (int(getattr(self._columns, name)[row]) for name in NUMBERS)
        sequences, utility = (None if number == NONE else number for number in numbers)
        (until,) = ticks_to_input(self._ends_of_windows(row, row + 1), self._like.schema)
        return PartialMatch(
            query=self.query,
            state=self._names[int(self._columns.states[row])],
            key=match.key,
            start=match.start,
            end=match.end,
            until=until,
            error=match.error,
            bindings=match.bindings,
            sequences=sequences,
            utility=utility,
            _zoned=self._like.form.zoned_names() if has_far_time((until,)) else match._zoned,
        )

    def _ends_of_windows(self, begin: int, stop: int) -> list[int | None]:
        """Return the ticks at which the windows of some partial matches end; ``None``: there is no such time."""
        if self._span is None:
            return [None] * (stop - begin)
        ends = [record.start + self._span for record in self._like.found[begin:stop]]
        return [end if end <= LATEST else None for end in ends]

    def to_arrow(self) -> pa.Table:
        """Return the partial matches as an Arrow table, one row each.

        Columns: ``query`` and ``state`` (texts), ``key`` (struct of the partition attributes), ``start``, ``end`` and
        ``until`` (of the type of the input's time column), ``error`` (int64, or float64 where one is fractional),
        ``bindings`` (map of variable to list of event ids), ``sequences`` and ``utility`` (int64).
        """
        from acep.matches.arrow import partials_table

        texts = {"query": [self.query] * len(self), "state": [self._names[n] for n in self._columns.states.tolist()]}
        numbers = {
            name: [None if number == NONE else number for number in getattr(self._columns, name).tolist()]
            for name in NUMBERS
        }
        return partials_table(self._like, texts, self._ends_of_windows(0, len(self)), numbers)

    def to_pandas(self) -> Any:
        """Return the partial matches as a pandas frame: the columns of :meth:`to_arrow`, ``bindings`` as in a
        :class:`PartialMatch`, and numbers that may be null of the type ``Int64``.

        Raises :class:`EngineError` if pandas is not installed, and :class:`DataError` for a date that pandas cannot
        show.
        """
        check_installed("pandas", "to_pandas()", "pandas")
        from acep.matches.pandas_frames import frame_of

        frame = frame_of(self.to_arrow().drop_columns(["bindings"]))
        frame.insert(7, "bindings", [partial.bindings for partial in self])
        return frame.astype(dict.fromkeys(NUMBERS, "Int64"))

    def to_polars(self) -> Any:
        """Return the partial matches as a polars frame: the columns of :meth:`to_arrow`, without ``key`` where there is
        none; ``bindings`` is a list of structs (``key``: the variable, ``value``: its ids).

        Raises :class:`EngineError` if polars is not installed."""
        check_installed("polars", "to_polars()", "polars")
        import polars as pl

        from acep.matches.arrow import without_maps

        table = without_maps(self.to_arrow())
        return pl.from_arrow(table if self._like.keys else table.drop_columns(["key"]))

    def __repr__(self) -> str:
        return partials_text(self)

    def _repr_html_(self) -> str:
        return partials_page(self)
