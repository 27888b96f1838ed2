"""Plan how a stream sheds events before they travel: by its budget, its queries and its columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from acep.budget import Budget
from acep.budget.pace import pace_of
from acep.errors import QueryError, warn_caller
from acep.overload.early_shedding import EarlyShedding
from acep.overload.event_choice import Exploring
from acep.overload.load import MIN_SHARE
from acep.overload.time_bound import TimeBound
from acep.overload.unit_admission import UnitAdmission, share_for_recall, span_of, why_not_shed_early
from acep.pattern.tree import Strategy
from acep.plan.compile import Plan
from acep.shedding.event_utility import EventUtility, is_sheddable
from acep.spark.columns.fields import with_fields
from acep.spark.job import SentJob
from acep.storage.sections import read_sections
from acep.streaming.job import EXACT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["cell_keys", "plan_early_shedding", "with_exact_column"]

Remake = Callable[[Budget], "tuple[SentJob, StructType]"]


def plan_early_shedding(
    frame: DataFrame, job: SentJob, result: StructType, budget: Budget | None, delay_ms: int, remake: Remake
) -> tuple[SentJob, StructType, EarlyShedding]:
    """Return how events of a stream are shed before they travel, with the job and the columns of the result that are
    left for the workers. ``remake`` makes both for another budget; ``delay_ms`` is the delay of the watermark."""
    delay = -(-delay_ms * job.tick_ms[1] // job.tick_ms[0])
    keys = cell_keys(with_fields(frame, job.columns), job)
    nothing = EarlyShedding(None, None, paced=False, delay=delay, has_cells=bool(keys))
    pace = None if budget is None else pace_of(dataclasses.replace(budget, min_recall=None), job.schema.tick_ns)
    if budget is None or pace is None:
        return job, result, nothing
    min_share = MIN_SHARE if budget.min_recall is None else share_for_recall(budget.min_recall)
    bound = TimeBound(pace.latency, pace.cpu, frame.sparkSession.sparkContext.defaultParallelism, pace.tick, min_share)
    plans, histories = job.plans, job.histories
    if why := why_not_shed_early(plans, ids=job.schema.id is not None):
        if budget.min_recall is not None:
            raise QueryError(
                f"min_recall= needs events that are shed before they travel, and these cannot be: {why}",
                hint="leave it out",
                code="option_invalid",
            )
        warn_caller(f"events are shed behind the shuffle, which saves less time: {why}")
        return job, result, dataclasses.replace(nothing, bound=bound)
    admission = UnitAdmission(span_of(plans), seed=job.seed, delay=delay)
    # Under skip till any match, matching dominates, and shedding partial matches costs less recall than keys.
    multiplies = all(plan.query.strategy is Strategy.SKIP_TILL_ANY_MATCH for plan in plans)
    paced = bound.cpu is None and budget.min_recall is None and multiplies
    exploring = None
    if keys and budget.min_recall is None:
        exploring = _make_exploring(job, histories, plans[0], keys, admission)
    if not paced:  # admission keeps the bound of time; the workers have only the other bounds
        job, result = remake(dataclasses.replace(budget, latency=None, cpu=None, speed=1.0, min_recall=None))
    return job, result, EarlyShedding(admission, bound, paced, delay, exploring, bool(keys))


def with_exact_column(result: StructType) -> StructType:
    """Return the columns of the result with one that says whether nothing had been shed by then."""
    from pyspark.sql.types import BooleanType, StructField, StructType

    return result if EXACT in result.names else StructType([*result, StructField(EXACT, BooleanType())])


def _make_exploring(
    job: SentJob, histories: Sequence[bytes], plan: Plan, keys: tuple[str, ...], admission: UnitAdmission
) -> Exploring | None:
    """Return how single events may be shed by the history of the query; ``None`` if its history does not say."""
    if job.output not in ("matches", "points") or not is_sheddable(plan):
        return None
    for data in histories:
        utility = EventUtility.from_sections(read_sections(data))
        if utility is not None and utility.fingerprint == plan.fingerprint:
            return Exploring.from_admission(utility, keys, admission)
    return None


def cell_keys(frame: DataFrame, job: SentJob) -> tuple[str, ...]:
    """Return the partition attributes if all have types for :func:`acep.overload.sampling_units.cells_of`; () for other
    types or several queries."""
    from pyspark.sql.types import ByteType, IntegerType, LongType, ShortType, StringType

    if job.several or len(job.passes) != 1:
        return ()
    keys = job.passes[0].keys
    hashable_types = (ByteType(), ShortType(), IntegerType(), LongType(), StringType())
    return tuple(keys) if all(frame.schema[key].dataType in hashable_types for key in keys) else ()
