"""Make the job of a folder of rules over the files of a folder (``acep.follow``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from acep.errors import QueryError
from acep.events.files.casts import check_time_cast
from acep.events.files.options import Options, options_of
from acep.events.tables import schema_of
from acep.following.inbox import ROW
from acep.following.rule_job import check_rule_stream, rule_job
from acep.runtime.options import StreamOptions
from acep.streaming.job import Job
from acep.streaming.latest_time import Latest
from acep.streaming.times import delay_ms_of, first_end_tick

__all__ = ["FollowedRules", "check_rule_outputs", "reading_all"]


@dataclass(frozen=True, kw_only=True)
class FollowedRules:
    """Rules with what :func:`acep.follow` says of their events. ``options`` have the unit that the time has after its
    cast."""

    options: StreamOptions
    watermark: Any
    latest: Any

    def job_over(self, schema: pa.Schema) -> tuple[Job, int]:
        """Return the job over files with these columns, and the delay of its watermark in milliseconds.

        Raises :class:`QueryError` or :class:`DataError`."""
        numbered = schema.append(pa.field(ROW, pa.int64()))
        roles = self.options.columns | {"seq": self.options.seq or ROW, "id": self.options.id or ROW}
        input_schema = schema_of(numbered, **roles)
        last = first_end_tick(schema.field(self.options.ts).type, input_schema)
        job = rule_job(input_schema, self.options, end=last, latest=self.latest, row=ROW)
        # A time that only the end of a stream has is never that of an event; the ids are looked at as files are read.
        bound = Latest(tick=last - 1) if job.latest is None else job.latest
        return replace(job, latest=bound, duplicates=None), delay_ms_of(self.watermark, input_schema)


def reading_all(options: StreamOptions, files: Mapping[str, Any]) -> Options:
    """Return how files are read with all their columns, as a later rule may need any.

    Raises :class:`DataError` for invalid options."""
    reading = options_of(
        columns=None, **options.columns, **files, drop_duplicates=options.duplicates == "drop" and options.op is None
    )
    check_time_cast(options.ts, reading.casts)
    return reading


def check_rule_outputs(
    options: StreamOptions, *, query: Any, output: str, flat: bool, late: bool, versions: Any
) -> None:
    """Raise :class:`QueryError` for options that rules do not have."""
    check_rule_stream(options)
    unused = {"query": query is not None, "output": output != "matches", "flat": flat, "late": late,
              "versions": versions is not None}  # fmt: skip
    for name, is_used in unused.items():
        if is_used:
            raise QueryError(f"{name}= does not go with rules=", hint="leave one out", code="option_invalid")
