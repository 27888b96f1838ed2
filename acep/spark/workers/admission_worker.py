"""Choose on a worker which rows of a micro-batch travel, by the decision that the first of its tasks writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from acep.overload.batch_log import Decision
from acep.overload.early_shedding import EarlyShedding
from acep.spark.job import SentJob
from acep.spark.newest_time import NEVER
from acep.spark.workers.batch_decision import decide_batch
from acep.spark.workers.frozen_objects import run_task
from acep.spark.workers.state_place import StatePlace, context_of_task
from acep.streaming.times import first_open_tick, watermark_of

__all__ = ["ADMITTED", "LATE", "NEWEST", "admit_rows"]

NEWEST: Final = 1
"""The bit of a row that is announced to all partitions."""
LATE: Final = 2
"""The bit of a row that comes late."""
ADMITTED: Final = 4
"""The bit of a row that travels in the first pass; those of further passes follow."""

Integers = npt.NDArray[np.int64]


def admit_rows(
    job: SentJob, place: StatePlace, shedding: EarlyShedding, parts: Iterable[Sequence[Integers]]
) -> Iterator[Integers]:
    """Yield the bits of the rows of a task. Each part has arrays of the shape ``(rows,)``: the times, in ticks; for
    each pass the beginnings and the hashes of sampling units; the cells of keys; and, where single events may be shed,
    the ranks of the cells of events (:func:`acep.spark.shed_columns.kept_rank`)."""
    yield from run_task(_admit_rows, job, place, shedding, parts)


def _admit_rows(
    job: SentJob, place: StatePlace, shedding: EarlyShedding, parts: Iterable[Sequence[Integers]]
) -> Iterator[Integers]:
    decision = decide_batch(job, place, shedding, context_of_task(job, place))
    final = first_open_tick(watermark_of(decision.carried.seen, place.delay_ms, job.tick_ms), job.tick_ms)
    newest = NEVER
    for ticks, *columns in parts:
        marks = np.zeros(len(ticks), np.int64)
        if len(ticks) and int(ticks.max()) > newest:
            newest = int(ticks.max())
            marks[int(ticks.argmax())] |= NEWEST
        if final is not None:
            marks[ticks < final] |= LATE
        for i in range(len(job.passes)):
            begins, hashes = columns[2 * i : 2 * i + 2]
            marks[_are_admitted(decision, ticks, begins, hashes, columns[2 * len(job.passes) :])] |= ADMITTED << i
        yield marks


def _are_admitted(
    decision: Decision, ticks: Integers, begins: Integers, hashes: Integers, others: Sequence[Integers]
) -> npt.NDArray[np.bool_]:
    cells, *ranks = others
    admitted = np.ones(len(ticks), bool)
    if decision.admission is not None and not decision.admission.admits_all:
        admitted = decision.admission.admit_rows(hashes, begins, ticks, cells)
    if ranks and decision.events.n_cells is not None:
        admitted &= ranks[0] < decision.events.n_cells
    return admitted
