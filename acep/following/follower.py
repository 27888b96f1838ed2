"""Follow a folder: take its new files as a micro-batch, process it, and write results and state durably.

The order of writing makes the results exact even after a kill: the plan of a micro-batch, the state after it, its
results, and a mark that it is done. A micro-batch that was planned but is not done is processed again from the state
before it, with the same results.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, uuid4, uuid5

import numpy as np
import pyarrow as pa

from acep import logs
from acep.bucket_state.folders import LocalFolder
from acep.bucket_state.state_files import StateFiles
from acep.errors import DataError, QueryError, SnapshotError
from acep.events.columns import ticks_of
from acep.events.fields import column_at
from acep.events.files.options import BadLines
from acep.following.bad_files import BadFileError
from acep.following.checked_values import check_values
from acep.following.follow_result import Followed
from acep.following.growing_files import GrowingFiles
from acep.following.inbox import ROW, Arrived, Inbox, StreamCounts
from acep.following.journal import BACK, KEEP, Journal, Planned
from acep.following.outbox import Outbox
from acep.following.recent_ids import RecentIds
from acep.following.rule_watch import RuleWatch, rules_after
from acep.following.selection import Selection
from acep.following.whole_files import WholeFiles
from acep.growing.stretches import FilePart
from acep.matches.report import Report
from acep.pattern.printing import canonical
from acep.streaming.job import Job
from acep.streaming.job_description import describe_job
from acep.streaming.progress import Progress, progress_in, reports_in
from acep.streaming.query_versions import NewVersion, versions_in_folder
from acep.streaming.step import BucketRows, MicroBatch, bucket_of, newest_tick, step_bucket
from acep.streaming.time_spent import Stopwatch

if TYPE_CHECKING:
    from acep.following.follow_places import EventSource
    from acep.serving.live_page import LivePage

__all__ = ["Follower"]


QUERY = str(uuid5(NAMESPACE_OID, "acep.follow"))  # a state folder holds one stream
FORMAT = 1  # of the settings


class Follower:
    """The state of a stream that is followed in this process."""

    def __init__(
        self,
        inbox: Inbox,
        job_of: Callable[[pa.Schema], tuple[Job, int]],
        folder: LocalFolder,
        outbox: Outbox,
        newer: Path | None = None,
        rules: RuleWatch | None = None,
        source: EventSource | None = None,
        page: LivePage | None = None,
    ) -> None:
        """Continue from the state in ``folder``. ``job_of`` returns the job for columns, and the delay of its watermark
        in milliseconds. The folder ``newer`` has newer versions of its queries. ``rules`` run in place of queries.
        The ``source`` says whether files grow, and where bad ones go. ``page`` shows the stream.

        Raises :class:`SnapshotError` if the state is damaged, or of another query.
        """
        self.inbox, self.outbox = inbox, outbox
        self.bad, self._newer, self._rules = BadLines(), newer, rules
        self._gaps: tuple[str, ...] = ()
        self._page = page
        self._look = None if page is None else page.look
        self.journal = Journal(folder)
        self._bad_folder = None if source is None else source.bad_folder
        self._source: WholeFiles | GrowingFiles = WholeFiles(inbox, self.journal)
        if source is not None and source.growing is not None:
            self._source = GrowingFiles(source.growing, inbox.options, self.journal, folder)
        self._job_of = job_of
        self._folder, self._state = folder, folder.root
        self._run = str(uuid4())
        self._versions: StateFiles | None = None
        self._recent: RecentIds | None = None
        if (settings := self.journal.settings()) is not None:
            self._settle(settings)
        elif self.journal.next or self.journal.pending is not None:
            raise self._unfit_error("has lost its settings", BACK)
        last = self.journal.next - 1
        self._done = self.journal.totals_after(last) or {"rows": 0, "told": "", "names": "[]"}
        # An earlier acep did not record which micro-batch was the last one with results.
        pending = None if self.journal.pending is None else self.journal.next
        outbox.begin(self.journal.shown, self._done.get("results", last), pending)
        if self.journal.next:
            logs.info(
                __name__, "the state in `%s` was taken up before micro-batch %d", self.journal.shown, self.journal.next
            )

    @property
    def ended(self) -> bool:
        """Return whether the stream has ended, so that no more files are taken."""
        return self.journal.ended

    def step(self, *, end: bool) -> Progress | None:
        """Process the next micro-batch; return ``None`` if there are no new files. With ``end`` it is the last one if
        it takes all files. Raises :class:`DataError` or :class:`SnapshotError`.
        """
        began = time.time()
        while True:
            pending = self.journal.pending
            try:
                selection = pending.selection if pending is not None else self._select(end=end)
                return None if selection is None else self._step_selection(selection, pending, began, end=end)
            except BadFileError as bad:
                assert self._bad_folder is not None  # which refused it
                self._bad_folder.move(bad)
                self._recent = None  # it may know ids of files that were read before the bad one
            except SnapshotError as error:
                raise _error_for_files(error, self.journal.next) from None

    def _step_selection(
        self, selection: Selection, pending: Planned | None, began: float, *, end: bool
    ) -> Progress | None:
        assert self._versions is not None
        batch = self.journal.next
        way_out = self.journal.way_out(batch, f"{self._state}/versions/{QUERY}/{self._job.fingerprint[:32]}")
        is_retry = pending is not None
        if not is_retry:
            self.outbox.check_own()
            if isinstance(self._source, WholeFiles):
                selection = self._source.identify(selection, way_out, self._refuse)
        parts = self._source.parts(selection, way_out)
        old_versions = self._versions.begin_batch(batch)  # checks too that no newer follower has begun
        started = round(began * 1000) if pending is None else pending.began
        micro_batch = MicroBatch(self._job, self._versions, batch, old_versions, self._delay_ms, None)
        self._forget_final_ids(micro_batch, started)
        end_marker = self.inbox.end_marker if pending is None else pending.end_marker
        counts = StreamCounts(int(self._done["rows"]), int(self._done.get("bad", 0)))
        arrived = self.inbox.read(
            parts,
            self._schema,
            self._job.schema,
            counts,
            self._recent,
            end_marker=end_marker,
            check=self._check,
            is_planned=is_retry,
        )
        self._source.check(selection, way_out)
        if pending is None:
            last = arrived.ends or (end and self._source.is_last(selection))
            newer = self._versions_for(micro_batch)
            pending = self._plan(
                Planned(batch, selection.files, last, started, newer, end_marker, selection.stretches,
                        selection.positions, selection.gaps)
            )  # fmt: skip
        if arrived.bad.count:
            self.bad.add(arrived.bad.first, arrived.bad.count, arrived.bad.values)
        self._gaps += pending.gaps
        return self._process(pending, arrived, micro_batch, began, is_retry=is_retry)

    def _process(
        self, pending: Planned, arrived: Arrived, micro_batch: MicroBatch, began: float, *, is_retry: bool
    ) -> Progress | None:
        """Process the rows of a micro-batch that is planned, and write results, state and journal."""
        batch = pending.batch
        for name in [*(file.name for file in pending.files), *(stretch.name for stretch in pending.stretches)]:
            logs.debug(__name__, "micro-batch %d takes the file `%s`", batch, name)
        for version in pending.versions:
            logs.info(__name__, "micro-batch %d takes in version %d of the query", batch, version.number)
        now = pending.began if self._job.clocked else None
        micro_batch = replace(micro_batch, now=now)
        rows, part = arrived.rows, _bucket_rows(self._job, arrived, pending, now)
        results, metrics = step_bucket(micro_batch, 0, part, Stopwatch(), self._look)
        if results:
            self.outbox.write(batch, pa.concat_tables(results), is_retry=is_retry, exact=not self._job.measured)
        newest = pending.versions[-1].number if pending.versions else self._done.get("version", 0)
        before = self._done
        self._done = {
            "rows": int(before["rows"]) + rows.num_rows,
            "told": metrics,
            "names": json.dumps(self._job.names),
        }
        self._done |= {"results": self.outbox.last} | ({"version": newest} if newest else {})
        if self._job.has_rules:
            self._done["rules"] = rules_after(before.get("rules", {}), pending.versions)
        if self.inbox.is_growing:
            self._done["bad"] = int(before.get("bad", 0)) + arrived.bad.count
        self.journal.finish(self._done)
        self._source.finish()
        seconds = time.time() - began
        progress = progress_in([self._done], batch=batch, events=rows.num_rows, seconds=seconds, began=began)
        if progress is None:
            return None
        # There is one bucket, which has all rows.
        spent = replace(progress.spent, outside="files")
        progress = replace(progress, spent=spent, bad_files=len(self._moved), gaps=len(self._gaps))
        return self._show(results, replace(progress, fullest=0.0))

    def _show(self, results: list[pa.Table], progress: Progress) -> Progress:
        """Show a micro-batch on the live page, if there is one, and return its progress."""
        if self._page is not None:
            self._page.show(results)
            self._page.tell(progress)
        return progress

    @property
    def _moved(self) -> list[Path]:
        return [] if self._bad_folder is None else self._bad_folder.moved

    def _refuse(self, part: FilePart, error: DataError) -> None:
        if self._bad_folder is not None:
            self._bad_folder.refuse(part, error)

    def _plan(self, own_plan: Planned) -> Planned:
        """Record the plan of a micro-batch. Raises :class:`SnapshotError` if another follower has recorded one."""
        pending = self.journal.plan(own_plan)
        if (pending.files, pending.stretches) != (own_plan.files, own_plan.stretches):
            raise SnapshotError(
                f"another follower works with the state in `{self.journal.shown}`",
                hint="let one of them run",
                code="state_used",
            )
        return pending

    def _forget_final_ids(self, micro_batch: MicroBatch, started: int) -> None:
        """Forget the ids of events that are final before a micro-batch that was ``started`` then."""
        if self._recent is None and self._job.op is None and self._job.schema.id not in (None, ROW):
            kept_ids = bucket_of(micro_batch, 0).kept_ids()
            self._recent = RecentIds(self._job.schema, kept_ids=kept_ids)
        if self._recent is not None:
            self._recent.forget(micro_batch.final, self._job.greatest_tick(started if self._job.clocked else None))

    def _check(self, rows: pa.Table, path: Path) -> None:
        check_values(self._job, rows, path)

    def _versions_for(self, micro_batch: MicroBatch) -> tuple[NewVersion, ...]:
        """Return the versions of queries that are new. Raises :class:`DataError` or :class:`QueryError`, with nothing
        recorded, if a file cannot be read or a query cannot be replaced by it."""
        if self._rules is not None:
            recorded, number = self._done.get("rules", {}), self._done.get("version", 0)
            return tuple(self._rules.find_changes(recorded, number, self._job.schema, self._job.engine))
        if self._newer is None:
            return ()
        new_versions = versions_in_folder(self._newer, self._job.names, self._done.get("version", 0))
        if new_versions:
            bucket_of(micro_batch, 0).replace(new_versions, micro_batch.since, micro_batch.final)
        return tuple(new_versions)

    def look_at_rules(self) -> None:
        """Report the problems of the rules, without taking changes in. Raise what :meth:`step` raises for them."""
        if self._rules is None:
            return
        if self._versions is None:  # no event has come yet, so nothing says which columns there are
            self._rules.find_unreadable()
        else:
            self._rules.find_changes(self._done.get("rules", {}), 0, self._job.schema, self._job.engine)

    def sum_up(self, batches: int, seconds: float) -> Followed:
        """Return the result after so many micro-batches and seconds."""
        report, reports = reports_in([self._done]) if self._done["told"] else (Report(), {})
        problems = () if self._rules is None else self._rules.problems
        return Followed(
            batches, seconds, report, reports, self.journal.ended, self.bad, self.outbox.folder, problems,
            tuple(self._moved), self._gaps,
        )  # fmt: skip

    def _select(self, *, end: bool) -> Selection | None:
        """Return what a new micro-batch takes, ``None`` if there is nothing to process."""
        selection = self._source.select(end=end)
        if self.journal.ended:
            if selection.files or selection.stretches:
                is_new = f"`{selection.files[0].name}` is new" if selection.files else ""
                is_new = is_new or f"`{selection.stretches[0].name}` has new lines"
                raise SnapshotError(
                    f"the stream in `{self.journal.shown}` has ended, and {is_new}",
                    hint="begin a new state and output for it",
                )
            return None
        if self._versions is None:
            settled = self.inbox.settle(self._source.settling_parts(selection))
            if settled is None:
                return None
            n_files, schema = settled
            selection = replace(selection, files=selection.files[:n_files])
            self._settle(self.journal.settle(self._settings(schema, self._job_of(schema)[0])))
        return None if selection.is_empty and not end else self._source.limit(selection)

    def _settings(self, schema: pa.Schema, job: Job) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "query": [canonical(query) for query in job.queries] if job.clause is None else [job.clause.text],
            "reading": self.inbox.about,
            "fingerprint": job.fingerprint,
            "columns": schema.serialize().to_pybytes().hex(),
        }

    def _settle(self, settings: Any) -> None:
        """Use the columns of the settings. Raises :class:`SnapshotError` if they are of another query or options."""
        try:
            if settings["format"] != FORMAT:
                difference = f"has format {settings['format']!r}, which this acep does not read"
                raise self._unfit_error(
                    difference, "go on with the acep that wrote it, or begin a new state and output"
                )
            schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(settings["columns"])))
        except (KeyError, TypeError, ValueError, pa.ArrowException):
            raise SnapshotError(
                f"the state is damaged: `{self.journal.shown}/settings`", hint=BACK, code="state_damaged"
            ) from None
        hint = "go on with what it was made with, or begin a new state and output; nothing was lost"
        try:
            job, delay_ms = self._job_of(schema)
        except (QueryError, DataError) as error:  # there was a job of these columns
            raise self._unfit_error(
                f"was made with another query, or with other options: {error.message}", hint
            ) from None
        expected = self._settings(schema, job)
        complaints = {"query": "another query", "reading": "other options of reading", "fingerprint": "other options"}
        if isinstance(reading := settings.get("reading"), dict):  # a later run may skip the bad line that stopped this
            is_skipping = {"skip_bad_lines": self.inbox.options.skip_bad_lines}
            settings = settings | {"reading": reading | is_skipping}
        for name, difference in complaints.items():
            if settings.get(name) != expected[name]:
                raise self._unfit_error(f"was made with {difference}", hint)
        self._schema, self._job, self._delay_ms = schema, job, delay_ms
        self._versions = StateFiles(
            LocalFolder(self._state / "versions", durable=self._folder.durable),
            query=QUERY,
            call=job.fingerprint[:32],
            run=self._run,
            buckets=job.buckets,
            keep=KEEP,
            describe=partial(describe_job, job),
        )

    def _unfit_error(self, complaint: str, hint: str) -> SnapshotError:
        return SnapshotError(f"the state in `{self.journal.shown}` {complaint}", hint=hint)


def _error_for_files(error: SnapshotError, batch: int) -> SnapshotError:
    """Return the same error with the hint that applies to a follower."""
    if "taken over" in error.message:
        return SnapshotError(
            error.message, hint="let one follower run for each state; then start it again", code=error.code
        )
    back = f"go back to the beginning of micro-batch {max(batch - 1, 0)}"
    return SnapshotError(
        error.message, hint=f"put a copy of the state back; or, as docs/howto/follow.md says, {back}", code=error.code
    )


def _bucket_rows(job: Job, arrived: Arrived, planned: Planned, now: int | None) -> BucketRows:
    """Return the rows of a micro-batch in the order of time, for the only bucket."""
    rows, ts, tick_ns = arrived.rows, job.schema.ts, job.schema.tick_ns or 1
    ticks, moves = (ticks_of(ts, table.column(ts), tick_ns)[0] for table in (rows, arrived.punctuations))
    newest = [newest_tick(job, ticks, now), newest_tick(job, moves, now, arrived.punctuations)]
    if len(ticks) and (np.diff(ticks) < 0).any():
        order = np.argsort(ticks, kind="stable")
        rows, ticks = rows.take(pa.array(order)), ticks[order]
    identities = [
        *map(astuple, planned.files),
        *map(astuple, planned.stretches),
        *(version.data() for version in planned.versions),
    ]
    return BucketRows(
        pa.table({name: column_at(rows, name) for name in job.columns}),
        max((tick for tick in newest if tick is not None), default=None),
        f"{len(ticks)} {hashlib.blake2b(json.dumps(identities).encode(), digest_size=16).hexdigest()}",
        ended=planned.end or arrived.ends,
        versions=planned.versions,
        duplicates=arrived.duplicates,
    )
