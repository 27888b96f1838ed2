"""Match a MATCH_RECOGNIZE clause over a stream: what ``acep.Matcher`` is for a clause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from acep.errors import QueryError
from acep.events.frames import to_table
from acep.events.table_casts import with_casts
from acep.matches.report import Report
from acep.row_patterns.match_rows import form_of
from acep.runtime.options import MatcherKeywords, StreamOptions
from acep.tables.clause_tables import ClauseTables

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ClauseMatcher"]


class ClauseMatcher:
    """A clause MATCH_RECOGNIZE over a stream that comes batch by batch (docs/reference/sql.md#streams).

    The methods are those of :class:`acep.Matcher`. Results are rows of the clause, in the form in which the last batch
    came. The first key of ORDER BY is the time column. ``report.matches`` counts rows of the result.
    """

    def __init__(self, query: str, **options: Unpack[MatcherKeywords]) -> None:
        self._clause = ClauseTables(query, StreamOptions.from_keywords("Matcher.__init__", options, MatcherKeywords))
        self.query = query
        self._untyped: pa.Table | None = None  # the columns of the result, before those of the rows have types

    @property
    def report(self) -> Report:
        """Return the report of the work done so far."""
        return self._clause.report

    def push(self, batch: Any) -> Any:
        """Feed rows; return the rows of the result that no later row can change.

        Raises :class:`DataError`, with nothing of the batch taken in, if its rows are older than earlier ones or its
        columns do not fit those of the first batch.
        """
        table = with_casts(to_table(batch), self._clause.casts)
        result = self._clause.push(table, form_of(batch))
        if self._clause.revised is None:
            untyped = self._clause.untyped_result(table.schema)
            self._untyped = self._untyped if untyped is None else untyped
        return self._give(result)

    def advance(self, ts: Any, key: Mapping[str, Any] | None = None, type: str | Iterable[str] | None = None) -> Any:
        """Declare that no row at or before the time ``ts`` will come; return the rows that are decided now."""
        return self._give(self._clause.advance(ts, key, type))

    def blocks(self, batch: Any) -> Iterator[Any]:
        """Yield what :meth:`push` returns."""
        yield self.push(batch)

    def finish_blocks(self) -> Iterator[Any]:
        """Yield what :meth:`finish` returns."""
        yield self.finish()

    def finish(self) -> Any:
        """End the stream; return the rows of the result that waited for its end."""
        return self._give(self._clause.end())

    def _give(self, result: pa.Table) -> Any:
        """Return a result in the form in which the last rows came, with the columns that are known."""
        is_untyped = self._clause.revised is None and self._untyped is not None
        return self._clause.give(self._untyped if is_untyped else result)

    @property
    def final(self) -> Any:
        """Return the time up to which rows are final, in the form of the time column; ``None``: it is not known."""
        return self._clause.final

    @property
    def held(self) -> int | None:
        """Return the number of rows that wait until they are final; ``None`` where rows come in order."""
        arrivals = self._clause.disordered
        return None if arrivals is None else len(arrivals)

    @property
    def gap(self) -> int | None:
        """Return the number of ``seq`` that is waited for; ``None``: none is."""
        arrivals = self._clause.disordered
        return None if arrivals is None else arrivals.gap

    @property
    def late(self) -> pa.Table | None:
        """Return the rows of the last push that came too late; ``None`` where rows come in order."""
        arrivals = self._clause.disordered
        return None if arrivals is None else arrivals.late

    def partial_matches(self, *_: Any, **__: Any) -> Any:
        """Raise :class:`QueryError`: a clause has no partial matches."""
        raise QueryError("partial matches are of queries, and this is a clause", code="option_invalid")

    def change(self, *_: Any, **__: Any) -> Any:
        """Raise :class:`QueryError`: a clause does not change."""
        raise QueryError("a clause does not change", hint="make a new Matcher", code="query_change")

    replace = revise = change

    def snapshot(self) -> bytes:
        """Return the state so far, as bytes for :meth:`restore`."""
        return self._clause.snapshot()

    def restore(self, data: bytes) -> None:
        """Continue from a snapshot of a Matcher with the same clause and options.

        Raises :class:`SnapshotError`, and keeps the present state, if the bytes are damaged or of another clause.
        """
        self._clause = self._clause.restore(data)
