"""Choose on a worker which rows of a micro-batch travel, by the decision that the first of its tasks writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from acep.overload.batch_log import Decision
from acep.overload.early_shedding import EarlyShedding
from acep.overload.sampling_units import are_explored, cells_of, unit_begins, unit_hashes
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
    """Yield the bits of the rows of a task. Each part has arrays of the shape ``(rows,)``: the times, in ticks, or
    :data:`~acep.spark.newest_time.NEVER`; for each pass the hashes of keys; and, where single events may be shed, the
    ranks of the cells of events (:func:`acep.spark.shed_columns.event_rank`)."""
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
        hashes, ranks = columns[: len(job.passes)], columns[len(job.passes) :]
        for i, key_hashes in enumerate(hashes):
            marks[_are_admitted(shedding, decision, ticks, key_hashes, ranks)] |= ADMITTED << i
        yield marks


def _are_admitted(
    shedding: EarlyShedding, decision: Decision, ticks: Integers, hashes: Integers, ranks: Sequence[Integers]
) -> npt.NDArray[np.bool_]:
    admission, exploring = decision.admission, shedding.exploring
    admitted = np.ones(len(ticks), bool)
    if admission is not None and not admission.admits_all:
        begins = unit_begins(admission.length, admission.seed, hashes, ticks)
        admitted = admission.admit_rows(
            unit_hashes(admission.seed, hashes, begins), begins, ticks, cells_of(hashes) if shedding.has_cells else None
        )
    if exploring is not None and decision.events.n_cells is not None:
        begins = ticks - ticks % exploring.length
        admitted &= (ranks[0] < decision.events.n_cells) | are_explored(exploring.seed, hashes, begins)
    return admitted
