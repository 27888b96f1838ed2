"""Make the job of a state again from its description, so that its state can be read without a stream."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from acep.bucket_state.call_description import CallDescription
from acep.bucket_state.divided_state import CurrentState
from acep.bucket_state.folders import Folder
from acep.errors import AcepError, DataError, SnapshotError
from acep.events.tables import InputSchema, schema_of
from acep.overload.batch_log import BatchLog
from acep.pattern.query_arguments import query_of
from acep.pattern.tree import Query
from acep.runtime.options import StreamOptions
from acep.streaming.job import Job, make_job

__all__ = ["call_of", "job_of_state", "last_left_behind"]


def call_of(job: Job) -> str:
    """Return the name of the call of a job, below the id of its streaming query."""
    return job.fingerprint[:32]


def job_of_state(description: CallDescription | None, call: str) -> Job:
    """Return the job that a state belongs to, without the columns of its result.

    Raises :class:`SnapshotError` if it cannot be made again, exactly as it was.
    """
    try:
        if description is None or not description.record:
            raise DataError("nothing is recorded")
        job = _job_of(description)
    except (AcepError, pa.ArrowException, KeyError, OSError, TypeError, ValueError):
        job = None
    if job is None or call_of(job) != call:
        raise SnapshotError(
            f"the call {call[:8]} cannot be made again from what is recorded beside its state",
            hint="start the query once more with this acep, which records more; clauses, budgets and parts of lists are"
            " never made again",
            code="state_other",
        )
    return job


def _job_of(description: CallDescription) -> Job:
    options = description.options
    types = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(description.record["types"])))
    roles: dict[str, Any] = {role: options[role] for role in ("ts", "type", "seq", "id")}
    schema = schema_of(types, **roles)
    unit = options["unit"]
    if unit is not None and f"{schema.tick_ns} ns" != unit:
        schema = _with_tick(schema, unit)
    for name in ("op", "work", "memory", "policy"):
        if options.get(name) is not None:
            raise DataError(f"{name}= is not made again")
    if options["speculation"] != 0:
        raise DataError("speculation= is not made again")
    queries = {
        name: _with_errors(query_of(text), *errors)
        for (name, text), errors in zip(description.queries.items(), description.record["errors"], strict=True)
    }
    return make_job(
        queries if list(queries) != [""] else queries[""],
        schema,
        StreamOptions(**roles),
        end=2**63 - 1,
        ties=types.names,
        output=options["output"],
        buckets=options["buckets"],
        dynamic=options["versions"],
    )


def _with_tick(schema: InputSchema, unit: str) -> InputSchema:
    return replace(schema, tick_ns=Fraction(unit.removesuffix(" ns")))


def _with_errors(query: Query, errors: str, weights: Sequence[tuple[str, str | None]], surplus: str | None) -> Query:
    """Return a query with the errors that are allowed, as they were recorded."""
    return replace(
        query,
        errors=Fraction(errors),
        weights=tuple((name, None if weight is None else Fraction(weight)) for name, weight in weights),
        surplus=None if surplus is None else Fraction(surplus),
    )


def last_left_behind(state: Folder, current: CurrentState) -> int | None:
    """Return a tick after which no event has stayed behind that the driver has counted; ``None`` if none has.

    Raises :class:`SnapshotError` if events of the stream are being shed by whole units: in another form the stream
    would not know which, and a gap that ends too early could create a match.
    """
    log = BatchLog(state, current.call.query, current.call.call)
    last = log.read_end(current.batch) or log.read_begin(current.batch)
    if last is None:
        return None
    if last.admission is not None and not last.admission.admits_all:
        raise SnapshotError(
            "events of this stream are being shed by whole units, so its state cannot be changed",
            hint="let it go on with Budget(latency=3600) until nothing has been shed for eight windows",
            code="state_other",
        )
    return last.carried.seen if last.carried.idle else None
