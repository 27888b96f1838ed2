"""Match one query over a stream of batches: results come in output order, as soon as they are certain."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from acep.errors import QueryError
from acep.events.batch import Batch
from acep.matches.answer_columns import AnswerColumns
from acep.matches.counted import Counted
from acep.matches.found_columns import FoundColumns
from acep.matches.group_columns import Groups, concatenate_groups, merge_groups
from acep.matches.grouping import group_matches, groups_of_counts
from acep.matches.matches import Bundle, Matches, Point
from acep.matches.records import Found
from acep.matches.report import Report
from acep.matching.one_table import PART
from acep.pattern.query_arguments import Queries
from acep.runtime.options import StreamOptions, ThreadKeywords
from acep.runtime.stream import merge_matches
from acep.tables.table_stream import TableStream

__all__ = ["Passing", "QueryResults"]

SORT_LIMIT = 1 << 22
"""The most bound events held back to sort the matches of one match point; beyond it, each part is sorted by itself."""


class Passing:
    """A query over the batches of a stream, in order of time. ``arrow`` is the schema of the stream, of ``rows``
    events in all; ``output`` is ``"matches"``, ``"points"``, ``"bundles"``, ``"count"`` or ``"exists"``; ``options``
    are those of :func:`acep.match`.

    :meth:`push` and :meth:`finish` yield, in parts, results that are certain and that nothing can precede any more:
    ``Matches``, columns of points or bundles, how many more there are for a count, or whether there is one.
    """

    def __init__(
        self,
        query: Queries,
        arrow: pa.Schema,
        rows: int,
        *,
        output: str,
        counts: bool,
        **options: Unpack[ThreadKeywords],
    ) -> None:
        self.tables = tables = TableStream(
            query, StreamOptions.from_keywords("Passing.__init__", options, ThreadKeywords)
        )
        if output == "exists" and tables.limits is not None:
            raise QueryError(
                "whether there is a match keeps to no budget of work, time or memory", code="option_invalid"
            )
        if output == "exists":
            tables.use_one_thread("the work stops at the first match")
        self.output, self.counts = output, counts
        tables.is_file = output != "exists"  # that is known at the first match
        tables.prepare(arrow if rows else tables.choose_types(arrow), output, counts=counts)
        self.spent = self.longest = 0.0  # seconds of the processor in all, and of the longest batch
        self._first: int | None = None
        self._last = 0
        self._has_match = False  # where only this is asked
        self._results = QueryResults(tables, 0, output, counts=counts)

    @property
    def like(self) -> Matches:
        """Return an empty result of this query."""
        return self.tables.matches(0, [])

    @property
    def fractional(self) -> bool:
        """Return whether an error may be a fraction."""
        return self.tables.plans[0].automaton.costs.scale != 1

    @property
    def span(self) -> float | None:
        """Return the seconds from the first to the last event by their clock; ``None`` if its ticks have no length."""
        schema = self.tables.schema
        if schema is None or schema.tick_ns is None or self._first is None:
            return None
        return float((self._last - self._first) * schema.tick_ns) / 1e9

    @property
    def report(self) -> Report:
        """Return the report of the work so far."""
        return self.tables.report

    def push(self, table: pa.Table) -> Iterator[Any]:
        """Push events and yield results; raises as :meth:`acep.Matcher.push` does. Read all before the next call."""
        tables, stream = self.tables, self.tables.stream
        assert stream is not None
        started, processor = time.perf_counter(), time.thread_time()
        table = tables.without_repeated(table)
        if not table.num_rows:
            return
        batch = tables.batch(table, unique=False)
        self._first = int(batch.ts[0]) if self._first is None else self._first
        self._last = int(batch.ts[-1])
        if self.output == "exists":  # the stream stops at the first match
            self._has_match = self._has_match or self._has_match_in(batch)
            yield self._has_match
        elif self.output == "matches" and tables.limits is None:
            for block in stream.blocks(batch):
                yield self._results_of(block)
        else:
            results = self._results_of(stream.push(batch))
            processor_seconds, wall_seconds = time.thread_time() - processor, time.perf_counter() - started
            stream.record_seconds(processor_seconds, wall_seconds)
            self.spent, self.longest = self.spent + processor_seconds, max(self.longest, wall_seconds)
            tables.seconds += wall_seconds
            yield results
        tables.rows += table.num_rows

    def finish(self) -> Iterator[Any]:
        """End the stream and yield the remaining results."""
        yield self._has_match or self._results_of(self.tables.end(), last=True)

    def _results_of(self, matches_by_query: Sequence[Sequence[Found]], *, last: bool = False) -> Any:
        """Return the results that are certain after a call of the stream; ``last``: after its last one."""
        if self.output == "exists":
            return self.tables.has_any(matches_by_query[0])
        assert self.tables.stream is not None
        low = None if last else self.tables.stream.earliest_open_end(0)
        return self._results.take(matches_by_query[0], low, last=last)

    def _has_match_in(self, batch: Batch) -> bool:
        """Return whether there is a match by the end of a batch; the work stops at the first one."""
        return any(self.tables.has_match(part) for part in batch.parts(PART))


class QueryResults:
    """The results of query number ``number`` of a stream, as matches come: those that are certain and that nothing can
    precede any more. ``output`` is ``"matches"``, ``"points"``, ``"bundles"`` or ``"count"``."""

    def __init__(self, tables: TableStream, number: int, output: str, *, counts: bool = True) -> None:
        self.tables, self.number, self.output, self.counts = tables, number, output, counts
        self._pending: list[Sequence[Found]] = []
        self._groups = _Groups(by="end" if output == "points" else "bundle")

    def take(self, matches: Sequence[Found], low: int | None, *, last: bool = False) -> Any:
        """Add matches, or what the stream has counted in their place. Return ``Matches``, columns of points or
        bundles, or how many more there are for a count, where no match will end before the tick ``low`` (``None``: it
        is not known); with ``last`` all that are left."""
        assert self.tables.stream is not None
        counted = self.tables.stream.take_counted(self.number)
        if self.output == "count":
            return counted if isinstance(counted, int) else len(matches)
        if self.output == "matches":
            return self.tables.matches(self.number, self._release_matches(matches, low, last=last))
        by = self._groups.by
        # Matches of one time may come in several batches; those bound first make the first group of that time.
        if isinstance(counted, Counted):
            self._groups.add(groups_of_counts(counted, by))
        else:
            self._groups.add(group_matches(self._release_matches(matches, low, last=last), by))
        return self._answers(self._groups.take(low, self._span(), last=last))

    def _release_matches(self, matches: Sequence[Found], low: int | None, *, last: bool) -> Sequence[Found]:
        """Return in order those of the held matches that no other match can precede any more."""
        if len(matches):
            self._pending.append(matches)
        if last:
            due, self._pending = merge_matches(self._pending), []
            return due
        if low is None or not self._pending:
            return []
        cuts = [_split_at(part, low) for part in self._pending]
        parts, self._pending = [before for before, _ in cuts], [after for _, after in cuts if len(after)]
        if sum(map(_weight, self._pending)) > SORT_LIMIT:
            parts, self._pending = parts + self._pending, []
        return merge_matches([part for part in parts if len(part)])

    def _span(self) -> int | None:
        """Return how far apart two match points of a bundle may be; ``None`` where time does not decide it."""
        window = self.tables.plans[self.number].window
        return 0 if self._groups.by == "end" else None if window.counted else window.span

    def _answers(self, groups: Groups) -> AnswerColumns[Any]:
        is_point = self.output == "points"
        self.tables.count_groups(self.output, len(groups))
        return AnswerColumns(
            Point if is_point else Bundle,
            groups,
            self.tables.plans[self.number].keys,
            self.tables.schema_of(self.number),
            counts=self.counts and not is_point,
        )


def _weight(matches: Sequence[Found]) -> int:
    """Return the approximate memory of matches, in bound events."""
    return len(matches.ids) + 8 * len(matches) if isinstance(matches, FoundColumns) else 100 * len(matches)


def _split_at(matches: Sequence[Found], low: int) -> tuple[Sequence[Found], Sequence[Found]]:
    """Return the matches that end before a time, and the others."""
    if not isinstance(matches, FoundColumns):
        return [match for match in matches if match.end < low], [match for match in matches if match.end >= low]
    before = matches.end < low
    if before.all():
        return matches, []
    if not before.any():
        return [], matches
    return matches.take(np.flatnonzero(before)), matches.take(np.flatnonzero(~before))


class _Groups:
    """Match points, or bundles, that may still grow or that another one may still precede."""

    def __init__(self, by: str) -> None:
        self.by = by
        self._open = Groups.from_records([])

    def add(self, groups: Groups) -> None:
        """Add groups to those that are open."""
        self._open = merge_groups(concatenate_groups([self._open, groups]))

    def take(self, low: int | None, span: int | None, *, last: bool = False) -> Groups:
        """Remove and return the groups that are complete and first in order; no match will end before ``low``."""
        n_complete = len(self._open) if last else 0
        if not last and low is not None and span is not None:
            may_grow = np.append(self._open.last >= max(low - span, -(2**63)), True)
            n_complete = int(np.argmax(may_grow))
        complete, self._open = self._open[:n_complete], self._open[n_complete:]
        return complete
