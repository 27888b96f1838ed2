"""A bucket: the matching state of all keys that share a hash. It processes Arrow tables and can be stored as bytes.

Batch and streaming use the same bucket. It holds rows back until no earlier ones can come, runs the engine on them in
stream order, and returns rows of the result.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.arrivals.hold_back import HoldBack
from acep.errors import DataError, QueryError, SnapshotError
from acep.events.columns import column_of
from acep.events.fields import repeat_error
from acep.events.tables import batch_of
from acep.events.times import value_of, value_text
from acep.matches.counted import Counted
from acep.matches.found_columns import taken_back
from acep.matches.records import Counts, Found
from acep.plan.compile import Plan
from acep.plan.schema import Kind
from acep.runtime.stream import Stream
from acep.runtime.stream_parts import StreamParts, is_state_of_parts
from acep.storage.frame import digest
from acep.storage.snapshot import seal, unseal
from acep.streaming.duplicates import find_repeats
from acep.streaming.job import EXACT, Job, Pass
from acep.streaming.pace import BatchPace
from acep.streaming.query_versions import NewVersion, RunningQueries
from acep.streaming.results import (
    WaitingGroup,
    WaitingGroups,
    change_rows,
    count_matches,
    group_rows,
    late_rows,
    match_rows,
    without_pairs,
)
from acep.streaming.revised_rows import RevisedRows
from acep.streaming.totals import MAX_COUNT, Totals

__all__ = ["Bucket"]

MAGIC = b"ACEPBUCK"
FORMAT = 2
"""Format version of the state of a bucket; version 1, which had a slower checksum, is read. A change of the format must
raise it and add states of the new format to tests/golden/state, beside those of earlier formats
(tests/spark/test_golden_states.py)."""
HEAD = struct.Struct("<8sH16sQQQ")
"""Magic, format version, checksum of everything after it, and the lengths of the three parts."""
SUMMED = struct.calcsize("<8sH16s")  # offset of the first byte that the checksum covers

ANEW = "go on with the acep that wrote it, or begin anew, with a new checkpointLocation"


class Bucket:
    """The state of one bucket of ``job``, for the queries of the pass ``part``.

    In a batch (``is_batch``) rows under a budget are returned at the end, so that the column ``exact`` covers the whole
    bucket. ``engine`` is a snapshot of the stream to go on with, and ``versions`` those of its queries, if they may
    change.
    """

    def __init__(
        self, job: Job, part: Pass, *, is_batch: bool = False, engine: bytes | None = None, versions: Any = None
    ) -> None:
        self.job, self.is_batch = job, is_batch
        self.waiting: list[tuple[int, pa.Table]] | None = [] if is_batch and job.budget is not None else None
        self.job_plans = job.plans
        self.plans: tuple[Plan, ...] = tuple(self.job_plans[number] for number in part.queries)
        self.part = part
        self.queries = RunningQueries(job.queries, job.names, job.schema, job.attributes) if job.dynamic else None
        if self.queries is not None and versions is not None:
            self.queries.load(versions)
        self.columns = tuple(sorted({column for plan in self.plans for column in plan.columns}))
        self.stream = self._make_stream(engine)
        order_by = [job.schema.seq] if job.schema.seq is not None else []
        self.hold_back = HoldBack(job.schema.ts, order_by, job.schema.tick_ns or 1)
        grouped = job.output in ("points", "bundles") and not job.revised
        current_plans = map(self._current_plan, part.queries)
        self.groups = [WaitingGroups(plan, job.output == "bundles") for plan in current_plans] if grouped else []
        self.totals = Totals(queries=[Counts() for _ in job.names])
        self.refused: list[pa.Table] = []  # late rows that are yet to be given, if the job gives them
        self.changed: list[pa.Table] = []  # rows of queries that changed for events before, yet to be given
        self.ended = False
        self._checked = 0  # rows that are held and were compared with those before
        self.mostly_late = False  # of the last micro-batch with rows; not part of the state
        self.pace = BatchPace.from_budget(job.budget, job.buckets, job.schema.tick_ns)
        self.counts_before = (0, 0, 0.0, 0)  # touches, shed, seconds of learning and matches before this micro-batch
        self.epochs = 0  # that end in this micro-batch

    def _make_stream(self, engine: bytes | None) -> Stream | RevisedRows | StreamParts:
        job, options = self.job, (self.job.engine, self.job.output, self.job.limits)
        first = None if self.queries is None else self.plans
        plans = tuple(map(self._current_plan, self.part.queries))
        if engine is not None and job.revised:
            return RevisedRows(job, plans, self.part.keys, engine, first)
        if engine is not None and is_state_of_parts(engine):
            return StreamParts(plans, self.part.keys, engine, *options, first, finer=job.finer)
        if engine is not None:
            return Stream.restore(plans, engine, *options, first=first, finer=job.finer)
        first_plans = first or plans
        stream = (
            RevisedRows(job, first_plans, self.part.keys)
            if job.revised
            else Stream(first_plans, *options, finer=job.finer)
        )
        for index, plan in enumerate(plans if first is not None else ()):
            stream.change(index, plan)
        return stream

    def _current_plan(self, number: int) -> Plan:
        """Return the plan of a query with all versions so far."""
        return self.job_plans[number] if self.queries is None else self.queries.plan(number)

    def replace(self, new_versions: Sequence[NewVersion], since: int | None, final: int | None) -> int:
        """Replace queries by newer versions, valid from the tick ``since`` on (``None``: from the beginning), or where
        matches may be revised from an earlier one that a version gives, if no event from it on is final: those before
        the tick ``final`` are (``None``: none is). Return the number of partial matches that go on.

        Raises :class:`QueryError` or :class:`DataError`, with nothing replaced.
        """
        if self.ended:
            return 0
        if self.queries is None:
            raise QueryError("the queries of this job do not change", hint="make the job dynamic", code="query_change")
        certain = self.stream.certain if isinstance(self.stream, RevisedRows) else self.hold_back.released
        changed, went_on = self.queries.take(new_versions, since, certain, self.job.earliest_since(final)), 0
        matches_by_query = list[Sequence[Found]]()
        for index, number in enumerate(self.part.queries):
            matches_by_query.append([])
            if number not in changed:
                continue
            plan, earliest = self._current_plan(number), changed[number]
            if earliest is None:
                self.stream.change(index, plan)
            else:
                assert isinstance(self.stream, RevisedRows)
                matches_by_query[index] = self.stream.change_since(index, plan, earliest)
            if self.groups:
                self.groups[index].change(plan)
            went_on += self.stream.live_of(index)
        if any(map(len, matches_by_query)):
            self.changed += self._result_tables(matches_by_query, lambda groups: [])
        return went_on

    def begin(self, now: int) -> None:
        """Start the accounting of a micro-batch that began at ``now``, in milliseconds, a time that is the same when
        the micro-batch is retried."""
        if self.pace is not None:
            learning, walked = self._learning_so_far()
            self.counts_before = self.totals.sum("touches"), self._n_given_up, learning, walked
            self.epochs = 0
            self.pace.begin(now)

    def end(self) -> None:
        """Finish the accounting of a micro-batch."""
        self._count()
        if self.pace is not None:
            work, shed, learning, walked = self.counts_before
            touches = self.totals.sum("touches") - work
            lost = self._n_given_up - shed
            learned, walked_now = self._learning_so_far()
            matches = max(0, walked_now - walked)
            self.pace.end(touches, lost, self.epochs, max(0.0, learned - learning), matches=matches)

    @property
    def _n_given_up(self) -> int:
        """Return how many partial matches and events, and matches of match points, were given up so far."""
        return self.totals.sum("shed") + self.totals.sum("withheld")

    def _learning_so_far(self) -> tuple[float, int]:
        """Return the seconds of learning, and the matches made, since the stream was made or restored."""
        return (self.stream.learning, self.stream.walked) if isinstance(self.stream, Stream) else (0.0, 0)

    def add(self, rows: pa.Table, before: int | None = None, latest: int | None = None) -> None:
        """Add rows. Those with ``ts < before`` or ``ts > latest`` (ticks), and all after the end, are only counted."""
        if self.ended:
            self.totals.late += rows.num_rows
            self._refuse(rows)
            return
        already = self.hold_back.ahead
        late = self.hold_back.add(rows, before, latest)
        ahead = self.hold_back.ahead - already
        self.totals.late += late
        self._refuse(self.hold_back.refused)
        self.totals.ahead += ahead
        self.totals.events += rows.num_rows - late - ahead

    def _leave_out_repeats(self) -> None:
        """Leave out the rows that bring an event again, among those that came since the last call. Raises
        :class:`DataError` for one that does, if it is refused."""
        job, waiting = self.job, self.hold_back.rows
        if job.duplicates is None or job.op is not None or waiting is None or len(waiting[1]) == self._checked:
            return
        rows, ticks = waiting
        is_repeated, keys = np.zeros(len(ticks), bool), self.part.keys
        if self.is_batch:
            # The rows of a batch are in order: only those of one time are compared, so that its cuts do not matter.
            tied = np.zeros(len(ticks), bool)
            tied[1:] = ticks[1:] == ticks[:-1]
            tied[:-1] |= tied[1:]
            row_indices, keys = np.flatnonzero(tied), (*keys, job.schema.ts)
            rows, ticks = rows.take(pa.array(row_indices)), ticks[row_indices]
        else:
            row_indices = np.arange(len(ticks))
        checked = int(np.count_nonzero(row_indices < self._checked))
        new = rows.slice(checked)
        if not new.num_rows:
            return
        order = self.hold_back.order(new, ticks[checked:])
        order = np.arange(len(new)) if order is None else order
        sequence = np.concatenate([np.arange(checked), checked + order])
        earlier = self.stream.kept_events if isinstance(self.stream, RevisedRows) else (None, None)
        is_repeated[row_indices] = find_repeats(rows, sequence, job.schema, keys, earlier)
        if not is_repeated.any():
            return
        if job.duplicates == "refuse":
            row = int(np.argmax(is_repeated))
            value, time = (value_of(waiting[0].column(name)[row]) for name in (str(job.schema.id), job.schema.ts))
            raise repeat_error(str(job.schema.id), value, 0, f"an event at {value_text(time)}")
        count = int(np.count_nonzero(is_repeated))
        self.totals.duplicates, self.totals.events = self.totals.duplicates + count, self.totals.events - count
        self.hold_back.keep(~is_repeated)

    def _refuse(self, rows: pa.Table | None) -> None:
        """Keep late rows, if the job gives them. Queries with other keys have them in other buckets, too."""
        if self.job.late and rows is not None and self.part.first == 0:
            self.refused.append(rows)

    def take_late_rows(self) -> list[pa.Table]:
        """Return the late events since the last call as rows of the result."""
        tables, self.refused = [late_rows(self.job, rows) for rows in self.refused if rows.num_rows], []
        return tables

    def revise(self, before: int | None, *, at_once: bool) -> list[pa.Table]:
        """Return the rows of the result that come and go with the rows that were added, of a ``revised`` job.

        No event with ``ts < before`` (ticks) can come; ``None``: any can. ``at_once``: events are matched as they come.
        """
        if self.ended:
            return []
        assert isinstance(self.stream, RevisedRows)
        self._leave_out_repeats()
        rows, matched = self.hold_back.drain(), self.stream.matched
        self._checked = 0
        out = self._push(rows) if rows is not None else []
        out += self._result_tables(
            self.stream.advance(before, self.hold_back.greatest, at_once=at_once), lambda groups: []
        )
        self._add_allowance(self.stream.matched - matched)
        return self._with_changed(out)

    def _add_allowance(self, events: int, allowance: float = math.inf) -> None:
        """Add to the totals what the budget allows for so many events: ``allowance``, or less by the bound on the
        work."""
        if self.job.budget is not None and self.job.budget.work is not None:
            allowance = min(allowance, self.job.budget.work * len(self.plans) * events)
        self.totals.allowance += allowance if allowance < math.inf else 0.0

    def _with_changed(self, rows: list[pa.Table]) -> list[pa.Table]:
        """Return rows of the result after those that changed before them in this micro-batch."""
        changed, self.changed = self.changed, []
        return without_pairs(changed, rows) if changed else rows

    def advance(self, before: int | None) -> list[pa.Table]:
        """Return the rows of the result that are certain once no event with ``ts < before`` (ticks) can come; ``None``:
        any can."""
        if self.ended:
            return []
        self._leave_out_repeats()
        self._checked = len(self.hold_back)
        if before is None or (self.hold_back.released is not None and before <= self.hold_back.released):
            return []
        assert not isinstance(self.stream, RevisedRows)
        rows = self.hold_back.release(before)
        self._checked = len(self.hold_back)
        out = self._push(rows) if rows is not None else []
        out += self._result_tables(self.stream.advance(before - 1), lambda groups: groups.advance(before - 1))
        return out

    def finish(self) -> list[pa.Table]:
        """End the stream and return the remaining rows of the result."""
        if self.ended:
            return []
        self._leave_out_repeats()
        rows, self._checked = self.hold_back.drain(), 0
        matched = self.stream.matched if isinstance(self.stream, RevisedRows) else 0
        out = self._push(rows) if rows is not None else []
        out += self._result_tables(self.stream.finish(), WaitingGroups.finish)
        if isinstance(self.stream, RevisedRows):
            self._add_allowance(self.stream.matched - matched)
        out = self._with_changed(out)
        self._count()
        if self.waiting is not None:
            out = [self._mark_exact(number, table) for number, table in self.waiting]
            self.waiting = []
        self.stream = self._make_stream(None)
        self.ended = True
        return out

    def _push(self, rows: pa.Table) -> list[pa.Table]:
        if isinstance(self.stream, RevisedRows):
            duplicates = self.stream.duplicates
            matches_by_query, late = self.stream.push(rows)
            duplicates = self.stream.duplicates - duplicates
            self.totals.late, self.totals.duplicates = self.totals.late + late, self.totals.duplicates + duplicates
            self.totals.events -= late + duplicates
            self._refuse(self.stream.late)
            return self._result_tables(matches_by_query, lambda groups: [])
        schema = self.job.schema
        batch = batch_of(rows, replace(schema, id=None), self.columns)
        # Without ids the engine numbers the events of each partition, as rows on Spark have no position.
        ids: Any = None
        if schema.id is not None:
            kind = schema.kind(schema.id)
            column = column_of(schema.id, rows.column(schema.id), kind or Kind.INT, 1)
            if column.valid is not None:
                raise DataError(
                    f"column `{schema.id}` is null in some event", hint="fill it in, or leave id= out", code="data_null"
                )
            ids = column.to_list() if kind is Kind.STRING else column.values
        if self.pace is None:
            self._add_allowance(len(batch))
            batch = replace(batch, ids=ids)
            stream = self.stream
            matches_by_query = stream.push_rows(rows, batch) if isinstance(stream, StreamParts) else stream.push(batch)
            return self._result_tables(matches_by_query, lambda groups: [])
        assert isinstance(self.stream, Stream)
        epochs = self.stream.epochs(len(batch))
        self.epochs += epochs
        touches, matches = self.pace.touches(len(batch), int(batch.ts[0]), int(batch.ts[-1]), epochs)
        self._add_allowance(len(batch), touches)
        self.stream.allow(touches / len(batch), len(batch), matches)
        return self._result_tables(self.stream.push(replace(batch, ids=ids)), lambda groups: [])

    def _result_tables(
        self, matches_by_query: list[Sequence[Found]], close: Callable[[WaitingGroups], list[WaitingGroup]]
    ) -> list[pa.Table]:
        out: list[tuple[int, pa.Table]] = []
        exact_before = [self._is_exact(number) for number in self.part.queries]
        if self.job.budget is not None:
            self._count()
        for i, (number, matches) in enumerate(zip(self.part.queries, matches_by_query, strict=True)):
            counted = self.stream.take_counted(i)
            n_matches = counted if isinstance(counted, int) else len(matches)
            n_retracted = taken_back(matches) if self.job.revised else 0
            if self.groups:
                rows = counted if isinstance(counted, Counted) else matches
                n_matches = count_matches(rows)
                groups = self.groups[i].add(rows) + close(self.groups[i])
                if groups:
                    out.append((number, group_rows(self.job, self.job_plans, number, groups)))
            elif self.job.output == "count":
                # Count rows are summed later. A change of `exact` needs a row, even with a count of 0.
                if (change := n_matches - 2 * n_retracted) or self._is_exact(number) != exact_before[i]:
                    out.append((number, _count_row(self.job, number, change)))
            elif self.job.output == "points":
                if (changes := change_rows(self.job, self.job_plans, number, matches)) is not None:
                    out.append((number, changes))
            elif n_matches:
                out.append((number, match_rows(self.job, self.job_plans, number, matches)))
            counts = self.totals.queries[number]
            counts.matches = min(counts.matches + n_matches - 2 * n_retracted, MAX_COUNT)
        if self.waiting is not None:
            self.waiting += out
            return []
        return [self._mark_exact(number, table) for number, table in out]

    def _is_exact(self, number: int) -> bool:
        """Return whether nothing was shed for a query, as of the last count."""
        return self.totals.queries[number].whole

    def _mark_exact(self, number: int, rows: pa.Table) -> pa.Table:
        """Return rows of the result with the column ``exact`` set if there is a budget."""
        if self.job.budget is None:
            return rows
        exact = pa.array([self._is_exact(number)] * rows.num_rows, pa.bool_())
        return rows.set_column(rows.schema.get_field_index(EXACT), self.job.result.field(EXACT), exact)

    def _count(self) -> None:
        """Update the totals from the counts of the engine."""
        if self.ended:
            return
        for i, number in enumerate(self.part.queries):
            counts, before = self.stream.counts_of(i), self.totals.queries[number]
            self.totals.memory = max(self.totals.memory, counts.memory)
            self.totals.queries[number] = replace(counts, matches=before.matches)

    def kept_ids(self) -> tuple[pa.Array, npt.NDArray[np.int64]] | None:
        """Return the ids and times, in ticks, of the events that are kept, all that are not final among them; ``None``:
        there are none. Only for a job whose events are not taken back."""
        parts = [self.hold_back.held_column(str(self.job.schema.id))]
        if isinstance(self.stream, RevisedRows):
            parts += self.stream.kept_ids()
        kept_parts = [part for part in parts if part is not None]
        if not kept_parts:
            return None
        ids = pa.concat_arrays([part_ids.cast(kept_parts[0][0].type) for part_ids, _ in kept_parts])
        return ids, np.concatenate([ticks for _, ticks in kept_parts])

    # State ------------------------------------------------------------------------------------------

    def dumps(self) -> bytes:
        """Return the whole state, bound to the job: a sealed head, the engine's state, and the rows held back."""
        engine, rows = self.stream.snapshot(), self.hold_back.dumps()
        self.end()  # the work of making these bytes counts for the micro-batch, except for the head
        head = seal(
            {
                "released": self.hold_back.released,
                "greatest": self.hold_back.greatest,
                "ended": self.ended,
                "totals": self.totals.dump(),
                "groups": [groups.dump() for groups in self.groups],
                "pace": None if self.pace is None else self.pace.dump(),
            }
            | ({} if self.queries is None else {"versions": self.queries.dump()}),
            self.job.fingerprint,
        )
        parts = (head, engine, rows)
        summed = HEAD.pack(b"", 0, b"", *map(len, parts))[SUMMED:] + b"".join(parts)
        return HEAD.pack(MAGIC, FORMAT, mmh3.hash_bytes(summed), 0, 0, 0)[:SUMMED] + summed

    @classmethod
    def loads(cls, job: Job, part: Pass, data: bytes) -> Bucket:
        """Restore a bucket from the bytes of :meth:`dumps`.

        Raise :class:`SnapshotError` if the bytes are damaged, have another format, or were made by another query, for
        a stream with other columns, with other column names, another output or another number of buckets, or by
        another engine.
        """
        if len(data) < HEAD.size or not data.startswith(MAGIC):
            raise SnapshotError(
                "these bytes are no state of a bucket: they are damaged, or an earlier development version of acep made"
                " them",
                hint=ANEW,
                code="state_damaged",
            )
        _, form, checksum, *sizes = HEAD.unpack_from(data)
        if form not in (1, FORMAT):
            raise SnapshotError(
                f"the state of a bucket has format version {form}, which this acep does not read",
                hint=ANEW,
                code="state_version",
            )
        summed = data[SUMMED:]
        if checksum != (digest(summed) if form == 1 else mmh3.hash_bytes(summed)):
            raise SnapshotError(
                "the state of a bucket is damaged: its checksum does not fit",
                hint="go back to an earlier micro-batch (docs/internals/spark_state.md), or begin a new checkpoint",
                code="state_damaged",
            )
        ends = [HEAD.size + sum(sizes[: i + 1]) for i in range(3)]
        head, engine, rows = (data[end - size : end] for end, size in zip(ends, sizes, strict=True))
        payload = _payload(head, job.fingerprint)
        try:
            bucket = cls(job, part, engine=engine, versions=payload["versions"] if job.dynamic else None)
            released, greatest = (None if payload[n] is None else int(payload[n]) for n in ("released", "greatest"))
            bucket.hold_back.released, bucket.hold_back.greatest = released, greatest
            bucket.ended = payload["ended"] is True
            bucket.totals = Totals.load(payload["totals"], len(job.names))
            for groups, dumped in zip(bucket.groups, payload["groups"], strict=True):
                groups.load(dumped)
            if bucket.pace is not None and payload["pace"] is not None:
                bucket.pace.load(payload["pace"])
        except SnapshotError:
            raise
        except (KeyError, TypeError, ValueError):
            raise SnapshotError(
                "the state of a bucket does not hold what it should: an earlier development version of acep made it",
                hint=ANEW,
                code="state_damaged",
            ) from None
        bucket.hold_back.loads(rows)
        bucket._checked = len(bucket.hold_back)
        return bucket


def _payload(head: bytes, fingerprint: str) -> Any:
    try:
        return unseal(head, fingerprint)
    except SnapshotError as error:
        if "another query" not in error.message:
            raise
        raise SnapshotError(
            "the checkpoint was made by another query, or with other columns, another output or other buckets",
            hint="go on with what it was made with, or give a new checkpointLocation; nothing was lost",
        ) from None


def _count_row(job: Job, number: int, count: int) -> pa.Table:
    if count > MAX_COUNT:
        raise DataError(
            f"{count} matches are more than fit in 64 bits",
            hint="ask for points, or narrow the window",
            code="data_value",
        )
    values = {"query": job.names[number], "count": count, EXACT: False}
    return pa.Table.from_pylist([{name: values[name] for name in job.result.names}], schema=job.result)
