"""Build Spark expressions over the rows of a micro-batch: which are events, which may travel, and their counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from acep.overload.batch_log import Decision
from acep.overload.event_choice import Exploring
from acep.overload.load import SENT
from acep.overload.needed_events import Use
from acep.overload.sampled_recall import POINTS
from acep.overload.unit_admission import CELLS, SHIFT, Pieces, UnitAdmission
from acep.spark.columns.fields import quote_name
from acep.spark.columns.needed_filter import filter_column
from acep.spark.columns.times import end_column, is_punctuation, ticks_of_row
from acep.spark.foreach.unshed import UnshedColumns, add_columns, unshed_columns, varying_column
from acep.spark.job import SentJob
from acep.spark.job_run import bucket_numbers, codes_of, has_null_key, observed_columns, sent_columns
from acep.spark.newest_time import ANNOUNCES, with_announcements, with_punctuations
from acep.spark.shed_columns import (
    cell_column,
    event_rank,
    hash_of_key,
    is_explored,
    unit_begin,
    unit_hash,
)
from acep.streaming.totals import METRICS_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

__all__ = ["RowColumns", "row_columns"]

# Columns computed for a row: whether it is an event, and one that some query can use; its time in ticks; in each pass
# the number of its bucket, the beginning of its sampling unit, and the bucket's number if it travels; its key's cell.
EVENT, NEEDED, TICKS, NUMBER, BEGIN, GOING = "__event", "__needed", "__ticks", "__number", "__begin", "__going"
CELL = "__cell"
AHEAD = "__ahead"  # whether the time of the row is too far ahead, so that it is no event


@dataclass(frozen=True)
class RowColumns:
    """Expressions that are reused in every micro-batch, because building them takes Spark a while.

    ``read`` are columns of each row, ``observed`` aggregates of all rows, ``sent`` columns of the rows for which
    ``travels`` is true. ``metrics`` collects those of buckets, and ``points`` the texts on match points. In each of
    some ``passes`` a row has a bucket. ``unshed`` is for micro-batches of which nothing is shed. ``needs_all`` tells
    whether all events are needed. Rows that have the newest time go to so many partitions: ``announced_to``.
    ``exploring`` says which single events may be shed. ``selections`` caches the last micro-batch's expressions that
    select rows.
    """

    read: tuple[Column, ...]
    observed: tuple[Column, ...]
    passes: int
    travels: Column
    sent: tuple[Column, ...]
    metrics: tuple[Column, ...]
    points: tuple[Column, ...]
    unshed: UnshedColumns
    needs_all: bool
    announced_to: int
    exploring: Exploring | None = None
    selections: dict[str, tuple[list[Column], list[Column]]] = field(default_factory=dict, compare=False)

    def counting_columns(self, before: int | None, latest: int | None) -> list[Column]:
        """Return the aggregates of all rows. Idle rows with a time less than ``before`` (ticks) count as late, and rows
        with a time greater than ``latest`` as ahead."""

        observed = list(self.observed)
        # As texts: one call of Spark for each, not one for each part of an expression.
        if before is not None:
            late = f"{EVENT} AND NOT {NEEDED} AND {TICKS} < get(array({_number(before)}), pmod({TICKS}, 1))"
            observed.append(self._count(late).alias("late"))
        if latest is not None:
            observed.append(self._count(AHEAD).alias("ahead"))
        return observed

    def _count(self, condition: str) -> Column:
        """Count the buckets of the rows for which a condition in SQL holds."""
        from pyspark.sql import functions as sf

        return sf.expr(" + ".join(f"count(CASE WHEN {condition} THEN {NUMBER}{i} END)" for i in range(self.passes)))

    def all_travel(self, decision: Decision) -> bool:
        """Return whether all needed events travel, and none is too far ahead."""
        sheds = decision.admission is not None and not decision.admission.admits_all
        return not sheds and decision.latest is None and (self.exploring is None or decision.events.n_cells is None)

    def compute_columns(self, frame: DataFrame, job: SentJob, decision: Decision) -> DataFrame:
        """Return the columns ``read`` of the rows of ``frame``, with the numbers of the buckets to which each
        travels."""
        from pyspark.sql import functions as sf

        # Separate steps, so that Spark computes columns that are used several times only once.
        rows, admission = frame.select(*self.read), decision.admission
        if decision.latest is not None:
            latest = varying_column([decision.latest], sf.col(TICKS))(decision.latest)
            is_near = sf.coalesce(sf.col(TICKS) <= latest, sf.lit(True))
            is_no_event = is_punctuation(rows.schema, job.schema)
            is_near = is_near if is_no_event is None else is_near | is_no_event
            near_columns = {name: sf.col(name) & is_near for name in (EVENT, NEEDED)}
            rows = rows.withColumns(near_columns | {TICKS: sf.when(is_near, sf.col(TICKS)), AHEAD: ~is_near})
        pieces = [] if admission is None or admission.admits_all else admission.pieces(decision.carried.seen)
        n_cells = None if self.exploring is None else decision.events.n_cells
        same = repr((pieces, n_cells))
        if admission is not None and pieces:
            same += repr((admission.span, admission.seed, admission.favoured))
        if same not in self.selections:
            self.selections.clear()
            single = None
            if self.exploring is not None and n_cells is not None:
                ticks = sf.col(TICKS)
                single = event_rank(job, self.exploring) < varying_column([n_cells], ticks)(n_cells)
                single = single | is_explored(rows.schema, self.exploring, ticks)
            self.selections[same] = _selecting_columns(job, admission if pieces else None, pieces, single, rows.schema)
        first, going = self.selections[same]
        return (rows.select("*", *first) if first else rows).select("*", *going)


def row_columns(
    frame: DataFrame,
    job: SentJob,
    uses: Sequence[Use] | None,
    announced_to: int,
    exploring: Exploring | None = None,
    *,
    gets_all: bool = False,
) -> RowColumns:
    """Build the expressions over rows with the columns of ``frame``, including struct fields.

    ``uses`` are the uses that queries have for events; ``None`` if every event is needed. Rows that have the newest
    time go to so many partitions: ``announced_to`` (0: none does). ``gets_all``: the only partition gets all rows.
    """
    from pyspark.sql import functions as sf

    ts, time_type = sf.col(quote_name(job.schema.ts)), frame.schema[job.schema.ts].dataType
    event = ts.isNotNull() & ~(ts >= end_column(time_type))
    usable = filter_column(frame.schema, uses, job.schema.type)
    needed = event if usable is None else event & usable
    ticks = sf.when(event, ticks_of_row(job.schema.ts, time_type, job.schema))
    numbers = bucket_numbers(frame, job)
    names = sorted({*job.columns, *(key for part in job.passes for key in part.keys)})
    # Only the columns that are needed: otherwise Spark would read the others for the observation, too.
    read = [sf.col(quote_name(name)) for name in names]
    read += [event.alias(EVENT), needed.alias(NEEDED), ticks.alias(TICKS)]
    read += [number.alias(f"{NUMBER}{i}") for i, number in enumerate(numbers)]
    number, going = ([sf.col(f"{name}{i}") for i in range(len(numbers))] for name in (NUMBER, GOING))
    event_counts = [sf.count(sf.when(sf.col(EVENT), bucket)) for bucket in number]
    needed_counts = [sf.count(sf.when(sf.col(NEEDED), bucket)) for bucket in number]
    sent_counts = [sf.count(sf.when(sf.col(EVENT), bucket)) for bucket in going]
    observed = (
        sf.count(sf.lit(1)).alias("rows"),
        add_columns(event_counts).alias("events"),
        add_columns(needed_counts).alias("needed"),
        add_columns(sent_counts).alias(SENT),
        sf.count(sf.when(sf.col(EVENT) & has_null_key(frame, job), 1)).alias("null_keys"),
        sf.max(TICKS).alias("seen"),
    )
    travels = ~sf.coalesce(sf.col(EVENT), sf.lit(False)) | sf.coalesce(*going).isNotNull()
    codes = codes_of(frame, job, going)
    if announced_to:
        travels, codes = travels | sf.col(ANNOUNCES), with_announcements(codes, announced_to)
    is_no_event = is_punctuation(frame.schema, job.schema) if gets_all else None
    if is_no_event is not None:
        travels, codes = travels | is_no_event, with_punctuations(codes, is_no_event)
    sent = sent_columns(frame, job, codes)
    points = sf.col(METRICS_COLUMN).startswith(POINTS)
    metrics = observed_columns(job.names, sf.when(~points, sf.col(METRICS_COLUMN)))
    counted = observed_columns(job.names, sf.when(points, sf.col(METRICS_COLUMN)))
    unshed = unshed_columns(frame, job, event, usable, announced_to, is_no_event)
    columns = (tuple(read), observed, len(numbers), travels, tuple(sent), tuple(metrics), tuple(counted), unshed)
    return RowColumns(*columns, usable is None, announced_to, exploring)


def _selecting_columns(
    job: SentJob, admission: UnitAdmission | None, pieces: Pieces, single: Column | None, schema: StructType
) -> tuple[list[Column], list[Column]]:
    """Build the columns that select the rows that travel: columns to be computed first, and the numbers of the
    buckets. ``single`` tells which single events are kept."""
    from pyspark.sql import functions as sf

    first: list[Column] = []
    admitted: list[Column] = []
    no_time = sf.col(quote_name(job.schema.ts)).isNull()
    if admission is not None:
        length, seed = admission.length, admission.seed
        hashes = [hash_of_key(schema, part.keys) for part in job.passes]
        begins = [unit_begin(length, seed, hashed, sf.col(TICKS)) for hashed in hashes]
        first = [begin.alias(f"{BEGIN}{i}") for i, begin in enumerate(begins)]
        first += [cell_column(hashes[0]).alias(CELL)] if any(admission.favoured) else []
        unit_hashes = [unit_hash(schema, seed, part.keys, sf.col(f"{BEGIN}{i}")) for i, part in enumerate(job.passes)]
        admitted = [_is_admitted(admission, pieces, hashed, i) | no_time for i, hashed in enumerate(unit_hashes)]
    going = []
    for i in range(len(job.passes)):
        number = sf.when(sf.col(NEEDED) | no_time, sf.col(f"{NUMBER}{i}"))
        number = number if single is None else sf.when(single | no_time, number)
        going.append((sf.when(admitted[i], number) if admitted else number).alias(f"{GOING}{i}"))
    return first, going


def _number(number: int) -> str:
    """Return a number in SQL, which has no literal for the least one."""
    return f"CAST('{number}' AS BIGINT)"


def _numbers(steps: Sequence[tuple[int, Sequence[int]]]) -> Iterator[int]:
    for since, values in steps:
        yield from (since, *values)


def _is_admitted(admission: UnitAdmission, pieces: Pieces, hashed: Column, number: int) -> Column:
    """Build the column that tells whether an event is admitted in a pass, equal to :meth:`UnitAdmission.admits`.
    ``hashed`` is the hash of its unit."""
    from pyspark.sql import functions as sf

    begin, ticks = sf.col(f"{BEGIN}{number}"), sf.col(TICKS)
    # The end of a unit may exceed 64 bits; `try_add` is then null, and `least` ignores it.
    last = sf.least(ticks, sf.try_add(begin, sf.lit(admission.length - admission.span - 1)))
    numbers = [bound for bound, _ in pieces] + [figure for _, steps in pieces for figure in _numbers(steps)]
    number_of = varying_column(numbers, ticks)
    admitted = sf.lit(True)
    for table, favoured in enumerate(admission.favoured):
        threshold: Column | None = None
        for bound, steps in reversed(pieces):
            inner = number_of(steps[-1][1][table])
            for since, values in reversed(steps[:-1]):
                inner = sf.when(begin > number_of(since), number_of(values[table])).otherwise(inner)
            threshold = inner if threshold is None else sf.when(last > number_of(bound), inner).otherwise(threshold)
        assert threshold is not None
        if favoured:
            chosen = set(favoured)
            times = sf.array(*(sf.lit(1 << SHIFT if cell in chosen else 1) for cell in range(CELLS)))
            threshold = threshold.cast("long") * sf.get(times, sf.col(CELL))
        admitted = admitted & (hashed < threshold)
    return admitted
