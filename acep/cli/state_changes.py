"""Run ``acep state CHECKPOINT --buckets N``: let a stopped query go on with another number of buckets."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from acep.cli.progress import progress
from acep.cli.terminal import show
from acep.errors import SnapshotError

__all__ = ["change_buckets"]


def change_buckets(args: argparse.Namespace) -> None:
    """Write the state of a call for another number of buckets, and say how the query is started."""
    from acep.bucket_state.checkpoints import is_checkpoint, read_checkpoint, state_of_checkpoint
    from acep.bucket_state.divided_state import read_current, write_current
    from acep.bucket_state.folders import absolute_place, folder_of
    from acep.streaming.described_job import call_of, job_of_state
    from acep.streaming.job_description import describe_job
    from acep.streaming.other_buckets import divide_state, with_buckets

    place = absolute_place(args.folder)
    checkpoint, state = folder_of(place), state_of_checkpoint(place, args.state)
    if not is_checkpoint(checkpoint):
        raise SnapshotError(
            f"`{checkpoint.shown}` is no checkpoint of Spark",
            hint="name the checkpointLocation of the query; acep follow has one bucket",
            code="state_other",
        )
    with progress(args, f"dividing the state of {args.folder}"):
        current = read_current(state, read_checkpoint(checkpoint), checkpoint.shown, args.call)
        old = job_of_state(current.call.description, current.call.call)
        new = with_buckets(old, args.buckets)
        if new.passes == old.passes:
            raise SnapshotError(
                f"the call {current.call.call[:8]} has {args.buckets} buckets already",
                hint="start the query as it is",
                code="option_invalid",
            )
        states = divide_state(old, new, current.states)
        if not args.dry_run:
            description = replace(describe_job(new), version=current.call.description.version)
            write_current(state, current, call_of(new), description, states)
    record = {
        "query": current.call.query,
        "batch": current.batch + 1,
        "from": {"call": current.call.call, "buckets": old.buckets, "bytes": sum(map(len, current.states.values()))},
        "to": {"call": call_of(new), "buckets": new.buckets, "bytes": sum(map(len, states.values()))},
        "written": not args.dry_run,
    }
    if args.json:
        show(json.dumps(record, indent=2))
        return
    verb = "would write" if args.dry_run else "wrote"
    show(
        f"{verb} the state of {new.buckets} buckets ({record['to']['bytes']:,} bytes) from that of {old.buckets}"
        f" ({record['from']['bytes']:,} bytes) as the call {call_of(new)}\n"
        f"start the query with buckets={args.buckets}: it goes on with micro-batch {current.batch + 1}"
    )
