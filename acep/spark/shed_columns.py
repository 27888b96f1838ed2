"""Build the columns by which workers choose the events of a stream that travel, in the plan that each micro-batch has.

The plan of a stream is fixed, so the thresholds of a micro-batch cannot be part of it, as they are in foreachBatch. A
function of Python gets the time and the hash of the key of each row. It knows the thresholds
(:mod:`acep.spark.workers.admission_worker`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from acep.overload.early_shedding import EarlyShedding
from acep.overload.event_choice import Exploring
from acep.overload.load import SENT
from acep.overload.needed_events import Use
from acep.overload.sampling_units import CELL_SHIFT, EXPLORED, EXPLORED_SHIFT, salt_of
from acep.overload.unit_admission import ALL, CELLS
from acep.spark.columns.fields import quote_name
from acep.spark.columns.needed_filter import filter_column
from acep.spark.columns.times import end_column
from acep.spark.job import SentJob
from acep.spark.job_run import bucket_numbers, codes_of, event_ticks
from acep.spark.newest_time import ANNOUNCES, NEVER, with_announcements
from acep.spark.row_functions import row_function
from acep.spark.workers.admission_worker import ADMITTED, LATE, NEWEST, admit_rows
from acep.spark.workers.state_place import StatePlace

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

__all__ = ["cell_column", "event_rank", "hash_of_key", "is_explored", "unit_begin", "unit_hash", "with_admission"]

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
    columns += [hash_of_key(frame.schema, part.keys) for part in job.passes]
    if shedding.exploring is not None:
        columns.append(event_rank(job, shedding.exploring).cast("long"))
    admit = row_function("acep_admit", partial(admit_rows, job, place, shedding), "long", len(columns))
    rows = rows.withColumn(MARKS, admit(*columns))
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
        count(counted, GOING).alias(SENT),
        count(counted & ~sf.col(NEEDED) & _has(sf.col(MARKS), LATE)).alias("late"),
        sf.max(TICKS).alias("seen"),
    ]


def _has(marks: Column, bit: int) -> Column:
    from pyspark.sql import functions as sf

    return marks.bitwiseAND(sf.lit(bit)) != 0


def hash_of_key(schema: StructType, keys: Sequence[str], *others: Column) -> Column:
    """Return the hash of an event's key and of ``others``; the key alone is equal to
    :func:`acep.overload.sampling_units.hash_of_keys`."""
    from pyspark.sql import functions as sf
    from pyspark.sql.types import IntegralType

    columns = [sf.col(quote_name(key)) for key in keys]
    is_integer = [isinstance(schema[key].dataType, IntegralType) for key in keys]
    as_long = [column.cast("long") if wide else column for column, wide in zip(columns, is_integer, strict=True)]
    return sf.xxhash64(*as_long, *others)


def unit_begin(length: int, seed: int, hashed: Column, ticks: Column) -> Column:
    """Return the beginning of an event's sampling unit, in ticks, from the hash of its key. Equal to
    :func:`acep.overload.sampling_units.unit_begins`."""
    from pyspark.sql import functions as sf

    offset = sf.pmod(hashed.bitwiseXOR(sf.lit(salt_of(seed))), sf.lit(length))
    return ticks - sf.pmod(ticks - offset, sf.lit(length))


def unit_hash(schema: StructType, seed: int, keys: Sequence[str], begin: Column) -> Column:
    """Return the hash of an event's sampling unit, below :data:`~acep.overload.unit_admission.ALL`. Equal to
    :func:`acep.overload.sampling_units.unit_hashes`."""
    from pyspark.sql import functions as sf

    return hash_of_key(schema, keys, begin.bitwiseXOR(sf.lit(seed).cast("long"))).bitwiseAND(sf.lit(ALL - 1))


def cell_column(hashed: Column) -> Column:
    """Return the cell of an event's key from its hash. Equal to :func:`acep.overload.sampling_units.cells_of`."""
    from pyspark.sql import functions as sf

    return sf.shiftright(hashed, CELL_SHIFT).bitwiseAND(sf.lit(CELLS - 1))


def is_explored(schema: StructType, exploring: Exploring, ticks: Column) -> Column:
    """Return whether an event is in a unit all of whose events travel. Equal to
    :func:`acep.overload.sampling_units.are_explored`."""
    from pyspark.sql import functions as sf

    begin = ticks - sf.pmod(ticks, sf.lit(exploring.length))
    hashed = hash_of_key(schema, exploring.keys, begin.bitwiseXOR(sf.lit(exploring.seed).cast("long")))
    return sf.shiftright(hashed, EXPLORED_SHIFT).bitwiseAND(sf.lit(EXPLORED - 1)) == 0


def event_rank(job: SentJob, exploring: Exploring) -> Column:
    """Return the rank of an event's cell in the order in which single events are kept."""
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
    return sf.get(sf.array(*map(sf.lit, rank)), cell)
