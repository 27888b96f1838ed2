"""Follow a folder: take its new files as a micro-batch, process it, and write results and state durably.

The order of writing makes the results exact even after a kill: the plan of a micro-batch, the state after it, its
results, and a mark that it is done. A micro-batch that was planned but is not done is processed again from the state
before it, with the same results.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid4, uuid5

import numpy as np
import pyarrow as pa

from acep import logs
from acep.errors import DataError, QueryError, SnapshotError
from acep.events.columns import ticks_of
from acep.events.files.options import BadLines
from acep.matches.report import Report
from acep.pattern.printing import canonical
from acep.runner.arrivals import Arrival, check_same, fresh
from acep.runner.inbox import ROW, Inbox
from acep.runner.journal import BACK, KEEP, Journal, Planned
from acep.runner.outbox import Outbox
from acep.runner.recent_ids import RecentIds
from acep.streaming.folders import LocalFolder
from acep.streaming.job import Job
from acep.streaming.progress import Progress, progress_in, reports_in
from acep.streaming.query_versions import NewVersion, versions_in_folder
from acep.streaming.spent import Stopwatch
from acep.streaming.step import BucketRows, MicroBatch, bucket_of, newest_tick, step_bucket
from acep.streaming.versions import Versions

__all__ = ["Followed", "Follower"]


QUERY = str(uuid5(NAMESPACE_OID, "acep.follow"))  # a state folder holds one stream
FORMAT = 1  # of the settings


@dataclass(frozen=True)
class Followed:
    """The result of a follower.

    ``batches`` (micro-batches) and ``seconds`` are of this run. The ``report`` covers all work since the state was new,
    as :attr:`acep.Matches.report` does for one process; ``reports`` has one for each query by its name ("" if it is the
    only one). ``ended``: the stream has ended, and all matches that waited for its end are decided. ``bad`` counts the
    lines that were skipped in this run. ``folder`` holds the results.
    """

    batches: int
    seconds: float
    report: Report
    reports: Mapping[str, Report]
    ended: bool
    bad: BadLines
    folder: Path

    def __str__(self) -> str:
        batches = "1 micro-batch" if self.batches == 1 else f"{self.batches:,} micro-batches"
        end = "the stream has ended" if self.ended else "the stream goes on"
        return f"{batches} in {self.seconds:.1f} s; {end}\nin all {self.report}"


class Follower:
    """The state of a stream that is followed in this process."""

    def __init__(
        self,
        inbox: Inbox,
        job_of: Callable[[pa.Schema], tuple[Job, int]],
        folder: LocalFolder,
        outbox: Outbox,
        newer: Path | None = None,
    ) -> None:
        """Continue from the state in ``folder``. ``job_of`` returns the job for columns, and the delay of its watermark
        in milliseconds. The folder ``newer`` has newer versions of its queries.

        Raises :class:`SnapshotError` if the state is damaged, or of another query.
        """
        self.inbox, self.outbox = inbox, outbox
        self.bad, self._newer = BadLines(), newer
        self.journal = Journal(folder)
        self._job_of = job_of
        self._state = folder.root
        self._run = str(uuid4())
        self._versions: Versions | None = None
        self._recent: RecentIds | None = None
        if (settings := self.journal.settings()) is not None:
            self._settle(settings)
        elif self.journal.next or self.journal.pending is not None:
            raise self._unfit("has lost its settings", BACK)
        begins = self.journal.next + (self.journal.pending is not None)
        outbox.refuse_from(begins, self.journal.shown)
        self._done = self.journal.done(self.journal.next - 1) or {"rows": 0, "told": "", "names": "[]"}
        if self.journal.next:
            logs.info(
                __name__, "the state in `%s` was taken up before micro-batch %d", self.journal.shown, self.journal.next
            )

    def step(self, *, end: bool) -> Progress | None:
        """Process the next micro-batch; return ``None`` if there are no new files. With ``end`` it is the last one if
        it takes all files. Raises :class:`DataError` or :class:`SnapshotError`.
        """
        began = time.time()
        pending = self.journal.pending
        files = pending.files if pending is not None else self._new(end=end)
        if files is None:
            return None
        try:
            return self._stepped(files, pending, began, end=end)
        except SnapshotError as bad:
            raise _for_files(bad, self.journal.next) from None

    def _stepped(
        self, files: tuple[Arrival, ...], pending: Planned | None, began: float, *, end: bool
    ) -> Progress | None:
        assert self._versions is not None
        batch, first = self.journal.next, int(self._done["rows"])
        way_out = self.journal.way_out(batch, f"{self._state}/versions/{QUERY}/{self._job.fingerprint[:32]}")
        for one in files:
            check_same(self.inbox.folder, one, way_out)
        there = self._versions.before(batch)  # checks too that no newer follower has begun
        started = round(began * 1000) if pending is None else pending.began
        micro_batch = MicroBatch(self._job, self._versions, batch, there, self._delay_ms, None)
        if self._recent is None and self._job.op is None and self._job.schema.id not in (None, ROW):
            kept = bucket_of(micro_batch, 0).kept_ids()
            self._recent = RecentIds(self._job.schema, kept=kept)
        if self._recent is not None:
            self._recent.forget(micro_batch.final, self._job.bound(started if self._job.clocked else None))
        rows, duplicates = self.inbox.read(files, self._schema, first, self.bad, self._recent)
        for one in files:
            check_same(self.inbox.folder, one, way_out)
        if pending is None:
            last = end and not fresh(self.inbox.there(), self._taken(files))
            newer = self._versions_for(micro_batch)
            wanted = Planned(batch, files, last, started, newer)
            pending = self.journal.plan(wanted)
            if pending.files != files:
                raise SnapshotError(
                    f"another follower works with the state in `{self.journal.shown}`",
                    hint="let one of them run",
                    code="state_used",
                )
        for one in files:
            logs.debug(__name__, "micro-batch %d takes the file `%s`", batch, one.name)
        for version in pending.versions:
            logs.info(__name__, "micro-batch %d takes in version %d of the query", batch, version.number)
        now = pending.began if self._job.clocked else None
        micro_batch = replace(micro_batch, now=now)
        part = replace(_part(self._job, rows, pending, now), duplicates=duplicates)
        found, told = step_bucket(micro_batch, 0, part, Stopwatch())
        if found:
            self.outbox.write(batch, pa.concat_tables(found))
        newest = pending.versions[-1].number if pending.versions else self._done.get("version", 0)
        self._done = {"rows": first + rows.num_rows, "told": told, "names": json.dumps(self._job.names)}
        self._done |= {"version": newest} if newest else {}
        self.journal.finish(self._done)
        seconds = time.time() - began
        done = progress_in([self._done], batch=batch, events=rows.num_rows, seconds=seconds, began=began)
        # There is one bucket, which has all rows.
        return done and replace(done, fullest=0.0, spent=replace(done.spent, outside="files"))

    def _versions_for(self, micro_batch: MicroBatch) -> tuple[NewVersion, ...]:
        """Return the versions of queries that are new. Raises :class:`DataError` or :class:`QueryError`, with nothing
        recorded, if a file cannot be read or a query cannot be replaced by it."""
        if self._newer is None:
            return ()
        found = versions_in_folder(self._newer, self._job.names, self._done.get("version", 0))
        if found:
            bucket_of(micro_batch, 0).replace(found, micro_batch.since, micro_batch.final)
        return tuple(found)

    def sum_up(self, batches: int, seconds: float) -> Followed:
        """Return the result after so many micro-batches and seconds."""
        report, reports = reports_in([self._done]) if self._done["told"] else (Report(), {})
        return Followed(batches, seconds, report, reports, self.journal.ended, self.bad, self.outbox.folder)

    def _taken(self, more: tuple[Arrival, ...] = ()) -> dict[str, Arrival]:
        return {name: one for name, (one, _) in self.journal.taken.items()} | {one.name: one for one in more}

    def _new(self, *, end: bool) -> tuple[Arrival, ...] | None:
        """Return the files of a new micro-batch, ``None`` if there is nothing to process."""
        there = self.inbox.there()
        files = fresh(there, self._taken())
        if self.journal.ended:
            if files:
                raise SnapshotError(
                    f"the stream in `{self.journal.shown}` has ended, and `{files[0].name}` is new",
                    hint="begin a new state and output for it",
                )
            return None
        self.journal.forget({one.name for one in there})
        if self._versions is None:
            found = self.inbox.settle(files)
            if found is None:
                return None
            files, schema = found
            self._settle(self.journal.settle(self._settings(schema, self._job_of(schema)[0])))
        return tuple(files[: self.inbox.max_files]) if files or end else None

    def _settings(self, schema: pa.Schema, job: Job) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "query": [canonical(query) for query in job.queries],
            "reading": self.inbox.about,
            "fingerprint": job.fingerprint,
            "columns": schema.serialize().to_pybytes().hex(),
        }

    def _settle(self, settings: Any) -> None:
        """Use the columns of the settings. Raises :class:`SnapshotError` if they are of another query or options."""
        try:
            if settings["format"] != FORMAT:
                what = f"has format {settings['format']!r}, which this acep does not read"
                raise self._unfit(what, "go on with the acep that wrote it, or begin a new state and output")
            schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(settings["columns"])))
        except (KeyError, TypeError, ValueError, pa.ArrowException):
            raise SnapshotError(
                f"the state is damaged: `{self.journal.shown}/settings`", hint=BACK, code="state_damaged"
            ) from None
        hint = "go on with what it was made with, or begin a new state and output; nothing was lost"
        try:
            job, delay_ms = self._job_of(schema)
        except (QueryError, DataError) as wrong:  # there was a job of these columns
            raise self._unfit(f"was made with another query, or with other options: {wrong.message}", hint) from None
        own = self._settings(schema, job)
        other = {"query": "another query", "reading": "other options of reading", "fingerprint": "other options"}
        for name, what in other.items():
            if settings.get(name) != own[name]:
                raise self._unfit(f"was made with {what}", hint)
        self._schema, self._job, self._delay_ms = schema, job, delay_ms
        call, buckets = job.fingerprint[:32], job.buckets
        folder = str(self._state / "versions")
        self._versions = Versions(folder, query=QUERY, call=call, run=self._run, buckets=buckets, keep=KEEP)

    def _unfit(self, what: str, hint: str) -> SnapshotError:
        return SnapshotError(f"the state in `{self.journal.shown}` {what}", hint=hint)


def _for_files(bad: SnapshotError, batch: int) -> SnapshotError:
    """Return the same error with the hint that applies to a follower."""
    if "taken over" in bad.message:
        return SnapshotError(
            bad.message, hint="let one follower run for each state; then start it again", code=bad.code
        )
    back = f"go back to the beginning of micro-batch {max(batch - 1, 0)}"
    return SnapshotError(
        bad.message, hint=f"put a copy of the state back; or, as docs/howto/follow.md says, {back}", code=bad.code
    )


def _part(job: Job, rows: pa.Table, planned: Planned, now: int | None) -> BucketRows:
    """Return the rows of a micro-batch in the order of time, for the only bucket."""
    ticks, _ = ticks_of(job.schema.ts, rows.column(job.schema.ts), job.schema.tick_ns or 1)
    if len(ticks) and (np.diff(ticks) < 0).any():
        order = np.argsort(ticks, kind="stable")
        rows, ticks = rows.take(pa.array(order)), ticks[order]
    events = ticks < job.end
    if not events.all():
        rows, ticks = rows.filter(pa.array(events)), ticks[events]
    came = [*(astuple(one) for one in planned.files), *(one.data() for one in planned.versions)]
    return BucketRows(
        rows.select(job.columns),
        newest_tick(job, ticks, now),
        f"{len(events)} {hashlib.blake2b(json.dumps(came).encode(), digest_size=16).hexdigest()}",
        ended=planned.end or not events.all(),
        versions=planned.versions,
    )
