"""Make the streaming job of rules that come, go and change while it runs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from acep.alerting.alerts import schema_of_alerts
from acep.budget.policies import policy_of
from acep.errors import QueryError
from acep.events.tables import InputSchema, time_types
from acep.plan.schema import Kind
from acep.runtime.options import StreamOptions
from acep.streaming.job import Job, Pass, all_columns
from acep.streaming.latest_time import latest_of
from acep.streaming.times import tick_ms_of

__all__ = ["check_rule_stream", "rule_job"]


def check_rule_stream(options: StreamOptions) -> None:
    """Raise :class:`QueryError` for options of a stream that rules do not have."""
    policy_of(options.policy)
    unused = {
        "budget": options.budget is not None and options.budget.limited,
        "history": options.history is not None,
        "op": options.op is not None,
        "speculation": options.speculation not in (None, 0, "0"),
    }
    for name, is_used in unused.items():
        if is_used:
            raise QueryError(f"{name}= is not for rules that change", hint="leave it out", code="option_invalid")


def rule_job(schema: InputSchema, options: StreamOptions, *, end: int, latest: Any, row: str) -> Job:
    """Return the job of rules over rows of a schema. ``end``: the first tick that marks the end of the stream; ``row``:
    the column with the numbers of the rows.

    Raises :class:`QueryError` for options that rules do not have.
    """
    check_rule_stream(options)
    ids = pa.string() if schema.id is not None and schema.kind(schema.id) is Kind.STRING else pa.int64()
    return Job(
        names=("",),
        queries=(),
        schema=schema,
        columns=tuple(sorted({*all_columns(schema), row})),
        passes=(Pass((), (), 0, 1),),
        output="matches",
        result=schema_of_alerts(time_types(schema)[schema.ts], ids),
        tick_ms=tick_ms_of(schema),
        end=end,
        several=False,
        engine=options.engine,
        latest=latest_of(latest, schema),
        duplicates=None if options.id is None else options.duplicates,
        has_rules=True,
    ).with_fingerprint()
