"""Build the columns by which workers choose the events of a stream that travel, in the plan that each micro-batch has.

The plan of a stream is fixed, so the thresholds of a micro-batch cannot be part of it, as they are in foreachBatch. A
function of Python gets a few integers of each row besides its time: the hash of its sampling unit, when that begins,
and the cell of its key. It knows the thresholds (:mod:`acep.spark.workers.admission_worker`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from acep.overload.admission import ALL, CELLS
from acep.overload.early_shedding import EarlyShedding
from acep.overload.event_choice import EXPLORED, Exploring
from acep.overload.key_utility import SEPARATOR
from acep.overload.needed_events import Use
from acep.spark.columns.fields import quote_name
from acep.spark.columns.needed_filter import filter_column
from acep.spark.columns.times import end_column
from acep.spark.job import SentJob
from acep.spark.job_run import bucket_numbers, codes_of, event_ticks
from acep.spark.newest_time import ANNOUNCES, NEVER, with_announcements
from acep.spark.workers.admission_worker import ADMITTED, LATE, NEWEST, admit_rows
from acep.spark.workers.state_place import StatePlace

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["cell_column", "kept_rank", "unit_begin", "unit_hash", "with_admission"]

# Columns of a row: its time in ticks; whether it is an event, and one that some query needs; in each pass the number of
# its bucket; what the function of Python says.
TICKS, EVENT, NEEDED, NUMBER, MARKS, GOING = "__ticks", "__event", "__needed", "__number", "__marks", "__going"


def with_admission(
    frame: DataFrame, job: SentJob, place: StatePlace, shedding: EarlyShedding, uses: Sequence[Use] | None, name: str
) -> tuple[DataFrame, Column]:
    """Return the rows with the columns of their choice, which Spark counts in the observation ``name``, and the codes
    of the buckets to which each travels. ``uses`` are those that queries have for events; ``None``: all are needed."""
    from pyspark.sql import functions as sf

    admission, time_type = shedding.admission, frame.schema[job.schema.ts].dataType
    assert admission is not None
    ts = sf.col(quote_name(job.schema.ts))
    event = sf.coalesce(ts < end_column(time_type), sf.lit(False))
    usable = filter_column(frame.schema, uses, job.schema.type)
    numbers = bucket_numbers(frame, job)
    rows = frame.withColumns(
        {
            TICKS: sf.when(event, event_ticks(frame, job)),
            EVENT: event,
            NEEDED: sf.lit(True) if usable is None else usable,
        }
        | {f"{NUMBER}{i}": number for i, number in enumerate(numbers)}
    )
    ticks = sf.col(TICKS)
    columns: list[Column] = [sf.coalesce(ticks, sf.lit(NEVER))]
    for part in job.passes:
        begin = sf.coalesce(unit_begin(admission.length, admission.seed, part.keys, ticks), sf.lit(0))
        columns += [begin, unit_hash(admission.seed, part.keys, begin)]
    columns.append(cell_column(job.passes[0].keys) if shedding.has_cells else sf.lit(0).cast("long"))
    if shedding.exploring is not None:
        columns.append(kept_rank(job, shedding.exploring, ticks).cast("long"))
    rows = rows.withColumn(MARKS, _marking_function(job, place, shedding)(*columns))
    marks = sf.col(MARKS)
    # Rows without a time or too far ahead have no ticks: they travel, so that the workers refuse or count them.
    free = ticks.isNull()
    going = {
        f"{GOING}{i}": sf.when(free | (sf.col(NEEDED) & _has(marks, ADMITTED << i)), sf.col(f"{NUMBER}{i}"))
        for i in range(len(job.passes))
    }
    rows = rows.withColumns(going | {ANNOUNCES: _has(marks, NEWEST)})
    rows = rows.observe(name, *_counts(job))
    travelling = sf.coalesce(*(sf.col(column) for column in going)).isNotNull() | sf.col(ANNOUNCES) | free
    codes = codes_of(frame, job, [sf.col(column) for column in going])
    return rows.where(travelling), with_announcements(codes, place.partitions)


def _counts(job: SentJob) -> list[Column]:
    """Return the aggregates of all rows, in all passes, that the driver needs."""
    from pyspark.sql import functions as sf

    counted = sf.col(EVENT) & sf.col(TICKS).isNotNull()

    def count(condition: Column, column: str = NUMBER) -> Column:
        counts = [sf.count(sf.when(condition, sf.col(f"{column}{i}"))) for i in range(len(job.passes))]
        return sum(counts[1:], counts[0])

    return [
        sf.count(sf.lit(1)).alias("rows"),
        count(counted).alias("events"),
        count(counted & sf.col(NEEDED)).alias("needed"),
        count(counted, GOING).alias("carried"),
        count(counted & ~sf.col(NEEDED) & _has(sf.col(MARKS), LATE)).alias("late"),
        sf.max(TICKS).alias("seen"),
    ]


def _has(marks: Column, bit: int) -> Column:
    from pyspark.sql import functions as sf

    return marks.bitwiseAND(sf.lit(bit)) != 0


def _marking_function(job: SentJob, place: StatePlace, shedding: EarlyShedding) -> Any:
    """Return the function of Spark from the integers of a row to its marks."""
    import pandas as pd
    from pyspark.sql import functions as sf

    def acep_admit(parts: Any) -> Any:
        return map(
            pd.Series, admit_rows(job, place, shedding, ([column.to_numpy() for column in part] for part in parts))
        )

    # As in `announce_newest`: one call for each task, with all parts.
    acep_admit.__annotations__ = {"parts": Iterator[tuple[pd.Series, ...]], "return": Iterator[pd.Series]}
    return sf.pandas_udf(acep_admit, "long").asNondeterministic()  # type: ignore[attr-defined]


def unit_begin(length: int, seed: int, keys: Sequence[str], ticks: Column) -> Column:
    """Return the beginning of an event's sampling unit, in ticks."""
    from pyspark.sql import functions as sf

    offset = sf.pmod(sf.xxhash64(*(sf.col(quote_name(key)) for key in keys), sf.lit(seed)), sf.lit(length))
    return ticks - sf.pmod(ticks - offset, sf.lit(length))


