"""Let the state of a job go on with another query, from the first event that is not matched yet.

The rules are those of a query that is replaced (:mod:`acep.changing`): partial matches go on in the states that both
queries share. A state has its partial matches in the form of its query, so they cannot be given to the other one. Where
none would go on, nothing is missing: the other query begins anew, with the rows that are held back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from acep.changing.changeable_queries import as_dynamic, compile_versions, replace_query, with_errors
from acep.errors import QueryError, SnapshotError
from acep.overload.needed_events import Use, uses_of
from acep.pattern.query_arguments import query_of
from acep.pattern.tree import Output
from acep.plan.compile import Plan
from acep.plan.versions import QueryVersion
from acep.restarting.other_buckets import bucket_like, check_agreement, events_to_replay, has_pending, replace_parts
from acep.runtime.stream import Stream
from acep.runtime.stream_parts import PartState, StreamParts
from acep.streaming.buckets import Bucket
from acep.streaming.job import Job, columns_read, passes_of
from acep.streaming.progress import moment_text
from acep.streaming.times import watermark_of

__all__ = ["carry_state", "time_text", "with_query"]


def with_query(job: Job, text: str) -> Job:
    """Return the same job with another query in place of its only one.

    Raises :class:`QueryError` if that cannot go on where this one is.
    """
    why = _why_fixed(job)
    if why is not None:
        raise QueryError(f"the query of this state cannot be replaced: {why[0]}", hint=why[1], code="query_change")
    (old,) = job.queries
    query = with_errors(query_of(text.strip()), old)
    try:
        _joint_plan(job, query)
    except QueryError as error:
        if error.code != "query_name":
            raise
        raise QueryError(
            f"{error.message}: the state has only columns that the query before reads",
            hint=f"a replay needs {events_to_replay(job)}, in a new checkpoint",
            code="query_change",
        ) from None
    new = replace_parts(job, queries=(query,))
    new = replace_parts(new, columns=_columns_of(job, new))
    if missing := sorted(set(new.columns) - set(job.columns)):
        raise QueryError(
            f"the query reads column `{missing[0]}`, which the rows held back do not have",
            hint=f"a replay needs {events_to_replay(new)}, in a new checkpoint",
            code="query_change",
        )
    if passes_of(new.plans, job.passes[0].size, single=job.output == "count") != job.passes:
        raise QueryError(
            "events of the query would be spread by other keys",
            hint=f"a replay needs {events_to_replay(job)}, in a new checkpoint",
            code="query_change",
        )
    if any(negation.leading for negation in new.plans[0].automaton.negations):
        raise QueryError(
            "the query begins with a negation, which would have to know the events before",
            hint=f"a replay needs {events_to_replay(new)}, in a new checkpoint",
            code="query_change",
        )
    return new


def _columns_of(old: Job, new: Job) -> tuple[str, ...]:
    """Return the columns that go to the workers for the new query. All top-level columns do where no ``seq`` orders
    events of one time."""
    read_before, read = (columns_read(job.plans, job.schema) for job in (old, new))
    return tuple(sorted(read | {name for name in old.columns if name not in read_before or _breaks_ties(old, name)}))


def _breaks_ties(job: Job, name: str) -> bool:
    return job.schema.seq is None and "." not in name


def _why_fixed(job: Job) -> tuple[str, str] | None:
    """Return why the query of a job cannot be replaced in its state, and what to do; ``None`` if it can."""
    if len(job.queries) != 1:
        return "it has several queries", "begin a new checkpoint for each query that changes"
    if job.dynamic:
        return "it was begun with `versions=`", "put the query into the folder of versions, under the next number"
    replay = f"a replay needs {events_to_replay(job)}"
    if job.queries[0].output is not Output.ALL:
        return "OUTPUT chooses among the matches of both queries", replay
    if job.schema.id is None and job.output != "count":
        return (
            "without `id=` events are known by their place in the partition",
            f"a replay needs {events_to_replay(job)}",
        )
    if job.output not in ("matches", "count"):
        return f"{job.output} are groups of matches that are yet to end", replay
    return None


def _joint_plan(job: Job, query: Any) -> tuple[Plan, int]:
    """Return the plan of both versions of a query, and how many states the first one has.

    Raises :class:`QueryError` if the second cannot take the place of the first.
    """
    first = QueryVersion(as_dynamic(job.queries[0]), None)
    versions = replace_query((first,), query, 0, job.schema)
    return compile_versions(versions, job.schema), len(compile_versions((first,), job.schema).arcs.states)


def time_text(job: Job, tick: int) -> str:
    """Return a time in ticks as people read it."""
    moment = moment_text(watermark_of(tick, 0, job.tick_ms)) if job.schema.instants and tick >= 0 else ""
    return moment or f"tick {tick}"


def carry_state(
    old: Job, new: Job, states: Mapping[int, bytes], left_behind: int | None = None
) -> tuple[dict[int, bytes], int | None]:
    """Return the states of the buckets of ``new``, which is ``old`` with another query, and the tick of the first event
    that it gets (``None``: it gets all). Events up to the tick ``left_behind`` may have stayed behind as no query could
    use them, besides those that the buckets know.

    Raises :class:`SnapshotError` if a state is damaged, or if partial matches would go on, or matches wait for time to
    pass: then it says what a replay would need.
    """
    (old_pass,), (new_pass,) = old.passes, new.passes
    buckets = {number: Bucket.loads(old, old_pass, data) for number, data in states.items()}
    check_agreement([*buckets.values()])
    since = buckets[0].hold_back.released
    idle_ticks = [left_behind, *(bucket.totals.newest_idle for bucket in buckets.values())]
    _check_left_behind(old, new, idle_ticks, since)
    joint, n_states = _joint_plan(old, new.queries[0])
    shares_states = any(0 < state < n_states for state in joint.current)
    going_on = [bucket for bucket in buckets.values() if shares_states and not _is_empty(bucket)]
    waiting = [bucket for bucket in buckets.values() if any(has_pending(bucket, part) for part in _parts_of(bucket))]
    if going_on or waiting:
        raise _replay_error(old, since, sum(bucket.stream.live for bucket in going_on), is_waiting=bool(waiting))
    new_states = {}
    for number, bucket in buckets.items():
        carried = bucket_like(bucket, new, new_pass, None)
        if (rows := bucket.hold_back.rows) is not None:
            carried.hold_back.add(rows[0].select(list(new.columns)))
        carried.totals = bucket.totals
        new_states[number] = carried.dumps()
        Bucket.loads(new, new_pass, new_states[number])
    return new_states, since


def _check_left_behind(old: Job, new: Job, newest_idle: Sequence[int | None], since: int | None) -> None:
    """Raise :class:`SnapshotError` if events that only the new query can use may have stayed behind, while they would
    still wait for time to pass: the new query would miss them."""
    newest = max((tick for tick in newest_idle if tick is not None), default=None)
    if newest is None or (since is not None and newest < since):
        return
    uses, new_uses = (uses_of(job.plans, ids=job.schema.id is not None, budget=job.budget) for job in (old, new))
    if uses is None or (new_uses is not None and all(any(_covers(use, part) for use in uses) for part in new_uses)):
        return
    begin = "the first" if since is None else time_text(old, since)
    raise SnapshotError(
        "the state cannot go on with another query: events that only the new one can use stayed behind, and some of"
        " them are not final yet",
        hint=f"let acep.spark.punctuation(df, until=...) decide all that has come, with a time after"
        f" {time_text(old, newest)}; or a replay needs the events from {begin} on again, in a new checkpoint",
        code="query_change",
    )


def _covers(use: Use, other: Use) -> bool:
    """Return whether a use certainly has all events of another one."""
    has_types = not use.types or bool(other.types and set(other.types) <= set(use.types))
    conditions = {condition.expr for condition in other.conditions}
    return has_types and all(condition.expr in conditions for condition in use.conditions)


def _parts_of(bucket: Bucket) -> list[PartState]:
    if isinstance(bucket.stream, StreamParts):
        return bucket.stream.states()
    return [PartState(0, bucket.stream.snapshot(), ())]


def _is_empty(bucket: Bucket) -> bool:
    """Return whether the streams of a bucket have nothing that later events could extend, for certain."""
    streams = bucket.stream.streams if isinstance(bucket.stream, StreamParts) else [bucket.stream]
    return all(isinstance(stream, Stream) and _has_nothing(stream, bucket.job.output) for stream in streams)


def _has_nothing(stream: Stream, output: str) -> bool:
    """Return whether a stream refers to no event, and has no partial match; ``False`` where that is not known."""
    return output == "matches" and not stream.live and stream.refers_to_nothing


def _replay_error(job: Job, since: int | None, live: int, *, is_waiting: bool) -> SnapshotError:
    """Say why a query cannot go on with a state, and what a replay would need."""
    reason = (
        "matches of the query before wait for time to pass"
        if is_waiting
        else f"partial matches ({live} with an open window) would go on under both queries"
    )
    window = job.plans[0].window
    if since is None or window.span is None or window.counted:
        events = "all events again"
    else:
        events = f"the events from {time_text(job, since - window.span)} on again"
    begins = "" if since is None else f", with the query before and in `versions=` the new one, `-- since: {since}`"
    ends = "" if since is None else f"; matches that end before {time_text(job, since)} were given"
    return SnapshotError(
        f"the state cannot go on with another query: {reason}",
        hint=f"a replay needs {events}, in a new checkpoint{begins}{ends}",
        code="query_change",
    )
