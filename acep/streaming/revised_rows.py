"""Match the rows of a bucket that may be revised: before they are final, or with rows that take events back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep.arrivals.arrivals import Arrivals
from acep.arrivals.released_events import ARRIVAL, ReleasedEvents
from acep.errors import DataError, QueryError, SnapshotError
from acep.events.batch import Batch
from acep.events.tables import batch_of
from acep.matches.records import Counts, Found
from acep.plan.compile import Plan
from acep.revision.revised_stream import RevisedStream
from acep.runtime.stream import Stream, merge_matches
from acep.storage.snapshot import seal, unseal
from acep.streaming.job import Job

__all__ = ["RevisedRows", "sort_by_arrival"]

BEGINNING = -(2**62)  # before all times


class RevisedRows:
    """The stream of a bucket whose job is ``revised``, in place of a :class:`acep.runtime.stream.Stream`.

    Rows come in any order. Events of one time have the order of ``seq``; without it those of a later micro-batch come
    after those of an earlier one. Rows with ``op`` take effect in the order of ``seq``. ``keys``: the columns that say
    in which bucket a row is. ``data``: a snapshot to go on with; :class:`SnapshotError` is raised if it is none of this
    job. ``first``: the plans with which the stream began, if they may have changed.
    """

    def __init__(
        self,
        job: Job,
        plans: Sequence[Plan],
        keys: Sequence[str],
        data: bytes | None = None,
        first: Sequence[Plan] | None = None,
    ) -> None:
        self.job, self.plans, self.keys, self.first = job, tuple(plans), tuple(keys), first
        self.columns = tuple(sorted({column for plan in self.plans for column in plan.columns}))
        self.stream: Stream | RevisedStream = self._new_stream()
        self._arrivals: Arrivals | None = None
        self._arrow: pa.Schema | None = None
        self.matched = 0  # events that were matched for the first time, since it was made or restored
        self._n_duplicates = 0  # rows that came twice in one push, and were left out, since then
        if data is not None:
            self._load(unseal(data, job.fingerprint))

    def __len__(self) -> int:
        n_kept = self.stream.held if isinstance(self.stream, RevisedStream) else 0
        return n_kept + (0 if self._arrivals is None else len(self._arrivals))

    @property
    def duplicates(self) -> int:
        """Return how many rows of a job with ``op`` were left out, as they came before."""
        return self._n_duplicates + (0 if self._arrivals is None else self._arrivals.duplicates)

    def push(self, rows: pa.Table) -> tuple[list[Sequence[Found]], int]:
        """Take in rows; return the matches that come and go for each plan, and how many of the rows were late.

        Raises :class:`DataError` as :meth:`acep.arrivals.arrivals.Arrivals.push` does, and for rows that take events
        back where it is not certain which.
        """
        if self.job.op is not None:
            rows, n_duplicates = sort_by_arrival(self.job, self.keys, rows)
            self._n_duplicates += n_duplicates
        if self._arrivals is None:
            self._begin(rows.schema)
        assert self._arrivals is not None
        matches = self._feed(self._arrivals.push(rows))
        return matches, 0 if self.late is None else self.late.num_rows

    @property
    def late(self) -> pa.Table | None:
        """Return the rows of the last push that came too late; ``None``: there were none."""
        return None if self._arrivals is None else self._arrivals.late

    def advance(self, before: int | None, greatest: int | None, *, at_once: bool = False) -> list[Sequence[Found]]:
        """Advance the time: no row with ``ts < before`` (ticks) will come (``None``: any may). Return the matches that
        come and go. ``greatest`` is the latest time so far, in this bucket or another; ``at_once``: rows up to it are
        matched now, and what is decided by a later event is decided by it, until an earlier one comes."""
        if self._arrivals is None or greatest is None or (before is None and not at_once):
            return self._no_matches()
        due = ReleasedEvents()
        if before is not None or self.job.ahead is not None:
            before = BEGINNING if before is None else before
            if self.job.ahead:
                self._arrivals.speculation = greatest + 1 - before if at_once else self.job.ahead
            due = self._arrivals.advance(before - 1)
        passed = BEGINNING if self._arrivals.passed is None else self._arrivals.passed
        if at_once:
            self._arrivals.reach(greatest)
            final = BEGINNING if self._arrivals.final is None else self._arrivals.final
            passed = max(final, greatest) - 1  # another event of the same time may come as the next one
        return self._feed(due, passed)

    def change(self, number: int, plan: Plan) -> None:
        """Go on with another plan in place of plan ``number``: a query that was replaced."""
        self.stream.change(number, plan)
        self.plans = self.stream.plans

    def change_since(self, number: int, plan: Plan, since: int) -> Sequence[Found]:
        """Go on with another plan in place of plan ``number``, which is another one for events from the tick ``since``
        on; return the matches that come and go.

        Raises :class:`QueryError` if some of these events are final.
        """
        assert isinstance(self.stream, RevisedStream)
        if self._arrivals is not None and self._arrivals.final is not None and since < self._arrivals.final:
            raise QueryError("a version would hold for events that are final", hint="give it a later time")
        matches = self.stream.change_since(number, plan, since)
        self.plans = self.stream.plans
        return matches

    def live_of(self, number: int) -> int:
        """Return how many partial matches of a plan that may change are in states of its last version."""
        return self.stream.live_of(number)

    @property
    def certain(self) -> int | None:
        """Return the tick before which no event is matched any more; ``None``: it is not known."""
        final = None if self._arrivals is None else self._arrivals.final
        oldest = self.stream.oldest if isinstance(self.stream, RevisedStream) else None
        return final if oldest is None or final is None else min(oldest, final)

    @property
    def kept_events(self) -> tuple[pa.Table | None, Batch | None]:
        """Return the events that may still change something, all that are not final among them: those that were not
        matched yet, and the others. Only for a job whose events are not taken back."""
        waiting = None if self._arrivals is None else self._arrivals.held_rows
        return waiting, self.stream.events() if isinstance(self.stream, RevisedStream) else None

    def kept_ids(self) -> list[tuple[pa.Array, npt.NDArray[np.int64]] | None]:
        """Return the ids and times, in ticks, of the events that may still change something."""
        waiting_ids = None if self._arrivals is None else self._arrivals.held_column(str(self.job.schema.id))
        batch = self.stream.events() if isinstance(self.stream, RevisedStream) else None
        return [waiting_ids, None if batch is None else (pa.array(batch.ids), batch.ts)]

    def finish(self) -> list[Sequence[Found]]:
        """End the stream; return the matches that come and go."""
        last_matches = self._no_matches() if self._arrivals is None else self._feed(self._arrivals.finish())
        return [merge_matches(parts) for parts in zip(last_matches, self.stream.finish(), strict=True)]

    def take_counted(self, plan: int) -> None:  # noqa: ARG002 - as of other streams
        """Return ``None``: matches are made."""
        return

    def counts_of(self, plan: int) -> Counts:
        """Return the events, and the work of plan number ``plan``."""
        return self.stream.counts_of(plan)

    @property
    def live(self) -> int:
        """Return the number of partial matches whose window is not over."""
        return self.stream.live

    def snapshot(self) -> bytes:
        """Return the state as bytes."""
        if isinstance(self.stream, RevisedStream) and self._arrivals is not None and self._arrivals.final is not None:
            self.stream.forget_final(self._arrivals.final, now=True)
        state = {
            "arrow": None if self._arrow is None else bytes(self._arrow.serialize().to_pybytes()),
            "arrivals": None if self._arrivals is None else self._arrivals.dump(),
            "stream": self.stream.snapshot(),
        }
        return seal(state, self.job.fingerprint)

    def _load(self, state: Any) -> None:
        try:
            if state["arrow"] is not None:
                self._begin(pa.ipc.read_schema(pa.py_buffer(state["arrow"])))
                assert self._arrivals is not None
                self._arrivals.load(state["arrivals"])
            if isinstance(self.stream, RevisedStream):
                for number, plan in enumerate(self.plans if self.first is not None else ()):
                    self.stream.change(number, plan)
                self.stream.restore(state["stream"])
            else:
                options = (self.job.engine, "matches", self.job.limits)
                self.stream = Stream.restore(self.plans, state["stream"], *options, first=self.first)
        except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException, OSError):
            raise SnapshotError(
                "the state of a bucket does not hold a stream that may be revised", code="state_damaged"
            ) from None

    def _new_stream(self) -> Stream | RevisedStream:
        job, plans = self.job, self.first or self.plans
        if job.ahead != 0:
            return RevisedStream(plans, job.engine, job.limits)
        return Stream(plans, job.engine, limits=job.limits)

    def _begin(self, arrow: pa.Schema) -> None:
        """Start with rows of these columns."""
        job = self.job
        self._arrow = arrow.remove_metadata()
        # The watermark says what is final, by advance().
        # Without op= the bucket looks for events that come twice, before they come here.
        duplicates = None if job.op is None else job.duplicates
        self._arrivals = Arrivals(
            arrow, job.schema, "inf", job.op, 0 if job.ahead == 0 else "inf", duplicates=duplicates
        )
        self._arrivals.speculation = job.ahead

    def _feed(self, due: ReleasedEvents, passed: int = BEGINNING) -> list[Sequence[Found]]:
        """Feed the rows that are due, and the time that has ``passed``, if any has since the last call."""
        assert self._arrivals is not None
        steps = []
        batch = None
        if due.rows is not None:
            batch = batch_of(due.rows, self.job.schema, self.columns, unique=False)
            self.matched += len(batch)
        if isinstance(self.stream, RevisedStream):
            if batch is not None or due.removed:
                steps.append(self.stream.push(batch, due.numbers, due.inserted, due.removed))
        elif batch is not None:
            steps.append(self.stream.push(batch))
        if passed > BEGINNING:
            steps.append(self.stream.advance(passed))
        if isinstance(self.stream, RevisedStream) and self._arrivals.final is not None:
            self.stream.forget_final(self._arrivals.final)
        return [merge_matches(parts) for parts in zip(*steps, strict=True)] if steps else self._no_matches()

    def _no_matches(self) -> list[Sequence[Found]]:
        return [[] for _ in self.plans]


def sort_by_arrival(job: Job, keys: Sequence[str], rows: pa.Table) -> tuple[pa.Table, int]:
    """Return rows of a job with ``op`` in the order in which they came; of equal ``seq`` those first that take an
    event back. Rows with the same id, ``seq`` and ``op`` are one, if events that come again are left out: they are
    counted. ``keys``: the columns that say in which bucket a row is.

    Raises :class:`DataError` where it is not certain which row came last."""
    seq, name, ts, op = str(job.schema.seq), str(job.schema.id), job.schema.ts, str(job.op)
    is_retraction = pc.less(rows.column(op), 0)
    for key in keys if job.clause is None else ():  # of a clause null is a key
        if pc.any(pc.and_(is_retraction, pc.is_null(rows.column(key), nan_is_null=True))).as_py():
            raise DataError(
                f"column `{key}` is null in a row that takes an event back",
                hint="it has the time and the partition attributes of its event; if these are null too, leave both "
                f"rows out before the match: `{key}` IS NOT NULL",
                code="data_null",
            )
    ordered_rows = rows.take(pc.sort_indices(rows, [(seq, "ascending"), (op, "ascending"), (ts, "ascending")]))
    if job.duplicates == "drop":
        numbered = ordered_rows.select([name, seq, op]).append_column(ARRIVAL, pa.array(np.arange(len(ordered_rows))))
        first = numbered.group_by([name, seq, op]).aggregate([(ARRIVAL, "min")]).column(f"{ARRIVAL}_min")
        n_duplicates = len(ordered_rows) - len(first)
        return ordered_rows.take(first.take(pc.sort_indices(first))) if n_duplicates else ordered_rows, n_duplicates
    events = rows.filter(pc.invert(is_retraction)).select([name, seq])
    if events.group_by([name, seq]).aggregate([]).num_rows < events.num_rows:
        raise DataError(
            f"two events have the same `{name}` and `{seq}`, so that it is not certain which came last",
            hint=f"`{seq}` counts all rows, also those that take events back; where the source repeats rows: "
            'duplicates="drop"',
            code="data_order",
        )
    return ordered_rows, 0
