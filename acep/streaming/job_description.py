"""Describe a job for people, beside its state: queries, columns and options that decide its fingerprint."""

from __future__ import annotations

from acep import __version__
from acep.bucket_state.call_description import CallDescription
from acep.pattern.printing import canonical
from acep.streaming.described_job import record_of_job
from acep.streaming.job import Job

__all__ = ["describe_job"]


def describe_job(job: Job) -> CallDescription:
    """Return the description of a job. Names of options are those of :func:`acep.spark.match`."""
    schema, budget = job.schema, job.budget
    roles = {name: getattr(schema, name) for name in ("ts", "type", "seq", "id")}
    options = {
        **roles,
        "unit": None if schema.tick_ns is None else f"{schema.tick_ns} ns",
        "output": job.output,
        "buckets": max(part.size for part in job.passes),
        "op": job.op,
        "speculation": "inf" if job.ahead is None else job.ahead,
        "versions": job.dynamic,
        "work": None if budget is None else budget.work,
        "memory": None if budget is None else budget.memory,
    }
    if budget is not None:
        options |= {"policy": job.policy, "seed": job.seed}
    if job.clause is not None:
        queries = {"": job.clause.text}
    else:
        queries = dict(zip(job.names, map(canonical, job.queries), strict=True))
    kinds = {name: schema.kind(name) for name in job.columns}
    columns = {name: "other" if kind is None else kind.value for name, kind in kinds.items()}
    return CallDescription(
        queries, columns, options, job.buckets, job.tick_ms, schema.instants, __version__, record_of_job(job)
    )
