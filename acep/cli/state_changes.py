"""Run ``acep state CHECKPOINT --buckets N`` and ``--replace QUERY``: let a stopped query go on in another form."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from acep.cli.progress import progress
from acep.cli.terminal import show
from acep.errors import SnapshotError

if TYPE_CHECKING:
    from acep.bucket_state.divided_state import CurrentState
    from acep.bucket_state.folders import Folder
    from acep.streaming.job import Job

__all__ = ["change_buckets", "replace_query"]


def change_buckets(args: argparse.Namespace) -> None:
    """Write the state of a call for another number of buckets, and say how the query is started."""
    from acep.restarting.described_job import last_left_behind
    from acep.restarting.other_buckets import divide_state, with_buckets

    with progress(args, f"dividing the state of {args.folder}"):
        state, current, old = _current_job(args)
        last_left_behind(state, current)  # refuses gaps that are open
        new = with_buckets(old, args.buckets)
        if new.passes == old.passes:
            raise SnapshotError(
                f"the call {current.call.call[:8]} has {args.buckets} buckets already",
                hint="start the query as it is",
                code="option_invalid",
            )
        states = divide_state(old, new, current.states)
        _write(args, state, current, new, states)
    record = _record(args, current, old, new, sum(map(len, states.values())))
    new_size, old_size = record["to"]["bytes"], record["from"]["bytes"]
    text = (
        f"{_verb(args)} the state of {new.buckets} buckets ({new_size:,} bytes) from that of {old.buckets}"
        f" ({old_size:,} bytes)\n"
        f"start the query with buckets={args.buckets}: it goes on with micro-batch {current.batch + 1}"
    )
    show(json.dumps(record, indent=2) if args.json else text)


def replace_query(args: argparse.Namespace) -> None:
    """Write the state of a call for another query, and say from when on it holds."""
    from acep.cli.inputs import query_text
    from acep.restarting.described_job import last_left_behind
    from acep.restarting.other_query import carry_state, time_text, with_query

    with progress(args, f"reading the state of {args.folder}"):
        state, current, old = _current_job(args)
        left_behind = last_left_behind(state, current)
        new = with_query(old, query_text(args.replace))
        if new.fingerprint == old.fingerprint:
            raise SnapshotError(
                f"the call {current.call.call[:8]} has this query already",
                hint="start the query as it is",
                code="option_invalid",
            )
        states, since = carry_state(old, new, current.states, left_behind)
        _write(args, state, current, new, states)
    record = _record(args, current, old, new, sum(map(len, states.values()))) | {"since": since}
    begin = "all events" if since is None else f"events from {time_text(old, since)} on"
    text = (
        f"{_verb(args)} the state for the new query, which gets {begin}; no partial match is lost that would go on\n"
        f"start it in place of the one so far, with the same options: it goes on with micro-batch {current.batch + 1}"
    )
    show(json.dumps(record, indent=2) if args.json else text)


def _current_job(args: argparse.Namespace) -> tuple[Folder, CurrentState, Job]:
    """Return the folder of state of a checkpoint, the state with which its query goes on, and the job of that.

    Raises :class:`SnapshotError` for another folder, and for a state that is missing, damaged or of a job that cannot
    be made again.
    """
    from acep.bucket_state.checkpoints import is_checkpoint, read_checkpoint, state_of_checkpoint
    from acep.bucket_state.divided_state import read_current
    from acep.bucket_state.folders import absolute_place, folder_of
    from acep.restarting.described_job import job_of_state

    place = absolute_place(args.folder)
    checkpoint, state = folder_of(place), state_of_checkpoint(place, args.state)
    if not is_checkpoint(checkpoint):
        raise SnapshotError(
            f"`{checkpoint.shown}` is no checkpoint of Spark",
            hint="name the checkpointLocation of the query; acep follow has one bucket, and --versions for its queries",
            code="state_other",
        )
    current = read_current(state, read_checkpoint(checkpoint), checkpoint.shown, args.call)
    return state, current, job_of_state(current.call.description, current.call.call)


def _write(args: argparse.Namespace, state: Folder, current: CurrentState, new: Job, states: dict[int, bytes]) -> None:
    """Write the states of another job, unless the run is a dry one."""
    from acep.bucket_state.divided_state import write_current
    from acep.restarting.described_job import call_of
    from acep.streaming.job_description import describe_job

    if not args.dry_run:
        write_current(state, current, call_of(new), describe_job(new), states)


def _verb(args: argparse.Namespace) -> str:
    return "would write" if args.dry_run else "wrote"


def _record(args: argparse.Namespace, current: CurrentState, old: Job, new: Job, size: int) -> dict[str, Any]:
    """Return what was done as data."""
    from acep.restarting.described_job import call_of

    old_size = sum(map(len, current.states.values()))
    return {
        "query": current.call.query,
        "batch": current.batch + 1,
        "from": {"call": current.call.call, "buckets": old.buckets, "bytes": old_size},
        "to": {"call": call_of(new), "buckets": new.buckets, "bytes": size},
        "written": not args.dry_run,
    }
