"""Send the newest time of a micro-batch to all of its partitions, so that buckets without rows know it, too.

A match is certain once the newest time of all rows is far enough ahead of it, whichever bucket the newest row is in. So
the tasks that read the source mark their newest rows, and each marked row goes to every partition besides its own
bucket. Only times go through Python here. Spark allows no aggregate on a stream that keeps no state, and reading the
source once more would take its time again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from acep.spark.row_functions import row_function
from acep.spark.workers.frozen_objects import run_task

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["ANNOUNCES", "NEVER", "announce_newest", "mark_newest", "with_announcements", "with_punctuations"]

ANNOUNCES = "__announces"
"""The column that tells whether a row goes to all partitions."""
NEVER: Final = -(2**63)
"""The time, in ticks, of a row that is no event."""


def mark_newest(parts: Iterable[npt.NDArray[np.int64]]) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield for each array of times, in ticks, which of them is newer than all before, and the newest of its array.

    >>> parts = np.array([1, 3, 2]), np.array([3, 2]), np.array([], np.int64), np.array([NEVER, 4])
    >>> [marks.tolist() for marks in mark_newest(parts)]
    [[False, True, False], [False, False], [], [False, True]]
    """
    newest = NEVER
    for ticks in parts:
        marks = np.zeros(len(ticks), bool)
        if len(ticks):
            row_index = int(ticks.argmax())
            if ticks[row_index] > newest:
                newest = int(ticks[row_index])
                marks[row_index] = True
        yield marks


def announce_newest(frame: DataFrame, ticks: Column) -> DataFrame:
    """Return a frame with the column :data:`ANNOUNCES`; ``ticks`` is the time of a row, null for one that is no event.

    Each task of Spark marks rows of its own. The newest row of all is marked by the task that has it.
    """
    from pyspark.sql import functions as sf

    marks = row_function("acep_announce", _mark_newest_rows, "boolean", 1)
    return frame.withColumn(ANNOUNCES, marks(sf.coalesce(ticks, sf.lit(NEVER))))


def _mark_newest_rows(parts: Iterable[Sequence[npt.NDArray[np.int64]]]) -> Iterator[npt.NDArray[np.bool_]]:
    yield from run_task(mark_newest, (ticks for (ticks,) in parts))


def with_announcements(codes: Column, partitions: int, is_needed: Column | None = None) -> Column:
    """Return the codes of a row, an array, with a code for each partition if the row is marked. The code ``-1 - n`` of
    partition ``n`` says that only the time of the row counts. A marked row that no query needs has no other codes."""
    from pyspark.sql import functions as sf

    to_all = sf.array(*(sf.lit(-1 - number) for number in range(partitions)))
    marked_codes = sf.concat(codes, to_all)
    if is_needed is not None:
        marked_codes = sf.when(is_needed, marked_codes).otherwise(to_all)
    return sf.when(sf.col(ANNOUNCES), marked_codes).otherwise(codes)


def with_punctuations(codes: Column, is_no_event: Column) -> Column:
    """Return the codes of a row, an array, for a single partition: a punctuation, which has no bucket, brings its time
    to the bucket 0."""
    from pyspark.sql import functions as sf

    return sf.when(is_no_event, sf.array(sf.lit(-1))).otherwise(codes)