def unit_hash(seed: int, keys: Sequence[str], begin: Column) -> Column:
    """Return the hash of an event's sampling unit, below :data:`~acep.overload.admission.ALL`."""
    from pyspark.sql import functions as sf

    hashed = sf.xxhash64(*(sf.col(quote_name(key)) for key in keys), begin, sf.lit(seed))
    return sf.pmod(hashed, sf.lit(ALL))


def cell_column(keys: Sequence[str]) -> Column:
    """Return the cell of an event's key, equal to :func:`acep.overload.key_utility.cell_of`."""
    from pyspark.sql import functions as sf

    texts = [sf.col(quote_name(key)).cast("string") for key in keys]
    text = texts[0] if len(texts) == 1 else sf.concat_ws(SEPARATOR, *texts)
    return sf.coalesce(sf.pmod(sf.crc32(text), sf.lit(CELLS)), sf.lit(0).cast("long"))


def kept_rank(job: SentJob, exploring: Exploring, ticks: Column) -> Column:
    """Return the rank of an event's cell in the order in which single events are kept; -1 in an explored unit, all of
    whose events are."""
    from pyspark.sql import functions as sf

    utility = exploring.utility
    kind = sf.col(quote_name(job.schema.type or ""))
    types = sf.array(*(sf.lit(type_name) for type_name in utility.types))
    position = sf.coalesce(sf.array_position(types, kind.cast("string")), sf.lit(0)).cast("int")
    cell = sf.when(position > 0, position - 1).otherwise(len(utility.types))
    for name, edges in utility.bins:
        value = sf.col(quote_name(name)).cast("double")
        reached = [sf.when(~sf.isnan(value) & (value >= edge), 1).otherwise(0) for edge in edges]
        cell = cell * (len(edges) + 1) + sum(reached[1:], reached[0])
    rank = [0] * len(utility.order)
    for number, cell_number in enumerate(utility.order):
        rank[cell_number] = number
    begin = ticks - sf.pmod(ticks, sf.lit(exploring.length))
    texts = [*(sf.col(quote_name(key)).cast("string") for key in exploring.keys), begin.cast("string")]
    hashed = sf.crc32(sf.concat_ws(SEPARATOR, *texts, sf.lit(str(exploring.seed))))
    is_explored = sf.pmod(hashed, sf.lit(EXPLORED)) == 0
    return sf.when(is_explored, -1).otherwise(sf.get(sf.array(*map(sf.lit, rank)), cell))
