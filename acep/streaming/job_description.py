"""Describe a job for people, beside its state: queries, columns and options that decide its fingerprint."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa

from acep import __version__
from acep.bucket_state.call_description import CallDescription
from acep.events.tables import InputSchema
from acep.pattern.printing import canonical
from acep.plan.schema import Kind
from acep.streaming.job import Job

__all__ = ["describe_job", "record_of_job"]

PLAIN_TYPES = {
    Kind.BOOL: pa.bool_(),
    Kind.INT: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.NULL: pa.null(),
}


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
    elif job.has_rules:
        queries = {"": "a folder of rules"}
    else:
        queries = dict(zip(job.names, map(canonical, job.queries), strict=True))
    kinds = {name: schema.kind(name) for name in job.columns}
    columns = {name: "other" if kind is None else kind.value for name, kind in kinds.items()}
    return CallDescription(
        queries, columns, options, job.buckets, job.tick_ms, schema.instants, __version__, record_of_job(job)
    )


def record_of_job(job: Job) -> dict[str, Any]:
    """Return what :func:`acep.restarting.described_job.job_of_state` needs besides what people read: the types of the
    columns, and of each query the errors, weights and surplus. It is empty if parts of lists are among the columns:
    their types are those of whole columns."""
    schema = job.schema
    if schema.nested or schema.ordered:
        return {}
    types = dict(schema.times) | dict(schema.decimals)
    fields = [(name, types.get(name) or _plain_type(schema, name)) for name in job.columns]
    errors = [
        [
            str(query.errors),
            [[name, None if weight is None else str(weight)] for name, weight in query.weights],
            None if query.surplus is None else str(query.surplus),
        ]
        for query in job.queries
    ]
    return {"types": base64.b64encode(pa.schema(fields).serialize().to_pybytes()).decode(), "errors": errors}


def _plain_type(schema: InputSchema, name: str) -> pa.DataType:
    kind = schema.kind(name)
    return pa.binary() if kind is None else PLAIN_TYPES.get(kind, pa.binary())
