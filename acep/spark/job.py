"""Create a job from the columns of a DataFrame and send it to Spark's workers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack

from acep import __version__
from acep.native.compiled import sources
from acep.runtime.options import RevisedKeywords, StreamOptions
from acep.spark.columns.fields import all_columns, input_schema
from acep.spark.columns.letter_case import as_queries_write
from acep.spark.columns.times import first_end_tick
from acep.spark.columns.types import arrow_schema, result_type
from acep.spark.failures import needs_python
from acep.streaming import job as plain

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["SentJob", "check_build", "make_spark_job"]


@dataclass(frozen=True)
class SentJob(plain.Job):
    """A job that is sent to Spark's workers. ``version`` is that of the acep that created it, and ``core`` the digest
    of the sources of its native core (``None`` without one), in which builds of one version may differ."""

    version: str = __version__
    core: str | None = field(default_factory=sources)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the job on a worker, if it has the build of the driver (:func:`check_build`)."""
        check_build(state["version"], state["core"])
        self.__dict__.update(state)

    def sent_as(self, name: str) -> str:
        """Return the name under which a column travels: PySpark cannot transfer a name with a dot or a backtick."""
        return f"__column{self.columns.index(name)}" if "." in name or "`" in name else name


def check_build(version: str, core: str | None) -> None:
    """Raise :class:`EngineError` on a worker if the driver has another version of acep, or a native core of other
    sources. A worker without a native core gives the same matches."""
    if version != __version__:
        raise needs_python(f"Spark's workers have acep {__version__}, and the driver has acep {version}")
    if None not in (core, sources()) and core != sources():
        raise needs_python(
            f"Spark's workers have another build of acep {__version__} than the driver: their native core was built"
            " from other sources"
        )


def make_spark_job(
    columns: StructType,
    query: Any,
    *,
    output: str = "matches",
    buckets: int | None = None,
    latest: Any = None,
    late: bool = False,
    dynamic: bool = False,
    any_case: bool = False,
    **options: Unpack[RevisedKeywords],
) -> tuple[SentJob, StructType]:
    """Create the job of queries over a DataFrame with these columns; return it and the columns of its result.

    The options are those of :func:`acep.spark.match`. With ``any_case`` names of columns are found without regard to
    case, and the job has them as the queries write them. Raises :class:`QueryError` or :class:`DataError`, and
    :class:`EngineError` if ``engine`` cannot run a query.
    """
    stream_options = StreamOptions.from_keywords("job_of", options, RevisedKeywords)
    if any_case:
        columns, roles = as_queries_write(columns, query, options)
        stream_options = replace(stream_options, **roles)
    top, columns = columns.names, all_columns(columns)
    schema = input_schema(columns, **stream_options.columns)
    end, ties = first_end_tick(columns[schema.ts].dataType, schema), () if stream_options.seq else top
    job = plain.make_job(
        query,
        schema,
        stream_options,
        end=end,
        ties=ties,
        output=output,
        buckets=buckets,
        latest=latest,
        late=late,
        dynamic=dynamic,
    )
    result = result_type(job, job.plans, columns)
    return SentJob(**vars(job) | {"result": arrow_schema(result)}), result
